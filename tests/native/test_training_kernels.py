"""Kernels of gradients of pooling and normalisation, beside PyTorch in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
from torch.nn import functional

from tests.native.models import every_level, refused, session

FLOAT = TensorProto.FLOAT


def made(
    operator: str, shapes: dict[str, Any], outputs: list[str], kind: int = FLOAT, **attributes: Any
) -> onnx.ModelProto:
    """Return a model of one of hagane's own operators."""
    node = helper.make_node(operator, [*shapes], outputs, domain="hagane", **attributes)
    inputs = [helper.make_tensor_value_info(name, kind, shape) for name, shape in shapes.items()]
    results = [helper.make_tensor_value_info(name, kind, None) for name in outputs]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("hagane", 1)]
    graph = helper.make_graph([node], "graph", inputs, results)
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def near(found: Any, wanted: Any, tolerance: float = 1e-5) -> None:
    """Fail unless an array is a tensor of PyTorch's, within a share of its largest element."""
    wanted = wanted.detach().numpy()
    np.testing.assert_allclose(found, wanted, atol=tolerance * max(1, abs(wanted).max()), rtol=0)


# Shape, kernel, strides, padding on both sides, whether partial windows count.
Pool = tuple[tuple[int, ...], list[int], list[int], list[int], bool]
POOLS: list[Pool] = [
    ((3, 5, 9, 11), [2, 2], [2, 2], [0, 0], False),
    ((2, 17, 7, 8), [3, 3], [2, 2], [1, 1], False),
    ((1, 8, 10, 7), [3, 2], [1, 3], [1, 0], True),
    ((2, 9, 8, 8), [3, 3], [3, 3], [0, 0], True),
    ((2, 6, 23), [3], [2], [1], False),
    ((1, 3, 16, 15), [7, 6], [3, 3], [3, 3], False),
]


def pooled(form: Pool, average: bool, include: bool) -> tuple[Any, ...]:
    """Return data, results, a gradient, and the gradient of the data by PyTorch."""
    shape, kernel, strides, pads, ceil = form
    rng = np.random.default_rng(5)
    # Few different numbers, so that windows have several largest ones.
    x = rng.integers(-3, 4, shape).astype(np.float32)
    data = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    name = f"{'avg' if average else 'max'}_pool{len(kernel)}d"
    more = {"count_include_pad": include} if average else {}
    y = getattr(functional, name)(data, kernel, strides, pads, ceil_mode=ceil, **more)
    g = rng.standard_normal(tuple(y.shape)).astype(np.float32)
    y.backward(torch.tensor(g, dtype=torch.float64))
    return x, y.detach().numpy().astype(np.float32), g, data.grad


@every_level
@pytest.mark.parametrize("form", POOLS, ids=str)
def test_gradients_of_pools_are_pytorchs(form: Pool, level: str) -> None:
    _, kernel, strides, pads, ceil = form
    kept = {
        "kernel_shape": kernel, "strides": strides, "dilations": [1] * len(kernel),
        "pads": [*pads, *pads], "ceil_mode": int(ceil),
    }  # fmt: skip
    x, y, g, wanted = pooled(form, False, False)
    largest = made("MaxPoolGradient", {"x": x.shape, "y": y.shape, "g": g.shape}, ["gx"], **kept)
    found = session(largest, instructions=level)
    assert refused(found) == {}
    near(found.run(None, {"x": x, "y": y, "g": g})[0], wanted)
    for include in (False, True):
        x, _, g, wanted = pooled(form, True, include)
        shapes: dict[str, Any] = {"x": x.shape, "g": g.shape}
        mean = made("AveragePoolGradient", shapes, ["gx"], count_include_pad=int(include), **kept)
        found = session(mean, instructions=level)
        assert refused(found) == {}
        near(found.run(None, {"x": x, "g": g})[0], wanted)


def test_pools_of_three_axes_and_doubles_are_taken_apart() -> None:
    kept = {"kernel_shape": [2] * 3, "strides": [2] * 3, "dilations": [1] * 3, "pads": [0] * 6}
    rng = np.random.default_rng(2)
    x = torch.tensor(rng.standard_normal((2, 3, 4, 5, 6)), requires_grad=True)
    y = functional.max_pool3d(x, 2)
    g = rng.standard_normal(tuple(y.shape))
    y.backward(torch.tensor(g))
    shapes: dict[str, Any] = {"x": x.shape, "y": y.shape, "g": g.shape}
    for dtype, kind in ((np.float32, FLOAT), (np.float64, TensorProto.DOUBLE)):
        feed = {"x": x.detach().numpy(), "y": y.detach().numpy(), "g": g}
        found = session(made("MaxPoolGradient", shapes, ["gx"], kind, **kept))
        near(found.run(None, {k: v.astype(dtype) for k, v in feed.items()})[0], x.grad)


def normalised(
    shape: tuple[int, ...], centre: float = 0.0
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return operands of a batch normalisation, and its results and gradients by PyTorch."""
    rng, channels = np.random.default_rng(7), shape[1]
    feed = {
        "x": rng.standard_normal(shape) + centre, "scale": rng.uniform(0.5, 2, channels),
        "bias": rng.standard_normal(channels), "g": rng.standard_normal(shape),
    }  # fmt: skip
    feed = {name: value.astype(np.float32) for name, value in feed.items()}
    x, scale, bias, g = (
        torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in feed.values()
    )
    y = functional.batch_norm(x, None, None, scale, bias, True, eps=1e-3)
    y.backward(g.detach())
    axes = [axis for axis in range(len(shape)) if axis != 1]
    return feed, {
        "y": y, "mean": x.mean(axes), "variance": x.var(axes, unbiased=False),
        "gx": x.grad, "gscale": scale.grad, "gbias": bias.grad,
    }  # fmt: skip


SHAPES = [(3, 5, 9, 11), (2, 33, 4, 4), (4, 16, 1, 130), (5, 7, 3), (2, 200, 2, 2), (1, 8, 70, 3)]


@every_level
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_batch_normalisation_and_its_gradients_are_pytorchs(
    shape: tuple[int, ...], level: str
) -> None:
    feed, wanted = normalised(shape, 3.0)
    count = (shape[1],)
    shapes: dict[str, Any] = {"x": shape, "scale": count, "bias": count}
    forward = made("BatchNormTraining", shapes, ["y", "mean", "variance"], epsilon=1e-3)
    found = session(forward, instructions=level)
    assert refused(found) == {}
    results = found.run(None, {name: feed[name] for name in shapes})
    for name, result in zip(("y", "mean", "variance"), results, strict=True):
        near(result, wanted[name], 1e-5)
    shapes = {"x": shape, "scale": count, "mean": count, "variance": count, "g": shape}
    given = {**feed, "mean": results[1], "variance": results[2]}
    names = ["gx", "gscale", "gbias"]
    back = session(
        made("BatchNormTrainingGradient", shapes, names, epsilon=1e-3), instructions=level
    )
    assert refused(back) == {}
    for name, result in zip(names, back.run(None, {k: given[k] for k in shapes}), strict=True):
        near(result, wanted[name], 1e-5)


def test_moments_hold_where_the_mean_is_far_from_zero() -> None:
    feed, wanted = normalised((4, 9, 12, 10), 1000.0)
    shapes: dict[str, Any] = {name: feed[name].shape for name in ("x", "scale", "bias")}
    found = session(made("BatchNormTraining", shapes, ["y", "mean", "variance"], epsilon=1e-3))
    _, mean, variance = found.run(None, {name: feed[name] for name in shapes})
    np.testing.assert_allclose(mean, wanted["mean"].detach(), rtol=1e-6)
    np.testing.assert_allclose(variance, wanted["variance"].detach(), rtol=2e-4)


def test_batches_and_sizes_stay_open() -> None:
    count = (5,)
    shapes: dict[str, Any] = {"x": ["n", 5, "h", "w"], "scale": count, "bias": count}
    forward = session(made("BatchNormTraining", shapes, ["y", "mean", "variance"], epsilon=1e-3))
    shapes = {"x": ["n", 5, "h", "w"], "y": ["n", 5, "a", "b"], "g": ["n", 5, "a", "b"]}
    pool = {"kernel_shape": [2, 2], "strides": [2, 2], "dilations": [1, 1], "pads": [0] * 4}
    back = session(made("MaxPoolGradient", shapes, ["gx"], **pool))
    assert refused(forward) == refused(back) == {}
    for shape in ((3, 5, 9, 11), (1, 5, 2, 130), (2, 5, 4, 4)):
        feed, wanted = normalised(shape)
        y, *_ = forward.run(None, {name: feed[name] for name in ("x", "scale", "bias")})
        near(y, wanted["y"])
        x, y, g, of_data = pooled((shape, [2, 2], [2, 2], [0, 0], False), False, False)
        near(back.run(None, {"x": x, "y": y, "g": g})[0], of_data)


ROWS = [((3, 5, 9), 2), ((2, 70, 33), 2), ((40, 7, 3), 1), ((1, 300), 1), ((5, 1), 1), ((19,), 0)]


def of_rows(shape: tuple[int, ...], axis: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return operands and results of layer normalisation, the latter by PyTorch."""
    rng = np.random.default_rng(7)
    sizes = {"x": shape, "scale": shape[axis:], "bias": shape[axis:], "g": shape}
    feed = {k: (rng.standard_normal(size) + 2).astype(np.float32) for k, size in sizes.items()}
    x, scale, bias, g = (
        torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in feed.values()
    )
    y = functional.layer_norm(x, shape[axis:], scale, bias, eps=1e-3)
    y.backward(g.detach())
    return feed, {"y": y, "gx": x.grad, "gscale": scale.grad, "gbias": bias.grad}


@every_level
@pytest.mark.parametrize(("shape", "axis"), ROWS, ids=str)
def test_normalisation_of_rows_and_its_gradients_are_pytorchs(
    shape: tuple[int, ...], axis: int, level: str
) -> None:
    feed, wanted = of_rows(shape, axis)
    kept = {"axis": axis, "epsilon": 1e-3}
    for first in (shape[0], "n"):  # the number of rows known and open
        sizes = [first if axis else shape[0], *shape[1:]]
        shapes: dict[str, Any] = {"x": sizes, "scale": shape[axis:], "bias": shape[axis:]}
        forward = session(made("LayerNormTraining", shapes, ["y"], **kept), instructions=level)
        shapes = {"x": sizes, "scale": shape[axis:], "g": sizes}
        names = ["gx", "gscale", "gbias"]
        back = session(made("LayerNormTrainingGradient", shapes, names, **kept), instructions=level)
        assert refused(forward) == refused(back) == {}
        near(forward.run(None, {k: feed[k] for k in ("x", "scale", "bias")})[0], wanted["y"])
        for name, found in zip(names, back.run(None, {k: feed[k] for k in shapes}), strict=True):
            near(found, wanted[name])


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_change_no_bit(threads: int) -> None:
    feed, _ = normalised((3, 5, 9, 11))
    shapes: dict[str, Any] = {name: feed[name].shape for name in ("x", "scale", "bias")}
    model = made("BatchNormTraining", shapes, ["y", "mean", "variance"], epsilon=1e-3)
    runs = [
        session(model, threads=count).run(None, {name: feed[name] for name in shapes})
        for count in (2, threads)
    ]
    for first, other in zip(*runs, strict=True):
        np.testing.assert_array_equal(first, other)


@every_level
def test_choices_lie_where_images_do(level: str) -> None:
    rng = np.random.default_rng(1)
    shape = (2, 5, 3, 7)
    feed = {name: rng.standard_normal(shape).astype(np.float32) for name in "abxy"}
    feed["b"] = feed["b"][:1, :, :1, :1]
    feed["a"][0, 0, 0, 0] = np.nan
    found = session(
        made("SelectGreater", {k: v.shape for k, v in feed.items()}, ["z"]), instructions=level
    )
    assert refused(found) == {}
    (z,) = found.run(None, feed)
    np.testing.assert_array_equal(z, np.where(feed["a"] > feed["b"], feed["x"], feed["y"]))
