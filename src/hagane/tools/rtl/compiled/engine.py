"""A compiled model: runs of given rows, long random runs, and which goals they meet.

The findings of runs are a number whose bits are the different conditions of the goals, so that
sets of goals are joined and compared at once. Rows and states are arrays of 64-bit words.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hagane.machine.cache import CodeCache
from hagane.machine.compiler import find_compiler
from hagane.symbolic.term import Term, postorder, variable
from hagane.tools.rtl.circuit.cycle import CycleModel
from hagane.tools.rtl.circuit.simulate import Bit, Cycle, Goal, Row, Test, Violation
from hagane.tools.rtl.compiled.emit import emit, words_of

Words = NDArray[np.uint64]
_QUICK_TERMS = 60_000  # of more than these the compiler makes plain code


class _Input(ctypes.Structure):
    _fields_ = (
        ("at", ctypes.c_int), ("width", ctypes.c_int), ("reset", ctypes.c_int),
        ("asynchronous", ctypes.c_int), ("patterns", ctypes.c_int), ("count", ctypes.c_int),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Record:
    """A cycle of a random run that showed something new: where it began, how, and how long."""

    start: int
    seed: int
    cycles: int
    state: Words


class Engine:
    """The compiled model of a circuit.

    Args:
        model: The circuit.
        goals: Every goal with its condition; those of constant conditions are left out.
        patterns: For each input, pairs of a mask and a value: bits that the circuit compares with.

    Raises:
        NoCompiler: There is no C compiler, or it fails.
    """

    def __init__(
        self,
        model: CycleModel,
        goals: Mapping[Goal, Term],
        patterns: Mapping[str, Sequence[tuple[int, int]]] | None = None,
    ):
        self.model = model
        self.failing = {g.name: term for g, term in goals.items() if isinstance(g, Violation)}
        self._row_at = _places([(i.name, i.width) for i in model.inputs])
        self._state_at = _places([(name, term.width) for name, term in model.state.items()])
        self.row_words = max(1, sum(words_of(item.width) for item in model.inputs))
        self.state_words = max(1, sum(words_of(term.width) for term in model.state.values()))
        flags = list(
            dict.fromkeys(
                term
                for goal, term in goals.items()
                if not isinstance(goal, Bit) and not term.is_const
            )
        )
        values = list(dict.fromkeys(model.signals.values()))
        self._flag_at = {term: index for index, term in enumerate(flags)}
        self.flag_words = (len(flags) + 63) // 64
        self._value_at = {}
        at = self.flag_words
        for term in values:
            self._value_at[term] = at
            at += words_of(term.width)
        self.observed = max(1, at)
        self._goal_bits(goals)
        places = {
            **{name: ("x", where) for name, where in self._row_at.items()},
            **{name: ("s", where) for name, where in self._state_at.items()},
        }
        struck = [
            model.after_reset.get(name, variable(name, term.sort))
            for name, term in model.state.items()
        ]
        text = emit(places, list(model.state.values()), flags, values)
        text += emit(places, struck, [], [], "strike")
        self._patterns(patterns or {})
        self._build(text, len(postorder([*flags, *values])))
        self._whole = np.zeros((0, self.row_words), np.uint64)

    def _goal_bits(self, goals: Mapping[Goal, Term]) -> None:
        self.bit_of: dict[Goal, int] = {}
        self.goals_at: dict[int, list[Goal]] = {}
        for goal, term in goals.items():
            if term.is_const:
                continue
            if isinstance(goal, Bit):
                at = self._value_at[self.model.signals[goal.signal]] * 64 + goal.index
                bit = at if goal.value else at + self.observed * 64
            else:
                bit = self._flag_at[term]
            self.bit_of[goal] = bit
            self.goals_at.setdefault(bit, []).append(goal)
        self.every = 0
        for bit in self.goals_at:
            self.every |= 1 << bit

    def _patterns(self, patterns: Mapping[str, Sequence[tuple[int, int]]]) -> None:
        self._widest = max([words_of(item.width) for item in self.model.inputs], default=1)
        resets = {reset.name: reset for reset in self.model.resets}
        rows: list[list[int]] = []
        inputs = (_Input * max(1, len(self.model.inputs)))()
        for index, item in enumerate(self.model.inputs):
            reset = resets.get(item.name)
            mine = list(patterns.get(item.name, ()))
            inputs[index] = _Input(
                self._row_at[item.name], item.width, -1 if reset is None else reset.active,
                int(reset is not None and reset.asynchronous), len(rows), len(mine),
            )  # fmt: skip
            for pair in mine:
                rows.append([n >> 64 * k & _WORD for n in pair for k in range(self._widest)])
        self._inputs = inputs
        self._pattern_words = np.array(rows or [[0]], np.uint64)

    def _build(self, text: str, terms: int) -> None:
        self._library = _load(self._source(text), terms)

    def pace(self, cycles: int) -> int:
        """Return how many cycles to run at once, ``cycles`` for a small circuit."""
        return max(1_000, cycles * 500 // (500 + self.observed + self.state_words))

    def _source(self, text: str) -> str:
        drive = Path(__file__).with_name("drive.c").read_text(encoding="utf-8")
        sizes = {
            "ROW": self.row_words, "STATE": self.state_words, "OBSERVED": self.observed,
            "WIDEST": self._widest,
        }  # fmt: skip
        head = "".join(f"#define {name} {size}\n" for name, size in sizes.items())
        return head + drive.replace("/*EVALUATE*/", text)

    # Rows and states

    def rows(self, test: Sequence[Row]) -> Words:
        """Return rows of inputs as words."""
        made = np.zeros((len(test), self.row_words), np.uint64)
        for number, row in enumerate(test):
            for item in self.model.inputs:
                value = row.get(item.name, 0)
                at = self._row_at[item.name]
                for k in range(words_of(item.width)):
                    made[number, at + k] = value >> 64 * k & _WORD
        return made

    def test(self, rows: Words) -> Test:
        """Return words as rows of inputs by name."""
        columns = [(i.name, self._row_at[i.name], words_of(i.width)) for i in self.model.inputs]
        return tuple(
            {
                name: sum(row[at + k] << 64 * k for k in range(count)) if count > 1 else row[at]
                for name, at, count in columns
            }
            for row in rows.tolist()
        )

    def state(self, values: Mapping[str, int]) -> Words:
        """Return a state as words."""
        made = np.zeros(self.state_words, np.uint64)
        for name, term in self.model.state.items():
            for k in range(words_of(term.width)):
                made[self._state_at[name] + k] = values[name] >> 64 * k & _WORD
        return made

    def values(self, state: Words) -> dict[str, int]:
        """Return a state by name."""
        words = state.tolist()
        return {
            name: sum(
                words[self._state_at[name] + k] << 64 * k for k in range(words_of(term.width))
            )
            for name, term in self.model.state.items()
        }

    def warm(self, row: Words) -> Words:
        """Return the state after the one uncounted cycle before the first test."""
        state = self.state(self.model.initial)
        if self.model.clocks:
            self._library.hagane_advance(_address(np.ascontiguousarray(row)), _address(state))
        return state

    # Runs

    def run(self, rows: Words, start: Words) -> tuple[int, Words]:
        """Return the bits of the goals that rows meet from a state, and the state after them."""
        seen = np.zeros((2, self.observed), np.uint64)
        state = start.copy()
        rows = np.ascontiguousarray(rows)
        self._library.hagane_run(
            *self._given(), _address(rows), len(rows), _address(state), _address(seen[0:]),
            _address(seen[1:]),
        )  # fmt: skip
        return int.from_bytes(seen.tobytes(), "little") & self.every, state

    def trace(self, rows: Words, start: Words) -> tuple[list[Cycle], Words]:
        """Return every cycle of rows from a state, and the state after them.

        Points of constant conditions are left out of the cycles, as in ``Simulator``.
        """
        state, cycles = start.copy(), []
        keys = [key for key, term in self.model.points.items() if not _false(term)]
        terms = [*(self.model.points[key] for key in keys), *self.failing.values()]
        constant = [int(term.data) if term.is_const else 0 for term in terms]
        places = [self._flag_at.get(term, 0) for term in terms]
        varies = np.array([term in self._flag_at for term in terms], np.int64)
        signals = [
            (self._value_at[term], words_of(term.width)) for term in self.model.signals.values()
        ]
        for begin in range(0, len(rows), _TRACED):
            part = np.ascontiguousarray(rows[begin : begin + _TRACED])
            seen = np.zeros((len(part), self.observed), np.uint64)
            after = np.zeros((len(part), self.state_words), np.uint64)
            self._library.hagane_trace(
                *self._given(), _address(part), len(part), _address(state), _address(seen),
                _address(after),
            )  # fmt: skip
            flags = np.unpackbits(
                seen[:, : self.flag_words].view(np.uint8), axis=1, bitorder="little"
            )
            known = np.array(constant, np.int64)
            chosen = known[None].repeat(len(part), 0)
            if self.flag_words:
                chosen |= flags[:, places] * varies
            for bits, words, state_after in zip(chosen.tolist(), seen.tolist(), after, strict=True):
                values = tuple(
                    [
                        words[at] if count == 1 else _joined(words[at : at + count])
                        for at, count in signals
                    ]
                )
                cycles.append(
                    Cycle(
                        tuple(bits[: len(keys)]), tuple(bits[len(keys) :]), values,
                        self.values(state_after),
                    )
                )  # fmt: skip
        return cycles, state

    def states(self, rows: Words, start: Words) -> Words:
        """Return the state after each row."""
        rows, state = np.ascontiguousarray(rows), start.copy()
        seen = np.zeros((len(rows), self.observed), np.uint64)
        after = np.zeros((len(rows), self.state_words), np.uint64)
        self._library.hagane_trace(
            *self._given(), _address(rows), len(rows), _address(state), _address(seen),
            _address(after),
        )  # fmt: skip
        return after

    def until(self, rows: Words, start: Words, wanted: int) -> int:
        """Return after how many rows every wanted bit was met, 0 if some is not."""
        size = self.observed * 8
        need = np.frombuffer(wanted.to_bytes(2 * size, "little"), np.uint64).reshape(2, -1).copy()
        rows, state = np.ascontiguousarray(rows), start.copy()
        return int(
            self._library.hagane_until(
                *self._given(), _address(rows), len(rows), _address(state), _address(need[0:]),
                _address(need[1:]),
            )
        )  # fmt: skip

    def burst(
        self, starts: Words, seed: int, cycles: int, length: int, met: int, most: int = 256
    ) -> tuple[int, list[Record], int]:
        """Run random rows from given states; return the cycles, new finds, and all bits met.

        Args:
            starts: States, ``(count, words)``; the first is taken more often.
            seed: Of the random rows.
            cycles: When to stop.
            length: Rows of a run that finds nothing.
            met: Bits that are no longer of interest.
            most: So many finds end the burst early.
        """
        size = self.observed * 8
        held = (met | ~self.every) & ((1 << 16 * size) - 1)
        seen = np.frombuffer(held.to_bytes(2 * size, "little"), np.uint64).reshape(2, -1).copy()
        starts = np.ascontiguousarray(starts)
        found = ctypes.c_uint64(0)
        places, seeds, rows = (np.zeros(most, np.uint64) for _ in range(3))
        states = np.zeros((most, self.state_words), np.uint64)
        done = self._library.hagane_burst(
            *self._given(), _address(self._pattern_words), _address(self._whole), len(self._whole),
            _address(starts), len(starts), ctypes.c_uint64(seed), cycles, length,
            _address(seen[0:]), _address(seen[1:]), most, ctypes.byref(found), _address(places),
            _address(seeds), _address(rows), _address(states),
        )  # fmt: skip
        records = [
            Record(int(places[k]), int(seeds[k]), int(rows[k]), states[k].copy())
            for k in range(found.value)
        ]
        return int(done), records, int.from_bytes(seen.tobytes(), "little") & self.every

    def random_rows(self, seed: int, count: int) -> Words:
        """Return the first rows of the random run of that seed."""
        rows = np.zeros((count, self.row_words), np.uint64)
        self._library.hagane_rows(
            *self._given(), _address(self._pattern_words), _address(self._whole), len(self._whole),
            ctypes.c_uint64(seed), count, _address(rows),
        )  # fmt: skip
        return rows

    def keep_rows(self, rows: Words) -> None:
        """Let random runs take these rows, which a solver chose, as they are, now and then."""
        known = np.concatenate([self._whole, rows])[-256:]
        self._whole = np.ascontiguousarray(np.unique(known, axis=0))

    def goals(self, bits: int) -> set[Goal]:
        """Return the goals of bits."""
        found: set[Goal] = set()
        while bits:
            lowest = bits & -bits
            found.update(self.goals_at.get(lowest.bit_length() - 1, ()))
            bits ^= lowest
        return found

    def bits(self, goals: Sequence[Goal] | set[Goal]) -> int:
        """Return the bits of goals."""
        made = bytearray(self.observed * 16)
        for goal in goals:
            bit = self.bit_of.get(goal)
            if bit is not None:
                made[bit >> 3] |= 1 << (bit & 7)
        return int.from_bytes(made, "little")

    def _given(self) -> tuple[Any, int]:
        return self._inputs, len(self.model.inputs)


_WORD = (1 << 64) - 1
_TRACED = 4_096  # rows at once


def _false(term: Term) -> bool:
    return term.is_const and not term.data


def _joined(words: Sequence[int]) -> int:
    return sum(word << 64 * k for k, word in enumerate(words))


def _places(items: Sequence[tuple[str, int]]) -> dict[str, int]:
    found, at = {}, 0
    for name, width in items:
        found[name] = at
        at += words_of(width)
    return found


def _address(array: Words) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _load(source: str, terms: int) -> Any:
    compiler = find_compiler()
    flags = ["-O1" if terms < _QUICK_TERMS else "-O0", "-fPIC", "-w", "-fno-strict-aliasing"]

    def make(folder: Path) -> Path:
        path = folder / "cycle.c"
        path.write_text(source, encoding="utf-8")
        compiler.build([path], folder / "cycle.so", flags)
        return folder / "cycle.so"

    key = hashlib.sha256("\0".join([source, compiler.version, *flags]).encode()).hexdigest()
    library = CodeCache("rtl").load(key, make, lambda path: ctypes.CDLL(str(path)))
    for name in ("hagane_until", "hagane_burst"):
        getattr(library, name).restype = ctypes.c_uint64
    u64, pointer, number = ctypes.c_uint64, ctypes.c_void_p, ctypes.c_int
    library.hagane_advance.argtypes = [pointer, pointer]
    library.hagane_run.argtypes = [pointer, number, pointer, u64, pointer, pointer, pointer]
    library.hagane_trace.argtypes = [pointer, number, pointer, u64, pointer, pointer, pointer]
    library.hagane_until.argtypes = [pointer, number, pointer, u64, pointer, pointer, pointer]
    library.hagane_rows.argtypes = [pointer, number, pointer, pointer, u64, u64, u64, pointer]
    library.hagane_burst.argtypes = [
        pointer, number, pointer, pointer, u64, pointer, u64, u64, u64, u64, pointer, pointer, u64,
        pointer, pointer, pointer, pointer, pointer,
    ]  # fmt: skip
    return library


__all__ = ["Engine", "Record", "Words"]
