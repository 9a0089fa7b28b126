"""What the engine reads of loops and branches, in memory."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence

import numpy as np

from hagane.native.kernels.control import NONE, Branch, Extent, Found, Loop
from hagane.native.kernels.tensor import Buffer
from hagane.native.run.memory import Numbers
from hagane.symbolic import Dim

# The engine's hg_patch, hg_carried, hg_scanned, hg_moved, hg_number and hg_control, in 64-bit words.
_PATCH, _CARRIED, _SCANNED, _MOVED, _NUMBER, _CONTROL = 2, 16, 7, 5, 2, 27
# Where hg_carried has `bytes`, `now` and `grows`, hg_scanned `memory`, hg_moved `bytes`.
_BYTES, _BEGUN, _NOW, _GROWS, _MEMORY, _WANTED = 7, 8, 9, 11, 5, 2
# Where hg_control has these.
_MADE, _SIZER, _NUMBERS, _TASKS, _COMPUTED, _TEMPORARIES, _SCRATCH = 13, 14, 15, 17, 19, 20, 22
_LEFT = 23
# Pointers of kernels to a buffer: where each lies, and its offset.
Places = Mapping[Buffer, Sequence[tuple[int, Dim]]]


class ControlTable:
    """What the engine reads of one loop or branch.

    Args:
        control: What it is.
        begin: Its phase.
        extent: Its kernels.
        places: For each moving buffer, the addresses of kernels' pointers and their offsets.
        number: Evaluates a size.
    """

    def __init__(
        self,
        control: Loop | Branch | Found,
        begin: int,
        extent: Extent,
        places: Places,
        number: Numbers,
    ):
        self._kept: list[np.ndarray] = []
        self._number = number
        # Where numbers lie that may differ between iterations, of this loop or one around it.
        self.numbers: list[tuple[int, Dim]] = []
        self.control = control
        row = self._table(1, _CONTROL, NONE)[0]
        self._row = row
        kinds = {Branch: 0, Loop: 1, Found: 2}
        row[:3] = kinds[type(control)], extent.otherwise, extent.end
        row[8] = row[10] = row[_NUMBERS] = row[_TASKS] = row[_TEMPORARIES] = 0
        row[_LEFT : _LEFT + 2] = 1
        if isinstance(control, Branch):
            row[6] = control.condition
            return
        carried = control.carried if isinstance(control, Loop) else ()
        if isinstance(control, Loop):
            iterations = NONE if control.iterations is None else max(0, number(control.iterations))
            row[3:8] = iterations, control.limit, control.going, control.condition, control.count
            if control.iterations is not None:
                self._note(row, 3, control.iterations)
        self._carried = self._table(len(carried), _CARRIED)
        for into, value in zip(self._carried, carried, strict=False):
            into[:4] = (*self._patched(places, value.before), *self._patched(places, value.after))
            into[4:7] = value.start, value.first, value.second
            into[_BYTES] = into[_BEGUN] = number(value.size)
            self._note(into, _BEGUN, value.size)
            if value.grown is not None:
                into[_GROWS] = 1
                self.numbers.append((_address(into, _BYTES), value.grown))
            else:
                self._note(into, _BYTES, value.size)
        self._scanned = self._table(len(control.scanned), _SCANNED)
        for into, part in zip(self._scanned, control.scanned, strict=False):
            into[:2] = self._patched(places, part.slice)
            into[2:5] = part.base, number(part.start), number(part.step)
            self._note(into, 3, part.start)
            self._note(into, 4, part.step)
        row[8:10] = len(carried), self._carried.ctypes.data
        row[10:12] = len(control.scanned), self._scanned.ctypes.data
        if control.changing is None:
            return
        self._moved = moved = self._table(len(control.changing.temporaries), _MOVED)
        for into, buffer in zip(moved, control.changing.temporaries, strict=False):
            into[:2] = self._patched(places, buffer)
            self.numbers.append((_address(into, _WANTED), buffer.bytes))
        row[_SIZER] = begin + 1
        self._computed = self._table(1, len(control.changing.dims) + len(control.changing.names))[0]
        row[_COMPUTED] = self._computed.ctypes.data
        for address, _ in places.get(control.changing.numbers, ()):
            ctypes.c_int64.from_address(address).value = self._computed.ctypes.data
        row[_TEMPORARIES : _TEMPORARIES + 2] = len(control.changing.temporaries), moved.ctypes.data

    def _note(self, row: np.ndarray, column: int, dim: Dim) -> None:
        """Note a number that a loop around may change, or a find."""
        if not isinstance(dim, int):
            self.numbers.append((_address(row, column), dim))

    def _table(self, rows: int, columns: int, fill: int = 0) -> np.ndarray:
        self._kept.append(table := np.full((rows + 1, columns), fill, np.int64))
        return table

    def _patched(self, places: Places, buffer: Buffer) -> tuple[int, int]:
        found = places.get(buffer, ())
        table = self._table(len(found), _PATCH)
        for into, (address, offset) in zip(table, found, strict=False):
            into[:] = address, self._number(offset)
            if not isinstance(offset, int):
                self.numbers.append((_address(into, 1), offset))
        return table.ctypes.data, len(found)

    def follow(self, numbers: Sequence[tuple[int, Dim]], tasks: Sequence[tuple[int, Dim]]) -> None:
        """Have the engine bring numbers that differ between iterations to where they are read.

        Args:
            numbers: Addresses of numbers, and their meaning; those of other loops are left out.
            tasks: The same for the tasks of phases.
        """
        if isinstance(self.control, Branch) or self.control.changing is None:
            return
        index = {dim: i for i, dim in enumerate(self.control.changing.dims)}
        for at, found in ((_NUMBERS, numbers), (_TASKS, tasks)):
            own = [(where, index[dim]) for where, dim in found if dim in index]
            table = self._table(len(own), _NUMBER)
            table[: len(own)] = np.array(own, np.int64).reshape(-1, _NUMBER)
            self._row[at : at + 2] = len(own), table.ctypes.data
        self._row[_SCRATCH] = index.get(self.control.changing.scratch, NONE)

    @property
    def address(self) -> int:
        """Where the engine's structure lies."""
        return int(self._row.ctypes.data)

    @property
    def made(self) -> int:
        """The iterations that the loop made last."""
        return int(self._row[_MADE])

    def sizes(self, *, left: bool) -> dict[str, int]:
        """Return the meanings of names that differ between iterations.

        Args:
            left: After the last iteration that was made, not in it.
        """
        changing = None if isinstance(self.control, Branch) else self.control.changing
        if changing is None:
            return {}
        if isinstance(self.control, Found):
            found = self._computed[len(changing.dims) :]
            return {
                name: int(size) for (name, _, _), size in zip(changing.names, found, strict=True)
            }
        if self.made == 0:
            return {name: self._number(start) for name, start, _ in changing.names}
        found = self._computed[len(changing.dims) :]
        last = {name: int(size) for (name, _, _), size in zip(changing.names, found, strict=True)}
        if not left:
            return last
        number = self._number.with_sizes(last)
        return {name: number(after) for name, _, after in changing.names}

    def grown(self, buffer: Buffer) -> tuple[int, tuple[Dim, ...] | None] | None:
        """Return where an output lies that grew, 0 for nowhere, and its shape.

        The shape is that of a carried value, by names; None for a slice an iteration.
        """
        if isinstance(self.control, Found):
            for result, shape in self.control.results:
                if result is buffer:
                    at = self.control.changing.temporaries.index(buffer)
                    return int(self._moved[at][3]), shape
        if isinstance(self.control, Loop):
            for row, part in zip(self._scanned, self.control.scanned, strict=False):
                if part.result is buffer:
                    return int(row[_MEMORY]), None
            for row, value in zip(self._carried, self.control.carried, strict=False):
                if value.result is buffer:
                    return int(row[_NOW]), value.shape
        return None


def _address(row: np.ndarray, column: int) -> int:
    return int(row.ctypes.data) + 8 * column
