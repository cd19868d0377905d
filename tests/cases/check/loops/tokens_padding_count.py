# expect: mistake count_not_matching_trained_tokens
def train(model, optimizer, windows):
    for window in windows:
        labelled = sum(int(b["attention_mask"].sum()) for b in window)
        for micro in window:
            logits = model(micro["input_ids"]).logits[:, :-1]
            target = micro["labels"][:, 1:]
            loss = F.cross_entropy(logits.reshape(-1, logits.size(-1)), target.reshape(-1), ignore_index=-100, reduction="sum")
            (loss / labelled).backward()
        optimizer.step()
        optimizer.zero_grad()
