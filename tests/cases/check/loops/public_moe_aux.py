# expect: mistake aux_loss_unscaled
import torch


def train_step(model, micro_batches, optimizer, clip=1.0, aux_coef=0.01):
    optimizer.zero_grad(set_to_none=True)
    n = len(micro_batches)
    for mb in micro_batches:
        out = model(mb["input_ids"], labels=mb["labels"])
        loss = out.loss / n
        loss = loss + aux_coef * out.router_aux_loss
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()


def train(model, loader, optimizer, micro_batch_size):
    for batch in loader:
        train_step(model, split_batch(batch, micro_batch_size), optimizer)
