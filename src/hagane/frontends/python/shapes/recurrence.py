"""How values change from one turn of a loop to the next: constant, by a step, or unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.values import (
    MISSING,
    Choice,
    DictRef,
    ListRef,
    Many,
    Pairs,
    Real,
    Tensor,
    Truth,
    Unknown,
    Value,
    is_plain,
    is_size,
)
from hagane.symbolic import Dim, Expr, definitely_equal, evaluate, symbols_of

# The value at the start of turn k.
Rule: TypeAlias = Callable[[Dim], Value]
_MAX_KINDS = 4  # of values that one name has in turns of a loop


class Recurrence:
    """Guesses rules from one turn, for an interpreter and the number of the turn.

    Args:
        core: The interpreter.
        turn: The name of the turn's number, counted from 0.
        start: The contents of objects before the loop.
    """

    def __init__(self, core: Core, turn: str, start: dict[int, Any]):
        self.core = core
        self.turn = turn
        self.start = start
        self.regular = True  # whether all rules hold from the first turn on
        self.lossy = False  # whether a size follows no rule

    def rule(self, before: Value, after: Value) -> Rule:
        """Return the rule that ``before`` (turn 0) and ``after`` (turn 1) suggest."""
        if before is after or (isinstance(after, Unknown) and after.failed):
            return lambda k: before  # the failure comes again in the reported iteration
        if is_size(before) and is_size(after) and not isinstance(before, bool):
            return self._size(before, after)
        if isinstance(before, Tensor) and isinstance(after, Tensor):
            return self._tensor(before, after)
        if isinstance(before, tuple) and isinstance(after, tuple) and len(before) == len(after):
            rules = [self.rule(a, b) for a, b in zip(before, after, strict=True)]
            return lambda k: tuple(rule(k) for rule in rules)
        if is_plain(before) and is_plain(after) and before == after:
            return lambda k: before
        if isinstance(before, ListRef) and isinstance(after, ListRef):
            old = self.start.get(before.key, MISSING)
            new = self.core.heap.contents.get(after.key, MISSING)
            if isinstance(old, tuple | Many) and isinstance(new, tuple | Many):
                content = self.list_rule(old, new)
                return lambda k: before if k == 0 else self.core.new_list(content(k))
        if isinstance(before, DictRef) and isinstance(after, DictRef):
            items = self._items(before, after)
            if items is not None:
                return lambda k: (
                    before
                    if k == 0
                    else self.core.new_dict({n: rule(k) for n, rule in items.items()}, after.kind)
                )
        if isinstance(before, float | Real) and isinstance(after, float | Real):
            return lambda k: Real()
        if isinstance(before, bool | Truth) and isinstance(after, bool | Truth):
            truth = Truth(self.core.unknown_truth())
            return lambda k: truth
        return self._first_differs(before, after)

    def _items(self, before: DictRef, after: DictRef) -> dict[Any, Rule] | None:
        """Return a rule for each item of a dictionary that is made anew; None without rules."""
        old = self.start.get(before.key, MISSING)
        new = self.core.heap.contents.get(after.key, MISSING)
        if type(old) is not dict or type(new) is not dict or old.keys() != new.keys():
            return None
        return {name: self.rule(old[name], new[name]) for name in old}

    def _first_differs(self, before: Value, after: Value) -> Rule:
        """A value that is set in the first turn: None, then always of one type."""
        self.regular = False

        def rule(k: Dim) -> Value:
            if k == 0:
                return before
            return Choice(self.core.as_term(self.core.truth(self.at_start(k))), before, after)

        return rule

    def at_start(self, k: Dim) -> Value:
        """Return whether turn ``k`` is the first."""
        return self.core.as_truth(self.core.knowledge.equal(k, 0))

    def _size(self, before: Dim, after: Dim) -> Rule:
        step = after - before
        if isinstance(step, Expr) and self.turn in symbols_of(step):
            self.regular, self.lossy = False, True
            unknown = self.core.emit.fresh("turn")
            return lambda k: before if k == 0 else unknown
        return lambda k: before + step * k

    def _tensor(self, before: Tensor, after: Tensor) -> Rule:
        if (
            before.shape is None
            or after.shape is None
            or before.rank != after.rank
            or before.dtype != after.dtype
        ):
            return self._first_differs(before, after)
        if before.shape == after.shape:
            plain = _without_content(self.core, after, after.shape)
            return lambda k: plain
        rules = [self._size(a, b) for a, b in zip(before.shape, after.shape, strict=True)]
        return lambda k: _without_content(self.core, after, tuple(rule(k) for rule in rules))

    def list_rule(self, before: Any, after: Any) -> Rule:
        """Return the rule of a list's content."""
        old = before.length if isinstance(before, Many) else len(before)
        new = after.length if isinstance(after, Many) else len(after)
        if isinstance(before, tuple) and isinstance(after, tuple) and len(before) == len(after):
            rules = [self.rule(a, b) for a, b in zip(before, after, strict=True)]
            return lambda k: tuple(rule(k) for rule in rules)
        length = self._size(old, new)
        element, _ = self.core.as_many(after)
        return lambda k: before if k == 0 else Many(element, length(k))

    def dictionary_rule(self, before: Any, after: Any) -> Rule | None:
        """Return the rule of a dictionary that has items at keys that only the run knows."""
        if not isinstance(after, Pairs) or not isinstance(before, dict | Pairs):
            return None
        self.regular = False
        length = self.core.emit.fresh("keys")
        return lambda k: before if k == 0 else Pairs(after.element, length, key=after.key)

    def agrees(self, rule: Rule, turn: Dim, found: Value) -> bool:
        """Whether ``found``, at the end of turn ``turn - 1``, follows the rule."""
        return self.alike(rule(turn), found)

    def alike(self, expected: Value, found: Value) -> bool:
        """Whether two values have one type, sizes included."""
        if expected is found or (isinstance(found, Unknown) and found.failed):
            return True
        if isinstance(expected, Unknown):
            return True
        if isinstance(found, Choice):
            return self.alike(expected, found.yes) and self.alike(expected, found.no)
        if isinstance(expected, Choice):
            return self.alike(expected.no, found) or self.alike(expected.yes, found)
        if is_size(expected) and is_size(found):
            if isinstance(expected, Expr) and str(expected) in self.core.knowledge.nameless:
                return True
            return definitely_equal(expected, found)
        if isinstance(expected, Tensor) and isinstance(found, Tensor):
            return (
                expected.dtype == found.dtype
                and expected.shape is not None
                and found.shape is not None
                and len(expected.shape) == len(found.shape)
                and all(map(self.alike, expected.shape, found.shape))
            )
        if isinstance(expected, tuple) and isinstance(found, tuple):
            return len(expected) == len(found) and all(map(self.alike, expected, found))
        if isinstance(expected, Many) and isinstance(found, Many):
            return self.alike(expected.length, found.length) and self.alike(
                expected.element, found.element
            )
        if isinstance(expected, ListRef) and isinstance(found, ListRef):
            contents = self.core.heap.contents
            return self.alike(contents.get(expected.key), contents.get(found.key))
        if isinstance(expected, DictRef) and isinstance(found, DictRef):
            contents = self.core.heap.contents
            a, b = contents.get(expected.key), contents.get(found.key)
            return (
                type(a) is dict
                and type(b) is dict
                and a.keys() == b.keys()
                and all(self.alike(a[name], b[name]) for name in a)
            )
        if isinstance(expected, Real):
            return isinstance(found, float | Real)
        if isinstance(expected, Truth):
            return isinstance(found, bool | Truth)
        if is_plain(expected) and is_plain(found):
            return bool(expected == found)
        return False

    def widened(self, before: Value, found: Value) -> Rule:
        """Return a rule that promises no more than both values share."""
        self.regular, self.lossy = False, True
        if is_size(before) and is_size(found):
            unknown = self.core.emit.fresh("turn")
            return lambda k: before if k == 0 else unknown
        if (
            isinstance(before, Tensor)
            and isinstance(found, Tensor)
            and before.shape is not None
            and found.shape is not None
            and before.rank == found.rank
        ):
            shape = tuple(
                a if definitely_equal(a, b) else self.core.emit.fresh("turn")
                for a, b in zip(before.shape, found.shape, strict=True)
            )
            wide = _without_content(self.core, found, shape)
            return lambda k: before if k == 0 else wide
        if isinstance(before, ListRef) and isinstance(found, ListRef):
            rule = self._of_lists(before, found)
            if rule is not None:
                return rule
        several = self._several(before, found)
        if several is not MISSING:
            return lambda k: before if k == 0 else several
        unknown_value = self.core.lost("a value that changes its type from turn to turn of a loop")
        return lambda k: before if k == 0 else unknown_value

    def _several(self, before: Value, found: Value) -> Value:
        """Return a choice of the kinds of values that two have; ``MISSING`` if they are many."""
        kinds: list[Value] = []
        for value in (*_alternatives(before), *_alternatives(found)):
            for place, kind in enumerate(kinds):
                both = self._one_kind(kind, value)
                if both is not MISSING:
                    kinds[place] = both
                    break
            else:
                kinds.append(value)
        plain = (bool, float, str, Real, Truth, Tensor, Instance, type(None))
        if len(kinds) > _MAX_KINDS or not all(isinstance(x, plain) or is_size(x) for x in kinds):
            return MISSING
        made = kinds.pop()
        while kinds:
            made = Choice(self.core.unknown_truth(), kinds.pop(), made)
        return made

    def _one_kind(self, a: Value, b: Value) -> Value:
        """Return what stands for two values of one kind; ``MISSING`` for those of two."""
        if a is b or (is_plain(a) and is_plain(b) and type(a) is type(b) and a == b):
            return a
        if isinstance(a, bool | Truth) and isinstance(b, bool | Truth):
            return Truth(self.core.unknown_truth())
        if isinstance(a, float | Real) and isinstance(b, float | Real):
            return Real()
        if isinstance(a, bool | Truth) or isinstance(b, bool | Truth):
            return MISSING
        if is_size(a) and is_size(b):
            return a if definitely_equal(a, b) else self.core.emit.fresh("turn")
        if isinstance(a, Instance) and isinstance(b, Instance) and a.key == b.key:
            return a
        if isinstance(a, Tensor) and isinstance(b, Tensor) and a.dtype == b.dtype:
            if a.shape is None or b.shape is None or a.rank != b.rank or a.kind != b.kind:
                return MISSING
            shape = tuple(
                x if definitely_equal(x, y) else self.core.emit.fresh("turn")
                for x, y in zip(a.shape, b.shape, strict=True)
            )
            return _without_content(self.core, b, shape)
        return MISSING

    def _of_lists(self, before: ListRef, found: ListRef) -> Rule | None:
        """Return the rule of a list that each turn makes anew, of any length, of like items."""
        contents = [self.start.get(before.key), self.core.heap.contents.get(found.key)]
        elements = [self.core.as_many(c)[0] for c in contents if isinstance(c, tuple | Many)]
        if len(elements) < 2 or MISSING in elements or not self.alike(*elements):
            return None
        length = self.core.emit.fresh("length")
        return lambda k: before if k == 0 else self.core.new_list(Many(elements[1], length))

    def last(self, value: Value, turn: Dim) -> Value:
        """Return a value of the generic turn as it is in turn ``turn``."""
        if isinstance(value, Expr):
            return evaluate(value, {self.turn: turn})
        if isinstance(value, Tensor) and value.shape is not None:
            if not any(self.turn in symbols_of(dim) for dim in value.shape):
                return value
            shape = tuple(evaluate(dim, {self.turn: turn}) for dim in value.shape)
            return _without_content(self.core, value, shape)
        if isinstance(value, tuple):
            return tuple(self.last(item, turn) for item in value)
        return value


def _alternatives(value: Value) -> list[Value]:
    """Return the values that a choice may be."""
    if isinstance(value, Choice):
        return [*_alternatives(value.yes), *_alternatives(value.no)]
    return [value]


def _without_content(core: Core, tensor: Tensor, shape: tuple[Dim, ...]) -> Tensor:
    made = core.emit.new(tensor.dtype, shape, kind=tensor.kind, device=tensor.device)
    made.origin = tensor.origin
    return made


__all__ = ["MISSING", "Recurrence", "Rule"]
