"""More operators for ``operators.py``: other types, odd sizes, other ranks, loops and sequences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from benchmarks.operator_models import RNG, Feed, case, draw, indices, numbers, trees
from onnx import TensorProto, helper, numpy_helper

Case = Callable[[], tuple[onnx.ModelProto, Feed]]


def half(*shape: int) -> np.ndarray:
    """Return normal float16 numbers."""
    return draw(*shape, dtype="float16")


def double(*shape: int) -> np.ndarray:
    """Return normal float64 numbers."""
    return draw(*shape, dtype="float64")


def small(*shape: int, dtype: str = "uint8", least: int = 0, most: int = 255) -> np.ndarray:
    """Return drawn whole numbers of a type."""
    return RNG.integers(least, most, shape).astype(dtype)


def truth(*shape: int) -> np.ndarray:
    """Return drawn truth values."""
    return RNG.random(shape) > 0.5


def unary(operator: str, x: np.ndarray, **more: Any) -> Case:
    """Return a case of one operand with open sizes."""
    return lambda: case(operator, {"x": x}, **more)


def with_constants(
    operator: str, feed: Feed, constants: Feed, fixed: Sequence[str] = (), **more: Any
) -> Case:
    """Return a case whose last operands are constants."""
    return lambda: case(operator, feed, fixed, constants=constants, **more)


def convolution(operator: str, x: np.ndarray, w: np.ndarray, **more: Any) -> Case:
    """Return a convolution with constant weights, and channels that are known."""
    return with_constants(operator, {"x": x}, {"w": w}, ["x:1"], **more)


def recurrent(operator: str, gates: int, *, lengths: bool, hidden: int = 50) -> Case:
    """Return a recurrent layer over 40 steps of 3 rows."""
    feed: Feed = {"x": draw(40, 3, 35)}
    constants = {"w": draw(1, gates * hidden, 35) / 8, "r": draw(1, gates * hidden, hidden) / 8}
    if not lengths:
        return with_constants(
            operator, feed, constants, ["x:2"], outputs=("y", "h"), hidden_size=hidden
        )

    def made() -> tuple[onnx.ModelProto, Feed]:
        node = helper.make_node(
            operator, ["x", "w", "r", "", "n"], ["y", "h"], hidden_size=hidden, direction="forward"
        )
        more = {"n": np.array([40, 7, 23], np.int32)}
        return graph([node], feed | more, ("y", "h"), constants), feed | more

    return made


def graph(
    nodes: Sequence[onnx.NodeProto],
    feed: Feed,
    outputs: Sequence[str],
    constants: Feed | None = None,
    known: Mapping[str, Sequence[int | str]] | None = None,
) -> onnx.ModelProto:
    """Return a model of some nodes; all sizes are open but for shapes that are ``known``."""
    inputs = [
        helper.make_tensor_value_info(
            key,
            helper.np_dtype_to_tensor_dtype(array.dtype),
            (known or {}).get(key) or [f"{key}_{i}" for i in range(array.ndim)],
        )
        for key, array in feed.items()
    ]
    results = [helper.make_tensor_value_info(key, TensorProto.UNDEFINED, None) for key in outputs]
    for value in results:
        value.ClearField("type")
    kept = [numpy_helper.from_array(array, key) for key, array in (constants or {}).items()]
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(
        helper.make_graph(list(nodes), "g", inputs, results, kept),
        ir_version=9,
        opset_imports=[*opsets, helper.make_opsetid("com.microsoft", 1)],
    )


def quantized_convolution(channels: int, maps: int, size: int, group: int = 1) -> Case:
    """Return a QLinearConv of constant weights."""
    feed = {"x": small(1, channels, size, size)}
    constants = {
        "xs": np.array(0.02, np.float32), "xz": np.array(120, np.uint8),
        "w": small(maps, channels // group, 3, 3, dtype="int8", least=-127, most=127),
        "ws": np.full(maps, 0.01, np.float32), "wz": np.zeros(maps, np.int8),
        "ys": np.array(0.3, np.float32), "yz": np.array(128, np.uint8),
    }  # fmt: skip
    return with_constants("QLinearConv", feed, constants, ["x:1"], group=group, pads=[1, 1, 1, 1])


def value(name: str, kind: int, shape: Sequence[int | str] | None = None) -> onnx.ValueInfoProto:
    """Return a declared value."""
    return helper.make_tensor_value_info(name, kind, shape)


FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def loop(limit: str, *, named: bool = True, first: int = 64) -> tuple[onnx.ModelProto, Feed]:
    """Return a loop of small sums over the rows of an input; its limit is a formula or an input.

    Args:
        limit: Which.
        named: Whether the names of sizes tell that rows are as long as the first sum.
        first: The length of the first sum; one that does not fit is a constant.
    """
    body = helper.make_graph(
        [
            helper.make_node("Gather", ["x", "i"], ["row"]),
            helper.make_node("Mul", ["s", "decay"], ["m"]),
            helper.make_node("Add", ["m", "row"], ["t"]),
            helper.make_node("Identity", ["go"], ["goes"]),
            helper.make_node("Identity", ["t"], ["kept"]),
        ],
        "body",
        [value("i", INT64, ()), value("go", BOOL, ()), value("s", FLOAT, ["w"])],
        [value("goes", BOOL, ()), value("t", FLOAT, ["w"]), value("kept", FLOAT, ["w"])],
    )
    feed: Feed = {"x": draw(200, 64), "s0": draw(first)}
    constants: Feed = {
        "decay": np.array(0.9, np.float32),
        "one": np.array(1),
        "zero": np.array([0]),
    }
    nodes = []
    if limit == "t - 1":
        nodes = [
            helper.make_node("Shape", ["x"], ["t_x"], start=0, end=1),
            helper.make_node("Squeeze", ["t_x", "zero"], ["rows"]),
            helper.make_node("Sub", ["rows", "one"], ["n"]),
        ]
    elif limit == "input":
        feed["n"] = np.array(199)
    else:
        constants["n"] = np.array(199)
    if first != 64:
        constants["s0"] = feed.pop("s0")
        del body.output[2], body.node[-1]  # its shape would be that of the first state
        for state in (body.input[2], body.output[1]):
            state.type.tensor_type.ClearField("shape")
        nodes.append(helper.make_node("Loop", ["n", "", "s0"], ["y"], body=body))
        return graph(nodes, feed, ("y",), constants), feed
    nodes.append(helper.make_node("Loop", ["n", "", "s0"], ["y", "all"], body=body))
    known = {"x": ["t", "w"], "s0": ["w"]} if named else None
    known = {"x": [200, 64], "s0": [64]} if limit == "fixed" else known
    return graph(nodes, feed, ("y", "all"), constants, known), feed


def scan(*, named: bool = True) -> tuple[onnx.ModelProto, Feed]:
    """Return a Scan of a cell over open steps and rows.

    Args:
        named: Whether the names of sizes tell that states and slices have one shape.
    """
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["h", "r"], ["p"]),
            helper.make_node("Add", ["p", "x"], ["c"]),
            helper.make_node("Tanh", ["c"], ["t"]),
            helper.make_node("Identity", ["t"], ["kept"]),
        ],
        "body",
        [value("h", FLOAT, ["b", 48]), value("x", FLOAT, ["b", 48])],
        [value("t", FLOAT, ["b", 48]), value("kept", FLOAT, ["b", 48])],
        [numpy_helper.from_array(draw(48, 48) / 8, "r")],
    )
    if not named:
        for each in (*body.input, *body.output):
            each.type.tensor_type.ClearField("shape")
    feed = {"h0": draw(5, 48), "xs": draw(60, 5, 48)}
    node = helper.make_node("Scan", ["h0", "xs"], ["y", "all"], body=body, num_scan_inputs=1)
    known = {"h0": ["b", 48], "xs": ["t", "b", 48]} if named else None
    return graph([node], feed, ("y", "all"), known=known), feed


def branch(*others: str) -> tuple[onnx.ModelProto, Feed]:
    """Return an If that multiplies an input or adds one, the same or one of another shape."""
    sides = [
        helper.make_graph(
            [helper.make_node(kind, [name, name], ["r"])], kind, [], [value("r", FLOAT)]
        )
        for kind, name in zip(("Mul", "Add"), ("x", *(others or "x")), strict=True)
    ]
    for side in sides:
        side.output[0].ClearField("type")
        side.output[0].type.tensor_type.elem_type = FLOAT
    node = helper.make_node("If", ["c"], ["y"], then_branch=sides[0], else_branch=sides[1])
    feed = {"c": np.array(True), "x": draw(64, 100)}
    feed |= {name: draw(40, 30) for name in others}
    return graph([node], feed, ("y",)), feed


def appended_in_a_loop(rows: list[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Return nodes that append ``rows``, made anew in each of ``n`` iterations, and join them."""
    states = [helper.make_tensor_sequence_value_info(name, FLOAT, None) for name in "st"]
    body = helper.make_graph(
        [
            *rows,
            helper.make_node("SequenceInsert", ["s", "rows"], ["t"]),
            helper.make_node("Identity", ["go"], ["goes"]),
        ],
        "body",
        [value("i", INT64, ()), value("go", BOOL, ()), states[0]],
        [value("goes", BOOL, ()), states[1]],
    )
    return [
        helper.make_node("SequenceEmpty", [], ["s0"]),
        helper.make_node("Loop", ["n", "", "s0"], ["pieces"], body=body),
        helper.make_node("ConcatFromSequence", ["pieces"], ["y"], axis=0),
    ]


def sequence(kind: str) -> tuple[onnx.ModelProto, Feed]:
    """Return pieces of a split that are joined, or chosen from, or a sequence that a loop makes."""
    if kind == "loop":
        rows = [
            helper.make_node("Gather", ["x", "i"], ["row"]),
            helper.make_node("Unsqueeze", ["row", "zero"], ["rows"]),
        ]
        nodes = appended_in_a_loop(rows)
        feed: Feed = {"x": draw(100, 64), "n": np.array(80)}
        return graph(nodes, feed, ("y",), {"zero": np.array([0])}), feed
    if kind == "differing":
        rows = [  # item i has i + 1 rows
            helper.make_node("Add", ["i", "one"], ["end"]),
            helper.make_node("Unsqueeze", ["end", "zero"], ["ends"]),
            helper.make_node("Slice", ["x", "zero", "ends"], ["rows"]),
        ]
        nodes = appended_in_a_loop(rows)
        feed = {"x": draw(100, 64), "n": np.array(40)}
        return graph(nodes, feed, ("y",), {"zero": np.array([0]), "one": np.array(1)}), feed
    nodes = [helper.make_node("SplitToSequence", ["x", "p"], ["s"], axis=0)]
    if kind == "at":
        nodes.append(helper.make_node("SequenceAt", ["s", "i"], ["y"]))
        feed = {"x": draw(100, 64), "p": numbers(30, 30, 40), "i": np.array(-1)}
        return graph(nodes, feed, ("y",)), feed
    nodes.append(helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=1))
    feed = {"x": draw(100, 64)}
    return graph(nodes, feed, ("y",), {"p": np.array(25)}), feed


def normal_layer(kind: str, *shape: int, axis: int, dtype: str = "float32") -> Case:
    """Return a normalisation over the axes from one on."""
    scale = np.ones(shape[axis:], dtype)
    return with_constants(
        kind, {"x": draw(*shape, dtype=dtype)}, {"s": scale, "b": scale}, axis=axis
    )


def grouped_attention(rows: int, past: int) -> tuple[onnx.ModelProto, Feed]:
    """Return GroupQueryAttention of 8 heads, of which two keys and values are kept."""
    feed = {
        "q": draw(1, rows, 512), "k": draw(1, rows, 128), "v": draw(1, rows, 128),
        "pk": draw(1, 2, past, 64), "pv": draw(1, 2, past, 64),
        "n": np.array([past + rows - 1], np.int32), "t": np.array(past + rows, np.int32),
    }  # fmt: skip
    node = helper.make_node(
        "GroupQueryAttention", list(feed), ["y", "ok", "ov"],
        domain="com.microsoft", num_heads=8, kv_num_heads=2,
    )  # fmt: skip
    known = {
        "q": [1, "s", 512], "k": [1, "s", 128], "v": [1, "s", 128],
        "pk": [1, 2, "p", 64], "pv": [1, 2, "p", 64],
    }  # fmt: skip
    return graph([node], feed, ("y", "ok", "ov"), known=known), feed


def support_vectors(kind: str, rows: int) -> tuple[onnx.ModelProto, Feed]:
    """Return an SVM regressor of 200 vectors of 20 features."""
    return case(
        "ai.onnx.ml:SVMRegressor", {"x": draw(rows, 20)}, ["x:1"],
        kernel_type=kind, kernel_params=[0.05, 0.5, 3.0], n_supports=200, rho=[0.1],
        coefficients=draw(200).tolist(), support_vectors=draw(200 * 20).tolist(),
    )  # fmt: skip


ODD: Mapping[str, Case] = {
    # Elements of other types.
    "Add, int64, broadcast": lambda: case(
        "Add", {"a": indices(9, 64, 1, 300), "b": indices(9, 77, 1)}
    ),
    "Add, float64": lambda: case("Add", {"a": double(64, 999), "b": double(64, 999)}),
    "Mul, float16": lambda: case("Mul", {"a": half(64, 999), "b": half(64, 999)}),
    "Add, uint8": lambda: case("Add", {"a": small(64, 999), "b": small(64, 999)}),
    "Div, int64": lambda: case("Div", {"a": indices(999, 64, 999), "b": indices(99, 64, 999) + 1}),
    "Div, int32 by number": lambda: case(
        "Div", {"a": small(64, 999, dtype="int32"), "b": np.array(7, np.int32)}
    ),
    "Mod, int64": lambda: case("Mod", {"a": indices(999, 64, 999), "b": indices(99, 64, 999) + 1}),
    "Mod, float, fmod": lambda: case("Mod", {"a": draw(64, 999), "b": draw(64, 999)}, fmod=1),
    "Pow, float": lambda: case("Pow", {"a": abs(draw(64, 999)), "b": draw(64, 999)}),
    "Pow, int64": lambda: case("Pow", {"a": indices(9, 64, 999), "b": indices(5, 64, 999)}),
    "Equal, int64": lambda: case("Equal", {"a": indices(9, 64, 999), "b": indices(9, 64, 999)}),
    "And": lambda: case("And", {"a": truth(64, 999), "b": truth(64, 999)}),
    "BitShift, uint8": lambda: case(
        "BitShift", {"a": small(64, 999), "b": small(64, 999, most=7)}, direction="LEFT"
    ),
    "Where, broadcast": lambda: case(
        "Where", {"c": truth(64, 1, 100), "a": draw(30, 1), "b": draw(64, 30, 100)}
    ),
    "Where, int64": lambda: case(
        "Where", {"c": truth(64, 999), "a": indices(9, 64, 999), "b": indices(9, 64, 1)}
    ),
    "Clip, int32": lambda: case(
        "Clip",
        {
            "x": small(64, 999, dtype="int32"),
            "a": np.array(20, np.int32),
            "b": np.array(90, np.int32),
        },
    ),
    "Cast, float to uint8": unary("Cast", abs(draw(64, 999)) * 50, to=TensorProto.UINT8),
    "Cast, float16 to float": unary("Cast", half(64, 999), to=FLOAT),
    "Cast, bool to float": unary("Cast", truth(64, 999), to=FLOAT),
    "Cast, int64 to int32": unary("Cast", indices(999, 64, 999), to=TensorProto.INT32),
    "Cast, float64 to float": unary("Cast", double(64, 999), to=FLOAT),
    "Exp, float64": unary("Exp", double(64, 999)),
    "Tanh, float16": unary("Tanh", half(64, 999)),
    "Erf": unary("Erf", draw(64, 999)),
    "Sin": unary("Sin", draw(64, 999)),
    "Acos": unary("Acos", np.tanh(draw(64, 999))),
    "Atan": unary("Atan", draw(64, 999)),
    "Gelu, tanh": unary("Gelu", draw(64, 999), approximate="tanh"),
    "Round": unary("Round", draw(64, 999)),
    "Sign, int64": unary("Sign", indices(9, 64, 999) - 4),
    "IsNaN": unary("IsNaN", draw(64, 999)),
    "Max of three": lambda: case("Max", {"a": draw(64, 999), "b": draw(999), "c": draw(64, 1)}),
    "PRelu": lambda: case("PRelu", {"x": draw(4, 33, 30, 30), "s": draw(33, 1, 1)}),
    # Moves.
    "Transpose, 5-D": unary("Transpose", draw(3, 17, 9, 13, 11), perm=[4, 2, 0, 3, 1]),
    "Transpose, uint8 NHWC": unary("Transpose", small(1, 300, 401, 3), perm=[0, 3, 1, 2]),
    "Transpose, 2-D": unary("Transpose", draw(333, 777), perm=[1, 0]),
    "Concat, last axis": lambda: case(
        "Concat", {"a": draw(500, 7), "b": draw(500, 33), "c": draw(500, 1)}, axis=-1
    ),
    "Split, last axis": lambda: case(
        "Split", {"x": draw(300, 96)}, outputs=("y", "z", "w"), num_outputs=3, axis=1
    ),
    "Gather, axis 1": lambda: case(
        "Gather", {"x": draw(64, 300, 33), "i": indices(300, 50)}, axis=1
    ),
    "Gather, last axis": lambda: case(
        "Gather", {"x": draw(300, 300), "i": indices(300, 70)}, axis=-1
    ),
    "Gather, rows uint8": lambda: case("Gather", {"x": small(1000, 128), "i": indices(1000, 700)}),
    "GatherND, batch": lambda: case(
        "GatherND", {"x": draw(8, 100, 32), "i": indices(100, 8, 300, 1)}, ["i:2"], batch_dims=1
    ),
    "GatherElements, axis 1": lambda: case(
        "GatherElements", {"x": draw(300, 200), "i": indices(200, 300, 77)}, axis=1
    ),
    "ScatterND, add": lambda: case(
        "ScatterND",
        {"x": draw(512, 64), "i": indices(512, 900, 1), "u": draw(900, 64)},
        ["i:1"],
        reduction="add",
    ),
    "ScatterElements, max": lambda: case(
        "ScatterElements",
        {"x": draw(200, 200), "i": indices(200, 150, 200), "u": draw(150, 200)},
        reduction="max",
    ),
    "ScatterElements, axis 1": lambda: case(
        "ScatterElements",
        {"x": draw(200, 300), "i": indices(300, 200, 100), "u": draw(200, 100)},
        axis=1,
    ),
    "Slice, steps": lambda: case(
        "Slice",
        {
            "x": draw(64, 101, 63),
            "a": numbers(-1, 0),
            "b": numbers(-1000, 60),
            "d": numbers(1, 2),
            "c": numbers(-2, 3),
        },
        ["a", "b", "c", "d"],
    ),
    "Pad, reflect": lambda: case(
        "Pad",
        {"x": draw(1, 3, 200, 201), "p": numbers(0, 0, 3, 3, 0, 0, 3, 3)},
        ["p"],
        mode="reflect",
    ),
    "Pad, edge": lambda: case(
        "Pad", {"x": draw(8, 100, 101), "p": numbers(0, 1, 2, 0, 3, 4)}, ["p"], mode="edge"
    ),
    "DepthToSpace": unary("DepthToSpace", draw(1, 36, 70, 71), blocksize=3, mode="CRD"),
    "SpaceToDepth": unary("SpaceToDepth", draw(1, 12, 70, 72), blocksize=2),
    "Trilu, int64": unary("Trilu", indices(9, 4, 200, 201)),
    "OneHot, middle axis": lambda: case(
        "OneHot",
        {"i": indices(50, 40, 60), "d": numbers(50), "v": np.float32([0, 1])},
        ["d", "v"],
        axis=1,
    ),
    "CumSum, int64 axis 0": lambda: case(
        "CumSum", {"x": indices(9, 300, 100), "a": np.array(0)}, ["a"]
    ),
    "CumSum, exclusive, reverse": lambda: case(
        "CumSum", {"x": draw(100, 400), "a": np.array(-1)}, ["a"], exclusive=1, reverse=1
    ),
    "ReverseSequence, batch first": lambda: case(
        "ReverseSequence",
        {"x": draw(16, 100, 63), "n": indices(100, 16)},
        batch_axis=0,
        time_axis=1,
    ),
    "EyeLike": unary("EyeLike", draw(300, 301)),
    "NonZero, bool 1-D": unary("NonZero", truth(50000)),
    "Unique, axis": lambda: case(
        "Unique", {"x": indices(3, 2000, 4)}, outputs=("y", "i", "j", "n"), axis=0
    ),
    "TopK, smallest, axis 0": lambda: case(
        "TopK", {"x": draw(1000, 60), "k": numbers(5)}, ["k"], outputs=("y", "i"), axis=0, largest=0
    ),
    "TopK, 1 of many": lambda: case(
        "TopK", {"x": draw(8, 32000), "k": numbers(1)}, ["k"], outputs=("y", "i")
    ),
    "TopK, all": lambda: case(
        "TopK", {"x": draw(4, 5000), "k": numbers(5000)}, ["k"], outputs=("y", "i")
    ),
    "TopK, int64": lambda: case(
        "TopK", {"x": indices(10**6, 16, 3000), "k": numbers(20)}, ["k"], outputs=("y", "i")
    ),
    # Reductions and normalisations.
    "ReduceSum, int64": lambda: case(
        "ReduceSum", {"x": indices(9, 64, 999), "a": numbers(0)}, ["a"]
    ),
    "ReduceMax, float16": lambda: case("ReduceMax", {"x": half(64, 999), "a": numbers(1)}, ["a"]),
    "ReduceMean, float64, last": lambda: case(
        "ReduceMean", {"x": double(300, 333), "a": numbers(-1)}, ["a"]
    ),
    "ReduceL2, middle": lambda: case("ReduceL2", {"x": draw(30, 77, 65), "a": numbers(1)}, ["a"]),
    "ReduceLogSumExp": lambda: case(
        "ReduceLogSumExp", {"x": draw(200, 333), "a": numbers(1)}, ["a"]
    ),
    "ReduceMin, uint8": lambda: case("ReduceMin", {"x": small(300, 999), "a": numbers(1)}, ["a"]),
    "ArgMin, float axis 0": unary("ArgMin", draw(500, 333), axis=0),
    "ArgMax, last": unary("ArgMax", draw(64, 3001), axis=-1),
    "Softmax, axis 1": unary("Softmax", draw(4, 21, 65, 65), axis=1),
    "Softmax, float64": unary("Softmax", double(100, 333), axis=-1),
    "Softmax, float16": unary("Softmax", half(100, 333), axis=-1),
    "LogSoftmax, odd": unary("LogSoftmax", draw(100, 1001), axis=-1),
    "LayerNormalization, two axes": normal_layer("LayerNormalization", 50, 7, 33, axis=1),
    "LayerNormalization, odd last": normal_layer("LayerNormalization", 333, 51, axis=1),
    "LayerNormalization, float64": normal_layer(
        "LayerNormalization", 100, 51, axis=1, dtype="float64"
    ),
    "InstanceNormalization": with_constants(
        "InstanceNormalization", {"x": draw(2, 33, 41, 43)}, {"s": draw(33), "b": draw(33)}, ["x:1"]
    ),
    "BatchNormalization, 3-D": with_constants(
        "BatchNormalization",
        {"x": draw(4, 33, 501)},
        {"s": draw(33), "b": draw(33), "m": draw(33), "v": abs(draw(33))},
        ["x:1"],
    ),
    "LRN": unary("LRN", draw(1, 33, 40, 41), size=5, fixed=["x:1"]),
    "LpNormalization": unary("LpNormalization", draw(300, 333), axis=-1, p=2),
    "MeanVarianceNormalization": unary("MeanVarianceNormalization", draw(3, 17, 40, 41)),
    # Windows.
    "Conv, dilated": convolution(
        "Conv", draw(1, 20, 57, 61), draw(30, 20, 3, 3), dilations=[2, 2], pads=[2, 2, 2, 2]
    ),
    "Conv, grouped": convolution(
        "Conv", draw(1, 36, 57, 61), draw(48, 9, 3, 3), group=4, pads=[1, 1, 1, 1]
    ),
    "Conv, depthwise 5x5 stride 2": convolution(
        "Conv", draw(1, 37, 57, 61), draw(37, 1, 5, 5), group=37, strides=[2, 2], pads=[2, 2, 2, 2]
    ),
    "Conv, 1-D": convolution("Conv", draw(2, 40, 1001), draw(50, 40, 7), pads=[3, 3]),
    "Conv, 1-D dilated depthwise": convolution(
        "Conv", draw(1, 64, 1001), draw(64, 1, 3), group=64, dilations=[4], pads=[4, 4]
    ),
    "Conv, 1-D one channel, wide": convolution(
        "Conv", draw(1, 1, 16001), draw(32, 1, 400), strides=[160]
    ),
    "Conv, 3-D": convolution("Conv", draw(1, 8, 17, 33, 35), draw(16, 8, 3, 3, 3), pads=[1] * 6),
    "Conv, 3-D depthwise": convolution(
        "Conv", draw(1, 16, 17, 33, 35), draw(16, 1, 3, 3, 3), group=16, pads=[1] * 6
    ),
    "Conv, 1x7": convolution("Conv", draw(1, 33, 35, 37), draw(29, 33, 1, 7), pads=[0, 3, 0, 3]),
    "ConvTranspose, 2-D stride 2": convolution(
        "ConvTranspose", draw(1, 33, 30, 31), draw(33, 20, 4, 4), strides=[2, 2], pads=[1] * 4
    ),
    "ConvTranspose, grouped": convolution(
        "ConvTranspose", draw(1, 32, 30, 31), draw(32, 5, 3, 3), group=4, strides=[2, 2]
    ),
    "ConvTranspose, 3-D": convolution(
        "ConvTranspose", draw(1, 8, 9, 17, 18), draw(8, 6, 2, 2, 2), strides=[2, 2, 2]
    ),
    "MaxPool, 3-D": unary(
        "MaxPool", draw(1, 16, 17, 33, 35), kernel_shape=[3, 3, 3], strides=[2, 2, 2], pads=[1] * 6
    ),
    "MaxPool, 1-D": unary("MaxPool", draw(2, 33, 5001), kernel_shape=[5], strides=[3]),
    "MaxPool, indices": unary(
        "MaxPool", draw(1, 16, 100, 101), kernel_shape=[2, 2], strides=[2, 2], outputs=("y", "i")
    ),
    "MaxPool, uint8": unary("MaxPool", small(1, 16, 100, 101), kernel_shape=[3, 3], strides=[2, 2]),
    "MaxPool, dilated": unary(
        "MaxPool", draw(1, 16, 100, 101), kernel_shape=[3, 3], dilations=[2, 2]
    ),
    "AveragePool, 3-D": unary(
        "AveragePool",
        draw(1, 16, 17, 33, 35),
        kernel_shape=[3, 3, 3],
        strides=[2, 2, 2],
        pads=[1] * 6,
    ),
    "AveragePool, ceil": unary(
        "AveragePool",
        draw(1, 33, 100, 101),
        kernel_shape=[3, 3],
        strides=[2, 2],
        ceil_mode=1,
        count_include_pad=1,
        pads=[1] * 4,
    ),
    "GlobalAveragePool, odd": unary("GlobalAveragePool", draw(4, 77, 13, 15)),
    "GlobalMaxPool, 3-D": unary("GlobalMaxPool", draw(2, 33, 9, 13, 15)),
    "LpPool": unary("LpPool", draw(1, 16, 100, 101), kernel_shape=[3, 3], strides=[2, 2], p=2),
    "MaxUnpool": lambda: unpool(),
    "Resize, cubic": lambda: resized("cubic", draw(1, 3, 100, 101), 1.7),
    "Resize, linear, align": lambda: resized(
        "linear", draw(1, 16, 60, 61), 2.0, coordinate_transformation_mode="align_corners"
    ),
    "Resize, linear, down, antialias": lambda: resized(
        "linear", draw(1, 3, 200, 201), 0.4, antialias=1
    ),
    "Resize, nearest, floor asym": lambda: resized(
        "nearest",
        draw(1, 16, 60, 61),
        1.5,
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    ),
    "Resize, uint8": lambda: resized("linear", small(1, 3, 100, 101), 1.6),
    "Resize, 3-D": lambda: case(
        "Resize",
        {"x": draw(1, 4, 12, 20, 21), "r": draw(0), "s": np.float32([1, 1, 2, 2, 2])},
        ["r", "s"],
        mode="linear",
    ),
    "GridSample, nearest": lambda: case(
        "GridSample",
        {"x": draw(1, 16, 64, 64), "g": np.tanh(draw(1, 50, 51, 2))},
        ["g:3"],
        mode="nearest",
        padding_mode="border",
    ),
    "GridSample, cubic": lambda: case(
        "GridSample",
        {"x": draw(1, 8, 64, 64), "g": np.tanh(draw(1, 50, 51, 2))},
        ["g:3"],
        mode="cubic",
        padding_mode="reflection",
    ),
    "Col2Im": lambda: case(
        "Col2Im",
        {"x": draw(1, 8 * 9, 40 * 41), "s": numbers(42, 43), "b": numbers(3, 3)},
        ["s", "b"],
    ),
    "AffineGrid": lambda: case(
        "AffineGrid", {"t": draw(2, 2, 3), "s": numbers(2, 3, 64, 65)}, ["t", "s"]
    ),
    # Recurrent layers.
    "LSTM, lengths": recurrent("LSTM", 4, lengths=True),
    "LSTM": recurrent("LSTM", 4, lengths=False),
    "GRU": recurrent("GRU", 3, lengths=False),
    "GRU, lengths": recurrent("GRU", 3, lengths=True),
    "RNN": recurrent("RNN", 1, lengths=False),
    # Products.
    "MatMul, vector": lambda: case("MatMul", {"a": draw(333), "b": draw(333, 777)}),
    "MatMul, int32": lambda: case(
        "MatMul", {"a": small(33, 77, dtype="int32"), "b": small(77, 55, dtype="int32")}
    ),
    "MatMul, float64": lambda: case("MatMul", {"a": double(99, 101), "b": double(101, 103)}),
    "MatMul, float16": lambda: case("MatMul", {"a": half(99, 101), "b": half(101, 103)}),
    "MatMul, batches broadcast": lambda: case(
        "MatMul", {"a": draw(5, 1, 33, 35), "b": draw(7, 35, 37)}
    ),
    "Gemm, transposed": lambda: case(
        "Gemm",
        {"a": draw(101, 33), "b": draw(77, 101), "c": draw(77)},
        transA=1,
        transB=1,
        alpha=0.5,
        beta=2.0,
    ),
    "QLinearConv, odd": quantized_convolution(17, 29, 41),
    "QLinearConv, grouped": quantized_convolution(32, 32, 41, group=4),
    "QLinearConv, depthwise": quantized_convolution(33, 33, 41, group=33),
    "ConvInteger": convolution("ConvInteger", small(1, 17, 41, 43), small(19, 17, 3, 3)),
    "Einsum bij,bkj->ikb": lambda: case(
        "Einsum", {"a": draw(9, 30, 50), "b": draw(9, 40, 50)}, equation="bij,bkj->ikb"
    ),
    "Einsum i,j->ij": lambda: case("Einsum", {"a": draw(300), "b": draw(333)}, equation="i,j->ij"),
    "Einsum ...ii->...i": lambda: case("Einsum", {"a": draw(30, 50, 50)}, equation="...ii->...i"),
    "Einsum bhwc,hkc->bhwk": lambda: case(
        "Einsum", {"a": draw(2, 14, 14, 64), "b": draw(14, 14, 64)}, equation="bhwc,hkc->bhwk"
    ),
    "GroupQueryAttention, 1 row": lambda: grouped_attention(1, 300),
    "GroupQueryAttention, 50 rows": lambda: grouped_attention(50, 1),
    # Classical models, signals, detection.
    "trees, 64 rows": lambda: trees(64),
    "trees, deep, 64 rows": lambda: trees(64, 20, 11),
    "SVM RBF, 64 rows": lambda: support_vectors("RBF", 64),
    "SVM POLY, 64 rows": lambda: support_vectors("POLY", 64),
    "SVM SIGMOID, 64 rows": lambda: support_vectors("SIGMOID", 64),
    "SVM LINEAR, 1000 rows": lambda: support_vectors("LINEAR", 1000),
    "Scaler": unary(
        "ai.onnx.ml:Scaler", draw(500, 33), fixed=["x:1"], offset=[0.5] * 33, scale=[2.0] * 33
    ),
    "Normalizer": unary("ai.onnx.ml:Normalizer", draw(500, 33), norm="L2"),
    "LinearClassifier": unary(
        "ai.onnx.ml:LinearClassifier",
        draw(100, 33),
        fixed=["x:1"],
        outputs=("y", "s"),
        classlabels_ints=[0, 1, 2],
        coefficients=draw(99).tolist(),
        intercepts=[0.1, 0.2, 0.3],
        post_transform="SOFTMAX",
    ),
    "DFT, odd": lambda: case(
        "DFT", {"x": draw(4, 501, 1), "n": np.array(501), "a": np.array(1)}, ["n", "a", "x:2"]
    ),
    "DFT, long prime": lambda: case(
        "DFT", {"x": draw(1, 10007, 1), "n": np.array(10007), "a": np.array(1)}, ["n", "a", "x:2"]
    ),
    "DFT, power of two": lambda: case(
        "DFT",
        {"x": draw(8, 1024, 1), "n": np.array(1024), "a": np.array(1)},
        ["n", "a", "x:2"],
        onesided=1,
    ),
    "STFT": with_constants(
        "STFT",
        {"x": draw(1, 8000, 1)},
        {"h": np.array(128), "w": np.hanning(512).astype(np.float32), "n": np.array(512)},
        ["x:2"],
    ),
    "MelWeightMatrix": lambda: case(
        "MelWeightMatrix",
        {
            "m": np.array(80),
            "d": np.array(512),
            "r": np.array(16000),
            "lo": np.array(0, np.float32),
            "hi": np.array(8000, np.float32),
        },
    ),
    "HannWindow": lambda: case("HannWindow", {"n": np.array(2000)}),
    # Control.
    "Loop, limit t - 1": lambda: loop("t - 1"),
    "Loop, limit from input": lambda: loop("input"),
    "Loop, fixed": lambda: loop("fixed"),
    "Loop, sizes of other names": lambda: loop("t - 1", named=False),
    "Loop, one element at first": lambda: loop("input", named=False, first=1),
    "Scan, open": scan,
    "Scan, sizes of other names": lambda: scan(named=False),
    "If, open": branch,
    "If, branches of other shapes": lambda: branch("z"),
    "sequence, split and joined": lambda: sequence("joined"),
    "sequence, item": lambda: sequence("at"),
    "sequence, made by a loop": lambda: sequence("loop"),
    "sequence, differing items": lambda: sequence("differing"),
}


def resized(mode: str, x: np.ndarray, scale: float, **more: Any) -> tuple[onnx.ModelProto, Feed]:
    """Return a Resize of an image."""
    scales = np.float32([1, 1, scale, scale])
    return case("Resize", {"x": x, "r": draw(0), "s": scales}, ["r", "s"], mode=mode, **more)


def unpool() -> tuple[onnx.ModelProto, Feed]:
    """Return a MaxUnpool of distinct places."""
    at = np.arange(8 * 100 * 100).reshape(1, 8, 50, 2, 50, 2)[:, :, :, 0, :, 1]
    feed = {"x": draw(1, 8, 50, 50), "i": np.ascontiguousarray(at)}
    return case("MaxUnpool", feed, kernel_shape=[2, 2], strides=[2, 2])
