# expect: ok
def learn(model, optimizer, rollouts):
    for rollout in rollouts:
        packs = pack_sequences_dynamic_batch(rollout, 4096)
        total_samples = sum(p.num_samples for p in packs)
        for pack in packs:
            loss = model(pack).loss * pack.num_samples / total_samples
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
