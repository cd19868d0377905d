# expect: ok
import torch
import torch.nn as nn
import torch.nn.functional as F

ACCUMULATION_STEPS = 8
EPOCHS = 3
GRAD_CLIP = 1.0
CHUNK = 256


def run(model, documents, optimizer, scheduler, device, newline_id, penalty):
    global_step = 0
    optimizer.zero_grad(set_to_none=True)
    for epoch in range(EPOCHS):
        for doc_idx, tokens in enumerate(documents):
            past = None
            for start in range(0, tokens.size(1) - 1, CHUNK):
                x = tokens[:, start:start + CHUNK].to(device)
                y = tokens[:, start + 1:start + CHUNK + 1].to(device)
                with torch.autocast("cuda", dtype=torch.bfloat16):
                    logits, current = model(x, past)
                    loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
                    wrong = (y != newline_id)
                    if wrong.any():
                        loss = loss + penalty * logits.softmax(-1)[..., newline_id][wrong].mean()
                    loss = loss / ACCUMULATION_STEPS
                loss.backward()
                past = [k.detach() for k in current]
                global_step += 1
                if global_step % ACCUMULATION_STEPS == 0:
                    nn.utils.clip_grad_norm_(model.parameters(), GRAD_CLIP)
                    optimizer.step()
                    scheduler.step()
                    optimizer.zero_grad(set_to_none=True)
            if doc_idx % 10 == 0:
                current_loss = loss.item() * ACCUMULATION_STEPS
                print(f"epoch {epoch + 1} doc {doc_idx:04d} loss {current_loss:.4f}")
