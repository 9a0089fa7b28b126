"""The bridge to Z3: terms become Z3 expressions, a solver answers with numbers.

Z3 is imported when the first solver is made; it comes with the extras ``check`` and ``rtl``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hagane.errors import MissingExtra
from hagane.symbolic.term import BOOL, INT, Term, rewrite


@dataclass(frozen=True, slots=True)
class Answer:
    """``sat`` with numbers for the unknowns, ``unsat``, or ``unknown`` with the reason."""

    status: str
    assignment: Mapping[str, int] | None = None
    reason: str = ""


class Solver:
    """An incremental Z3 solver over terms of any sort.

    Args:
        extra: The extra that is named if Z3 is missing.
    """

    def __init__(self, extra: str = "check"):
        try:
            import z3
        except ImportError:
            raise MissingExtra("solving path conditions", extra) from None
        self._z3: Any = z3
        # A context of its own: solvers of several threads don't share one.
        self._context = z3.Context()
        self._solver: Any = z3.Solver(ctx=self._context)
        self._memo: dict[Term, Any] = {}
        self._variables: dict[str, Term] = {}

    def add(self, term: Term) -> None:
        """Require ``term`` from now on (until the end of an enclosing ``scope``)."""
        self._solver.add(self.translate(term))

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Forget additions inside once the block ends."""
        self._solver.push()
        try:
            yield
        finally:
            self._solver.pop()

    def check(self, terms: Iterable[Term] = (), *, seconds: float = 10.0) -> Answer:
        """Look for an assignment that satisfies all that was added, and ``terms``."""
        z3 = self._z3
        self._solver.set("timeout", max(1, int(seconds * 1000)))
        status = self._solver.check(*[self.translate(term) for term in terms])
        if status == z3.unsat:
            return Answer("unsat")
        if status == z3.unknown:
            return Answer("unknown", reason=str(self._solver.reason_unknown()))
        model = self._solver.model()
        numbers = {}
        for name, variable in self._variables.items():
            found = model.eval(self._memo[variable])
            if variable.sort is BOOL:
                numbers[name] = int(z3.is_true(found))
            elif z3.is_int_value(found) or z3.is_bv_value(found):
                numbers[name] = found.as_long()
        return Answer("sat", numbers)

    def translate(self, term: Term) -> Any:
        """Return ``term`` as a Z3 expression of this solver's context."""
        found = self._memo.get(term)
        if found is None:
            rewrite((term,), self._step, self._memo)
            found = self._memo[term]
        return found

    def _step(self, term: Term, args: tuple[Any, ...]) -> Any:
        z3, context = self._z3, self._context
        if term.op == "const":
            if term.sort is BOOL:
                return z3.BoolVal(term.data, context)
            if term.sort is INT:
                return z3.IntVal(term.data, context)
            return z3.BitVecVal(term.data, term.width, context)
        if term.op == "var":
            self._variables[term.data] = term
            if term.sort is BOOL:
                return z3.Bool(term.data, context)
            if term.sort is INT:
                return z3.Int(term.data, context)
            return z3.BitVec(term.data, term.width, context)
        return _translate(z3, term, args)


def _translate(z3: Any, term: Term, a: tuple[Any, ...]) -> Any:
    match term.op:
        case "not":
            return z3.Not(a[0])
        case "and":
            return z3.And(*a)
        case "or":
            return z3.Or(*a)
        case "ite":
            return z3.If(*a)
        case "eq":
            return a[0] == a[1]
        case "lt":
            return a[0] < a[1] if term.args[0].sort is INT else z3.ULT(*a)
        case "slt":
            return a[0] < a[1]
        case "concat":
            return z3.Concat(*a)
        case "extract":
            return z3.Extract(term.data[0], term.data[1], a[0])
        case "sext":
            return z3.SignExt(term.width - term.args[0].width, a[0])
        case "bvnot":
            return ~a[0]
        case "bvand":
            return a[0] & a[1]
        case "bvor":
            return a[0] | a[1]
        case "bvxor":
            return a[0] ^ a[1]
        case "add" | "int_add":
            return a[0] + a[1]
        case "sub":
            return a[0] - a[1]
        case "mul" | "int_mul":
            return a[0] * a[1]
        case "shl":
            return a[0] << a[1]
        case "lshr":
            return z3.LShR(*a)
        case "ashr":
            return a[0] >> a[1]
        case "int_div":
            return a[0] / a[1]
        case "int_mod":
            return a[0] % a[1]
    divisions = {
        "udiv": z3.UDiv, "urem": z3.URem, "sdiv": lambda x, y: x / y, "srem": z3.SRem,
    }  # fmt: skip
    zero = z3.BitVecVal(0, term.width, a[0].ctx)
    return z3.If(a[1] == zero, zero, divisions[term.op](*a))
