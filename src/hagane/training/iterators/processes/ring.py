"""The slots of shared memory that batches are written into, and their holders."""

from __future__ import annotations

import collections
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hagane.training.iterators.processes.memory import HEADER, Slot, extend
from hagane.training.iterators.processes.protocol import ResultMessage
from hagane.training.iterators.state import Draw


@dataclass(slots=True)
class _Revoked:
    """The slot of an attempt that was given up, and the processes that may still write there."""

    slot: int
    holders: set[int]


class Ring:
    """Slots: free ones, ones lent with a batch, and ones of attempts that were given up.

    Args:
        memory: Descriptor of the memory file.
        slots: Number of slots at the start; more are made as they are needed.
    """

    def __init__(self, memory: int, slots: int):
        self.memory = memory
        self._slots = [Slot(memory, number) for number in range(slots)]
        self._free = collections.deque(range(slots))
        self._revoked: dict[int, _Revoked] = {}

    def free(self) -> int:
        """Return the number of free slots."""
        return len(self._free)

    def take(self) -> int:
        """Return a slot that nobody writes to or reads: a new one if need be."""
        if not self._free:
            extend(self.memory, len(self._slots) + 1)
            self._slots.append(Slot(self.memory, len(self._slots)))
            return len(self._slots) - 1
        return self._free.popleft()

    def release(self, slot: int) -> None:
        """Give a slot back; may be called from any thread and by the garbage collector."""
        self._free.append(slot)

    def assign(self, slot: int, ticket: int, draw: Draw, seed: int, keys: bytes) -> None:
        """Write the order of a batch into a slot, which belongs to this ticket from now on."""
        count = len(draw.indices)
        to = self._slots[slot]
        end = HEADER + 8 + 16 * count
        memory = to.map(end + len(keys))
        head = to.view(HEADER, (1 + 2 * count,), np.dtype(np.int64))
        head[0] = seed
        head[1 : 1 + count] = draw.indices
        head[1 + count :] = draw.sweeps
        memory[end : end + len(keys)] = keys
        to.owner = ticket

    def lease(
        self, number: int, result: ResultMessage, copy: bool
    ) -> tuple[bytes, list[Any], Any, Any]:
        """Return a finished batch: pickled layout, its buffers, the memory, and its leaseholder.

        With ``copy`` the memory is a copy, and the slot is free again.
        """
        slot = self._slots[number]
        padded = -(-result.length // 8) * 8
        length = result.offset + padded + 16 * result.buffers
        lease = slot.lease(length)
        memory = bytearray(lease) if copy else lease
        whole = memoryview(memory).cast("B")
        data = bytes(whole[result.offset : result.offset + result.length])
        table = np.frombuffer(whole, np.int64, 2 * result.buffers, result.offset + padded)
        buffers = [whole[begin : begin + size] for begin, size in table.reshape(-1, 2).tolist()]
        return data, buffers, memory, None if copy else lease

    def message(self, slot: int, result: ResultMessage) -> Any:
        """Return the bytes that a worker left in a slot in place of a batch."""
        memory = self._slots[slot].map(result.offset + result.length, there=True)
        return memory[result.offset : result.offset + result.length]

    def revoke(self, slot: int, ticket: int, processes: Iterable[int]) -> None:
        """Give up an attempt that one of the processes may have begun without saying so.

        Its slot is used again only when that one, whichever it is, has answered or is dead: a
        process that the system stopped may go on at any later time and write.
        """
        self._slots[slot].owner = -1
        self._revoked[ticket] = _Revoked(slot, set(processes))

    def clear(self, process: int, ticket: int = -1) -> None:
        """Note that a process holds no attempt but, at most, those sent after this."""
        for old, revoked in list(self._revoked.items()):
            revoked.holders.discard(process)
            if old == ticket or not revoked.holders:
                del self._revoked[old]
                self.release(revoked.slot)
