"""How close an iteration comes to ``max(loading, compute)``.

    python benchmarks/data_overlap.py [--loading-ms 20] [--workers 2]

Loading and compute are sleeps, which leave the cores free, so what is seen is the cost of the
machinery alone. The aim is at most 1.1 for compute-to-loading ratios from 0.2 to 5.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from hagane.training import measure
from hagane.training.iterators import MultiprocessIterator


class Sleeping:
    """Samples that take a time to make."""

    def __init__(self, seconds: float):
        self.seconds = seconds
        self.array = np.zeros((64, 64), np.float32)

    def __len__(self) -> int:
        return 4096

    def __getitem__(self, index: int) -> np.ndarray:
        time.sleep(self.seconds)
        return self.array


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--loading-ms", type=float, default=20.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batches", type=int, default=50)
    chosen = parser.parse_args()
    loading = chosen.loading_ms / 1000
    for ratio in (0.2, 0.5, 0.8, 1.0, 1.25, 2.0, 5.0):
        batch = 8
        dataset = Sleeping(loading * chosen.workers / batch)
        with MultiprocessIterator(
            dataset, batch, n_processes=chosen.workers, n_prefetch=2, collate="stack"
        ) as iterator:
            result = measure(
                iterator,
                lambda _, seconds=loading * ratio: time.sleep(seconds),
                batches=chosen.batches,
                seconds=30,
            )
        print(
            f"C/L {ratio:4.2f}: loading {result.loading * 1e3:5.1f} ms, compute "
            f"{result.compute * 1e3:5.1f} ms, iteration {result.iteration * 1e3:5.1f} ms = "
            f"{result.overlap:.3f} × the longer, waiting {result.waiting:.0%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
