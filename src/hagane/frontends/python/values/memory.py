"""Memory that tensors share, and its writes since a tensor was made.

A graph has values, no memory. A view of a tensor, and a value that may be one of several tensors,
have the memory of others. A write in place makes new values for every name of the memory that the
heap holds; a value that is still read under its old content (by an iteration, a default of a
function) is found here, so that no graph computes with content that the program does not have any
more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from hagane.ops.registry import operators
from hagane.ops.traits import Trait

# Operators whose results may share memory with their input.
_VIEWS = frozenset(
    ("Reshape", "Transpose", "Slice", "Gather", "Squeeze", "Unsqueeze", "Expand", "Identity",
     "Split", "Flatten", "StopGradient", "BitCast")
)  # fmt: skip
_COPY = "hagane.copy"  # marks values whose memory is their own
_CONTIGUOUS = "hagane.contiguous"  # marks contiguous values, which may be copies
_BY_FUNCTION = "hagane.by_function"  # marks results of functions with gradients of their own
_PART = "hagane.part_by"  # marks views that operators compute which are none
_SHARED = "hagane.memory"  # the other values that a value may have the memory of
PART = "hagane.part"  # marks tensors in objects that the caller gave
ARRAY = "hagane.array"  # marks arrays of NumPy that the caller gave, which may have no axes
_STALE = "hagane.stale"  # marks values whose content may be written since
_IN_ORDER = "hagane.in_order"  # marks new content of memory in the order of the axes
_RESHAPED = "hagane.reshaped"  # marks views that are copies if their elements do not lie in order
# Views whose elements lie in order if those of their input do.
_ORDERED = frozenset(
    ("Reshape", "Squeeze", "Unsqueeze", "Identity", "Flatten", "StopGradient", "BitCast")
)

# Operators that give new memory in the order of the axes, whatever that of their operands is.
_LAYING = frozenset(
    ("MatMul", "Gemm", "ConstantOfShape", "Range", "RandomNormal", "RandomUniform", "Shape", "Size")
)

# The type of the two parts of each complex number.
COMPLEX = {ir.DataType.COMPLEX64: ir.DataType.FLOAT, ir.DataType.COMPLEX128: ir.DataType.DOUBLE}

# Memory that was written: a value of it, how many values there were then, and the place.
Written = frozenset[tuple[ir.Value, int, str]]
WRITTEN = 0  # the key of it among the contents of objects
STALE = -1  # the key of the objects that may have been changed under another name
UNSET = -2  # the key of the names that some paths have not set


@dataclass(slots=True)
class Lazy:
    """A generator that is interpreted at once, while the program runs it turn by turn.

    Attributes:
        since: How many values there were before it.
        read: The memory that it reads.
        handed: The memory that it has given out.
    """

    since: int
    read: set[ir.Value] = field(default_factory=set)
    handed: set[ir.Value] = field(default_factory=set)


def own(value: ir.Value) -> None:
    """Note that a value has a memory of its own, from any operator."""
    value.meta[_COPY] = True


def is_own(value: ir.Value) -> bool:
    """Whether a value has a memory of its own, whatever operator it is from."""
    return _COPY in value.meta


def note_contiguous(value: ir.Value) -> None:
    """Note that a value is another one, or a contiguous copy of it where that lies otherwise."""
    value.meta[_CONTIGUOUS] = True


def is_contiguous(value: ir.Value) -> bool:
    """Whether a value is a copy of another one that does not lie contiguously."""
    return _CONTIGUOUS in value.meta


def note_by_function(value: ir.Value) -> None:
    """Note that a value is what a function with gradients of its own made of another one."""
    value.meta[_BY_FUNCTION] = True


def is_by_function(value: ir.Value) -> bool:
    """Whether gradients do not go through a view as through others."""
    return _BY_FUNCTION in value.meta


def note_part(value: ir.Value, whole: ir.Value, cut: Callable[[Any], Any]) -> None:
    """Note that a value is a view of another one, whatever operators compute it.

    Args:
        value: It.
        whole: The other one.
        cut: Makes the view of an array.
    """
    value.meta[_PART] = whole, cut


def part_of(value: ir.Value) -> tuple[ir.Value, Callable[[Any], Any]] | None:
    """Return of which other value a value is a view, and what makes it of an array; else None."""
    found: tuple[ir.Value, Callable[[Any], Any]] | None = value.meta.get(_PART)
    return found


def share(value: ir.Value, others: Iterable[ir.Value]) -> None:
    """Note that a value may have the memory of others."""
    known = value.meta.get(_SHARED, ())
    value.meta[_SHARED] = tuple(dict.fromkeys((*known, *others)))


def has_others(value: ir.Value) -> bool:
    """Whether a value may have the memory of others."""
    return bool(value.meta.get(_SHARED))


def base_of(value: ir.Value) -> ir.Value:
    """Return the value whose memory a value may share."""
    while True:
        producer = value.producer()
        copied = _COPY in value.meta or producer is None or producer.op_type not in _VIEWS
        if copied or producer is None or producer.inputs[0] is None:
            return value
        value = producer.inputs[0]


def memory_of(value: ir.Value) -> set[ir.Value]:
    """Return values that stand for all the memory that a value may have."""
    found: set[ir.Value] = set()
    waiting = [value]
    while waiting:
        base = base_of(waiting.pop())
        if base not in found:
            found.add(base)
            waiting += base.meta.get(_SHARED, ())
    return found


def note_reshaped(value: ir.Value, whole: ir.Value) -> None:
    """Note that a view of a tensor was reshaped by a function that copies where it has to."""
    while value is not whole:
        producer = value.producer()
        if producer is None or producer.op_type not in _VIEWS or producer.inputs[0] is None:
            return
        if producer.op_type in ("Reshape", "Flatten", "Identity"):
            value.meta[_RESHAPED] = True
        value = producer.inputs[0]


def may_be_copied(value: ir.Value) -> bool:
    """Whether a value that may share the memory of another one may also be a copy of it.

    A transposed tensor, a slice, and what is computed from one element by element, do not lie in
    order; ``reshape`` and its like copy them.
    """
    base = base_of(value)
    while value is not base:
        producer = value.producer()
        assert producer is not None
        whole = producer.inputs[0]
        assert whole is not None
        if _RESHAPED in value.meta and not lies_in_order(whole):
            return True
        value = whole
    return False


def lies_in_order(value: ir.Value) -> bool:
    """Whether the elements of a tensor lie in the order of its axes, without gaps."""
    base = base_of(value)
    while value is not base:
        producer = value.producer()
        assert producer is not None
        if producer.op_type not in _ORDERED and not _is_leading(producer):
            return False
        value = producer.inputs[0]  # type: ignore[assignment]
    return not may_be_turned(base)


def may_be_turned(value: ir.Value) -> bool:
    """Whether what a tensor is a view of may have the order of a transposed one."""
    return _is_turned(base_of(value))


def sources_of_order(value: ir.Value) -> set[ir.Value]:
    """Return values that nothing computes, of several axes, whose order a value may lie in."""
    found, waiting, seen = set[ir.Value](), [base_of(value)], set[ir.Value]()
    while waiting:
        one = waiting.pop()
        node = one.producer()
        if one in seen or (one.shape is not None and len(one.shape) < 2):
            continue
        seen.add(one)
        if node is None:
            found.add(one)
        elif node.op_type not in _LAYING:
            waiting += [v for v in node.inputs if v is not None]
    return found


def is_whole(value: ir.Value) -> bool:
    """Whether a tensor has all elements of its memory, in whatever order."""
    base = base_of(value)
    while value is not base:
        producer = value.producer()
        assert producer is not None
        if producer.op_type not in _ORDERED and producer.op_type != "Transpose":
            return False
        value = producer.inputs[0]  # type: ignore[assignment]
    return not value.meta.get(_SHARED)


def is_same_view(x: ir.Value, whole_x: ir.Value, y: ir.Value, whole_y: ir.Value) -> bool:
    """Whether ``x`` is the view of ``whole_x`` that ``y`` is of ``whole_y``, or both are whole."""
    while x is not whole_x and y is not whole_y:
        one, other = x.producer(), y.producer()
        if _COPY in x.meta or _COPY in y.meta or one is None or other is None:
            return False
        if one.op_type not in _VIEWS or x.index() != y.index() or not _is_alike(one, other):
            return False
        if not all(map(_is_equal, one.inputs[1:], other.inputs[1:])):
            return False
        x, y = one.inputs[0], other.inputs[0]  # type: ignore[assignment]
    return x is whole_x and y is whole_y


def _is_alike(one: ir.Node, other: ir.Node) -> bool:
    """Whether two nodes differ in their inputs at most."""
    attributes = [{a.name: a.value for a in node.attributes.values()} for node in (one, other)]
    if any(isinstance(v, ir.Graph) for found in attributes for v in found.values()):
        return False
    named = [
        {k: v.numpy().tolist() if isinstance(v, ir.TensorProtocol) else v for k, v in found.items()}
        for found in attributes
    ]
    alike = one.op_type == other.op_type and one.domain == other.domain
    return alike and len(one.inputs) == len(other.inputs) and named[0] == named[1]


def _is_equal(x: ir.Value | None, y: ir.Value | None, depth: int = 8) -> bool:
    """Whether two values, such as those of an index, are computed in one way from the same ones."""
    if x is y:
        return True
    if x is None or y is None or depth == 0:
        return False
    if x.const_value is not None and y.const_value is not None:
        a, b = x.const_value.numpy(), y.const_value.numpy()
        return a.dtype == b.dtype and a.shape == b.shape and bool((a == b).all())
    one, other = x.producer(), y.producer()
    if one is None or other is None or x.index() != y.index() or not _is_alike(one, other):
        return False
    found = operators().get((one.domain, one.op_type))
    if found is None or Trait.RANDOM in found.traits:
        return False
    pairs = zip(one.inputs, other.inputs, strict=True)
    return all(_is_equal(a, b, depth - 1) for a, b in pairs)


def keep_order(made: ir.Value, before: ir.Value) -> None:
    """Note that a value is the new content of the memory of another one, in the same order."""
    if lies_in_order(before):
        note_in_order(made)


def note_in_order(value: ir.Value) -> None:
    """Note that the elements of a new tensor lie in the order of its axes."""
    value.meta[_IN_ORDER] = True


def _is_leading(node: ir.Node) -> bool:
    """Whether a node takes parts of the first axis alone."""
    if node.op_type in ("Gather", "Split"):
        axis = node.attributes.get("axis")
        index = node.inputs[1] if node.op_type == "Gather" else None
        one = index is None or index.shape == ir.Shape(())
        return one and (axis is None or axis.as_int() == 0)
    if node.op_type != "Slice" or len(node.inputs) < 4:
        return False
    known = [None if v is None else v.const_value for v in node.inputs[3:]]
    axes, steps = known[0], known[1] if len(known) > 1 else None
    plain = len(known) < 2 or (steps is not None and set(steps.numpy().tolist()) == {1})
    return axes is not None and axes.numpy().tolist() == [0] and plain


def _is_turned(value: ir.Value) -> bool:
    """Whether a new tensor may have the order of a transposed one that it is computed from.

    Most functions of NumPy and PyTorch keep the order of their operands, not only those that work
    element by element.
    """
    seen: set[ir.Value] = set()
    waiting = [value]
    while waiting:
        node = (one := waiting.pop()).producer()
        if node is None or _IN_ORDER in one.meta or node.op_type in _LAYING:
            continue
        if one.shape is not None and len(one.shape) < 2:
            continue
        if node.op_type == "Transpose":
            return True
        waiting += [v for v in node.inputs if v is not None and v not in seen]
        seen.update(waiting)
    return False


def mark_stale(value: ir.Value, place: str) -> None:
    """Note that a value may be one whose content was written since, at a place."""
    value.meta[_STALE] = place


def written_since(
    value: ir.Value, born: int, written: Written, *, stale: bool = True
) -> str | None:
    """Return where the memory of a value was written after the value was made; None if it was not.

    Args:
        value: The value.
        born: How many values there were before it.
        written: The memory written on the path.
        stale: Whether any value may be stale.
    """
    late = [(base, place) for base, when, place in written if when > born]
    if not late and not stale:
        return None
    memory = memory_of(value)
    for part in memory:
        if _STALE in part.meta:
            return str(part.meta[_STALE])
    return next((place for base, place in late if base in memory), None)


__all__ = [
    "ARRAY", "COMPLEX", "PART", "STALE", "UNSET", "WRITTEN", "Lazy", "Written", "base_of",
    "has_others",
    "is_by_function",
    "is_same_view", "keep_order", "lies_in_order", "mark_stale", "may_be_copied", "memory_of",
    "note_by_function",
    "note_in_order", "note_part", "note_reshaped", "own", "part_of", "share", "sources_of_order",
    "written_since",
]  # fmt: skip
