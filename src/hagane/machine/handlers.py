"""Errors that handlers of signals raise: those of a program's time limits, for instance."""

from __future__ import annotations

import signal
from types import CodeType


def is_of_handler(error: BaseException) -> bool:
    """Whether the handler of a signal raised an error: what ran meanwhile is not its cause."""
    codes: set[CodeType] = set()
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        function = getattr(handler, "__func__", handler)
        codes |= {function.__code__} if hasattr(function, "__code__") else set()
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code not in codes:
        trace = trace.tb_next
    return trace is not None
