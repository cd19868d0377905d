# expect: mistake log_factor
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main(args):
    dist.init_process_group("nccl")
    ddp_rank = int(os.environ["RANK"])
    ddp_local_rank = int(os.environ["LOCAL_RANK"])
    device = f"cuda:{ddp_local_rank}"
    master_process = ddp_rank == 0
    model = DDP(torch.compile(GPT(args).to(device)), device_ids=[ddp_local_rank])
    ctx = torch.amp.autocast(device_type="cuda", dtype=torch.bfloat16)
    optimizer = model.module.configure_optimizers(args.weight_decay, args.learning_rate)
    train_loader = DistributedDataLoader(args.input_bin, args.batch_size, args.sequence_length, ddp_rank)
    x, y = train_loader.next_batch()
    for step in range(args.num_iterations + 1):
        model.train()
        train_loss = torch.zeros(1, device=device)
        for micro_step in range(args.grad_accumulation_steps):
            model.require_backward_grad_sync = micro_step == args.grad_accumulation_steps - 1
            with ctx:
                _, loss = model(x, y, return_logits=False)
                loss = loss / args.grad_accumulation_steps
                train_loss += loss.detach()
            x, y = train_loader.next_batch()
            loss.backward()
        train_loss /= args.grad_accumulation_steps
        for p in model.parameters():
            p.grad = p.grad / (p.grad.norm() + 1e-6) if args.normalize else p.grad
        lr = get_lr(step, args)
        for group in optimizer.param_groups:
            group["lr"] = lr
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        dist.all_reduce(train_loss, op=dist.ReduceOp.AVG)
        if master_process:
            print(f"step:{step}/{args.num_iterations} | loss {train_loss.item():.6f}")
