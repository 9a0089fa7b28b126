"""Tables of a compiled part as JSON, and back: numbers, texts, formulas of sizes, records.

A record is written with the name of its class, a recipe's function by its name; both are listed
here or in ``rules/packings.py``, so that reading makes nothing else.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hagane.errors import InvalidArgument
from hagane.machine import Level
from hagane.native.kernels.control import Branch, Carried, ChangingSizes, Found, Loop, Mark, Scanned
from hagane.native.kernels.kernel import Call, Pointer
from hagane.native.kernels.packing import Packing
from hagane.native.kernels.tensor import Border, Buffer, Kind
from hagane.native.run.compiled import View
from hagane.native.tiles.tile import Words
from hagane.symbolic import Expr
from hagane.symbolic.expression import Atom

_RECORDS: Mapping[str, type] = {
    each.__name__: each
    for each in (
        Border, Branch, Call, Carried, ChangingSizes, Found, Level, Loop, Pointer, Scanned, View,
    )
}  # fmt: skip
_CHOICES: Mapping[str, type[enum.Enum]] = {each.__name__: each for each in (Kind, Mark, Words)}


class Writer:
    """Turns values into values of JSON; buffers and formulas are numbered as they are met.

    A part has many times more formulas of sizes than different ones.
    """

    def __init__(self) -> None:
        self.buffers: dict[Buffer, int] = {}
        self._formulas: dict[Expr, int] = {}
        self._terms: list[Any] = []

    def table(self) -> dict[str, list[Any]]:
        """Return the formulas and the buffers that were met, in order."""
        buffers = [
            [each.name, self.write(each.bytes), each.kind.name, self.write(each.border)]
            for each in self.buffers
        ]
        return {"formulas": self._terms, "buffers": buffers}

    def write(self, item: Any) -> Any:
        """Return a value as JSON has it.

        Raises:
            InvalidArgument: It belongs to this process.
        """
        if item is None or isinstance(item, bool | int | float | str):
            return item
        if isinstance(item, np.integer | np.floating):
            return item.item()
        if isinstance(item, tuple | list):
            return [self.write(each) for each in item]
        if isinstance(item, Expr):
            if item not in self._formulas:
                # (Those within it come first.)
                terms = [self._term(product, number) for product, number in item.terms.items()]
                self._formulas[item] = len(self._terms)
                self._terms.append(terms)
            return {"formula": self._formulas[item]}
        if isinstance(item, Buffer):
            return {"buffer": self.buffers.setdefault(item, len(self.buffers))}
        if isinstance(item, Packing):
            return {"recipe": _name(item), "arguments": self.write(item.arguments)}
        if isinstance(item, np.dtype):
            return {"dtype": item.name}
        if isinstance(item, frozenset):
            return {"set": sorted(item)}
        if isinstance(item, enum.Enum):
            return {"choice": [type(item).__name__, item.name]}
        assert is_dataclass(item), item
        assert type(item).__name__ in _RECORDS, item
        record = {each.name: self.write(getattr(item, each.name)) for each in fields(item)}
        return {"record": type(item).__name__, "fields": record}

    def _term(self, product: Any, number: int | Fraction) -> list[Any]:
        atoms = [
            [atom.head, [self.write(each) for each in atom.arguments], power]
            for atom, power in product
        ]
        return [number.numerator, number.denominator, atoms]


def _name(packing: Packing) -> str:
    from hagane.native.rules.packings import OF_ONE_PROCESS, PACKINGS

    if packing.function in OF_ONE_PROCESS:
        raise InvalidArgument(
            "a part that calls oneDNN belongs to its process and cannot be written to a file; "
            "compile it with SessionOptions(tune='off'), or without the package of oneDNN"
        )
    name = packing.function.__name__
    assert PACKINGS.get(name) is packing.function, f"list {name} in rules/packings.py"
    return name


class Reader:
    """Turns values of JSON into values.

    Args:
        table: That of ``Writer.table``.
    """

    def __init__(self, table: Mapping[str, list[Any]]):
        self._formulas: list[Expr] = []
        for terms in table["formulas"]:
            self._formulas.append(Expr({self._product(term): _number(term) for term in terms}))
        self._buffers: list[Buffer] = []
        for name, size, kind, border in table["buffers"]:
            made = Buffer(name, self.read(size), Kind[kind], border=self.read(border))
            self._buffers.append(made)

    def read(self, item: Any) -> Any:
        """Return the value that was written.

        Raises:
            ValueError: It is something else.
            KeyError: It names a part that does not exist.
        """
        if item is None or isinstance(item, bool | int | float | str):
            return item
        if isinstance(item, list):
            return tuple(self.read(each) for each in item)
        match item:
            case {"formula": number}:
                return self._formulas[number]
            case {"buffer": number}:
                return self._buffers[number]
            case {"recipe": name, "arguments": arguments}:
                # All rules come with them; parts whose weights are packed do without.
                from hagane.native.rules.packings import PACKINGS

                return Packing(PACKINGS[name], self.read(arguments))
            case {"dtype": name}:
                return np.dtype(name)
            case {"set": items}:
                return frozenset(items)
            case {"choice": [name, which]}:
                return _CHOICES[name][which]
            case {"record": name, "fields": found}:
                kind = _RECORDS[name]
                return kind(**{key: self.read(value) for key, value in found.items()})
        raise ValueError(f"{item!r} is no value")

    def _product(self, term: list[Any]) -> tuple[tuple[Atom, int], ...]:
        return tuple((Atom(head, self.read(given)), power) for head, given, power in term[2])


def _number(term: list[Any]) -> int | Fraction:
    return int(term[0]) if term[1] == 1 else Fraction(term[0], term[1])
