"""A program that is compared with its graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Program:
    """A function, the types of its arguments, and inputs that run every line of it."""

    function: Callable[..., Any]
    types: dict[str, str]
    cases: tuple[tuple[Any, ...], ...]

    @property
    def code(self) -> Any:
        """The function that a call runs."""
        return getattr(self.function, "forward", self.function)

    @property
    def name(self) -> str:
        """What it is called."""
        return getattr(self.function, "__name__", type(self.function).__name__)


def lister(programs: list[Program]) -> Callable[..., Any]:
    """Return a decorator that lists a function: types by argument, and cases."""

    def listed(*cases: Any, **types: str) -> Callable[[Any], Any]:
        rows = tuple(case if isinstance(case, tuple) else (case,) for case in cases)

        def take(function: Any) -> Any:
            programs.append(Program(function, types, rows))
            return function

        return take

    return listed


def floats(*shape: int, seed: int = 0, scale: float = 1.0, shift: float = 0.0) -> Any:
    """Return normal numbers."""
    return (np.random.default_rng(seed).normal(shift, scale, shape)).astype(np.float32)


def whole(*values: int) -> Any:
    """Return integers."""
    return np.array(values, np.int64)


def real(*values: float) -> Any:
    """Return float32 numbers."""
    return np.array(values, np.float32)
