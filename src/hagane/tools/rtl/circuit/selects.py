"""References to variables: selects of bits, elements and members, and where assignments go."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from hagane.symbolic import bitvector as bv
from hagane.symbolic import logic
from hagane.symbolic.term import Term
from hagane.tools.rtl.circuit.machine import Machine, Target, refuse
from hagane.tools.rtl.circuit.values import (
    Array,
    Record,
    Value,
    as_bits,
    filled,
    flat,
    from_bits,
    layout_of,
    pick,
    read_bits,
)

if TYPE_CHECKING:
    from hagane.tools.rtl.circuit.scope import Scope


class Selects:
    """Evaluates selects and carries out assignments; a subclass knows the other expressions."""

    def __init__(self, scope: Scope, call: Callable[[Any, Machine], Value]):
        self._scope = scope
        self._call = call
        self._literals: dict[Any, Term] = {}
        self._methods: dict[type, Callable[[Any, Machine], Value]] = {}

    def value(self, e: Any, m: Machine) -> Value:
        """Return the value of an expression."""
        method = self._methods.get(type(e))
        if method is None:
            method = self._methods[type(e)] = self._method(e)
        return method(e, m)

    def _method(self, e: Any) -> Callable[[Any, Machine], Value]:
        """Return the evaluator of expressions of the class of ``e``; slang has one a kind."""
        method: Any = getattr(self, "_" + e.kind.name, None)
        if method is None:
            self.refuse(e, f"expression of kind {e.kind.name}")
        return method  # type: ignore[no-any-return]

    def bits(self, e: Any, m: Machine) -> Term:
        """Return the value of a packed expression."""
        value = self.value(e, m)
        if not isinstance(value, Term):
            self.refuse(e, "an unpacked value where a packed one is expected")
        return value

    def condition(self, e: Any, m: Machine) -> Term:
        """Return whether an expression is true, that is: not zero."""
        return bv.to_bool(self.bits(e, m))

    def refuse(self, e: Any, what: str) -> NoReturn:
        """Stop: a construct is beyond the subset."""
        refuse(self._scope.position(e.sourceRange.start), what)

    def _ElementSelect(self, e: Any, m: Machine) -> Value:  # noqa: N802
        value = self.value(e.value, m)
        layout = layout_of(e.value.type)
        if isinstance(layout, Array):
            return pick(value, self.element(e, layout, m), layout)
        assert isinstance(value, Term)
        low, width = self.bit_range(e, m)
        return read_bits(value, low, width)

    def _RangeSelect(self, e: Any, m: Machine) -> Value:  # noqa: N802
        value = self.value(e.value, m)
        layout = layout_of(e.value.type)
        if isinstance(layout, Array):
            size = layout_of(e.type)
            assert isinstance(size, Array)
            start = self.slice_start(e, layout, m)
            return tuple(pick(value, start + index, layout) for index in range(size.size))
        assert isinstance(value, Term)
        low, width = self.bit_range(e, m)
        return read_bits(value, low, width)

    def slice_start(self, e: Any, layout: Array, m: Machine) -> int:
        """Return the position at which a slice of an unpacked array starts."""
        left = self._index(e.left, m)
        if not isinstance(left, int):
            return self.refuse(e, "a slice of an unpacked array that starts anywhere")
        kind = e.selectionKind.name
        if kind != "Simple":
            width = int(self._scope.constant(e.right).value)
            ends = (left, left + width - 1) if kind == "IndexedUp" else (left - width + 1, left)
        else:
            right = self._index(e.right, m)
            assert isinstance(right, int)
            ends = (min(left, right), max(left, right))
        return ends[0] - layout.left if layout.left <= layout.right else layout.left - ends[1]

    def element(self, e: Any, layout: Array, m: Machine) -> Term | int:
        """Return the position that an index selects in an unpacked array."""
        index = self._index(e.selector, m)
        ascending = layout.left <= layout.right
        if isinstance(index, int):
            return index - layout.left if ascending else layout.left - index
        return _minus(index, layout.left) if ascending else _minus_from(layout.left, index)

    def bit_range(self, e: Any, m: Machine) -> tuple[Term | int, int]:
        """Return lowest bit and width that a select takes of a packed value."""
        type_ = e.value.type.canonicalType
        bounds = type_.fixedRange
        width = e.type.bitWidth
        step = 1
        if type_.isPackedArray:
            step = type_.elementType.bitWidth
        descending = bounds.left >= bounds.right
        if e.kind.name == "ElementSelect":
            index = self._index(e.selector, m)
            return self._low(index, bounds.right, descending, step), width
        kind = e.selectionKind.name
        index = self._index(e.left, m)
        count = width // step
        if kind == "Simple":
            right = self._index(e.right, m)
            return self._low(right, bounds.right, descending, step), width
        if (kind == "IndexedUp") != descending:
            # The select names its other end.
            index = self._shifted(index, 1 - count if descending else count - 1)
        return self._low(index, bounds.right, descending, step), width

    @staticmethod
    def _shifted(index: Term | int, by: int) -> Term | int:
        return index + by if isinstance(index, int) else _minus(index, -by)

    @staticmethod
    def _low(index: Term | int, right: int, descending: bool, step: int) -> Term | int:
        if isinstance(index, int):
            return (index - right if descending else right - index) * step
        offset = _minus(index, right) if descending else _minus_from(right, index)
        if step == 1:
            return offset
        width = offset.width + step.bit_length()
        # A negative position stays out of range when it is scaled.
        return bv.multiply(bv.sign_extend(offset, width), bv.value(step, width))

    def _index(self, e: Any, m: Machine) -> Term | int:
        term = self.bits(e, m)
        signed = bool(e.type.isSigned)
        if term.is_const:
            return logic.number(term, signed)
        return _wide(term, signed)

    def _MemberAccess(self, e: Any, m: Machine) -> Value:  # noqa: N802
        value = self.value(e.value, m)
        layout = layout_of(e.value.type)
        member = e.member
        if isinstance(layout, Record):
            assert isinstance(value, tuple)
            return value[int(member.fieldIndex)]
        if not isinstance(value, Term) or not hasattr(member, "bitOffset"):
            self.refuse(e, f"member '{member.name}'")
        return read_bits(value, member.bitOffset, e.type.bitWidth)

    def assign(self, left: Any, value: Value, m: Machine, *, blocking: bool = True) -> None:
        """Store ``value`` where the expression ``left`` points to."""
        kind = left.kind.name
        if kind == "Concatenation":
            rest = as_bits(value)
            for item in left.operands:
                width = sum(part.width for part in flat(filled(self._layout(item), 0)))
                piece = bv.extract(rest, rest.width - 1, rest.width - width)
                if rest.width > width:
                    rest = bv.extract(rest, rest.width - width - 1, 0)
                self.assign(item, from_bits(piece, self._layout(item)), m, blocking=blocking)
            return
        if kind == "SimpleAssignmentPattern":
            pieces = value if isinstance(value, tuple) else ()
            if not pieces:
                rest = as_bits(value)
                for item in left.elements:
                    width = int(item.type.bitWidth)
                    self.assign(
                        item,
                        bv.extract(rest, rest.width - 1, rest.width - width),
                        m,
                        blocking=blocking,
                    )
                    if rest.width > width:
                        rest = bv.extract(rest, rest.width - width - 1, 0)
                return
            for item, inner in zip(left.elements, pieces, strict=True):
                self.assign(item, inner, m, blocking=blocking)
            return
        if kind == "Streaming":
            self.refuse(left, "a streaming concatenation on the left side")
        if kind == "RangeSelect" and isinstance(layout_of(left.value.type), Array):
            layout = layout_of(left.value.type)
            assert isinstance(layout, Array)
            assert isinstance(value, tuple)
            base = self.target(left.value, m)
            start = self.slice_start(left, layout, m)
            for index, inner in enumerate(value):
                steps = (*base.steps, ("element", start + index))
                m.write(Target(base.variable, steps, layout.element), inner, blocking=blocking)
            return
        m.write(self.target(left, m), value, blocking=blocking)

    def _layout(self, e: Any) -> Any:
        layout = layout_of(e.type)
        if layout is None:
            self.refuse(e, f"a value of type {e.type}")
        return layout

    def target(self, e: Any, m: Machine) -> Target:
        """Return where an assignment to ``e`` goes."""
        kind = e.kind.name
        if kind in ("NamedValue", "HierarchicalValue"):
            variable = self._scope.find(e.symbol)
            if variable is None:
                self.refuse(e, f"an assignment to '{e.symbol.name}'")
            return Target(variable, (), variable.layout)
        if kind == "ElementSelect":
            base = self.target(e.value, m)
            layout = layout_of(e.value.type)
            if isinstance(layout, Array):
                step = ("element", self.element(e, layout, m))
                return Target(base.variable, (*base.steps, step), layout.element)
            low, width = self.bit_range(e, m)
            return Target(base.variable, (*base.steps, ("bits", low, width)), self._layout(e))
        if kind == "RangeSelect":
            base = self.target(e.value, m)
            low, width = self.bit_range(e, m)
            return Target(base.variable, (*base.steps, ("bits", low, width)), self._layout(e))
        if kind == "MemberAccess":
            base = self.target(e.value, m)
            if isinstance(layout_of(e.value.type), Record):
                return Target(
                    base.variable, (*base.steps, ("field", e.member.fieldIndex)), self._layout(e)
                )
            steps = ("bits", int(e.member.bitOffset), int(e.type.bitWidth))
            return Target(base.variable, (*base.steps, steps), self._layout(e))
        if kind == "Conversion":
            return self.target(e.operand, m)
        self.refuse(e, f"an assignment to an expression of kind {kind}")
        return None


def _wide(index: Term, signed: bool) -> Term:
    """Return an index with a sign, so that positions below zero are out of range."""
    return bv.resize(index, index.width + 1, signed=signed)


def _minus(index: Term, number: int) -> Term:
    if number == 0:
        return index
    width = max(index.width, number.bit_length() + 2)
    return bv.subtract(bv.sign_extend(index, width), bv.value(number, width))


def _minus_from(number: int, index: Term) -> Term:
    width = max(index.width, number.bit_length() + 2)
    return bv.subtract(bv.value(number, width), bv.sign_extend(index, width))
