"""Values of SystemVerilog types: bit vectors, and trees of them for unpacked types.

A packed type (vectors, packed structs and unions, enums) is one bit vector. An unpacked array or
struct is a tuple of values, in the order of declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from hagane.symbolic import bitvector as bv
from hagane.symbolic.logic import choose, equal
from hagane.symbolic.term import Term, bits, variable

Value: TypeAlias = "Term | tuple[Value, ...]"


@dataclass(frozen=True, slots=True)
class Packed:
    """One bit vector."""

    width: int
    signed: bool


@dataclass(frozen=True, slots=True)
class Array:
    """An unpacked array ``[left:right]``; its first element has the index ``left``."""

    element: Layout
    left: int
    right: int

    @property
    def size(self) -> int:
        """The number of elements."""
        return abs(self.left - self.right) + 1

    def index(self, position: int) -> int:
        """Return the index of the element at a position."""
        return self.left + position if self.left <= self.right else self.left - position


@dataclass(frozen=True, slots=True)
class Record:
    """An unpacked struct."""

    fields: tuple[tuple[str, Layout], ...]


Layout: TypeAlias = "Packed | Array | Record"


def layout_of(type_: Any) -> Layout | None:
    """Return the layout of slang's ``type_``, or None for types without a fixed one."""
    type_ = type_.canonicalType
    if type_.isIntegral:
        return Packed(type_.bitWidth, type_.isSigned)
    if type_.isUnpackedArray and type_.hasFixedRange:
        element = layout_of(type_.elementType)
        range_ = type_.fixedRange
        return None if element is None else Array(element, range_.left, range_.right)
    if type_.isUnpackedStruct:
        fields = []
        for field in type_:
            inner = layout_of(field.type)
            if inner is None:
                return None
            fields.append((str(field.name), inner))
        return Record(tuple(fields))
    return None


def parts(layout: Layout) -> Iterator[tuple[str, Layout]]:
    """Yield the parts of an unpacked layout, each with the text that selects it."""
    if isinstance(layout, Array):
        for position in range(layout.size):
            yield f"[{layout.index(position)}]", layout.element
    elif isinstance(layout, Record):
        for name, inner in layout.fields:
            yield f".{name}", inner


def leaves(name: str, layout: Layout) -> Iterator[tuple[str, int]]:
    """Yield name and width of every bit vector in a variable."""
    if isinstance(layout, Packed):
        yield name, layout.width
        return
    for suffix, inner in parts(layout):
        yield from leaves(name + suffix, inner)


def total_width(layout: Layout) -> int:
    """Return the number of bits in all parts of a variable."""
    if isinstance(layout, Packed):
        return layout.width
    if isinstance(layout, Array):
        return layout.size * total_width(layout.element)
    return sum(total_width(inner) for _, inner in layout.fields)


def unknown(name: str, layout: Layout) -> Value:
    """Return a value of unknowns, named like the variable's parts."""
    if isinstance(layout, Packed):
        return variable(name, bits(layout.width))
    return tuple(unknown(name + suffix, inner) for suffix, inner in parts(layout))


def filled(layout: Layout, number: int) -> Value:
    """Return a value whose bit vectors are all the number (-1: all ones)."""
    if isinstance(layout, Packed):
        return bv.value(number, layout.width)
    return tuple(filled(inner, number) for _, inner in parts(layout))


def flat(value: Value) -> Iterator[Term]:
    """Yield the bit vectors of a value in the order of ``leaves``."""
    if isinstance(value, Term):
        yield value
        return
    for inner in value:
        yield from flat(inner)


def as_bits(value: Value) -> Term:
    """Return a value as one bit vector, the first part highest (a bit-stream cast)."""
    return bv.concat(flat(value))


def from_bits(term: Term, layout: Layout) -> Value:
    """Return the value that ``as_bits`` made ``term`` from."""
    rest = [term]

    def take(inner: Layout) -> Value:
        if isinstance(inner, Packed):
            whole = rest[0]
            piece = bv.extract(whole, whole.width - 1, whole.width - inner.width)
            if whole.width > inner.width:
                rest[0] = bv.extract(whole, whole.width - inner.width - 1, 0)
            return piece
        return tuple(take(part) for _, part in parts(inner))

    return take(layout)


def each(change: Callable[[Term], Term], value: Value) -> Value:
    """Return ``value`` with every bit vector changed."""
    if isinstance(value, Term):
        return change(value)
    return tuple(each(change, part) for part in value)


def merge(condition: Term, yes: Value, no: Value) -> Value:
    """Return ``yes`` where ``condition`` holds, else ``no``, part by part."""
    if yes is no:
        return yes
    if isinstance(yes, Term):
        assert isinstance(no, Term)
        return choose(condition, yes, no)
    assert not isinstance(no, Term)
    return tuple(merge(condition, a, b) for a, b in zip(yes, no, strict=True))


def pick(value: Value, position: Term | int, layout: Array) -> Value:
    """Return the element at a position; zeros where there is none."""
    assert isinstance(value, tuple)
    if isinstance(position, int):
        return value[position] if 0 <= position < len(value) else filled(layout.element, 0)
    result = filled(layout.element, 0)
    for index in range(len(value) - 1, -1, -1):
        if index >> position.width:
            continue
        result = merge(equal(position, bv.value(index, position.width)), value[index], result)
    return result


def replace(value: Value, position: Term | int, change: Callable[[Value], Value]) -> Value:
    """Return ``value`` with the element at a position changed; no change where there is none."""
    assert isinstance(value, tuple)
    if isinstance(position, int):
        if not 0 <= position < len(value):
            return value
        return (*value[:position], change(value[position]), *value[position + 1 :])
    return tuple(
        item
        if index >> position.width
        else merge(equal(position, bv.value(index, position.width)), change(item), item)
        for index, item in enumerate(value)
    )


def read_bits(value: Term, low: Term | int, width: int) -> Term:
    """Return ``width`` bits from position ``low``; bits that are not there are zeros."""
    if isinstance(low, int):
        high = low + width - 1
        if low >= value.width or high < 0:
            return bv.value(0, width)
        piece = bv.extract(value, min(high, value.width - 1), max(low, 0))
        if low < 0:
            piece = bv.concat((piece, bv.value(0, -low)))
        return bv.resize(piece, width, signed=False)
    common = max(value.width, low.width, width)
    shifted = bv.shift_right(
        bv.zero_extend(value, common), bv.sign_extend(low, common), signed=False
    )
    return bv.extract(shifted, width - 1, 0)


def write_bits(value: Term, low: Term | int, new: Term) -> Term:
    """Return ``value`` with ``new`` at position ``low``; bits that are not there are dropped."""
    if isinstance(low, int):
        if low < 0:
            if new.width + low <= 0:
                return value
            new, low = bv.extract(new, new.width - 1, -low), 0
        if low >= value.width:
            return value
        new = bv.extract(new, min(new.width, value.width - low) - 1, 0)
        pieces = [new]
        if low + new.width < value.width:
            pieces.insert(0, bv.extract(value, value.width - 1, low + new.width))
        if low:
            pieces.append(bv.extract(value, low - 1, 0))
        return bv.concat(pieces)
    common = max(value.width, low.width, new.width)
    amount = bv.sign_extend(low, common)
    ones = bv.value((1 << new.width) - 1, common)
    hole = bv.extract(bv.shift_left(ones, amount), value.width - 1, 0)
    placed = bv.extract(bv.shift_left(bv.zero_extend(new, common), amount), value.width - 1, 0)
    return bv.bit_or(bv.bit_and(value, bv.invert(hole)), placed)
