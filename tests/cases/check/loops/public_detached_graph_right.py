# expect: ok
import torch


def fit(model, loader, optimizer, scheduler, epochs, accum_steps, device):
    history = []
    for epoch in range(epochs):
        model.train()
        running = 0.0
        optimizer.zero_grad()
        for step, batch in enumerate(loader, start=1):
            batch = {k: v.to(device) for k, v in batch.items()}
            loss = model(**batch).loss
            running += loss.detach()
            loss.div(accum_steps).backward()
            if step % accum_steps and step != len(loader):
                continue
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        scheduler.step()
        history.append((running / len(loader)).item())
    return history
