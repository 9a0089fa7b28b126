"""Loops over known items: their iterations one by one, or a Loop where these would be many."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from hagane.frontends.capture.flow.holding import UNKNOWN_ITEMS
from hagane.frontends.capture.flow.looping import Looping
from hagane.frontends.capture.flow.slots import Fixed, Listed, Slot, is_stackable
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import (
    ListRef,
    Many,
    Ref,
    Stream,
    Value,
    is_plain,
)

if TYPE_CHECKING:
    from hagane.frontends.capture.flow.loops import Graph, Trial

T = TypeVar("T")
_FEW = 4  # iterations that may end a loop, as branches in each other
_SHORT = 8  # iterations that are always written one by one, unless they may end the loop
# The cost of iterations one by one, at most; more where a Loop would forget a number or the length
# of a list that the program knows.
_MANY, _MOST = 3_000, 15_000


class Known:
    """Runs loops over known items.

    Args:
        domain: The domain of graphs.
    """

    def __init__(self, domain: Graph):
        self.domain = domain
        self.written_out = False  # whether loops are Loops only where nothing else is possible
        self.spared = False  # whether a loop is a Loop that could have been written out
        self._times = 1  # how often the loops around run this code

    def run(self, node: ast.For, items: list[Value], over: Value) -> None:
        """Run a loop over known items: as a Loop if it is long and its iterations are alike.

        Args:
            node: The loop.
            items: Its items.
            over: The object that has them.
        """
        before = self._times
        self._times *= max(1, len(items))
        try:
            if not self._as_loop(node, items, over):
                self.domain.core.each(node, items, over)
        finally:
            self._times = before

    def _as_loop(
        self, node: ast.For, items: list[Value], over: Value, *, peeled: bool = False
    ) -> bool:
        """Run a loop as a Loop of the graph, if that is possible and worthwhile.

        Args:
            node: The loop.
            items: Its items.
            over: The object that has them.
            peeled: Whether the first iteration was run for itself.
        """
        domain, core = self.domain, self.domain.core
        leaving = any(isinstance(n, ast.Break | ast.Return) for n in ast.walk(node))
        if len(items) <= (_FEW if leaving else _SHORT):
            return False
        middle = len(items) // 2
        turns = [partial(core.item_turn, node, item) for item in items[middle : middle + 2]]
        trial = self._tried(turns[:1])
        if trial is None:  # it may need what the first ones make
            turns = [partial(core.item_turn, node, item) for item in items[:2]]
            trial = self._tried(turns[:1])
        least = _MOST if self.written_out else _MANY
        if domain.emit.training is not None:  # gradients of iterations written out are faster
            least = max(least, 2 * _MANY)
        if trial is not None and not trial.ended and trial.cost * self._times <= least:
            trial = self._tried(turns)  # the first one may set what the next ones need
        if trial is None or (not trial.ended and trial.cost * self._times <= least):
            return False
        cost = trial.cost * self._times
        domain.lists.links.refresh()
        start = core.heap.snapshot()
        many = self._as_many(items)
        if many is None:
            return False
        turn = lambda k: core.item_turn(node, many.item(k))  # noqa: E731
        found = self._quietly(lambda: domain.attempts(node, many.length, turn))
        if found is not None:
            looping, odd, failed = found
            fits = odd is None and not failed and not looping.carried.doubtful
            fits = fits and not self._changes(over, looping)
            needed = trial.ended or cost > _MOST
            if fits and (needed or not self._forgets(node, looping, trial)):
                self.spared |= not needed
                looping.write((), domain.knowledge.path)
                self._keep_last(node, items)
                return True
        core.heap.restore(start)
        differs = found is not None and found[1] is not None
        alone = not isinstance(over, Ref | Stream)
        return differs and alone and not peeled and self._peeled(node, items)

    def _tried(self, turns: Sequence[Callable[[], object]]) -> Trial | None:
        """Run iterations without leaving a trace; None where one fails."""
        return self._quietly(lambda: self.domain.trial(*turns))

    def _quietly(self, run: Callable[[], T]) -> T | None:
        """Return what a function returns; None where the program would be told of an error."""
        core = self.domain.core
        assert core.frame is not None
        turns, exits = len(core.loops), len(core.frame.exits)
        handlers, core.handlers = core.handlers, []  # none of the program's is asked
        attempts, core.attempts = core.attempts, 0
        try:
            return run()
        except CheckError:
            del core.loops[turns:]
            del core.frame.exits[exits:]
            return None
        finally:
            core.handlers, core.attempts = handlers, attempts

    def _peeled(self, node: ast.For, items: list[Value]) -> bool:
        """Run the first iteration, which differs from the others, for itself."""
        core = self.domain.core
        first = partial(core.item_turn, node, items[0])
        trial = self._tried([first])
        if not all(isinstance(item, int) for item in items) or trial is None or trial.ended:
            return False
        core.turn(first, [])
        if not self._as_loop(node, items[1:], None, peeled=True):
            core.each(node, items[1:])
        return True

    def _as_many(self, items: list[Value]) -> Many | None:
        """Return known items by a rule or stacked; None if they are too different."""
        core, lists = self.domain.core, self.domain.lists
        if all(isinstance(item, int) and not isinstance(item, bool) for item in items):
            found = core.many_items(items)
            if found.at is not None:
                return Many(UNKNOWN_ITEMS, found.length, found.at)
        form = lists.form_of(tuple(items))
        return lists.stacked(tuple(items)) if is_stackable(form) else None

    @staticmethod
    def _changes(over: Value, looping: Looping) -> bool:
        """Whether an iteration may change the items of later ones."""
        changed = {key for key, part in looping.carried.slots if part is None}
        return (
            over.key in changed
            if isinstance(over, ListRef)
            else bool(changed and isinstance(over, Ref | Stream))
        )

    @staticmethod
    def _forgets(node: ast.For, looping: Looping, trial: Trial) -> bool:
        """Whether a Loop hands on as data what the program knows without the data."""
        loops = [n for n in ast.walk(node) if isinstance(n, ast.For)]
        names = [n for loop in loops for n in ast.walk(loop.target)]
        targets = {n.id for n in names if isinstance(n, ast.Name)}

        def forgets(key: int, part: Any, slot: Slot) -> bool:
            value = trial.contents[key] if part is None else trial.contents[key].get(part)
            if isinstance(value, tuple) and isinstance(slot, Listed):
                return slot.length is None or all(map(is_plain, value))
            return value is not None and part not in targets and is_plain(value)

        slots = looping.carried.slots.items()
        return any(forgets(*name, slot) for name, slot in slots if not isinstance(slot, Fixed))

    def _keep_last(self, node: ast.For, items: list[Value]) -> None:
        """Bind the loop's name to the last item, where that is the item that it ends with."""
        core = self.domain.core
        inside = [n for statement in node.body for n in ast.walk(statement)]
        name = node.target.id if isinstance(node.target, ast.Name) else ""
        bound = any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
                    for n in inside)  # fmt: skip
        ends = any(isinstance(n, ast.Break) for n in inside)
        if name and not bound and not ends and not core.dead and is_plain(items[-1]):
            core.assign(node.target, items[-1])


__all__ = ["Known"]
