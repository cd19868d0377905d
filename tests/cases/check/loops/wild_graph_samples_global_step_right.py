# expect: ok
import torch
from torch.optim import AdamW


def train(data_loader, model, save_path, device):
    model.to(device)
    model.train()
    accumulation_steps = 4
    num_epochs = 3
    lr = 5e-5
    optimizer = AdamW(filter(lambda p: p.requires_grad, model.parameters()), lr=lr)
    global_step = 0
    loss_track = []
    optimizer.zero_grad()
    for epoch in range(num_epochs):
        for step, batch in enumerate(data_loader):
            batch_loss = 0.0
            batch_size = batch["input"]["input_ids"].size(0)
            for i in range(batch_size):
                global_step += 1
                micro_input = {
                    "input_ids": batch["input"]["input_ids"][i].to(device),
                    "labels": batch["input"]["labels"][i].to(device),
                }
                outputs = model(**micro_input, graph=batch["graph"][i])
                loss = outputs.loss
                loss = loss / accumulation_steps
                loss.backward()
                batch_loss += outputs.loss.item()
                if global_step % accumulation_steps == 0:
                    optimizer.step()
                    optimizer.zero_grad()
            avg_batch_loss = batch_loss / batch_size
            loss_track.append(avg_batch_loss)
            print(f"Batch {step}: loss = {avg_batch_loss:.4f}")
    model.save_pretrained(save_path)
