"""Answers to programs that ask for iDeep: it is not there."""

from __future__ import annotations

from typing import Any

__all__ = ["is_ideep_available", "mdarray", "should_use_ideep"]


class mdarray:  # noqa: N801
    """The class of iDeep's arrays, of which there are none."""


def is_ideep_available() -> bool:
    """Return False."""
    return False


def should_use_ideep(level: Any) -> bool:
    """Return False."""
    return False
