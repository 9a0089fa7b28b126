"""Loops over elementwise expressions: one kernel for a group of any size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.expression import (
    BOOL,
    FLOAT32,
    HALVES,
    NARROW,
    SMALL_TYPES,
    TINY_FLOATS,
    WIDE_TYPES,
    Apply,
    Constant,
    Expression,
    Leaf,
    apart,
    cost_of,
    divides_integers,
    float_text,
    loaded,
    number_type,
    stored,
    vectorizes,
)
from hagane.native.kernels.kernel import Body, c_type, work_of
from hagane.native.kernels.recorder import Recorder
from hagane.native.kernels.tensor import Tensor
from hagane.native.ready.context import BY_REFERENCE
from hagane.symbolic import Dim, ceildiv, floordiv, maximum, product

# Elements that are float32 in registers.
FLOATS = {**HALVES, **TINY_FLOATS}
# One task handles about this many elements.
_TASK_ELEMENTS = 8192
# An innermost axis shorter than this is looped over together with the next one.
_SHORT = 128
# So many operands of open steps at most have loops of their own for one that repeats.
_REPEATING = 4


@dataclass(frozen=True, slots=True)
class Axis:
    """One loop: its length, and the step of each tensor along it, in elements."""

    length: Dim
    strides: tuple[Dim, ...]


def merged_axes(shape: Sequence[Dim], strides: Sequence[Sequence[Dim]]) -> list[Axis]:
    """Return the loops over ``shape``: axes of length one dropped, neighbours joined."""
    axes: list[Axis] = []
    for i, length in enumerate(shape):
        if length == 1:
            continue
        axis = Axis(length, tuple(steps[i] for steps in strides))
        if axes and all(
            outer == inner * length
            for outer, inner in zip(axes[-1].strides, axis.strides, strict=True)
        ):
            axes[-1] = Axis(axes[-1].length * length, axis.strides)
        else:
            axes.append(axis)
    return axes or [Axis(1, tuple(0 for _ in strides))]


def emit_elementwise(
    recorder: Recorder,
    label: str,
    expression: Expression,
    target: Tensor,
    *,
    store: str = "",
    nodes: Sequence[ir.Node] = (),
) -> None:
    """Write the kernel that computes an expression for each element of ``target``.

    Args:
        recorder: Takes the kernel.
        label: Its label.
        expression: Its content.
        target: Its result.
        store: The C function that stores vectors, where it is not that of the element type.
        nodes: The nodes that the expression computes.
    """
    if isinstance(expression, Leaf) and expression.dtype == target.dtype in NARROW:
        # A copy keeps all bits.
        bits = np.dtype(f"u{target.dtype.itemsize}")
        expression = Leaf(replace(expression.tensor, dtype=bits))
        target = replace(target, dtype=bits)
    tensors: list[Tensor] = []
    _collect(expression, tensors)
    body = Body()
    out = body.pointer(target, written=True)
    names = [body.pointer(tensor) for tensor in tensors]
    writer = _Writer(expression, target, tensors, out, names, body, store)
    unequal = [pair for tensor in tensors for pair in tensor.unequal(target.shape)]
    if isinstance(expression, Leaf) and expression.dtype == target.dtype and not (unequal or store):
        (source,) = tensors
        steps = (target.strides, source.broadcast(target.shape, equal=True).strides)
        axes = _turned(merged_axes(target.shape, steps))
        if axes:
            from hagane.native.kernels.transposed_copy import emit_turned  # few models need it

            emit_turned(recorder, label, axes, source, target, nodes)
            return
    views = [tensor.broadcast(target.shape, equal=True) for tensor in tensors]
    loops = _Loops.over(target, views)
    tasks = loops.tasks
    if unequal:
        pairs = dict.fromkeys(f"{body.size(a)} == {body.size(b)}" for a, b in unequal)
        body.add(f"if ({' && '.join(pairs)}) {{")
    loops.write(writer, "q")
    if unequal:
        # Axes that turn out to have length one repeat; as many tasks share these loops.
        body.add("} else {")
        again = _Loops.over(target, [tensor.broadcast(target.shape) for tensor in tensors])
        body.add(
            f"for (int64_t t = q; t < {body.size(again.tasks)}; t += {body.size(tasks)}) {{",
        )
        again.write(writer, "t")
        body.add("}", "}")
    vector = writer.vector and loops.inner.strides[0] == 1
    work = work_of(target.size, cost_of(expression) / (16 if vector else 1) * 0.5)
    recorder.emit(
        label, body, tasks, work=work, flops=work_of(target.size, 1.0), followers=nodes,
        failure=BY_REFERENCE if divides_integers(expression) else "",
    )  # fmt: skip


def _turned(axes: Sequence[Axis]) -> list[tuple[Dim, Dim, Dim]]:
    """Return the axes of a copy between tensors that are contiguous along different ones, or none.

    The axis along which the source is contiguous comes next to last, that of the result last.
    """
    rows, columns = ([axis for axis in axes if axis.strides[i] == 1] for i in range(2))
    if len(rows) != 1 or len(columns) != 1 or rows == columns or rows[0].strides[1] == 0:
        return []
    if rows[0].length == 1 or columns[0].length == 1:
        return []
    outer = [axis for axis in axes if axis not in (rows[0], columns[0])]
    return [(axis.length, axis.strides[0], axis.strides[1]) for axis in (*outer, *columns, *rows)]


@dataclass(frozen=True, slots=True)
class _Loops:
    """Loops over the elements of a result: axes that number rows, and one or two within a row."""

    outer: Sequence[Axis]
    middle: Axis | None
    inner: Axis

    @classmethod
    def over(cls, target: Tensor, views: Sequence[Tensor]) -> _Loops:
        """Return the loops over a result and operands of its shape."""
        axes = merged_axes(target.shape, [view.strides for view in (target, *views)])
        axes = _ordered(axes)
        inner = axes[-1]
        double = len(axes) > 1 and isinstance(inner.length, int) and inner.length < _SHORT
        return cls(axes[: -2 if double else -1], axes[-2] if double else None, inner)

    @property
    def rows(self) -> Dim:
        """How often the loops within a row are run."""
        return product([axis.length for axis in self.outer])

    @property
    def rows_of_task(self) -> Dim:
        """Rows of one task."""
        per_row = self.inner.length * (self.middle.length if self.middle else 1)
        return maximum(1, floordiv(_TASK_ELEMENTS, maximum(1, per_row)))

    @property
    def tasks(self) -> Dim:
        """The number of tasks."""
        if not self.outer and self.middle is None:
            return ceildiv(self.inner.length, _TASK_ELEMENTS)
        return ceildiv(self.rows, self.rows_of_task)

    def write(self, writer: _Writer, task: str) -> None:
        """Write one task, whose number has a C name."""
        body, inner, middle = writer.body, self.inner, self.middle
        if not self.outer and middle is None:
            chunk = _TASK_ELEMENTS
            body.add(
                f"int64_t first = {task} * {chunk}, "
                f"last = hg_min({body.size(inner.length)}, first + {chunk});"
            )
            writer.pointers(["first * " + body.size(stride) for stride in inner.strides])
            writer.loop(inner, "last - first")
            return
        rows_of_task = body.size(self.rows_of_task)
        # Coordinates of a task's first row are divided out of its number, those of others counted.
        numbers = range(len(self.outer))
        body.add(
            f"int64_t row = {task} * {rows_of_task};",
            f"const int64_t end = hg_min({body.size(self.rows)}, row + {rows_of_task});",
            *([f"int64_t {', '.join(f'i{number} = 0' for number in numbers)};"] if numbers else []),
        )
        if numbers:
            body.add("if (row < end) {", "int64_t left = row;")
            for number in reversed(numbers):
                length = body.size(self.outer[number].length)
                rest = f"left % {length}; left /= {length};" if number else "left;"
                body.add(f"i{number} = {rest}")
            body.add("}")
        body.add("for (; row < end; row++) {")
        offsets = ["0"] * len(inner.strides)
        for number, axis in enumerate(self.outer):
            for k, stride in enumerate(axis.strides):
                if stride != 0:
                    offsets[k] += f" + i{number} * {body.size(stride)}"
        if middle is not None:
            body.add(f"for (int64_t j = 0; j < {body.size(middle.length)}; j++) {{")
            for k, stride in enumerate(middle.strides):
                if stride != 0:
                    offsets[k] += f" + j * {body.size(stride)}"
        writer.pointers(offsets)
        writer.loop(inner, body.size(inner.length))
        if middle is not None:
            body.add("}")
        for number in reversed(numbers):
            carried = (
                f"if (++i{number} == {body.size(self.outer[number].length)}) {{ i{number} = 0;"
            )
            body.add(carried if number else "i0++;")
        body.add("}" * max(0, len(self.outer) - 1), "}")


def emit_copy(recorder: Recorder, source: Tensor, target: Tensor) -> Tensor:
    """Write the kernel that copies elements between two layouts of one shape; return the second."""
    emit_elementwise(recorder, f"copy '{source.buffer.name}'", Leaf(source), target)
    return target


def _ordered(axes: list[Axis]) -> list[Axis]:
    """Put the axis along which the result is contiguous last."""
    if axes[-1].strides[0] in (0, 1):
        return axes
    for i, axis in enumerate(axes):
        if axis.strides[0] == 1:
            return [*axes[:i], *axes[i + 1 :], axis]
    return axes


def _collect(expression: Expression, found: list[Tensor]) -> None:
    if isinstance(expression, Leaf):
        if expression.tensor not in found:
            found.append(expression.tensor)
    elif isinstance(expression, Apply):
        for argument in expression.arguments:
            _collect(argument, found)


class _Writer:
    """Writes one loop body, for vectors or for single elements."""

    def __init__(
        self,
        expression: Expression,
        target: Tensor,
        tensors: Sequence[Tensor],
        out: str,
        names: Sequence[str],
        body: Body,
        store: str,
    ):
        self.expression = expression
        self.target = target
        self.tensors = tensors
        self.out = out
        self.names = names
        self.body = body
        self.own_store = bool(store)
        self.outer, self.parts = apart(expression)
        if divides_integers(expression):
            self.outer, self.parts = expression, {}
        self.vector = vectorizes(self.outer) and vectorizes(Leaf(target))
        if isinstance(expression, Leaf) and expression.dtype == target.dtype in SMALL_TYPES:
            self.vector = False  # a copy
        self.store = store or "v_store" + _ending(target.dtype)

    def pointers(self, offsets: Sequence[str]) -> None:
        """Declare pointers to the first elements of a loop."""
        body = self.body
        body.add(f"{c_type(self.target.dtype)} *o = {self.out} + ({offsets[0]});")
        for i, (tensor, offset) in enumerate(zip(self.tensors, offsets[1:], strict=True)):
            body.add(f"const {c_type(tensor.dtype)} *a{i} = {self.names[i]} + ({offset});")

    def loop(self, axis: Axis, count: str) -> None:
        """Write the innermost loop, and others for steps that turn out to be one or zero."""
        body = self.body
        opens = [k for k, s in enumerate(axis.strides) if k and not isinstance(s, int)]
        if not opens or axis.strides[0] != 1:
            self._steady_loop(axis, count)
            return
        # All are one; or some operand repeats its element, all others do not.
        cases = [dict.fromkeys(opens, 1)]
        if len(opens) <= _REPEATING:
            cases += [{k: int(k != repeated) for k in opens} for repeated in opens]
        for found in cases:
            tests = dict.fromkeys(f"{body.size(axis.strides[k])} == {n}" for k, n in found.items())
            steps = tuple(found.get(k, step) for k, step in enumerate(axis.strides))
            body.add(f"if ({' && '.join(tests)}) {{")
            self._steady_loop(replace(axis, strides=steps), count)
            body.add("} else ")
        body.add("{")
        self._steady_loop(axis, count)
        body.add("}")

    def _steady_loop(self, axis: Axis, count: str) -> None:
        if not self.vector or axis.strides[0] != 1:
            self._scalar_loop(axis, count)
            return
        body = self.body
        body.add(f"int64_t n = {count}, i = 0;")
        body.add("for (; i + VL <= n; i += VL) {")
        self._vector(axis, None)
        body.add("}")
        if not (isinstance(axis.length, int) and axis.length % 16 == 0):
            body.add("if (i < n) {")
            self._vector(axis, "n - i")
            body.add("}")

    def _vector(self, axis: Axis, rest: str | None) -> None:
        lines: list[str] = []
        names: dict[int, str] = {}
        read: list[Tensor] = []
        _collect(self.outer, read)
        for k, tensor in enumerate(self.tensors):
            if tensor not in read:
                continue
            stride = axis.strides[k + 1]
            text = self._load(k, tensor, stride, rest)
            kind = "vm" if tensor.dtype == BOOL else "vf"
            names[k] = f"x{k}"
            lines.append(f"{kind} x{k} = {text};")
        for k, part in enumerate(self.parts.values()):
            # Compilers make vectors of these loops, as far as the processor has any.
            within: list[str] = []
            value = self._element(part, axis, f"(i + l{k})", within)
            lines += [
                f"float y{k}[VL] = {{0}};",
                f"for (int64_t l{k} = 0; l{k} < {rest or 'VL'}; l{k}++) {{",
                *within, f"y{k}[l{k}] = {value};", "}", f"vf z{k} = v_load(y{k});",
            ]  # fmt: skip
            names[len(self.tensors) + k] = f"z{k}"
        tensors = [*self.tensors, *(leaf.tensor for leaf in self.parts)]
        value = expression_text(self.outer, tensors, names, lines, vector=True)
        if self.target.dtype == BOOL:
            lines.append(f"v_store_mask(o + i, {value}, {rest or 'VL'});")
        else:
            name = self.store
            count = "" if rest is None else f", {rest}"
            lines.append(f"{name}{'' if rest is None else '_n'}(o + i, {value}{count});")
        self.body.add(*lines)

    def _load(self, k: int, tensor: Tensor, stride: Dim, rest: str | None) -> str:
        count = rest or "VL"
        if tensor.dtype == BOOL:
            return f"v_load_mask(a{k} + i * {self.body.size(stride)}, {self.body.size(stride)}, {count})"
        name = "v_load" + _ending(tensor.dtype)
        if stride == 0:
            return f"v_set1({loaded(tensor.dtype, f'*a{k}')})"
        if stride == 1:
            return f"{name}(a{k} + i)" if rest is None else f"{name}_n(a{k} + i, {rest})"
        step = self.body.size(stride)
        return f"{name}_strided(a{k} + i * {step}, {step}, {count})"

    def _scalar_loop(self, axis: Axis, count: str) -> None:
        body = self.body
        out_step = body.size(axis.strides[0])
        divides = divides_integers(self.expression)
        body.add(f"int64_t n = {count};", "int hg_zeros = 0; (void)hg_zeros;")
        body.add("for (int64_t i = 0; i < n; i++) {")
        lines: list[str] = []
        value = self._element(self.expression, axis, "i", lines)
        if self.own_store:
            body.add(*lines, f"{self.store}_n(o + i * {out_step}, v_set1({value}), 1);", "}")
        else:
            body.add(*lines, f"o[i * {out_step}] = {stored(self.target.dtype, value)};", "}")
        if divides:
            body.add("if (hg_zeros) hg_fail(thread, 0);")

    def _element(self, expression: Expression, axis: Axis, at: str, lines: list[str]) -> str:
        """Return the C name of an expression's result for one element; add what declares it."""
        read: list[Tensor] = []
        _collect(expression, read)
        names: dict[int, str] = {}
        for k, tensor in enumerate(self.tensors):
            if tensor in read:
                names[k] = f"x{k}"
                element = loaded(
                    tensor.dtype, f"a{k}[{at} * {self.body.size(axis.strides[k + 1])}]"
                )
                lines.append(f"{number_type(tensor.dtype)} x{k} = {element};")
        return expression_text(expression, self.tensors, names, lines, vector=False)


def expression_text(
    expression: Expression,
    tensors: Sequence[Tensor],
    names: Mapping[int, str],
    lines: list[str],
    *,
    vector: bool,
) -> str:
    """Return the C name of an expression's result for one vector or element.

    Args:
        expression: The expression.
        tensors: Its operands.
        names: The C names of their elements, by position.
        lines: Takes the declarations of intermediate results.
        vector: Whether elements are vectors.
    """
    if isinstance(expression, Leaf):
        return names[list(tensors).index(expression.tensor)]
    if isinstance(expression, Constant):
        return _constant_text(expression, vector=vector)
    arguments = [
        expression_text(a, tensors, names, lines, vector=vector) for a in expression.arguments
    ]
    text = expression.template
    if not vector:
        text = text.replace("v_", "d_" if _is_double(expression) else "s_")
    for i, argument in enumerate(arguments):
        text = text.replace(f"{{{i}}}", argument)
    name = f"t{len(lines)}"
    kind = ("vm" if expression.mask else "vf") if vector else number_type(expression.dtype)
    lines.append(f"{kind} {name} = {text};")
    return name


def _ending(dtype: np.dtype[Any]) -> str:
    names = SMALL_TYPES if dtype in SMALL_TYPES else WIDE_TYPES
    return f"_{names[dtype]}" if dtype in names else ""


def _is_double(expression: Apply) -> bool:
    return expression.dtype.name == "float64" or any(
        argument.dtype.name == "float64" for argument in expression.arguments
    )


def _constant_text(constant: Constant, *, vector: bool) -> str:
    if constant.dtype == FLOAT32 or constant.dtype in (SMALL_TYPES if vector else FLOATS):
        text = float_text(float(constant.value))
        return f"v_set1({text})" if vector else text
    if constant.dtype == BOOL:
        if vector:
            return f"(vm){{0}} - {int(bool(constant.value))}"
        return str(int(bool(constant.value)))
    if constant.dtype.kind == "f":
        value = float(constant.value)
        if value != value:
            return "(double)NAN"
        if value in (float("inf"), float("-inf")):
            return "(double)INFINITY" if value > 0 else "(-(double)INFINITY)"
        return f"({value.hex()})"
    value = int(constant.value)
    kind = number_type(constant.dtype)
    if value == -(2**63):
        return "INT64_MIN"
    return f"(({kind}){value}{'ULL' if value > 2**63 - 1 else 'LL'})"


def without_leading(tensor: Tensor, rank: int) -> Tensor:
    """Return a tensor with axes of length one in front, so that it has ``rank`` axes."""
    lead = rank - len(tensor.shape)
    return replace(tensor, shape=(1,) * lead + tensor.shape, strides=(0,) * lead + tensor.strides)
