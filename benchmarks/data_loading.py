"""Samples a second of MultiprocessIterator against other loaders, in one run.

    python benchmarks/data_loading.py --chainer PYTHON --torch PYTHON --grain PYTHON

``PYTHON`` is the interpreter of an environment that has the loader and Pillow; a loader without
one is left out. Each measurement is a process of its own; rounds alternate between the loaders;
ratios are of medians. Quote figures from a quiet machine only.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import data_sets

SOURCE = Path(__file__).resolve().parents[1] / "src"
LOADERS = ("hagane", "chainer", "torch", "grain")


def hagane_batches(dataset: Any, batch: int, workers: int, ragged: bool) -> Iterator[Any]:
    from hagane.training.iterators import MultiprocessIterator

    return iter(
        MultiprocessIterator(
            dataset, batch, n_processes=workers, n_prefetch=2, seed=0, collate="stack"
        )
    )


def chainer_batches(dataset: Any, batch: int, workers: int, ragged: bool) -> Iterator[Any]:
    from chainer.iterators import MultiprocessIterator

    shared = 200_000 if ragged else None
    return iter(
        MultiprocessIterator(dataset, batch, n_processes=workers, n_prefetch=2, shared_mem=shared)
    )


def torch_batches(dataset: Any, batch: int, workers: int, ragged: bool) -> Iterator[Any]:
    from torch.utils.data import DataLoader

    loader = DataLoader(
        dataset,
        batch,
        shuffle=True,
        num_workers=workers,
        persistent_workers=True,
        collate_fn=list if ragged else None,
    )
    while True:
        yield from loader


def grain_batches(dataset: Any, batch: int, workers: int, ragged: bool) -> Iterator[Any]:
    import grain

    samples = grain.MapDataset.source(dataset).seed(0).shuffle().repeat()
    batches = samples.batch(batch, batch_fn=list) if ragged else samples.batch(batch)
    options = grain.multiprocessing.MultiprocessingOptions(num_workers=workers)
    return iter(batches.to_iter_dataset().mp_prefetch(options))


def run_one(loader: str, workload: str, workers: int, folder: str) -> float:
    """Return samples a second over some epochs, after the first batches."""
    batch, epochs = data_sets.WORKLOADS[workload]
    dataset: Any = data_sets.make(workload, folder)
    source: Callable[..., Iterator[Any]] = globals()[f"{loader}_batches"]
    batches = source(dataset, batch, workers, workload == "ragged")
    for _ in range(4):
        next(batches)
    count = max(8, epochs * len(dataset) // batch)
    begun = time.perf_counter()
    for _ in range(count):
        next(batches)
    return batch * count / (time.perf_counter() - begun)


def measure(python: str, loader: str, workload: str, workers: int, folder: str) -> float:
    """Run one measurement in a process of its own."""
    command = [python, __file__, "--one", loader, workload, str(workers), folder]
    environment = {"PYTHONPATH": str(SOURCE), "PATH": "/usr/bin:/bin", "PYTHONWARNINGS": "ignore"}
    ran = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=300, check=False
    )
    if ran.returncode:
        print(f"{loader} {workload}: {ran.stderr.strip()[-400:]}", file=sys.stderr)
        return float("nan")
    return float(ran.stdout.strip().splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for loader in LOADERS:
        parser.add_argument(f"--{loader}", help="interpreter of its environment")
    parser.add_argument("--workloads", default=",".join(data_sets.WORKLOADS))
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    chosen = parser.parse_args()
    pythons = {loader: getattr(chosen, loader) for loader in LOADERS}
    pythons["hagane"] = pythons["hagane"] or sys.executable
    present = [loader for loader in LOADERS if pythons[loader]]
    results = []
    with tempfile.TemporaryDirectory() as folder:
        data_sets.write_jpegs(Path(folder))
        for workload in chosen.workloads.split(","):
            for workers in map(int, chosen.workers.split(",")):
                figures: dict[str, list[float]] = {loader: [] for loader in present}
                for _ in range(chosen.rounds):
                    for loader in present:
                        figures[loader].append(
                            measure(pythons[loader], loader, workload, workers, folder)
                        )
                medians = {name: statistics.median(each) for name, each in figures.items()}
                best = max((v for k, v in medians.items() if k != "hagane" and v == v), default=0.0)
                row = {
                    "workload": workload,
                    "workers": workers,
                    "samples_per_second": medians,
                    "ratio_to_best": medians["hagane"] / best if best else None,
                }
                results.append(row)
                if not chosen.json:
                    shown = "  ".join(f"{name} {value:,.0f}" for name, value in medians.items())
                    ratio = f"{row['ratio_to_best']:.2f}" if best else "-"
                    print(f"{workload:7} {workers} workers: {shown}  ratio {ratio}", flush=True)
    if chosen.json:
        print(json.dumps(results))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        name, work, number, place = sys.argv[2:6]
        print(run_one(name, work, int(number), place))
    else:
        main()
