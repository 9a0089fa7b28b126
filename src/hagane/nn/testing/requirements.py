"""Conditions under which tests run, and what they replace."""

from __future__ import annotations

import importlib.metadata
import re
import unittest
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)\s*(.*)")
_BOUND = re.compile(r"(==|!=|<=|>=|<|>)\s*([0-9.]+)")


def _is_met(requirement: str) -> bool:
    found = _REQUIREMENT.fullmatch(requirement.strip())
    if found is None:
        raise ValueError(f"requirement: expected a package and bounds, got {requirement!r}")
    try:
        own = _numbers(importlib.metadata.version(found[1]))
    except importlib.metadata.PackageNotFoundError:
        return False
    tests = {
        "==": own.__eq__,
        "!=": own.__ne__,
        "<=": own.__le__,
        ">=": own.__ge__,
        "<": own.__lt__,
        ">": own.__gt__,
    }
    return all(tests[sign](_numbers(bound)) for sign, bound in _BOUND.findall(found[2]))


def _numbers(version: str) -> tuple[int, ...]:
    found = [int(part) for part in re.findall(r"\d+", version.split("+")[0])[:4]]
    while found and not found[-1]:
        found.pop()
    return tuple(found)


def with_requires(*requirements: str) -> Any:
    """Return a decorator that skips a test unless packages are there, as ``"numpy>=1.20"``."""
    return unittest.skipUnless(
        all(map(_is_met, requirements)), f"requires: {', '.join(requirements)}"
    )


def without_requires(*requirements: str) -> Any:
    """Return a decorator that skips a test if packages are there."""
    return unittest.skipIf(
        all(map(_is_met, requirements)), f"requires without: {', '.join(requirements)}"
    )


@contextmanager
def assert_warns(expected: type[Warning]) -> Iterator[None]:
    """Check that a ``with`` block gives a warning of a class.

    Raises:
        AssertionError: It does not.
    """
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        yield
    if not any(issubclass(one.category, expected) for one in given):
        shown = ", ".join(one.category.__name__ for one in given) or "none"
        raise AssertionError(f"expected a warning of {expected.__name__}, got {shown}")


def patch(target: str, *args: Any, **kwargs: Any) -> Any:
    """Return ``mock.patch`` of what a name stands for; ``wraps`` is that unless it is given."""
    if not args and "new" not in kwargs and "wraps" not in kwargs:
        kwargs["wraps"] = _named(target)
    return mock.patch(target, *args, **kwargs)


def _named(target: str) -> Any:
    module, *rest = target.split(".")
    found = __import__(module)
    for i, name in enumerate(rest):
        if not hasattr(found, name):
            __import__(".".join([module, *rest[: i + 1]]))
        found = getattr(found, name)
    return found
