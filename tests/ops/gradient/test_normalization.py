"""Gradients of normalisations and losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hagane.errors import NotDifferentiable
from hagane.ops.builder import op
from hagane.ops.gradient import pull_back
from tests.ops.gradient.differences import check_operator

RNG = np.random.default_rng(19)


def draw(*shape: int) -> np.ndarray:
    return np.asarray(RNG.uniform(-2, 2, shape))


def test_probabilities() -> None:
    for axis in (0, 1, -1):
        for name in ("Softmax", "LogSoftmax", "Hardmax"):
            check_operator(name, draw(3, 4, 2), attributes={"axis": axis})
    check_operator("Softmax", draw(0, 4))


@pytest.mark.parametrize("training", [0, 1])
def test_batches(training: int) -> None:
    for shape in ((4, 3), (2, 3, 4), (2, 3, 2, 3)):
        inputs = [draw(*shape), draw(3), draw(3), draw(3), np.abs(draw(3)) + 0.5]
        attributes = {"training_mode": training, "momentum": 0.7, "epsilon": 0.1}
        check_operator("BatchNormalization", *inputs, attributes=attributes)
        if training:
            check_operator("BatchNormalization", *inputs, outputs=3, attributes=attributes)


def test_layers() -> None:
    for axis in (-1, 1):
        attributes = {"axis": axis, "epsilon": 0.1}
        for scale in ((4,), (3, 4), (1,)):
            check_operator("LayerNormalization", draw(2, 3, 4), draw(*scale), attributes=attributes)
            check_operator("RMSNormalization", draw(2, 3, 4), draw(*scale), attributes=attributes)
    check_operator("LayerNormalization", draw(2, 3), draw(3), draw(3))
    check_operator(
        "LayerNormalization",
        draw(2, 3),
        draw(3),
        draw(3),
        outputs=3,
        attributes={"stash_type": 11},
    )


def test_groups_and_instances() -> None:
    attributes = {"num_groups": 2, "stash_type": 11, "epsilon": 0.1}
    check_operator("GroupNormalization", draw(2, 4, 3, 2), draw(4), draw(4), attributes=attributes)
    check_operator("InstanceNormalization", draw(2, 3, 4), draw(3), draw(3))
    check_operator("InstanceNormalization", draw(2, 3, 2, 2), draw(3), draw(3))
    check_operator("MeanVarianceNormalization", draw(2, 3, 4, 2))
    check_operator("MeanVarianceNormalization", draw(3, 4), attributes={"axes": [1]})


def test_neighbours_and_norms() -> None:
    for size in (3, 4):
        flags = {"size": size, "alpha": 0.5, "beta": 0.6, "bias": 1.2}
        check_operator("LRN", draw(2, 5, 3), attributes=flags)
    for p in (1, 2):
        check_operator("LpNormalization", draw(3, 4), attributes={"p": p, "axis": 0})


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_losses(reduction: str) -> None:
    target = np.array([[1, 0, 2], [2, 2, 1]])
    for weight in (None, np.abs(draw(3)) + 0.3):
        for ignored in (None, 2, -5):
            labels = np.where(target == 2, -5, target) if ignored == -5 else target
            attributes: dict[str, Any] = {"reduction": reduction, "ignore_index": ignored}
            inputs = [labels, weight] if weight is not None else [labels]
            scores = draw(2, 3, 3)
            check_operator("NegativeLogLikelihoodLoss", scores, *inputs, attributes=attributes)
            check_operator("SoftmaxCrossEntropyLoss", scores, *inputs, attributes=attributes)
            check_operator(
                "SoftmaxCrossEntropyLoss", scores, *inputs, outputs=2, attributes=attributes
            )


def test_dropped_elements() -> None:
    x, on = draw(5, 6), np.array(True)
    seeded = {"seed": 3}
    check_operator("Dropout", x, np.array(0.4), on, outputs=2, attributes=seeded, wanted=[0])
    check_operator("Dropout", x, np.array(0.4), np.array(False), wanted=[0])
    check_operator("Dropout", x)
    _, pull = pull_back(lambda x: [op("Dropout", x, 0.5, True)], x)
    with pytest.raises(NotDifferentiable, match="Dropout .* ask for both outputs"):
        pull([x])
