"""Steps by which graphs are drawn: each appends nodes to a value of any type and rank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import helper

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
        last: The name of the value.
        functions: Of the model.
    """

    draw: st.DrawFn
    dtype: str
    rank: int
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    ordered: bool = True
    last: str = "x"
    functions: list[onnx.FunctionProto] = field(default_factory=list)

    def __repr__(self) -> str:
        lines = list(map(_line, self.nodes))
        lines += [f"{name} = {array.tolist()}" for name, array in self.constants.items()]
        return "; ".join([f"x {self.dtype} of rank {self.rank} at the end", *lines])

    def side(self, operator: str, *inputs: str, n_outputs: int = 1, **attributes: Any) -> str:
        """Append a node, and return the name of its last result."""
        number = len(self.nodes)
        outputs = [f"v{number}", *(f"v{number}_{i}" for i in range(1, n_outputs))]
        self.nodes.append(helper.make_node(operator, inputs, outputs, **attributes))
        return outputs[-1]

    def add(self, operator: str, *inputs: str, n_outputs: int = 1, **attributes: Any) -> None:
        """Append a node that reads the value, and make its first result the value."""
        self.side(operator, self.last, *inputs, n_outputs=n_outputs, **attributes)
        self.last = self.nodes[-1].output[0]

    def constant(self, array: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def axis(self) -> int:
        return self.draw(st.integers(-self.rank, self.rank - 1))


def _line(node: onnx.NodeProto) -> str:
    more = "".join(f", {a.name}={_text(helper.get_attribute_value(a))}" for a in node.attribute)
    return f"{', '.join(node.output)} = {node.op_type}({', '.join(node.input)}{more})"


def _text(value: Any) -> str:
    if not isinstance(value, onnx.GraphProto):
        return str(value)
    given = ", ".join(each.name for each in value.input)
    return f"[{given}: {'; '.join(map(_line, value.node))}: {[o.name for o in value.output]}]"


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
    size = np.dtype(g.dtype).itemsize  # rounding errors stay those of the narrowest type
    narrower = [kind for kind in FLOATS if np.dtype(kind).itemsize <= size] or ["float16"]
    to = g.draw(st.sampled_from(TYPES if g.ordered else narrower))
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
