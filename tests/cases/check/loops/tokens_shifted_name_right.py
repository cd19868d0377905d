# expect: ok
def step(model, optimizer, micro_batches):
    pairs = []
    total_tokens = 0
    for micro in micro_batches:
        shift_labels = micro["labels"][..., 1:].contiguous()
        total_tokens += (shift_labels != -100).sum()
        pairs.append((micro["input_ids"], shift_labels))
    for micro_ids, micro_labels in pairs:
        logits = model(micro_ids).logits[..., :-1, :]
        loss = F.cross_entropy(logits.flatten(0, 1), micro_labels.flatten(), reduction="sum", ignore_index=-100)
        (loss / total_tokens).backward()
    optimizer.step()
    optimizer.zero_grad()
