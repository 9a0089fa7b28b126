"""``collections.Counter``: a dictionary of how often each key came."""

from __future__ import annotations

import ast
import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.objects import is_key
from hagane.frontends.python.values.values import (
    MISSING,
    DictRef,
    Many,
    Outside,
    Pairs,
    Value,
    is_plain,
    is_size,
)
from hagane.symbolic import Dim, minimum

COUNTER = "Counter"
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub,
    ast.BitOr: operator.or_, ast.BitAnd: operator.and_,
}  # fmt: skip


class Counters(Core):
    """Makes counters and calls their methods."""

    def _call_Counter(self, value: Value = (), **counts: Value) -> Value:
        made = self.new_dict({}, COUNTER)
        self.counter_method(made, "update", (value,), counts)
        return made

    def counter_method(
        self,
        receiver: DictRef,
        name: str,
        arguments: Sequence[Value],
        keywords: Mapping[str, Value],
    ) -> Value:
        """Call a method that counters have of their own; ``MISSING`` for those of dictionaries."""
        content = self.heap[receiver]
        match name:
            case "update" | "subtract":
                sign = 1 if name == "update" else -1
                for given in (*arguments, self.new_dict(keywords)):
                    if given is not None:
                        self._count(receiver, given, sign)
                return None
            case "most_common":
                wanted = arguments[0] if arguments else keywords.get("n")
                return self._most_common(content, wanted)
            case "total":
                total: Value = 0 if isinstance(content, dict) else self.emit.fresh("count")
                for count in content.values() if isinstance(content, dict) else ():
                    total = self.binary(ast.Add, total, count)
                return total
            case "elements":
                if isinstance(content, dict) and all(isinstance(n, int) for n in content.values()):
                    return self.new_stream([key for key, n in content.items() for _ in range(n)])
                key = content.key if isinstance(content, Pairs) else None
                return self.new_stream(Many(key, self.emit.fresh("count")))
        return MISSING

    def counted(self, kind: type[ast.operator], left: DictRef, right: DictRef) -> Value:
        """Return a sum, difference, union or intersection of counters of known counts."""
        first, second = self.heap[left], self.heap[right]
        operate = _OPERATORS.get(kind)
        known = isinstance(first, dict) and isinstance(second, dict)
        if operate is None or right.kind != COUNTER:
            return MISSING
        if not known or not all(map(is_plain, (*first.values(), *second.values()))):
            return self.lost("an operator on counters whose counts are not known")
        return self.new_dict(dict(operate(Counter(first), Counter(second))), COUNTER)

    def _count(self, receiver: DictRef, given: Value, sign: int) -> None:
        """Count the items of an iterable, or the counts of a mapping, to those at hand."""
        content = self.heap[receiver]
        mapping = self.mapping(given)
        items = self.sequence(given) if mapping is None else [*mapping]
        known = isinstance(items, list) and all(map(is_key, items))
        if isinstance(items, Many) or not known or not isinstance(content, dict):
            self._count_unknown(receiver, items)
            return
        for key in items:
            more = 1 if mapping is None else mapping[key]
            step = more if sign > 0 else self.binary(ast.Sub, 0, more)
            before = content.get(key, 0)
            content[key] = self.binary(ast.Add, before, step)

    def _count_unknown(self, receiver: DictRef, items: Sequence[Value] | Many) -> None:
        content = self.heap[receiver]
        keys = [*content] if isinstance(content, dict) else [content.key]
        keys += [items.element] if isinstance(items, Many) else items
        texts = all(isinstance(key, str | Outside) for key in keys)
        key = self.outside("one of several texts") if texts else self.as_many(tuple(keys))[0]
        self.heap[receiver] = Pairs(self.emit.fresh("times"), self.emit.fresh("different"), key=key)

    def _most_common(self, content: Value, wanted: Value) -> Value:
        if isinstance(content, dict):
            pairs = list(content.items())
            if all(isinstance(count, int) for _, count in pairs):
                pairs.sort(key=lambda pair: -pair[1])
            if wanted is None or isinstance(wanted, int):
                return self.new_list(pairs[:wanted])
            length: Dim = len(pairs)
            pair = self.as_many(tuple(pairs))[0]
        else:
            length, pair = content.length, (content.key, content.element)
        if wanted is not None:
            length = minimum(length, wanted if is_size(wanted) else self.emit.fresh("count"))
        return self.new_list(Many(pair, length))


__all__ = ["COUNTER", "Counters"]
