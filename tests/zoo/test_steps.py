"""Compiled steps of larger models of the zoo lose as eager ones do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import hagane
import hagane.functions as F  # noqa: N812
from hagane import optimizers, zoo

DRAWN = np.random.RandomState(0)
TOKENS = DRAWN.randint(0, 11, (3, 7)).astype(np.int32)


def images(*shape: int) -> Any:
    """Return random images."""
    return np.random.RandomState(0).randn(*shape).astype(np.float32)


def cross_entropy(model: Any, x: Any, t: Any) -> Any:
    """Return the loss of scores ``(batch, classes, ...)``."""
    return F.softmax_cross_entropy(model(x), t)


def own_loss(model: Any, x: Any, t: Any) -> Any:
    """Return the loss that the model has itself."""
    return model.loss(x, t)


def box_loss(model: Any, x: Any, offsets: Any, labels: Any) -> Any:
    """Return the loss of a detector."""
    return model.loss(x, offsets, labels)


def word_loss(model: Any, x: Any, t: Any) -> Any:
    """Return the loss of scores ``(batch, time, words)``."""
    scores = model(x)
    return F.softmax_cross_entropy(F.reshape(scores, (-1, scores.shape[-1])), F.flatten(t))


def translation_loss(model: Any, source: Any, before: Any, t: Any) -> Any:
    """Return the loss of a translation."""
    scores = model(source, before)
    return F.softmax_cross_entropy(F.reshape(scores, (-1, scores.shape[-1])), F.flatten(t))


def sentence_loss(model: Any, x: Any, segments: Any, present: Any, t: Any) -> Any:
    """Return the loss of a classifier of sentences."""
    return F.softmax_cross_entropy(model(x, segments, present), t)


def boxes(batch: int) -> tuple[Any, Any]:
    """Return targets of a detector."""
    found = zoo.matched_boxes([[0.1, 0.1, 0.4, 0.5], [0.5, 0.5, 0.6, 0.6]], [1, 2])
    return tuple(np.stack([each] * batch) for each in found)  # type: ignore[return-value]


@dataclass(frozen=True)
class Case:
    """A model, its loss, and a batch."""

    make: Callable[[], Any]
    loss: Callable[..., Any]
    batch: Callable[[], tuple[Any, ...]]


CASES = {
    "GoogLeNet": Case(
        lambda: zoo.GoogLeNet(4, 0.03), own_loss,
        lambda: (images(2, 3, 80, 79), np.array([1, 2], np.int32)),
    ),
    "FCN-8s": Case(
        lambda: zoo.FCN(3, 8, 8, 0.05), cross_entropy,
        lambda: (images(2, 3, 64, 32), DRAWN.randint(0, 3, (2, 64, 32)).astype(np.int32)),
    ),
    "SSD300": Case(
        lambda: zoo.SSD300(3, 0.02), box_loss, lambda: (images(1, 3, 300, 300), *boxes(1))
    ),
    "seq2seq": Case(
        lambda: zoo.Seq2Seq(11, 9, 8, 1, 0.0), translation_loss,
        lambda: (TOKENS, TOKENS[:, :5] % 9, TOKENS[:, 1:6] % 9),
    ),
    "BERT of words": Case(
        lambda: zoo.BERTWords(zoo.BERT(11, 8, 8, 2, 2)), word_loss, lambda: (TOKENS, TOKENS)
    ),
    "BERT of sentences": Case(
        lambda: zoo.BERTClassifier(zoo.BERT(11, 8, 8, 1, 2), 3), sentence_loss,
        lambda: (TOKENS, TOKENS % 2, TOKENS > 2, np.array([0, 1, 2], np.int32)),
    ),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", list(CASES))
def test_compiled_steps_lose_as_eager_ones_do(name: str) -> None:
    case, curves = CASES[name], []
    for compiled in (False, True):
        np.random.seed(3)
        model, batch = case.make(), case.batch()
        with hagane.no_backprop_mode(), hagane.using_config("train", False):
            case.loss(model, *batch)  # sizes
        np.random.seed(4)
        optimizer = optimizers.SGD(0.01).setup(model)
        step = hagane.compile(case.loss, optimizer) if compiled else None
        losses = []
        for _ in range(3):
            found: list[Any] = []

            def loss(*given: Any, found: list[Any] = found) -> Any:
                found.append(case.loss(*given))
                return found[-1]

            if step is None:
                optimizer.update(loss, model, *batch)
            else:
                found.append(step(model, *batch))
            losses.append(float(found[0].array))
        curves.append(losses)
    np.testing.assert_allclose(curves[1], curves[0], rtol=1e-4)
