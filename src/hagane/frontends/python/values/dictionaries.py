"""Content of dictionaries, whatever their classes make of access to it.

An ``OrderedDict`` keeps the order of its keys beside the content that it has as a ``dict``, whose
own methods neither see nor change it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import ItemsView, Mapping
from typing import Any


def items_of(found: dict[Any, Any]) -> ItemsView[Any, Any]:
    """Return keys and values in their order."""
    found_items: ItemsView[Any, Any] = _class_of(found).items(found)
    return found_items


def fill(found: dict[Any, Any], content: Mapping[Any, Any]) -> None:
    """Set values; new keys come behind those that are there."""
    put = _class_of(found).__setitem__
    for key, value in content.items():
        put(found, key, value)


def empty(found: dict[Any, Any]) -> None:
    """Take out everything."""
    _class_of(found).clear(found)


def _class_of(found: dict[Any, Any]) -> Any:
    return OrderedDict if isinstance(found, OrderedDict) else dict


__all__ = ["empty", "fill", "items_of"]
