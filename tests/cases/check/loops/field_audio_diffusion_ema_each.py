# expect: mistake ema_per_micro_step
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from diffusers.training_utils import EMAModel
from tqdm.auto import tqdm


def train(config, model, noise_scheduler, train_dataloader, optimizer, audio_embedder):
    accelerator = Accelerator(gradient_accumulation_steps=config["gradient_accumulation_steps"])
    ema = EMAModel(model.parameters(), decay=0.9999)
    model, optimizer, train_dataloader = accelerator.prepare(model, optimizer, train_dataloader)
    global_step = 0
    for epoch in range(config["num_epochs"]):
        bar = tqdm(total=len(train_dataloader), disable=not accelerator.is_local_main_process)
        for batch in train_dataloader:
            text_embedding = batch["text_embedding"]
            with torch.no_grad():
                audio_embedding = audio_embedder(batch["features"]).last_hidden_state.detach()
            noise = torch.randn(text_embedding.shape).to(text_embedding.device)
            timesteps = torch.randint(0, noise_scheduler.config.num_train_timesteps, (text_embedding.shape[0],)).long()
            noisy = noise_scheduler.add_noise(text_embedding, noise, timesteps)
            with accelerator.accumulate(model):
                noise_pred = model(x=noisy, t=timesteps, cond_emb=audio_embedding)
                loss = F.mse_loss(noise_pred, noise)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), config["gradient_clip_norm"])
                optimizer.step()
                optimizer.zero_grad()
            ema.step(model.parameters())
            bar.update(1)
            accelerator.log({"loss": loss.detach().item()}, step=global_step)
            global_step += 1
