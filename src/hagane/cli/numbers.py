"""Numbers of options: those that no command can use are refused where they are read."""

from __future__ import annotations

import math

import typer


def finite(value: float | None) -> float | None:
    """Return a number, unless it is infinite or NaN, which comparisons let through."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"expected a finite number, got {value}")
    return value


def not_negative(value: float | None) -> float | None:
    """Return a number that is finite and at least 0."""
    if value is not None and value < 0:
        raise typer.BadParameter(f"expected a number of at least 0, got {value:g}")
    return finite(value)


def port_number(value: int) -> int:
    """Return the number of a port."""
    if not 0 <= value <= 65535:
        raise typer.BadParameter(f"expected a number from 0 to 65535, got {value}")
    return value
