"""Bit vectors: arithmetic, shifts, slices, simplified as they are built.

A division by zero gives zero, as two-state simulators do where the language says x; so does a
remainder. Widths of operands agree; nothing is extended silently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from hagane.symbolic.logic import both, choose, equal, less, negate, number
from hagane.symbolic.term import BOOL, Term, bits, const, make


def value(number: int, width: int) -> Term:
    """Return a constant of ``width`` bits."""
    return const(number, bits(width))


def _ones(width: int) -> int:
    return (1 << width) - 1


def from_bool(condition: Term) -> Term:
    """Return one bit that is 1 where ``condition`` holds."""
    return choose(condition, value(1, 1), value(0, 1))


def to_bool(a: Term) -> Term:
    """Return whether any bit of ``a`` is 1."""
    if a.sort is BOOL:
        return a
    if a.width == 1:
        return equal(a, value(1, 1))
    return negate(equal(a, value(0, a.width)))


def concat(parts: Iterable[Term]) -> Term:
    """Return the parts side by side, the first one highest."""
    flat: list[Term] = []
    for part in parts:
        for piece in part.args if part.op == "concat" else (part,):
            if flat and _joins(flat[-1], piece):
                flat[-1] = _join(flat[-1], piece)
            else:
                flat.append(piece)
    if len(flat) == 1:
        return flat[0]
    return make("concat", tuple(flat), None, bits(sum(part.width for part in flat)))


def _joins(high: Term, low: Term) -> bool:
    if high.is_const and low.is_const:
        return True
    return (
        high.op == "extract"
        and low.op == "extract"
        and high.args[0] is low.args[0]
        and high.data[1] == low.data[0] + 1
    )


def _join(high: Term, low: Term) -> Term:
    if high.is_const:
        return value(high.data << low.width | low.data, high.width + low.width)
    return extract(high.args[0], high.data[0], low.data[1])


def extract(a: Term, high: int, low: int) -> Term:
    """Return bits ``high`` to ``low`` of ``a``, both included."""
    width = high - low + 1
    if width == a.width:
        return a
    if a.is_const:
        return value(a.data >> low, width)
    return _extract(a, high, low)


# Parts of a vector that is written piece by piece come again and again, below one another.
@lru_cache(maxsize=1 << 16)
def _extract(a: Term, high: int, low: int) -> Term:
    width = high - low + 1
    if a.op == "extract":
        return extract(a.args[0], high + a.data[1], low + a.data[1])
    if a.op == "concat":
        return concat(_cut(a.args, high, low))
    if a.op == "sext":
        return _cut_extension(a, high, low)
    if a.op == "ite":
        chain = _chain(a)
        if chain is not None:
            arms, last = chain
            result = extract(last, high, low)
            for condition, arm in reversed(arms):
                result = choose(condition, extract(arm, high, low), result)
            return result
    if a.op in ("bvand", "bvor", "bvxor") and any(arg.op in ("const", "concat") for arg in a.args):
        return _BITWISE[a.op](extract(a.args[0], high, low), extract(a.args[1], high, low))
    if a.op == "bvnot":
        return invert(extract(a.args[0], high, low))
    if a.op in ("add", "sub", "mul") and low == 0:
        # The low bits of a sum depend on the low bits of the summands only.
        return _LOW[a.op](extract(a.args[0], high, 0), extract(a.args[1], high, 0))
    return make("extract", (a,), (high, low), bits(width))


def _chain(a: Term) -> tuple[list[tuple[Term, Term]], Term] | None:
    """Return the arms of nested choices if bits of each arm are easily cut out."""
    arms = []
    while a.op == "ite":
        if a.args[1].op not in ("const", "concat"):
            if a.args[2].op not in ("const", "concat"):
                return None
            arms.append((negate(a.args[0]), a.args[2]))
            a = a.args[1]
        else:
            arms.append((a.args[0], a.args[1]))
            a = a.args[2]
    return (arms, a) if a.op in ("const", "concat", "var", "extract") else None


def _cut(parts: tuple[Term, ...], high: int, low: int) -> list[Term]:
    kept = []
    top = sum(part.width for part in parts)
    for part in parts:
        base = top - part.width
        if base <= high and top > low:
            kept.append(extract(part, min(high, top - 1) - base, max(low, base) - base))
        top = base
    return kept


def _cut_extension(a: Term, high: int, low: int) -> Term:
    inner = a.args[0]
    sign = inner.width - 1
    if high <= sign:
        return extract(inner, high, low)
    if low >= sign:
        return sign_extend(extract(inner, sign, sign), high - low + 1)
    return sign_extend(extract(inner, sign, low), high - low + 1)


def zero_extend(a: Term, width: int) -> Term:
    """Return ``a`` with zeros above it, ``width`` bits in all."""
    return a if width == a.width else concat((value(0, width - a.width), a))


def sign_extend(a: Term, width: int) -> Term:
    """Return ``a`` with copies of its sign above it, ``width`` bits in all."""
    if width == a.width:
        return a
    if a.is_const:
        return value(number(a, True), width)
    if a.op == "sext":
        a = a.args[0]
    if a.op == "concat" and a.args[0].is_const:
        sign = a.args[0].data >> (a.args[0].width - 1)
        fill = width - a.width
        return concat((value(_ones(fill) if sign else 0, fill), a))
    return make("sext", (a,), None, bits(width))


def resize(a: Term, width: int, *, signed: bool) -> Term:
    """Return the low bits of ``a``, or ``a`` extended by zeros or by its sign."""
    if width <= a.width:
        return extract(a, width - 1, 0)
    return sign_extend(a, width) if signed else zero_extend(a, width)


def invert(a: Term) -> Term:
    """Return every bit of ``a`` inverted."""
    if a.is_const:
        return value(~a.data, a.width)
    if a.op == "bvnot":
        return a.args[0]
    if a.width == 1:
        return from_bool(negate(to_bool(a)))
    return make("bvnot", (a,), None, a.sort)


def _bitwise(op: str, a: Term, b: Term) -> Term:
    if a.is_const:
        a, b = b, a
    if a.is_const:
        return value(_INT[op](a.data, b.data), a.width)
    ones = _ones(a.width)
    if a is b:
        return value(0, a.width) if op == "bvxor" else a
    if b.is_const:
        if b.data == 0:
            return b if op == "bvand" else a
        if b.data == ones:
            return {"bvand": a, "bvor": b}.get(op) or invert(a)
        if op == "bvand":
            masked = _mask(a, b.data)
            if masked is not None:
                return masked
    return make(op, (a, b), None, a.sort)


def _mask(a: Term, mask: int) -> Term | None:
    """Return ``a & mask`` as a concatenation if the mask is one run of ones."""
    low = (mask & -mask).bit_length() - 1
    run = mask >> low
    if run & (run + 1):
        return None
    high = mask.bit_length() - 1
    parts = [extract(a, high, low)]
    if high + 1 < a.width:
        parts.insert(0, value(0, a.width - high - 1))
    if low:
        parts.append(value(0, low))
    return concat(parts)


def bit_and(a: Term, b: Term) -> Term:
    """Return the bits set in both."""
    if a.width == 1:
        return from_bool(both(to_bool(a), to_bool(b)))
    return _bitwise("bvand", a, b)


def bit_or(a: Term, b: Term) -> Term:
    """Return the bits set in either."""
    if a.width == 1:
        return invert(bit_and(invert(a), invert(b)))
    return _bitwise("bvor", a, b)


def bit_xor(a: Term, b: Term) -> Term:
    """Return the bits that differ."""
    return _bitwise("bvxor", a, b)


def add(a: Term, b: Term) -> Term:
    """Return the sum, without its carry."""
    if a.is_const:
        a, b = b, a
    if b.is_const:
        if a.is_const:
            return value(a.data + b.data, a.width)
        if b.data == 0:
            return a
        if a.op == "add" and a.args[1].is_const:
            return add(a.args[0], value(a.args[1].data + b.data, a.width))
    return make("add", (a, b), None, a.sort)


def subtract(a: Term, b: Term) -> Term:
    """Return the difference, without its borrow."""
    if a is b:
        return value(0, a.width)
    if b.is_const:
        return add(a, value(-b.data, a.width))
    return make("sub", (a, b), None, a.sort)


def multiply(a: Term, b: Term) -> Term:
    """Return the product's low bits."""
    if a.is_const:
        a, b = b, a
    if b.is_const:
        if a.is_const:
            return value(a.data * b.data, a.width)
        if b.data == 0:
            return b
        if b.data & (b.data - 1) == 0:
            return shift_left(a, value(b.data.bit_length() - 1, a.width))
    return make("mul", (a, b), None, a.sort)


def divide(a: Term, b: Term, *, signed: bool) -> Term:
    """Return the quotient rounded towards zero; zero where ``b`` is zero."""
    if a.is_const and b.is_const:
        return value(divide_ints(number(a, signed), number(b, signed)), a.width)
    if b.is_const and b.data == 1:
        return a
    if b.is_const and not signed and b.data & (b.data - 1) == 0 and b.data:
        return shift_right(a, value(b.data.bit_length() - 1, a.width), signed=False)
    return make("sdiv" if signed else "udiv", (a, b), None, a.sort)


def remainder(a: Term, b: Term, *, signed: bool) -> Term:
    """Return the remainder of a division, with the sign of ``a``; zero where ``b`` is zero."""
    if a.is_const and b.is_const:
        return value(remainder_ints(number(a, signed), number(b, signed)), a.width)
    if b.is_const and not signed and b.data & (b.data - 1) == 0 and b.data:
        return bit_and(a, value(b.data - 1, a.width))
    return make("srem" if signed else "urem", (a, b), None, a.sort)


def divide_ints(a: int, b: int) -> int:
    """Return ``a / b`` rounded towards zero, or 0 where ``b`` is 0."""
    if b == 0:
        return 0
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def remainder_ints(a: int, b: int) -> int:
    """Return ``a - b * divide_ints(a, b)``, or 0 where ``b`` is 0."""
    return 0 if b == 0 else a - b * divide_ints(a, b)


def shift_left(a: Term, amount: Term) -> Term:
    """Return ``a`` shifted up; ``amount`` has the width of ``a``."""
    if amount.is_const:
        if amount.data == 0:
            return a
        if amount.data >= a.width:
            return value(0, a.width)
        return concat((extract(a, a.width - 1 - amount.data, 0), value(0, amount.data)))
    return make("shl", (a, amount), None, a.sort)


def shift_right(a: Term, amount: Term, *, signed: bool) -> Term:
    """Return ``a`` shifted down, filled with zeros or with its sign."""
    if amount.is_const:
        if amount.data == 0:
            return a
        count = min(int(amount.data), a.width)
        if signed:
            return sign_extend(extract(a, a.width - 1, min(count, a.width - 1)), a.width)
        if count == a.width:
            return value(0, a.width)
        return zero_extend(extract(a, a.width - 1, count), a.width)
    return make("ashr" if signed else "lshr", (a, amount), None, a.sort)


def parity(a: Term) -> Term:
    """Return one bit: the exclusive or of all bits of ``a``."""
    if a.is_const:
        return value(int(a.data).bit_count(), 1)
    result = extract(a, 0, 0)
    for index in range(1, a.width):
        result = bit_xor(result, extract(a, index, index))
    return result


def ones(a: Term, width: int) -> Term:
    """Return how many bits of ``a`` are 1, as ``width`` bits."""
    total = value(0, width)
    for index in range(a.width):
        total = add(total, resize(extract(a, index, index), width, signed=False))
    return total


def in_range(a: Term, low: Term, high: Term, *, signed: bool) -> Term:
    """Return whether ``low <= a <= high``."""
    return both(
        less(low, a, signed=signed, strict=False), less(a, high, signed=signed, strict=False)
    )


_INT: dict[str, Callable[[int, int], int]] = {
    "bvand": lambda a, b: a & b,
    "bvor": lambda a, b: a | b,
    "bvxor": lambda a, b: a ^ b,
}
_BITWISE: dict[str, Callable[[Term, Term], Term]] = {
    "bvand": bit_and,
    "bvor": bit_or,
    "bvxor": bit_xor,
}
_LOW: dict[str, Callable[[Term, Term], Term]] = {
    "add": add,
    "sub": subtract,
    "mul": multiply,
}
