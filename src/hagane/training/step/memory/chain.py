"""The fastest way through a chain of stages and back within a number of bytes.

A stage of a chain is computed forward, then, in the opposite order, backward. Going back through a
stage needs its input and its intermediate values. Values not kept are computed again from the
nearest earlier input that is.

The scheme is the dynamic program of "Optimal checkpointing for heterogeneous chains: how to train
deep neural networks with limited memory" (Beaumont and others, 2019). For stages of equal size it
is treeverse (Griewank and Walther, 2000), and with one level of recomputation the segments of Chen
et al. (2016). It is optimal among schedules that keep an input until the way back has passed it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

# Memory is counted in so many equal pieces.
_SLOTS = 200


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of a chain.

    Attributes:
        seconds: The time of going forward.
        again: The time of computing anew the values for the way back, once the output is there.
        output: Bytes of the output, which is the input of the next stage.
        kept: Bytes that going back needs beside the input, and those of the output.
        forward: Bytes that going forward needs beside input and output.
        back: Bytes that going back needs beside input and ``kept``.
    """

    seconds: float
    again: float
    output: float
    kept: float
    forward: float = 0.0
    back: float = 0.0


class Act(Enum):
    """The treatment of a stage."""

    KEEP = "keep"  # forward; the values for the way back are kept
    PASS = "pass"  # forward; the output alone is left
    BACK = "back"


Move = tuple[Act, int]


class Chain:
    """A chain of stages, solved for all amounts of memory up to the one without recomputation.

    Args:
        stages: From the first to the last.
        new: Where values go past several stages, the bytes of the output of each stage that is
            new to a keeper of the input of an earlier one: of ``new[earlier][stage]``. All of it
            is if None.
        slots: In how many pieces memory is counted.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        new: Sequence[Sequence[float]] | None = None,
        slots: int = _SLOTS,
    ):
        self.stages = list(stages)
        if new is None:
            new = [[stage.output for stage in stages]] * len(stages)
        whole = sum(s.kept for s in stages) + max(
            (max(s.forward + s.output, s.back) for s in stages), default=0.0
        )
        self._unit = max(whole, 1.0) / slots
        self._slots = slots + len(self.stages)  # (each stage is rounded up)
        self._new = [self._pieces(row) for row in new]
        self._kept = self._pieces([s.kept for s in stages])
        self._forward = self._pieces([s.forward for s in stages])
        self._back = self._pieces([s.back for s in stages])
        self._sums = np.concatenate([[0.0], np.cumsum([s.seconds for s in stages])])
        self._solve()

    def _pieces(self, sizes: Sequence[float]) -> list[int]:
        return [int(np.ceil(size / self._unit - 1e-9)) for size in sizes]

    def _solve(self) -> None:
        """Fill the table: the least time from stage ``s`` to ``t`` and back in ``m`` pieces."""
        n, m = len(self.stages), self._slots + 1
        self._time = np.full((n, n, m), np.inf)
        # The stage whose input is kept next; -1 where the first stage keeps all it needs.
        self._next = np.full((n, n, m), -2, np.int16)
        for s in range(n):
            need = max(self._kept[s] + self._back[s], self._kept[s] + self._forward[s])
            self._time[s, s, need:] = self.stages[s].again
            self._next[s, s, need:] = -1
        for length in range(1, n):
            for s in range(n - length):
                t = s + length
                self._fill(s, t)

    def _fill(self, s: int, t: int) -> None:
        m = self._slots + 1
        best = np.full(m, np.inf)
        chosen = np.full(m, -2, np.int16)
        need = self._kept[s] + max(self._forward[s], self._back[s])
        if need < m:
            rest = self._shifted(self._time[s + 1, t], self._kept[s])
            rest[:need] = np.inf
            best = self.stages[s].seconds + rest
            chosen[np.isfinite(best)] = -1
        passing = 0
        for middle in range(s + 1, t + 1):
            # Stages s .. middle - 1 are passed, the input of `middle` is kept.
            before = self._new[s][middle - 2] if middle - 2 >= s else 0
            passing = max(
                passing, before + self._new[middle - 1][middle - 1] + self._forward[middle - 1]
            )
            rest = self._shifted(self._time[middle, t], self._new[s][middle - 1])
            time = self._sums[middle] - self._sums[s] + rest + self._time[s, middle - 1]
            time[:passing] = np.inf
            better = time < best
            best[better] = time[better]
            chosen[better] = middle
        self._time[s, t], self._next[s, t] = best, chosen

    @staticmethod
    def _shifted(times: Any, pieces: int) -> Any:
        """Return times for memory of which some pieces are taken."""
        made = np.full_like(times, np.inf)
        if pieces < len(times):
            made[pieces:] = times[: len(times) - pieces]
        return made

    @property
    def most(self) -> int:
        """Pieces with which nothing is computed again."""
        times = self._time[0, -1]
        return int(np.argmax(times <= times[-1] * (1 + 1e-9)))

    @property
    def least(self) -> int:
        """Pieces below which there is no schedule."""
        return int(np.argmax(np.isfinite(self._time[0, -1])))

    def seconds(self, pieces: int) -> float:
        """Return the time of going forward and computing again in so many pieces of memory."""
        return float(self._time[0, -1, min(pieces, self._slots)])

    def bytes(self, pieces: int) -> float:
        """Return the bytes of pieces of memory."""
        return pieces * self._unit

    def pieces(self, size: float) -> int:
        """Return the pieces that fit into some bytes."""
        return min(self._slots, int(size / self._unit))

    def schedule(self, pieces: int) -> list[Move]:
        """Return the moves of the fastest schedule within some pieces of memory.

        Raises:
            ValueError: There is none.
        """
        pieces = min(pieces, self._slots)
        if pieces < self.least:
            raise ValueError(f"{pieces} pieces of memory, at least {self.least} are needed")
        return list(self._moves(0, len(self.stages) - 1, pieces))

    def _moves(self, s: int, t: int, m: int) -> Iterator[Move]:
        choice = int(self._next[s, t, m])
        if choice == -1:
            yield Act.KEEP, s
            if t > s:
                yield from self._moves(s + 1, t, m - self._kept[s])
            yield Act.BACK, s
            return
        for stage in range(s, choice):
            yield Act.PASS, stage
        yield from self._moves(choice, t, m - self._new[s][choice - 1])
        yield from self._moves(s, choice - 1, m)


__all__ = ["Act", "Chain", "Move", "Stage"]
