"""Replay of a test set in a simulator, and what it says about each point."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hagane.tools.rtl.replay.verilator import Run
from hagane.tools.rtl.search.simulate import Cycle, Row, Simulator, Test


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
    and from nothing that hagane computed in an earlier one.
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
    from vcdvcd import VCDVCD

    waves = VCDVCD(str(vcd), store_tvs=True)
    by_name: dict[str, str] = {}
    for name in waves.signals:
        # Icarus leaves the backslash of escaped names, Verilator does not.
        plain = re.sub(r"\[\d+:\d+\]$", "", name.removeprefix("TOP.")).replace("\\", "")
        by_name[plain] = name
    ends = _row_ends(waves[by_name["tb.row"]].tv, rows)
    sampled = {}
    for name in wanted:
        # Members of an interface port live in the bench, where the interface stands.
        full = by_name.get(f"tb.dut.{name}") or by_name.get(f"tb.port_{name}")
        if full is None:
            continue
        sampled[name] = _values(waves[full].tv, ends)
    return sampled


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
            current = int(re.sub("[^1]", "0", text), 2)
            position += 1
        values.append(current)
    return values


def line_points(
    simulator: Simulator, run: Run
) -> tuple[Mapping[object, tuple[int, ...]], list[str]]:
    """Match the simulator's line points with ours: by file, line, label and nearest column."""
    ours: dict[tuple[str, int, str], list[int]] = {}
    for index, key in enumerate(simulator.model.points):
        if key.kind == "line":
            label = "else" if key.label == "else" else key.label
            place = (_real(key.position.file), key.position.line, label)
            ours.setdefault(place, []).append(index)
    keys = list(simulator.model.points)
    matched: dict[object, tuple[int, ...]] = {}
    missing = []
    for point in run.lines:
        label = {"elsif": "if"}.get(point.label, point.label)
        place = (_real(point.position.file), point.position.line, label)
        found = ours.get(place, [])
        if not found:
            missing.append(f"{point.position} {point.label}")
            matched[point] = ()
            continue
        column = point.position.column
        nearest = min(abs(keys[i].position.column - column) for i in found)
        found = [i for i in found if abs(keys[i].position.column - column) == nearest]
        scoped = [i for i in found if _plain(keys[i].scope) == _plain(point.scope)]
        matched[point] = tuple(scoped or found)
    return matched, missing


def _real(path: str) -> str:
    return str(Path(path).resolve())


def _plain(scope: str) -> str:
    text = scope.replace("__BRA__", "[").replace("__KET__", "]").replace("__DOT__", ".")
    return re.sub(r"[^A-Za-z0-9]", "", text)
