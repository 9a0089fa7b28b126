"""The form that a kernel takes: chosen by rule, or by measurement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Choice:
    """A form of a convolution or matrix product; fields that are None are left to the rules.

    Attributes:
        winograd: Pixels of a tile's side in Winograd's algorithm, 0 for the direct form.
        blocks: Channel blocks that one register tile computes together, at most.
        order: Whether a task is one group of channels, or all groups for some pixels.
        rows: Whether the rows of a product are read where they are, or packed first.
        library: The library that computes it in the place of a kernel of our own; of the other
            fields it heeds the order alone.
    """

    winograd: Literal[0, 2, 4] | None = None
    blocks: Literal[1, 2, 3, 4] | None = None
    order: Literal["groups", "pixels"] | None = None
    rows: Literal["direct", "packed"] | None = None
    library: Literal["onednn"] | None = None


_ALLOWED: Mapping[str, tuple[Any, ...]] = {
    "winograd": (None, 0, 2, 4),
    "blocks": (None, 1, 2, 3, 4),
    "order": (None, "groups", "pixels"),
    "rows": (None, "direct", "packed"),
    "library": (None, "onednn"),
}
BY_RULE = Choice()
Choices = Mapping[str, Choice]


def to_json(choice: Choice) -> dict[str, Any]:
    """Return the fields that a choice fixes, for JSON."""
    return {name: value for name, value in asdict(choice).items() if value is not None}


def from_json(found: object) -> Choice:
    """Return the choice that ``to_json`` wrote.

    Raises:
        ValueError: It is something else.
    """
    if not isinstance(found, dict) or any(
        name not in _ALLOWED or value not in _ALLOWED[name] for name, value in found.items()
    ):
        raise ValueError(f"expected the choices {', '.join(_ALLOWED)}, got {found!r}")
    return Choice(**found)
