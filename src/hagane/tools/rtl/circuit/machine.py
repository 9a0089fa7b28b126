"""The state of a process while it is executed symbolically: variables, guards, points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from hagane.symbolic import bitvector as bv
from hagane.symbolic.logic import both, either, negate
from hagane.symbolic.term import FALSE, TRUE, Term
from hagane.tools.rtl.circuit.elaborate import Position
from hagane.tools.rtl.circuit.values import (
    Array,
    Layout,
    Packed,
    Record,
    Value,
    each,
    filled,
    merge,
    read_bits,
    replace,
    write_bits,
)


class Outside(Exception):
    """Something beyond the subset, at a place; collected and listed by the caller."""

    def __init__(self, position: Position | None, what: str):
        super().__init__(f"{position}: {what}" if position else what)


@dataclass(eq=False, slots=True)
class Variable:
    """A variable, net, port or function local; ``name`` is its path below the top module.

    A hidden one is a register of ours beside the circuit: no simulator shows it. One that is shared
    belongs to a package or file. One of four states has no value before it is given one.
    """

    name: str
    layout: Layout
    position: Position
    local: bool = False
    is_input: bool = False
    scope: str = ""
    hidden: bool = False
    shared: bool = False
    four_state: bool = False

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class PointKey:
    """A coverage point: its kind, place, label and instance."""

    kind: str
    position: Position
    label: str
    scope: str

    def __str__(self) -> str:
        where = f" in {self.scope}" if self.scope else ""
        return f"{self.kind} {self.position} {self.label}{where}"


@dataclass(frozen=True, slots=True)
class Target:
    """Where an assignment goes: a variable and the steps into it.

    A step is ``("element", position)``, ``("field", position)`` or ``("bits", low, width)``.
    """

    variable: Variable
    steps: tuple[tuple[Any, ...], ...]
    layout: Layout


@dataclass(slots=True)
class Exits:
    """Under which conditions the rest of a function or loop is skipped."""

    returned: Term = FALSE
    broken: Term = FALSE
    continued: Term = FALSE

    @property
    def any(self) -> Term:
        """Whether the statements that follow are skipped."""
        return either(self.returned, self.broken, self.continued)


class Overlay:
    """Variables over an outer set of variables; writes stay on top."""

    __slots__ = ("outer", "own")

    def __init__(self, outer: Overlay | None, own: dict[Variable, Value] | None = None):
        self.outer = outer
        self.own: dict[Variable, Value] = {} if own is None else own

    def get(self, variable: Variable) -> Value | None:
        """Return the innermost value."""
        layer: Overlay | None = self
        while layer is not None:
            found = layer.own.get(variable)
            if found is not None:
                return found
            layer = layer.outer
        return None


@dataclass(slots=True)
class Machine:
    """One execution of one process.

    ``base`` gives the value of a variable that the process has not written yet; ``clocked`` says
    whether it waits for edges, ``once`` whether it is an ``initial`` one. ``past`` gives the value
    of a term one cycle ago, in an assertion.
    ``operands`` says of an outcome of ``?:`` where the operator of the first operand stands.
    What expressions read before it was written is ``early``.
    ``files`` were read, by the names that they have there.
    Of variables that are ``disputed``, further ones with ones hold the ``bits_written`` by ``<=``.
    """

    base: Callable[[Variable], Value]
    clocked: bool = False
    once: bool = False
    now: Overlay = field(default_factory=lambda: Overlay(None))
    later: Overlay = field(default_factory=lambda: Overlay(None))
    guard: Term = TRUE
    exits: Exits = field(default_factory=Exits)
    points: dict[PointKey, Term] = field(default_factory=dict)
    asserts: dict[Position, Term] = field(default_factory=dict)
    masks: dict[Variable, Value] = field(default_factory=dict)
    notices: dict[str, None] = field(default_factory=dict)
    held: list[Term] = field(default_factory=list)
    held_value: Value | None = None
    results: list[Variable | None] = field(default_factory=list)
    relative: Term = TRUE
    dead: bool = False
    depth: int = 0
    iterations: int = 0
    reading: set[Variable] | None = None
    deciding: frozenset[Variable] = frozenset()
    watched: dict[Variable, list[PointKey]] = field(default_factory=dict)
    overwritten: set[PointKey] = field(default_factory=set)
    early: set[Variable] = field(default_factory=set)
    disputed: frozenset[Variable] = frozenset()
    bits_written: dict[Variable, Variable] = field(default_factory=dict)
    operands: dict[PointKey, Position] = field(default_factory=dict)
    past: Callable[[Term], Term] | None = None
    files: dict[str, Path] = field(default_factory=dict)

    def watch(self, key: PointKey, variables: Iterable[Variable]) -> None:
        """Note a point that is ``overwritten`` once one of these variables is written.

        The arguments and variables of a function are written at each call of it.
        """
        for variable in variables:
            self.watched.setdefault(variable, []).append(key)
            if variable.local and self.depth:
                self.overwritten.add(key)

    def read(self, variable: Variable) -> Value:
        """Return the value at this place of the execution, for an expression."""
        if self.now.get(variable) is None:
            self.early.add(variable)
        return self._value(variable)

    def _value(self, variable: Variable) -> Value:
        if self.reading is not None:
            self.reading.add(variable)
        found = self.now.get(variable)
        return self.base(variable) if found is None else found

    def write(self, target: Target, value: Value, *, blocking: bool = True) -> None:
        """Assign, now or (non-blocking) at the end."""
        variable = target.variable
        if blocking and variable in self.watched:
            self.overwritten.update(self.watched.pop(variable))
        if not variable.local and not self.dead:
            mask = self.masks.get(variable)
            if mask is None:
                mask = filled(variable.layout, 0)
            self.masks[variable] = store(mask, variable.layout, _static(target), _ones(value))
        layer = self.now if blocking else self.later
        if variable in self.disputed and not (blocking or self.dead):
            bits = self.bits_written.get(variable)
            if bits is None:
                bits = Variable(variable.name, variable.layout, variable.position, local=True)
                self.bits_written[variable] = bits
            found = layer.get(bits)
            found = filled(variable.layout, 0) if found is None else found
            layer.own[bits] = store(found, variable.layout, target.steps, _ones(value))
        if not target.steps:
            layer.own[variable] = value
            return
        old = layer.get(variable)
        if old is None:
            # Bits that a non-blocking assignment leaves alone stay marked by the mask.
            old = self._value(variable) if blocking else self.base(variable)
        layer.own[variable] = store(old, variable.layout, target.steps, value)

    def written(self, variable: Variable) -> Value | None:
        """Return a variable's value after the execution, if it wrote it."""
        later = self.later.own.get(variable)
        return self.now.own.get(variable) if later is None else later

    def substitute(self, change: Callable[[Term], Term]) -> None:
        """Rewrite the writes and records of the execution, once it is over."""
        for layer in (self.now.own, self.later.own):
            layer.update({v: each(change, value) for v, value in layer.items() if not v.local})
        self.points = {key: change(term) for key, term in self.points.items()}
        self.asserts = {key: change(term) for key, term in self.asserts.items()}

    def record(self, kind: str, position: Position, label: str, scope: str, guard: Term) -> None:
        """Add a way to reach a coverage point."""
        key = PointKey(kind, position, label, scope)
        old = self.points.get(key)
        self.points[key] = guard if old is None else either(old, guard)

    @contextmanager
    def under(self, condition: Term) -> Iterator[None]:
        """Execute the block only where ``condition`` holds."""
        if condition is TRUE:
            yield
            return
        guard, relative, now, later = self.guard, self.relative, self.now, self.later
        self.guard = both(guard, condition)
        self.relative = both(relative, condition)
        self.now, self.later = Overlay(now), Overlay(later)
        yield
        inner_now, inner_later = self.now, self.later
        self.guard, self.relative, self.now, self.later = guard, relative, now, later
        for variable, value in inner_now.own.items():
            self.now.own[variable] = merge(condition, value, self._value(variable))
        for variable, value in inner_later.own.items():
            old = self.later.get(variable)
            self.later.own[variable] = merge(
                condition, value, self.base(variable) if old is None else old
            )

    @contextmanager
    def tentatively(self) -> Iterator[set[Variable]]:
        """Execute the block, and drop what it writes; the variables are known behind it."""
        now, later, masks = self.now, self.later, dict(self.masks)
        self.now, self.later = Overlay(now), Overlay(later)
        written: set[Variable] = set()
        yield written
        written.update(v for v in (*self.now.own, *self.later.own) if not v.local)
        self.now, self.later, self.masks = now, later, masks

    def alternatives(
        self,
        arms: list[tuple[Term, Any]],
        last: tuple[Term, Any],
        run: Callable[[Any, Machine], None],
    ) -> None:
        """Execute arms of which exactly one is taken, and merge their writes.

        The last arm stands where no other is taken, so a variable that every arm writes does not
        depend on its value before.
        """
        guard, relative, now, later = self.guard, self.relative, self.now, self.later
        exits = self.exits
        conditions: list[Term] = []
        writes: list[tuple[dict[Variable, Value], dict[Variable, Value]]] = []
        left: list[Exits] = []
        for condition, body in [*arms, last]:
            self.guard, self.relative = both(guard, condition), both(relative, condition)
            self.now, self.later = Overlay(now), Overlay(later)
            self.exits = Exits(exits.returned, exits.broken, exits.continued)
            if body is not None and condition is not FALSE:
                run(body, self)
            elif body is not None:
                with self.unreachable():
                    run(body, self)
            conditions.append(condition)
            writes.append((self.now.own, self.later.own))
            left.append(self.exits)
        self.guard, self.relative, self.now, self.later = guard, relative, now, later
        self.exits = Exits(
            either(*(item.returned for item in left)),
            either(*(item.broken for item in left)),
            either(*(item.continued for item in left)),
        )
        for layer, index, fallback in ((now, 0, self.read), (later, 1, self._later)):
            for variable in {name: None for item in writes for name in item[index]}:
                old = fallback(variable)
                value = writes[-1][index].get(variable, old)
                for at in range(len(writes) - 2, -1, -1):
                    value = merge(conditions[at], writes[at][index].get(variable, old), value)
                layer.own[variable] = value

    def _later(self, variable: Variable) -> Value:
        found = self.later.get(variable)
        return self.base(variable) if found is None else found

    @contextmanager
    def unreachable(self) -> Iterator[None]:
        """Execute the block for its points only: nothing it does has an effect."""
        kept = (self.guard, self.relative, self.now, self.later, self.exits, self.dead)
        self.guard, self.dead = FALSE, True
        self.now, self.later, self.exits = Overlay(self.now), Overlay(self.later), Exits()
        yield
        self.guard, self.relative, self.now, self.later, self.exits, self.dead = kept

    def since_call(self) -> Term:
        """Return the conditions on the way here from the start of the function or process."""
        return self.relative

    def live(self) -> Term:
        """Return under which condition the next statement is executed."""
        exits = self.exits
        if exits.returned is exits.broken is exits.continued is FALSE:
            return TRUE
        return negate(exits.any)


def _static(target: Target) -> tuple[tuple[Any, ...], ...]:
    """Return the steps up to the first one that depends on a run."""
    kept: list[tuple[Any, ...]] = []
    for step in target.steps:
        if isinstance(step[1], Term):
            return (*kept, ("all",))
        kept.append(step)
    return tuple(kept)


def _ones(value: Value) -> Value:
    if isinstance(value, Term):
        return bv.value(-1, value.width)
    return tuple(_ones(part) for part in value)


def store(value: Value, layout: Layout, steps: tuple[tuple[Any, ...], ...], new: Value) -> Value:
    """Return ``value`` with the part that ``steps`` lead to replaced."""
    if not steps:
        return new
    step, rest = steps[0], steps[1:]
    if step[0] == "all":
        return filled(layout, -1)
    if step[0] == "element":
        assert isinstance(layout, Array)
        inner = layout.element
        return replace(value, step[1], lambda part: store(part, inner, rest, new))
    if step[0] == "field":
        assert isinstance(layout, Record)
        assert isinstance(value, tuple)
        at = step[1]
        inner = layout.fields[at][1]
        return (*value[:at], store(value[at], inner, rest, new), *value[at + 1 :])
    assert isinstance(layout, Packed)
    assert isinstance(value, Term)
    assert isinstance(new, Term)
    low, width = step[1], step[2]
    if rest:
        second = rest[0]
        if second[0] == "all":
            return write_bits(value, low, bv.value(-1, width))
        if isinstance(second[1], int) and 0 <= second[1] <= width - second[2]:
            # Bits of bits: add the offsets up.
            bits = ("bits", _offset(low, second[1]), second[2])
            return store(value, layout, (bits, *rest[1:]), new)
        # A part beyond the bits that it is a part of is not written, though there be others.
        piece = store(read_bits(value, low, width), Packed(width, False), rest, new)
        assert isinstance(piece, Term)
        return write_bits(value, low, piece)
    return write_bits(value, low, new)


def _offset(a: Term | int, b: Term | int) -> Term | int:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    width = max(32, *(part.width for part in (a, b) if isinstance(part, Term)))
    first = bv.value(a, width) if isinstance(a, int) else bv.sign_extend(a, width)
    second = bv.value(b, width) if isinstance(b, int) else bv.sign_extend(b, width)
    return bv.add(first, second)


def refuse(position: Position | None, what: str) -> NoReturn:
    """Stop here: a construct is beyond the subset."""
    raise Outside(position, what)


Bindings = Mapping[Any, Variable]
