"""Reference models: sizes, numbers of parameters of the papers, and losses that fall."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hagane
import hagane.functions as F  # noqa: N812
from hagane import zoo
from hagane.errors import InvalidArgument


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
        (lambda: zoo.GoogLeNet(5, 0.03), lambda: images(1, 3, 79, 82), (1, 5), None),
        (lambda: zoo.FCN(3, 8, 6, 0.03), lambda: images(2, 3, 32, 64), (2, 3, 32, 64), None),
        (lambda: zoo.FCN(3, 32, 6, 0.03), lambda: images(1, 3, 64, 32), (1, 3, 64, 32), None),
        (lambda: zoo.BERT(11, 8, 6, 2, 2), lambda: tokens(2, 7, 11), (2, 7, 6), None),
        (
            lambda: zoo.BERTWords(zoo.BERT(11, 8, 6, 1, 2)),
            lambda: tokens(2, 7, 11),
            (2, 7, 11),
            None,
        ),
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
        (lambda: zoo.BERTWords(zoo.BERT(4, 6, 8, 1, 2)), lambda: tokens(3, 6, 4), 4),
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


@pytest.mark.long
def test_models_of_full_size_have_the_parameters_of_the_papers_weights() -> None:
    # Those of bert-base-uncased; nothing is computed.
    assert parameters(zoo.BERT()) == 109_482_240


@pytest.mark.long
@pytest.mark.parametrize(
    ("make", "shape", "count"),
    [
        # GoogLeNet without and with its two classifiers inside: 6,998,552 and 6,379,728 more.
        (zoo.GoogLeNet, (1, 3, 224, 224), 13_378_280),
        # (torchvision's ssd300_vgg16 for COCO.)
        (lambda: zoo.SSD300(91), (1, 3, 300, 300), 35_641_826),
        # Convolutions of VGG-16; fc6 and fc7; scores of three levels; three that enlarge.
        (
            zoo.FCN,
            (1, 3, 32, 32),
            14_714_688
            + (512 * 49 + 1) * 4096
            + (4096 + 1) * 4096
            + (4096 + 512 + 256 + 3) * 21
            + (4**2 + 4**2 + 16**2) * 21**2,
        ),
    ],
)
def test_full_sizes_compute_and_have_the_parameters_of_their_papers(
    make: Any, shape: tuple[int, ...], count: int
) -> None:
    model = make()
    with hagane.no_backprop_mode():
        if make is zoo.GoogLeNet:
            model.loss(images(*shape), np.zeros(1, np.int32))
        else:
            model(images(*shape))
    assert parameters(model) == count


def test_scores_are_enlarged_by_interpolation_at_first() -> None:
    model = zoo.FCN(2, 16, 4, 0.02)
    flat = np.ones((1, 2, 3, 3), np.float32)
    with hagane.no_backprop_mode():
        large = model.out(flat).array
    np.testing.assert_allclose(large[:, :, 8:-8, 8:-8], 1, rtol=1e-6)
    with pytest.raises(InvalidArgument, match="expected stride to be 8, 16 or 32, got 4"):
        zoo.FCN(stride=4)


def test_a_detector_finds_the_boxes_that_its_targets_stand_for() -> None:
    boxes = np.array([[0.1, 0.1, 0.4, 0.5], [0.5, 0.5, 0.55, 0.56], [0, 0, 1, 1]], np.float32)
    offsets, labels = zoo.matched_boxes(boxes, [3, 1, 2])
    assert offsets.shape == (8732, 4)
    assert set(labels) == {0, 1, 2, 3}  # an object of any size has a box
    placed = zoo.placed_boxes(offsets)
    for box, label in zip(boxes, (3, 1, 2), strict=True):
        found = placed[labels == label]
        np.testing.assert_allclose(found, np.broadcast_to(box, found.shape), atol=1e-5)
    _, none = zoo.matched_boxes(np.zeros((0, 4)), [])
    assert not none.any()


def test_a_detectors_boxes_tile_the_image_from_small_to_large() -> None:
    boxes = zoo.default_boxes()
    sides = 8732 - 1444 * 4 - 361 * 6, 1444 * 4
    assert sides[0] == 600 + 150 + 36 + 4
    np.testing.assert_allclose(boxes[0], [4 / 300, 4 / 300, 0.1, 0.1], atol=1e-6)
    np.testing.assert_allclose(boxes[-4], [0.5, 0.5, 0.88, 0.88], atol=1e-6)


def test_pictures_reach_each_map_of_a_new_detector() -> None:
    np.random.seed(0)
    model = zoo.SSD300(3, 0.1)
    with hagane.no_backprop_mode():
        maps = model._maps(images(1, 3, 300, 300))
    assert [each.shape[2] for each in maps] == [38, 19, 10, 5, 3, 1]
    assert all(each.array.std() > 0.02 for each in maps)


def test_a_detector_counts_the_worst_of_the_boxes_without_an_object() -> None:
    class Given(zoo.SSD300):
        def forward(self, x: Any) -> Any:
            return hagane.Variable(places), hagane.Variable(scores)

    model = Given(2, 0.02)
    rng = np.random.default_rng(0)
    places = rng.standard_normal((2, 20, 4)).astype(np.float32)
    scores = rng.standard_normal((2, 20, 2)).astype(np.float32)
    labels = np.zeros((2, 20), np.int32)
    labels[0, [3, 8]], labels[1, 5] = 1, 1
    offsets = np.zeros((2, 20, 4), np.float32)
    found = float(model.loss(None, offsets, labels).array)
    total = 0.0
    for image in range(2):
        logs = scores[image] - np.log(np.exp(scores[image]).sum(axis=1, keepdims=True))
        inside = labels[image] > 0
        total -= logs[inside, 1].sum()
        total += np.sort(-logs[~inside, 0])[::-1][: 3 * inside.sum()].sum()
        away = abs(places[image][inside])
        total += np.where(away < 1, 0.5 * away**2, away - 0.5).sum()
    assert found == pytest.approx(total / 3, rel=1e-5)


def test_an_encoder_does_not_see_tokens_that_are_absent() -> None:
    model = zoo.BERTClassifier(zoo.BERT(11, 8, 8, 2, 2), 3)
    one, other = tokens(1, 7, 11), tokens(1, 7, 11)
    other[0, 5:] = (other[0, 5:] + 1) % 11
    present = np.arange(7)[None] < 5
    with hagane.no_backprop_mode(), hagane.using_config("train", False):
        first, second = (model(each, present=present).array for each in (one, other))
        np.testing.assert_allclose(first, second, rtol=1e-5)
        assert abs(model(one).array - model(other).array).max() > 1e-4
        segments = np.ones_like(one)
        assert abs(model(one).array - model(one, segments).array).max() > 1e-4


def test_a_translator_writes_the_tokens_that_score_best() -> None:
    np.random.seed(1)
    model = zoo.Seq2Seq(7, 5, 6)
    source = tokens(2, 4, 7)
    found = model.translate(source, 3, 5)
    assert found.shape == (2, 5)
    assert found.dtype == np.int32
    before = np.concatenate([np.full((2, 1), 3, np.int32), found[:, :-1]], axis=1)
    with hagane.no_backprop_mode(), hagane.using_config("train", False):
        scores = model(source, before).array
    np.testing.assert_array_equal(scores.argmax(axis=2), found)


def test_attention_sees_nothing_that_comes_later() -> None:
    np.random.seed(0)
    model = zoo.GPT(11, 8, 16, 2, 2)
    one, other = tokens(1, 7, 11), tokens(1, 7, 11)
    other[0, 5:] = (other[0, 5:] + 1) % 11
    with hagane.no_backprop_mode():
        first, second = model(one).array, model(other).array
    np.testing.assert_allclose(first[0, :5], second[0, :5], atol=1e-5)
    assert abs(first[0, 5:] - second[0, 5:]).max() > 1e-3
