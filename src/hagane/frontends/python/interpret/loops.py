"""Loops: how one iteration runs, and its continuation; their domain says how often they run."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from hagane.frontends.python.interpret.core import Core, Exit
from hagane.frontends.python.values.memory import STALE, WRITTEN
from hagane.frontends.python.values.values import (
    MISSING,
    Many,
    Stream,
    Value,
)
from hagane.symbolic import Dim
from hagane.symbolic.path import PathCondition
from hagane.symbolic.term import Term


class Loops(Core):
    """Runs iterations of loops."""

    def _do_Break(self, node: ast.Break) -> None:
        self.leave("break", None, self.loops[-1])

    def _do_Continue(self, node: ast.Continue) -> None:
        self.leave("continue", None, self.loops[-1])

    def _do_For(self, node: ast.For) -> None:
        if not self.follow_generator(node):
            self.domain.loop(node)

    def _do_While(self, node: ast.While) -> None:
        self.domain.loop(node)

    # Lists of which one value stands for all items.

    def many_items(self, items: list[Value]) -> Many:
        """Return known items as a content of which one value stands for all."""
        if items and all(isinstance(i, int) for i in items) and len(items) > 1:
            first, step = items[0], items[1] - items[0]
            if items == list(range(first, first + step * len(items), step or 1)):
                return Many(first, len(items), lambda k: first + k * step)
        element, length = self.as_many(tuple(items))
        return Many(element, length)

    def as_many(self, content: Any) -> tuple[Value, Any]:
        """Return one value that stands for all of a list's content, and how many there are."""
        found = self.domain.many(None, content)
        return found.element, found.length

    def many_of(self, left: Any, right: Any) -> Many:
        """Return the contents of two lists behind each other, with one value for all."""
        a, first = self.as_many(left)
        b, second = self.as_many(right)
        element = (
            b if a is MISSING else a if b is MISSING else self.join(self.unknown_truth(), a, b)
        )
        return Many(element, first + second)

    # Iterations.

    def each(self, node: ast.For, items: Sequence[Value], over: Value = None) -> None:
        """Run a loop over the known items of an object."""
        entry = self.knowledge.path
        breaks: list[Exit] = []
        start = self.steps
        for place, item in enumerate(self.in_turn(items, over)):
            if self.dead:
                break
            if self.domain.rest(node, items, place, self.steps - start, breaks):
                self.leave_open(node, over)
                return
            self.turn(partial(self.item_turn, node, item), breaks)
            if self.dead and len(breaks) == 1 and isinstance(over, Stream):
                # All runs leave here, and the iterator keeps what the loop has not taken.
                breaks[0].contents[over.key] = tuple(items[place + 1 :])
            elif breaks:
                self.leave_open(node, over)
        self.after(node.orelse, breaks, entry)

    def leave_open(self, node: ast.For, over: Value) -> None:
        """Note that the data decide how many items a loop has left in an iterator."""
        breaks = any(isinstance(part, ast.Break) for part in ast.walk(node))
        if breaks and isinstance(over, Stream) and self.emit.literal:
            self.heap.late.left.add(over.key)

    def item_turn(self, node: ast.For, item: Value) -> None:
        """Run the body of a loop for one item."""
        self.assign(node.target, item)
        self.execute(node.body)

    def turn(self, run: Callable[[], Any], breaks: list[Exit]) -> None:
        """Run one iteration; it is continued from its end and its ``continue``s."""
        entry = self.knowledge.path
        exits: list[Exit] = []
        self.loops.append(exits)
        run()
        self.loops.pop()
        breaks += [found for found in exits if found.kind == "break"]
        alive = [found for found in exits if found.kind == "continue"]
        if alive:
            if not self.dead:
                alive.append(self.exit("continue"))
            self.merge(alive, entry)

    def after(self, orelse: Sequence[ast.stmt], breaks: list[Exit], entry: PathCondition) -> None:
        """Run the ``else`` of a loop, and go on with it and with the paths that broke out."""
        if not self.dead:
            self.execute(orelse)
        if breaks:
            alive = list(breaks)
            if not self.dead:
                alive.append(self.exit("break"))
            self.merge(alive, entry)

    def peel(
        self,
        node: ast.For | ast.While,
        length: Dim,
        turn: Callable[[Dim], None],
        outer: Sequence[Exit],
        others: Callable[[list[Exit]], None],
    ) -> None:
        """Run the first iteration, if there is one, then the others, given its breaks."""
        entry = self.knowledge.path

        def run() -> None:
            breaks = list(outer)
            self.turn(lambda: turn(0), breaks)
            if self.dead:
                self.after((), breaks, entry)
                return
            others(breaks)

        some = self.decide(self.knowledge.less(0, length))
        if some is True:
            run()
        elif isinstance(some, Term):
            self.fork(
                some, run, lambda: self.after(node.orelse, list(outer), entry), f"{length} > 0"
            )

    def new_name(self, stem: str) -> str:
        """Return a name for a size that is not taken."""
        taken = self.knowledge.lowest
        name, number = stem, 1
        while name in taken or name in self.knowledge.sample:
            number += 1
            name = f"{stem}{number}"
        return name


def changes(start: dict[int, Any], after: dict[int, Any]) -> list[tuple[int, Any, Any, Any]]:
    """Return (object, name or None, before, after) of an iteration's changes in older objects."""
    found: list[tuple[int, Any, Any, Any]] = []
    for key, before in start.items():
        content = after.get(key, before)
        if content is before or key in (WRITTEN, STALE):
            continue
        if type(before) is dict and type(content) is dict:
            found += [
                (key, name, before[name], value)
                for name, value in content.items()
                if name in before and value is not before[name]
            ]
        else:
            found.append((key, None, before, content))
    return found
