# expect: ok
import itertools

import torch
from accelerate import Accelerator

accelerator = Accelerator(gradient_accumulation_steps=args.gradient_accumulation_steps, mixed_precision="fp16")
params = itertools.chain(unet.parameters(), text_encoder.parameters())
optimizer = torch.optim.AdamW(params, lr=args.lr)
unet, text_encoder, optimizer, dl = accelerator.prepare(unet, text_encoder, optimizer, dl)
global_step = 0
for epoch in range(args.epochs):
    unet.train()
    text_encoder.train()
    for batch in dl:
        with accelerator.accumulate(unet, text_encoder):
            cond = text_encoder(batch["ids"])[0]
            pred = unet(batch["noisy"], batch["t"], cond).sample
            loss = ((pred - batch["noise"]) ** 2).mean(dim=(1, 2, 3))
            loss = (loss * batch["weights"]).mean()
            accelerator.backward(loss)
            if accelerator.sync_gradients and args.max_grad_norm != 0.0:
                accelerator.clip_grad_norm_(itertools.chain(unet.parameters(), text_encoder.parameters()), args.max_grad_norm)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        if accelerator.sync_gradients:
            global_step += 1
            if global_step % args.save_every == 0:
                accelerator.save_state(args.out)
        logs = {"loss": loss.detach().item()}
        accelerator.log(logs, step=global_step)
