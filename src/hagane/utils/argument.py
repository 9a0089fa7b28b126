"""Named options of functions that take any."""

from __future__ import annotations

import inspect
from typing import Any


def check_unexpected_kwargs(kwargs: dict[str, Any], **unexpected: str) -> None:
    """Refuse options by name.

    Raises:
        ValueError: One is there; with the message given for it.
    """
    for name, message in unexpected.items():
        if name in kwargs:
            raise ValueError(message)


def parse_kwargs(
    kwargs: dict[str, Any], *name_and_values: tuple[str, Any], **unexpected: str
) -> tuple[Any, ...]:
    """Return options by name, or their defaults.

    Raises:
        TypeError: There is another one.
        ValueError: One of the unexpected is there.
    """
    found = tuple(kwargs.pop(name, default) for name, default in name_and_values)
    if kwargs:
        check_unexpected_kwargs(kwargs, **unexpected)
        assert_kwargs_empty(kwargs)
    return found


def assert_kwargs_empty(kwargs: dict[str, Any]) -> None:
    """Refuse options that nobody took.

    Raises:
        TypeError: There are some.
    """
    if kwargs:
        names = ", ".join(map(repr, sorted(kwargs)))
        caller = next(one.function for one in inspect.stack() if one.filename != __file__)
        raise TypeError(f"{caller}() got unexpected keyword argument(s) {names}")
