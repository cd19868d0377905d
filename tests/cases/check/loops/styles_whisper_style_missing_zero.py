# expect: mistake missing_zero_grad
import torch


def train_step(model, train_iter, optimizer, scheduler, accum_grad_steps, max_grad_norm):
    model.train()
    total_loss = 0
    for _ in range(accum_grad_steps):
        x, y = next(train_iter)
        loss = model(x, y) / accum_grad_steps
        loss.backward()
        total_loss += loss.item()
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_grad_norm)
    optimizer.step()
    scheduler.step()
    return total_loss


def main_loop(model, loader, optimizer, scheduler, args):
    it = iter(loader)
    for step in range(args.train_steps):
        print(step, train_step(model, it, optimizer, scheduler, args.accum_grad_steps, 1.0))
