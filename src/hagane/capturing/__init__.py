"""``hagane.capture``, ``hagane.compile`` and ``hagane.trace``: Python programs as models."""

from hagane.capturing.capture import CaptureNotice, capture, model_of
from hagane.capturing.compiled import Compiled, CompileNotice
from hagane.capturing.compiling import compile  # noqa: A004
from hagane.capturing.difference import Verified, difference, verified
from hagane.capturing.exported import from_torch
from hagane.capturing.trace import trace

__all__ = [
    "CaptureNotice",
    "CompileNotice",
    "Compiled",
    "Verified",
    "capture",
    "compile",
    "difference",
    "from_torch",
    "model_of",
    "trace",
    "verified",
]
