# expect: ok
import torch
import wandb


def train(args, wrapper, loader, bce_fn, optimizer, scheduler, device):
    ga = args.gradient_accumulation
    params = [p for p in wrapper.predictors.parameters()]
    data = iter(loader)
    for opt_step in range(1, args.num_steps + 1):
        accum_loss, accum_bce = 0.0, 0.0
        for _ in range(ga):
            try:
                batch = next(data)
            except StopIteration:
                data = iter(loader)
                batch = next(data)
            with torch.no_grad():
                wrapper.forward_dense(batch["input_ids"].to(device), capture_intermediates=True)
            inputs, targets = wrapper.get_layer_inputs(), wrapper.get_intermediates()
            total_bce = torch.tensor(0.0, device=device)
            num_layers = len(wrapper.predictors)
            for layer_idx in range(num_layers):
                if layer_idx not in targets:
                    continue
                logits = wrapper.predictors[layer_idx](inputs[layer_idx])
                total_bce = total_bce + bce_fn(logits, targets[layer_idx])
            total_bce = total_bce / max(num_layers, 1)
            loss = total_bce / ga
            loss.backward()
            accum_loss += loss.item()
            accum_bce += total_bce.item() / ga
        torch.nn.utils.clip_grad_norm_(params, 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        wandb.log({"loss": accum_loss, "bce_loss": accum_bce, "lr": scheduler.get_last_lr()[0]}, step=opt_step)
        if opt_step % args.log_every == 0 or opt_step == 1:
            print(f"[Step {opt_step}/{args.num_steps}] loss={accum_loss:.4f} bce={accum_bce:.4f}")
