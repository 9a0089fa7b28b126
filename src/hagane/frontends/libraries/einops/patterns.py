"""Patterns of einops: their axes, and the sizes of those."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import OPEN
from hagane.frontends.python.values.values import Tensor, Value
from hagane.symbolic import Dim, floordiv, product

_TOKEN = re.compile(r"\s*(\.\.\.|…|\w+|[()])")
DOTS = "..."  # any number of axes


@dataclass(frozen=True, slots=True)
class Group:
    """The axes that are joined in one axis of a tensor.

    Attributes:
        names: Their names, or ``...``. An axis that has a number in place of a name is called by
            number and place, ``2@1``: each is an axis of its own. Those of size 1 are left out.
        inner: Whether parentheses are around them.
    """

    names: tuple[str, ...]
    inner: bool = False

    @property
    def is_spread(self) -> bool:
        """Whether this stands for any number of axes of a tensor."""
        return self.names == (DOTS,) and not self.inner

    def __str__(self) -> str:
        """Return the axes as a pattern has them."""
        text = " ".join(name.partition("@")[0] for name in self.names) or "1"
        return f"({text})" if self.inner and len(self.names) != 1 else text


@dataclass(frozen=True, slots=True)
class Pattern:
    """Both sides of a pattern such as ``b (h w) c -> b c h w``."""

    text: str
    left: tuple[Group, ...]
    right: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Axes:
    """The axes of a pattern for a tensor of known rank, each by itself.

    Attributes:
        left: Their names on the left side; those of ``...`` are ``...0``, ``...1``.
        right: The groups of the right side.
        sizes: The size of each name.
    """

    left: tuple[str, ...]
    right: tuple[tuple[str, ...], ...]
    sizes: dict[str, Dim]

    def shape(self) -> tuple[Dim, ...]:
        """Return the shape of the result."""
        return tuple(product(self.sizes[name] for name in group) for group in self.right)


def parse(t: Core, text: Value, what: str) -> Pattern:
    """Return the parts of a pattern.

    Raises:
        CheckError: It is none.
    """
    if not isinstance(text, str) or text.count("->") != 1:
        t.fail("einops", f"{what} takes a pattern 'left -> right', got {text!r}")
    left, right = (_side(t, side, text) for side in text.split("->"))
    for side in (left, right):
        names = [name for group in side for name in group.names]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            t.fail("einops", f"'{twice}' stands twice on one side of '{text}'")
    if DOTS in names_of(right) and DOTS not in names_of(left):
        t.fail("einops", f"'...' stands on the right only of '{text}'")
    return Pattern(text, left, right)


def _side(t: Core, text: str, whole: str) -> tuple[Group, ...]:
    groups: list[Group] = []
    inner: list[str] | None = None
    place = 0
    while place < len(text.rstrip()):
        found = _TOKEN.match(text, place)
        if found is None:
            t.fail(
                "einops", f"no part of a pattern begins with '{text[place:].strip()}': '{whole}'"
            )
        token, place = found.group(1).replace("…", DOTS), found.end()
        if token == "(" and inner is None:
            inner = []
            continue
        if token == ")" and inner is not None:
            groups.append(Group(tuple(inner), inner=True))
            inner = None
            continue
        if token in "()":
            t.fail("einops", f"parentheses do not match in '{whole}'")
        names = [] if token == "1" else [f"{token}@{place}" if token.isdigit() else token]
        if inner is not None:
            inner.extend(names)
        else:
            groups.append(Group(tuple(names)))
    if inner is not None:
        t.fail("einops", f"parentheses do not match in '{whole}'")
    return tuple(groups)


def names_of(side: Sequence[Group]) -> set[str]:
    """Return the names of all axes of a side."""
    return {name for group in side for name in group.names}


def shown(names: set[str]) -> str:
    """Return names of axes as a pattern has them."""
    return ", ".join(sorted(name.partition("@")[0] for name in names))


def axes_of(t: Core, x: Tensor, pattern: Pattern, given: Mapping[str, Value]) -> Axes:
    """Return the axes of a pattern for a tensor.

    Args:
        t: The interpreter.
        x: The tensor.
        pattern: The pattern.
        given: Sizes of axes by name, as the program gives them.

    Raises:
        CheckError: The tensor has other axes; sizes are not known; a name is none of the pattern.
    """
    known = names_of(pattern.left) | names_of(pattern.right)
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        t.fail("einops", f"'{unknown}' is no axis of '{pattern.text}'")
    if x.shape is None:
        t.fail(OPEN, "the number of axes is not known", x)
    sizes: dict[str, Dim] = {name: int(name.partition("@")[0]) for name in known if "@" in name}
    sizes.update(given)
    groups = list(pattern.left)
    if any(DOTS in group.names and group.inner for group in groups):
        t.fail("einops", f"'...' in parentheses on the left is not understood: '{pattern.text}'", x)
    dots = next((place for place, group in enumerate(groups) if group.is_spread), None)
    spread = len(x.shape) - len(groups) + 1 if dots is not None else 0
    if spread < 0 or (dots is None and len(groups) != len(x.shape)):
        t.fail("rank", f"'{pattern.text}' expects {len(groups)} axes, got {t.show(x)}", x)
    middle = [f"{DOTS}{place}" for place in range(spread)]
    if dots is not None:
        groups[dots : dots + 1] = [Group((name,)) for name in middle]
    for group, dim in zip(groups, x.shape, strict=True):
        _split(t, x, group, dim, sizes, pattern.text)
    right: list[tuple[str, ...]] = []
    for group in pattern.right:
        if group.is_spread:
            right.extend((name,) for name in middle)
        else:
            pairs = [middle if name == DOTS else [name] for name in group.names]
            right.append(tuple(name for names in pairs for name in names))
    left = tuple(name for group in groups for name in group.names)
    missing = {name for group in right for name in group} - set(sizes)
    if missing:
        first = min(missing)
        t.fail("einops", f"the size of {shown(missing)} in '{pattern.text}' is not known", x,
               remedy=f"pass it, as in {first}=...")  # fmt: skip
    return Axes(left, tuple(right), sizes)


def _split(t: Core, x: Tensor, group: Group, dim: Dim, sizes: dict[str, Dim], text: str) -> None:
    """Give the axes of a group their sizes; one may take the remaining elements."""
    open_ = [name for name in group.names if name not in sizes]
    known = product(sizes[name] for name in group.names if name in sizes)
    if len(open_) > 1:
        t.fail(
            "einops",
            f"the sizes of {', '.join(open_)} in '{text}' are not known",
            x,
            remedy=f"pass one of them, as in {open_[0]}=...",
        )
    whole = floordiv(dim, known) * known if open_ else known
    if not _made_equal(t, whole, dim):
        expected = f"a multiple of {known}" if open_ else str(known)
        t.fail(
            "shape-mismatch",
            f"'{text}': expected the axis '{group}' to be {expected}, got {dim}: {t.show(x)}",
            x,
        )
    if open_:
        sizes[open_[0]] = floordiv(dim, known)


def _made_equal(t: Core, left: Dim, right: Dim) -> bool:
    """Whether sizes are equal, or the inputs can be restricted to those where they are."""
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    return t.emit.restrict(t.knowledge.equal(left, right), f"{left} == {right}")


__all__ = ["DOTS", "Axes", "Group", "Pattern", "axes_of", "names_of", "parse", "shown"]
