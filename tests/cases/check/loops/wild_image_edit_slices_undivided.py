# expect: mistake no_division
import contextlib

import torch
import torch.distributed as dist


def loop(args, config, model, opt, scheduler, data_iter, image_loss, text_loss, local_batch_size, logger):
    step, running_loss, log_steps = 0, 0.0, 0
    while step < config.max_steps:
        batch = next(data_iter)
        images, ids = batch["images"].cuda(), batch["ids"].cuda()
        loss_item = 0.0
        opt.zero_grad()
        # the micro batch size controls gradient accumulation
        for mb_idx in range((local_batch_size - 1) // config.micro_batch_size + 1):
            mb_st = mb_idx * config.micro_batch_size
            mb_ed = min((mb_idx + 1) * config.micro_batch_size, local_batch_size)
            last_mb = mb_ed == local_batch_size
            x_mb, ids_mb = images[mb_st:mb_ed], ids[mb_st:mb_ed]
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss_image, hidden = image_loss.compute_loss(model, ids_mb, x_mb)
                loss_text, _ = text_loss.compute_loss(model, ids_mb, x_mb)
                loss = loss_image + config.caption_weight * loss_text
            with model.no_sync() if args.data_parallel in ["sdp", "fsdp"] and not last_mb else contextlib.nullcontext():
                loss.backward()
            loss_item += loss.item()
        grad_norm = model.clip_grad_norm_(config.grad_clip)
        opt.step()
        scheduler.step()
        step += 1
        running_loss += loss_item
        log_steps += 1
        if step % config.log_every == 0:
            gradient_accumulation_steps = (local_batch_size - 1) // config.micro_batch_size + 1
            avg_loss = torch.tensor(running_loss / log_steps).cuda()
            dist.all_reduce(avg_loss, op=dist.ReduceOp.SUM)
            avg_loss = avg_loss.item() / dist.get_world_size() / gradient_accumulation_steps
            logger.info(f"(step={step:07d}) loss {avg_loss:.4f} grad norm {grad_norm:.2f}")
            running_loss, log_steps = 0.0, 0
