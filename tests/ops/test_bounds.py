"""Numbers that make no sense: refused where ONNX Runtime refuses them, in time and by name."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import hagane
from hagane.errors import (
    HaganeError,
    InvalidContent,
    InvalidGraph,
    InvalidModel,
    OutOfMemory,
    TypeInferenceError,
)
from hagane.ops.folding import fold_nodes
from hagane.ops.inference import infer_types
from hagane.ops.registry import find

onnxruntime.set_default_logger_severity(4)

MOST, LEAST = 2**63 - 1, -(2**63)
HUGE = 2**40
X = np.ones((1, 4, 8, 8), np.float32)
W = np.ones((4, 4, 3, 3), np.float32)
ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)


def model(
    op: str,
    inputs: Sequence[Any],
    known: Sequence[int] = (),
    outputs: int = 1,
    opset: int = 21,
    symbolic: bool = False,
    **attributes: Any,
) -> tuple[bytes, dict[str, Any]]:
    """Return a model of one node and its feed; inputs whose numbers are ``known`` are weights."""
    names, arguments, weights, feed = [], [], [], {}
    for number, each in enumerate(inputs):
        name = "" if each is None else f"x{number}"
        names.append(name)
        if each is None:
            continue
        array = np.asarray(each)
        if number in known:
            weights.append(numpy_helper.from_array(array, name))
            continue
        sizes: Any = array.shape
        if symbolic:
            sizes = [f"d{number}{axis}" for axis in range(array.ndim)]
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        arguments.append(helper.make_tensor_value_info(name, kind, sizes))
        feed[name] = array
    results = [f"y{number}" for number in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(op, names, results, "it", **attributes)],
        "g",
        arguments,
        [onnx.ValueInfoProto(name=name) for name in results],
        weights,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return made.SerializeToString(), feed


def refused(engine: Any, data: bytes, feed: dict[str, Any]) -> Exception | None:
    """Return what an engine raises at load or run, or None."""
    try:
        session = engine.InferenceSession(data, providers=["CPUExecutionProvider"])
        session.run(None, feed)
    except Exception as error:
        return error
    return None


ATTRIBUTES: list[tuple[str, str, Any, dict[str, Any]]] = [
    *(
        (op, "strides", [X, W], {"strides": [value, value]})
        for op in ("Conv", "ConvTranspose")
        for value in (0, -1, LEAST)
    ),
    ("ConvTranspose", "strides", [X, W], {"strides": [MOST, MOST]}),
    ("ConvTranspose", "dilations", [X, W], {"dilations": [MOST, MOST]}),
    ("Conv", "group", [X, W], {"group": 0}),
    *(
        (op, name, inputs, {**more, name: [value] * count})
        for op, inputs, more in (
            ("Conv", [X, W], {}),
            ("ConvTranspose", [X, W], {}),
            ("MaxPool", [X], {"kernel_shape": [2, 2]}),
            ("AveragePool", [X], {"kernel_shape": [2, 2]}),
        )
        for name, count, value in (("pads", 4, -1), ("pads", 4, MOST), ("pads", 4, LEAST))
    ),
    ("MaxPool", "kernel_shape", [X], {"kernel_shape": [0, 0]}),
    ("MaxPool", "strides", [X], {"kernel_shape": [2, 2], "strides": [0, 0]}),
    ("AveragePool", "kernel_shape", [X], {"kernel_shape": [MOST, MOST]}),
    ("ConvTranspose", "output_padding", [X, W], {"output_padding": [-1, -1]}),
    ("ConvTranspose", "output_padding below the stride", [X, W], {"output_padding": [10**6] * 2}),
    ("ConvTranspose", "output_shape of axis 0 from 1 to 10", [X, W], {"output_shape": [10**6] * 2}),
    ("ConvTranspose", "output_shape", [X, W], {"output_shape": [0, 0]}),
    ("SpaceToDepth", "blocksize from 1", [X], {"blocksize": 0}),
    ("DepthToSpace", "blocksize from 1", [X], {"blocksize": -1}),
    ("Split", "num_outputs from 1", [X], {"num_outputs": 0}),
    ("Split", r"the number of outputs \(1\)", [X], {"num_outputs": 3, "axis": 1}),
    ("MaxRoiPool", "pooled_shape", [X, np.ones((1, 5), np.float32)], {"pooled_shape": [-1, -1]}),
    (
        "GroupNormalization",
        "num_groups from 1",
        [X, np.ones(4, np.float32), np.ones(4, np.float32)],
        {"num_groups": 0},
    ),
    (
        "GroupNormalization",
        "num_groups to divide the 4 channels",
        [X, np.ones(4, np.float32), np.ones(4, np.float32)],
        {"num_groups": 3},
    ),
]


@pytest.mark.parametrize(("op", "text", "inputs", "attributes"), ATTRIBUTES)
@pytest.mark.parametrize("symbolic", [False, True])
def test_attributes_without_meaning_are_refused_before_anything_counts_with_them(
    op: str, text: str, inputs: Any, attributes: Any, symbolic: bool
) -> None:
    weights = range(1, len(inputs))
    data, feed = model(op, inputs, weights, symbolic=symbolic, **attributes)
    assert refused(onnxruntime, data, feed) is not None
    if symbolic and ("output_shape" in text or "divide" in text):
        return  # what is wrong with them depends on sizes
    with pytest.raises(TypeInferenceError, match=rf"^{op} 'it': expected .*{text}.*got"):
        hagane.InferenceSession(data)


def test_a_stride_of_a_million_is_loaded_at_once_or_refused() -> None:
    data, _ = model("ConvTranspose", [X, W], [1], strides=[10**6, 10**6])
    with pytest.raises(TypeInferenceError, match=r"output 0 would be .* 784,000,672,000,144 bytes"):
        hagane.InferenceSession(data)


@pytest.mark.parametrize("stride", [10**9, 2**31 - 1])
def test_strides_of_open_axes_whose_product_passes_64_bits_are_loaded(stride: int) -> None:
    data, feed = model("ConvTranspose", [X, W], [1], symbolic=True, strides=[stride, stride])
    session = hagane.InferenceSession(data)
    with pytest.raises(HaganeError, match="ConvTranspose 'it'"):
        session.run(None, feed)
    (found,) = session.run(None, {"x0": X[..., :1, :1]})
    assert found.shape == (1, 4, 3, 3)


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize("kernel", [[10**6, 10**6], [3, 2], [3]])
def test_a_kernel_shape_that_is_not_the_weights_is_refused(op: str, kernel: list[int]) -> None:
    data, feed = model(op, [X, W], [1], kernel_shape=kernel)
    assert refused(onnxruntime, data, feed) is not None
    with pytest.raises(TypeInferenceError, match=rf"{op} 'it': expected .*kernel_shape.*got"):
        hagane.InferenceSession(data)


INPUTS: list[tuple[str, str, list[Any], dict[str, Any]]] = [
    *(("Tile", "", [ROWS, np.array(v)], {}) for v in ([2], [-1, 2], [MOST, 2], [HUGE, HUGE])),
    *(
        ("Pad", "", [ROWS, np.array(v)], {"mode": mode})
        for v in ([1], [-3, 0, 0, 0], [MOST, 0, 0, 0], [LEAST, 0, 0, 0])
        for mode in ("constant", "edge")
    ),
    ("Pad", "leave nothing of axis 0", [ROWS, np.array([-1, 0, -1, 0])], {"mode": "reflect"}),
    *(("Expand", "", [ROWS, np.array(v)], {}) for v in ([4, 4], [MOST, 2, 3], [-5, 2, 3])),
    *(("ConstantOfShape", "", [np.array(v)], {}) for v in ([-1], [MOST], [HUGE, HUGE], [2**62, 4])),
    ("Range", "delta other than 0", [np.array(v) for v in (0, 10, 0)], {}),
    *(
        ("Range", "", [np.array(v) for v in ends], {})
        for ends in ((0, MOST, 1), (LEAST, MOST, 1), (MOST, LEAST, -1))
    ),
    *(
        ("OneHot", "positive depth", [np.array([0, 1]), np.array(v), np.array([0.0, 1.0])], {})
        for v in (-1, 0)
    ),
    *(
        ("ReverseSequence", "lengths from 0 to 2", [ROWS, np.array(v)], {})
        for v in ([1, 1, 5], [-1, 1, 1])
    ),
    *(("ReverseSequence", "of 3 sequences", [ROWS, np.array(v)], {}) for v in ([1], [1, 2, 2, 1])),
    ("Split", "", [ROWS, np.array([-1, 4])], {"axis": 1}),
    ("TopK", "", [ROWS, np.array([-1])], {}),
    *(
        (
            op,
            "sequence lengths from 0 to 3",
            [
                np.ones((3, 1, 3), np.float32),
                np.ones((1, gates * 4, 3), np.float32),
                np.ones((1, gates * 4, 4), np.float32),
                None,
                np.array([v], np.int32),
            ],
            {"hidden_size": 4},
        )
        for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1))
        for v in (5, -1)
    ),
    *(
        (
            op,
            r"of 2 sequences|'sequence_lens' to be of the sizes \(2,\)",
            [
                np.ones((3, 2, 3), np.float32),
                np.ones((1, gates * 4, 3), np.float32),
                np.ones((1, gates * 4, 4), np.float32),
                None,
                np.array(lengths, np.int32),
            ],
            {"hidden_size": 4},
        )
        for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1))
        for lengths in ([2], [1, 2, 3])
    ),
    ("Resize", "", [X, None, None, np.array([1, 4, 0, 0])], {}),
    ("Resize", "", [X, None, np.array([1, 1, 0, 0], np.float32)], {}),
    ("Resize", "", [X, None, np.array([1, 1, -1, 1], np.float32)], {}),
    ("Resize", "", [X, None, np.array([1, 1, np.nan, 1], np.float32)], {}),
]


@pytest.mark.parametrize(("op", "text", "inputs", "attributes"), INPUTS)
@pytest.mark.parametrize("at", ["load", "run"])
def test_inputs_without_meaning_are_refused_when_they_are_known(
    op: str, text: str, inputs: Any, attributes: Any, at: str
) -> None:
    last = [number for number, each in enumerate(inputs) if each is not None][-1]
    known = range(1, len(inputs)) if op not in ("ConstantOfShape", "Range") else range(len(inputs))
    if op not in ("ConstantOfShape", "Range", "OneHot"):
        known = range(last, last + 1)
    outputs = 2 if op in ("Split", "TopK") else 1
    data, feed = model(op, inputs, known if at == "load" else (), outputs, **attributes)
    assert refused(onnxruntime, data, feed) is not None
    error = refused(hagane, data, feed)
    if op == "Resize" and at == "run" and error is None:
        pytest.skip("sizes and scales that a run computes are taken as they are")
    assert isinstance(error, HaganeError), error
    assert op in str(error)
    if at == "load":
        assert isinstance(error, TypeInferenceError)
    pattern = text.replace("lengths from", ".*lengths from") or "it"
    import re

    assert re.search(pattern, str(error)), error


def test_values_that_cannot_be_allocated_are_named_with_node_and_bytes() -> None:
    data, feed = model("ConstantOfShape", [np.array([10**6, 10**6])], [0])
    with pytest.raises(
        OutOfMemory, match=r"ConstantOfShape 'it', .* 4,000,000,000,000 bytes"
    ) as at:
        hagane.InferenceSession(data).run(None, feed)
    assert isinstance(at.value, MemoryError)
    data, feed = model("Resize", [X, None, np.array([1, 1, 1e6, 1e6], np.float32)], [])
    with pytest.raises(OutOfMemory, match=r"Resize 'it' failed: .* [0-9,]{18,} bytes"):
        hagane.InferenceSession(data).run(None, feed)
    data, feed = model("ConstantOfShape", [np.array([2**62, 4])], [])
    with pytest.raises(HaganeError, match="ConstantOfShape 'it' failed: .* more bytes than any"):
        hagane.InferenceSession(data).run(None, feed)
    for op, inputs in (("ConstantOfShape", [np.array([-1])]), ("Tile", [ROWS, np.array([-1, 2])])):
        data, feed = model(op, inputs, [])
        with pytest.raises(HaganeError, match=f"{op} 'it' failed: .* of 0 and more, got"):
            hagane.InferenceSession(data).run(None, feed)
    nodes = [
        helper.make_node("Concat", [f"s{i}", f"s{i}"], [f"s{i + 1}"], axis=0) for i in range(40)
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("s0", 1, [1])],
        [onnx.ValueInfoProto(name="s40")],
    )
    doubled = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    with pytest.raises(OutOfMemory, match=r"Concat '-> s40', .* 4,398,046,511,104 bytes"):
        hagane.InferenceSession(doubled.SerializeToString()).run(None, {"s0": np.ones(1, "f4")})


@pytest.mark.parametrize("op", ["Mul", "Add", "both"])
def test_sixty_squarings_of_a_shape_are_loaded_and_run_as_onnxruntime_does(op: str) -> None:
    nodes = [helper.make_node("Shape", ["x"], ["s0"])]
    for i in range(30 if op == "both" else 60):
        if op == "both":
            nodes.append(helper.make_node("Add", [f"s{i}", "one"], [f"t{i}"]))
            nodes.append(helper.make_node("Mul", [f"t{i}", f"s{i}"], [f"s{i + 1}"]))
        else:
            nodes.append(helper.make_node(op, [f"s{i}", f"s{i}"], [f"s{i + 1}"]))
    last = nodes[-1].output[0]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", 1, ["a", "b"])],
        [onnx.ValueInfoProto(name=last)],
        [numpy_helper.from_array(np.array([1]), "one")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    data, feed = made.SerializeToString(), {"x": np.ones((2, 3), np.float32)}
    (expected,) = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(
        None, feed
    )
    (found,) = hagane.InferenceSession(data).run(None, feed)
    np.testing.assert_array_equal(found, expected)


def test_extremes_that_grow_with_each_operator_are_not_followed() -> None:
    """As of a net that cuts both ends of its signals: 3 ** 16 names, a text of gigabytes."""
    nodes = []
    for i in range(16):
        nodes += [
            helper.make_node("Slice", [f"s{i}", "zero", "most", "axis"], [f"l{i}"]),
            helper.make_node("Slice", [f"s{i}", "least", "end", "axis"], [f"r{i}"]),
            helper.make_node("Add", [f"l{i}", f"r{i}"], [f"s{i + 1}"]),
        ]
    numbers = {"zero": 0, "most": 100, "least": -99, "end": 10**6, "axis": 1}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("s0", 1, [2, "n"])],
        [onnx.ValueInfoProto(name="s16")],
        [numpy_helper.from_array(np.array([v]), name) for name, v in numbers.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    session = hagane.InferenceSession(made.SerializeToString())
    x = np.arange(120, dtype=np.float32).reshape(2, 60)
    np.testing.assert_array_equal(session.run(None, {"s0": x})[0], x * 2.0**16)


@pytest.mark.parametrize("text", ["", "80 bytes for a model's values or weights"])
def test_a_model_that_cannot_be_opened_for_want_of_memory_is_named_with_bytes(
    text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "m.onnx").write_bytes(model("Relu", [X])[0])

    def read(*_: Any) -> None:
        raise MemoryError(text)

    monkeypatch.setattr("hagane.runtime.opened.read", read)
    tail = text or r"Python had none for an object; the process took [0-9,]{7,} bytes at most"
    with pytest.raises(OutOfMemory, match=rf"no memory to open the model '.*m\.onnx': {tail}$"):
        hagane.InferenceSession(str(tmp_path / "m.onnx"))


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ([1, 28, 5], r"float32\[1, 4, 8, 8\] \(256 elements\) to \[1, 28, 5\] \(140 elements\); "),
        ([-1, 28, 5], r"to \[-1, 28, 5\]: 256 is not a multiple of 140; "),
        ([-1, 28, -1], r"to \[-1, 28, -1\] with more than one axis open \(-1\); "),
    ],
)
def test_a_shape_that_a_run_computes_is_refused_with_both_counts(
    target: list[int], text: str
) -> None:
    data, feed = model("Reshape", [X, np.array(target)])
    with pytest.raises(InvalidContent, match=r"^Reshape 'it' failed: .*cannot reshape .*" + text):
        hagane.InferenceSession(data).run(None, feed)


def test_sizes_that_do_not_broadcast_in_a_run_are_refused_in_plain_words() -> None:
    data, feed = model("Add", [ROWS, ROWS[:, :2]], symbolic=True)
    text = (
        r"^Add 'it' failed: .*expected equal ones or 1 .*inputs: float32\[2, 3\], float32\[2, 2\]"
    )
    with pytest.raises(InvalidContent, match=text):
        hagane.InferenceSession(data).run(None, feed)


def test_a_node_whose_type_takes_too_much_memory_is_named() -> None:
    def infer(ctx: Any) -> Any:
        return np.empty((2**20, 2**22))

    data = model("Relu", [X])[0]
    graph = ir.from_proto(onnx.load_from_string(data))
    original = find(graph.graph[0])
    with (
        mock.patch("hagane.ops.node.find", return_value=replace(original, infer=infer)),
        pytest.raises(OutOfMemory, match=r"^Relu 'it' failed: .* is 35,184,372,088,832 bytes"),
    ):
        infer_types(graph)


@pytest.mark.parametrize("op", ["LeakyRelu", "Elu", "Selu"])
@pytest.mark.parametrize("alpha", [np.inf, -np.inf, np.nan, 0.0, 0.5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_factor_that_is_not_finite_leaves_positive_numbers_as_they_are(
    op: str, alpha: float, dtype: Any
) -> None:
    x = np.array([-2, 1.5, np.inf, 3, -np.inf, np.nan] * 5, dtype)
    data, feed = model(op, [x], alpha=alpha)
    (found,) = hagane.InferenceSession(data).run(None, feed)
    gamma = 1.05070102214813232421875 if op == "Selu" else 1.0
    positive = x > 0
    np.testing.assert_allclose(found[positive], gamma * x[positive], rtol=1e-6)
    assert np.isnan(found[np.isnan(x)]).all()
    if dtype is np.float32:  # ONNX Runtime has them for no other type
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        np.testing.assert_allclose(found, session.run(None, feed)[0], rtol=1e-6)


NUMBERS = [-1e30, -3e9, -300.7, -1.5, -0.5, 0.5, 1.5, 127.6, 128, 255.5, 256, 65536, 3e9, 1e19]


@pytest.mark.parametrize("to", ["uint8", "int8", "uint16", "int16", "int32", "int64", "uint32"])
@pytest.mark.parametrize("source", ["float32", "float64", "int64"])
def test_numbers_that_an_integer_type_lacks_are_cast_as_onnxruntime_casts_them(
    source: str, to: str
) -> None:
    whole = [LEAST, -HUGE, -300, -129, -1, 0, 127, 128, 255, 256, 65536, 2**31, 2**32, MOST]
    x = np.array(whole if source == "int64" else [*NUMBERS, np.inf, -np.inf, np.nan]).astype(source)
    x = np.tile(x, 16)  # ONNX Runtime casts the last ones of an odd number otherwise than the rest
    data, feed = model("Cast", [x], to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    (found,) = hagane.InferenceSession(data).run(None, feed)
    np.testing.assert_array_equal(found, session.run(None, feed)[0])


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("op", ["Add", "Mul", "Max", "Greater", "Pow"])
@pytest.mark.parametrize(
    "shapes",
    [((5, 6, 0), (5, 6, 1)), ((5, 6, 1), (5, 6, 0)), ((5, 1, 0), (6, 1)), ((0,), (1,)), ((0,), ())],
)
def test_empty_results_have_the_shape_of_onnxruntimes(op: str, shapes: Any, symbolic: bool) -> None:
    data, feed = model(op, [np.ones(shape, np.float32) for shape in shapes], symbolic=symbolic)
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    (found,) = hagane.InferenceSession(data).run(None, feed)
    assert found.shape == session.run(None, feed)[0].shape


@pytest.mark.parametrize(("op", "opset"), [("Upsample", 9), ("Softmax", 11), ("Relu", 6)])
def test_an_attribute_that_the_operator_lacks_is_refused_at_every_opset(
    op: str, opset: int
) -> None:
    inputs = [X, np.array([1, 1, 2, 2], np.float32)] if op == "Upsample" else [X]
    data, feed = model(op, inputs, range(1, len(inputs)), opset=opset, made_up=0)
    assert refused(onnxruntime, data, feed) is not None
    with pytest.raises(TypeInferenceError, match=f"{op} 'it': unknown attribute 'made_up'; its"):
        hagane.InferenceSession(data)


def graph_of(outputs: Sequence[str], weights: Sequence[Any] = (), opsets: Any = None) -> bytes:
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "g",
        [] if weights else [helper.make_tensor_value_info("x", 1, [2])],
        [helper.make_tensor_value_info(name, 1, [2]) for name in outputs],
        weights,
    )
    made = helper.make_model(graph, ir_version=10)
    if opsets is not None:
        del made.opset_import[:]
    return made.SerializeToString()


def test_graphs_that_are_none_are_named() -> None:
    feed = {"x": np.ones(2, np.float32)}
    twice = [numpy_helper.from_array(np.ones(2, np.float32), "x") for _ in range(2)]
    cases: list[tuple[bytes, type[Exception], str]] = [
        (graph_of(["y"], opsets=()), InvalidModel, "imports no operator set"),
        (
            graph_of(["y"], twice),
            InvalidGraph,
            "the initializer 'x' of the given bytes is given twice",
        ),
        (graph_of([]), InvalidGraph, "has no outputs"),
    ]
    for data, kind, text in cases:
        assert refused(onnxruntime, data, {} if b"two" in data else feed) is not None
        with pytest.raises(kind, match=text):
            hagane.InferenceSession(data)


def test_an_output_that_is_listed_again_is_a_copy() -> None:
    feed = {"x": np.ones(2, np.float32)}
    data = graph_of(["y", "y", "x", "x", "y"])
    session = hagane.InferenceSession(data)
    expected = onnxruntime.InferenceSession(data).run(None, feed)
    found = session.run(None, feed)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    names = [output.name for output in session.get_outputs()]
    assert names == ["y", "y_again_1", "x", "x_again_1", "y_again_2"]
    assert [output.shape for output in session.get_outputs()] == [[2]] * 5
    found[0][0] = 7
    assert found[1][0] == found[4][0] == expected[0][0]


@pytest.mark.parametrize("op", ["AveragePool", "MaxPool", "LpPool"])
def test_windows_that_lie_in_the_padding_whole_are_refused(op: str) -> None:
    x = np.ones((1, 3, 8, 8), np.float32)
    data, _ = model(op, [x], kernel_shape=[2, 2], pads=[0, 2, 0, 0])
    with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.Fail, match="smaller than"):
        onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    with pytest.raises(
        hagane.errors.TypeInferenceError,
        match=r"expected pads smaller than the kernel \[2, 2\], got \[0, 2, 0, 0\]",
    ):
        hagane.InferenceSession(data)


def test_hardmax_of_nothing_is_nothing() -> None:
    x = np.ones((5, 6, 0), np.float32)
    data, feed = model("Hardmax", [x], axis=2)
    (found,) = hagane.InferenceSession(data).run(None, feed)
    assert found.shape == (5, 6, 0)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("Resize", [X, None, np.array([1, 1, 1e5, 1e3], np.float32)], {"mode": "cubic"}),
        ("Resize", [X, None, None, np.array([1, 4, 10**9, 8])], {}),
        ("Resize", [X, None, np.array([1, 1, 1e-9, 1], np.float32)], {"antialias": 1}),
        ("Range", [np.array(v) for v in (0, 10**9, 1)], {}),
        ("Range", [np.float32(v) for v in (0, 1e9, 1)], {}),
        ("Expand", [ROWS, np.array([10**9, 2, 3])], {}),
    ],
)
def test_constants_that_numbers_in_the_file_blow_up_are_not_computed_at_load(
    op: str, inputs: Any, attributes: Any
) -> None:

    if attributes.get("antialias"):
        attributes = {**attributes, "mode": "linear"}
    data, _ = model(op, inputs, range(len(inputs)), **attributes)
    tracemalloc.start()
    hagane.InferenceSession(data)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 128 << 20


def test_many_constants_of_which_each_is_large_are_not_all_computed_ahead() -> None:
    shape = numpy_helper.from_array(np.array([4 << 20]), "shape")
    nodes = [helper.make_node("ConstantOfShape", ["shape"], [f"y{i}"]) for i in range(40)]
    outputs = [onnx.ValueInfoProto(name=f"y{i}") for i in range(40)]
    graph = helper.make_graph(nodes, "g", [], outputs, [shape])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    model = ir.serde.deserialize_model(made)
    constants = {model.graph.initializers["shape"]: np.array([4 << 20])}
    folded = fold_nodes(list(model.graph), constants, infer_types(model).types)
    assert 0 < sum(array.nbytes for array in folded.values()) <= 128 << 20


def test_a_reshape_to_a_negative_size_of_the_run_is_refused_by_name() -> None:
    data, feed = model("Reshape", [ROWS, np.array([-2, 3])])
    assert refused(onnxruntime, data, feed) is not None
    with pytest.raises(HaganeError, match="Reshape 'it' .*negative size other than -1"):
        hagane.InferenceSession(data).run(None, feed)


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("what", ["scales", "sizes"])
def test_a_resize_to_negative_numbers_of_the_run_is_refused_by_name(
    what: str, symbolic: bool
) -> None:
    scales = np.array([1, 1, -1, 1], np.float32)
    inputs = [X, None, scales] if what == "scales" else [X, None, None, np.array([1, 4, -1, 8])]
    data, feed = model("Resize", inputs, symbolic=symbolic)
    assert refused(onnxruntime, data, feed) is not None
    with pytest.raises(HaganeError, match=f"Resize 'it' .*expected positive {what}"):
        hagane.InferenceSession(data).run(None, feed)


def test_declared_sizes_beyond_any_memory_are_refused_or_passed_over() -> None:
    node = helper.make_node("Expand", ["x", "s"], ["y"])
    x = helper.make_tensor_value_info("x", 1, [1, 2])
    shape = helper.make_tensor_value_info("s", 7, [2])
    wide = helper.make_tensor_value_info("x", 1, [2**62, 2])
    feed = {"x": np.ones((1, 2), np.float32), "s": np.array([3, 2])}
    for first, out in [(x, [2**63 - 1, 2]), (wide, [3, 2])]:
        outputs = [helper.make_tensor_value_info("y", 1, out)]
        graph = helper.make_graph([node], "g", [first, shape], outputs)
        data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
        if first is x:
            made = hagane.InferenceSession(data.SerializeToString())
            assert made.run(None, feed)[0].shape == (3, 2)
        else:
            with pytest.raises(TypeInferenceError, match="input 'x': expected sizes of a tensor"):
                hagane.InferenceSession(data.SerializeToString())


def test_a_tensor_whose_content_is_of_another_type_is_refused_by_node_and_attribute() -> None:
    tensor = helper.make_tensor("v", 1, [1], [2.0])
    tensor.data_type = 7
    node = helper.make_node("Constant", [], ["y"], value=tensor, name="c")
    outputs = [helper.make_tensor_value_info("y", 7, [1])]
    graph = helper.make_graph([node], "g", [], outputs)
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    with pytest.raises(HaganeError, match="damaged"):
        hagane.InferenceSession(data.SerializeToString())
