"""Orders of lists: sorted items, and items at places that only the run knows."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from hagane.frontends.python.interpret.arithmetic import apply_plain
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import (
    Tensor,
    Value,
    is_plain,
)


class Ordering(Core):
    """Items in another order."""

    def any_of(self, items: Sequence[Value]) -> Value:
        """Return the item at a place that only the run knows."""
        found = items[0]
        for item in items[1:]:
            found = self.join(self.unknown_truth(), found, item)
        return found

    def one_less(self, items: Sequence[Value]) -> tuple[Value, ...]:
        """Return items of which one is gone, which only the run knows."""
        pairs = itertools.pairwise(items)
        return tuple(self.join(self.unknown_truth(), one, after) for one, after in pairs)

    def sorted_items(self, items: list[Value], keywords: Mapping[str, Value]) -> list[Value]:
        """Return items sorted; items that cannot be compared stay in their order.

        Tensors of different types then may each lie at every place.
        """
        keys = list(items)
        if keywords.get("key") is not None:
            keys = [self.call(keywords["key"], [item], {}) for item in items]
        if not all(map(is_plain, keys)):
            types = {(one.dtype, one.shape) for one in items if isinstance(one, Tensor)}
            if len(types) > 1 and not self.emit.builds:
                return [self.any_of(items)] * len(items)
            return items
        order = apply_plain(
            lambda: sorted(
                range(len(items)), key=keys.__getitem__, reverse=bool(keywords.get("reverse"))
            )
        )
        return [items[place] for place in order]


__all__ = ["Ordering"]
