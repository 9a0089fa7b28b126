"""Steps by which graphs are drawn: bodies that read values around them, functions of the model,
lists, options, elements of few bits and operators of ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import TensorProto, helper

from tests.native.drawn_operators import MOST_RANK, NUMBERS, REAL
from tests.native.drawn_steps import Drawn

MICROSOFT, LOCAL = "com.microsoft", "local"
_FLOAT = onnx.AttributeProto.FLOAT


def _kind(g: Drawn) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(g.dtype))


def _info(name: str, kind: int, shape: Sequence[int | None] | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def _node(operator: str, inputs: Sequence[str], *outputs: str, **more: Any) -> onnx.NodeProto:
    return helper.make_node(operator, inputs, outputs, **more)


def _turns(
    p: str, nodes: Sequence[onnx.NodeProto], kind: int, outputs: Sequence[str]
) -> onnx.GraphProto:
    """Return the body of a loop over a state ``{p}s``, whose first output is the condition."""
    return helper.make_graph(
        list(nodes),
        "body",
        [
            _info(f"{p}turn", TensorProto.INT64, []),
            _info(f"{p}going", TensorProto.BOOL, []),
            _info(f"{p}s", kind),
        ],
        [_info(outputs[0], TensorProto.BOOL, []), *(_info(name, kind) for name in outputs[1:])],
    )


def _until(g: Drawn) -> None:
    """Halve the value until its largest element is small; the turns may be stacked."""
    if not g.ordered or g.dtype not in REAL:
        return
    p, kind, x = f"u{len(g.nodes)}", _kind(g), g.last
    half, one = g.constant(np.array(0.5, g.dtype)), g.constant(np.array(1, g.dtype))
    nodes = [
        _node("Mul", [f"{p}s", half], f"{p}n"),
        _node("Greater", [f"{p}n", one], f"{p}large"),
        _node("Cast", [f"{p}large"], f"{p}number", to=TensorProto.INT64),
        _node("ReduceSum", [f"{p}number"], f"{p}count", keepdims=0),
        _node("Cast", [f"{p}count"], f"{p}goes", to=TensorProto.BOOL),
        _node("Add", [f"{p}n", x], f"{p}out"),
    ]
    body = _turns(p, nodes, kind, [f"{p}goes", f"{p}n", f"{p}out"])
    most, going = g.constant(np.array(9)), g.constant(np.array(True))
    stacked = g.side("Loop", most, going, x, n_outputs=2, body=body)
    if g.rank < MOST_RANK and g.draw(st.booleans()):
        g.last, g.rank = stacked, g.rank + 1
    else:
        g.last = g.nodes[-1].output[0]


def _branch_in_loop(g: Drawn) -> None:
    """Turns that add what was computed outside of the loop, or subtract it, one after the other."""
    if g.dtype not in NUMBERS:
        return
    p, kind, x = f"n{len(g.nodes)}", _kind(g), g.last
    outside = g.side("Mul", x, g.constant(np.array(2, g.dtype)))
    two = g.constant(np.array(2))
    branches = {
        f"{way}_branch": helper.make_graph(
            [_node(operator, [f"{p}s", outside], f"{p}{way}")], way, [], [_info(f"{p}{way}", kind)]
        )
        for way, operator in (("then", "Add"), ("else", "Sub"))
    }
    nodes = [
        _node("Identity", [f"{p}going"], f"{p}goes"),
        _node("Mod", [f"{p}turn", two], f"{p}rest"),
        _node("Cast", [f"{p}rest"], f"{p}odd", to=TensorProto.BOOL),
        _node("If", [f"{p}odd"], f"{p}n", **branches),
    ]
    body = _turns(p, nodes, kind, [f"{p}goes", f"{p}n"])
    turns = g.constant(np.array(g.draw(st.integers(0, 3))))
    g.last = g.side("Loop", turns, g.constant(np.array(True)), x, body=body)
    g.ordered &= g.dtype.startswith("int")


def _scan(g: Drawn) -> None:
    """Add up slices along an axis, one way or the other, each times a number from outside."""
    if g.dtype not in NUMBERS:
        return
    p, kind, x = f"s{len(g.nodes)}", _kind(g), g.last
    axis = g.draw(st.integers(0, g.rank - 1))
    start = g.side("ReduceSum", x, g.constant([axis]), keepdims=0)
    factor, part = g.constant(np.array(2, g.dtype)), [None] * (g.rank - 1)
    body = helper.make_graph(
        [
            _node("Mul", [f"{p}x", factor], f"{p}m"),
            _node("Add", [f"{p}s", f"{p}m"], f"{p}n"),
            _node("Sub", [f"{p}n", start], f"{p}o"),
        ],
        "body",
        [_info(f"{p}s", kind, part), _info(f"{p}x", kind, part)],
        [_info(f"{p}n", kind, part), _info(f"{p}o", kind, part)],
    )
    way = g.draw(st.integers(0, 1))
    more = {"scan_input_axes": [axis], "scan_output_axes": [axis]}
    more |= {"scan_input_directions": [way], "scan_output_directions": [g.draw(st.integers(0, 1))]}
    g.last = g.side("Scan", start, x, n_outputs=2, body=body, num_scan_inputs=1, **more)
    g.ordered &= g.dtype.startswith("int")


def _list_in_loop(g: Drawn) -> None:
    """A list that grows by a value in each turn."""
    if g.dtype not in ("float32", "int64"):
        return
    p, kind, x = f"q{len(g.nodes)}", _kind(g), g.last
    listed = helper.make_sequence_type_proto(helper.make_tensor_type_proto(kind, None))
    body = helper.make_graph(
        [
            _node("Identity", [f"{p}going"], f"{p}goes"),
            _node("SequenceInsert", [f"{p}s", x], f"{p}n"),
        ],
        "body",
        [
            _info(f"{p}turn", TensorProto.INT64, []),
            _info(f"{p}going", TensorProto.BOOL, []),
            helper.make_value_info(f"{p}s", listed),
        ],
        [_info(f"{p}goes", TensorProto.BOOL, []), helper.make_value_info(f"{p}n", listed)],
    )
    start = g.side("SequenceConstruct", x)
    turns = g.constant(np.array(g.draw(st.integers(0, 2))))
    made = g.side("Loop", turns, g.constant(np.array(True)), start, body=body)
    g.last = g.side("ConcatFromSequence", made, axis=g.axis())


def _pieces(g: Drawn) -> None:
    """A piece of the value along an axis."""
    if g.dtype in ("float32", "int64"):
        made = g.side("SplitToSequence", g.last, axis=g.axis())
        g.last = g.side("SequenceAt", made, g.constant(np.array(g.draw(st.sampled_from([0, -1])))))


def _option(g: Drawn) -> None:
    if g.dtype in ("float32", "int64"):
        g.last = g.side("OptionalGetElement", g.side("Optional", g.last))


def _function(g: Drawn) -> None:
    """A function of the model that calls another, with an attribute of its caller's."""
    if g.dtype != "float32":
        return
    number = len(g.functions)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(LOCAL, 1)]
    inner = _node("LeakyRelu", ["x"], "y")
    taken = onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=_FLOAT)
    inner.attribute.append(taken)
    call = _node(f"Inner{number}", ["m"], "y", domain=LOCAL)
    handed = onnx.AttributeProto(name="slope", ref_attr_name="slope", type=_FLOAT)
    call.attribute.append(handed)
    outer = [_node("Sub", ["x", "b"], "m"), call]
    make = helper.make_function
    g.functions += [
        make(LOCAL, f"Inner{number}", ["x"], ["y"], [inner], opsets, attributes=["slope"]),
        make(LOCAL, f"Outer{number}", ["x", "b"], ["y"], outer, opsets, attributes=["slope"]),
    ]
    before = g.last
    three = g.constant(np.float32(3))
    g.last = g.side(f"Outer{number}", before, three, domain=LOCAL, slope=0.25)


def _moved(g: Drawn, kinds: Sequence[str] = ("Transpose", "Concat", "Slice", "Gather")) -> None:
    """Move elements of any type."""
    kind = g.draw(st.sampled_from(kinds))
    if kind == "Transpose":
        g.add("Transpose", perm=g.draw(st.permutations(range(g.rank))))
    elif kind == "Concat":
        g.add("Concat", g.last, axis=g.axis())
    elif kind == "Slice":
        g.add("Slice", *(g.constant([n]) for n in (0, -1, g.axis())))
    elif kind == "Gather":
        g.add("Gather", g.constant([0, 0]), axis=g.axis())
    else:
        g.add("Identity")


def _narrow(g: Drawn) -> None:
    """Compute in 16 bits, move in eight, and come back."""
    if g.dtype != "float32" or not g.ordered:
        return
    kind = g.draw(st.sampled_from(["BFLOAT16", "BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E5M2"]))
    g.add("Cast", to=getattr(TensorProto, kind))
    if kind == "BFLOAT16":
        name = g.draw(st.sampled_from(["Add", "Mul", "Sub", "Max", "Relu", "Neg", "Abs"]))
        g.add(name, *([g.last] if name in ("Add", "Mul", "Sub", "Max") else []))
    else:
        _moved(g, ("Transpose", "Identity"))
    g.add("Cast", to=TensorProto.FLOAT)


def _four_bits(g: Drawn) -> None:
    if g.dtype != "float32" or not g.ordered:
        return
    kind = g.draw(st.sampled_from([ml_dtypes.int4, ml_dtypes.uint4, np.int16, np.uint16]))
    more = g.constant(np.float32(0.5)), g.constant(np.array(1, kind))
    g.add("QuantizeLinear", *more)
    if kind in (np.int16, np.uint16) and g.draw(st.booleans()):
        _moved(g)
    g.add("DequantizeLinear", *more)


def _of_onnxruntime(g: Drawn) -> None:
    if g.dtype != "float32":
        return
    kind = g.draw(st.sampled_from(
        ["FastGelu", "QuickGelu", "Gelu", "FusedMatMul", "SkipLayerNormalization",
         "SimplifiedLayerNormalization", "FusedConv"]
    ))  # fmt: skip
    x = g.last
    size = g.side("Slice", g.side("Shape", x), g.constant([-1]), g.constant([1 << 40]))
    fill = helper.make_tensor("fill", TensorProto.FLOAT, [1], [1.5])
    scale = g.side("ConstantOfShape", size, value=fill)
    g.last = x
    if kind == "FusedMatMul" and g.rank >= 2:
        g.add(kind, x, domain=MICROSOFT, transB=1, alpha=0.5)
    elif kind == "SkipLayerNormalization" and g.rank in (2, 3):
        g.add(kind, x, scale, domain=MICROSOFT, epsilon=0.1)
    elif kind == "SimplifiedLayerNormalization":
        g.add(kind, scale, axis=-1, epsilon=0.1)
    elif kind == "FusedConv" and g.rank == 3:
        g.add("Unsqueeze", g.constant([1]))
        w = np.random.default_rng(2).integers(-2, 3, (4, 1, 3, 3)).astype(np.float32)
        g.add(kind, g.constant(w), domain=MICROSOFT, activation="Relu", pads=[1] * 4)
        g.rank += 1
    elif kind.endswith("Gelu"):
        g.add(kind, domain=MICROSOFT)
    g.ordered = False


NESTED: tuple[Callable[[Drawn], None], ...] = (
    *(_until, _branch_in_loop, _scan, _list_in_loop, _pieces, _option, _function, _narrow),
    *(_four_bits, _of_onnxruntime),
)
