"""``hagane.prob`` as the interpreter sees it: the meaning of its functions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol, cast

from hagane.frontends.libraries.registry import LibraryTables
from hagane.frontends.libraries.table import Handler, Table
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import MISSING, Value
from hagane.tools.prob.language.floats import fraction_of


class Drawing(Protocol):
    """A function that captured ones may use: the domain does its work."""

    def rand(self, low: Value, high: Value) -> Value:
        """Return an integer drawn between two bounds, both included."""
        ...

    def flip(self, probability: Value) -> Value:
        """Return a truth value that is true with a probability."""
        ...

    def choose(self, *branches: Value) -> Value:
        """Return one of several values, given as pairs of its probability and itself."""
        ...

    def observe(self, condition: Value) -> Value:
        """Keep the runs on which a condition holds."""
        ...

    def lifted(self, found: Any) -> Value:
        """Return the stand-in of a real object; ``MISSING`` for others."""
        ...


def _drawing(core: Core) -> Drawing:
    return cast(Drawing, core.domain)


def _rand(core: Core, low: Value, high: Value) -> Value:
    return _drawing(core).rand(low, high)


def _flip(core: Core, probability: Value) -> Value:
    return _drawing(core).flip(probability)


def _choose(core: Core, *branches: Value) -> Value:
    return _drawing(core).choose(*branches)


def _observe(core: Core, condition: Value) -> Value:
    return _drawing(core).observe(condition)


_FUNCTIONS: dict[str, Handler] = {
    "rand": _rand,
    "flip": _flip,
    "choose": _choose,
    "observe": _observe,
}
_TABLE = Table(
    "hagane",
    "",
    functions={
        f"hagane.{module}.{name}": function
        for module in ("prob", "tools.prob", "tools.prob.draws")
        for name, function in _FUNCTIONS.items()
    },
)


class DrawTables(LibraryTables):
    """The one table that a captured function may use."""

    def lift_object(self, core: Core, found: Any) -> Value:
        """Return the stand-in of a real object: a typed function, the items of an array."""
        special = _drawing(core).lifted(found)
        return super().lift_object(core, found) if special is MISSING else special

    @property
    def tables(self) -> dict[str, Table]:
        """The tables by root name."""
        return {"hagane": _TABLE}


def known_fraction(found: Any) -> Fraction | None:
    """Return a known probability; a float stands for the decimal that Python prints for it."""
    if isinstance(found, bool) or not isinstance(found, int | float | str | Fraction):
        return None
    return fraction_of(found)
