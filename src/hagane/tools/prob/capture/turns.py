"""Loops of a captured function, turn by turn; the number of turns may depend on draws."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from hagane.frontends.python.interpret.access import MAX_UNROLLED
from hagane.frontends.python.interpret.core import Exit
from hagane.frontends.python.values.values import Choice, ListRef, Many, Range, Value
from hagane.symbolic import Dim
from hagane.symbolic.term import Term
from hagane.tools.prob.capture.numbers import Arithmetic

_MAX_TURNS = 10_000
_MAX_ITEMS = 4 * MAX_UNROLLED  # of a comprehension
_LENGTH = "the length of this list depends on draws; keep it, and count what is in it"
_MAX_OPEN_TURNS = 1_000  # of turns that a draw may be the last of
_MAX_MEETINGS = 400


class Turns(Arithmetic):
    """Runs loops."""

    def _do_For(self, node: ast.For) -> None:
        value = self.settle(self.evaluate(node.iter))
        if isinstance(value, Range):
            self._random_range(node, value)
            return
        items = self.items_of(value)
        content = self.heap[value] if isinstance(value, ListRef) else None
        self._turns(node, items)
        if isinstance(value, ListRef) and self.heap[value] is not content:
            self.refuse("a loop over a list that the loop changes")

    def _random_range(self, node: ast.For, bounds: Range) -> None:
        start, stop, step = bounds.start, bounds.stop, bounds.step
        if not isinstance(step, int) or step == 0:
            self.refuse("the step of a range has to be a number that is known before the run")

        def at(turn: int) -> Dim:
            return start + turn * step

        def test(turn: int) -> bool | Term:
            less = self.knowledge.less
            return self.decide(less(at(turn), stop) if step > 0 else less(stop, at(turn)))

        self._repeat(node, test, lambda turn: self._item_turn(node, at(turn)))

    def _do_While(self, node: ast.While) -> None:
        def test(turn: int) -> bool | Term:
            del turn
            return self.decide(self.truth(self.evaluate(node.test)))

        self._repeat(node, test, lambda turn: self.execute(node.body))

    def _repeat(
        self,
        node: ast.For | ast.While,
        test: Callable[[int], bool | Term],
        turn: Callable[[int], None],
    ) -> None:
        """Run turns while ``test`` holds.

        Where one comparison decides and asking it again after the last turn is harmless, the paths
        that stop and those that go on meet after every turn, so that fewer values stay alive. If
        no end comes in sight like that, those that stop wait at the end, and what is known of
        those that go on is kept.
        """
        assert self.frame is not None
        if not _breaks(node.body):
            entry, contents = self.knowledge.path, self.heap.snapshot()
            exits, mark, facts = list(self.frame.exits), self.record.mark(), self.facts
            if self._follow(node, test, turn, _MAX_MEETINGS, meeting=True):
                return
            self.frame.exits[:] = exits
            self.record.back_to(mark)
            self.heap.restore(contents)
            self.knowledge.path = entry
            self.replace_facts(facts)
            self.dead = False
        if not self._follow(node, test, turn, _MAX_OPEN_TURNS, meeting=False):
            self._endless(node)

    def _follow(
        self,
        node: ast.For | ast.While,
        test: Callable[[int], bool | Term],
        turn: Callable[[int], None],
        most: int,
        *,
        meeting: bool,
    ) -> bool:
        """Run turns; say whether the loop ends within the turns that a draw may be the last of."""
        entry = self.knowledge.path
        breaks: list[Exit] = []
        ends: list[Exit] = []
        still_open = 0
        for number in range(_MAX_TURNS):
            drawn = self.record.draws
            condition = test(number)
            if condition is False:
                break
            run = partial(self._turn, partial(turn, number), breaks)
            if condition is True:
                run()
            elif still_open == most:
                return False
            else:
                still_open += 1
                if not meeting:
                    self.fork(condition, lambda: None, lambda: self.leave("end", None, ends))
                    run()
                elif self.record.draws == drawn and self._is_comparison(condition):
                    self.fork(condition, run, lambda: None)
                else:
                    return False
            if self.dead:
                break
        else:
            self._endless(node)
        if ends:
            if not self.dead:
                ends.append(Exit("end", None, self.heap.contents, self.knowledge.path))
            self.merge(ends, entry)
        self._after(node.orelse, breaks, entry)
        return True

    def _is_comparison(self, condition: Term) -> bool:
        if condition.op == "not":
            return self._is_comparison(condition.args[0])
        if condition.op == "var":
            condition = self.facts.definitions.get(condition.data, condition)
        return condition.op in ("lt", "eq") or (
            condition.op == "not" and condition.args[0].op in ("lt", "eq")
        )

    def _endless(self, node: ast.For | ast.While) -> None:
        word = "while" if isinstance(node, ast.While) else "for"
        assert self.frame is not None
        self.collector.nodes[self.frame.key] = node
        self.refuse(
            f"no end of this '{word}' is in sight after {_MAX_OPEN_TURNS:,} turns: the bounds of "
            "the draws do not limit it; bound it, as in 'for _ in range(100)' with a 'break'"
        )

    def _summary(self, node: ast.For | ast.While, *_: Any, **__: Any) -> None:
        self.refuse("a loop over a number of items that is not known")

    def many_items(self, items: list[Value]) -> Many:
        """Return all items as one: not where draws are followed one by one."""
        self.refuse(f"a loop over {len(items):,} items; at most {_MAX_ITEMS:,} are followed")

    def as_many(self, content: Any) -> tuple[Value, Any]:
        """Return all items as one: not where draws are followed one by one."""
        del content
        self.refuse(_LENGTH)

    def many_of(self, left: Any, right: Any) -> Many:
        """Return two lists as one: not where draws are followed one by one."""
        del left, right
        self.refuse(_LENGTH)

    def _content(self, content: Any) -> list[Value] | Many:
        if isinstance(content, Choice):
            self.refuse(_LENGTH)
        return super()._content(content)

    def _kept(self, generator: ast.comprehension) -> bool | None:
        kept = super()._kept(generator)
        if kept is None:
            self.refuse(
                "a filter has to be known before the run; count with sum(x > 0 for x in items)"
            )
        return kept

    def _range_items(self, value: Range) -> list[Value] | Many:
        del value
        self.refuse(
            "a range whose length depends on draws; loop over it with a 'for' statement instead"
        )


def _breaks(body: Sequence[ast.stmt]) -> bool:
    """Whether a loop's body can break out of the loop."""
    queue: list[ast.AST] = list(body)
    while queue:
        current = queue.pop()
        if isinstance(current, ast.Break):
            return True
        if isinstance(current, ast.For | ast.While):
            queue += current.orelse
        elif not isinstance(current, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            queue += ast.iter_child_nodes(current)
    return False
