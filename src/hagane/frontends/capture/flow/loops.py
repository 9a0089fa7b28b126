"""Loops of the program as loops of the graph."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NoReturn

from hagane.frontends.capture.flow.builtins import Calling
from hagane.frontends.capture.flow.carried import Odd
from hagane.frontends.capture.flow.holding import UNKNOWN_ITEMS, refuse_items
from hagane.frontends.capture.flow.known import Known
from hagane.frontends.capture.flow.looping import Looping
from hagane.frontends.capture.flow.slots import LONG, Rows, has_objects, is_stackable, number_kind
from hagane.frontends.python.interpret.core import Exit
from hagane.frontends.python.interpret.domain import Step, Visit
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.sizes import Size
from hagane.frontends.python.values.values import (
    Choice,
    DictRef,
    Endless,
    ListRef,
    Many,
    Stream,
    Tensor,
    Unknown,
    Value,
    alternatives,
)
from hagane.symbolic import Dim
from hagane.symbolic.path import PathCondition
from hagane.symbolic.term import TRUE, Term

_MAX_ROUNDS = 8
_BRANCH = 50  # values that cost as much to make as a branch
_MAX_UNROLLED = 64  # iterations of a 'while' that are decided one by one


@dataclass(frozen=True, slots=True)
class Trial:
    """An iteration that was run without leaving a trace.

    Attributes:
        ended: Whether data decide if it is the last one.
        cost: The number of values that it made; a branch counts for many.
        contents: The contents behind it.
    """

    ended: bool
    cost: int
    contents: dict[int, Any]


class Graph(Calling):
    """The domain of graphs: tensors are values that nodes give, paths are branches and loops."""

    @cached_property
    def known(self) -> Known:
        """Loops over known items."""
        return Known(self)

    def many(self, source: Value, content: Many | tuple[Value, ...]) -> Many:
        """Return items of which only the run knows the number: nothing stands for all of them."""
        if source is None:
            _refuse("a list whose length the data decide is used where its items have to be known")
        assert isinstance(content, Many)
        at, stacked = content.at, content.stacked
        if isinstance(source, Tensor):
            if not source.shape:
                return content
            kind = number_kind(content.element)
            if kind:
                return self.lists.numbers(kind, source)
            at, stacked = partial(self.core.tables.tensor_item, self.core, source), source
        return Many(UNKNOWN_ITEMS, content.length, at, stacked)

    def loop(self, node: ast.For | ast.While) -> None:
        """Run a loop: its known iterations one by one, others as a Loop."""
        if isinstance(node, ast.While):
            self._while(node)
            return
        core = self.core
        over = core.read_once(core.settle(core.parted(core.iterated(node.iter))))
        if isinstance(over, Choice) and all(isinstance(v, DictRef) for v in alternatives(over)):
            core.either(over, partial(self._for, node))
        elif isinstance(over, Stream):
            core.heap.late.looped.add(over.key)
            self._for(node, over)
            core.heap.late.looped.discard(over.key)
        else:
            self._for(node, over)

    def _for(self, node: ast.For, over: Value) -> None:
        """Run a loop over the items of an object."""
        core = self.core
        before = core.heap[over] if isinstance(over, ListRef) else None
        items = core.sequence(over)
        if isinstance(items, list):
            self.known.run(node, items, over)
        else:
            replaced = self.lists.links.replaced
            times = replaced[over.key] if isinstance(over, ListRef) else 0
            length = None if isinstance(items, Endless) else items.length
            with self._named(node, over) as now:
                self._loop(
                    node,
                    length,
                    lambda k: core.item_turn(node, self._now(now(), items).item(k)),
                    (),
                )
            core.leave_open(node, over)
            if (
                isinstance(over, ListRef)
                and isinstance(items, Rows)
                and times == replaced[over.key]
            ):
                return  # its items alone were changed
        if isinstance(over, ListRef) and not core.dead:
            self._refuse_changed(before, core.heap[over])

    @contextmanager
    def _named(self, node: ast.For, over: Value) -> Iterator[Callable[[], Value]]:
        """Give a tensor whose rows a loop takes a name by which iterations hand on writes into it.

        Yields a function that returns it as it is now.
        """
        frame, name = self.core.frame, f"<rows of line {node.lineno}>"
        assert frame is not None
        if not isinstance(over, Tensor):
            yield lambda: over
            return
        self.core.heap[frame.key][name] = over
        try:
            yield lambda: self.core.heap[frame.key].get(name, over)
        finally:
            self.core.heap[frame.key].pop(name, None)

    def _now(self, over: Value, items: Many) -> Many:
        """Return the items of a list as they are now, which an iteration may have changed."""
        if isinstance(over, Tensor):
            found = self.core.sequence(over)
            return found if isinstance(found, Many) else items
        if isinstance(over, ListRef) and isinstance(items, Rows) and items.family:
            content = self.core.heap[over]
            return content if isinstance(content, Rows) else items
        return items

    @staticmethod
    def _refuse_changed(before: Value, after: Value) -> None:
        """Refuse lists that grow or shrink while a loop runs over them."""
        lengths = [len(c) if isinstance(c, tuple) else c for c in (before, after)]
        if before is not after and lengths[0] != lengths[1]:
            _refuse("a loop runs over a list that it changes; run over a copy, or use while")

    def gather(
        self,
        node: ast.comprehension,
        items: Many | list[Value],
        step: Step,
        visit: Visit,
        *,
        plain: bool,
    ) -> Many | list[Value]:
        """Return the result of a comprehension over items of which data decide the number."""
        del step, plain
        heap = self.core.heap
        made = self.core.new_list()

        def give(inner: Many | list[Value]) -> None:
            more = tuple(inner) if isinstance(inner, list) else inner
            heap[made] = self.lists.chained(heap[made], more)

        if isinstance(items, list):
            for item in self.core.in_turn(items):
                visit(item, give)
        else:
            many = items
            loop = ast.For(node.target, node.iter, [], [])
            self._loop(loop, many.length, lambda k: visit(many.item(k), give), ())
        content = heap[made]
        heap.drop(made.key)  # the items are those of one list, the comprehension's
        return list(content) if isinstance(content, tuple) else content

    def _while(self, node: ast.While) -> None:
        core = self.core
        entry, breaks = self.knowledge.path, list[Exit]()
        for _ in range(_MAX_UNROLLED):
            condition = core.decide(core.condition(node.test))
            if condition is False:
                core.after(node.orelse, breaks, entry)
                return
            if isinstance(condition, Term) or self.trial(lambda: core.execute(node.body)).ended:
                break
            core.turn(lambda: core.execute(node.body), breaks)
            if core.dead:
                core.after((), breaks, entry)
                return
        goes = core.as_term(condition)
        self._loop(node, None, lambda k: core.execute(node.body), breaks, around=entry, goes=goes)

    def trial(self, *turns: Callable[[], object]) -> Trial:
        """Run iterations without leaving a trace; the cost is that of the last one.

        Raises:
            CheckError: One of them fails, where the program or a library is asked for the reason.
        """
        core = self.core
        assert core.frame is not None
        mark, path = len(core.frame.exits), self.knowledge.path
        self.lists.links.refresh()
        start, before = core.heap.snapshot(), 0
        breaks: list[Exit] = []
        try:
            with self._scratch():
                for turn in turns:
                    before = self._cost()
                    if not core.dead:
                        core.turn(turn, breaks)
                ended = not core.dead and (bool(breaks) or len(core.frame.exits) > mark)
                return Trial(ended, self._cost() - before, core.heap.snapshot())
        finally:
            del core.frame.exits[mark:]
            core.heap.restore(start)
            self.knowledge.path, core.dead = path, False

    def _cost(self) -> int:
        return self.emit.made_so_far() + _BRANCH * self.forks

    @contextmanager
    def _scratch(self) -> Iterator[None]:
        """Interpret without leaving a trace in the graph or the report."""
        self.collector.muted += 1
        met = self.collector.raised, self.collector.doubted
        path, dead = self.knowledge.path, self.core.dead
        kept, mark = self.emit.marked(), self.core.heap.mark()
        scope = self.emit.scratch_scope()
        self.knowledge.path = path.within(scope)
        try:
            yield
        finally:
            self.emit.back_to(kept)
            self.lists.links.forget(mark)
            self.knowledge.path, self.core.dead = path, dead
            self.collector.muted -= 1
            self.collector.raised, self.collector.doubted = met

    def _loop(
        self,
        node: ast.For | ast.While,
        length: Dim | None,
        turn: Callable[[Dim], None],
        outer: Sequence[Exit],
        *,
        peeled: bool = False,
        around: PathCondition | None = None,
        goes: Term | None = None,
    ) -> None:
        """Run a loop as one of the graph, and go on after it together with earlier breaks.

        Iterations are tried until the types handed on are known, then one is written. A loop whose
        first iteration differs (a state that is None before it) has that one run for itself.

        Args:
            node: The loop.
            length: The number of iterations; None where only its condition says it.
            turn: Runs the body, given the number of the iteration.
            outer: Breaks of iterations that ran before.
            peeled: Whether the first iteration was run for itself.
            around: The path in which those breaks lie; that of the loop if None.
            goes: The condition of a while loop's head before it, which has been asked: to ask may
                change things.
        """
        entry = self.knowledge.path
        found = self.attempts(node, length, turn, mixing=peeled, goes=goes)
        if found is None:
            _refuse("the types of values keep changing from iteration to iteration")
        looping, odd, _ = found
        if odd is not None and not peeled:
            self._first_apart(node, length, turn, outer, goes)
            return
        if odd is not None:
            self._refuse_change(*odd)
        self.knowledge.path = entry
        looping.write(outer, entry if around is None else around)

    def attempts(
        self,
        node: ast.For | ast.While,
        length: Dim | None,
        turn: Callable[[Dim], None],
        *,
        mixing: bool = False,
        goes: Term | None = None,
    ) -> tuple[Looping, Odd | None, bool] | None:
        """Try iterations until the types handed on are known.

        Lists that iterations change at places which the data decide are stacked.

        Args:
            node: The loop.
            length: The number of iterations; None where only its condition says it.
            turn: Runs the body, given the number of the iteration.
            mixing: Whether a number may be Python's or a scalar of NumPy, as the data decide.
            goes: As for :meth:`_loop`.

        Returns:
            The loop, values that no state holds, and whether the last attempt met an error; None
            if types keep changing.
        """
        looping = Looping(self, node, length, turn, mixing=mixing, goes=goes)
        for _ in range(_MAX_ROUNDS):
            before, self.lists.searched = self.lists.searched, set()
            try:
                odd, more, failed = self._attempted(looping)
                tables = self._tables(looping, self.lists.searched)
            finally:
                self.lists.searched |= before
            loose = looping.carried.loose if odd is not None or failed else set[int]()
            if self._stack({*loose, *tables}):
                looping = Looping(self, node, length, turn, mixing=mixing, goes=goes)
                continue
            if odd is None and failed and not more and looping.carried.doubtful:
                odd = next(iter(looping.carried.doubtful.values()))
            if odd is not None or not more:
                return looping, odd, failed
        return None

    def _tables(self, looping: Looping, searched: set[int]) -> set[int]:
        """Return lists of many lists of which an iteration has taken one that the data decide.

        As single lists, each would be a state, and a write into one of them a write into each.
        """
        start, form_of = looping.carried.start, self.lists.form_of
        long = {k for k in searched if type(start.get(k)) in (tuple, Size) and len(start[k]) > LONG}
        return {key for key in long if has_objects(form_of(start[key]))}

    def _stack(self, loose: Iterable[int]) -> bool:
        """Stack the items of lists that a loop changes; return whether there were any."""
        heap = self.core.heap
        found = False
        for key in loose:
            content = heap[key]
            if isinstance(content, Many) or is_stackable(self.lists.form_of(content)):
                heap[key] = self.lists.stacked(content)
                found = True
        return found

    def _attempted(self, looping: Looping) -> tuple[Odd | None, bool, bool]:
        """Return the findings of an attempt, and whether it met an error or a doubtful value."""
        before = self.collector.raised + self.collector.doubted
        with self._scratch():
            self.core.attempts += 1
            try:
                odd, more = looping.attempt()
            finally:
                self.core.attempts -= 1
                looping.rewind()
            failed = self.collector.raised + self.collector.doubted > before
        return odd, more, failed

    def _first_apart(
        self,
        node: ast.For | ast.While,
        length: Dim | None,
        turn: Callable[[Dim], None],
        outer: Sequence[Exit],
        goes: Term | None,
    ) -> None:
        begun: list[PathCondition] = []  # the path before the first iteration

        def first(k: Dim) -> None:
            begun.append(self.knowledge.path)
            turn(k)

        def others(breaks: list[Exit]) -> None:
            left = None if length is None else length - 1
            more = None
            if isinstance(node, ast.While):
                more = core.as_term(core.condition(node.test))
            self._loop(
                node, left, lambda k: turn(k + 1), breaks, peeled=True, around=begun[0], goes=more
            )

        core = self.core
        if length is not None:
            core.peel(node, length, first, outer, others)
            return
        some: Value = True if goes is None or goes is TRUE else goes
        entry = self.knowledge.path

        def run() -> None:
            breaks = list(outer)
            core.turn(lambda: first(0), breaks)
            if core.dead:
                core.after((), breaks, entry)
                return
            others(breaks)

        if isinstance(some, Term) and isinstance(node, ast.While):
            end = lambda: core.after(node.orelse, list(outer), entry)  # noqa: E731
            core.fork(some, run, end, self.collector.text(node.test))
        else:
            run()

    def _refuse_change(self, part: Any, before: Value, after: Value) -> NoReturn:
        if isinstance(before, tuple | Many) and isinstance(after, tuple | Many) and part is None:
            shown = [self.core.show(i) for c in (before, after) if isinstance(c, tuple) for i in c]
            raise refuse_items(" and ".join(dict.fromkeys(shown)) or "items of several forms")
        name = f"'{part}'" if isinstance(part, str) else "a list or object"
        if isinstance(after, Unknown) and (after.failed or not after.told):
            _refuse(f"{name} in a loop whose number of iterations the data decide: {after.reason}")
        _refuse(
            f"{name} changes from {self.core.show(before)} to {self.core.show(after)} in a loop "
            "whose number of iterations the data decide; give it one type before the loop"
        )


def _refuse(message: str) -> NoReturn:
    raise CheckError("capture", message)


__all__ = ["Graph"]
