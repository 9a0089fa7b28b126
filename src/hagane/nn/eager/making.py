"""The process that makes programs of eager calls, beside the program that waits for them."""

from __future__ import annotations

import os
import pickle
import struct
import sys
from contextlib import suppress

from hagane.nn.eager.programs import make
from hagane.runtime.shapes.making import end_with

_NICE = 5


def main() -> None:
    """Make the programs that come on the standard input; answer with one byte for each."""
    with suppress(OSError, AttributeError):
        os.nice(_NICE)
    given, told = sys.stdin.buffer, os.dup(1)
    os.dup2(2, 1)  # nothing else is said there
    while (size := given.read(8)) and len(size) == 8:
        order, parent = pickle.loads(given.read(struct.unpack("<q", size)[0]))
        end_with(parent)
        os.write(told, b"+" if make(order) else b"-")
