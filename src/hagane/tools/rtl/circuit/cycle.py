"""One clock cycle of a circuit as terms: the form in which search, proofs and replay have it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hagane.symbolic.term import Term
from hagane.tools.rtl.circuit.elaborate import Position
from hagane.tools.rtl.circuit.machine import PointKey


@dataclass(frozen=True, slots=True)
class Input:
    """A bit vector that a test sets; ``port`` is the top-level port it belongs to."""

    name: str
    width: int
    port: str


@dataclass(frozen=True, slots=True)
class Reset:
    """An input that resets the circuit, and the value with which it does."""

    name: str
    active: int
    asynchronous: bool


@dataclass(slots=True)
class CycleModel:
    """A circuit's cycle: everything is a term over inputs and ``state``.

    ``after_reset`` has the state that asynchronous resets change: its value once the resets of a
    row have acted, before the clock does (the value before where none is active). Of several clocks
    each is an input too: a row says which of them rise. ``overwritten``
    are points of a branch whose condition its process writes afterwards. ``operands`` says of the
    outcomes of a ``?:`` where the operator of its first operand stands. ``unset`` is the state to
    which nothing gives a value at the start. Of clocks in ``falling`` the falling edge counts,
    wherever a rising one is spoken of. ``files`` are read at the start, by their names in the
    sources.
    """

    inputs: tuple[Input, ...]
    clocks: tuple[str, ...]
    resets: tuple[Reset, ...]
    state: dict[str, Term]
    initial: dict[str, int]
    points: dict[PointKey, Term]
    asserts: dict[tuple[Position, str], Term]
    signals: dict[str, Term]
    outputs: dict[str, Term]
    notices: tuple[str, ...]
    after_reset: dict[str, Term] = field(default_factory=dict)
    assert_text: dict[tuple[Position, str], str] = field(default_factory=dict)
    overwritten: frozenset[PointKey] = frozenset()
    operands: dict[PointKey, Position] = field(default_factory=dict)
    unset: frozenset[str] = frozenset()
    falling: frozenset[str] = frozenset()
    unsteady: frozenset[str] = frozenset()
    files: Mapping[str, Path] = field(default_factory=dict)

    @property
    def toggling(self) -> dict[str, Term]:
        """The signals that are points of toggle coverage: those that stand still within a row."""
        return {name: term for name, term in self.signals.items() if name not in self.unsteady}

    @property
    def ticks(self) -> tuple[str, ...]:
        """The clocks of which each row says whether they rise; empty where there is one clock."""
        inputs = {item.name for item in self.inputs}
        return tuple(name for name in self.clocks if name in inputs)

    @property
    def sequential(self) -> bool:
        """Whether a test needs more than one cycle."""
        return bool(self.state) or bool(self.clocks)
