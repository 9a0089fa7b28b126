"""Losses of training: eager, compiled and PyTorch's from the same weights, on the same batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

import hagane
import hagane.functions as F  # noqa: N812
from hagane import zoo
from tests.zoo import twins

Batches = list[tuple[Any, Any]]


def batches(
    shape: tuple[int, ...], classes: int, steps: int, words: int = 0, per_place: bool = False
) -> Batches:
    """Return batches with two sizes in turn; the targets follow from the data."""
    rng, found = np.random.default_rng(9), []
    for step in range(steps):
        size = (shape[0] - step % 2, *shape[1:])
        if words:
            x = rng.integers(0, words, size).astype(np.int32)
            found.append((x, (3 * x + 1) % words))
            continue
        x = rng.standard_normal(size)
        signs = np.sign(x).sum(1) if per_place else x.reshape(size[0], -1).sum(1) * 0.3
        found.append((x, (np.abs(np.floor(signs)) % classes).astype(np.int32)))
    return found


@dataclass(frozen=True)
class Case:
    """A model of the zoo and its twin; ``learning`` is its rate.

    Losses are compared for ``compared`` steps: in a deep network that normalises few numbers,
    rounding grows until no digit is left, and eager steps of one take half a second.
    """

    make: Callable[[], Any]
    twin: Callable[[], Any]
    batch: Callable[[int], Batches]
    learning: float = 0.05
    compared: int = 200


CASES = {
    "MLP": Case(
        lambda: zoo.MLP(20, 4), lambda: twins.MLP(12, 20, 4), lambda n: batches((8, 12), 4, n)
    ),
    "LeNet": Case(
        lambda: zoo.LeNet(4), lambda: twins.LeNet(4), lambda n: batches((4, 1, 28, 28), 4, n), 0.01
    ),
    "ResNet-18": Case(
        lambda: zoo.ResNet18(4, small=True, width=4),
        lambda: twins.ResNet((2, 2, 2, 2), False, 4, 4),
        lambda n: batches((6, 3, 12, 12), 4, n), 0.01, 40,
    ),
    "ResNet-50": Case(
        lambda: zoo.ResNet50(4, small=True, width=2),
        lambda: twins.ResNet((3, 4, 6, 3), True, 4, 2),
        lambda n: batches((6, 3, 12, 12), 4, n), 0.01, 12,
    ),
    "U-Net": Case(
        lambda: zoo.UNet(2, 3, 3, 2), lambda: twins.UNet(2, 3, 3, 2),
        lambda n: batches((3, 2, 8, 8), 3, n, per_place=True), 0.02,
    ),
    "dilated ResNet": Case(
        lambda: zoo.DilatedResNet(2, 3, 4, 3), lambda: twins.DilatedResNet(2, 3, 4, 3),
        lambda n: batches((4, 2, 21), 3, n, per_place=True), 0.02,
    ),
    "GPT": Case(
        lambda: zoo.GPT(11, 8, 12, 2, 2), lambda: twins.GPT(11, 8, 12, 2, 2),
        lambda n: batches((4, 7), 11, n, words=11),
    ),
    "LSTM": Case(
        lambda: zoo.LSTMLanguageModel(9, 7, 1, 0.0), lambda: twins.LSTMLanguageModel(9, 7),
        lambda n: batches((4, 6), 9, n, words=9), 0.2,
    ),
}  # fmt: skip


def loss(model: Any, x: Any, t: Any) -> Any:
    """Return the cross entropy of scores ``(batch, classes, …)``."""
    return F.softmax_cross_entropy(model(x), t)


def token_loss(model: Any, x: Any, t: Any) -> Any:
    """Return the cross entropy of scores ``(batch, time, words)``."""
    scores = model(x)
    return F.softmax_cross_entropy(F.reshape(scores, (-1, scores.shape[-1])), F.flatten(t))


def curves(case: Case, steps: int) -> tuple[list[float], list[float], list[float]]:
    """Return the losses of eager and compiled links and of PyTorch, in double precision."""
    data = case.batch(steps)
    found: list[list[float]] = []
    module: Any = None
    with hagane.using_config("dtype", np.dtype(np.float64)):
        for compiled in (False, True):
            np.random.seed(3)
            model = case.make()
            with hagane.no_backprop_mode():
                model(data[0][0])  # sizes
            error = token_loss if data[0][0].dtype == np.int32 else loss
            optimizer = hagane.optimizers.MomentumSGD(case.learning, 0.9).setup(model)
            if module is None:
                module = case.twin().double()
                twins.copy_parameters(model, module)
            step = hagane.compile(error, optimizer) if compiled else None
            losses = []
            for x, t in data:
                if step is not None:
                    losses.append(float(step(model, x, t).array))
                    continue
                losses.append(float(error(model, x, t).array))
                optimizer.update(error, model, x, t)
            found.append(losses)
    return found[0], found[1], torch_curve(module, case, data)


def torch_curve(module: Any, case: Case, data: Batches) -> list[float]:
    """Return the losses of PyTorch."""
    optimizer = torch.optim.SGD(module.parameters(), lr=case.learning, momentum=0.9)
    losses = []
    for x, t in data:
        optimizer.zero_grad()
        given = torch.from_numpy(x.astype(np.int64) if x.dtype == np.int32 else x)
        error = torch.nn.functional.cross_entropy(module(given), torch.from_numpy(t).long())
        error.backward()
        optimizer.step()
        losses.append(float(error.detach()))
    return losses


def check(name: str, steps: int) -> None:
    """Compare the three curves."""
    eager, compiled, wanted = curves(CASES[name], min(steps, CASES[name].compared))
    np.testing.assert_allclose(eager, wanted, rtol=1e-3)
    np.testing.assert_allclose(compiled, wanted, rtol=1e-3)
    np.testing.assert_allclose(compiled[:10], eager[:10], rtol=1e-6)


@pytest.mark.parametrize("name", ["MLP", "GPT", "LSTM"])
def test_twenty_steps_are_pytorchs(name: str) -> None:
    check(name, 20)


@pytest.mark.long
@pytest.mark.parametrize("name", list(CASES))
def test_two_hundred_steps_are_pytorchs(name: str) -> None:
    check(name, 200)
