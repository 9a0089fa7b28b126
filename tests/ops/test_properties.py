"""Drawn attributes and shapes: results against ONNX Runtime, type rules against results."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from hagane.graph import TensorType, load
from hagane.ops import infer_types
from hagane.passes.legalise import legalise
from hagane.symbolic import evaluate, symbol, symbols_of
from tests.oracle import assert_agrees, node_model, run_onnxruntime

drawn = settings(
    max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def assert_node_and_type(
    op_type: str, inputs: list[np.ndarray | None], n_outputs: int = 1, **sets: Any
) -> None:
    """Compare a node with ONNX Runtime, and its symbolic shapes with the sizes computed."""
    model, feed = node_model(op_type, inputs, n_outputs, **sets)
    expected = run_onnxruntime(model, feed)
    assert_agrees(model, feed, rtol=1e-3, atol=1e-4)
    graph = load(model)
    legalise(graph)
    shapes = {
        name: [symbol(f"{name}_{axis}") for axis in range(array.ndim)]
        for name, array in feed.items()
    }
    sizes = {
        f"{name}_{axis}": size
        for name, array in feed.items()
        for axis, size in enumerate(array.shape)
    }
    types = infer_types(graph, shapes=shapes)
    for value, array in zip(graph.graph.outputs, expected, strict=True):
        found = types.types[value]
        assert isinstance(found, TensorType)
        assert found.shape is not None
        assert len(found.shape) == array.ndim
        for dim, size in zip(found.shape, array.shape, strict=True):
            if symbols_of(dim) <= sizes.keys():
                assert evaluate(dim, sizes) == size


@st.composite
def windows(draw: st.DrawFn, dilate: bool = True) -> tuple[list[int], dict[str, Any]]:
    """Return spatial sizes and window attributes for one to three axes."""
    rank = draw(st.integers(1, 3))
    sizes = draw(st.lists(st.integers(5, 9), min_size=rank, max_size=rank))
    kernel = draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank))
    attributes: dict[str, Any] = {
        "kernel_shape": kernel,
        "strides": draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank)),
    }
    if dilate:
        attributes["dilations"] = draw(st.lists(st.integers(1, 2), min_size=rank, max_size=rank))
    mode = draw(st.sampled_from(["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]))
    if mode == "NOTSET":
        pads = [draw(st.integers(0, k // 2)) for k in kernel]
        attributes["pads"] = pads + [draw(st.integers(0, k // 2)) for k in kernel]
    else:
        attributes["auto_pad"] = mode
        # Where windows leave gaps, ONNX Runtime's pooling pads by a negative amount.
        strides = zip(attributes["strides"], kernel, strict=True)
        attributes["strides"] = [min(stride, size) for stride, size in strides]
    return sizes, attributes


@drawn
@given(windows(), st.integers(1, 2), st.sampled_from([1, 2, 4]), st.booleans())
def test_convolutions(
    window: tuple[list[int], dict[str, Any]], batch: int, group: int, bias: bool
) -> None:
    sizes, attributes = window
    if "auto_pad" in attributes and attributes["auto_pad"].startswith("SAME"):
        # ONNX Runtime takes no dilation there.
        attributes = {**attributes, "dilations": [1] * len(sizes)}
    x = normal(batch, 4, *sizes)
    w = normal(8, 4 // group, *attributes["kernel_shape"])
    assert_node_and_type(
        "Conv", [x, w, normal(8) if bias else None], group=group, **attributes, constants=(1,)
    )


@drawn
@given(windows(), st.sampled_from([1, 2]), st.booleans())
def test_transposed_convolutions(
    window: tuple[list[int], dict[str, Any]], group: int, more: bool
) -> None:
    sizes, attributes = window
    assume(attributes.get("auto_pad", "NOTSET") in ("NOTSET", "VALID"))
    if more:
        attributes["output_padding"] = [
            max(0, min(s, d) - 1)
            for s, d in zip(attributes["strides"], attributes["dilations"], strict=True)
        ]
    x, w = normal(2, 4, *sizes), normal(4, 3, *attributes["kernel_shape"])
    assert_node_and_type("ConvTranspose", [x, w], group=group, **attributes, constants=(1,))


@drawn
@given(windows(dilate=False), st.booleans(), st.booleans())
def test_average_pooling(
    window: tuple[list[int], dict[str, Any]], ceil: bool, count_pad: bool
) -> None:
    sizes, attributes = window
    ceil = ceil and "auto_pad" not in attributes
    assert_node_and_type(
        "AveragePool",
        [normal(1, 2, *sizes)],
        opset=19,
        ceil_mode=int(ceil),
        count_include_pad=int(count_pad),
        **attributes,
    )


@drawn
@given(windows(), st.booleans())
def test_max_pooling_with_positions(window: tuple[list[int], dict[str, Any]], ceil: bool) -> None:
    sizes, attributes = window
    if "auto_pad" in attributes:
        ceil, attributes = False, {**attributes, "dilations": [1] * len(sizes)}
    assert_node_and_type("MaxPool", [normal(1, 2, *sizes)], 2, ceil_mode=int(ceil), **attributes)


@drawn
@given(st.data())
def test_slices(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=3))
    axes = data.draw(st.lists(st.sampled_from(range(len(shape))), unique=True, min_size=1))
    steps = [data.draw(st.sampled_from([-3, -2, -1, 1, 2, 3])) for _ in axes]
    # "To the end" is the largest number forwards and the smallest backwards; ONNX Runtime gives
    # the other combinations a meaning of its own.
    ends = [
        data.draw(st.integers(-8, 8) | st.sampled_from([s * 2**31 - (s > 0), s * (2**63 - 1)]))
        for s in np.sign(steps).tolist()
    ]
    starts = [data.draw(st.integers(-8, 8)) for _ in axes]
    numbers = [np.array(v, dtype=np.int64) for v in (starts, ends, axes, steps)]
    assert_node_and_type("Slice", [normal(*shape), *numbers], constants=(1, 2, 3, 4))


@drawn
@given(st.data())
def test_reductions(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    rank = len(shape)
    axes = data.draw(st.lists(st.integers(-rank, rank - 1), unique_by=lambda a: a % rank))
    name = data.draw(
        st.sampled_from(["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSumExp"])
    )
    axes_input = np.array(axes, dtype=np.int64) if axes else None
    assert_node_and_type(
        f"Reduce{name}",
        [normal(*shape), axes_input],
        opset=18,
        keepdims=data.draw(st.integers(0, 1)),
        constants=(1,) if axes else (),
    )


@drawn
@given(st.data())
def test_broadcast_arithmetic(data: st.DataObject) -> None:
    full = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))

    def part() -> list[int]:
        kept = full[data.draw(st.integers(0, len(full))) :]
        return [data.draw(st.sampled_from([1, size])) for size in kept]

    name = data.draw(st.sampled_from(["Add", "Sub", "Mul", "Div", "Max", "Min"]))
    assert_node_and_type(name, [normal(*part()), normal(*part())])


@drawn
@given(st.data())
def test_stacked_matrix_products(data: st.DataObject) -> None:
    size = st.integers(1, 4)
    m, k, n = (data.draw(size) for _ in range(3))
    batch = data.draw(st.lists(size, max_size=2))
    left = [data.draw(st.sampled_from([1, b])) for b in batch] + [m, k]
    right = [data.draw(st.sampled_from([1, b])) for b in batch] + [k, n]
    if data.draw(st.booleans()):
        left = [k]
    elif data.draw(st.booleans()):
        right = [k]
    assert_node_and_type("MatMul", [normal(*left), normal(*right)])


@drawn
@given(st.data())
def test_padding(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(3, 5), min_size=1, max_size=3))
    mode = data.draw(st.sampled_from(["constant", "reflect", "edge", "wrap"]))
    amount = st.integers(-1 if mode == "constant" else 0, 2)
    pads = data.draw(st.lists(amount, min_size=2 * len(shape), max_size=2 * len(shape)))
    value = np.array(2.5, np.float32) if mode == "constant" else None
    assert_node_and_type(
        "Pad", [normal(*shape), np.array(pads), value], opset=19, mode=mode, constants=(1,)
    )


@drawn
@given(st.data())
def test_resizing_by_sizes(data: st.DataObject) -> None:
    height, width, h, w = (data.draw(st.integers(1, 7)) for _ in range(4))
    mode = data.draw(st.sampled_from(["nearest", "linear", "cubic"]))
    transformation = data.draw(
        st.sampled_from(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
    )
    sizes = np.array([1, 2, h, w])
    extra = {"nearest_mode": data.draw(st.sampled_from(["floor", "round_prefer_floor"]))}
    assert_node_and_type(
        "Resize",
        [normal(1, 2, height, width), None, None, sizes],
        opset=18,
        mode=mode,
        coordinate_transformation_mode=transformation,
        constants=(3,),
        **extra,
    )


@drawn
@given(st.data())
def test_reshapes(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    target = data.draw(st.permutations(shape))
    if data.draw(st.booleans()):
        target[data.draw(st.integers(0, len(target) - 1))] = -1
    else:
        target = [
            0 if size == shape[axis] and data.draw(st.booleans()) else size
            for axis, size in enumerate(target)
        ]
    assert_node_and_type("Reshape", [normal(*shape), np.array(target)], constants=(1,))


@drawn
@given(st.data())
def test_gathers(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    size = shape[axis]
    count = data.draw(st.lists(st.integers(0, 3), max_size=2))
    indices = np.random.default_rng(0).integers(-size, size, count)
    assert_node_and_type("Gather", [normal(*shape), indices], axis=axis)


def test_recurrent_layers_agree_in_every_direction() -> None:
    for name, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        for direction, count in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
            n, size = 3, 4
            inputs: list[np.ndarray | None] = [
                normal(5, 2, size),
                normal(count, gates * n, size),
                normal(count, gates * n, n),
                normal(count, 2 * gates * n),
                np.array([5, 3], dtype=np.int32),
                normal(count, 2, n),
            ]
            if name == "LSTM":
                inputs += [normal(count, 2, n), normal(count, 3 * n)]
            outputs = 3 if name == "LSTM" else 2
            assert_node_and_type(name, inputs, outputs, hidden_size=n, direction=direction)


def test_a_symbolic_broadcast_takes_the_larger_of_two_dimensions() -> None:
    model, _ = node_model("Add", [normal(2, 3), normal(2, 3)])
    graph = load(model)
    legalise(graph)
    types = infer_types(graph, shapes={"x0": ["n", 3], "x1": ["m", 3]})
    assert str(types.types[graph.graph.outputs[0]]) == "float32[max(m, n), 3]"
