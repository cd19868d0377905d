# expect: mistake no_division
from dataclasses import dataclass

from tqdm import tqdm


@dataclass
class TrainConfig:
    max_steps: int = 1000
    gradient_accumulation: int = 1
    device: str = "cpu"
    save_every: int = 500


def train_loop(model, dataloader, optimizer, config: TrainConfig):
    model.to(config.device)
    model.train()
    micro_step = 0
    update_step = 0
    optimizer.zero_grad()
    progress = tqdm(total=config.max_steps, desc="train")
    while update_step < config.max_steps:
        for batch in dataloader:
            loss = model.forward_train(batch["images"].to(config.device), batch["questions"], batch["sql"])
            loss.backward()
            micro_step += 1
            if micro_step % config.gradient_accumulation == 0:
                optimizer.step()
                optimizer.zero_grad()
                update_step += 1
                progress.update(1)
                progress.set_postfix({"loss": f"{loss.item():.4f}"})
                if config.save_every > 0 and update_step % config.save_every == 0:
                    save_checkpoint({"model": model.state_dict(), "step": update_step}, f"step_{update_step}.pt")
                if update_step >= config.max_steps:
                    break
    progress.close()
