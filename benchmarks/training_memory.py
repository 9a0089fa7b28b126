"""Peak memory of a step of training beside its plan and beside PyTorch, on ``training_models.py``.

``python benchmarks/training_memory.py hagane|eager MODEL [--budget 368.5MB]`` prints the peak of
resident memory in later steps, beyond what was there before the first, once a step of another
network has loaded all modules and has given back what it left unused; for hagane the planned peak
too. ``--times 9`` times steps after that and prints the median.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from training_models import CASES, Case

from training import forget_peak, peak, resident


class Small(nn.Module):
    """A network of one layer of each kind."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.over_time, self.last = nn.LSTM(36, 8, 2, batch_first=True), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return scores of images (batch, 3, 8, 8), for each channel."""
        found, _ = self.over_time(self.norm(self.first(x)).flatten(2))
        return self.last(found)


def squares(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Return the mean square of results, a loss."""
    return module(x).square().mean()


def stepper(engine: str, case: Case, module: nn.Module, batch: Any, budget: str | None) -> Any:
    """Return a function that does a step, and one that returns the planned peak in bytes."""
    optimizer = case.optimizer(module.parameters())
    if engine == "hagane":
        from hagane.training.step import TorchStep

        compiled = TorchStep(case.loss, optimizer, memory_budget=budget)
        return lambda: compiled(module, *batch), lambda: compiled.memory()["predicted"]

    def step() -> None:
        optimizer.zero_grad()
        case.loss(module, *batch).backward()
        optimizer.step()

    return step, None


def timed(step: Callable[[], Any]) -> float:
    """Return the milliseconds of a step."""
    started = time.perf_counter()
    step()
    return 1e3 * (time.perf_counter() - started)


def main() -> None:
    """Print the peaks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=["hagane", "eager"])
    parser.add_argument("model", choices=list(CASES))
    parser.add_argument("--budget", help="such as 368.5MB, of hagane's step")
    parser.add_argument("--times", type=int, default=0, help="steps to time after that")
    given = parser.parse_args()
    case = CASES[given.model]
    torch.manual_seed(0)
    module, batch = case.make(), case.batch()
    other = Small()
    small = Case(lambda: other, squares, lambda: (), case.optimizer)
    load: Callable[[], Any] = stepper(given.engine, small, other, (torch.randn(2, 3, 8, 8),), None)[
        0
    ]
    load()
    del load
    gc.collect()
    if hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)
    before = resident()
    step, planned = stepper(given.engine, case, module, batch, given.budget)
    step()
    forget_peak()  # of what compiled
    for _ in range(2):
        step()
    found = peak() - before
    print(f"{given.model}, {given.engine}: {found / 1e6:.1f} MB", end="")
    if planned is not None:
        print(f", planned {planned() / 1e6:.1f} MB, {found / planned():.3f} times that", end="")
    if given.times:
        print(
            f", {statistics.median(timed(step) for _ in range(given.times)):.0f} ms a step", end=""
        )
    print()


if __name__ == "__main__":
    main()
