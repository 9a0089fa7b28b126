"""Replay of a test set in a simulator, and its verdict on each point."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hagane.tools.rtl.circuit.elaborate import Position
from hagane.tools.rtl.circuit.machine import PointKey
from hagane.tools.rtl.circuit.simulate import Cycle, Row, Simulator, Test
from hagane.tools.rtl.replay.verilator import LinePoint, Run


@dataclass(frozen=True, slots=True)
class Difference:
    """A signal whose value in the simulator is not the one that hagane computed."""

    test: int
    cycle: int
    signal: str
    ours: int
    theirs: int
    row: Row

    def __str__(self) -> str:
        inputs = ", ".join(f"{name}=0x{value:x}" for name, value in self.row.items())
        return (
            f"test {self.test} cycle {self.cycle}: '{self.signal}' is 0x{self.theirs:x} in the "
            f"simulator, 0x{self.ours:x} in hagane, with {inputs}"
        )


@dataclass(frozen=True, slots=True)
class Replay:
    """The simulator's waves, row by row; ``missing`` are signals that are not in them."""

    cycles: tuple[tuple[Cycle, ...], ...]
    differences: tuple[Difference, ...]
    compared: int
    missing: frozenset[str] = frozenset()


def read_waves(
    run: Run, simulator: Simulator, tests: Sequence[Test], expected: Sequence[Sequence[Cycle]]
) -> Replay:
    """Recompute every row from the simulator's own state, and compare all signals.

    The points of a row follow from the inputs and the state that the simulator had in that row,
    and from no state that hagane computed in an earlier one.
    """
    waves = _sample(run.vcd, sum(len(test) for test in tests), set(simulator.signal_names))
    index_of = {name: i for i, name in enumerate(simulator.signal_names)}
    cycles, differences = [], []
    position = 0
    before = simulator.warm(tests[0][0])
    for number, test in enumerate(tests):
        rows = []
        for at, row in enumerate(test):
            seen = {name: values[position] for name, values in waves.items()}
            ours = expected[number][at]
            changed = False
            signals = list(ours.signals)
            for name, value in seen.items():
                index = index_of[name]
                if value != signals[index]:
                    differences.append(
                        Difference(number, at, name, signals[index], value, dict(row))
                    )
                    signals[index] = value
                    changed = True
            if changed:
                # Memories are not in the waves; those are as hagane computed them.
                state = {key: seen.get(key[1:], value) for key, value in before.items()}
                again = simulator.cycle(state, row)
                ours = Cycle(again.points, again.violations, tuple(signals), again.after)
            rows.append(ours)
            before = expected[number][at].after
            position += 1
        cycles.append(tuple(rows))
    missing = frozenset(simulator.signal_names) - waves.keys()
    return Replay(tuple(cycles), tuple(differences), len(waves), missing)


def _sample(vcd: Path, rows: int, wanted: set[str]) -> dict[str, list[int]]:
    """Return the settled value of every wanted signal in every row."""
    names: dict[str, list[str]] = {name: [] for name in wanted}
    row_code, codes = "", {}
    with vcd.open(encoding="ascii", errors="replace") as file:
        for name, code in _declarations(file):
            if name == "tb.row":
                row_code = code
            # Members of an interface port live in the bench, where the interface stands.
            for prefix in ("tb.dut.", "tb.port_"):
                plain = name.removeprefix(prefix)
                if plain != name and plain in names and (prefix == "tb.dut." or not names[plain]):
                    names[plain] = [code]
        for name, found in names.items():
            for code in found:
                codes[code] = name
        changes: dict[str, list[tuple[int, str]]] = {code: [] for code in (*codes, row_code)}
        time = 0
        for line in file:
            first = line[0]
            if first == "#":
                time = int(line[1:])
            elif first in "bB":
                value, _, code = line[1:-1].partition(" ")
                if code in changes:
                    changes[code].append((time, value))
            elif first in "01xzXZ":
                code = line[1:-1]
                if code in changes:
                    changes[code].append((time, first))
    ends = _row_ends(changes[row_code], rows)
    by_code = {code: _values(changes[code], ends) for code in codes}
    return {name: by_code[found[0]] for name, found in names.items() if found}


def _declarations(file: Iterator[str]) -> Iterator[tuple[str, str]]:
    """Yield the names below the top and the codes of a wave file's signals."""
    scopes: list[str] = []
    for line in file:
        words = line.split()
        if not words:
            continue
        if words[0] == "$scope":
            scopes.append(words[2])
        elif words[0] == "$upscope":
            scopes.pop()
        elif words[0] == "$var":
            # A range follows the name or is part of it; Icarus leaves the backslash of escaped
            # names, Verilator does not.
            name = re.sub(r"\[-?\d+:-?\d+\]$", "", "".join(words[4:-1])).replace("\\", "")
            yield ".".join([*scopes, name]).removeprefix("TOP."), words[3]
        elif words[0] == "$enddefinitions":
            return


def _row_ends(changes: Sequence[tuple[int, str]], rows: int) -> list[int]:
    """Return the time at which each row ends: when the row counter moves on."""
    at: dict[int, int] = {}
    for time, value in changes:
        if set(value) <= {"0", "1"}:
            number = int(value, 2)
            at.setdefault(number, time)
    return [at[row + 1] for row in range(rows)]


def _values(changes: Sequence[tuple[int, str]], ends: Sequence[int]) -> list[int]:
    values = []
    position, current = 0, 0
    for end in ends:
        while position < len(changes) and changes[position][0] < end:
            text = changes[position][1]
            try:
                current = int(text, 2)
            except ValueError:  # x or z
                current = int(re.sub("[^1]", "0", text), 2)
            position += 1
        values.append(current)
    return values


def line_points(
    simulator: Simulator, run: Run
) -> tuple[Mapping[LinePoint, tuple[int, ...]], list[str]]:
    """Match the simulator's line points with ours: by file, line, label and nearest column."""
    ours: dict[tuple[str, int, str], list[int]] = {}
    for index, key in enumerate(simulator.model.points):
        if key.kind == "line":
            place = (_real(key.position.file), key.position.line, key.label)
            ours.setdefault(place, []).append(index)
    keys = list(simulator.model.points)
    matched: dict[LinePoint, tuple[int, ...]] = {}
    choices = _choices(simulator, run.lines)
    missing = []
    for point in run.lines:
        label = {"elsif": "if"}.get(point.label, point.label)
        found = ours.get((_real(point.position.file), point.position.line, label), [])
        if label in _OUTCOMES:
            matched[point] = choices[point]
        else:
            matched[point] = _nearest(found, point, keys) if found else ()
        if not matched[point]:
            missing.append(f"{point.position} {point.label}")
    _apart(matched, keys)
    return matched, missing


_OUTCOMES = {"cond_then": "?: true", "cond_else": "?: false"}


def _choices(simulator: Simulator, points: Iterable[LinePoint]) -> dict[LinePoint, tuple[int, ...]]:
    """Match the two counts of every ``?:`` of later Verilators.

    Both are placed by the operator of the first operand, the second one column on. Verilator leaves
    out a ``?:`` inside another operator. A column behind a macro is one of the expanded text:
    there the order decides where the numbers agree; else the point stays without a match, since
    one that is matched wrongly would be called dead or covered wrongly.
    """
    keys = list(simulator.model.points)
    ours: dict[tuple[str, int, str], list[tuple[Position, int]]] = {}
    for index, key in enumerate(keys):
        at = simulator.model.operands.get(key)
        if at is not None:
            ours.setdefault((_real(at.file), at.line, key.label), []).append((at, index))
    theirs: dict[tuple[str, int, str, str], list[LinePoint]] = {}
    for point in points:
        if point.label in _OUTCOMES:
            file, line = _real(point.position.file), point.position.line
            theirs.setdefault((file, line, point.label, _plain(point.scope)), []).append(point)
    matched: dict[LinePoint, tuple[int, ...]] = {}
    for (file, line, label, scope), group in theirs.items():
        found = ours.get((file, line, _OUTCOMES[label]), [])
        found = [item for item in found if _plain(keys[item[1]].scope) == scope] or found
        places: dict[tuple[int, tuple[int, int]], list[int]] = {}
        for at, index in found:
            places.setdefault((at.column, at.macro), []).append(index)
        behind = 1 if label == "cond_else" else 0
        plain = {
            column + behind: where for (column, macro), where in places.items() if not any(macro)
        }
        # The text of a macro's argument stands on the line itself: its order there says nothing.
        ordered = len(places) == len(group) and all(macro[0] != line for _, macro in places)
        by_column = sorted(group, key=lambda point: point.position.column)
        if all(point.position.column in plain for point in group):
            matched.update((point, tuple(plain[point.position.column])) for point in group)
        elif ordered:
            in_order = (tuple(places[place]) for place in sorted(places))
            matched.update(zip(by_column, in_order, strict=True))
        else:
            matched.update((point, ()) for point in group)
    return matched


def _nearest(found: Sequence[int], point: LinePoint, keys: Sequence[PointKey]) -> tuple[int, ...]:
    """Return those of some points whose columns fit best, in the instance where there are any."""
    column = point.position.column
    nearest = min(abs(keys[i].position.column - column) for i in found)
    found = [i for i in found if abs(keys[i].position.column - column) == nearest]
    scoped = [i for i in found if _plain(keys[i].scope) == _plain(point.scope)]
    return tuple(scoped or found)


def _apart(matched: dict[LinePoint, tuple[int, ...]], keys: Sequence[PointKey]) -> None:
    """Tell apart the points that one use of a macro makes at one place: by their order.

    Of a chain of branches Verilator counts the last ``else`` alone.
    """
    groups: dict[tuple[int, ...], list[LinePoint]] = {}
    for point, found in matched.items():
        if len(found) > 1:
            groups.setdefault(found, []).append(point)
    for found, points in groups.items():
        if len({keys[index].position.macro for index in found}) < len(found):
            continue
        points.sort(key=lambda point: point.position.column)
        for point, index in zip(points[::-1], sorted(found)[::-1], strict=False):
            matched[point] = (index,)


def _real(path: str) -> str:
    return os.path.realpath(path)


def _plain(scope: str) -> str:
    text = scope.replace("__BRA__", "[").replace("__KET__", "]").replace("__DOT__", ".")
    return re.sub(r"[^A-Za-z0-9]", "", text)
