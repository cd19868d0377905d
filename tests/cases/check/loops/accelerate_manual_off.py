# expect: mistake off_by_one_boundary
from accelerate import Accelerator
import math

def main(args):
    accelerator = Accelerator(mixed_precision="bf16")
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    loader = DataLoader(dataset, batch_size=args.batch_size, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    per_epoch = math.ceil(len(loader) / args.accumulation)
    total = per_epoch * args.epochs
    scheduler = get_linear_schedule_with_warmup(optimizer, args.warmup, total)
    for epoch in range(args.epochs):
        for step, batch in enumerate(loader):
            loss = model(**batch).loss / args.accumulation
            accelerator.backward(loss)
            if step % args.accumulation == 0 or step + 1 == len(loader):
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()

if __name__ == "__main__":
    main(parse_args())
