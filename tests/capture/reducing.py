"""Programs that fail, cut down to the statements of which the failure needs each."""

from __future__ import annotations

import ast
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Endless(BaseException):
    """A program took longer than it may."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise ``Endless`` in a block that takes longer, as a loop that appends to its own list."""

    def stop(*_: Any) -> None:
        raise Endless(f"longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def reduced(text: str, fails: Callable[[str], bool]) -> str:
    """Return a program of fewer statements that fails too.

    Statements are left out, and compound ones give way to their bodies, for as long as the program
    goes on to fail.

    Args:
        text: The source of a program that fails.
        fails: Whether a program fails in the same way; it also gets programs that do not run.
    """
    found = True
    while found:
        found = False
        for smaller in _smaller(ast.parse(text)):
            if fails(smaller):
                text, found = smaller, True
                break
    return text


def _smaller(tree: ast.Module) -> Iterator[str]:
    """Yield the sources of programs with a statement less, those that lose most lines first."""
    places = [
        (node, name, position)
        for node in ast.walk(tree)
        for name in ("body", "orelse", "finalbody")
        if isinstance(block := getattr(node, name, None), list)
        for position in range(len(block))
    ]
    places.sort(key=lambda place: -_lines(getattr(place[0], place[1])[place[2]]))
    for node, name, position in places:
        block = getattr(node, name)
        statement = block[position]
        for instead in ([], *_bodies(statement)):
            block[position : position + 1] = instead
            emptied = not block and name == "body"
            if emptied:
                block.append(ast.Pass())
            if not (emptied and isinstance(statement, ast.Pass)):
                yield ast.unparse(ast.fix_missing_locations(tree)) + "\n"
            if emptied:
                block.clear()
            block[position : position + len(instead)] = [statement]


def _bodies(statement: ast.stmt) -> list[list[ast.stmt]]:
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return []
    blocks = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
    return [list(block) for block in blocks if block]


def _lines(statement: ast.stmt) -> int:
    return (statement.end_lineno or statement.lineno) - statement.lineno
