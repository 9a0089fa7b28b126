"""Drawn graphs of many types with open sizes: one session at several shapes, by all engines.

Results are compared with those of the reference kernels, and with ONNX Runtime's where it has the
operator for the type. ``make fuzz`` draws for hours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from tests.drawing import few, many
from tests.native.agreement import same
from tests.native.models import model, session

FEW = few(12, deadline=None)
MANY = many(3000)
FLOATS = ("float32", "float64", "float16")
WHOLE = ("int8", "uint8", "int32", "int64", "uint16")
TYPES = (*FLOATS, *WHOLE, "bool")


@dataclass(repr=False)
class Drawn:
    """A graph while it is drawn: its value so far, of one type and a rank that are known.

    Attributes:
        draw: Takes from strategies.
        dtype: The value's element type.
        rank: Its number of axes.
        nodes: The nodes in order, from ``x`` to ``v0``, ``v1`` and so on.
        constants: Initializers.
        ordered: Whether every number is the same in all engines, so that it may decide something.
    """

    draw: st.DrawFn
    dtype: str
    rank: int
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    ordered: bool = True

    def __repr__(self) -> str:
        lines = [
            f"{', '.join(n.output)} = {n.op_type}({', '.join(n.input)}"
            + "".join(f", {a.name}={helper.get_attribute_value(a)}" for a in n.attribute)
            + ")"
            for n in self.nodes
        ]
        lines += [f"{name} = {array.tolist()}" for name, array in self.constants.items()]
        return "; ".join([f"x {self.dtype} of rank {self.rank} at the end", *lines])

    @property
    def last(self) -> str:
        return self.nodes[-1].output[0] if self.nodes else "x"

    def add(self, operator: str, *inputs: str, n_outputs: int = 1, **attributes: Any) -> None:
        """Append a node that reads the value, and make its first result the value."""
        number = len(self.nodes)
        outputs = [f"v{number}", *(f"v{number}_{i}" for i in range(1, n_outputs))]
        made = helper.make_node(operator, [self.last, *inputs], outputs, **attributes)
        self.nodes.append(made)

    def constant(self, array: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def axis(self) -> int:
        return self.draw(st.integers(-self.rank, self.rank - 1))


def _unary(g: Drawn) -> None:
    floats = ("Abs", "Neg", "Sqrt", "Tanh", "Sigmoid", "Floor", "Round", "Sign", "Exp", "Relu")
    signed, unsigned = ("Abs", "Neg", "Sign"), ("Abs", "Sign")
    names = {"f": floats, "i": signed, "u": unsigned, "b": ("Not",)}[np.dtype(g.dtype).kind]
    name = g.draw(st.sampled_from(names))
    g.ordered &= name not in ("Sqrt", "Tanh", "Sigmoid", "Exp")
    g.add(name)


def _binary(g: Drawn) -> None:
    if g.dtype == "bool":
        g.add(g.draw(st.sampled_from(["And", "Or", "Xor"])), g.constant(np.array(True)))
        return
    names = ["Add", "Mul", "Sub", "Max", "Min"]
    if np.dtype(g.dtype).itemsize < 4 and np.dtype(g.dtype).kind != "f":
        names = ["Max", "Min"]  # ONNX Runtime adds no bytes
    g.add(g.draw(st.sampled_from(names)), g.constant(np.array(3, g.dtype)))


def _twice(g: Drawn) -> None:
    if g.dtype in ("float32", "float64", "int32", "int64"):
        g.add("Add", g.last)


def _cast(g: Drawn) -> None:
    to = g.draw(st.sampled_from(TYPES if g.ordered else FLOATS))
    if np.dtype(g.dtype).kind == "f" and np.dtype(to).kind in "iu":
        g.add("Clip", g.constant(np.array(0, g.dtype)), g.constant(np.array(100, g.dtype)))
    g.add("Cast", to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))
    g.dtype = to


def _transpose(g: Drawn) -> None:
    g.add("Transpose", perm=g.draw(st.permutations(range(g.rank))))


def _unsqueeze(g: Drawn) -> None:
    if g.rank < 4:
        g.add("Unsqueeze", g.constant([g.draw(st.integers(0, g.rank))]))
        g.rank += 1


def _flatten(g: Drawn) -> None:
    g.add("Reshape", g.constant([0, -1] if g.rank > 1 else [-1]))
    g.rank = 2 if g.rank > 1 else 1


def _slice(g: Drawn) -> None:
    start, end = g.draw(st.integers(-3, 2)), g.draw(st.sampled_from([-1, 2, 3, 1 << 40]))
    step = g.draw(st.sampled_from([1, 2]))
    g.add("Slice", *(g.constant([n]) for n in (start, end, g.axis(), step)))


def _concat(g: Drawn) -> None:
    g.add("Concat", g.last, axis=g.axis())


def _tile(g: Drawn) -> None:
    if g.dtype not in ("uint16",):
        repeats = g.draw(st.lists(st.integers(1, 2), min_size=g.rank, max_size=g.rank))
        g.add("Tile", g.constant(np.array(repeats)))


def _pad(g: Drawn) -> None:
    if g.dtype != "uint16":
        ends = g.draw(st.lists(st.integers(0, 2), min_size=2 * g.rank, max_size=2 * g.rank))
        g.add("Pad", g.constant(np.array(ends)))


def _reduce(g: Drawn) -> None:
    if g.dtype not in ("float32", "float64", "int32", "int64"):
        return
    keep = g.draw(st.booleans()) or g.rank == 1
    name = g.draw(st.sampled_from(["ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean"]))
    if name == "ReduceMean" and "float" not in g.dtype:
        name = "ReduceSum"
    g.ordered &= "float" not in g.dtype or name in ("ReduceMax", "ReduceMin")
    g.add(name, g.constant([g.axis()]), keepdims=int(keep))
    g.rank -= not keep


def _along(g: Drawn) -> None:
    if g.dtype in ("float32", "float64", "int32", "int64"):
        g.ordered &= "float" not in g.dtype
        g.add("CumSum", g.constant(np.array(g.axis())))


def _softmax(g: Drawn) -> None:
    if g.dtype in ("float32", "float64"):
        g.ordered = False
        g.add(g.draw(st.sampled_from(["Softmax", "LogSoftmax"])), axis=g.axis())


def _compare(g: Drawn) -> None:
    if g.ordered and g.dtype in ("float32", "float64", "int32", "int64"):
        name = g.draw(st.sampled_from(["Less", "Greater", "Equal"]))
        g.add(name, g.constant(np.array(1, g.dtype)))
        g.dtype = "bool"


def _found(g: Drawn) -> None:
    if g.ordered and g.dtype in ("float32", "int32", "int64", "bool", "uint8"):
        g.add("NonZero")
        g.dtype, g.rank = "int64", 2


def _shape(g: Drawn) -> None:
    g.add("Shape")
    g.dtype, g.rank, g.ordered = "int64", 1, True


STEPS: tuple[Callable[[Drawn], None], ...] = (
    *(_unary, _binary, _twice, _cast, _transpose, _unsqueeze, _flatten, _slice, _concat, _tile),
    *(_pad, _reduce, _along, _softmax, _compare, _found, _shape),
)


@st.composite
def drawings(draw: st.DrawFn, most: int = 6) -> tuple[Drawn, str, int, list[tuple[int, ...]]]:
    """Draw a graph, the type and rank of its input, and shapes."""
    dtype, rank = draw(st.sampled_from(TYPES)), draw(st.integers(1, 3))
    graph = Drawn(draw, dtype, rank)
    for _ in range(draw(st.integers(1, most))):
        draw(st.sampled_from(STEPS))(graph)
    sizes = st.tuples(*[st.sampled_from([3, 1, 4, 7, 17])] * rank)
    return graph, dtype, rank, draw(st.lists(sizes, min_size=2, max_size=3))


def check(graph: Drawn, dtype: str, rank: int, shapes: list[tuple[int, ...]]) -> None:
    """Fail unless engines agree on every shape, or refuse it alike."""
    if not graph.nodes:
        return
    feeds = [{"x": _numbers(dtype, shape)} for shape in shapes]
    open_sizes = {"x": [f"n{axis}" for axis in range(rank)]}
    proto = model(graph.nodes, feeds[0], [graph.last], graph.constants, open_sizes)
    made, reference = session(proto), session(proto, engine="reference")
    other = _onnxruntime(proto)
    for feed in feeds:
        with np.errstate(all="ignore"):
            (want,) = reference.run(None, feed)
        (got,) = made.run(None, feed)
        same("native", got, want, length=400)
        if other is not None and want.size:
            theirs = _run_theirs(other, feed)
            if theirs is not None:
                same("ONNX Runtime", got, theirs, length=4000)


def _run_theirs(other: Any, feed: dict[str, np.ndarray]) -> np.ndarray | None:
    """Return ONNX Runtime's result; None where it gives no rows no length (shape ``[0, -1]``)."""
    try:
        (theirs,) = other.run(None, feed)
    except Exception as error:
        if "size != 0 && " in str(error) and "cannot be reshaped" in str(error):
            return None
        raise
    return theirs


def _numbers(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    numbers = np.random.default_rng(1).integers(0, 9, shape)
    return (
        (numbers > 3) if dtype == "bool" else (numbers / (2 if "f" in dtype else 1)).astype(dtype)
    )


# The last one: it gives no rows no length (shape ``[0, -1]``).
_REFUSED = ("NOT_IMPLEMENTED", "INVALID_GRAPH", "Type Error", "tensor cannot be reshaped")


def _onnxruntime(proto: onnx.ModelProto) -> Any:
    """Return a session, None where ONNX Runtime has no kernel for an operator and type."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    typed = onnx.shape_inference.infer_shapes(proto)
    if not all(value.HasField("type") for value in typed.graph.output):
        return None
    try:
        return onnxruntime.InferenceSession(
            typed.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        if any(text in str(error) for text in _REFUSED):
            return None
        raise


@FEW
@given(drawings())
def test_drawn_graphs_agree_at_every_shape(
    drawn: tuple[Drawn, str, int, list[tuple[int, ...]]],
) -> None:
    check(*drawn)


@pytest.mark.long
@MANY
@given(drawings(most=12))
def test_many_drawn_graphs_agree_at_every_shape(
    drawn: tuple[Drawn, str, int, list[tuple[int, ...]]],
) -> None:
    check(*drawn)
