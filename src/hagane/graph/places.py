"""Places of nodes in a program's source: kept in their metadata by capture and passes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

import onnx_ir as ir

from hagane.graph.walk import PLACE

CALLS = "hagane.calls"
_KEYS = (PLACE, CALLS)
_SHOWN = 3  # calls in a message; the metadata have all


def note_place(node: ir.Node, place: str, calls: Sequence[str] = ()) -> None:
    """Write down where a node came from.

    Args:
        node: Its metadata are changed.
        place: ``file:line:column``.
        calls: The calls that led there, the innermost first, each ``file:line``.
    """
    node.metadata_props[PLACE] = place
    if calls:
        node.metadata_props[CALLS] = "\n".join(calls)


def copy_place(old: ir.Node, new: ir.Node) -> None:
    """Give a node that takes the place of another the place in the source, if it has none."""
    if PLACE in new.metadata_props:
        return
    for key in _KEYS:
        if key in old.metadata_props:
            new.metadata_props[key] = old.metadata_props[key]


def line_of(node: ir.Node) -> str:
    """Return ``file:line`` of the source that a node came from; empty if it is not known."""
    return node.metadata_props.get(PLACE, "").rpartition(":")[0]


def place_of(node: ir.Node) -> str:
    """Return where a node came from, with calls that led there; empty if it is not known.

    ``model.py:12, called from train.py:30, train.py:41``: the innermost call first.
    """
    line = line_of(node)
    calls = [call for call in node.metadata_props.get(CALLS, "").split("\n") if call]
    if not line or not calls:
        return line
    more = ", …" if len(calls) > _SHOWN else ""
    return f"{line}, called from {', '.join(map(short, calls[:_SHOWN]))}{more}"


def short(place: str) -> str:
    """Return a place without the folders of its file."""
    file, _, rest = place.partition(":") if ":" in place else (place, "", "")
    return f"{PurePath(file).name}:{rest}" if rest else PurePath(file).name


__all__ = ["CALLS", "PLACE", "copy_place", "line_of", "note_place", "place_of", "short"]
