"""Terms of many sorts: truth values, integers, bit vectors; equal terms are one object.

Terms are made only by the functions of :mod:`hagane.symbolic.bitvector` and
:mod:`hagane.symbolic.logic`, which simplify as they build. Because equal terms are the same
object, ``is`` compares them, and a fixpoint is reached when no object changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary


@dataclass(frozen=True, slots=True, eq=False)
class Sort:
    """The kind of a term's values: ``bool``, ``int``, or ``bits`` with a width.

    There is one object of each: BOOL, INT and those of :func:`bits`.
    """

    kind: str
    width: int = 0

    def __str__(self) -> str:
        return f"bits[{self.width}]" if self.kind == "bits" else self.kind


BOOL = Sort("bool")
INT = Sort("int")
_BITS: dict[int, Sort] = {}


def bits(width: int) -> Sort:
    """Return the sort of bit vectors of ``width`` bits, at least one."""
    if width < 1:
        raise ValueError(f"a bit vector has at least one bit, got a width of {width}")
    if width not in _BITS:
        _BITS[width] = Sort("bits", width)
    return _BITS[width]


class Term:
    """A node of an expression graph; ``data`` is a constant, a name or a range of bits."""

    __slots__ = ("__weakref__", "args", "data", "op", "sort")

    def __init__(self, op: str, args: tuple[Term, ...], data: Any, sort: Sort):
        self.op = op
        self.args = args
        self.data = data
        self.sort = sort

    @property
    def width(self) -> int:
        """The number of bits; 0 for other sorts."""
        return self.sort.width

    @property
    def is_const(self) -> bool:
        """Whether this is a constant."""
        return self.op == "const"

    def __repr__(self) -> str:
        text = describe(self, 3)
        return text if len(text) <= 200 else f"{text[:199]}…"


_table: WeakValueDictionary[Any, Term] = WeakValueDictionary()


def make(op: str, args: tuple[Term, ...], data: Any, sort: Sort) -> Term:
    """Return the one term with this content."""
    key = (op, args, data, sort)
    found = _table.get(key)
    if found is None:
        found = Term(op, args, data, sort)
        _table[key] = found
    return found


def variable(name: str, sort: Sort) -> Term:
    """Return the unknown of that name and sort."""
    return make("var", (), name, sort)


def const(value: int | bool, sort: Sort) -> Term:
    """Return a constant; bit vectors keep the low bits of ``value``."""
    if sort.kind == "bits":
        value = int(value) & ((1 << sort.width) - 1)
    elif sort.kind == "bool":
        value = bool(value)
    return make("const", (), value, sort)


TRUE = const(True, BOOL)
FALSE = const(False, BOOL)


def postorder(roots: Iterable[Term]) -> list[Term]:
    """Return every term below ``roots`` once, arguments before their users."""
    done: set[Term] = set()
    order: list[Term] = []
    stack: list[tuple[Term, bool]] = [(root, False) for root in roots]
    while stack:
        term, ready = stack.pop()
        if term in done:
            continue
        if ready or not term.args:
            done.add(term)
            order.append(term)
            continue
        stack.append((term, True))
        stack.extend((arg, False) for arg in term.args if arg not in done)
    return order


def variables_of(roots: Iterable[Term]) -> dict[str, Term]:
    """Return the unknowns below ``roots`` by name."""
    return {term.data: term for term in postorder(roots) if term.op == "var"}


def rewrite(
    roots: Iterable[Term],
    change: Callable[[Term, tuple[Term, ...]], Term],
    memo: dict[Term, Term],
) -> None:
    """Fill ``memo`` with ``change(term, new arguments)`` for every term below ``roots``."""
    stack: list[tuple[Term, bool]] = [(root, False) for root in roots]
    while stack:
        term, ready = stack.pop()
        if term in memo:
            continue
        if ready or not term.args:
            memo[term] = change(term, tuple(memo[arg] for arg in term.args))
            continue
        stack.append((term, True))
        stack.extend((arg, False) for arg in term.args if arg not in memo)


def describe(term: Term, depth: int = 4) -> str:
    """Return the term as text, cut off below ``depth``."""
    if term.op == "const":
        return f"{term.data}" if term.sort.kind != "bits" else f"{term.width}'h{term.data:x}"
    if term.op == "var":
        return str(term.data)
    if depth == 0:
        return "…"
    data = "" if term.data is None else f"[{term.data}]"
    return f"{term.op}{data}({', '.join(describe(arg, depth - 1) for arg in term.args)})"


Assignment = Mapping[str, int]
