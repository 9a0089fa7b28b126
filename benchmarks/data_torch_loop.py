"""Epochs of a PyTorch training loop over hagane's DataLoader, PyTorch's and grain, in one run.

    python benchmarks/data_torch_loop.py [--workloads tiny,arrays] [--workers 1,2] [--json]

Needs PyTorch; grain is measured where it is installed, the JPEG workload needs Pillow and
scikit-image. Each measurement is a process of its own, rounds alternate between the loaders, and
ratios are of medians. Quote figures from a quiet machine only. ``padded`` pads ragged samples in a
collate_fn that returns tensors; ``stream`` is an iterable dataset shared out among the workers.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch.utils.data

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
import data_sets

LOADERS = ("hagane", "torch", "grain")
WORKLOADS = (*data_sets.WORKLOADS, "padded", "tensors", "stream")


class Stream(torch.utils.data.IterableDataset[Any]):
    """The samples of ``Arrays``, of which each worker gives its part."""

    def __iter__(self) -> Iterator[Any]:
        info = torch.utils.data.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        samples = data_sets.Arrays()
        return (samples[index] for index in range(first, len(samples), step))


def padded(samples: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    signals = [torch.as_tensor(sample["signal"]) for sample in samples]
    return {
        "signal": torch.nn.utils.rnn.pad_sequence(signals, batch_first=True),
        "n": torch.tensor([int(sample["n"]) for sample in samples]),
    }


def workload(name: str, folder: str) -> tuple[Any, int, Any]:
    """Return dataset, batch size and collate_fn."""
    if name == "stream":
        return Stream(), 64, None
    if name == "padded":
        return data_sets.make("ragged", folder), 64, padded
    if name == "tensors":
        tiny = data_sets.Tiny()
        images, labels = torch.from_numpy(tiny.images), torch.from_numpy(tiny.labels)
        return torch.utils.data.TensorDataset(images, labels), 256, None
    dataset = data_sets.make(name, folder)
    return dataset, data_sets.WORKLOADS[name][0], list if name == "ragged" else None


def epochs(loader: str, name: str, workers: int, folder: str) -> Iterator[Any]:
    """Return an iterator over iterators, one for each epoch."""
    dataset, batch, collate = workload(name, folder)
    if loader == "grain":
        import grain

        samples = grain.MapDataset.source(dataset).seed(0).shuffle()
        batches = samples.batch(batch, batch_fn=collate) if collate else samples.batch(batch)
        options = grain.multiprocessing.MultiprocessingOptions(num_workers=workers)
        while True:
            yield iter(batches.to_iter_dataset().mp_prefetch(options))
    import hagane.training

    kind: Any = hagane.training.DataLoader if loader == "hagane" else torch.utils.data.DataLoader
    made = kind(
        dataset,
        batch,
        shuffle=None if name == "stream" else True,
        num_workers=workers,
        collate_fn=collate,
        persistent_workers=True,
    )
    while True:
        yield iter(made)


def run_one(loader: str, name: str, workers: int, folder: str) -> float:
    """Return batches a second of a loop with a small model, after an epoch to warm up."""
    torch.set_num_threads(1)
    model = torch.nn.Linear(64, 10)

    def step(batch: Any) -> None:
        first: Any = batch
        while not hasattr(first, "shape"):
            first = next(iter(first.values())) if isinstance(first, dict) else first[0]
        flat = torch.as_tensor(first).reshape(-1)
        rows = flat[: len(flat) // 64 * 64].reshape(-1, 64)[:512].float()
        model.zero_grad()
        model(rows).square().mean().backward()

    source = epochs(loader, name, workers, folder)
    for batch in next(source):
        step(batch)
    count = 0
    begun = time.perf_counter()
    for _ in range(3):
        for batch in next(source):
            step(batch)
            count += 1
    return count / (time.perf_counter() - begun)


def measure(loader: str, name: str, workers: int, folder: str) -> float:
    """Run one measurement in a process of its own; NaN if it fails."""
    command = [sys.executable, "-W", "ignore", __file__, "--one", loader, name, str(workers)]
    ran = subprocess.run(
        [*command, folder], capture_output=True, text=True, timeout=600, check=False
    )
    if ran.returncode:
        print(f"{loader} {name}: {ran.stderr.strip()[-400:]}", file=sys.stderr)
        return float("nan")
    return float(ran.stdout.strip().splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    chosen = parser.parse_args()
    loaders = [name for name in LOADERS if name != "grain" or importlib.util.find_spec("grain")]
    results = []
    with tempfile.TemporaryDirectory() as folder:
        if "jpeg" in chosen.workloads:
            data_sets.write_jpegs(Path(folder))
        for name in chosen.workloads.split(","):
            for workers in map(int, chosen.workers.split(",")):
                figures: dict[str, list[float]] = {loader: [] for loader in loaders}
                for _ in range(chosen.rounds):
                    for loader in loaders:
                        if loader == "grain" and name in ("stream", "tensors"):
                            continue  # grain reads by index, and no tensors
                        figures[loader].append(measure(loader, name, workers, folder))
                medians = {key: statistics.median(each) for key, each in figures.items() if each}
                others = {
                    key: medians["hagane"] / medians[key] for key in medians if key != "hagane"
                }
                results.append(
                    {
                        "workload": name,
                        "workers": workers,
                        "batches_per_second": medians,
                        "ratio_to": others,
                    }
                )
                if not chosen.json:
                    shown = "  ".join(f"{key} {value:,.0f}" for key, value in medians.items())
                    ratios = ", ".join(f"{value:.2f} × {key}" for key, value in others.items())
                    print(f"{name:8} {workers} workers: {shown} batches/s  ({ratios})", flush=True)
    if chosen.json:
        print(json.dumps(results))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        which, work, number, place = sys.argv[2:6]
        print(run_one(which, work, int(number), place))
    else:
        main()
