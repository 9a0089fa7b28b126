"""Loops of a captured function, turn by turn; the number of turns may depend on draws."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import partial
from typing import NoReturn

from hagane.frontends.python.interpret.core import Exit
from hagane.frontends.python.interpret.domain import Step, Visit
from hagane.frontends.python.interpret.reading.iterating import MAX_UNROLLED
from hagane.frontends.python.values.values import (
    ListRef,
    Many,
    Range,
    Value,
)
from hagane.symbolic import Dim
from hagane.symbolic.term import Term
from hagane.tools.prob.capture.numbers import Arithmetic
from hagane.tools.prob.capture.refusal import LENGTH

_MAX_TURNS = 10_000
_MAX_ITEMS = 4 * MAX_UNROLLED  # of a comprehension
_MAX_OPEN_TURNS = 128  # of turns that a draw may be the last of
_MAX_MEETINGS = 400
_MAX_STEPS = 2_500  # of the turns of a loop: runs of the function are followed sooner
_MAX_DRAWING = 64  # of turns of a loop that its condition never ends, each with a draw


class Turns(Arithmetic):
    """Runs loops."""

    def loop(self, node: ast.For | ast.While) -> None:
        """Run a loop."""
        if isinstance(node, ast.While):
            self._while(node)
        else:
            self._for(node)

    def _for(self, node: ast.For) -> None:
        value = self.core.settle(self.core.evaluate(node.iter))
        if isinstance(value, Range):
            self._random_range(node, value)
            return
        items = self.items_of(value)
        self.core.each(node, items, value)
        after = self.core.heap[value] if isinstance(value, ListRef) else None
        if isinstance(value, ListRef) and not (
            isinstance(after, tuple) and len(after) == len(items)
        ):
            self.refuse("a loop over a list that the loop changes")

    def _random_range(self, node: ast.For, bounds: Range) -> None:
        start, stop, step = bounds.start, bounds.stop, bounds.step
        if not isinstance(step, int) or step == 0:
            self.refuse("the step of a range has to be a number that is known before the run")

        def at(turn: int) -> Dim:
            return start + turn * step

        def test(turn: int) -> bool | Term:
            less = self.knowledge.less
            return self.core.decide(less(at(turn), stop) if step > 0 else less(stop, at(turn)))

        self._repeat(node, test, lambda turn: self.core.item_turn(node, at(turn)))

    def _while(self, node: ast.While) -> None:
        def test(turn: int) -> bool | Term:
            del turn
            return self.core.decide(self.core.condition(node.test))

        self._repeat(node, test, lambda turn: self.core.execute(node.body))

    def _repeat(
        self,
        node: ast.For | ast.While,
        test: Callable[[int], bool | Term],
        turn: Callable[[int], None],
    ) -> None:
        """Run turns while ``test`` holds.

        Where one comparison decides and asking it again after the last turn is harmless, the paths
        that stop and runs that go on meet after every turn, so that fewer values stay alive. If
        no end comes in sight like that, runs that stop wait at the end, and the facts of
        runs that go on are kept.
        """
        assert self.core.frame is not None
        if not _breaks(node.body):
            entry, contents = self.knowledge.path, self.core.heap.snapshot()
            exits, mark, facts = list(self.core.frame.exits), self.record.mark(), self.facts
            if self._follow(node, test, turn, _MAX_MEETINGS, meeting=True) is None:
                return
            self.core.frame.exits[:] = exits
            self.record.back_to(mark)
            self.core.heap.restore(contents)
            self.knowledge.path = entry
            self.replace_facts(facts)
            self.core.dead = False
        turned = self._follow(node, test, turn, _MAX_OPEN_TURNS, meeting=False)
        if turned is not None:
            self._endless(node, turned)

    def _follow(
        self,
        node: ast.For | ast.While,
        test: Callable[[int], bool | Term],
        turn: Callable[[int], None],
        most: int,
        *,
        meeting: bool,
    ) -> int | None:
        """Run turns; return how many a draw may be the last of if no end is in sight by then."""
        entry = self.knowledge.path
        breaks: list[Exit] = []
        ends: list[Exit] = []
        still_open = 0
        before = self.record.mark()
        for number in range(_MAX_TURNS):
            drawn = self.record.draws
            condition = test(number)
            if condition is False:
                break
            run = partial(self.core.turn, partial(turn, number), breaks)
            if condition is True:
                run()
                # Draws decide how often "while True" turns, by a way out of its body.
                still_open += self.record.draws != drawn
                if still_open > min(most, _MAX_DRAWING):
                    return still_open - 1
            elif still_open == most or self.record.mark() - before > _MAX_STEPS:
                return still_open
            else:
                still_open += 1
                if not meeting:
                    leave = partial(self.leave, "end", None, ends)
                    self.core.fork(condition, lambda: None, leave)
                    run()
                elif self.record.draws == drawn and self._is_comparison(condition):
                    self.core.fork(condition, run, lambda: None)
                else:
                    return still_open
            if self.core.dead:
                break
        else:
            self._endless(node, _MAX_TURNS)
        if ends:
            if not self.core.dead:
                ends.append(Exit("end", None, self.core.heap.contents, self.knowledge.path))
            self.core.merge(ends, entry)
        self.core.after(node.orelse, breaks, entry)
        return None

    def _is_comparison(self, condition: Term) -> bool:
        if condition.op == "not":
            return self._is_comparison(condition.args[0])
        if condition.op == "var":
            condition = self.facts.definitions.get(condition.data, condition)
        return condition.op in ("lt", "eq") or (
            condition.op == "not" and condition.args[0].op in ("lt", "eq")
        )

    def _endless(self, node: ast.For | ast.While, turns: int) -> None:
        word = "while" if isinstance(node, ast.While) else "for"
        assert self.core.frame is not None
        self.collector.nodes[self.core.frame.key] = node
        self.refuse(
            f"no end of this '{word}' is in sight after {turns:,} turns: the bounds of "
            "the draws do not limit it; bound it, as in 'for _ in range(100)' with a 'break', or "
            "write it as a recursive function in a .pml file, which may go on for ever"
        )

    def gather(
        self,
        node: ast.comprehension,
        items: Many | list[Value],
        step: Step,
        visit: Visit,
        *,
        plain: bool,
    ) -> Many:
        """Refuse a comprehension over more items than are followed."""
        del node, step, visit, plain
        self._refuse_count(len(items) if isinstance(items, list) else items.length)

    def many(self, source: Value, content: Many | tuple[Value, ...]) -> Many:
        """Refuse items of which one would stand for all: they are followed one by one."""
        if source is not None:
            self.refuse(
                "a range whose length depends on draws; loop over it with a 'for' statement instead"
            )
        self._refuse_count(len(content) if isinstance(content, tuple) else content.length)

    def _refuse_count(self, count: Dim) -> NoReturn:
        if isinstance(count, int) and count > _MAX_ITEMS:
            self.refuse(f"a loop over {count:,} items; at most {_MAX_ITEMS:,} are followed")
        self.refuse(LENGTH)


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
