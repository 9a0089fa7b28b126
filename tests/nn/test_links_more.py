"""Links of several convolutions and models of images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hagane
import hagane.computational_graph
import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812
from hagane.link_hooks import WeightStandardization
from hagane.reporter import DictSummary
from hagane.serializers import load_npz, save_npz
from hagane.utils import conv, conv_nd

RANDOM = np.random.RandomState(0)


def test_convolutions_of_pixels_have_the_numbers_of_their_convolutions() -> None:
    link = L.MLPConvolution2D(3, (4, 5, 2), 3, activation=F.sigmoid)
    assert sorted(name for name, _ in link.namedparams()) == [
        f"/{number}/{name}" for number in range(3) for name in "Wb"
    ]
    x = RANDOM.randn(2, 3, 7, 6).astype(np.float32)
    expected = link[2](F.sigmoid(link[1](F.sigmoid(link[0](x)))))
    np.testing.assert_array_equal(link(x).array, expected.array)


@pytest.mark.parametrize("pooltype", ["max", "avg"])
@pytest.mark.parametrize(("out1", "stride", "proj_pool"), [(4, 1, 5), (0, 2, None), (0, 1, 3)])
def test_blocks_with_batch_normalization_join_all_ways(
    pooltype: str, out1: int, stride: int, proj_pool: int | None
) -> None:
    link = L.InceptionBN(None, out1, 2, 3, 2, 4, pooltype, proj_pool, stride)
    y = link(RANDOM.randn(3, 6, 9, 8).astype(np.float32))
    assert y.shape == (3, out1 + 3 + 4 + (proj_pool or 6), -(-9 // stride), -(-8 // stride))
    F.sum(y).backward()
    assert all(param.grad is not None for param in link.params())


def test_a_block_of_another_pooling_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="pooltype: expected 'max' or 'avg', got 'min'"):
        L.InceptionBN(3, 1, 1, 1, 1, 1, "min", 1)


@pytest.mark.parametrize(("ndim", "groups"), [(1, 1), (2, 2), (3, 1)])
def test_convolutions_of_any_rank_come_from_given_arrays(ndim: int, groups: int) -> None:
    W = RANDOM.randn(4, 2, *(2,) * ndim).astype(np.float32)
    b = RANDOM.randn(4).astype(np.float32)
    link = L.ConvolutionND.from_params(W, b, stride=2, pad=1, groups=groups)
    assert (link.ndim, link.groups, link.stride) == (ndim, groups, (2,) * ndim)
    np.testing.assert_array_equal(link.W.array, W)
    x = RANDOM.randn(2, 2 * groups, *(5,) * ndim).astype(np.float32)
    expected = F.convolution_nd(x, W, b, 2, 1, groups=groups)
    np.testing.assert_array_equal(link(x).array, expected.array)


def test_local_convolutions_compute_in_the_type_of_their_input() -> None:
    link = L.LocalConvolution2D(3, 2, in_size=4, ksize=3)
    assert link(RANDOM.randn(2, 3, 4, 4)).dtype == np.float64


def test_weights_whose_sizes_come_with_the_first_input_are_standardized() -> None:
    link = L.Convolution2D(None, 4, 3)
    link.add_hook(WeightStandardization())
    assert link(RANDOM.randn(2, 3, 5, 5).astype(np.float32)).shape == (2, 4, 3, 3)


def test_windows_of_arrays_are_those_of_convolutions_and_add_up_where_they_meet() -> None:
    x = RANDOM.randn(2, 3, 8, 7)
    W = RANDOM.randn(5, 3, 3, 2)
    col = conv.im2col_cpu(x, 3, 2, 2, 1, 1, 1, dy=1, dx=2)
    expected = F.convolution_2d(x, W, stride=(2, 1), pad=1, dilate=(1, 2)).array
    np.testing.assert_allclose(np.einsum("ncijyx,ocij->noyx", col, W), expected)
    g = RANDOM.randn(*col.shape)
    back = conv_nd.col2im_nd_cpu(g, (2, 1), (1, 1), (8, 7), (1, 2))
    np.testing.assert_allclose((back * x).sum(), (g * col).sum())  # the transposed map


def test_a_summary_forgets_its_numbers_when_it_is_read(tmp_path: Path) -> None:
    written, read = DictSummary(), DictSummary()
    written.add({"a": 1.0, "b": 2.0})
    read.add({"a": 5.0, "c": 3.0})
    save_npz(tmp_path / "summary.npz", written)
    load_npz(tmp_path / "summary.npz", read)
    assert read.compute_mean() == {"a": 1.0, "b": 2.0}


def test_a_mean_of_many_small_numbers_keeps_its_digits() -> None:
    summary = DictSummary()
    for value in np.full(100_000, 0.1, "f"):
        summary.add({"loss": hagane.Variable(np.asarray(value))})
    assert summary.compute_mean()["loss"] == pytest.approx(float(np.float32(0.1)), rel=1e-9)


def test_a_snapshot_of_another_kind_of_number_is_refused(tmp_path: Path) -> None:
    link = L.Linear(2, 2)
    np.savez(tmp_path / "link.npz", W=np.ones((2, 2)), b=np.zeros(2))
    load_npz(tmp_path / "link.npz", link)
    assert link.W.dtype == np.float32
    other = hagane.Link()
    other.count = np.zeros(2, np.int32)
    other.register_persistent("count")
    np.savez(tmp_path / "other.npz", count=np.ones(2, np.float32))
    with pytest.raises(TypeError, match="'count': expected int32, the snapshot has float32"):
        load_npz(tmp_path / "other.npz", other)


def test_steps_of_image_models_can_be_had_by_name() -> None:
    link = L.GoogLeNet(None)
    assert len(link.available_layers) == 21
    x = RANDOM.randn(1, 3, 224, 224).astype(np.float32)
    with hagane.using_config("train", False), hagane.no_backprop_mode():
        found = link(x, layers=["loss1_fc2", "inception_4a", "pool2"])
    shapes = {name: value.shape for name, value in found.items()}
    assert shapes == {
        "pool2": (1, 192, 28, 28),
        "inception_4a": (1, 512, 14, 14),
        "loss1_fc2": (1, 1000),
    }
    with pytest.raises(ValueError, match=r"layers: expected some of conv1, .*got \['pool9'\]"):
        link(x, layers=["pool9"])


def test_residual_models_bring_images_to_their_size() -> None:
    pytest.importorskip("PIL")
    link = L.ResNet50Layers(None)
    image = RANDOM.randint(0, 256, (40, 30, 3)).astype(np.uint8)
    with hagane.using_config("train", False), hagane.no_backprop_mode():
        (value,) = link.extract([image, image[:, :, 0]], layers=["res2"], size=(32, 48)).values()
    assert value.shape == (2, 256, 12, 8)
    whole = link.prepare(image, size=None)
    np.testing.assert_allclose(whole[0], image[:, :, 2] - np.float32(103.063), rtol=1e-5)


@pytest.mark.parametrize("make", [L.VGG16Layers, L.ResNet50Layers, L.GoogLeNet])
def test_weights_of_image_models_are_not_downloaded(make: type[L.VGG16Layers]) -> None:
    with pytest.raises(ValueError, match="expected None, for random weights, or the path of"):
        make()


def test_weights_whose_sizes_come_with_the_first_input_are_drawn_in_the_order_of_chainer() -> None:
    drawn: list[tuple[int, ...]] = []

    def noting(array: np.ndarray) -> None:
        drawn.append(array.shape)
        array[...] = 0

    link = L.InceptionBN(None, 2, 3, 4, 5, 6, "avg", 7, conv_init=noting)
    drawn.clear()  # those of known sizes
    link(np.zeros((1, 8, 3, 3), np.float32))
    assert drawn == [(2, 8, 1, 1), (3, 8, 1, 1), (5, 8, 1, 1), (7, 8, 1, 1)]


def test_copies_of_lists_draw_the_weights_of_each_link_once() -> None:
    links = hagane.ChainList(L.Linear(2, 3), L.Linear(3, 2))
    np.random.seed(0)
    made = links.copy("init")
    np.random.seed(0)
    expected = [link.copy("init").W.array for link in links]
    assert all(np.array_equal(a.W.array, b) for a, b in zip(made, expected, strict=True))
    assert not np.array_equal(made[0].W.array, links[0].W.array)


def test_weights_are_dropped_unless_the_call_says_that_it_does_not_train() -> None:
    link = L.SimplifiedDropconnect(4, 3)
    x = np.ones((2, 4), np.float32)
    plain = x @ link.W.array.T
    with hagane.using_config("train", False):
        assert not np.allclose(link(x).array, plain)
        assert np.allclose(link(x, train=False).array, plain)


def test_convolutions_are_no_instances_of_each_other() -> None:
    dilated, plain = L.DilatedConvolution2D(1, 1, 1), L.Convolution2D(1, 1, 1)
    assert not isinstance(dilated, L.Convolution2D)
    assert not isinstance(plain, L.ConvolutionND)
    assert not isinstance(L.Deconvolution2D(1, 1, 1), L.DeconvolutionND)
    assert isinstance(L.Convolution1D(1, 1, 1), L.ConvolutionND)


def test_a_parameter_without_axes_is_updated_under_a_scaled_loss() -> None:
    class Scaled(hagane.Chain):
        def __init__(self) -> None:
            super().__init__()
            with self.init_scope():
                self.scale = hagane.Parameter(np.float32(2), ())

        def forward(self, x: np.ndarray) -> hagane.Variable:
            return F.sum(x * F.broadcast_to(self.scale, x.shape))

    link = Scaled()
    optimizer = hagane.optimizers.SGD(0.5).setup(link)
    optimizer.loss_scaling(scale=8)
    optimizer.update(link, np.ones((1, 3), np.float32))
    assert (link.scale.grad, link.scale.array) == (3, 0.5)


def test_names_stand_in_a_drawn_graph_and_not_in_labels() -> None:
    link = L.Linear(4, 2)
    y = link(np.ones((3, 4), np.float32))
    assert link.W.node.label == "(2, 4), float32"
    named, plain = (
        hagane.computational_graph.build_computational_graph([y], show_name=show).dump()
        for show in (True, False)
    )
    assert '"W: (2, 4), float32"' in named
    assert "W: " not in plain
    assert 'shape="octagon",style="filled"' in plain
    red = hagane.computational_graph.build_computational_graph(
        [y], variable_style={"fillcolor": "red"}, function_style=None
    ).dump()
    assert 'shape="oval",fillcolor="red"' in red
    assert 'label="LinearFunction",shape="box"]' in red
    assert "filled" not in red


def test_functions_that_fill_weights_of_a_maxout_see_outputs_and_pools() -> None:
    def numbers(array: np.ndarray) -> None:
        array[...] = np.arange(array.size).reshape(array.shape)
        array[1] = -1

    link = L.Maxout(2, 3, 4, numbers, numbers)
    rows = np.arange(24.0).reshape(12, 2)
    rows[4:8] = -1
    np.testing.assert_array_equal(link.linear.W.array, rows)
    np.testing.assert_array_equal(link.linear.b.array, [*range(4), *[-1] * 4, *range(8, 12)])


def test_a_class_behind_link_may_bring_the_call() -> None:
    class Twice:
        def __call__(self, x: Any) -> Any:
            return 2 * self.forward(x)  # type: ignore[attr-defined]

    class Before(Twice, hagane.Link):
        def forward(self, x: Any) -> Any:
            return x + 1

    class Behind(hagane.Link, Twice):
        def forward(self, x: Any) -> Any:
            return x + 1

    class Neither(hagane.Link):
        def forward(self, x: Any) -> Any:
            return x + 1

    class Below(Behind):
        pass

    assert [link()(3) for link in (Before, Behind, Neither, Below)] == [8, 8, 4, 8]
    with hagane.link_hooks.TimerHook() as hook:
        assert Below()(3) == 8
    assert [name for name, _ in hook.call_history] == ["Below"]
