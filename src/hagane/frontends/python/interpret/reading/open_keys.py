"""Items at keys that only a run knows, where a graph is built: one of the items that there are."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import partial
from itertools import takewhile
from typing import Any

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.texts import Begun, OpenText
from hagane.frontends.python.values.values import (
    MISSING,
    DictRef,
    Tensor,
    Value,
    is_size,
)

# Of so many keys, each is a branch of the graph.
_MOST_KEYS = 64


class OpenKeys(Core):
    """Texts with open numbers, and the items of dictionaries at them."""

    def joined_text(self, parts: Sequence[Value]) -> Value:
        """Return texts that are put one behind the other; of one number at most, which is open."""
        open_ = [part for part in parts if isinstance(part, OpenText)]
        if len(open_) != 1 or not all(isinstance(part, str | OpenText) for part in parts):
            known = all(isinstance(part, str) for part in parts)
            if known or self.emit.builds:
                return "".join(map(str, parts)) if known else self.outside(_TEXT)
            begun = takewhile(lambda part: isinstance(part, str), parts)
            return Begun(_TEXT, told=True, before="".join(map(str, begun)))
        place = next(i for i, part in enumerate(parts) if isinstance(part, OpenText))
        before, behind = "".join(map(str, parts[:place])), "".join(map(str, parts[place + 1 :]))
        (one,) = open_
        return OpenText(_TEXT, True, False, before + one.before, one.number, one.behind + behind)

    def text_of_number(self, value: Value) -> Value:
        """Return the text of a value that is not known."""
        scalar = isinstance(value, Tensor) and value.shape == () and value.dtype.is_integer()
        if self.emit.builds and (scalar or is_size(value)):
            return OpenText(_TEXT, True, False, "", value, "")
        return self.outside(_TEXT)

    def at_open_key(self, value: Value, index: OpenText) -> Value:
        """Return the item of a dictionary at a key, of those that fit; ``MISSING`` if none does."""
        found = [(index.number_in(key), key) for key in self._keys_of(value)]
        fitting = [(number, key) for number, key in found if number is not None]
        if not fitting or len(fitting) > _MOST_KEYS:
            return MISSING
        return self._at_one_of(value, index.number, fitting)

    def at_open_number(self, value: DictRef, index: Value) -> Value:
        """Return the item at one of the whole numbers that are the keys; ``MISSING`` for others."""
        content = self.heap[value]
        scalar = isinstance(index, Tensor) and index.kind == "numpy.ndarray" and index.shape == ()
        open_ = is_size(index) or (scalar and index.dtype.is_integer())
        if not self.emit.builds or not open_ or value.kind != "dict":
            return MISSING
        if not content or len(content) > _MOST_KEYS or any(type(key) is not int for key in content):
            return MISSING
        return self._at_one_of(value, index, [(key, key) for key in content])

    def _keys_of(self, value: Value) -> list[str]:
        content: Any = ()
        if isinstance(value, DictRef):
            content = self.heap[value]
        elif isinstance(value, Instance):
            method = self.method_of(value, "keys")
            content = () if method is MISSING else self.sequence(self.call(method, [], {}))
        known = isinstance(content, dict | list)
        return [key for key in content if isinstance(key, str)] if known else []

    def _at_one_of(
        self, value: Value, number: Value, keys: Sequence[tuple[int, int | str]]
    ) -> Value:
        (first, key), *rest = keys
        if not rest:
            other = self.compare(ast.NotEq, number, first)
            self.fail_where(other, KeyError, "the key is none of those that there are")
            return self.item(value, key)
        condition = self.decide(self.truth(self.compare(ast.Eq, number, first)))
        if isinstance(condition, bool):
            return self.item(value, key) if condition else self._at_one_of(value, number, rest)
        return self.fork(
            condition,
            partial(self.item, value, key),
            partial(self._at_one_of, value, number, rest),
            f"the key is {key!r}",
        )


_TEXT = "a text that depends on sizes"
