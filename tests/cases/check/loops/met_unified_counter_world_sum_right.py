# expect: ok
import torch
import torch.distributed as dist


def loop(args, fsdp_model, ema_model, dataset, optimizer, scheduler, logger, device, train_step=0):
    gradient_accumulation_counter = 0
    optimizer.zero_grad()
    for curr_step, data in enumerate(dataset, start=train_step):
        if curr_step >= args.total_steps:
            break
        data = data.cuda(device).to_dict()
        with torch.amp.autocast("cuda", dtype=torch.bfloat16):
            loss_dict = fsdp_model(**data)
        loss = 0
        ce = loss_dict.get("ce")
        if ce is not None:
            total_ce_tokens = torch.tensor(len(data.get("ce_loss_indexes", [])), device=device)
            dist.all_reduce(total_ce_tokens, op=dist.ReduceOp.SUM)
            if total_ce_tokens > 0:
                ce = ce.sum() * dist.get_world_size() / total_ce_tokens
                loss_dict["ce"] = ce.detach()
                loss = loss + ce * args.text_loss_weight
        loss = loss / args.gradient_accumulation_steps
        loss.backward()
        gradient_accumulation_counter += 1
        if gradient_accumulation_counter >= args.gradient_accumulation_steps:
            total_norm = fsdp_model.clip_grad_norm_(args.max_grad_norm)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            fsdp_ema_update(ema_model, fsdp_model, decay=args.ema)
            gradient_accumulation_counter = 0
        if curr_step % args.log_every == 0:
            for key, value in loss_dict.items():
                avg = torch.tensor(value.item(), device=device)
                dist.all_reduce(avg, op=dist.ReduceOp.SUM)
                logger.info(f"(step={curr_step:07d}) {key} {avg.item() / dist.get_world_size():.4f}")
