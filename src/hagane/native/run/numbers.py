"""Sizes of a part as numbers by index, and formulas that compute them of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import lcm

from hagane.symbolic import Dim, Expr
from hagane.symbolic.expression import Atom

# The operations of `native/c/tables.h`.
_ADD, _MULTIPLY, _FLOOR, _MODULO, _LEAST, _MOST, _TAKE = range(7)
_OPERATIONS = {"floor": _FLOOR, "mod": _MODULO, "min": _LEAST, "max": _MOST}


class SizeTable:
    """Sizes, each of which has one index; equal parts of formulas are computed once.

    Args:
        symbols: Names whose sizes the inputs of the part tell.
        changing: Names whose sizes differ between iterations, and the first value of each.

    Attributes:
        constants: All numbers, 0 for numbers that a run tells.
        formulas: Operation, number that it makes, and the two of which: in order.
        n_begin: How many of them, the first, make the first values of changing sizes.
    """

    def __init__(self, symbols: Sequence[str], changing: Mapping[str, Dim]):
        self.symbols = tuple(symbols)
        self.names = {name: i for i, name in enumerate((*symbols, *changing))}
        self.constants: list[int] = [0] * len(self.names)
        self.formulas: list[tuple[int, int, int, int]] = []
        self._dims: dict[Expr, int] = {}
        self._made: dict[tuple[int, int, int], int] = {}
        self._known: dict[int, int] = {}
        for name, start in changing.items():
            first = self(start)
            self.formulas.append((_TAKE, self.names[name], first, first))
            # (They change in iterations: values computed of them are computed again.)
            self._dims.clear()
            self._made.clear()
        self.n_begin = len(self.formulas)

    def __call__(self, dim: Dim) -> int:
        """Return the index of a size."""
        if not isinstance(dim, Expr):
            return self._constant(int(dim))
        found = self._dims.get(dim)
        if found is None:
            found = self._dims[dim] = self._sum(dim)
        return found

    def __len__(self) -> int:
        return len(self.constants)

    def _constant(self, number: int) -> int:
        if number not in self._known:
            self._known[number] = len(self.constants)
            self.constants.append(number)
        return self._known[number]

    def _make(self, operation: int, left: int, right: int) -> int:
        key = operation, left, right
        if key not in self._made:
            made = self._made[key] = len(self.constants)
            self.constants.append(0)
            self.formulas.append((operation, made, left, right))
        return self._made[key]

    def _sum(self, value: Expr) -> int:
        # Coefficients may be fractions whose sum is whole.
        whole = lcm(*(coefficient.denominator for coefficient in value.terms.values()))
        total: int | None = None
        for monomial, coefficient in value.terms.items():
            number = int(coefficient * whole)
            made: int | None = None if number == 1 and monomial else self._constant(number)
            for atom, power in monomial:
                factor = self._atom(atom)
                for _ in range(power):
                    made = factor if made is None else self._make(_MULTIPLY, made, factor)
            assert made is not None
            total = made if total is None else self._make(_ADD, total, made)
        if total is None:
            return self._constant(0)
        return total if whole == 1 else self._make(_FLOOR, total, self._constant(whole))

    def _atom(self, atom: Atom) -> int:
        if atom.is_symbol:
            return self.names[atom.head]
        first, *others = (self(argument) for argument in atom.arguments)
        for other in others:
            first = self._make(_OPERATIONS[atom.head], first, other)
        return first
