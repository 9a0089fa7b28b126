"""SystemVerilog expressions as terms, with the widths and signs that slang worked out."""

from __future__ import annotations

from typing import Any

from hagane.symbolic import bitvector as bv
from hagane.symbolic import logic
from hagane.symbolic.term import FALSE, TRUE, Term
from hagane.tools.rtl.circuit.machine import Machine
from hagane.tools.rtl.circuit.selects import Selects
from hagane.tools.rtl.circuit.values import (
    Array,
    Packed,
    Value,
    as_bits,
    filled,
    flat,
    from_bits,
    layout_of,
    merge,
)


class Expressions(Selects):
    """Evaluates expressions of one instance; functions are run by the runner that it was given."""

    # Leaves

    def _constant(self, number: Any, e: Any, m: Machine) -> Term:
        if number.hasUnknown:
            where = self._scope.position(e.sourceRange.start)
            m.notices[f"{where}: x or z taken as 0 (two-state values)"] = None
            return bv.value(known_bits(number)[0], number.bitWidth)
        return bv.value(int(number), number.bitWidth)

    def _IntegerLiteral(self, e: Any, m: Machine) -> Value:  # noqa: N802
        found = self._literals.get(e)
        if found is None:
            found = self._literals[e] = self._constant(e.value, e, m)
        return found

    def _UnbasedUnsizedIntegerLiteral(self, e: Any, m: Machine) -> Value:  # noqa: N802
        return self._constant(e.value, e, m)

    def _StringLiteral(self, e: Any, m: Machine) -> Value:  # noqa: N802
        # Of bytes that are no UTF-8 slang gives the number alone.
        return bv.value(known_bits(e.intValue.value)[0], max(e.type.bitWidth, 8))

    def _NamedValue(self, e: Any, m: Machine) -> Value:  # noqa: N802
        symbol = e.symbol
        kind = symbol.kind.name
        if kind in ("Parameter", "EnumValue", "Specparam"):
            return self.from_constant(symbol.value, e.type, e, m)
        variable = self._scope.find(symbol)
        if variable is None:
            self.refuse(e, f"'{symbol.name}', a {kind}, as a value")
        return m.read(variable)

    def _HierarchicalValue(self, e: Any, m: Machine) -> Value:  # noqa: N802
        return self._NamedValue(e, m)

    def from_constant(self, constant: Any, type_: Any, e: Any, m: Machine) -> Value:
        """Return slang's constant as a value."""
        inner = constant.value
        layout = layout_of(type_)
        if layout is None:
            self.refuse(e, f"a constant of type {type_}")
        if isinstance(inner, (list, tuple)):
            pieces = []
            for index, item in enumerate(inner):
                element = (
                    type_.canonicalType.elementType
                    if isinstance(layout, Array)
                    else list(type_.canonicalType)[index].type
                )
                if not hasattr(item, "value"):
                    item = _Constant(item)
                pieces.append(self.from_constant(item, element, e, m))
            return tuple(pieces)
        if not hasattr(inner, "hasUnknown"):
            if isinstance(inner, int):
                assert isinstance(layout, Packed)
                return bv.value(inner, layout.width)
            if isinstance(inner, str):
                return bv.value(int.from_bytes(inner.encode(), "big"), max(8, type_.bitWidth))
            self.refuse(e, f"a constant of type {type_}")
        return self._constant(inner, e, m)

    # Operators

    def _UnaryOp(self, e: Any, m: Machine) -> Value:  # noqa: N802
        op = e.op.name
        if op in ("Preincrement", "Predecrement", "Postincrement", "Postdecrement"):
            old = self._before(e.operand, m)
            one = bv.value(1, old.width)
            new = bv.add(old, one) if op.endswith("increment") else bv.subtract(old, one)
            m.write(self.target(e.operand, m), new)
            return old if op.startswith("Post") else new
        a = self.bits(e.operand, m)
        if op == "Plus":
            return a
        if op == "Minus":
            return bv.subtract(bv.value(0, a.width), a)
        if op == "BitwiseNot":
            return bv.invert(a)
        if op == "LogicalNot":
            return bv.from_bool(logic.negate(bv.to_bool(a)))
        reduced = {
            "And": lambda: bv.from_bool(logic.equal(a, bv.value(-1, a.width))),
            "Or": lambda: bv.from_bool(bv.to_bool(a)),
            "Xor": lambda: bv.parity(a),
        }
        name = op.removeprefix("Bitwise")
        if name in reduced:
            return reduced[name]()
        return bv.invert(reduced[{"Nand": "And", "Nor": "Or", "Xnor": "Xor"}[name]]())

    def _BinaryOp(self, e: Any, m: Machine) -> Value:  # noqa: N802
        op = e.op.name
        if op in ("LogicalAnd", "LogicalOr", "LogicalImplication", "LogicalEquivalence"):
            return self._logical(op, e, m)
        if op in ("Equality", "Inequality", "CaseEquality", "CaseInequality"):
            return bv.from_bool(self._compared(op, e, m))
        if op in ("WildcardEquality", "WildcardInequality"):
            result = self.matches(self.bits(e.left, m), e.right, m, "xz")
            return bv.from_bool(result if op == "WildcardEquality" else logic.negate(result))
        a, b = self.bits(e.left, m), self.bits(e.right, m)
        return self.binary(op, a, b, e.left.type.isSigned and e.right.type.isSigned, e)

    def binary(self, op: str, a: Term, b: Term, signed: bool, e: Any) -> Term:
        """Return ``a op b``; both have the result's width, but for shifts and powers."""
        simple = {
            "Add": bv.add, "Subtract": bv.subtract, "Multiply": bv.multiply,
            "BinaryAnd": bv.bit_and, "BinaryOr": bv.bit_or, "BinaryXor": bv.bit_xor,
        }  # fmt: skip
        if op in simple:
            return simple[op](a, b)
        if op == "BinaryXnor":
            return bv.invert(bv.bit_xor(a, b))
        if op == "Divide":
            return bv.divide(a, b, signed=signed)
        if op == "Mod":
            return bv.remainder(a, b, signed=signed)
        order = {
            "LessThan": (a, b, True), "LessThanEqual": (a, b, False),
            "GreaterThan": (b, a, True), "GreaterThanEqual": (b, a, False),
        }  # fmt: skip
        if op in order:
            x, y, strict = order[op]
            return bv.from_bool(logic.less(x, y, signed=signed, strict=strict))
        if op.endswith(("ShiftLeft", "ShiftRight")):
            return self._shift(op, a, b, e)
        if op == "Power":
            return self._power(a, b, e)
        self.refuse(e, f"operator {op}")
        return None

    def _shift(self, op: str, a: Term, b: Term, e: Any) -> Term:
        width = max(a.width, b.width)
        amount = bv.zero_extend(b, width)
        signed = op == "ArithmeticShiftRight" and e.type.isSigned
        wide = bv.resize(a, width, signed=signed)
        if op.endswith("Left"):
            result = bv.shift_left(wide, amount)
        else:
            result = bv.shift_right(wide, amount, signed=signed)
        return bv.extract(result, a.width - 1, 0)

    def _power(self, a: Term, b: Term, e: Any) -> Term:
        if b.is_const:
            exponent = int(b.data)
            if exponent > 64:
                self.refuse(e, f"a power of {exponent}")
            result = bv.value(1, a.width)
            for _ in range(exponent):
                result = bv.multiply(result, a)
            return result
        if a.is_const and a.data == 2:
            width = max(a.width, b.width)
            one = bv.value(1, width)
            return bv.extract(bv.shift_left(one, bv.zero_extend(b, width)), a.width - 1, 0)
        self.refuse(e, "a power whose exponent is no constant")
        return None

    def _logical(self, op: str, e: Any, m: Machine) -> Term:
        a = self.condition(e.left, m)
        if op == "LogicalAnd":
            with m.under(a):
                b = self.condition(e.right, m)
            return bv.from_bool(logic.both(a, b))
        if op == "LogicalOr":
            with m.under(logic.negate(a)):
                b = self.condition(e.right, m)
            return bv.from_bool(logic.either(a, b))
        b = self.condition(e.right, m)
        if op == "LogicalImplication":
            return bv.from_bool(logic.implies(a, b))
        return bv.from_bool(
            logic.either(logic.both(a, b), logic.both(logic.negate(a), logic.negate(b)))
        )

    def _compared(self, op: str, e: Any, m: Machine) -> Term:
        """Return whether ``==``, ``!=``, ``===`` or ``!==`` holds."""
        digits = [self.unknown_digits(side) for side in (e.left, e.right)]
        if op.startswith("Case") and digits != [None, None]:
            for side, found in zip((e.left, e.right), digits, strict=True):
                if found is None:
                    self.value(side, m)
            # What is no constant has no digit that is x or z, so it is another value.
            return TRUE if (digits[0] == digits[1]) == (op == "CaseEquality") else FALSE
        a, b = self.value(e.left, m), self.value(e.right, m)
        if digits == [None, None]:
            result = self._equal(a, b)
            return logic.negate(result) if op.endswith("Inequality") else result
        if op == "Equality":  # x where no other digit differs, and x counts as 0
            return FALSE
        known = [
            place
            for place, column in enumerate(zip(*filter(None, digits), strict=True))
            if not {"x", "z"} & set(column)
        ]
        left, right = as_bits(a), as_bits(b)
        top = left.width - 1
        return logic.either(
            *(
                logic.negate(
                    logic.equal(
                        bv.extract(left, top - place, top - place),
                        bv.extract(right, top - place, top - place),
                    )
                )
                for place in known
            )
        )

    def unknown_digits(self, e: Any) -> str | None:
        """Return the digits of a constant of which some are x or z, else None."""
        number = getattr(self._scope.constant(e), "value", None)
        return known_bits(number)[1] if getattr(number, "hasUnknown", False) else None

    def _equal(self, a: Value, b: Value) -> Term:
        pairs = zip(flat(a), flat(b), strict=True)
        return logic.both(*(logic.equal(x, y) for x, y in pairs))

    def matches(self, subject: Term, e: Any, m: Machine, wild: str) -> Term:
        """Return whether ``subject`` equals a pattern whose ``wild`` digits match anything.

        Other digits that are x or z match nothing, since values are two-state.
        """
        digits = self.unknown_digits(e)
        if digits is not None:
            if set(digits) - {"0", "1", *wild}:
                return FALSE
            number = self._scope.constant(e).value
            care, bits_ = care_bits(number, wild)
            width = max(subject.width, number.bitWidth)
            subject = bv.zero_extend(subject, width)
            conditions = []
            for low, high in runs(care):
                piece = bv.extract(subject, high, low)
                conditions.append(logic.equal(piece, bv.value(bits_ >> low, piece.width)))
            return logic.both(*conditions)
        return logic.equal(subject, self.bits(e, m))

    def _ConditionalOp(self, e: Any, m: Machine) -> Value:  # noqa: N802
        conditions = [self.condition(item.expr, m) for item in e.conditions]
        condition = logic.both(*conditions)
        self._scope.record_choice(e, m, condition)
        with m.under(condition):
            yes = self.value(e.left, m)
        with m.under(logic.negate(condition)):
            no = self.value(e.right, m)
        return merge(condition, yes, no)

    def _Inside(self, e: Any, m: Machine) -> Value:  # noqa: N802
        return bv.from_bool(self.inside(e.left, list(e.rangeList), m))

    def inside(self, left: Any, ranges: list[Any], m: Machine) -> Term:
        """Return whether a value is one of a list of values and ranges."""
        subject = self.bits(left, m)
        return logic.either(
            *(self.in_item(subject, left.type.isSigned, item, m) for item in ranges)
        )

    def in_item(self, subject: Term, signed: bool, item: Any, m: Machine) -> Term:
        """Return whether ``subject`` is an item of ``inside``."""
        if item.kind.name == "ValueRange":
            low, high = self._bound(item.left, m), self._bound(item.right, m)
            return bv.in_range(
                subject,
                low or bv.value(0, subject.width),
                high or bv.value(-1, subject.width),
                signed=signed,
            )
        if item.type.isUnpackedArray:
            return logic.either(*(logic.equal(subject, part) for part in flat(self.value(item, m))))
        return self.matches(subject, item, m, "xz")

    def _bound(self, e: Any, m: Machine) -> Term | None:
        return None if e.kind.name == "UnboundedLiteral" else self.bits(e, m)

    # Structure

    def _Concatenation(self, e: Any, m: Machine) -> Value:  # noqa: N802
        operands = [self.value(item, m) for item in e.operands if not item.type.isVoid]
        if e.type.isUnpackedArray:
            return tuple(operands)
        return bv.concat([as_bits(item) for item in operands])

    def _Replication(self, e: Any, m: Machine) -> Value:  # noqa: N802
        constant = self._scope.constant(e.count)
        times = int(constant.value)
        if times == 0:
            self.refuse(e, "a replication of zero times on its own")
        return bv.concat([self.bits(e.concat, m)] * times)

    def _Streaming(self, e: Any, m: Machine) -> Value:  # noqa: N802
        whole = bv.concat([as_bits(self.value(item.operand, m)) for item in e.streams])
        if e.sliceSize == 0:
            return whole
        pieces = []
        for low in range(0, whole.width, e.sliceSize):
            pieces.append(bv.extract(whole, min(low + e.sliceSize, whole.width) - 1, low))
        return bv.concat(pieces)

    def _Conversion(self, e: Any, m: Machine) -> Value:  # noqa: N802
        source = e.operand.type.canonicalType
        target = layout_of(e.type)
        if source.isFloating and isinstance(target, Packed):
            # slang rounds a constant; other real numbers are refused where they stand.
            constant = self._scope.constant(e)
            if getattr(constant, "value", None) is not None:
                return self.from_constant(constant, e.type, e, m)
        value = self.value(e.operand, m)
        if target is None:
            self.refuse(e, f"a conversion to {e.type}")
        if isinstance(target, Packed) and isinstance(value, Term):
            if e.conversionKind.name == "StreamingConcat" and target.width > value.width:
                return bv.concat((value, bv.value(0, target.width - value.width)))
            # Width and sign spread through an expression together (IEEE 1800-2017, 11.8.2);
            # assignments and casts extend by the sign of the converted value.
            propagated = e.conversionKind.name == "Propagated"
            signed = target.signed if propagated else bool(source.isSigned)
            return bv.resize(value, target.width, signed=signed)
        if layout_of(source) == target:
            return value
        joined = as_bits(value)
        total = sum(part.width for part in flat(filled(target, 0)))
        if joined.width < total:
            joined = bv.concat((joined, bv.value(0, total - joined.width)))
        return from_bits(bv.extract(joined, total - 1, 0), target)

    def _MinTypMax(self, e: Any, m: Machine) -> Value:  # noqa: N802
        return self.value(e.selected, m)

    # Patterns

    def _SimpleAssignmentPattern(self, e: Any, m: Machine) -> Value:  # noqa: N802
        return self._gather(e, [self.value(item, m) for item in e.elements])

    def _StructuredAssignmentPattern(self, e: Any, m: Machine) -> Value:  # noqa: N802
        return self._gather(e, [self.value(item, m) for item in e.elements])

    def _ReplicatedAssignmentPattern(self, e: Any, m: Machine) -> Value:  # noqa: N802
        times = int(self._scope.constant(e.count).value)
        return self._gather(e, [self.value(item, m) for item in e.elements] * times)

    @staticmethod
    def _gather(e: Any, elements: list[Value]) -> Value:
        if e.type.isIntegral:
            return bv.concat([as_bits(item) for item in elements])
        return tuple(elements)

    # Assignment and calls

    def _Assignment(self, e: Any, m: Machine) -> Value:  # noqa: N802
        if e.timingControl is not None:
            # After a clock, shorter than its period, nothing sees when a register takes its value.
            if not e.isNonBlocking or e.timingControl.kind.name != "Delay":
                self.refuse(e, "an assignment with a delay")
            where = self._scope.position(e.sourceRange.start)
            m.notices[f"{where}: the delay of an assignment is ignored"] = None
        value = self._right(e, m)
        self.assign(e.left, value, m, blocking=not e.isNonBlocking)
        return value

    def _right(self, e: Any, m: Machine) -> Value:
        if not e.isCompound:
            return self.value(e.right, m)
        # slang puts a reference to the left side into the right one.
        old = self._before(e.left, m)
        m.held.append(old)
        try:
            return self.value(e.right, m)
        finally:
            m.held.pop()

    def _before(self, e: Any, m: Machine) -> Term:
        """Return the value of a target that is assigned to right away, and so looked at twice."""
        with m.tentatively() as written:
            old = self.bits(e, m)
        if written:
            self.refuse(e, "an index that changes variables here; write it in two statements")
        return old

    def _LValueReference(self, e: Any, m: Machine) -> Value:  # noqa: N802
        return m.held[-1]

    def _Call(self, e: Any, m: Machine) -> Value:  # noqa: N802
        if e.isSystemCall:
            from hagane.tools.rtl.circuit.system_calls import system_call

            result: Value = system_call(self, self._scope, e, m)
            return result
        return self._call(e, m)

    def _EmptyArgument(self, e: Any, m: Machine) -> Value:  # noqa: N802
        # The value of an output port stands on the right of its connection.
        if m.held_value is None:
            self.refuse(e, "an empty argument")
        return m.held_value


class _Constant:
    def __init__(self, value: Any):
        self.value = value


def known_bits(number: Any) -> tuple[int, str]:
    """Return a four-state constant with x and z as 0, and its digits."""
    import pyslang

    digits = number.toString(pyslang.LiteralBase.Binary, False).removeprefix("-")
    digits = digits.rjust(number.bitWidth, digits[0] if digits[0] in "xz" else "0")
    return int("".join("1" if digit == "1" else "0" for digit in digits), 2), digits


def care_bits(number: Any, wild: str) -> tuple[int, int]:
    """Return which bits of a pattern are compared, and its value."""
    bits_, digits = known_bits(number)
    care = int("".join("0" if digit in wild else "1" for digit in digits), 2)
    return care, bits_


def runs(mask: int) -> list[tuple[int, int]]:
    """Return the runs of ones of ``mask`` as pairs of lowest and highest bit."""
    found = []
    low = 0
    while mask >> low:
        if mask >> low & 1:
            high = low
            while mask >> (high + 1) & 1:
                high += 1
            found.append((low, high))
            low = high
        low += 1
    return found


__all__ = ["FALSE", "TRUE", "Expressions"]
