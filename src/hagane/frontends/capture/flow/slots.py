"""The form of a value of the program that tensors hold: in loops, in lists, in results.

A slot says how many tensors hold a value and how it is made of them again.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import onnx_ir as ir

from hagane.frontends.capture.flow.mixtures import NUMPY, mixes
from hagane.frontends.python.values.deques import Deque, are_alike
from hagane.frontends.python.values.memory import COMPLEX
from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.open_tuples import OpenTuple
from hagane.frontends.python.values.values import (
    Absent,
    Choice,
    DictRef,
    Fields,
    Kinds,
    ListRef,
    Many,
    Real,
    Tensor,
    Truth,
    Value,
    is_plain,
)
from hagane.graph.types import TensorType
from hagane.symbolic import Dim, Expr, definitely_equal, symbols_of


@dataclass(frozen=True, slots=True)
class TensorSlot:
    """A tensor; sizes that differ from value to value are None."""

    dtype: ir.DataType
    shape: tuple[Dim | None, ...]
    kind: str
    device: str


@dataclass(frozen=True, slots=True)
class NumberSlot:
    """A number of Python: ``int``, ``bool`` or ``float``.

    ``also`` has the types that it may have besides, as the data decide.
    """

    kind: str
    also: Kinds = frozenset()


@dataclass(frozen=True, slots=True)
class Fixed:
    """A value that is always the same."""

    value: Value


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of several texts, held as its place among them."""

    values: tuple[str | bytes, ...]


@dataclass(frozen=True, slots=True)
class Parts:
    """A tuple or list of fixed length, a dictionary with fixed keys, an object with fields.

    Attributes:
        items: The slots of its members.
        like: A value of the kind: a tuple, list, dictionary or object.
        names: The keys or fields; empty for a tuple or list.
    """

    items: tuple[Slot, ...]
    like: Value
    names: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Listed:
    """A list whose length the data decide, of items of one form; None while there are none.

    ``length`` is the length of all lists of the form, None where they differ.
    """

    item: Slot | None
    length: Dim | None = None


@dataclass(frozen=True, slots=True)
class Maybe:
    """A value, or None; or what stands for an attribute that is not there."""

    item: Slot
    absent: Value = None


LONG = 8  # items of a list that are held in a tensor each, at most
Slot: TypeAlias = TensorSlot | NumberSlot | Fixed | OneOf | Parts | Listed | Maybe
DTYPES = {"int": ir.DataType.INT64, "bool": ir.DataType.BOOL, "float": ir.DataType.DOUBLE}
Contents: TypeAlias = Mapping[int, Any]
Also: TypeAlias = Callable[[Value], Kinds]  # the types that a number may have beside its own


@dataclass(frozen=True, slots=True, eq=False)
class Rows(Many):
    """Items of a list whose length the data decide, each part of them stacked in one tensor.

    Attributes:
        form: The form of an item.
        columns: For each tensor that holds an item, those of all items along a new first axis.
        family: Marks items that have containers, which other lists may have too.
        before: The content of the list before one item was changed or appended.
        born: How often items of lists were changed before.
        doubled: Two places that one container is at, until one of them is set again.
    """

    form: Slot = Fixed(None)
    columns: tuple[Tensor, ...] = ()
    family: frozenset[int] = frozenset()
    before: Rows | None = None
    born: int = 0
    doubled: tuple[Dim, Dim] | None = None


def at(contents: Contents, key: int, part: Any) -> Value:
    """Return the contents of an object, or a name of it."""
    return contents[key] if part is None else contents[key][part]


def number_kind(value: Value) -> str:
    """Return ``int``, ``bool`` or ``float``; empty for other values."""
    if isinstance(value, bool | Truth):
        return "bool"
    if isinstance(value, int | Expr):
        return "int"
    return "float" if isinstance(value, float | Real) else ""


def slot_of(value: Value, contents: Contents, also: Also) -> Slot | None:
    """Return the form of one value; None if no tensors hold it.

    Args:
        value: The value.
        contents: The contents of objects.
        also: Says which types a number may have beside its own.
    """
    if isinstance(value, Tensor):
        if value.shape is None:
            return None
        return TensorSlot(value.dtype, tuple(value.shape), value.kind, value.device)
    if isinstance(value, Choice):
        sides = (slot_of(side, contents, also) for side in (value.yes, value.no))
        return unified(*sides, mixing=True)
    if (
        _is_nothing(value)
        or isinstance(value, str | bytes)
        or (number_kind(value) and is_plain(value))
    ):
        return Fixed(value)
    if number_kind(value):
        return NumberSlot(number_kind(value), also(value))
    if isinstance(value, ListRef):
        found = content_slot(contents[value.key], contents, value, also)
        return None if isinstance(value, Deque | OpenTuple) and isinstance(found, Listed) else found
    if isinstance(value, tuple):
        return _parts(value, value, (), contents, also)
    if isinstance(value, DictRef) and isinstance(contents[value.key], dict):
        held = contents[value.key]
        return _parts(tuple(held.values()), value, tuple(held), contents, also)
    fields = getattr(getattr(value, "cls", None), "fields", None)
    if isinstance(value, Instance) and fields:
        held = contents[value.key]
        names = tuple(name for name, _ in fields if name in held)
        if set(names) == set(held):
            return _parts(tuple(held[name] for name in names), value, names, contents, also)
    return Fixed(value)


def content_slot(content: Any, contents: Contents, like: Value, also: Also) -> Slot | None:
    """Return the form of a list's content."""
    if isinstance(content, tuple):
        return _parts(content, like, (), contents, also)
    if isinstance(content, Rows):
        return Listed(content.form, content.length)
    return None


def _parts(
    values: Sequence[Value], like: Value, names: tuple[Any, ...], contents: Contents, also: Also
) -> Slot | None:
    found = tuple(slot_of(item, contents, also) for item in values)
    if any(slot is None for slot in found):
        return None
    return Parts(tuple(slot for slot in found if slot is not None), like, names)


def unified(a: Slot | None, b: Slot | None, *, mixing: bool = False) -> Slot | None:
    """Return the form that holds values of two forms; None if there is none.

    Args:
        a: A form.
        b: Another one.
        mixing: Whether numbers of Python and scalars of NumPy may be held as one number.
    """
    if a is None or b is None:
        return None
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Fixed) and _is_nothing(one.value):
            absent = one.value
            known = other if isinstance(other, Maybe) and other.absent is absent else None
            if isinstance(other, Fixed) and other.value is absent:
                return other
            return Maybe(opened(other), absent) if known is None else known
        if isinstance(one, Maybe):
            same = isinstance(other, Maybe) and other.absent is one.absent
            inner = other.item if same and isinstance(other, Maybe) else other
            item = unified(one.item, inner, mixing=mixing)
            return None if item is None else Maybe(opened(item), one.absent)
    if isinstance(a, TensorSlot) and isinstance(b, TensorSlot):
        return _tensor(a, b)
    if isinstance(a, Fixed | NumberSlot) and isinstance(b, Fixed | NumberSlot):
        found = _numbers(a, b)
        if found is not None:
            return found
    if mixing and {type(a), type(b)} in ({TensorSlot, Fixed}, {TensorSlot, NumberSlot}):
        return _mixture(a, b) if isinstance(a, TensorSlot) else _mixture(b, a)
    if isinstance(a, Parts | Listed) and isinstance(b, Parts | Listed):
        return _containers(a, b)
    texts = [*_texts(a), *_texts(b)]
    return OneOf(tuple(dict.fromkeys(texts))) if _texts(a) and _texts(b) else None


def _is_nothing(value: Value) -> bool:
    """Whether a value is None, or stands for an attribute that is not there."""
    return value is None or isinstance(value, Absent)


def _texts(slot: Slot) -> tuple[str | bytes, ...]:
    """Return the texts that a form may be; none for other forms."""
    if isinstance(slot, OneOf):
        return slot.values
    text = isinstance(slot, Fixed) and isinstance(slot.value, str | bytes)
    return (slot.value,) if text and isinstance(slot, Fixed) else ()


def opened(slot: Slot, names: Container[str] = ()) -> Slot:
    """Return a form with the sizes left open that names other than some make.

    Of values that may be fillers, no name of a size says anything.
    """
    if isinstance(slot, TensorSlot):
        shape = tuple(
            dim if dim is not None and all(name in names for name in symbols_of(dim)) else None
            for dim in slot.shape
        )
        return replace(slot, shape=shape)
    if isinstance(slot, Parts):
        return replace(slot, items=tuple(opened(item, names) for item in slot.items))
    return slot


def _tensor(a: TensorSlot, b: TensorSlot) -> Slot | None:
    if len(a.shape) != len(b.shape) or a.dtype != b.dtype or a.kind != b.kind:
        return None
    shape = tuple(
        x if x is not None and y is not None and definitely_equal(x, y) else None
        for x, y in zip(a.shape, b.shape, strict=True)
    )
    return replace(a, shape=shape, device=a.device if a.device == b.device else "")


def _numbers(a: Fixed | NumberSlot, b: Fixed | NumberSlot) -> Slot | None:
    if isinstance(a, Fixed) and isinstance(b, Fixed):
        x, y = a.value, b.value
        plain = is_plain(x) and is_plain(y) and type(x) is type(y)
        if x is y or (plain and x == y):
            return a
    kinds = {s.kind if isinstance(s, NumberSlot) else number_kind(s.value) for s in (a, b)}
    if "" in kinds:
        return None
    also = frozenset(k for s in (a, b) if isinstance(s, NumberSlot) for k in s.also)
    if len(kinds) == 1:
        return NumberSlot(kinds.pop(), also)
    return NumberSlot("float", also | {int}) if kinds == {"int", "float"} else None


def _mixture(tensor: Any, number: Any) -> Slot | None:
    """Return the form of a scalar of NumPy or a number of Python."""
    also = number.also if isinstance(number, NumberSlot) else frozenset[Any]()
    kind = number.kind if isinstance(number, NumberSlot) else number_kind(number.value)
    whole = tensor.dtype.is_integer()
    if tensor.kind != NUMPY or tensor.shape or kind not in ("int", "float"):
        return None
    if not whole and tensor.dtype.numpy().kind != "f":
        return None
    if not mixes(tensor.dtype, getattr(number, "value", None), also):
        return None
    if kind == "int" and not whole:
        return NumberSlot("float", also | {tensor.dtype, int})
    return NumberSlot(kind, also | {tensor.dtype})


def _containers(a: Parts | Listed, b: Parts | Listed) -> Slot | None:
    if isinstance(a, Parts) and isinstance(b, Parts):
        alike = are_alike((a.like, b.like)) and a.names == b.names
        alike = alike and getattr(a.like, "cls", None) is getattr(b.like, "cls", None)
        if alike and len(a.items) == len(b.items):
            found = tuple(unified(x, y, mixing=True) for x, y in zip(a.items, b.items, strict=True))
            if None not in found:
                return replace(a, items=tuple(s for s in found if s is not None))
    if not all(isinstance(s, Listed) or type(s.like) is ListRef for s in (a, b)):
        return None
    item: Slot | None = None
    for slot in (a, b):
        inner = [slot.item] if isinstance(slot, Listed) else list(slot.items)
        for one in inner:
            if one is None:
                continue
            item = one if item is None else unified(item, one, mixing=True)
            if item is None:
                return None
    lengths = [s.length if isinstance(s, Listed) else len(s.items) for s in (a, b)]
    x, y = lengths
    same = x is not None and y is not None and definitely_equal(x, y)
    return Listed(varying(item), x if same else None)


def varying(slot: Slot | None) -> Slot | None:
    """Return a form whose numbers may be any, not only those seen so far."""
    if isinstance(slot, Fixed) and number_kind(slot.value):
        return NumberSlot(number_kind(slot.value))
    if isinstance(slot, Parts):
        items = tuple(varying(item) for item in slot.items)
        return replace(slot, items=tuple(item for item in items if item is not None))
    return slot


def leaves(slot: Slot | None) -> Iterator[TensorSlot | NumberSlot]:
    """Yield the tensors that a form takes, in order; those of a list have a first axis more."""
    if isinstance(slot, Parts):
        for item in slot.items:
            yield from leaves(item)
    elif isinstance(slot, Listed):
        found = list(leaves(slot.item))
        for leaf in found or ([] if slot.item is None else [NumberSlot("int")]):
            # (Without tensors, as of empty lists and None, there is a column of their number.)
            for number, column in enumerate(columns_of(leaf)):
                rows = number == 2  # of all items
                yield column if rows else replace(column, shape=(slot.length, *column.shape[1:]))
    elif isinstance(slot, Maybe):
        yield NumberSlot("bool")
        yield from leaves(slot.item)
    elif isinstance(slot, OneOf):
        yield NumberSlot("int")
    elif isinstance(slot, TensorSlot | NumberSlot):
        yield slot


def columns_of(leaf: TensorSlot | NumberSlot) -> tuple[TensorSlot, ...]:
    """Return the forms of the tensors that hold one tensor of all items of a list.

    Where sizes differ, these are the sizes, the starts and the rows of all items.
    """
    if isinstance(leaf, NumberSlot):
        return (TensorSlot(DTYPES[leaf.kind], (None,), "", "cpu"),)
    if None not in leaf.shape:
        return (replace(leaf, shape=(None, *leaf.shape)),)
    known = [dim for dim in leaf.shape if dim is not None]
    sizes = TensorSlot(ir.DataType.INT64, (None, leaf.shape.count(None)), "", "cpu")
    return sizes, replace(sizes, shape=(None,)), replace(leaf, shape=(None, *known))


def leaf_type(leaf: TensorSlot | NumberSlot, fresh: Any) -> TensorType:
    """Return the type of the tensor that holds a leaf; sizes that differ get new names."""
    if isinstance(leaf, NumberSlot):
        return TensorType(DTYPES[leaf.kind], ())
    shape = tuple(fresh("size") if dim is None else dim for dim in leaf.shape)
    if leaf.dtype in COMPLEX:  # its parts lie in a last axis
        return TensorType(COMPLEX[leaf.dtype], (*shape, 2))
    return TensorType(leaf.dtype, shape)


def has_objects(slot: Slot | None) -> bool:
    """Whether values of a form are containers or have them, which a program may change."""
    if isinstance(slot, Parts):
        return not isinstance(slot.like, tuple) or any(map(has_objects, slot.items))
    return isinstance(slot, Listed) or (isinstance(slot, Maybe) and has_objects(slot.item))


def is_stackable(slot: Slot | None) -> bool:
    """Whether tensors hold the items of a list: none of them complex."""
    complex_ = (
        isinstance(leaf, TensorSlot) and leaf.dtype in COMPLEX for leaf in leaves(Listed(slot))
    )
    return slot is not None and not any(complex_)


def loosened(slot: Slot, names: Container[str], *, inside: bool = False) -> Slot:
    """Return a form whose lists may have items of other sizes than those of some names.

    Args:
        slot: The form.
        names: The names of sizes that all items have.
        inside: Whether it is that of an item.
    """
    if isinstance(slot, Listed):
        length = slot.length
        if length is not None and any(name not in names for name in symbols_of(length)):
            length = None
        item = None if slot.item is None else loosened(slot.item, names, inside=True)
        return Listed(item, length)
    if isinstance(slot, Maybe):
        return replace(slot, item=loosened(slot.item, names, inside=inside))
    if isinstance(slot, Parts):
        items = tuple(loosened(item, names, inside=inside) for item in slot.items)
        return replace(slot, items=items)
    return opened(slot, names) if inside else slot


def compacted(slot: Slot | None) -> Slot | None:
    """Return a form in which lists of many alike items are lists of one length.

    Their items are then held in one tensor, not in one each.
    """
    if isinstance(slot, Parts):
        items = [found for found in map(compacted, slot.items) if found is not None]
        if type(slot.like) is ListRef and len(items) > LONG:
            item: Slot | None = items[0]
            for other in items[1:]:
                item = unified(item, other, mixing=True) if item != other else item
            if item is not None and is_stackable(item):
                return Listed(varying(item), len(items))
        return replace(slot, items=tuple(items))
    if isinstance(slot, Listed):
        return replace(slot, item=compacted(slot.item))
    return slot


def fields_like(like: Value, items: tuple[Value, ...]) -> tuple[Value, ...]:
    """Return a tuple with the names of another one."""
    return like.of(items) if isinstance(like, Fields) else items
