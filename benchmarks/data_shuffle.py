"""Memory and time of shuffling ten million indices: a keyed permutation against an array.

python benchmarks/data_shuffle.py [--length 10000000]
"""

from __future__ import annotations

import argparse
import time
import tracemalloc

from hagane.training.iterators.orders import SeededShuffle
from hagane.training.iterators.state import start, step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=int, default=10_000_000)
    parser.add_argument("--batch", type=int, default=256)
    chosen = parser.parse_args()
    for name, large in (("keyed permutation", 0), ("array", chosen.length)):
        seconds, _ = epoch(chosen.length, chosen.batch, large, chosen.length // chosen.batch)
        tracemalloc.start()
        epoch(chosen.length, chosen.batch, large, 200)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        _, first = epoch(chosen.length, chosen.batch, large, 1)
        print(
            f"{name}: peak {peak / 2**20:.2f} MiB, first batch after {first * 1e3:.1f} ms, an "
            f"epoch's order in {seconds:.2f} s ({seconds / chosen.length * 1e9:.0f} ns an index)",
            flush=True,
        )


def epoch(length: int, batch: int, large: int, batches: int) -> tuple[float, float]:
    """Return seconds for some batches and for the first of them."""
    sampler = SeededShuffle(seed=1, large=large)
    begun = time.perf_counter()
    state = start(sampler, length, 0)
    state, _ = step(state, batch, True, sampler, length)
    first = time.perf_counter() - begun
    for _ in range(batches - 1):
        state, _ = step(state, batch, True, sampler, length)
    return time.perf_counter() - begun, first


if __name__ == "__main__":
    main()
