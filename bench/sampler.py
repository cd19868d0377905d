"""The rows of every step, as src/data/sampler.h gives them: written apart, so that the peer trains on the same examples
and so that each version checks the other."""
MASK32, MASK64 = (1 << 32) - 1, (1 << 64) - 1
HOLD_OUT, EPOCH_ORDER = 1, 2  # RandomUse in src/base/random.h


def philox(counter, key):
    """Philox4x32-10 (Salmon et al., SC 2011)."""
    c0, c1, c2, c3 = counter
    key0, key1 = key & MASK32, key >> 32
    for _ in range(10):
        product0, product1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = ((product1 >> 32) ^ c1 ^ key0, product1 & MASK32, (product0 >> 32) ^ c3 ^ key1, product0 & MASK32)
        key0, key1 = (key0 + 0x9E3779B9) & MASK32, (key1 + 0xBB67AE85) & MASK32
    return c0, c1, c2, c3


def words64(seed, use, stream):
    block = 0
    while True:
        a, b, c, d = philox((block, stream & MASK32, stream >> 32, use), seed)
        yield a << 32 | b
        yield c << 32 | d
        block += 1


def shuffled(count, seed, use, stream=0):
    order, words = list(range(count)), words64(seed, use, stream)
    for bound in range(count, 1, -1):
        rejected = (1 << 64) % bound
        while (word := next(words)) < rejected:
            pass
        other = word % bound
        order[bound - 1], order[other] = order[other], order[bound - 1]
    return order


def split_rows(rows, fraction, seed):
    """(train, held out)"""
    order = shuffled(rows, seed, HOLD_OUT)
    held_out = int(rows * fraction + 0.5)
    return order[held_out:], order[:held_out]


def windows(train, effective_batch, seed, steps):
    per_epoch = -(-len(train) // effective_batch)
    result = []
    for epoch in range(-(-steps // per_epoch)):
        order = [train[i] for i in shuffled(len(train), seed, EPOCH_ORDER, epoch)]
        result += [order[i:i + effective_batch] for i in range(0, len(order), effective_batch)]
    return result[:steps]
