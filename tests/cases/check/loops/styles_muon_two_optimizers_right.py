# expect: ok
import torch

optimizer1 = torch.optim.Adam([model.embed.weight, model.lm_head.weight], lr=0.3, fused=True)
optimizer2 = Muon(model.transformer.h.parameters(), lr=0.02, momentum=0.95)
optimizers = [optimizer1, optimizer2]
schedulers = [torch.optim.lr_scheduler.LambdaLR(opt, get_lr) for opt in optimizers]
train_accumulation_steps = args.batch_size // (args.device_batch_size * ddp_world_size)
for step in range(args.num_iterations):
    model.train()
    for i in range(1, train_accumulation_steps + 1):
        with ctx:
            _, loss = model(x, y, return_logits=False)
            train_loss = loss.detach()
        x, y = train_loader.next_batch()
        if i < train_accumulation_steps:
            with model.no_sync():
                loss.backward()
        else:
            loss.backward()
    for p in model.parameters():
        p.grad /= train_accumulation_steps
    for opt, sched in zip(optimizers, schedulers):
        opt.step()
        sched.step()
    model.zero_grad(set_to_none=True)
    print(f"step:{step} train_loss:{train_loss.item():.4f}")
