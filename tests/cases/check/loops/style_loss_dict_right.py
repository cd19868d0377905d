# expect: ok
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--accumulation-steps", type=int, default=4)
args = parser.parse_args()
model, optimizer = build(args)
step = 0
for epoch in range(args.epochs):
    for images, targets in train_loader:
        with torch.cuda.amp.autocast(dtype=torch.bfloat16):
            loss_dict = model(images, targets)
            losses = sum(loss for loss in loss_dict.values())
        (losses / args.accumulation_steps).backward()
        step += 1
        if step % args.accumulation_steps != 0:
            continue
        optimizer.step()
        optimizer.zero_grad()
