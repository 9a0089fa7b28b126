"""What objects of the running Python hold before a call changes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hagane.frontends.python.values.values import MISSING, Value


class Originals:
    """Gives real objects back what they held, on paths that did not change them.

    A path may be the first to reach an object or to set its attribute, while another one, which
    does neither, meets it later or is followed next.
    """

    def __init__(self) -> None:
        self.ask: Callable[[int, str], Value] = lambda key, name: MISSING
        self._contents: dict[int, Any] = {}  # by the object's key; of containers: their items
        self._names: dict[int, dict[str, Value]] = {}  # attributes as they were read
        self._changed: set[int] = set()

    def keep(self, key: int, content: Any) -> None:
        """Note the content of an object that the program has just reached."""
        self._contents[key] = dict(content) if type(content) is dict else content

    def read(self, key: int, name: str, value: Value) -> None:
        """Note an attribute that was read from the real object."""
        if key in self._contents:
            self._names.setdefault(key, {})[name] = value

    def is_original(self, key: int, name: str | None) -> bool:
        """Whether a name of a real object was read from it, and the object is as it was."""
        return key not in self._changed and name in self._names.get(key, ())

    def change(self, key: int) -> None:
        """Note that an object is changed."""
        if key in self._contents:
            self._changed.add(key)

    def fill(self, contents: dict[int, Any], others: dict[int, Any]) -> None:
        """Add to the contents on a path what changed objects have there.

        Args:
            contents: The contents, changed in place.
            others: Those on another path, which may have set more attributes.
        """
        for key in list(self._changed):
            held = contents.get(key, MISSING)
            if held is MISSING:
                held = self._contents[key]
                held = dict(held) if type(held) is dict else held
                contents[key] = held
            other = others.get(key)
            if type(held) is dict and type(other) is dict:
                missing = {name: self._absent(key, name) for name in other if name not in held}
                missing = {name: value for name, value in missing.items() if value is not MISSING}
                if missing:
                    contents[key] = {**held, **missing}

    def _absent(self, key: int, name: Any) -> Value:
        """Return the attribute of an object on a path that did not set it."""
        known = self._names.get(key, {})
        if name not in known:
            known = self._names.setdefault(key, {})
            known[name] = self.ask(key, name)
        return known[name]
