# expect: ok
import paddle


def do_train(model, loader, criterion, lr_scheduler, args):
    optimizer = paddle.optimizer.AdamW(learning_rate=lr_scheduler, parameters=model.parameters())
    global_step = 0
    for epoch in range(args.num_train_epochs):
        for step, (ids, seg, labels) in enumerate(loader, start=1):
            logits = model(ids, seg)
            loss = criterion(logits, labels)
            if args.gradient_accumulation_steps > 1:
                loss = loss / args.gradient_accumulation_steps
            loss.backward()
            if step % args.gradient_accumulation_steps == 0 or step == len(loader):
                optimizer.step()
                lr_scheduler.step()
                optimizer.clear_grad()
                global_step += 1
