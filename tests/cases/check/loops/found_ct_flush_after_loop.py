# expect: ok
import torch


def train_epoch(model, dataloader, optimizer, criterion, device, accumulation_steps=4, gradient_clip=1.0):
    model.train()
    total_loss = 0.0
    n_patients = 0
    batch_idx = -1
    optimizer.zero_grad()
    for batch_idx, batch in enumerate(dataloader):
        if batch is None:
            continue
        images = batch['images'].to(device)
        slopes = batch['slopes'].to(device)
        lengths = batch['lengths'].tolist()
        preds = model(images)
        patient_preds = torch.stack([block.mean() for block in torch.split(preds, lengths)])
        patient_slopes = torch.stack([block[0] for block in torch.split(slopes, lengths)])
        loss = criterion(patient_preds, patient_slopes)
        loss = loss / accumulation_steps
        loss.backward()
        if (batch_idx + 1) % accumulation_steps == 0:
            if gradient_clip > 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=gradient_clip)
            optimizer.step()
            optimizer.zero_grad()
        n_patients_in_batch = len(lengths)
        total_loss += loss.item() * n_patients_in_batch * accumulation_steps
        n_patients += n_patients_in_batch
    if batch_idx >= 0 and (batch_idx + 1) % accumulation_steps != 0:
        if gradient_clip > 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=gradient_clip)
        optimizer.step()
        optimizer.zero_grad()
    return total_loss / n_patients if n_patients > 0 else 0.0
