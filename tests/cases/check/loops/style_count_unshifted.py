# expect: mistake count_not_matching_trained_tokens
def step(model, opt, micro_batches):
    n_tokens = 0
    for mb in micro_batches:
        n_tokens += mb["labels"].ne(-100).sum().item()
    for mb in micro_batches:
        logits = model(mb["input_ids"]).logits
        shift_logits = logits[:, :-1, :]
        shift_labels = mb["labels"][:, 1:]
        loss = F.cross_entropy(shift_logits.reshape(-1, V), shift_labels.reshape(-1), ignore_index=-100, reduction='sum') / n_tokens
        loss.backward()
    opt.step()
    opt.zero_grad()
