"""Keys of dictionaries and items of sets: which of them are one."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any

from hagane.frontends.python.interpret.core.truths import Truths
from hagane.frontends.python.interpret.fitting import refuse_unhashable
from hagane.frontends.python.values.hashed import Step, hashed
from hagane.frontends.python.values.objects import (
    Class,
    Instance,
    is_compared_by_value,
    is_key,
)
from hagane.frontends.python.values.values import (
    MISSING,
    SetRef,
    Tensor,
    Value,
)


class Keys(Truths):
    """Finds keys that equal others."""

    def is_by_identity(self, key: Value) -> bool:
        """Whether a value is a key by its identity: a tensor, which graphs write anew instead."""
        return isinstance(key, Tensor) and not self.emit.builds

    def is_member(self, item: Value) -> bool:
        """Whether sets know a value: a known one, or a tensor of PyTorch, which equals itself."""
        if isinstance(item, Tensor):
            return self.is_by_identity(item) and item.kind == "torch.Tensor"
        refuse_unhashable(item)
        return is_key(item)

    def key_in(self, keys: Iterable[Value], key: Value) -> Value:
        """Return the one of ``keys`` that a key equals, the key itself if it is another.

        ``MISSING`` stands for one of which only the run knows whether it is one of them.
        """
        if is_key(key):
            return key
        refuse_unhashable(key)
        if not is_compared_by_value(key):
            return MISSING
        for other in keys:
            same = other is key or self.truth(self.compare(ast.Eq, key, other))
            if same is True:
                return other
            if same is not False:
                return MISSING
        return key

    def with_keys(self, pairs: Iterable[tuple[Value, Value]]) -> dict[Any, Value] | None:
        """Return a dictionary of pairs, None where only the run knows its keys."""
        made: dict[Any, Value] = {}
        for key, value in pairs:
            known = key if isinstance(key, Tensor) else self.key_in(made, key)
            if known is MISSING:
                return None
            made[known] = value
        return made

    def equals_itself_alone(self, item: Value) -> bool:
        """Whether a value is an object of the program that no method compares with others."""
        if not isinstance(item, Instance) or not isinstance(item.cls, Class):
            return False
        known = self._compared.get(item.cls.key)
        if known is None:
            known = "by value" not in item.cls_flags and self.method_of(item, "__eq__") is MISSING
            self._compared[item.cls.key] = known
        return known

    def new_set(
        self, items: Sequence[Value], *, frozen: bool = False, step: Step | None = None
    ) -> SetRef:
        """Return a new set of known values, made by a step, or of one item after the other."""
        made = Step(None, "set", (list(items),)) if step is None else step
        return SetRef(self.heap.new(hashed(items, made)), frozen)


__all__ = ["Keys"]
