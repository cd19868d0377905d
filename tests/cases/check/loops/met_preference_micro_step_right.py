# expect: ok
import torch


def run(model, ref_model, examples, make_batch, score, train_config):
    grad_accum = int(train_config.get("gradient_accumulation_steps", 4))
    epochs = int(train_config.get("epochs", 1))
    kl_beta = float(train_config.get("kl_beta", 0.02))
    optimizer = torch.optim.AdamW(model.parameters(), lr=float(train_config["learning_rate"]))
    history = []
    global_step, micro_step = 0, 0
    optimizer.zero_grad(set_to_none=True)
    for epoch in range(epochs):
        for example in examples:
            batch, scores = make_batch(example), score(example)
            advantages = torch.tensor(scores)
            with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
                with torch.no_grad():
                    ref_logps = sequence_logps(ref_model, batch)
                policy_logps = sequence_logps(model, batch)
                kl_proxy = (policy_logps - ref_logps).pow(2).mean()
                policy_loss = -(advantages.detach() * policy_logps).mean()
                loss = policy_loss + kl_beta * kl_proxy
            (loss / grad_accum).backward()
            micro_step += 1
            if micro_step % grad_accum == 0 or micro_step == len(examples) * epochs:
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                global_step += 1
                history.append({"epoch": epoch + 1, "step": global_step, "loss": float(loss.detach().cpu())})
                if global_step % 10 == 0:
                    print(history[-1])
    return history
