"""A lock that a child process finds free."""

from __future__ import annotations

import os
import threading
from types import TracebackType
from weakref import WeakSet


class Lock:
    """A lock that is free after ``fork`` in the child, whichever thread held it in the parent.

    That thread does not exist in the child and could never let go. The guarded data must
    therefore be whole at every moment.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _all.add(self)

    def renew(self) -> None:
        """Make it free."""
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.release()


_all: WeakSet[Lock] = WeakSet()


def _renew_all() -> None:
    for lock in list(_all):
        lock.renew()


os.register_at_fork(after_in_child=_renew_all)
