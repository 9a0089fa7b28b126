"""Lines that fit the terminal."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from typing import TextIO

_LEAST = 40


def terminal_width(stream: TextIO | None = None) -> int | None:
    """Return the columns of the terminal; None if the output goes elsewhere, as to a program.

    Args:
        stream: Of the output; the standard one if None.
    """
    if not (sys.stdout if stream is None else stream).isatty():
        return None
    return max(_LEAST, shutil.get_terminal_size().columns)


def fitted(lines: Iterable[str], width: int | None) -> Iterator[str]:
    """Yield lines that are no wider: text is folded and set in, shown source is cut.

    Args:
        lines: As they would be without a bound.
        width: In columns; None changes nothing.
    """
    for line in lines:
        if width is None or len(line) <= width:
            yield line
        elif _is_source(line):
            yield line[: width - 1] + "…"
        else:
            indent = " " * (len(line) - len(line.lstrip()) + 4)
            yield from textwrap.wrap(
                line,
                width,
                subsequent_indent=indent,
                break_on_hyphens=False,
                drop_whitespace=True,
                replace_whitespace=False,
            )


def _is_source(line: str) -> bool:
    """Whether a line shows source behind its number, or marks the line above."""
    number, bar, _ = line.partition(" | ")
    return bool(bar) and (not number.strip() or number.strip().isdecimal())


def show(text: str, stream: TextIO | None = None) -> None:
    """Print text, folded to the terminal, to the standard output or a stream."""
    for line in fitted(text.splitlines() or [""], terminal_width(stream)):
        print(line, file=stream)
