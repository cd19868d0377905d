# expect: mistake zero_grad_in_window
import paddle


def train(model, loader, criterion, accum_steps, lr):
    opt = paddle.optimizer.Adam(learning_rate=lr, parameters=model.parameters())
    for epoch in range(10):
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y) / accum_steps
            loss.backward()
            if (i + 1) % accum_steps == 0:
                opt.step()
            opt.clear_grad()
