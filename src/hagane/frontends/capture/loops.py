"""Loops of the program as loops of the graph."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NoReturn

from hagane.frontends.capture.looping import UNKNOWN_ITEMS, Looping
from hagane.frontends.capture.paths import Paths
from hagane.frontends.python.interpret.core import Exit
from hagane.frontends.python.interpret.domain import Step
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import Many, Tensor, Value
from hagane.symbolic import Dim
from hagane.symbolic.term import Term

_MAX_ROUNDS = 8
_MAX_UNROLLED = 64  # iterations of a 'while' that are decided one by one


class Graph(Paths):
    """The domain of graphs: tensors are values that nodes give, paths are branches and loops."""

    def many(self, source: Value, content: Many | tuple[Value, ...]) -> Many:
        """Return items of which only the run knows the number: nothing stands for all of them."""
        if source is None:
            _refuse("a list whose length the data decide is used where its items have to be known")
        assert isinstance(content, Many)
        at, stacked = content.at, content.stacked
        if isinstance(source, Tensor):
            if not source.shape:
                return content
            at, stacked = partial(self.core.tables.tensor_item, self.core, source), source
        return Many(UNKNOWN_ITEMS, content.length, at, stacked)

    def loop(self, node: ast.For | ast.While) -> None:
        """Run a loop: its known iterations one by one, others as a Loop."""
        if isinstance(node, ast.While):
            self._while(node)
            return
        core = self.core
        items = core.sequence(core.evaluate(node.iter))
        if isinstance(items, list):
            core.each(node, items)
        else:
            self._loop(node, items.length, lambda k: core.item_turn(node, items.item(k)), ())

    def gather(self, node: ast.comprehension, items: Many, step: Step, *, plain: bool) -> Many:
        """Return what a comprehension makes of items that data decide the number of."""
        if not plain:
            _refuse(
                "a comprehension with conditions or several 'for's over items whose number the "
                "data decide; write it as a loop"
            )
        heap = self.core.heap
        made = self.core.new_list()

        def turn(k: Dim) -> None:
            _, inner = step(k)
            assert isinstance(inner, list)
            heap[made] = (*heap[made], *inner)

        self._loop(ast.For(node.target, node.iter, [], []), items.length, turn, ())
        content = heap[made]
        assert isinstance(content, Many)
        return content

    def _while(self, node: ast.While) -> None:
        core = self.core
        entry, breaks = self.knowledge.path, list[Exit]()
        for _ in range(_MAX_UNROLLED):
            condition = core.decide(core.condition(node.test))
            if condition is False:
                core.after(node.orelse, breaks, entry)
                return
            if isinstance(condition, Term) or self._may_end(node):
                break
            core.turn(lambda: core.execute(node.body), breaks)
            if core.dead:
                core.after((), breaks, entry)
                return
        self._loop(node, None, lambda k: core.execute(node.body), breaks)

    def _may_end(self, node: ast.While) -> bool:
        """Whether data decide if an iteration is the last one."""
        core = self.core
        assert core.frame is not None
        mark, path = len(core.frame.exits), self.knowledge.path
        start = core.heap.snapshot()
        breaks: list[Exit] = []
        with self._scratch():
            core.turn(lambda: core.execute(node.body), breaks)
            ended = not core.dead and (bool(breaks) or len(core.frame.exits) > mark)
        del core.frame.exits[mark:]
        core.heap.restore(start)
        self.knowledge.path, core.dead = path, False
        return ended

    @contextmanager
    def _scratch(self) -> Iterator[None]:
        """Interpret without leaving a trace in the graph or the report."""
        self.collector.muted += 1
        path, dead = self.knowledge.path, self.core.dead
        kept = self.emit.marked()
        scope = self.emit.scratch_scope()
        self.knowledge.path = path.within(scope)
        try:
            yield
        finally:
            self.emit.back_to(kept)
            self.knowledge.path, self.core.dead = path, dead
            self.collector.muted -= 1

    def _loop(
        self,
        node: ast.For | ast.While,
        length: Dim | None,
        turn: Callable[[Dim], None],
        outer: Sequence[Exit],
        *,
        peeled: bool = False,
    ) -> None:
        """Run a loop as one of the graph.

        Iterations are tried until what they hand on is known, then one is written. A loop whose
        first iteration differs (a state that is None before it) has that one run for itself.
        """
        entry = self.knowledge.path
        looping = Looping(self, node, length, turn)
        for _ in range(_MAX_ROUNDS):
            with self._scratch():
                odd, more = looping.attempt()
            looping.rewind()
            if odd is not None and not peeled and length is not None:
                self._first_apart(node, length, turn, outer)
                return
            if odd is not None:
                self._refuse_change(*odd)
            if not more:
                break
        else:
            _refuse("the types of values keep changing from iteration to iteration")
        self.knowledge.path = entry
        looping.write(outer)

    def _first_apart(
        self,
        node: ast.For | ast.While,
        length: Dim,
        turn: Callable[[Dim], None],
        outer: Sequence[Exit],
    ) -> None:
        def others(breaks: list[Exit]) -> None:
            self._loop(node, length - 1, lambda k: turn(k + 1), breaks, peeled=True)

        self.core.peel(node, length, turn, outer, others)

    def _refuse_change(self, part: Any, before: Value, after: Value) -> NoReturn:
        name = f"'{part}'" if isinstance(part, str) else "a list or object"
        _refuse(
            f"{name} changes from {self.core.show(before)} to {self.core.show(after)} in a loop "
            "whose number of iterations the data decide; give it one type before the loop"
        )


def _refuse(message: str) -> NoReturn:
    raise CheckError("capture", message)


__all__ = ["Graph"]
