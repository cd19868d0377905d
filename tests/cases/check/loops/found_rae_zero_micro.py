# expect: mistake zero_grad_in_window
import logging
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main(args):
    dist.init_process_group("nccl")
    world_size = dist.get_world_size()
    micro_batch_size = args.global_batch_size // (world_size * args.grad_accum_steps)
    model = DDP(build_model(args).cuda(), device_ids=[dist.get_rank()])
    ema = copy_model(model.module)
    optimizer, optim_msg = build_optimizer(model.parameters(), args)
    scaler = torch.cuda.amp.GradScaler(enabled=args.precision == "fp16")
    loader = prepare_dataloader(args.data_path, micro_batch_size, dist.get_rank(), world_size)
    loader_batches = len(loader)
    steps_per_epoch = loader_batches // args.grad_accum_steps
    global_step = 0
    for epoch in range(args.epochs):
        model.train()
        accum_counter = 0
        step_loss_accum = 0.0
        for step, (images, labels) in enumerate(loader):
            optimizer.zero_grad(set_to_none=True)
            images = images.cuda(non_blocking=True)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = training_losses(model, images, dict(y=labels.cuda()))["loss"].mean()
            step_loss_accum += loss.item()
            scaler.scale(loss / args.grad_accum_steps).backward()
            accum_counter += 1
            if accum_counter < args.grad_accum_steps:
                continue
            if args.clip_grad:
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad)
            scaler.step(optimizer)
            scaler.update()
            update_ema(ema, model.module, args.ema_decay)
            global_step += 1
            if global_step % args.log_every == 0:
                logging.info("step %d loss %.4f", global_step, step_loss_accum / accum_counter)
            accum_counter = 0
            step_loss_accum = 0.0
