"""A SAT solver over gates: of PySAT where it is installed, else Z3's."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from hagane.errors import MissingExtra
from hagane.tools.rtl.proofs.gates import AND, INPUT, XOR, Gates


class _Back(Protocol):
    def add(self, clause: list[int]) -> None: ...

    def solve(self, assumed: Sequence[int], seconds: float) -> bool | None: ...

    def value(self, number: int) -> bool: ...

    def core(self) -> list[int]: ...

    def close(self) -> None: ...


class Sat:
    """Questions about the literals of gates; added clauses hold from then on.

    Args:
        gates: The graph; it may grow between questions.
    """

    def __init__(self, gates: Gates):
        self._gates = gates
        self._back: _Back = _back()
        self._numbers: dict[int, int] = {}
        self._next = 0
        # Node 0 is false.
        self._numbers[0] = self._fresh()
        self._back.add([-1])

    def close(self) -> None:
        """Free the solver's memory."""
        self._back.close()

    def _fresh(self) -> int:
        self._next += 1
        return self._next

    def literal(self, literal: int) -> int:
        """Return the solver's literal of a gate's, whose cone is added where it is new."""
        node = literal >> 1
        found = self._numbers.get(node)
        if found is None:
            self._add_cone(literal)
            found = self._numbers[node]
        return -found if literal & 1 else found

    def _add_cone(self, literal: int) -> None:
        gates, numbers, add = self._gates, self._numbers, self._back.add
        for node in gates.cone((literal,), numbers):
            out = numbers[node] = self._fresh()
            kind = gates.kind[node]
            if kind == INPUT:
                continue
            a, b, *more = (
                -numbers[x >> 1] if x & 1 else numbers[x >> 1] for x in gates.arguments[node]
            )
            if kind == AND:
                add([-out, a])
                add([-out, b])
                add([out, -a, -b])
            elif kind == XOR:
                add([-out, a, b])
                add([-out, -a, -b])
                add([out, -a, b])
                add([out, a, -b])
            else:
                (c,) = more
                add([-a, -b, out])
                add([-a, b, -out])
                add([a, -c, out])
                add([a, c, -out])
                add([-b, -c, out])
                add([b, c, -out])

    def known(self, literal: int) -> int | None:
        """Return the solver's literal of a gate's, if it is part of any question so far."""
        found = self._numbers.get(literal >> 1)
        return None if found is None else -found if literal & 1 else found

    def selector(self) -> int:
        """Return a fresh literal of the solver, to switch clauses on with."""
        return self._fresh()

    def require(self, literals: Iterable[int], unless: int | None = None) -> None:
        """Add that one of some gates' literals holds, where the selector is assumed."""
        clause = [self.literal(x) for x in literals]
        self._back.add(clause if unless is None else [-unless, *clause])

    def add(self, clause: list[int]) -> None:
        """Add a clause of the solver's own literals."""
        self._back.add(clause)

    def check(self, assumed: Sequence[int] = (), *, seconds: float = 10.0) -> bool | None:
        """Return whether there is an assignment under assumptions (the solver's literals)."""
        return self._back.solve(assumed, max(0.01, seconds))

    def holds(self, literal: int) -> bool:
        """Return the value of a gate's literal in the assignment found; false where it is free."""
        number = self._numbers.get(literal >> 1)
        return (number is not None and self._back.value(number)) != bool(literal & 1)

    def core(self) -> list[int]:
        """Return assumptions that exclude each other, after a check that found nothing."""
        return self._back.core()


def _back() -> _Back:
    try:
        from pysat.solvers import Solver
    except ImportError:
        return _Z3()
    return _PySat(Solver)


class _PySat:
    def __init__(self, solver: Any):
        self._solver = solver(name="glucose4", incr=False)
        self._model: list[int] = []

    def add(self, clause: list[int]) -> None:
        self._solver.add_clause(clause, no_return=True)

    def solve(self, assumed: Sequence[int], seconds: float) -> bool | None:
        timer = threading.Timer(seconds, self._solver.interrupt)
        timer.start()
        try:
            found = self._solver.solve_limited(assumptions=list(assumed), expect_interrupt=True)
        finally:
            timer.cancel()
            self._solver.clear_interrupt()
        if found:
            self._model = self._solver.get_model()
        return None if found is None else bool(found)

    def value(self, number: int) -> bool:
        return number <= len(self._model) and self._model[number - 1] > 0

    def core(self) -> list[int]:
        return list(self._solver.get_core() or ())

    def close(self) -> None:
        self._solver.delete()


class _Z3:
    def __init__(self) -> None:
        try:
            import z3
        except ImportError:
            raise MissingExtra("proofs about circuits", "rtl") from None
        self._z3: Any = z3
        self._context = z3.Context()
        self._solver = z3.SolverFor("QF_FD", ctx=self._context)
        self._names: dict[int, Any] = {}
        self._assumed: dict[Any, int] = {}
        self._model: Any = None

    def _term(self, literal: int) -> Any:
        name = self._names.get(abs(literal))
        if name is None:
            name = self._names[abs(literal)] = self._z3.Bool(f"b{abs(literal)}", self._context)
        return name if literal > 0 else self._z3.Not(name)

    def add(self, clause: list[int]) -> None:
        terms = [self._term(x) for x in clause]
        false = self._z3.BoolVal(False, self._context)
        self._solver.add(self._z3.Or(*terms) if terms else false)

    def solve(self, assumed: Sequence[int], seconds: float) -> bool | None:
        self._solver.set("timeout", max(1, int(seconds * 1000)))
        terms = [self._term(x) for x in assumed]
        self._assumed = {term.get_id(): x for term, x in zip(terms, assumed, strict=True)}
        found = self._solver.check(*terms)
        if found == self._z3.sat:
            self._model = self._solver.model()
            return True
        return False if found == self._z3.unsat else None

    def value(self, number: int) -> bool:
        name = self._names.get(number)
        return name is not None and self._z3.is_true(self._model.eval(name))

    def core(self) -> list[int]:
        return [self._assumed[term.get_id()] for term in self._solver.unsat_core()]

    def close(self) -> None:
        self._names.clear()
