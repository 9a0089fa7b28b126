"""Which process drives which bits: the definitions that combinational logic is settled from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from hagane.symbolic import bitvector as bv
from hagane.symbolic.interpret import Substitution
from hagane.symbolic.term import Term, variable
from hagane.tools.rtl.circuit.machine import Machine, Variable
from hagane.tools.rtl.circuit.values import Value, flat

if TYPE_CHECKING:
    from hagane.tools.rtl.circuit.design import Process

PREVIOUS = "@"
_HELD = "&"
_SHOWN = 6


class Drivers:
    """The terms that the combinational processes drive, by the names of unknowns.

    A bit that nothing drives, or that a procedural process reads before it writes it, keeps its
    value; its value before stands in the terms as another unknown, listed by :meth:`kept`.
    """

    def __init__(self) -> None:
        self.definitions: dict[str, Term] = {}
        self.final: list[Term] = []
        self.variables: dict[Variable, None] = {}
        self._covered: dict[str, int] = {}
        self._latched: set[Term] = set()
        self._places: dict[str, list[tuple[int, Process]]] = {}

    def add(
        self,
        process: Process,
        machine: Machine,
        read: set[Variable],
        before: Callable[[Variable], Value],
    ) -> dict[Variable, Value]:
        """Add an executed process; return the values that are known from it for good.

        ``read`` are the variables that it read while they were not known.
        """
        written = [v for v in machine.masks if not v.local and machine.written(v) is not None]
        if process.procedural:
            self._keep(machine, [v for v in written if v in read], before)
        known: dict[Variable, Value] = {}
        for variable_ in written:
            value = machine.written(variable_)
            assert value is not None
            whole = not read and variable_ not in self.variables
            self.variables[variable_] = None
            columns = zip(
                flat(machine.masks[variable_]), flat(value), flat(before(variable_)), strict=True
            )
            for mask, term, unknown in columns:
                bits = int(mask.data)
                whole = whole and bits == (1 << mask.width) - 1
                if bits:
                    self._drive(process, bits, term, unknown)
                    if not read:
                        self.final.append(term)
            if whole:
                known[variable_] = value
        return known

    def _drive(self, process: Process, bits: int, term: Term, unknown: Term) -> None:
        name = str(unknown.data)
        old = self.definitions.get(name)
        mask = bv.value(bits, term.width)
        new = masked(mask, term, _held(unknown) if old is None else old)
        assert isinstance(new, Term)
        self.definitions[name] = new
        self._covered[name] = self._covered.get(name, 0) | bits
        self._places.setdefault(name, []).append((bits, process))

    def _keep(
        self, machine: Machine, read: Sequence[Variable], before: Callable[[Variable], Value]
    ) -> None:
        """Let a process read its own bits as their value before."""
        replaced: dict[Term, Term] = {}
        for variable_ in read:
            masks, unknowns = flat(machine.masks[variable_]), flat(before(variable_))
            for mask, unknown in zip(masks, unknowns, strict=True):
                if mask.data:
                    now = masked(mask, _held(unknown), unknown)
                    assert isinstance(now, Term)
                    replaced[unknown] = now
        if replaced:
            self._latched |= replaced.keys()
            machine.substitute(Substitution(replaced))

    def kept(self) -> Mapping[Term, Term]:
        """Return the unknowns of values before, each with the one to replace it in the end."""
        unknowns = [variable(name, term.sort) for name, term in self.definitions.items()]
        return {
            _held(unknown): unknown
            for unknown in unknowns
            if unknown in self._latched
            or self._covered[str(unknown.data)] != (1 << unknown.width) - 1
        }

    def describe(self, loop: Sequence[Term]) -> str:
        """Return a message on bits each of which depends on the next, the last on the first."""
        steps = []
        for node in [*loop, loop[0]]:
            unknown, at = (node.args[0], node.data[1]) if node.op == "extract" else (node, 0)
            name = str(unknown.data)
            places = [p.position for bits, p in self._places[name] if bits >> at & 1]
            shown = name.removeprefix(PREVIOUS) + (f"[{at}]" if node.op == "extract" else "")
            steps.append((shown, places[-1] if places else None))
        if len(steps) > _SHOWN + 1:
            left = len(steps) - _SHOWN
            steps[_SHOWN - 1 : -1] = [(f"{left} more signals", None)]
        way = " reads ".join(f"{name} ({place})" if place else name for name, place in steps)
        return (
            f"{steps[0][1]}: a combinational loop in which {way} (what is driven there "
            "depends on itself within a cycle; a register would break it)"
        )


def _held(unknown: Term) -> Term:
    return variable(_HELD + str(unknown.data), unknown.sort)


def chosen(which: Value, new: Value, old: Value) -> Value:
    """Return the bits of ``new`` where ``which`` has ones in a run, those of ``old`` elsewhere."""
    if isinstance(which, Term):
        assert isinstance(new, Term)
        assert isinstance(old, Term)
        if which.is_const:
            return masked(which, new, old)
        return bv.bit_or(bv.bit_and(new, which), bv.bit_and(old, bv.invert(which)))
    assert isinstance(new, tuple)
    assert isinstance(old, tuple)
    return tuple(chosen(w, a, b) for w, a, b in zip(which, new, old, strict=True))


def masked(mask: Value, new: Value, old: Value) -> Value:
    """Return ``new`` where ``mask`` has ones, ``old`` elsewhere."""
    if new is old:
        return new
    if isinstance(mask, Term):
        assert isinstance(new, Term)
        assert isinstance(old, Term)
        full = (1 << mask.width) - 1
        if mask.data == full:
            return new
        if mask.data == 0:
            return old
        pieces = []
        low = 0
        while low < mask.width:
            bit = mask.data >> low & 1
            high = low
            while high + 1 < mask.width and mask.data >> (high + 1) & 1 == bit:
                high += 1
            pieces.append(bv.extract(new if bit else old, high, low))
            low = high + 1
        return bv.concat(reversed(pieces))
    assert isinstance(new, tuple)
    assert isinstance(old, tuple)
    return tuple(masked(m, a, b) for m, a, b in zip(mask, new, old, strict=True))
