"""Rows of arrays that tests of functions and links draw, compute and compare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from hagane.nn.testing.arrays import assert_allclose


class CaseError(AssertionError):
    """What is tested, or the test of it, does not do what the test needs."""

    @classmethod
    def check(cls, holds: bool, message: str) -> None:
        """Raise the error unless a condition holds."""
        if not holds:
            raise cls(message)

    @classmethod
    @contextmanager
    def told(cls, what: str) -> Iterator[None]:
        """Tell what is wrong where an assertion fails inside a ``with`` block."""
        try:
            yield
        except AssertionError as wrong:
            raise cls(f"{what}: {str(wrong).strip()}") from None


def row_of(where: str, found: Any, kind: type, error: type[CaseError]) -> tuple[Any, ...]:
    """Return what a method of a test gave.

    Args:
        where: The method.
        found: Its result.
        kind: The class of its elements, None aside.
        error: Is raised if it is no tuple of these.
    """
    error.check(
        isinstance(found, tuple) and all(one is None or isinstance(one, kind) for one in found),
        f"{where}: expected a tuple of {kind.__name__}, got {_kinds(found)}",
    )
    return tuple(found)


def _kinds(found: Any) -> str:
    if isinstance(found, Sequence) and not isinstance(found, str):
        return f"{type(found).__name__} of {', '.join(type(one).__name__ for one in found)}"
    return type(found).__name__


def compare(
    name: str,
    found: Sequence[Any],
    expected: Sequence[Any],
    error: type[CaseError],
    options: dict[str, Any] | None,
) -> None:
    """Compare arrays in number, type, sizes and content.

    Args:
        name: What they are, for messages.
        found: What came.
        expected: What should have come.
        error: Is raised if they differ.
        options: Keyword arguments of ``assert_allclose``.
    """
    error.check(
        len(found) == len(expected), f"{name}: expected {len(expected)}, got {len(found)} of them"
    )
    for i, (y, wanted) in enumerate(zip(found, expected, strict=True)):
        error.check(
            (y.shape, y.dtype) == (wanted.shape, wanted.dtype),
            f"{name}[{i}]: expected {wanted.dtype} of {wanted.shape}, got {y.dtype} of {y.shape}",
        )
        with error.told(f"{name}[{i}]"):
            assert_allclose(y, wanted, **(options or {}))


def drawn_like(x: Any) -> Any:
    """Return an array of a type and sizes, drawn between -1 and 1 from ``numpy.random``."""
    return np.random.uniform(-1, 1, x.shape).astype(x.dtype)


def with_gaps(x: Any) -> Any:
    """Return an equal array whose elements do not lie side by side."""
    if x is None or x.size <= 1:
        return x
    wide = np.empty((*x.shape, 2), x.dtype)
    wide[..., 0] = x
    return wide[..., 0]
