"""The arithmetic rate that this machine reaches in fp32 matrix products: what a share of peak is a share of."""
import statistics
import time

import torch


def shapes(tokens, hidden, intermediate):
    """(rows, inner, columns): a cube, and the three linear shapes of a step with that many tokens."""
    return [(1024, 1024, 1024), (tokens, hidden, hidden), (tokens, hidden, intermediate), (tokens, intermediate, hidden)]


def measure(tokens, hidden, intermediate, rounds=30):
    """The best median rate in flop/s over the shapes, measured in turns, and all of them by name."""
    pairs = [(torch.randn(m, k), torch.randn(k, n)) for m, k, n in shapes(tokens, hidden, intermediate)]
    times = [[] for _ in pairs]
    for a, b in pairs:
        torch.mm(a, b)
    for _ in range(rounds):
        for i, (a, b) in enumerate(pairs):
            start = time.perf_counter()
            torch.mm(a, b)
            times[i].append(time.perf_counter() - start)
    rates = {"x".join(map(str, (a.shape[0], a.shape[1], b.shape[1]))): 2 * a.numel() * b.shape[1] / statistics.median(t)
             for (a, b), t in zip(pairs, times)}
    return max(rates.values()), rates


def lora_step_flops(tokens, config, rank):
    """Of one step over real tokens: forward and input gradient of the frozen linear layers (2 + 2 flop a weight and
    token), forward, input gradient and weight gradient of LoRA's (2 + 2 + 2). Attention and the head are left out."""
    hidden, inner, layers = config["hidden_size"], config["intermediate_size"], config["num_hidden_layers"]
    frozen = layers * (4 * hidden * hidden + 2 * hidden * inner)
    adapters = layers * rank * (4 * 2 * hidden + 2 * (hidden + inner))
    return tokens * (4 * frozen + 6 * adapters)
