"""Errors that handlers of signals raise: those of a program's time limits, for instance."""

from __future__ import annotations

import signal
from types import CodeType


def raised(error: BaseException) -> bool:
    """Whether the handler of a signal raised an error."""
    codes: set[CodeType] = set()
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        code = getattr(getattr(handler, "__func__", handler), "__code__", None)
        if isinstance(code, CodeType):
            codes.add(code)
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code not in codes:
        trace = trace.tb_next
    return trace is not None
