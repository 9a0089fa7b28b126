"""Loops over types: iteration by iteration where they are few, else summarised."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hagane.frontends.python.interpret.core import Exit
from hagane.frontends.python.interpret.domain import Plain, Step, Visit
from hagane.frontends.python.interpret.loops import changes
from hagane.frontends.python.interpret.reading.iterating import MAX_UNROLLED
from hagane.frontends.python.shapes.recurrence import Recurrence, Rule
from hagane.frontends.python.values.heap import as_many
from hagane.frontends.python.values.values import (
    MISSING,
    Many,
    Unknown,
    Value,
)
from hagane.symbolic import Dim, definitely_equal, symbol
from hagane.symbolic.logic import negate
from hagane.symbolic.path import PathCondition
from hagane.symbolic.questions import Knowledge
from hagane.symbolic.term import Term

if TYPE_CHECKING:
    from hagane.frontends.python.enter.interpreter import Interpreter

_MAX_TURNS = 1024  # of a loop whose turns are decided one by one
_MAX_ROUNDS = 4
# Turns of a loop over known items that are run one by one, the fewest that are summarised behind
# them, and the statements that all of these may take without that.
_FIRST, _LAST, _MAX_STEPS = 3, 8, 4000
_MANY = 64  # turns of a loop that the data may end
_MAX_WHILE_STEPS = 4000


class Loops(Plain):
    """Runs loops."""

    knowledge: Knowledge

    def __init__(self, core: Interpreter):
        super().__init__(core)
        self._irregular: set[ast.AST] = set()  # loops whose first turn differs from others
        self._done: dict[ast.AST, tuple[int, int]] = {}  # turns of a loop, and their statements

    def loop(self, node: ast.For | ast.While) -> None:
        """Run a loop."""
        if isinstance(node, ast.While):
            self._while(node)
            return
        core = self.core
        items = core.sequence(core.iterated(node.iter))
        if isinstance(items, list) and len(items) > MAX_UNROLLED and not _steers(node.body):
            items = core.many_items(items)
        if isinstance(items, list):
            core.each(node, items)
        else:
            self._summary(node, items.length, lambda k: core.item_turn(node, items.item(k)))

    def rest(
        self, node: ast.For, items: Sequence[Value], done: int, steps: int, breaks: list[Exit]
    ) -> bool:
        """Summarise the rest of a loop whose turns are many and long."""
        left = len(items) - done
        early = done > 0 and bool(breaks) and left > _MANY  # it ends where only the run knows
        turns, before = self._done.get(node, (0, 0))
        last = steps - before if turns == done - 1 else steps
        self._done[node] = done, steps
        # (Modules in modules: the first turn has those of all others, and is no measure of these.)
        each = min(steps // done, last) if done else 0
        if not early and (done < _FIRST or left < _LAST or each * left < _MAX_STEPS):
            return False
        many = self.core.many_items(list(items[done:]))
        self._summary(node, many.length, lambda k: self.core.item_turn(node, many.item(k)), breaks)
        return True

    def gather(
        self,
        node: ast.comprehension,
        items: Many | list[Value],
        step: Step,
        visit: Visit,
        *,
        plain: bool,
    ) -> Many:
        """Return the result of a comprehension over items whose number is not known."""
        del visit, plain
        assert isinstance(items, Many)
        core = self.core
        name = core.new_name("k")
        self.knowledge.lowest[name] = 0
        core.counters[name] = items.length
        entry = self.knowledge.path
        self.knowledge.path = entry.taking(core.within(symbol(name), items.length))
        kept, inner = step(symbol(name))
        self.knowledge.path = entry
        if kept is False:
            return Many(MISSING, 0)
        element, each = core.as_many(inner if isinstance(inner, Many) else tuple(inner))
        known = kept is not None and not node.ifs
        return Many(element, items.length * each if known else core.emit.fresh("kept"))

    def many(self, source: Value, content: Many | tuple[Value, ...]) -> Many:
        """Return items of which one value stands for all."""
        if source is not None:
            assert isinstance(content, Many)
            return content
        term = self.core.unknown_truth()
        return Many(*as_many(content, lambda a, b: self.core.join(term, a, b)))

    def _while(self, node: ast.While) -> None:
        entry = self.knowledge.path
        breaks: list[Exit] = []
        begun = self.core.steps
        for done in range(_MAX_TURNS):
            if done > _FIRST and self.core.steps - begun > _MAX_WHILE_STEPS:
                break
            condition = self.core.decide(self.core.condition(node.test))
            if isinstance(condition, Term):
                self._open_while(node, breaks, entry)
                return
            if not condition:
                self.core.after(node.orelse, breaks, entry)
                return
            self.core.turn(lambda: self.core.execute(node.body), breaks)
            if self.core.dead:
                self.core.after((), breaks, entry)
                return
        self.core.collector.notice(
            self.core.here(), f"a 'while' loop is followed {done} turns, then summarised"
        )
        self._open_while(node, breaks, entry)

    def _open_while(self, node: ast.While, breaks: list[Exit], entry: PathCondition) -> None:
        """Summarise a loop whose number of turns is not known."""
        count = self.core.new_name("k")
        self.knowledge.invented.add(count)
        self.knowledge.lowest[count] = 0
        end: list[Term] = []

        def turn(k: Dim) -> None:
            condition = self.core.condition(node.test)
            if isinstance(condition, Term):
                self.knowledge.path = self.knowledge.path.taking(condition)
            self.core.execute(node.body)

        self._summary(node, symbol(count), turn, outer=breaks)
        if not self.core.dead:
            condition = self.core.condition(node.test)
            if isinstance(condition, Term):
                end.append(negate(condition))
                self.knowledge.path = self.knowledge.path.taking(end[0])

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
        name = self.core.new_name("k")
        self.knowledge.lowest[name] = 0
        self.core.counters[name] = length
        k = symbol(name)
        entry = self.knowledge.path
        start = self.core.heap.snapshot()
        recurrence = Recurrence(self.core, name, start)
        recurrence.regular = peeled or node not in self._irregular
        inside = entry.taking(self.core.within(k, length))
        self.core.collector.muted += 1
        try:
            rules, breaks = self._guessed(
                recurrence, start, k, turn, (entry, inside), to_peel=not peeled
            )
        finally:
            self.core.collector.muted -= 1
        if not recurrence.regular and not peeled:
            self._irregular.add(node)
            del self.knowledge.lowest[name]
            self.knowledge.path = entry
            self.core.dead = False
            self._begin(start, {}, 0)
            self.core.peel(
                node, length, turn, outer,
                lambda breaks: self._summary(
                    node, length - 1, lambda k: turn(k + 1), breaks, peeled=True
                ),
            )  # fmt: skip
            return
        if recurrence.lossy and self.core.frame is not None and self.core.frame.is_user:
            self.core.collector.notice(
                self.core.collector.place(self.core.frame.file, node),
                "a size that this loop changes follows no rule that is known: it is widened",
            )
        if self.core.collector.muted and breaks is not None:  # nobody hears of the turn again
            final = self.core.heap.contents
        else:
            breaks = []
            final = self._turn(start, rules, k, turn, inside, breaks)
        self._finish(recurrence, start, rules, final, length)
        self.knowledge.path = entry
        self.core.dead = False
        self.core.after(node.orelse, [*outer, *breaks], entry)

    def _guessed(
        self,
        recurrence: Recurrence,
        start: dict[int, Any],
        k: Dim,
        turn: Callable[[Dim], None],
        paths: tuple[PathCondition, PathCondition],
        *,
        to_peel: bool,
    ) -> tuple[dict[tuple[int, Any], Rule], list[Exit] | None]:
        """Return rules that the first turn suggests and a later one keeps, and its breaks.

        The heap is that after the last turn that was tried. There are no breaks where that turn did
        not keep the rules, or where the loop has to be peeled (``to_peel``): that ends the search.
        """
        rules: dict[tuple[int, Any], Rule] = {}
        if to_peel and not recurrence.regular:
            return rules, None
        after = self._turn(start, rules, 0, turn, paths[0], [])
        rules = self._rules(recurrence, start, after)
        for _ in range(_MAX_ROUNDS):
            if to_peel and not recurrence.regular:
                break
            breaks: list[Exit] = []
            after = self._turn(start, rules, k, turn, paths[1], breaks)
            if not self._widen(recurrence, start, rules, after, k):
                return rules, breaks
        return rules, None

    def _begin(self, start: dict[int, Any], rules: dict[tuple[int, Any], Rule], k: Dim) -> None:
        """Set the state to the start of turn ``k``."""
        # Values of earlier attempts are still referred to by the rules.
        self.core.heap.restore({**self.core.heap.contents, **start})
        for (key, part), rule in rules.items():
            if part is None:
                self.core.heap[key] = rule(k)
            elif type(self.core.heap[key]) is dict:
                self.core.heap[key][part] = rule(k)

    def _turn(
        self,
        start: dict[int, Any],
        rules: dict[tuple[int, Any], Rule],
        k: Dim,
        turn: Callable[[Dim], None],
        path: PathCondition,
        breaks: list[Exit],
    ) -> dict[int, Any]:
        """Return the contents after a turn."""
        self._begin(start, rules, k)
        self.knowledge.path = path
        self.core.dead = False
        self.core.turn(lambda: turn(k), breaks)
        if self.core.dead and breaks:
            # Every turn ends the loop: there is only one.
            self.core.heap.restore(dict(breaks[-1].contents))
        return self.core.heap.contents

    def _rules(
        self, recurrence: Recurrence, start: dict[int, Any], after: dict[int, Any]
    ) -> dict[tuple[int, Any], Rule]:
        rules: dict[tuple[int, Any], Rule] = {}
        for key, part, before, found in changes(start, after):
            if part is None:
                rule = recurrence.dictionary_rule(before, found)
                both = isinstance(before, tuple | Many)
                if rule is None and both and isinstance(found, tuple | Many):
                    rule = recurrence.list_rule(before, found)
                rules[key, part] = rule or _unknown_content(recurrence, before)
            else:
                rules[key, part] = recurrence.rule(before, self.core.settle(found))
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
            # The path at the end of the turn leaves out what its breaks took with them.
            found = self.core.settle(found)
            if rule is not None and recurrence.agrees(rule, k + 1, found):
                continue
            changed = True
            if part is None:
                rules[key, part] = self._wider_content(recurrence, before, found, rule, k)
            else:
                rules[key, part] = recurrence.widened(before, found)
        return changed

    def _wider_content(
        self, recurrence: Recurrence, before: Any, found: Any, rule: Rule | None, k: Dim
    ) -> Rule:
        """Return a rule for the content of an object whose items one rule did not foretell."""
        of_keys = recurrence.dictionary_rule(before, found)
        if of_keys is not None:
            return of_keys
        if not isinstance(before, tuple | Many) or not isinstance(found, tuple | Many):
            return _unknown_content(recurrence, before)
        recurrence.regular = False
        element, length = self.core.as_many(found)
        promised = None if rule is None else rule(k + 1)
        if isinstance(promised, Many) and definitely_equal(promised.length, length):
            assert rule is not None
            return lambda k: before if k == 0 else Many(element, self._length_of(rule(k)))
        length = self.core.emit.fresh("length")
        return lambda k: before if k == 0 else Many(element, length)

    @staticmethod
    def _length_of(content: Value) -> Dim:
        return content.length if isinstance(content, Many) else len(content)

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
            if type(content) is dict and type(final.get(key, {})) is dict:
                # Names that the body defines keep the value of the last turn.
                new = {
                    name: recurrence.last(value, last)
                    for name, value in final.get(key, {}).items()
                    if name not in content
                }
                contents[key] = {**content, **new}
            else:
                contents[key] = content
        self.core.heap.restore(contents)
        for (key, part), rule in rules.items():
            if part is None:
                self.core.heap[key] = rule(length)
            elif type(self.core.heap[key]) is dict:
                self.core.heap[key][part] = rule(length)


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
