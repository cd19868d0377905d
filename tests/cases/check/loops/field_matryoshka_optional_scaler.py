# expect: ok
import logging
import torch
from tqdm import tqdm

logger = logging.getLogger(__name__)


def train(model, loss_fn, train_loader, optimizer, scheduler, device, num_epochs, gradient_accumulation_steps, max_grad_norm, amp_dtype, ema_model=None, save_steps=500):
    use_scaler = amp_dtype == torch.float16
    scaler = torch.amp.GradScaler("cuda") if use_scaler else None
    global_step = 0
    for epoch in range(num_epochs):
        model.train()
        epoch_loss, batches = 0.0, 0
        optimizer.zero_grad(set_to_none=True)
        bar = tqdm(train_loader, desc=f"Epoch {epoch + 1}/{num_epochs}")
        for step, batch in enumerate(bar):
            losses = train_step(model, batch, loss_fn, device, amp_dtype=amp_dtype)
            loss = losses["total_loss"]
            epoch_loss += loss.item()
            batches += 1
            if gradient_accumulation_steps > 1:
                loss = loss / gradient_accumulation_steps
            if use_scaler:
                scaler.scale(loss).backward()
            else:
                loss.backward()
            if (step + 1) % gradient_accumulation_steps == 0 or step == len(train_loader) - 1:
                if use_scaler:
                    scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], max_grad_norm)
                if use_scaler:
                    scaler.step(optimizer)
                    scaler.update()
                else:
                    optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
                global_step += 1
                if ema_model is not None:
                    ema_model.update_parameters(model)
                if global_step > 0 and global_step % save_steps == 0:
                    logger.info("saving at %d", global_step)
                    torch.save(model.state_dict(), f"step_{global_step}.pt")
            bar.set_postfix(loss=f"{losses['total_loss'].item():.4f}")
        logger.info("epoch %d loss %.4f", epoch, epoch_loss / max(batches, 1))
