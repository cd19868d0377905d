# expect: mistake clip_per_micro_step
import torch


def train_one_epoch(args, model, data_loader, optimizer, epoch, lr_scheduler):
    model.train()
    optimizer.zero_grad()
    num_steps = len(data_loader)
    for idx, (img, mask, label) in enumerate(data_loader):
        img, mask = img.cuda(non_blocking=True), mask.cuda(non_blocking=True)
        loss1, loss2 = model(img, mask)
        loss2 = args.mm_con * loss2
        loss = loss1 + loss2
        if args.accumulate_step > 1:
            loss = loss / args.accumulate_step
            loss.backward()
            if args.clip_grad:
                grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad)
            else:
                grad_norm = get_grad_norm(model.parameters())
            if (idx + 1) % args.accumulate_step == 0:
                optimizer.step()
                optimizer.zero_grad()
                lr_scheduler.step_update(epoch * num_steps + idx)
        else:
            loss.backward()
            if args.clip_grad:
                grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad)
            else:
                grad_norm = get_grad_norm(model.parameters())
            optimizer.step()
            optimizer.zero_grad()
            lr_scheduler.step_update(epoch * num_steps + idx)
        torch.cuda.synchronize()
