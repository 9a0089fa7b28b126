"""Weak references: no object of a program goes while it is followed."""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.objects import Wrapped
from hagane.frontends.python.values.values import (
    MISSING,
    Host,
    Value,
)

_HOLDING: dict[Any, type] = {
    weakref.WeakValueDictionary: dict, weakref.WeakKeyDictionary: dict, weakref.WeakSet: set,
}  # fmt: skip


class WeakReferences(Core):
    """Calls what ``weakref`` has."""

    def call_weak(
        self, found: Any, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call a function or class of ``weakref``; ``MISSING`` for others."""
        if not isinstance(found, Hashable):
            return MISSING
        if found in _HOLDING:
            return self.call(Host(_HOLDING[found]), arguments, keywords)
        if found in (weakref.ref, weakref.proxy, weakref.WeakMethod) and arguments:
            held = arguments[0]
            return held if found is weakref.proxy else Wrapped("reference", held)
        return MISSING


__all__ = ["WeakReferences"]
