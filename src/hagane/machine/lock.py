"""A lock that a child process finds free, and that no signal leaves held."""

from __future__ import annotations

import os
from _thread import RLock
from weakref import WeakSet


class Lock(RLock):  # type: ignore[misc]  # (not final, as CPython has it)
    """A lock that is free after ``fork`` in the child, whichever thread held it in the parent.

    That thread does not exist in the child and could never let go. The guarded data must
    therefore be whole at every moment; for the same reason the thread that holds it may take it
    again, as what the collector or the handler of a signal calls does.

    ``with`` takes it and lets go of it in C: an error that the handler of a signal raises, such as
    that of Ctrl-C, never comes between.
    """

    def __init__(self) -> None:
        super().__init__()
        _all.add(self)


_all: WeakSet[Lock] = WeakSet()


def _renew_all() -> None:
    for lock in list(_all):
        lock._at_fork_reinit()  # type: ignore[attr-defined]


os.register_at_fork(after_in_child=_renew_all)
