"""Interval widths for bench/plan.py, learnt by leaving whole sources out.

A row's residual is log(measured / predicted). For a source that is left out, the widths of its rows are those quantiles
of the other sources' residuals, of the same class where two sources or more have it, each source counting alike: what a
user with a run of their own can expect. Nothing is refitted here: the constants of the model stand where they are, each
with its source beside it; widths alone are learnt.
"""
import collections
import math
import statistics

FLOOR = 0.03  # no interval is narrower: versions of one framework alone differ by as much


def source_of(row):
    """The repository: files of one repository were measured by the same people in the same way."""
    return row["source"].split("@")[0].split(":")[0]


def memory_class(row):
    request = row["request"]
    sharded = request.get("devices", 1) > 1 and request.get("sharding") not in (None, "none", "ddp")
    return ("sharded" if sharded else request["method"],)


def time_class(row):
    return (row["request"]["method"],)


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
    low, high = weighted_quantile(pairs, 0.05), weighted_quantile(pairs, 0.95)
    return math.exp(min(low, -FLOOR)), math.exp(max(high, FLOOR))


def leave_one_source_out(items, class_of):
    """items: [(row, measured, predicted)]. Prints each source's error and how the others' widths hold it."""
    samples = [(source_of(row), class_of(row), math.log(measured / mid)) for row, measured, mid in items]
    covered, ratios = [], []
    for source in sorted({sample[0] for sample in samples}):
        others = [sample for sample in samples if sample[0] != source]
        inside, widths, errors = [], [], []
        for _, kind, residual in (sample for sample in samples if sample[0] == source):
            alike = [(s, r) for s, k, r in others if k == kind]
            if len({s for s, _ in alike}) < 2:
                alike = [(s, r) for s, _, r in others]
            low, high = learn(alike)
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
    by_class = collections.defaultdict(list)
    for source, kind, residual in samples:
        by_class[kind].append((source, residual))
    for kind, alike in sorted(by_class.items()):
        low, high = learn(alike)
        print(f"  learnt from all: {' '.join(kind):10} sources {len({s for s, _ in alike})}  low {low:.3f}  high {high:.3f}")
