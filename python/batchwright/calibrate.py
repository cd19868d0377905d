"""Measures this machine for `batchwright calibrate`: prints one JSON document (src/hardware/calibration.h names its fields).

    python -m batchwright.calibrate [--threads N] [--seconds S]

Matrix products run in torch's own BLAS, the one the engine uses, one thread a product and N products side by side, as
the engine runs them. Each shape is timed several times and the lower quartile kept.
"""
import argparse
import concurrent.futures
import json
import statistics
import threading
import time

ROWS = (32, 64, 128, 256, 512, 1024, 2048, 4096)
SHAPES = ((384, 384), (1536, 384), (384, 1536), (768, 768), (3072, 768))  # (columns, inner)


def typical_seconds(work, pool, threads, budget):
    """Seconds of `work` while every thread runs it: the lower quartile, because other processes only make it slower."""
    times = []
    end = time.perf_counter() + budget
    while len(times) < 5 or (time.perf_counter() < end and len(times) < 50):
        start = time.perf_counter()
        list(pool.map(lambda _: work(), range(threads)))
        times.append(time.perf_counter() - start)
    return statistics.quantiles(times[1:])[0]  # the first allocates


def measure(threads, seconds):
    import torch

    torch.set_num_threads(1)
    budget = seconds / (len(ROWS) * len(SHAPES) + 2)
    products = []
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for rows in ROWS:
            for columns, inner in SHAPES:
                left, right = torch.randn(rows, inner), torch.randn(columns, inner)
                # Handing work to a thread takes as long as a product of few rows: many of them to a hand-over.
                repeats = max(1, int(2e8 / (rows * columns * inner)))

                def work(left=left, right=right, repeats=repeats, own=threading.local()):
                    if not hasattr(own, "output"):
                        own.output, own.gradient = torch.empty(rows, columns), torch.empty(rows, inner)
                    for _ in range(repeats):
                        torch.mm(left, right.T, out=own.output)  # as a linear layer forward
                        torch.mm(own.output, right, out=own.gradient)  # and backward

                products.append({"rows": rows, "columns": columns, "inner": inner,
                                 "seconds": typical_seconds(work, pool, threads, budget) / (2 * repeats)})
        size = 8 << 20
        first, second = torch.randn(size), torch.randn(size)

        def add():
            torch.add(first, second)

        bandwidth = threads * 3 * 4 * size / typical_seconds(add, pool, threads, budget)
    small = torch.randn(4)
    start = time.perf_counter()
    for _ in range(20000):
        torch.add(small, small)
    operation = (time.perf_counter() - start) / 20000
    return {"bandwidth_bytes_per_second": bandwidth, "operation_seconds": operation, "products": products,
            "measured_by": f"torch {torch.__version__}"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    print(json.dumps(measure(options.threads, options.seconds)))


if __name__ == "__main__":
    main()
