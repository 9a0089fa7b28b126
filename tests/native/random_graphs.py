"""A strategy for small graphs of operators that have native kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import helper


@dataclass(frozen=True)
class Made:
    """A value of the graph.

    Attributes:
        name: Of the value.
        shape: Of the array that a run gives.
        exact: Whether every engine gives the same bits; only such numbers may decide anything.
    """

    name: str
    shape: tuple[int, ...]
    exact: bool


@dataclass(repr=False)
class Sketch:
    """A graph while it is drawn."""

    draw: st.DrawFn
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    feed: dict[str, np.ndarray] = field(default_factory=dict)
    made: list[Made] = field(default_factory=list)

    def __repr__(self) -> str:
        feed = ", ".join(f"{name}{array.shape}" for name, array in self.feed.items())
        return "; ".join([feed, *map(self._line, self.nodes)])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    def _line(self, node: onnx.NodeProto) -> str:
        inputs = [
            str(self.constants[name].tolist())
            if name in self.constants and self.constants[name].size < 6
            else f"{name}{self.constants[name].shape}"
            if name in self.constants
            else name
            for name in node.input
        ]
        inputs += [f"{a.name}={helper.get_attribute_value(a)}" for a in node.attribute]
        return f"{', '.join(node.output)} = {node.op_type}({', '.join(inputs)})"

    def constant(self, array: object) -> str:
        """Add an initializer."""
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def weight(self, *shape: int) -> str:
        """Add normal numbers, of a size that keeps sums near one."""
        random = np.random.default_rng(len(self.constants))
        scale = 1 / np.sqrt(max(1, int(np.prod(shape[1:]))))
        return self.constant((random.standard_normal(shape) * scale).astype(np.float32))

    def input(self, shape: tuple[int, ...]) -> None:
        """Add an input."""
        name = f"x{len(self.feed)}"
        random = np.random.default_rng(100 + len(self.feed))
        self.feed[name] = random.standard_normal(shape).astype(np.float32)
        self.made.append(Made(name, shape, True))

    def node(
        self,
        operator: str,
        inputs: list[str],
        shape: tuple[int, ...],
        exact: bool,
        **attributes: object,
    ) -> None:
        """Add a node of one output."""
        name = f"v{len(self.made)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], f"n{name}", **attributes))
        self.made.append(Made(name, shape, exact))

    def pick(self, accept: Callable[[Made], bool] = lambda _: True) -> Made | None:
        """Return one of the values so far, late ones more often."""
        fitting = [value for value in self.made if accept(value)]
        if not fitting:
            return None
        return self.draw(st.sampled_from(fitting[-3:] if self.draw(st.booleans()) else fitting))

    def one_of(self, *items: object) -> object:
        """Return one of the items."""
        return self.draw(st.sampled_from(items))

    def number(self, low: int, high: int) -> int:
        """Return a whole number."""
        return self.draw(st.integers(low, high))


def _smooth(sketch: Sketch) -> None:
    x = sketch.pick()
    name = sketch.one_of(
        "Tanh", "Sigmoid", "Erf", "Softsign", "Gelu", "Sin", "Softplus", "Elu", "HardSwish"
    )
    sketch.node(str(name), [x.name], x.shape, False)  # type: ignore[union-attr]


def _exact(sketch: Sketch) -> None:
    x = sketch.pick()
    name = str(sketch.one_of("Relu", "Neg", "Abs", "Identity"))
    sketch.node(name, [x.name], x.shape, x.exact)  # type: ignore[union-attr]


def _step(sketch: Sketch) -> None:
    """Add an operator that jumps: of exact numbers only."""
    x = sketch.pick(lambda value: value.exact)
    assert x is not None
    name = str(sketch.one_of("Floor", "Ceil", "Round", "Sign"))
    sketch.node(name, [x.name], x.shape, True)


def _choose(sketch: Sketch) -> None:
    x = sketch.pick(lambda value: value.exact)
    assert x is not None
    y = sketch.pick(lambda value: value.shape == x.shape)
    assert y is not None
    truth = f"t{len(sketch.nodes)}"
    level = sketch.constant(np.float32(0.25))
    sketch.nodes.append(
        helper.make_node(str(sketch.one_of("Less", "GreaterOrEqual")), [x.name, level], [truth])
    )
    sketch.node("Where", [truth, x.name, y.name], x.shape, y.exact)


def _clip(sketch: Sketch) -> None:
    x = sketch.pick()
    assert x is not None
    bounds = [sketch.constant(np.float32(-0.5)), sketch.constant(np.float32(0.75))]
    sketch.node("Clip", [x.name, *bounds], x.shape, x.exact)


def _binary(sketch: Sketch) -> None:
    x = sketch.pick()
    assert x is not None

    def fits(value: Made) -> bool:
        try:
            return len(np.broadcast_shapes(x.shape, value.shape)) <= 5
        except ValueError:
            return False

    y = sketch.pick(fits)
    if y is None:
        return
    shape = tuple(np.broadcast_shapes(x.shape, y.shape))
    if np.prod(shape) > 20000:
        return
    name = str(sketch.one_of("Add", "Sub", "Mul", "Max", "Min"))
    # Engines may fuse a product with a sum.
    exact = name in ("Max", "Min") and x.exact and y.exact
    sketch.node(name, [x.name, y.name], shape, exact)


def _with_constant(sketch: Sketch) -> None:
    x = sketch.pick()
    assert x is not None
    tail = x.shape[sketch.number(0, len(x.shape)) :]
    shape = tuple(1 if sketch.draw(st.booleans()) else side for side in tail)
    random = np.random.default_rng(len(sketch.nodes))
    other = sketch.constant((random.random(shape) + 0.5).astype(np.float32))
    inputs = [x.name, other] if sketch.draw(st.booleans()) else [other, x.name]
    name = str(sketch.one_of("Add", "Sub", "Mul"))
    sketch.node(name, inputs, x.shape, False)


def _transpose(sketch: Sketch) -> None:
    x = sketch.pick(lambda value: bool(value.shape))
    if x is None:
        return
    order = sketch.draw(st.permutations(range(len(x.shape))))
    sketch.node("Transpose", [x.name], tuple(x.shape[i] for i in order), x.exact, perm=order)


def _reshape(sketch: Sketch) -> None:
    x = sketch.pick(lambda value: 0 not in value.shape)
    if x is None:
        return
    size = int(np.prod(x.shape))
    first = sketch.draw(st.sampled_from([n for n in range(1, 9) if size % n == 0]))
    style = sketch.one_of("flat", "pair", "lead", "end")
    if style == "flat":
        sketch.node("Reshape", [x.name, sketch.constant([-1])], (size,), x.exact)
    elif style == "pair" or not x.shape:
        shape = (first, size // first)
        sketch.node("Reshape", [x.name, sketch.constant([first, -1])], shape, x.exact)
    elif style == "lead":
        shape = (x.shape[0], size // x.shape[0])
        sketch.node("Reshape", [x.name, sketch.constant([0, -1])], shape, x.exact)
    else:
        sketch.node("Unsqueeze", [x.name, sketch.constant([-1])], (*x.shape, 1), x.exact)


def _slice(sketch: Sketch) -> None:
    x = sketch.pick(lambda value: bool(value.shape))
    if x is None:
        return
    axis = sketch.number(0, len(x.shape) - 1)
    start, end = sketch.number(-4, 4), sketch.number(-4, 9)
    step = int(sketch.one_of(1, 1, 2, -1))  # type: ignore[call-overload]
    cut = len(range(x.shape[axis])[start:end:step])
    shape = (*x.shape[:axis], cut, *x.shape[axis + 1 :])
    arguments = [sketch.constant([value]) for value in (start, end, axis, step)]
    sketch.node("Slice", [x.name, *arguments], shape, x.exact)


def _gather(sketch: Sketch) -> None:
    x = sketch.pick(lambda value: 0 not in value.shape and bool(value.shape))
    if x is None:
        return
    axis = sketch.number(0, len(x.shape) - 1)
    size = x.shape[axis]
    rows = [sketch.number(-1, 1) % size for _ in range(sketch.number(1, 3))]
    shape = (*x.shape[:axis], len(rows), *x.shape[axis + 1 :])
    sketch.node("Gather", [x.name, sketch.constant(rows)], shape, x.exact, axis=axis)


def _concat(sketch: Sketch) -> None:
    x = sketch.pick(lambda value: bool(value.shape))
    if x is None:
        return
    axis = sketch.number(0, len(x.shape) - 1)

    def fits(value: Made) -> bool:
        return len(value.shape) == len(x.shape) and all(
            a == b for i, (a, b) in enumerate(zip(value.shape, x.shape, strict=True)) if i != axis
        )

    y = sketch.pick(fits)
    assert y is not None
    shape = (*x.shape[:axis], x.shape[axis] + y.shape[axis], *x.shape[axis + 1 :])
    sketch.node("Concat", [x.name, y.name], shape, x.exact and y.exact, axis=axis)


def _split(sketch: Sketch) -> None:
    x = sketch.pick(lambda value: bool(value.shape) and value.shape[-1] > 1)
    if x is None:
        return
    axis, size = len(x.shape) - 1, x.shape[-1]
    first = sketch.number(1, size - 1)
    names = [f"v{len(sketch.made)}", f"v{len(sketch.made) + 1}"]
    parts = sketch.constant([first, size - first])
    sketch.nodes.append(helper.make_node("Split", [x.name, parts], names, axis=axis))
    for name, part in zip(names, (first, size - first), strict=True):
        sketch.made.append(Made(name, (*x.shape[:-1], part), x.exact))


def _pad(sketch: Sketch) -> None:
    x = sketch.pick(lambda value: 0 not in value.shape)
    if x is None:
        return
    rank = len(x.shape)
    pads = [sketch.number(0, 2) for _ in range(2 * rank)]
    shape = tuple(s + a + b for s, a, b in zip(x.shape, pads[:rank], pads[rank:], strict=True))
    if np.prod(shape) <= 20000:
        mode = str(sketch.one_of("constant", "edge"))
        sketch.node(
            "Pad", [x.name, sketch.constant(np.array(pads, np.int64))], shape, x.exact, mode=mode
        )


def _reduce(sketch: Sketch) -> None:
    x = sketch.pick(lambda value: bool(value.shape) and 0 not in value.shape)
    if x is None:
        return
    axes = sketch.draw(st.lists(st.integers(0, len(x.shape) - 1), min_size=1, unique=True))
    keep = sketch.number(0, 1)
    name = str(sketch.one_of("ReduceMean", "ReduceMax", "ReduceSum", "ReduceMin"))
    shape = tuple(1 if i in axes else s for i, s in enumerate(x.shape) if keep or i not in axes)
    exact = x.exact and name in ("ReduceMax", "ReduceMin")
    sketch.node(name, [x.name, sketch.constant(axes)], shape, exact, keepdims=keep)


def _rows(sketch: Sketch) -> None:
    x = sketch.pick(lambda value: bool(value.shape) and 0 not in value.shape)
    if x is None:
        return
    axis = sketch.number(-len(x.shape), -1)
    if sketch.draw(st.booleans()):
        sketch.node("Softmax", [x.name], x.shape, False, axis=axis)
    else:
        inputs = [x.name, sketch.weight(*x.shape[axis:]), sketch.weight(*x.shape[axis:])]
        # A large epsilon keeps rows of equal numbers from being enlarged.
        sketch.node("LayerNormalization", inputs, x.shape, False, axis=axis, epsilon=0.1)


def _matmul(sketch: Sketch) -> None:
    x = sketch.pick(lambda value: len(value.shape) >= 2)
    if x is None:
        return
    n = sketch.number(1, 20)
    style = sketch.one_of("constant", "self", "gemm")
    if style == "self":
        turned = f"t{len(sketch.nodes)}"
        order = [*range(len(x.shape) - 2), len(x.shape) - 1, len(x.shape) - 2]
        scaled = f"{turned}s"
        scale = sketch.constant(np.float32(1 / max(1, x.shape[-1])))
        sketch.nodes.append(helper.make_node("Mul", [x.name, scale], [scaled]))
        sketch.nodes.append(helper.make_node("Transpose", [scaled], [turned], perm=order))
        sketch.node("MatMul", [x.name, turned], (*x.shape[:-1], x.shape[-2]), False)
    elif style == "gemm" and len(x.shape) == 2:
        inputs = [x.name, sketch.weight(n, x.shape[1]), sketch.weight(n)]
        sketch.node("Gemm", inputs, (x.shape[0], n), False, transB=1)
    else:
        random = np.random.default_rng(n)
        w = random.standard_normal((x.shape[-1], n)) / np.sqrt(max(1, x.shape[-1]))
        inputs = [x.name, sketch.constant(w.astype(np.float32))]
        sketch.node("MatMul", inputs, (*x.shape[:-1], n), False)


def _image(value: Made) -> bool:
    return len(value.shape) in (3, 4) and min(value.shape) > 0


def _conv(sketch: Sketch) -> None:
    x = sketch.pick(_image)
    if x is None:
        return
    channels, size = x.shape[1], x.shape[2:]
    rank = len(size)
    kernel = [sketch.number(1, min(3, side)) for side in size]
    pads = [sketch.number(0, k - 1) for k in kernel] * 2
    strides = [sketch.number(1, 2) for _ in size]
    depthwise = sketch.draw(st.booleans())
    outs = channels if depthwise else sketch.number(1, 40)
    shape = tuple(
        (s + a + b - k) // t + 1
        for s, a, b, k, t in zip(size, pads[:rank], pads[rank:], kernel, strides, strict=True)
    )
    inputs = [x.name, sketch.weight(outs, 1 if depthwise else channels, *kernel)]
    if sketch.draw(st.booleans()):
        inputs.append(sketch.weight(outs))
    sketch.node(
        "Conv", inputs, (x.shape[0], outs, *shape), False,
        pads=pads, strides=strides, group=channels if depthwise else 1,
    )  # fmt: skip


def _pool(sketch: Sketch) -> None:
    x = sketch.pick(_image)
    if x is None:
        return
    kernel = [sketch.number(1, min(3, side)) for side in x.shape[2:]]
    shape = tuple(s - k + 1 for s, k in zip(x.shape[2:], kernel, strict=True))
    name = str(sketch.one_of("MaxPool", "AveragePool", "GlobalAveragePool"))
    if name == "GlobalAveragePool":
        sketch.node(name, [x.name], (*x.shape[:2], *[1] * len(shape)), False)
    else:
        exact = x.exact and name == "MaxPool"
        sketch.node(name, [x.name], (*x.shape[:2], *shape), exact, kernel_shape=kernel)


def _batch_norm(sketch: Sketch) -> None:
    x = sketch.pick(lambda value: len(value.shape) >= 2)
    if x is None:
        return
    names = [sketch.weight(x.shape[1]) for _ in range(3)]
    spread = sketch.constant(np.full(x.shape[1], 0.7, np.float32))
    sketch.node("BatchNormalization", [x.name, *names, spread], x.shape, False)


def _resize(sketch: Sketch) -> None:
    x = sketch.pick(lambda value: _image(value) and int(np.prod(value.shape)) < 4000)
    if x is None:
        return
    factors = [float(sketch.number(1, 3)) for _ in x.shape[2:]]
    shape = (*x.shape[:2], *(int(s * f) for s, f in zip(x.shape[2:], factors, strict=True)))
    scales = sketch.constant(np.float32([1, 1, *factors]))
    form = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    sketch.node("Resize", [x.name, "", scales], shape, x.exact, mode="nearest", **form)


STEPS = (
    _smooth, _exact, _step, _choose, _clip, _binary, _binary, _with_constant, _transpose, _reshape,
    _slice, _gather, _concat, _split, _pad, _reduce, _rows, _matmul, _conv, _conv, _pool,
    _batch_norm, _resize,
)  # fmt: skip


@st.composite
def graphs(draw: st.DrawFn, most: int = 15) -> Sketch:
    """Draw a graph of some steps over one to three inputs."""
    sketch = Sketch(draw)
    side = st.sampled_from([1, 2, 3, 4, 5, 7, 8, 16, 17])
    rank = draw(st.sampled_from([1, 2, 3, 4, 4, 4]))
    shape = tuple(draw(side) for _ in range(rank))
    if rank == 4:
        shape = (min(shape[0], 2), shape[1], *(min(s, 8) for s in shape[2:]))
    if draw(st.integers(0, 19)) == 0:
        shape = (0, *shape[1:])
    for _ in range(draw(st.integers(1, 3))):
        sketch.input(tuple(1 if draw(st.integers(0, 5)) == 0 else s for s in shape))
    for _ in range(draw(st.integers(5, most))):
        draw(st.sampled_from(STEPS))(sketch)
    return sketch
