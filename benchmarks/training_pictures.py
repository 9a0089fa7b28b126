"""How close an iteration of training on JPEG files comes to the longer of loading and compute.

``python benchmarks/training_pictures.py [--workers 1 2] [--threads 1] [--repeat 1] [--lock FILE]
[--real-time]`` trains ResNet-18 on 32 × 32 pictures, crops of JPEG files of 320 × 256 that worker
processes decode, by a compiled step. Loading and compute are measured alone, then together; the aim
is at most 1.1 times the longer of the two.

Workers and threads share the cores: where they are more than these, no schedule comes below their
work together divided by the cores, which is shown beside it. ``--repeat`` decodes each picture
several times, so that loading takes longer. ``--lock`` and ``--real-time`` are as in
``training.py``.
"""

from __future__ import annotations

import argparse
import fcntl
import io
import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from training_models import CASES

from hagane.runtime import SessionOptions
from hagane.training import measure
from hagane.training.iterators import MultiprocessIterator
from hagane.training.step import TorchStep

BATCH = 32


class Pictures:
    """Crops of JPEG files, flipped at random, with a label."""

    def __init__(self, folder: str, repeat: int, length: int = 1024):
        self.paths = sorted(str(path) for path in Path(folder).glob("*.jpg"))
        self.repeat, self.length = repeat, length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.int64]:
        for _ in range(self.repeat):
            with Image.open(self.paths[int(index) % len(self.paths)]) as image:
                pixels = np.asarray(image.convert("RGB"))
        top, left = np.random.randint(0, 32), np.random.randint(0, 96)
        crop = pixels[top : top + 224 : 7, left : left + 224 : 7]
        crop = crop[:, ::-1] if np.random.rand() < 0.5 else crop
        return crop.transpose(2, 0, 1).astype(np.float32) / 255, np.int64(index % 10)


def write(folder: Path) -> None:
    """Write pictures of smooth noise as JPEG files."""
    draws = np.random.default_rng(0)
    for number in range(32):
        small = draws.integers(0, 256, (16, 20, 3), np.uint8)
        picture = Image.fromarray(small).resize((320, 256), Image.Resampling.BICUBIC)
        noisy = np.asarray(picture) + draws.normal(0, 6, (256, 320, 3))
        held = io.BytesIO()
        Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(held, "JPEG", quality=90)
        (folder / f"{number}.jpg").write_bytes(held.getvalue())


def real_time() -> None:
    """Give the threads of this process, and its children from now on, real-time priority."""
    for task in Path("/proc/self/task").iterdir():
        os.sched_setscheduler(int(task.name), os.SCHED_FIFO, os.sched_param(50))


def main() -> None:
    """Print a line for each number of workers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--threads", type=int, default=1, help="of the step")
    parser.add_argument("--repeat", type=int, nargs="+", default=[1])
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement")
    parser.add_argument("--lock", type=Path)
    parser.add_argument("--real-time", action="store_true")
    given = parser.parse_args()
    torch.manual_seed(0)
    case = CASES["ResNet-18"]
    module = case.make()
    options = SessionOptions(intra_op_num_threads=given.threads)
    compiled = TorchStep(case.loss, case.optimizer(module.parameters()), options)
    torch.set_num_threads(given.threads)

    def step(batch: Any) -> float:
        x, target = (torch.from_numpy(np.array(part)) for part in batch)
        return float(compiled(module, x, target))

    step((np.zeros((BATCH, 3, 32, 32), np.float32), np.zeros(BATCH, np.int64)))
    cores = len(os.sched_getaffinity(0))
    print(
        "| workers | decodes | loading ms | compute ms | together ms | ÷ the longer | ÷ the bound |"
    )
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as held:
        write(Path(folder))
        if given.lock is not None:
            fcntl.flock(held.enter_context(given.lock.open("w")), fcntl.LOCK_EX)
        if given.real_time:
            real_time()
        for repeat in given.repeat:
            for workers in given.workers:
                data = Pictures(folder, repeat)
                with MultiprocessIterator(
                    data, BATCH, n_processes=workers, n_prefetch=2, collate="stack"
                ) as batches:
                    found = measure(batches, step, batches=200, seconds=given.seconds)
                work = found.loading * min(workers, cores) + found.compute * given.threads
                bound = max(found.loading, found.compute, work / cores)
                print(
                    f"| {workers} | {repeat} | {found.loading * 1e3:.1f} | "
                    f"{found.compute * 1e3:.1f} | {found.iteration * 1e3:.1f} | "
                    f"{found.overlap:.3f} | {found.iteration / bound:.3f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
