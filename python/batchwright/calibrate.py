"""Measures this machine for `batchwright calibrate`: prints one JSON document (src/hardware/calibration.h names its fields).

    python -m batchwright.calibrate [--threads N] [--seconds S]

Matrix products run in torch's own BLAS, the one the engine uses, one thread a product and N products side by side, as
the engine runs them. Each shape is timed in turns and its median kept.
"""
import argparse
import concurrent.futures
import json
import statistics
import time

ROWS = (32, 64, 128, 256, 512, 1024, 2048, 4096)
SHAPES = ((384, 384), (1536, 384), (384, 1536), (768, 768), (3072, 768))  # (columns, inner)


def median_seconds(work, pool, threads, budget):
    """Median seconds of `work` while every thread runs it."""
    times = []
    end = time.perf_counter() + budget
    while len(times) < 3 or (time.perf_counter() < end and len(times) < 50):
        start = time.perf_counter()
        list(pool.map(lambda _: work(), range(threads)))
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def measure(threads, seconds):
    import torch

    torch.set_num_threads(1)
    budget = seconds / (len(ROWS) * len(SHAPES) + 2)
    products = []
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for rows in ROWS:
            for columns, inner in SHAPES:
                left, right = torch.randn(rows, inner), torch.randn(columns, inner)
                repeats = max(1, int(2e7 / (rows * columns * inner)))

                def work(left=left, right=right, repeats=repeats):
                    for _ in range(repeats):
                        torch.mm(left, right.T)

                products.append({"rows": rows, "columns": columns, "inner": inner,
                                 "seconds": median_seconds(work, pool, threads, budget) / repeats})
        size = 8 << 20
        first, second = torch.randn(size), torch.randn(size)

        def add():
            torch.add(first, second)

        bandwidth = threads * 3 * 4 * size / median_seconds(add, pool, threads, budget)
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
