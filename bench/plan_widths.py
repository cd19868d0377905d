"""Interval widths for bench/plan.py, learnt by leaving whole sources out.

A row's residual is log(measured / predicted). For a source that is left out, the widths of its rows are those quantiles
of the other sources' residuals, of the same class where three sources or more have it, each source counting alike: what a
user with a run of their own can expect. A class is what is known before a run and makes its prediction harder; where it
has too few sources, the coarser class that it belongs to serves. Nothing is refitted here: the constants of the model
stand where they are, each with its source beside it; widths alone are learnt. src/plan/interval.cc holds what all
sources together give.
"""
import collections
import math
import statistics

FLOOR = 0.03  # no interval is narrower: versions of one framework alone differ by as much
SHARE = 0.04  # of the residuals that may lie on either side
FEWEST = 3  # sources that a class needs to stand on its own


def source_of(row):
    """The repository: files of one repository were measured by the same people in the same way."""
    return row["source"].split("@")[0].split(":")[0].split("#")[0]


def is_sharded(request):
    return request.get("devices", 1) > 1 and request.get("sharding") not in (None, "none", "ddp")


def memory_class(row, split):
    """From coarse to fine: where the weights are, whether the counter holds the allocator's cache, the method."""
    request = row["request"]
    place = "sharded" if is_sharded(request) else "whole"
    cache = "allocated" if row.get("counter") == "allocated" else ("lengths vary" if "lengths" in request else "kept")
    return (place, cache, request["method"])


def time_class(row, split):
    """Whether the host or the device bounds the step, and whether devices wait for each other."""
    parts = split["time_parts"]
    host = "host" if parts["launch"] > 0.1 * sum(parts.values()) else "device"
    return (host, "sharded" if is_sharded(row["request"]) else "whole")


def weighted_quantile(pairs, share):
    pairs = sorted(pairs)
    total = sum(weight for _, weight in pairs)
    seen = 0
    for value, weight in pairs:
        seen += weight
        if seen >= share * total:
            return value
    return pairs[-1][0]


def learn(samples):
    """(low, high) factors from [(source, residual)], every source counting alike."""
    counts = collections.Counter(source for source, _ in samples)
    pairs = [(residual, 1 / counts[source]) for source, residual in samples]
    low, high = weighted_quantile(pairs, SHARE), weighted_quantile(pairs, 1 - SHARE)
    return math.exp(min(low, -FLOOR)), math.exp(max(high, FLOOR))


def alike(samples, kind):
    """The samples of the finest class around `kind` that enough sources have."""
    for depth in range(len(kind), -1, -1):
        found = [(source, residual) for source, other, residual in samples if other[:depth] == kind[:depth]]
        if len({source for source, _ in found}) >= FEWEST:
            return found, kind[:depth]
    return found, ()


def leave_one_source_out(items, class_of):
    """items: [(row, split, measured, predicted)]. Prints each source's error and how the others' widths hold it."""
    samples = [(source_of(row), class_of(row, split), math.log(measured / mid)) for row, split, measured, mid in items]
    covered, ratios = [], []
    for source in sorted({sample[0] for sample in samples}):
        others = [sample for sample in samples if sample[0] != source]
        inside, widths, errors = [], [], []
        for _, kind, residual in (sample for sample in samples if sample[0] == source):
            low, high = learn(alike(others, kind)[0])
            inside.append(low <= math.exp(residual) <= high)
            widths.append(high / low)
            errors.append(abs(math.exp(-residual) - 1))
        errors.sort()
        print(f"  without {source:44} n={len(errors):4}  median {100 * statistics.median(errors):5.1f} %  p90 "
              f"{100 * errors[min(len(errors) - 1, int(.9 * len(errors)))]:5.1f} %  inside {100 * statistics.mean(inside):5.1f} %"
              f"  high/low {statistics.median(widths):.2f}")
        covered.append(statistics.mean(inside))
        ratios.append(statistics.median(widths))
    print(f"  mean of sources: inside {100 * statistics.mean(covered):.1f} %, high/low {statistics.median(ratios):.2f}")
    for kind in sorted({sample[1] for sample in samples}):
        found, used = alike(samples, kind)
        low, high = learn(found)
        print(f"  learnt from all: {', '.join(kind):32} as {', '.join(used) or 'all':28} sources "
              f"{len({s for s, _ in found})}  low {low:.3f}  high {high:.3f}  high/low {high / low:.2f}")
