# expect: ok
import torch
import torch.nn as nn


def run(rank, args, scorer, dataloader, s_optimizer):
    all_step_cnt = 0
    for epoch in range(args.epoch):
        s_optimizer.zero_grad()
        avg_loss = 0
        step_cnt = 0
        sim_step = 0
        for (i, batch) in enumerate(dataloader):
            to_cuda(batch, rank)
            step_cnt += 1
            output = scorer(batch["src_input_ids"], batch["candidate_ids"], batch["tgt_input_ids"])
            similarity, gold_similarity = output['score'], output['summary_score']
            loss = args.scale * RankingLoss(similarity, gold_similarity, args.margin, args.gold_margin, args.gold_weight)
            loss = loss / args.accumulate_step
            avg_loss += loss.item()
            loss.backward()
            if step_cnt == args.accumulate_step:
                if args.grad_norm > 0:
                    nn.utils.clip_grad_norm_(scorer.parameters(), args.grad_norm)
                step_cnt = 0
                sim_step += 1
                all_step_cnt += 1
                lr = args.max_lr * min(all_step_cnt ** (-0.5), all_step_cnt * (args.warmup_steps ** (-1.5)))
                for param_group in s_optimizer.param_groups:
                    param_group['lr'] = lr
                s_optimizer.step()
                s_optimizer.zero_grad()
            if sim_step % args.report_freq == 0 and step_cnt == 0 and rank == 0:
                print("epoch: %d, batch: %d, avg loss: %.6f" % (epoch + 1, sim_step, avg_loss / args.report_freq))
                avg_loss = 0
