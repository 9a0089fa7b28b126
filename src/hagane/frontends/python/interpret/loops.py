"""Loops and comprehensions: turn by turn where the turns are few, else summarised."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from hagane.frontends.python.interpret.access import MAX_UNROLLED
from hagane.frontends.python.interpret.core import Core, Exit
from hagane.frontends.python.interpret.recurrence import Recurrence, Rule
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.heap import as_many
from hagane.frontends.python.values.values import (
    MISSING,
    Choice,
    Many,
    Tensor,
    Unknown,
    Value,
)
from hagane.symbolic import Dim, symbol
from hagane.symbolic.logic import negate
from hagane.symbolic.path import PathCondition
from hagane.symbolic.term import Term

_MAX_TURNS = 1024  # of a loop whose turns are decided one by one
_MAX_ROUNDS = 4


class Loops(Core):
    """Runs loops."""

    def _do_Break(self, node: ast.Break) -> None:
        self.leave("break", None, self.loops[-1])

    def _do_Continue(self, node: ast.Continue) -> None:
        self.leave("continue", None, self.loops[-1])

    def _do_For(self, node: ast.For) -> None:
        items = self.sequence(self.evaluate(node.iter))
        if isinstance(items, list) and len(items) > MAX_UNROLLED and not _steers(node.body):
            items = self.many_items(items)
        if isinstance(items, list):
            self._turns(node, items)
        else:
            self._summary(
                node,
                items.length,
                lambda k: self._for_turn(node, items, k),
            )

    def _for_turn(self, node: ast.For, items: Many, k: Dim) -> None:
        self._item_turn(node, items.item(k))

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
        term = self.unknown_truth()
        return as_many(content, lambda a, b: self.join(term, a, b))

    def many_of(self, left: Any, right: Any) -> Many:
        """Return the contents of two lists behind each other, with one value for all."""
        a, first = self.as_many(left)
        b, second = self.as_many(right)
        element = (
            b if a is MISSING else a if b is MISSING else self.join(self.unknown_truth(), a, b)
        )
        return Many(element, first + second)

    # Turn by turn.

    def _turns(self, node: ast.For, items: Sequence[Value]) -> None:
        entry = self.knowledge.path
        breaks: list[Exit] = []
        for item in items:
            if self.dead:
                break
            self._turn(partial(self._item_turn, node, item), breaks)
        self._after(node.orelse, breaks, entry)

    def _item_turn(self, node: ast.For, item: Value) -> None:
        self.assign(node.target, item)
        self.execute(node.body)

    def _turn(self, run: Callable[[], Any], breaks: list[Exit]) -> None:
        """Run one turn; what goes on after it are its end and its ``continue``s."""
        entry = self.knowledge.path
        exits: list[Exit] = []
        self.loops.append(exits)
        run()
        self.loops.pop()
        breaks += [found for found in exits if found.kind == "break"]
        alive = [found for found in exits if found.kind == "continue"]
        if alive:
            if not self.dead:
                alive.append(Exit("continue", None, self.heap.contents, self.knowledge.path))
            self.merge(alive, entry)

    def _after(self, orelse: Sequence[ast.stmt], breaks: list[Exit], entry: PathCondition) -> None:
        if not self.dead:
            self.execute(orelse)
        if breaks:
            alive = list(breaks)
            if not self.dead:
                alive.append(Exit("break", None, self.heap.contents, self.knowledge.path))
            self.merge(alive, entry)

    def _do_While(self, node: ast.While) -> None:
        entry = self.knowledge.path
        breaks: list[Exit] = []
        for _ in range(_MAX_TURNS):
            condition = self.decide(self.truth(self.evaluate(node.test)))
            if isinstance(condition, Term):
                self._open_while(node, breaks, entry)
                return
            if not condition:
                self._after(node.orelse, breaks, entry)
                return
            self._turn(lambda: self.execute(node.body), breaks)
            if self.dead:
                self._after((), breaks, entry)
                return
        self.collector.notice(
            self.here(), f"a 'while' loop is followed {_MAX_TURNS} turns, then summarised"
        )
        self._open_while(node, breaks, entry)

    def _open_while(self, node: ast.While, breaks: list[Exit], entry: PathCondition) -> None:
        """Summarise a loop whose number of turns is not known."""
        count = self.new_name("k")
        self.knowledge.invented.add(count)
        self.knowledge.lowest[count] = 0
        end: list[Term] = []

        def turn(k: Dim) -> None:
            condition = self.truth(self.evaluate(node.test))
            if isinstance(condition, Term):
                self.knowledge.path = self.knowledge.path.taking(condition)
            self.execute(node.body)

        self._summary(node, symbol(count), turn, outer=breaks)
        if not self.dead:
            condition = self.truth(self.evaluate(node.test))
            if isinstance(condition, Term):
                end.append(negate(condition))
                self.knowledge.path = self.knowledge.path.taking(end[0])

    # Summaries.

    def new_name(self, stem: str) -> str:
        """Return a name for a size that is not taken."""
        taken = self.knowledge.lowest
        name, number = stem, 1
        while name in taken or name in self.knowledge.sample:
            number += 1
            name = f"{stem}{number}"
        return name

    def _summary(
        self,
        node: ast.For | ast.While,
        length: Dim,
        turn: Callable[[Dim], None],
        outer: Sequence[Exit] = (),
        *,
        peeled: bool = False,
    ) -> None:
        """Run a loop of ``length`` turns by finding how each value depends on the turn.

        A loop whose first turn differs (a state that is None before it) has that turn run for
        itself, and the others summarised.
        """
        name = self.new_name("k")
        self.knowledge.lowest[name] = 0
        self.counters[name] = length
        k = symbol(name)
        entry = self.knowledge.path
        start = self.heap.snapshot()
        recurrence = Recurrence(self, name, start)
        inside = entry.taking(self.within(k, length))
        self.collector.muted += 1
        try:
            rules = self._guessed(recurrence, start, k, turn, (entry, inside))
        finally:
            self.collector.muted -= 1
        if not recurrence.regular and not peeled:
            del self.knowledge.lowest[name]
            self.knowledge.path = entry
            self.dead = False
            self._begin(start, {}, 0)
            self._peel(node, length, turn, outer)
            return
        if recurrence.lossy and self.frame is not None and self.frame.is_user:
            self.collector.notice(
                self.collector.place(self.frame.file, node),
                "a size that this loop changes follows no rule that is known: it is widened",
            )
        breaks: list[Exit] = []
        final = self._last_turn(start, rules, k, turn, inside, breaks)
        self._finish(recurrence, start, rules, final, length)
        self.knowledge.path = entry
        self.dead = False
        self._after(node.orelse, [*outer, *breaks], entry)

    def _guessed(
        self,
        recurrence: Recurrence,
        start: dict[int, Any],
        k: Dim,
        turn: Callable[[Dim], None],
        paths: tuple[PathCondition, PathCondition],
    ) -> dict[tuple[int, Any], Rule]:
        """Return rules that the first turn suggests and a later one keeps."""
        after = self._try_turn(start, {}, 0, turn, paths[0])
        rules = self._rules(recurrence, start, after)
        for _ in range(_MAX_ROUNDS):
            after = self._try_turn(start, rules, k, turn, paths[1])
            if not self._widen(recurrence, start, rules, after, k):
                break
        return rules

    def _peel(
        self,
        node: ast.For | ast.While,
        length: Dim,
        turn: Callable[[Dim], None],
        outer: Sequence[Exit],
    ) -> None:
        """Run the first turn, if there is one, then summarise the others."""
        entry = self.knowledge.path

        def run() -> None:
            breaks = list(outer)
            self._turn(lambda: turn(0), breaks)
            if self.dead:
                self._after((), breaks, entry)
                return
            self._summary(node, length - 1, lambda k: turn(k + 1), breaks, peeled=True)

        some = self.decide(self.knowledge.less(0, length))
        if some is True:
            run()
        elif isinstance(some, Term):
            self.fork(
                some, run, lambda: self._after(node.orelse, list(outer), entry), f"{length} > 0"
            )

    def _begin(self, start: dict[int, Any], rules: dict[tuple[int, Any], Rule], k: Dim) -> None:
        """Set the state to the start of turn ``k``."""
        # What earlier attempts made is still referred to by the rules.
        contents = dict(self.heap.contents)
        for key, content in start.items():
            contents[key] = dict(content) if type(content) is dict else content
        self.heap.restore(contents)
        for (key, part), rule in rules.items():
            if part is None:
                self.heap[key] = rule(k)
            else:
                self.heap[key][part] = rule(k)

    def _try_turn(
        self,
        start: dict[int, Any],
        rules: dict[tuple[int, Any], Rule],
        k: Dim,
        turn: Callable[[Dim], None],
        path: PathCondition,
    ) -> dict[int, Any]:
        """Return the contents after a turn that leaves no findings."""
        self._last_turn(start, rules, k, turn, path, [])
        return self.heap.contents

    def _last_turn(
        self,
        start: dict[int, Any],
        rules: dict[tuple[int, Any], Rule],
        k: Dim,
        turn: Callable[[Dim], None],
        path: PathCondition,
        breaks: list[Exit],
    ) -> dict[int, Any]:
        self._begin(start, rules, k)
        self.knowledge.path = path
        self.dead = False
        self._turn(lambda: turn(k), breaks)
        if self.dead and breaks:
            # Every turn ends the loop: there is only one.
            self.heap.restore(
                {key: dict(c) if type(c) is dict else c for key, c in breaks[-1].contents.items()}
            )
        return self.heap.contents

    def _rules(
        self, recurrence: Recurrence, start: dict[int, Any], after: dict[int, Any]
    ) -> dict[tuple[int, Any], Rule]:
        rules: dict[tuple[int, Any], Rule] = {}
        for key, part, before, found in changes(start, after):
            if part is None:
                rule = None
                if isinstance(before, tuple | Many) and isinstance(found, tuple | Many):
                    rule = recurrence.list_rule(before, found)
                rules[key, part] = rule or _unknown_content(recurrence, before)
            else:
                rules[key, part] = recurrence.rule(before, found)
        return rules

    def _widen(
        self,
        recurrence: Recurrence,
        start: dict[int, Any],
        rules: dict[tuple[int, Any], Rule],
        after: dict[int, Any],
        k: Dim,
    ) -> bool:
        """Weaken the rules that a generic turn does not keep; say whether there were any."""
        changed = False
        for key, part, before, found in changes(start, after):
            rule = rules.get((key, part))
            if rule is not None and recurrence.agrees(rule, k + 1, found):
                continue
            changed = True
            if part is None:
                rules[key, part] = self._wider_content(recurrence, before, found)
            else:
                rules[key, part] = recurrence.widened(before, found)
        return changed

    def _wider_content(self, recurrence: Recurrence, before: Any, found: Any) -> Rule:
        if not isinstance(before, tuple | Many) or not isinstance(found, tuple | Many):
            return _unknown_content(recurrence, before)
        recurrence.regular = False
        element, _ = self.as_many(found)
        length = self.emit.fresh("length")
        return lambda k: before if k == 0 else Many(element, length)

    def _finish(
        self,
        recurrence: Recurrence,
        start: dict[int, Any],
        rules: dict[tuple[int, Any], Rule],
        final: dict[int, Any],
        length: Dim,
    ) -> None:
        """Set the state to the one after the last turn."""
        contents = dict(final)
        last = length - 1
        for key, content in start.items():
            if type(content) is dict:
                # Names that the body defines keep the value of the last turn.
                new = {
                    name: recurrence.last(value, last)
                    for name, value in final.get(key, {}).items()
                    if name not in content
                }
                contents[key] = {**content, **new}
            else:
                contents[key] = content
        self.heap.restore(contents)
        for (key, part), rule in rules.items():
            if part is None:
                self.heap[key] = rule(length)
            else:
                self.heap[key][part] = rule(length)


def changes(start: dict[int, Any], after: dict[int, Any]) -> list[tuple[int, Any, Any, Any]]:
    """Return (object, name or None, before, after) of what a turn changed in older objects."""
    found: list[tuple[int, Any, Any, Any]] = []
    for key, before in start.items():
        content = after.get(key, before)
        if content is before:
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


def _unknown_content(recurrence: Recurrence, before: Any) -> Rule:
    recurrence.regular = False
    core = recurrence.core
    unknown = Unknown("a list that a loop changes in ways that are not followed", told=False)
    core.collector.open_question(core.here(), unknown.reason)
    length = core.emit.fresh("length")
    return lambda k: before if k == 0 else Many(unknown, length)


def _steers(body: Sequence[ast.stmt]) -> bool:
    """Whether a loop's body can end the loop early."""
    return any(isinstance(n, ast.Break | ast.Return) for s in body for n in ast.walk(s))


__all__ = ["CheckError", "Choice", "Loops", "Tensor"]
