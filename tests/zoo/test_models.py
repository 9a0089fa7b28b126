"""Reference models: sizes, numbers of parameters of the papers, and losses that fall."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hagane
import hagane.functions as F  # noqa: N812
from hagane import zoo


def parameters(model: Any) -> int:
    """Return how many numbers a model learns."""
    return sum(int(p.size) for p in model.params())


def images(*shape: int) -> Any:
    """Return random images."""
    return np.random.RandomState(0).randn(*shape).astype(np.float32)


def tokens(batch: int, time: int, words: int) -> Any:
    """Return random tokens."""
    return np.random.RandomState(0).randint(0, words, (batch, time)).astype(np.int32)


@pytest.mark.parametrize(
    ("model", "x", "shape", "count"),
    [
        (lambda: zoo.MLP(), lambda: images(2, 784), (2, 10), 1_796_010),
        (lambda: zoo.LeNet(), lambda: images(2, 1, 28, 28), (2, 10), 61_706),
        # (Those of torchvision with ten classes.)
        (lambda: zoo.ResNet18(10), lambda: images(1, 3, 32, 32), (1, 10), 11_181_642),
        (lambda: zoo.ResNet50(10), lambda: images(1, 3, 32, 32), (1, 10), 23_528_522),
        (lambda: zoo.ResNet18(10, small=True, width=8), lambda: images(2, 3, 9, 7), (2, 10), None),
        (lambda: zoo.VGG16(5, 16, 0.05), lambda: images(2, 3, 32, 32), (2, 5), None),
        (lambda: zoo.UNet(1, 3, 4, 2), lambda: images(2, 1, 8, 12), (2, 3, 8, 12), None),
        (lambda: zoo.DilatedResNet(2, 3, 4, 3), lambda: images(2, 2, 21), (2, 3, 21), None),
        (lambda: zoo.Generator(5, 3, 2), lambda: images(2, 5), (2, 3, 32, 32), None),
        (lambda: zoo.Discriminator(3, 2), lambda: images(2, 3, 32, 32), (2, 1), None),
        (lambda: zoo.GPT(11, 8, 16, 2, 2), lambda: tokens(2, 7, 11), (2, 7, 11), None),
        (lambda: zoo.LSTMLanguageModel(9, 6), lambda: tokens(2, 5, 9), (2, 5, 9), None),
    ],
)
def test_models_have_the_sizes_of_their_papers(
    model: Any, x: Any, shape: tuple[int, ...], count: int | None
) -> None:
    built = model()
    with hagane.no_backprop_mode(), hagane.using_config("train", False):
        assert built(x()).shape == shape
    if count is not None:
        assert parameters(built) == count


def test_a_deep_network_has_the_blocks_of_its_name() -> None:
    assert len(list(zoo.ResNet152(width=1).body.children())) == 50


@pytest.mark.parametrize(
    ("model", "x", "classes"),
    [
        (lambda: zoo.LeNet(4), lambda: images(8, 1, 28, 28), 4),
        (lambda: zoo.ResNet18(4, small=True, width=2), lambda: images(8, 3, 8, 8), 4),
        (lambda: zoo.UNet(1, 4, 2, 1), lambda: images(2, 1, 4, 4), 4),
        (lambda: zoo.DilatedResNet(1, 4, 4, 2), lambda: images(2, 1, 9), 4),
        (lambda: zoo.GPT(4, 6, 8, 1, 2), lambda: tokens(3, 6, 4), 4),
    ],
)
def test_losses_fall(model: Any, x: Any, classes: int) -> None:
    np.random.seed(0)
    built, given = model(), x()
    language = given.dtype == np.int32
    optimizer = hagane.optimizers.Adam(0.02).setup(built)

    def loss() -> Any:
        scores = built(given)
        if language:
            scores = F.reshape(scores, (-1, classes))
        places = (scores.shape[0], *scores.shape[2:])
        target = np.arange(np.prod(places)).reshape(places).astype(np.int32) % classes
        return F.softmax_cross_entropy(scores, target)

    first = float(loss().array)
    for _ in range(12):
        optimizer.update(loss)
    assert float(loss().array) < 0.9 * first


def test_an_autoencoder_learns_to_draw_again() -> None:
    np.random.seed(0)
    model = zoo.VAE(12, 2, 16)
    x = (np.random.rand(20, 12) > 0.5).astype(np.float32)
    optimizer = hagane.optimizers.Adam(0.02).setup(model)
    first = float(model(x).array)
    for _ in range(40):
        optimizer.update(model, x)
    assert float(model(x).array) < 0.9 * first


def test_attention_sees_nothing_that_comes_later() -> None:
    np.random.seed(0)
    model = zoo.GPT(11, 8, 16, 2, 2)
    one, other = tokens(1, 7, 11), tokens(1, 7, 11)
    other[0, 5:] = (other[0, 5:] + 1) % 11
    with hagane.no_backprop_mode():
        first, second = model(one).array, model(other).array
    np.testing.assert_allclose(first[0, :5], second[0, :5], atol=1e-5)
    assert abs(first[0, 5:] - second[0, 5:]).max() > 1e-3
