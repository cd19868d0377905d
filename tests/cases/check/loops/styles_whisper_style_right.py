# expect: ok
import torch
from tqdm import tqdm


def infinite_iter(loader):
    while True:
        for batch in loader:
            yield batch


def train_step(model, train_iter, optimizer, scheduler, accum_grad_steps, max_grad_norm):
    model.train()
    total_loss = 0
    for _ in range(accum_grad_steps):
        x, y_in, y_out = next(train_iter)
        x, y_in, y_out = x.to(model.device), y_in.to(model.device), y_out.to(model.device)
        logits = model.logits(y_in, model.embed_audio(x))
        loss = torch.nn.functional.cross_entropy(logits.transpose(1, 2), y_out)
        loss = loss / accum_grad_steps
        loss.backward()
        total_loss += loss.item()
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_grad_norm)
    optimizer.step()
    scheduler.step()
    optimizer.zero_grad()
    return total_loss


def main_loop(model, loader, optimizer, scheduler, args):
    train_iter = infinite_iter(loader)
    pbar = tqdm(range(1, args.train_steps + 1))
    for step in pbar:
        train_loss = train_step(model, train_iter, optimizer, scheduler, args.accum_grad_steps, args.max_grad_norm)
        pbar.set_postfix({"loss": train_loss})
