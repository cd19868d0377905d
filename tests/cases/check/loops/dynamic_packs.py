# expect: mistake dynamic_micro_batch_divisor
def learn(model, optimizer, rollouts, accumulation_steps):
    for rollout in rollouts:
        packs = pack_sequences_dynamic_batch(rollout, 4096)
        for pack in packs:
            loss = model(pack).loss / accumulation_steps
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
