"""Gradients of convolutions by their weights, in each form, beside PyTorch in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper

from tests.native.models import every_level, refused, session

# Images, channels, maps, size, kernel, strides, dilations, pads, groups.
Form = tuple[int, int, int, tuple[int, ...], list[int], list[int], list[int], list[int], int]
FORMS: list[Form] = [
    (3, 5, 7, (9, 11), [3, 3], [1, 1], [1, 1], [1, 1, 1, 1], 1),
    (2, 3, 64, (30, 31), [7, 7], [2, 2], [1, 1], [3, 3, 3, 3], 1),
    (2, 20, 33, (8, 8), [3, 3], [2, 2], [1, 1], [1, 1, 0, 2], 1),
    (2, 32, 48, (8, 7), [1, 1], [1, 1], [1, 1], [0, 0, 0, 0], 1),
    (3, 32, 48, (8, 7), [1, 1], [2, 3], [1, 1], [0, 0, 0, 0], 1),
    (2, 70, 100, (3, 4), [1, 1], [1, 1], [1, 1], [0, 0, 0, 0], 1),
    (2, 17, 19, (40,), [3], [1], [8], [8, 8], 1),
    (2, 6, 9, (300,), [5], [3], [2], [1, 4], 1),
    (2, 6, 5, (5, 6, 7), [3, 2, 3], [1, 2, 1], [1, 1, 2], [1, 0, 2, 1, 1, 2], 1),
    (1, 3, 5, (4, 6, 7), [3, 3, 3], [2, 2, 2], [1, 1, 1], [1, 1, 1, 1, 1, 1], 1),
    (2, 24, 24, (9, 9), [3, 3], [2, 1], [1, 2], [1, 2, 1, 2], 24),
    (2, 20, 20, (130,), [5], [1], [1], [2, 2], 20),
    (1, 5, 5, (4, 5, 6), [2, 3, 2], [1, 1, 2], [1, 1, 1], [0, 1, 1, 1, 1, 0], 5),
    (2, 12, 18, (9, 9), [3, 3], [1, 1], [1, 1], [1, 1, 1, 1], 3),
    (2, 12, 24, (9, 9), [3, 3], [1, 1], [1, 1], [1, 1, 1, 1], 12),
    (2, 64, 32, (9, 9), [3, 3], [1, 1], [1, 1], [1, 1, 1, 1], 2),
    (2, 4, 4, (3, 3), [5, 5], [1, 1], [1, 1], [2, 2, 2, 2], 1),
    (2, 4, 4, (3, 3), [3, 3], [1, 1], [4, 4], [4, 4, 4, 4], 1),
    (1, 8, 20, (1, 1), [1, 1], [1, 1], [1, 1], [0, 0, 0, 0], 1),
    (3, 64, 96, (5, 4), [1, 1], [1, 1], [1, 1], [0, 0, 0, 0], 2),
]  # fmt: skip


def model(x: list[Any], g: list[Any], form: Form, kind: int) -> onnx.ModelProto:
    """Return a model of the operator alone."""
    _, _, _, _, kernel, strides, dilations, pads, groups = form
    made = helper.make_node(
        "ConvWeightGradient", ["x", "g"], ["w"], name="gradient", domain="hagane",
        kernel_shape=kernel, strides=strides, dilations=dilations, pads=pads, group=groups,
    )  # fmt: skip
    inputs = [
        helper.make_tensor_value_info(name, kind, shape) for name, shape in (("x", x), ("g", g))
    ]
    graph = helper.make_graph(
        [made], "graph", inputs, [helper.make_tensor_value_info("w", kind, None)]
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("hagane", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def draw(form: Form, dtype: Any, images: int | None = None) -> tuple[Any, Any, Any]:
    """Return data, a gradient, and the gradient of the weight by PyTorch in double precision."""
    count, channels, maps, size, kernel, strides, dilations, pads, groups = form
    rng, rank = np.random.default_rng(3), len(size)
    x = rng.standard_normal((images or count, channels, *size)).astype(dtype)
    borders = [(pads[i], pads[i + rank]) for i in range(rank)]
    padded = torch.tensor(np.pad(x, [(0, 0), (0, 0), *borders]), dtype=torch.float64)
    weight = torch.zeros(
        (maps, channels // groups, *kernel), dtype=torch.float64, requires_grad=True
    )
    convolution = getattr(torch.nn.functional, f"conv{rank}d")
    y = convolution(padded, weight, None, strides, 0, dilations, groups)
    g = rng.standard_normal(tuple(y.shape)).astype(dtype)
    y.backward(torch.tensor(g, dtype=torch.float64))
    assert weight.grad is not None
    return x, g, weight.grad.numpy()


@every_level
@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.DOUBLE])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_gradients_of_weights_are_pytorchs(form: Form, kind: int, level: str) -> None:
    dtype = np.float32 if kind == TensorProto.FLOAT else np.float64
    x, g, wanted = draw(form, dtype)
    made = session(model([*x.shape], [*g.shape], form, kind), instructions=level)
    assert refused(made) == {}
    (found,) = made.run(None, {"x": x, "g": g})
    tolerance = 1e-5 if kind == TensorProto.FLOAT else 1e-12
    np.testing.assert_allclose(found, wanted, atol=tolerance * abs(wanted).max(), rtol=tolerance)


@pytest.mark.parametrize("form", [FORMS[0], FORMS[2], FORMS[10], FORMS[13], FORMS[6]], ids=str)
def test_batches_and_sizes_stay_open(form: Form) -> None:
    x, g, _ = draw(form, np.float32)
    rank = len(form[3])
    names = [f"s{i}" for i in range(rank)], [f"t{i}" for i in range(rank)]
    shapes = ["n", form[1], *names[0]], ["n", form[2], *names[1]]
    made = session(model(*shapes, form, TensorProto.FLOAT))
    assert refused(made) == {}
    for images in (1, 2, 5):
        x, g, wanted = draw(form, np.float32, images)
        (found,) = made.run(None, {"x": x, "g": g})
        np.testing.assert_allclose(found, wanted, atol=1e-5 * abs(wanted).max(), rtol=1e-5)


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_change_no_bit(threads: int) -> None:
    form = FORMS[2]
    x, g, _ = draw(form, np.float32)
    made = model([*x.shape], [*g.shape], form, TensorProto.FLOAT)
    first, other = (
        session(made, threads=count).run(None, {"x": x, "g": g})[0] for count in (2, threads)
    )
    np.testing.assert_array_equal(first, other)


def test_an_empty_batch_gives_zeros() -> None:
    form = FORMS[0]
    made = session(model(["n", 5, 9, 11], ["n", 7, 9, 11], form, TensorProto.FLOAT))
    x, g = np.zeros((0, 5, 9, 11), np.float32), np.zeros((0, 7, 9, 11), np.float32)
    (found,) = made.run(None, {"x": x, "g": g})
    np.testing.assert_array_equal(found, np.zeros((7, 5, 3, 3), np.float32))


@pytest.mark.parametrize(
    ("x", "g", "change", "text"),
    [
        ((2, 5, 9), (2, 7, 9, 9), {}, "expected data and a gradient of"),
        ((2, 5, 9, 9), (3, 7, 9, 9), {}, "expected data and gradient of one batch"),
        ((2, 5, 9, 9), (2, 7, 9, 9), {"group": 2}, "to divide the 5 channels"),
        ((2, 5, 9, 9), (2, 7, 9, 9), {"kernel": [3]}, "expected 2 numbers in kernel_shape"),
    ],
)
def test_operands_that_do_not_fit_are_named(x: Any, g: Any, change: Any, text: str) -> None:
    kernel, group = change.get("kernel", [3, 3]), change.get("group", 1)
    form: Form = (2, 5, 7, (9, 9), kernel, [1, 1], [1, 1], [1, 1, 1, 1], group)
    with pytest.raises(Exception, match=text):
        session(model([*x], [*g], form, TensorProto.FLOAT))
