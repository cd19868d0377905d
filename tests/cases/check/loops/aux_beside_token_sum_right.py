# expect: ok
def window_step(model, optimizer, micro_batches, num_items_in_batch):
    for micro in micro_batches:
        logits, router_loss = model(micro["input_ids"])
        token_loss = F.cross_entropy(logits.flatten(0, 1), micro["labels"].flatten(), reduction="sum")
        loss = token_loss / num_items_in_batch
        loss = loss + router_loss * 0.001 / len(micro_batches)
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
