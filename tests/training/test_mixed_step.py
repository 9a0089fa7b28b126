"""A step of links in a program that uses PyTorch beside them."""

from __future__ import annotations

import numpy as np
import torch

import hagane
import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812
from hagane import optimizers


class Bag(hagane.Chain):
    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.table = L.EmbedID(11, 7)
            self.last = L.Linear(7, 11)

    def forward(self, words: object) -> object:
        return self.last(F.sum(self.table(words), axis=1))


def error(model: Bag, words: object, target: object) -> object:
    return F.softmax_cross_entropy(model(words), target)


def losses(compiled: bool) -> list[float]:
    np.random.seed(1)
    model, rng = Bag(), torch.Generator().manual_seed(0)
    optimizer = optimizers.Adam(1e-2).setup(model)
    step = hagane.compile(error, optimizer)
    found: list[float] = []
    for size in (5, 3, 1, 7):
        words = torch.randint(0, 11, (size, 4), generator=rng).numpy().astype("i")
        target = words[:, 0].copy()
        found.append(float(error(model, words, target).array))  # type: ignore[attr-defined]
        if compiled:
            step(model, words, target)
        else:
            optimizer.update(error, model, words, target)
    return found


def test_arrays_of_numpy_are_taken_for_such_where_a_file_imports_pytorch() -> None:
    np.testing.assert_allclose(losses(compiled=True), losses(compiled=False), rtol=1e-5)
