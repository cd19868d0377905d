# expect: ok
import os
import torch
from tqdm import tqdm

ACCUMULATION_STEPS = 8
EPOCHS = 10
BATCH = 4


def train():
    model = Captioner().cuda()
    optimizer = torch.optim.AdamW([
        {"params": model.encoder.parameters(), "lr": 1e-5},
        {"params": model.projector.parameters(), "lr": 1e-4},
    ])
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)
    loader = torch.utils.data.DataLoader(Pairs("train.json"), batch_size=BATCH, shuffle=True, collate_fn=lambda b: b)
    epoch_losses = []
    for epoch in range(EPOCHS):
        model.train()
        epoch_loss, n_samples, step = 0.0, 0, 0
        optimizer.zero_grad()
        progress_bar = tqdm(loader, desc=f"Epoch {epoch+1}/{EPOCHS}")
        for batch in progress_bar:
            for sample in batch:
                text_inputs = sample["tokens"].to("cuda")
                labels = text_inputs.clone()
                labels[:, :sample["prompt"]] = -100
                outputs = model(image=sample["image"].cuda(), text_input_ids=text_inputs, labels=labels)
                loss = outputs.loss / ACCUMULATION_STEPS
                loss.backward()
                epoch_loss += outputs.loss.item()
                n_samples += 1
                step += 1
                if step % ACCUMULATION_STEPS == 0:
                    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
                    optimizer.step()
                    optimizer.zero_grad()
            progress_bar.set_postfix({"loss": f"{epoch_loss / max(n_samples, 1):.4f}"})
        if step % ACCUMULATION_STEPS != 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            optimizer.step()
            optimizer.zero_grad()
        scheduler.step()
        avg_loss = epoch_loss / max(n_samples, 1)
        epoch_losses.append(avg_loss)
        print(f"Epoch {epoch+1:02d}/{EPOCHS}  Loss: {avg_loss:.4f}")
        torch.save(model.state_dict(), os.path.join("ckpt", f"model_epoch_{epoch+1}.pth"))
