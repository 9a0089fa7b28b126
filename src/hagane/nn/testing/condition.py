"""Tests that are repeated, as of functions that draw."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

_Test = TypeVar("_Test", bound=Callable[..., Any])


def repeat_with_success_at_least(times: int, least: int) -> Callable[[_Test], _Test]:
    """Return a decorator that runs a test several times.

    Args:
        times: How often.
        least: How many runs have to pass.

    Raises:
        AssertionError: Fewer passed; it tells the last failure.
    """
    if not 0 < least <= times:
        raise ValueError(f"condition: expected 0 < least <= times, got {least} of {times}")

    def decorate(test: _Test) -> _Test:
        @functools.wraps(test)
        def repeated(self: Any, *args: Any, **kwargs: Any) -> None:
            passed, last = 0, None
            for run in range(times):
                if run:
                    # Each run has the state of a test of its own.
                    for name in ("tearDown", "setUp"):
                        getattr(self, name, lambda: None)()
                try:
                    test(self, *args, **kwargs)
                    passed += 1
                except AssertionError as error:
                    last = error
                if passed >= least or passed + times - run - 1 < least:
                    break
            if passed < least:
                raise AssertionError(
                    f"{passed} of {run + 1} runs passed, expected {least} of {times}: {last}"
                ) from last

        return repeated  # type: ignore[return-value]

    return decorate


def repeat(times: int) -> Callable[[_Test], _Test]:
    """Return a decorator that runs a test several times, all of which have to pass."""
    return repeat_with_success_at_least(times, times)


def retry(times: int) -> Callable[[_Test], _Test]:
    """Return a decorator that runs a test until it passes, at most so many times."""
    return repeat_with_success_at_least(times, 1)
