"""``hagane.prob`` as the interpreter sees it: what its functions do when a function is captured."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from hagane.frontends.libraries.registry import LibraryTables
from hagane.frontends.libraries.table import Handler, Table
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Value
from hagane.tools.prob.draws import fraction_of


class DrawTables(LibraryTables):
    """The one table that a captured function may use.

    Args:
        rand, flip, choose, observe: What they do, given their arguments.
    """

    def __init__(
        self,
        rand: Callable[[Value, Value], Value],
        flip: Callable[[Value], Value],
        choose: Callable[..., Value],
        observe: Callable[[Value], Value],
    ):
        def call_rand(core: Core, low: Value, high: Value) -> Value:
            del core
            return rand(low, high)

        def call_flip(core: Core, probability: Value) -> Value:
            del core
            return flip(probability)

        def call_choose(core: Core, *branches: Value) -> Value:
            del core
            return choose(*branches)

        def call_observe(core: Core, condition: Value) -> Value:
            del core
            return observe(condition)

        functions: dict[str, Handler] = {
            "rand": call_rand,
            "flip": call_flip,
            "choose": call_choose,
            "observe": call_observe,
        }
        self._table = Table(
            "hagane",
            "",
            functions={
                f"hagane.{module}.{name}": function
                for module in ("prob", "tools.prob", "tools.prob.draws")
                for name, function in functions.items()
            },
        )

    @property
    def tables(self) -> dict[str, Table]:
        """The tables by root name."""
        return {"hagane": self._table}


def known_fraction(found: Any) -> Fraction | None:
    """Return a known probability; a float stands for the decimal that Python prints for it."""
    if isinstance(found, bool) or not isinstance(found, int | float | str | Fraction):
        return None
    return fraction_of(found)
