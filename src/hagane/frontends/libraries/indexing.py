"""Items of tensors, by the rules that NumPy and PyTorch share.

https://numpy.org/doc/stable/user/basics.indexing.html
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.computing import composing
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import OPEN
from hagane.frontends.python.values.strides import lie, sliced
from hagane.frontends.python.values.values import (
    Many,
    Range,
    Real,
    Tensor,
    Truth,
    Value,
    is_size,
)
from hagane.graph.types import Shape, dtype_name
from hagane.ops.functions.tensors.items import put_items, take_items
from hagane.symbolic import (
    Dim,
    Expr,
    ceildiv,
    definitely_equal,
    maximum,
    minimum,
    product,
    symbol,
    symbols_of,
)
from hagane.symbolic.path import Verdict

COMPLEX = (ir.DataType.COMPLEX64, ir.DataType.COMPLEX128)


@dataclass
class _Parts:
    """The result axes so far; ``advanced`` are the index arrays with the place they came at."""

    shape: list[Dim] = field(default_factory=list)
    advanced: list[tuple[int, Shape]] = field(default_factory=list)
    places: list[int] = field(default_factory=list)  # numbers of the items that are arrays


def item(t: Core, x: Tensor, index: Value) -> Tensor:
    """Return ``x[index]``."""
    if x.shape is None:
        return t.emit.typed("Slice", [x], x.dtype, None)
    known = _known_item(t, x, index)
    if known is not None:
        return _lying(known, x, index)
    shape, arrays = indexed_shape(t, x, index)
    parts = _parts_of(t, x, index)
    if parts is None or x.dtype in COMPLEX:
        return t.emit.typed("Slice", [x, *arrays], x.dtype, shape)
    if x.known is not None and x.known.dtype == object:
        return t.emit.typed("Slice", [x, *arrays], x.dtype, shape)
    with composing(t):
        made = take_items(x, parts, numbers_are_arrays=x.kind == "numpy.ndarray")
    made = t.op("Identity", x) if made is x else made
    if made.shape != shape:
        t.emit.show_sizes(made, shape)
    return _lying(made, x, index)


def _lying(made: Tensor, x: Tensor, index: Value) -> Tensor:
    """Return ``x[index]`` with the strides that it has as a view."""
    strides = None if x.kind == "numpy.ndarray" else sliced(x, index)
    return made if strides is None else lie(made, strides)


def _parts_of(t: Core, x: Tensor, index: Value) -> list[Value] | None:
    """Return an index as parts of numbers, slices and tensors; None if it holds anything else."""
    parts = _split(t, x, index)
    return parts if all(_is_part(t, part) for part in parts) else None


def _split(t: Core, x: Tensor, index: Value) -> list[Value]:
    """Return the parts of an index, lists as arrays.

    PyTorch takes a list that holds tensors, lists or slices for a tuple, NumPy for an array.
    """
    listed = isinstance(index, list) and x.kind != "numpy.ndarray"
    if listed and any(not is_size(part) and not isinstance(part, bool) for part in index):
        index = tuple(index)
    maker = "numpy.array" if x.kind == "numpy.ndarray" else "torch.tensor"
    parts = index if isinstance(index, tuple) else (index,)
    if x.kind.startswith("torch."):
        for part in parts:
            if isinstance(part, slice) and isinstance(part.step, int) and part.step < 1:
                t.fail(
                    "value", f"a slice of a tensor takes a step of 1 or more, got {part.step}", x,
                    remedy="reverse it with .flip(...)",
                )  # fmt: skip
        parts = tuple(_as_mask(t, part) for part in parts)
    return [_as_array(t, part, maker) for part in parts]


def _as_mask(t: Core, part: Value) -> Value:
    """Return bytes, which PyTorch takes for truth values, as these."""
    is_bytes = isinstance(part, Tensor) and part.dtype == ir.DataType.UINT8
    return t.op("Cast", part, to=ir.DataType.BOOL) if is_bytes else part


def _is_part(t: Core, part: Value) -> bool:
    if isinstance(part, slice):
        bounds = (part.start, part.stop, part.step)
        return all(bound is None or is_size(bound) or _is_made(t, bound) for bound in bounds)
    return part is None or part is Ellipsis or is_size(part) or _is_made(t, part)


def _is_made(t: Core, part: Value) -> bool:
    """Whether a value is a tensor that the graph holds."""
    if not isinstance(part, Tensor) or part.shape is None:
        return False
    made = part.known is not None or part.value.producer() is not None
    held = part.value.is_graph_input() or t.emit.is_kept(part)
    return made or part.origin is not None or held


def _known_item(t: Core, x: Tensor, index: Value) -> Tensor | None:
    """Follow the content of small tensors through plain indices: shapes are often kept there."""
    if x.known is None:
        return None
    parts = index if isinstance(index, tuple) else (index,)
    if not all(_is_plain_part(part) for part in parts):
        return None
    try:
        found = np.asarray(x.known[tuple(parts)])
    except IndexError as error:
        t.fail("index", f"IndexError: {error}: {t.show(x)}", x)
    made: Tensor = t.emit.constant(found, x.dtype)
    made.kind, made.device = x.kind, x.device
    if t.emit.recorded is not None and t.emit.recorded.asks(x, t.emit.tensors) is not False:
        t.emit.recorded.open.add(made.value)
    return made


def _is_plain_part(part: Value) -> bool:
    if isinstance(part, slice):
        return all(
            bound is None or isinstance(bound, int) for bound in (part.start, part.stop, part.step)
        )
    return (
        part is None or part is Ellipsis or (isinstance(part, int) and not isinstance(part, bool))
    )


def indexed_shape(t: Core, x: Tensor, index: Value) -> tuple[Shape, list[Tensor]]:
    """Return the shape of ``x[index]`` and the tensors among the indices."""
    assert x.shape is not None
    parts = _split(t, x, index)
    used = sum(_consumed(t, part) for part in parts)
    if used > len(x.shape):
        t.fail("index", f"too many indices: {used} for the {len(x.shape)} axes of {t.show(x)}", x)
    dots = next((i for i, part in enumerate(parts) if part is Ellipsis), None)
    rest = [slice(None)] * (len(x.shape) - used)
    parts = [*parts, *rest] if dots is None else [*parts[:dots], *rest, *parts[dots + 1 :]]
    result = _Parts()
    axis = 0
    for number, part in enumerate(parts):
        axis = _take(t, x, part, axis, number, result)
    arrays = [part for part in parts if isinstance(part, Tensor)]
    return _placed(t, x, result), arrays


def _as_array(t: Core, part: Value, maker: str) -> Value:
    """Return a part of an index, a list as an array; ``maker`` makes arrays of lists of tensors."""
    if isinstance(part, list | tuple):  # a tuple inside of another one is a list of places
        part = list(part)
        if _holds_tensors(part):
            return t.call_library(maker, [part])
        made = t.emit.constant(part)
        if part and all(isinstance(item, bool) for item in part):
            return made
        return made if made.dtype.is_integer() else t.emit.new(ir.DataType.INT64, (0,))
    if isinstance(part, Many):
        held = part.stacked
        if held is not None and held.rank == 1 and held.dtype.is_integer():
            return t.op("Cast", held, to=ir.DataType.INT64)
        return t.emit.new(ir.DataType.INT64, (part.length,))
    if isinstance(part, range):
        return t.emit.constant(list(part), ir.DataType.INT64)
    if isinstance(part, Range):
        library = maker.partition(".")[0]
        return t.call_library(f"{library}.arange", [part.start, part.stop, part.step])
    if isinstance(part, bool | Truth):
        t.fail("index", "a truth value as index is not understood")
    return part


def _holds_tensors(value: Value) -> bool:
    return isinstance(value, Tensor) or (
        isinstance(value, list | tuple) and any(map(_holds_tensors, value))
    )


def _consumed(t: Core, part: Value) -> int:
    if part is None or part is Ellipsis:
        return 0
    if isinstance(part, Tensor) and part.dtype == ir.DataType.BOOL:
        return part.rank if part.shape is not None else 1
    return 1


def _take(t: Core, x: Tensor, part: Value, axis: int, number: int, result: _Parts) -> int:
    """Apply one index to axis ``axis``; return the next axis."""
    assert x.shape is not None
    if part is None:
        result.shape.append(1)
        return axis
    if isinstance(part, slice):
        result.shape.append(slice_length(t, part, x.shape[axis]))
        return axis + 1
    if isinstance(part, Tensor):
        return _take_array(t, x, part, axis, number, result)
    if is_size(part):
        _check_place(t, x, part, axis)
        return axis + 1
    t.fail("index", f"expected integers, slices or tensors as indices, got {t.show(part)}", x)
    raise AssertionError


def _take_array(t: Core, x: Tensor, part: Tensor, axis: int, number: int, result: _Parts) -> int:
    assert x.shape is not None
    if part.shape is None:
        t.fail(OPEN, f"an index whose rank is not known: {t.show(part)}", x, part)
    if part.dtype == ir.DataType.BOOL:
        for offset, size in enumerate(part.shape):
            if t.emit.differ(size, x.shape[axis + offset]):
                t.fail(
                    "shape-mismatch",
                    f"the mask {t.show(part)} does not fit {t.show(x)} at axis {axis + offset}",
                    x,
                    part,
                )
        known = None if part.known is None else int(part.known.sum())
        _note(result, number, (t.emit.count("nonzero", part) if known is None else known,))
        return axis + len(part.shape)
    if not part.dtype.is_integer():
        t.fail(
            "index",
            f"expected integers or bools as index, got {t.show(part)}",
            part,
            remedy="convert it with .long()",
        )
    check_places(t, x, part, axis)
    _note(result, number, part.shape)
    return axis + 1


def check_places(t: Core, x: Tensor, places: Tensor, axis: int) -> None:
    """Check known indices along an axis; an open size is restricted to sizes that have them."""
    known = places.known
    if known is None or not known.size or known.dtype.kind not in "iu" or x.shape is None:
        return
    for place in (int(known.min()), int(known.max())):
        _check_place(t, x, place, axis)


def _note(result: _Parts, number: int, shape: Shape) -> None:
    result.advanced.append((len(result.shape), shape))
    result.places.append(number)


def _placed(t: Core, x: Tensor, result: _Parts) -> Shape:
    """Put the axes of index arrays where they belong: in place if adjacent, else in front."""
    if not result.advanced:
        return tuple(result.shape)
    arrays = [shape for _, shape in result.advanced]
    common = broadcast_shapes(t, arrays, x)
    numbers = result.places
    adjacent = numbers[-1] - numbers[0] == len(numbers) - 1
    at = result.advanced[0][0] if adjacent else 0
    return (*result.shape[:at], *common, *result.shape[at:])


def broadcast_shapes(t: Core, shapes: list[Shape], x: Tensor) -> Shape:
    """Return the shape that shapes broadcast to."""
    if len(shapes) == 1:
        return shapes[0]
    with t.emit.types_only():
        tensors = [t.emit.new(ir.DataType.FLOAT, shape, kind=x.kind) for shape in shapes]
        found: Tensor = t.op("Sum", *tensors)
    return found.shape or ()


def _check_place(t: Core, x: Tensor, index: Dim, axis: int) -> None:
    assert x.shape is not None
    size = x.shape[axis]
    if isinstance(index, int) and isinstance(size, int):
        reached = -size <= index < size
    else:
        reached = not _fails_in_the_last_turn(t, index, size) and t.emit.may_reach(
            index, size, f"index of axis {axis}"
        )
    if not reached:
        t.fail("index", f"index {index} is out of range for axis {axis} of {t.show(x)}", x)


def _fails_in_the_last_turn(t: Core, index: Dim, size: Dim) -> bool:
    """Whether a loop that counts ``index`` up reaches a turn in which no item is there."""
    if not isinstance(index, Expr):
        return False
    claim = t.knowledge.less(index, size)
    for name in sorted(symbols_of(index) & t.counters.keys()):
        last = t.knowledge.equal(symbol(name), t.counters[name] - 1)
        if t.knowledge.possible(last):
            with t.knowledge.along(t.knowledge.path.taking(last)):
                if not t.knowledge.possible(claim):
                    return True
    return False


def slice_length(t: Core, part: slice, size: Dim) -> Dim:
    """Return how many elements a slice takes of ``size``."""
    bounds = [_bound(t, bound) for bound in (part.start, part.stop, part.step)]
    step = 1 if part.step is None else bounds[2]
    if not isinstance(step, int):
        return t.emit.fresh("slice")
    if step == 0:
        t.fail("value", "ValueError: the step of a slice cannot be zero")
    if all(isinstance(b, int | None) for b in bounds) and isinstance(size, int):
        return len(range(*slice(*bounds).indices(size)))
    if step < 0:
        if bounds[0] is None and bounds[1] is None:
            return ceildiv(size, -step)
        return t.emit.fresh("slice")
    for bound in bounds[:2]:
        _expect_within(t, bound, size)
    width = _drawn_width(t, bounds[0], bounds[1], size)
    if width is not None:
        return width if step == 1 else ceildiv(width, step)
    if t.emit.builds and any(_may_count_from_the_back(t, bound) for bound in bounds[:2]):
        return t.emit.fresh("slice")  # the graph's own size of the result
    start = _clamped(t, bounds[0], size, 0)
    stop = _clamped(t, bounds[1], size, size)
    length = stop - start
    if not t.knowledge.is_nonnegative(length):
        length = maximum(0, length)
    if not t.emit.builds and step == 1 and bounds[0] is not None and bounds[1] is not None:
        piece = t.emit.pieces.of_slice(bounds[0], bounds[1], size, t.counters)
        if piece is not None and not definitely_equal(length, bounds[1] - bounds[0]):
            return piece
    return length if step == 1 else ceildiv(length, step)


def _drawn_width(t: Core, start: Value, stop: Value, size: Dim) -> int | None:
    """Return how many elements lie between a place that the data decide and one so much later."""
    if not isinstance(start, Expr) or not isinstance(stop, Expr):
        return None
    width = stop - start
    if not isinstance(width, int) or width < 0:
        return None
    claim = t.knowledge.less(stop, size, strict=False)
    if t.emit.builds or not t.knowledge.depends_on_invented(claim):
        return None
    if t.knowledge.ask(claim).verdict is not Verdict.PROVED:
        # (Not taken onto the path: it says nothing of other places, and batches are cut by dozens.)
        t.emit.assume(f"{stop} <= {size} (bound of a slice)")
    return width


def _expect_within(t: Core, bound: Dim | None, size: Dim) -> None:
    """Restrict a bound that depends on inputs to a known size; beyond it, slices cut silently."""
    if isinstance(bound, Expr) and isinstance(size, int):
        claim = t.knowledge.less(bound, size, strict=False)
        finding = t.knowledge.ask(claim)
        open_ = finding.verdict is not Verdict.PROVED and t.knowledge.possible(claim)
        if open_ and not t.knowledge.depends_on_invented(claim):
            t.emit.suppose(claim, f"{bound} <= {size} (bound of a slice)")


def _bound(t: Core, bound: Value) -> Value:
    if isinstance(bound, Tensor):
        return t.tensor_number(bound, whole=True)
    if bound is not None and not is_size(bound):
        t.fail("index", f"expected integers as bounds of a slice, got {t.show(bound)}")
    return bound


def _clamped(t: Core, bound: Dim | None, size: Dim, default: Dim) -> Dim:
    """Return where a bound lies within ``size``, counted from the back where it is negative."""
    if bound is None:
        return default
    if isinstance(bound, int):
        if bound < 0:
            return (
                size + bound
                if t.knowledge.is_nonnegative(size + bound)
                else maximum(0, size + bound)
            )
        return bound if t.knowledge.is_nonnegative(size - bound) else minimum(bound, size)
    if t.knowledge.is_nonnegative(bound):
        return bound if t.knowledge.is_nonnegative(size - bound) else minimum(bound, size)
    if t.knowledge.is_nonnegative(-bound - 1):
        return (
            size + bound if t.knowledge.is_nonnegative(size + bound) else maximum(0, size + bound)
        )
    return t.emit.fresh("bound")


def _may_count_from_the_back(t: Core, bound: Dim | None) -> bool:
    """Whether only the run knows from which end a bound counts."""
    if not isinstance(bound, Expr) or t.knowledge.is_nonnegative(bound):
        return False
    return not t.knowledge.is_nonnegative(-bound - 1)


def _not_below_zero(t: Core, size: Dim) -> Dim:
    return size if t.knowledge.is_nonnegative(size) else maximum(0, size)


def set_item(t: Core, x: Tensor, index: Value, value: Value) -> None:
    """Check ``x[index] = value``: the value has to broadcast to the place."""
    if x.shape is None:
        return
    t.emit.write(x)
    shape, _ = indexed_shape(t, x, index)
    _check_stored(t, x, shape, value)
    check_dtype_stored(t, x, index, value)
    parts = _parts_of(t, x, index)
    kept = (x.dtype, x.shape)
    if isinstance(value, Real):
        value = t.emit.real_scalar(value) or value
    elif isinstance(value, Truth):
        value = t.emit.truth_scalar(value) or value
    if (
        parts is None
        or any(name in t.emit.pieces.known for dim in shape for name in symbols_of(dim))
        or x.dtype in COMPLEX
        or not (isinstance(value, Tensor) or is_size(value) or isinstance(value, float | bool))
    ):
        made = t.emit.typed("PutItems", [x], *kept)
    else:
        try:
            with composing(t):
                made = put_items(x, parts, value, numbers_are_arrays=x.kind == "numpy.ndarray")
        except (OverflowError, ValueError) as error:
            if isinstance(value, Tensor):
                raise
            t.fail("value", f"{t.show(value)} in {t.show(x)}: {error}", x,
                   remedy="give the array an element type that holds it")  # fmt: skip
    if t.emit.builds:
        x.value = made.value
        t.emit.tensors[x.value] = x


def _check_stored(t: Core, x: Tensor, shape: Shape, value: Value) -> None:
    if not isinstance(value, Tensor) or value.shape is None:
        return
    own = value.shape
    while len(own) > len(shape) and own and own[0] == 1:
        own = own[1:]
    fits = len(own) <= len(shape) and not any(
        a != 1 and not _is_counted(t, b) and t.emit.differ(a, b)
        for a, b in zip(own[::-1], shape[::-1], strict=False)
    )
    if not fits:
        place = t.emit.new(x.dtype, shape, kind=x.kind)
        t.fail("shape-mismatch", f"{t.show(value)} cannot be stored in {t.show(place)}", x, value)


def _is_counted(t: Core, size: Dim) -> bool:
    """Whether a size is the count of places that a mask has, which the run compares."""
    return isinstance(size, Expr) and bool(symbols_of(size) & t.knowledge.nameless)


def check_dtype_stored(t: Core, x: Tensor, index: Value, value: Value) -> None:
    """Fail where PyTorch writes at indices values of another element type, which it does not cast.

    It casts those for slices and numbers, and a single number for a mask.
    """
    if not isinstance(value, Tensor) or not x.kind == value.kind == "torch.Tensor":
        return
    parts = index if isinstance(index, tuple) else (index,)
    places = [p for p in parts if isinstance(p, list) or (isinstance(p, Tensor) and p.shape != ())]
    masks = all(isinstance(p, Tensor) and p.dtype == ir.DataType.BOOL for p in places)
    if not places or x.dtype == value.dtype or (masks and value.shape == ()):
        return
    t.fail(
        "dtype-mismatch",
        f"expected values of the element type {dtype_name(x.dtype)} to be stored at indices, got "
        f"{t.show(value)}",
        x,
        value,
        remedy=f"convert them: .to(torch.{dtype_name(x.dtype)})",
    )


def lies_within(t: Core, x: Tensor, shape: Shape, strides: Shape, offset: Value) -> None:
    """Assume that the last element of a view with strides lies in the memory of a tensor.

    The memory may be larger than the tensor, if that is a view itself.
    """
    if x.shape is None or not is_size(offset):
        return
    steps = zip(shape, strides, strict=False)
    last = sum(((size - 1) * stride for size, stride in steps), start=offset)
    claim = t.knowledge.less(last, product(x.shape))
    if t.knowledge.ask(claim).verdict is not Verdict.PROVED:
        t.assume(f"{last} < {product(x.shape)} (last element of the memory of {t.show(x)})")
