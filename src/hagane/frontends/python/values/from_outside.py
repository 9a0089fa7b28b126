"""What a program makes of values from outside, such as a file's, and of texts that it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hagane.frontends.python.values.values import Outside, Value
from hagane.symbolic import Expr


@dataclass(slots=True)
class FromOutside:
    """Values that stand for those from outside.

    Attributes:
        numbers: Whole numbers that such values are.
        parts: Their items, attributes and results of operators, by the key of each.
        counting: Those of the parts that are methods which give a place or a number.
        ran_texts: Files of the program that run texts which nobody knows.
    """

    numbers: dict[Outside, Expr] = field(default_factory=dict)
    parts: dict[tuple[Outside, Any], Outside] = field(default_factory=dict)
    counting: set[Value] = field(default_factory=set)
    ran_texts: set[str] = field(default_factory=set)


__all__ = ["FromOutside"]
