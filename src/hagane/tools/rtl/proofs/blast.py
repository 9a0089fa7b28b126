"""Terms as gates, a literal for each bit, the lowest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hagane.symbolic.term import Term, postorder
from hagane.tools.rtl.proofs.gates import FALSE, TRUE, Gates

Bits = list[int]


class Blaster:
    """Terms over unknowns whose bits are given."""

    def __init__(self, gates: Gates, unknowns: Mapping[str, Bits]):
        self._g = gates
        self._unknowns = unknowns
        self._memo: dict[Term, Bits] = {}

    def __call__(self, term: Term) -> Bits:
        """Return the literals of a term; of a truth value one."""
        found = self._memo.get(term)
        if found is None:
            for node in postorder((term,)):
                if node not in self._memo:
                    self._memo[node] = self._step(node, [self._memo[a] for a in node.args])
            found = self._memo[term]
        return found

    def _step(self, t: Term, a: list[Bits]) -> Bits:
        g = self._g
        match t.op:
            case "const":
                return _number(int(t.data), max(1, t.width))
            case "var":
                return self._unknowns.get(t.data) or [FALSE] * max(1, t.width)
            case "not" | "bvnot":
                return [x ^ 1 for x in a[0]]
            case "and":
                return [g.every(x[0] for x in a)]
            case "or":
                return [g.some(x[0] for x in a)]
            case "ite":
                return [g.choose(a[0][0], x, y) for x, y in zip(a[1], a[2], strict=True)]
            case "eq":
                return [g.every(g.differ(x, y) ^ 1 for x, y in zip(a[0], a[1], strict=True))]
            case "lt":
                return [self._less(a[0], a[1])]
            case "slt":
                x, y = [*a[0]], [*a[1]]
                x[-1] ^= 1
                y[-1] ^= 1
                return [self._less(x, y)]
            case "concat":
                return [bit for part in reversed(a) for bit in part]
            case "extract":
                return a[0][t.data[1] : t.data[0] + 1]
            case "sext":
                return a[0] + [a[0][-1]] * (t.width - len(a[0]))
            case "bvand":
                return [g.both(x, y) for x, y in zip(a[0], a[1], strict=True)]
            case "bvor":
                return [g.either(x, y) for x, y in zip(a[0], a[1], strict=True)]
            case "bvxor":
                return [g.differ(x, y) for x, y in zip(a[0], a[1], strict=True)]
            case "add":
                return self._add(a[0], a[1], FALSE)
            case "sub":
                return self._add(a[0], [y ^ 1 for y in a[1]], TRUE)
            case "mul":
                return self._multiply(a[0], a[1])
            case "udiv" | "urem":
                quotient, rest = self._divide(a[0], a[1])
                return self._defined(quotient if t.op == "udiv" else rest, a[1])
            case "sdiv" | "srem":
                return self._signed(t.op, a[0], a[1])
            case "shl":
                return self._shift(a[0][::-1], a[1], FALSE)[::-1]
            case "lshr":
                return self._shift(a[0], a[1], FALSE)
            case "ashr":
                return self._shift(a[0], a[1], a[0][-1])
        raise AssertionError(f"an operation '{t.op}' in a circuit")

    def _sum(self, x: int, y: int, carry: int) -> tuple[int, int]:
        g = self._g
        odd = g.differ(x, y)
        return g.differ(odd, carry), g.choose(odd, carry, x)

    def _add(self, a: Sequence[int], b: Sequence[int], carry: int) -> Bits:
        made = []
        for x, y in zip(a, b, strict=True):
            bit, carry = self._sum(x, y, carry)
            made.append(bit)
        return made

    def _less(self, a: Sequence[int], b: Sequence[int]) -> int:
        g, less = self._g, FALSE
        for x, y in zip(a, b, strict=True):
            less = g.choose(g.differ(x, y), y, less)
        return less

    def _multiply(self, a: Bits, b: Bits) -> Bits:
        if sum(x > 1 for x in a) < sum(x > 1 for x in b):
            a, b = b, a
        made = [FALSE] * len(a)
        for shift, y in enumerate(b):
            if y == FALSE:
                continue
            part = [self._g.both(x, y) for x in a[: len(a) - shift]]
            made[shift:] = self._add(made[shift:], part, FALSE)
        return made

    def _divide(self, a: Bits, b: Bits) -> tuple[Bits, Bits]:
        """Return quotient and rest by long division, for a divisor other than 0."""
        g, width = self._g, len(a)
        divisor = [*b, FALSE]
        rest = [FALSE] * (width + 1)
        quotient = [FALSE] * width
        for at in range(width - 1, -1, -1):
            rest = [a[at], *rest[:-1]]
            fits = self._less(rest, divisor) ^ 1
            lower = self._add(rest, [y ^ 1 for y in divisor], TRUE)
            rest = [g.choose(fits, x, y) for x, y in zip(lower, rest, strict=True)]
            quotient[at] = fits
        return quotient, rest[:width]

    def _defined(self, value: Bits, divisor: Bits) -> Bits:
        """Return the value, or 0 where the divisor is 0."""
        some = self._g.some(divisor)
        return [self._g.both(some, x) for x in value]

    def _size(self, a: Bits, negative: int) -> Bits:
        g = self._g
        return self._add([g.differ(x, negative) for x in a], [FALSE] * len(a), negative)

    def _signed(self, op: str, a: Bits, b: Bits) -> Bits:
        p, q = a[-1], b[-1]
        quotient, rest = self._divide(self._size(a, p), self._size(b, q))
        negative = self._g.differ(p, q) if op == "sdiv" else p
        value = self._size(quotient if op == "sdiv" else rest, negative)
        return self._defined(value, b)

    def _shift(self, a: Bits, amount: Bits, fill: int) -> Bits:
        """Return the bits moved down by an amount."""
        g, width = self._g, len(a)
        made = list(a)
        beyond = []
        for power, bit in enumerate(amount):
            step = 1 << power
            if step >= width:
                beyond.append(bit)
                continue
            made = [
                g.choose(bit, made[k + step] if k + step < width else fill, made[k])
                for k in range(width)
            ]
        far = g.some(beyond)
        return [g.choose(far, fill, x) for x in made]


def _number(value: int, width: int) -> Bits:
    return [value >> k & 1 for k in range(width)]
