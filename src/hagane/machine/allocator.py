"""The memory that this process has freed and not given back to the system."""

from __future__ import annotations

import ctypes
import gc
import sys


def give_back() -> None:
    """Free what nothing reaches any more, and give free pages back to the system.

    glibc keeps pages that were freed between others in use until it is asked (``malloc_trim``);
    other allocators are left alone.
    """
    gc.collect()
    if sys.platform != "linux":
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


__all__ = ["give_back"]
