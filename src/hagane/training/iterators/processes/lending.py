"""Batches in shared memory, lent to the caller until the last array over them is gone."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from hagane.training.errors import LoadingError, SampleError
from hagane.training.iterators.processes.layout import Layout, read_layout
from hagane.training.iterators.processes.pool import Pool, Task

# Batches that may be in the caller's hands before the next ones are given out as copies: the one
# in use, the one before it that a loop variable still names, and one to spare.
LEASES = 3
MOST_SLOTS = 1000


class Lender:
    """Gives finished batches to the caller, and their slots back to the pool."""

    def __init__(self) -> None:
        self._leases: dict[int, Any] = {}

    def give_out(
        self, pool: Pool, task: Task, copy: bool, build: Callable[[Layout, Any], Any]
    ) -> tuple[Any, str]:
        """Return a finished batch, and its notice.

        Args:
            pool: The owner of the slot.
            task: A task with a result.
            copy: Give out a copy; so it is done anyway when ``LEASES`` batches are lent.
            build: Makes the batch from its layout and memory.

        Raises:
            SampleError: The batch holds something that this process cannot unpickle.
        """
        copy = copy or len(self._leases) >= LEASES
        data, buffers, memory, lease = pool.lease(task, copy)
        slot = task.slot
        if lease is None:
            pool.release(slot)
        else:
            leases, free = self._leases, pool.release

            def returned(_: Any) -> None:
                leases.pop(slot, None)
                free(slot)

            leases[slot] = weakref.ref(lease, returned)
            del lease
        try:
            layout = read_layout(data, buffers)
        except Exception as error:
            raise _unreadable(error, task) from error
        return build(layout, memory), layout.notice


def _unreadable(error: Exception, task: Task) -> LoadingError:
    indices = task.draw.indices.tolist()
    shown = ", ".join(map(str, indices[:4])) + (", …" if len(indices) > 4 else "")
    return SampleError(
        f"the batch of dataset indices {shown} was made, but its samples cannot be unpickled in "
        f"this process: {type(error).__name__}: {error}; return arrays, numbers and strings, or "
        "objects of a class that this process can import too",
        indices[0] if indices else -1,
    )
