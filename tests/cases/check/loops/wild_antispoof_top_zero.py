# expect: mistake zero_grad_in_window log_factor
import torch


def run(args, model, train_loader, criterion, optimizer, device):
    scaler = torch.cuda.amp.GradScaler()
    for epoch in range(args.epochs):
        model.train()
        train_loss, train_acc = 0.0, 0.0
        for i, (imgs, labels) in enumerate(train_loader):
            global_step = epoch * len(train_loader) + i
            adjust_learning_rate(optimizer, global_step, epoch, args)
            imgs, labels = imgs.to(device), labels.float().to(device)
            optimizer.zero_grad()
            feats, preds = model(imgs)
            loss = args.single_center_loss_weight * criterion(feats, labels)
            loss /= args.accumulate_step
            train_loss += loss.item()
            train_acc += compute_accuracy(pred=preds, target=labels)
            if args.fp16:
                scaler.scale(loss).backward()
                if (i + 1) % args.accumulate_step == 0:
                    scaler.unscale_(optimizer)
                    torch.nn.utils.clip_grad_norm_(model.parameters(), 5)
                    scaler.step(optimizer)
                    scaler.update()
            else:
                loss.backward()
                if (i + 1) % args.accumulate_step == 0:
                    torch.nn.utils.clip_grad_norm_(model.parameters(), 5)
                    optimizer.step()
            if (i + 1) % args.accumulate_step == 0:
                optimizer.zero_grad()
        print(epoch, train_loss / len(train_loader), train_acc / len(train_loader))
