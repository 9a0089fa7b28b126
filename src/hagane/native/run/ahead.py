"""The engine and its extension of Python, compiled while something else is done."""

from __future__ import annotations

import threading
from functools import cache

from hagane.native.run.engine import load_engine
from hagane.native.run.extension import load_extension


@cache
def make_ahead() -> None:
    """Begin to compile what every model needs, once a process; returns at once.

    On a machine whose cache has both, they are only mapped. A failure is left to the session that
    needs them, which says what is wrong.
    """
    for make in (load_engine, load_extension):
        threading.Thread(target=_tried, args=(make,), name=f"hagane {make.__name__}").start()


def _tried(make: object) -> None:
    try:
        assert callable(make)
        make()
    except Exception:  # whatever it is, it comes again where it can be told
        return
