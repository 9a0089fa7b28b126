"""One loop of the program as a Loop of the graph: attempts, then the iteration that is written."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.capture.emitting.assumed import false_or_raised
from hagane.frontends.capture.emitting.exact import COUNT
from hagane.frontends.capture.emitting.terms import as_value
from hagane.frontends.capture.flow.body import Body
from hagane.frontends.capture.flow.carried import Carried, Odd
from hagane.frontends.capture.flow.paths import Paths
from hagane.frontends.capture.flow.slots import (
    Fixed,
    NumberSlot,
    Slot,
    at,
    leaf_type,
    leaves,
    slot_of,
    varying,
)
from hagane.frontends.python.interpret.core import Exit
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.memory import STALE, WRITTEN
from hagane.frontends.python.values.values import (
    MISSING,
    Value,
    is_plain,
)
from hagane.symbolic import Dim, Expr
from hagane.symbolic.path import PathCondition
from hagane.symbolic.term import FALSE, TRUE, Term


@dataclass(frozen=True, slots=True)
class Iteration:
    """The end of an iteration: how it ended, and the contents then.

    Attributes:
        going: Whether another one follows.
        goes: The condition of the loop's head, FALSE where none is met.
        broke: Whether it ended by ``break``.
        returned: Whether it ended by ``return``.
        result: The value returned; ``MISSING`` where none is.
        caught: Whether it ended by an exception that a handler around the loop takes.
        contents: The contents of the heap.
        written: What was written on the paths that return.
        raised: False, made so that it fails where the program raises an error; ``MISSING`` where it
            raises none.
    """

    going: Value
    goes: Term
    broke: Value
    returned: Value
    result: Value
    contents: dict[int, Any]
    written: frozenset[Any] = frozenset()
    raised: Value = MISSING
    caught: Value = False

    @property
    def leaves(self) -> bool:
        """Whether it may end in another way than by its condition."""
        return not (self.broke is False and self.returned is False and self.caught is False)


class Looping:
    """A loop whose number of iterations the data decide.

    Args:
        domain: The domain, at the start of the loop.
        node: The loop.
        length: The number of iterations; None where only its condition says it.
        turn: Runs the body, given the number of the iteration.
        mixing: Whether a number may be Python's or a scalar of NumPy, as the data decide.
        goes: The condition of a while loop's head before the first iteration, else None.
    """

    def __init__(
        self,
        domain: Paths,
        node: ast.For | ast.While,
        length: Dim | None,
        turn: Callable[[Dim], None],
        *,
        mixing: bool = False,
        goes: Term | None = None,
    ):
        self.goes = goes
        self.core, self.emit, self.knowledge = domain.core, domain.emit, domain.knowledge
        self.lists = domain.lists
        self.node, self.length, self.turn = node, length, turn
        self.entered: dict[tuple[int, Any], Value] = {}  # at the start of the last iteration run
        self.lists.links.refresh()
        self.carried = Carried(self.core.heap.snapshot(), domain.lists, mixing=mixing)

    def attempt(self) -> tuple[Odd | None, bool]:
        """Run an iteration, and note the values handed on, as :meth:`Carried.learn` returns it."""
        body = Body.opened(self.emit, self.carried.leaf_types())
        after = self._iteration(body).contents
        found = self.carried.learn(after)
        self.carried.learn_bounds(self.entered, after)
        return found

    def rewind(self) -> None:
        """Go back to the contents before the loop."""
        contents = dict(self.core.heap.contents)
        for key, content in self.carried.start.items():
            contents[key] = dict(content) if type(content) is dict else content
        self.core.heap.restore(contents)

    def _condition(self) -> Term:
        """Return whether there is another iteration, as the loop's head has it."""
        if isinstance(self.node, ast.For):
            return self.core.as_term(True)
        return self.core.as_term(self.core.condition(self.node.test))

    def _iteration(self, body: Body) -> Iteration:
        """Run the body once, from the states that its inputs are."""
        core, emit, carried = self.core, self.emit, self.carried
        assert core.frame is not None
        inside = self.knowledge.path = self.knowledge.path.within(body.inner)
        self.rewind()
        k = emit.number(emit.tensor(body.inputs[0]), "iteration")
        self.knowledge.lowest[str(k)] = 0
        emit.most[str(k)] = COUNT
        parts = carried.divided(body.inputs[2:])
        carried.share(parts)
        later = self.knowledge.less(0, k)
        made: dict[tuple[int, Any], Value] = {}
        for (key, part), slot in carried.twins.in_order(carried.slots):
            present = later if carried.is_late((key, part)) else None
            held = iter(parts[key, part])
            made[key, part] = carried.made((key, part), slot, held, present, made)
            self._set(key, part, made[key, part])
        carried.hand_on(made)
        carried.bound(made)
        self.entered = made
        if self.length is not None:
            inside = self.knowledge.path = inside.taking(core.within(k, self.length))
        core.dead = False
        loops = len(emit.unraised)
        exits, goes = self._run(k)
        inner = emit.unraised[loops:]  # of loops in this one
        del emit.unraised[loops:]
        if not exits:  # all paths read items of lists that are still empty, or raise errors
            self.knowledge.path = inside
            self.rewind()
            nodes = body.inner.nodes
            zero = nodes.initializer(np.array(0, np.int64), "constant")
            # (A constant would be known to fail where the graph is made.)
            never = nodes._node("Less", body.inputs[0], zero) if emit.raises else None
            raised = false_or_raised(emit, never, inner, body.inner)
            made_none = MISSING if raised is None else emit.tensor(raised)
            return Iteration(
                False, FALSE, False, False, MISSING, core.heap.contents, raised=made_none
            )
        marks = [e.contents[WRITTEN] for e in exits if e.kind == "return"]
        written = frozenset(mark for found in marks for mark in found)
        going, broke, returned, result, caught = core.merge(exits, inside)
        self.lists.links.refresh()
        # Other runs raise an error.
        ends = bool(emit.raises) and emit.scope is not body.inner
        came = emit.is_here(body.inner) if ends else None
        self.knowledge.path = inside
        raised = false_or_raised(emit, came, inner, body.inner)
        return Iteration(
            going, goes, broke, returned, result, core.heap.contents, written,
            MISSING if raised is None else emit.tensor(raised), caught,
        )  # fmt: skip

    def _run(self, k: Expr) -> tuple[list[Exit], Term]:
        """Run the body; return its ends, of which each says how the iteration ended.

        The second result is the condition of the loop's head after it.
        """
        core = self.core
        assert core.frame is not None
        before, breaks = len(core.frame.exits), list[Exit]()
        around, core.cleanups = core.cleanups, []  # those around the loop run behind it
        waiting = [(handling, len(handling.exits)) for handling in core.handlers]
        try:
            core.turn(lambda: self.turn(k), breaks)
        finally:
            core.cleanups = around
        returns = core.frame.exits[before:]
        del core.frame.exits[before:]
        ends = [("break", e, (False, True, False, MISSING, False)) for e in breaks]
        ends += [("return", e, (False, False, True, e.value, False)) for e in returns]
        ends += [("raise", e, (False, False, False, MISSING, True)) for e in self._caught(waiting)]
        exits = [Exit(kind, state, e.contents, e.path) for kind, e, state in ends]
        goes = FALSE
        if not core.dead:
            goes = self._condition()
            self.lists.links.refresh()
            exits.append(core.exit("turn", (core.as_truth(goes), False, False, MISSING, False)))
        return exits, goes

    def _caught(self, waiting: Sequence[tuple[Any, int]]) -> list[Exit]:
        """Return the exceptions of an iteration that a handler around the loop takes.

        Args:
            waiting: The handlers, with the number of exceptions that they had before.
        """
        found = [(handling, e) for handling, count in waiting for e in handling.exits[count:]]
        for handling, count in waiting:
            del handling.exits[count:]
        kinds = {(id(handling), str(e.value)) for handling, e in found}
        if len(kinds) > 1:
            raise CheckError(
                "capture",
                "several exceptions leave a loop whose number of iterations the data decide; take "
                "them in the loop",
            )
        if found:
            self.handler = found[0][0], found[0][1].value
        return [e for _, e in found]

    def _set(self, key: int, part: Any, value: Value) -> None:
        if part is None:
            self.core.heap.put(key, value)
        else:
            self.core.heap[key][part] = value

    # The Loop.

    def write(self, outer: Sequence[Exit], around: PathCondition) -> None:
        """Write the loop, and go on after it together with earlier breaks on the path around."""
        core, emit, carried = self.core, self.emit, self.carried
        entry = self.knowledge.path
        self.rewind()
        first = carried.tensors(carried.start)
        limit = None if self.length is None else emit.value_of(emit.size(self.length))
        goes = self.goes
        going = None if goes is None else as_value(emit, goes)
        body = Body.opened(emit, carried.leaf_types())
        found = self._iteration(body)
        self._refuse_endless(goes, found)
        self.knowledge.path = entry.within(body.inner)
        another = as_value(emit, core.as_term(core.truth(found.going)))
        states = carried.tensors(found.contents)
        ends = self._ends(found)
        for how, (value, slot) in ends.items():
            # A result is what it was where it was returned, whatever other paths write.
            with self._written(found.written if how == "result" else None):
                apart = self.lists.apart(slot, value, found.contents)
                states += [emit.value_of(tensor) for tensor in apart]
        body.finish(another, states)
        more = [leaf for _, slot in ends.values() for leaf in leaves(slot)]
        first += body.add_states([leaf_type(leaf, emit.fresh) for leaf in more])
        self.knowledge.path = entry
        if self.length is not None and found.leaves is False:
            carried.settle_lengths(self.length, self.entered, found.contents)
        types = carried.leaf_types() + [leaf_type(leaf, emit.fresh) for leaf in more]
        made = body.close(limit, going, first, types)
        parts = carried.divided(made)
        carried.share(parts)
        outputs = iter(made)
        self._leave(found.contents, outputs)
        finals = {how: carried.made((0, how), slot, outputs) for how, (_, slot) in ends.items()}
        if "raised" in finals:
            emit.unraised.append(as_value(emit, core.as_term(core.truth(finals["raised"]))))
        core.dead = False
        ended = finals.keys() & {"broke", "caught"}
        only_returns = goes is TRUE and found.goes is TRUE and not ended
        self._end(finals, only_returns)
        if outer:
            core.after((), list(outer), around)

    def _refuse_endless(self, goes: Term | None, found: Iteration) -> None:
        """Refuse a loop that nothing ends, of a generator whose items the program takes in turn."""
        always = goes in (None, TRUE) and found.goes is TRUE
        if self.length is None and always and found.leaves is False:
            raise CheckError(
                "capture",
                "a loop that neither its condition nor break nor return ends: a graph computes "
                "all items of a generator before the first is taken; give it an end, as in "
                "for _ in range(count)",
            )

    @contextmanager
    def _written(self, marks: frozenset[Any] | None) -> Iterator[None]:
        """Read values inside the block as of a path that has written this."""
        before = self.emit.written
        if marks is not None:
            self.emit.written = lambda: marks
        try:
            yield
        finally:
            self.emit.written = before

    def _ends(self, found: Iteration) -> dict[str, tuple[Value, Slot]]:
        """Return how iterations end, apart from going on, and the value that holds it."""
        ends: dict[str, tuple[Value, Slot]] = {}
        for how, value in (("broke", found.broke), ("returned", found.returned)):
            if value is not False:
                ends[how] = value, NumberSlot("bool")
        if found.caught is not False:
            ends["caught"] = found.caught, NumberSlot("bool")
        if found.raised is not MISSING:
            ends["raised"] = found.raised, NumberSlot("bool")
        if found.result is not MISSING:
            slot = varying(slot_of(found.result, found.contents, self.emit.also))
            if slot is None or (isinstance(slot, Fixed) and not is_plain(slot.value)):
                raise CheckError(
                    "capture",
                    "a loop whose number of iterations the data decide returns "
                    f"{self.core.show(found.result)}; return tensors or numbers",
                )
            ends["result"] = found.result, slot
        return ends

    def _leave(self, after: dict[int, Any], outputs: Iterator[ir.Value]) -> None:
        """Set the contents to those after the last iteration."""
        contents = dict(after)
        for key, content in self.carried.start.items():
            if type(content) is dict:
                new = {n: v for n, v in after.get(key, {}).items() if n not in content}
                contents[key] = {**content, **new}
            elif key not in (WRITTEN, STALE):
                contents[key] = content
        self.core.heap.restore(contents)
        some = None if self.length is None else self.knowledge.less(0, self.length)
        made: dict[tuple[int, Any], Value] = {}
        carried = self.carried
        for (key, part), slot in carried.twins.in_order(carried.slots):
            if isinstance(slot, Fixed) and some is not None and self.core.decide(some) is True:
                self._set(key, part, at(after, key, part))
            else:
                present = some if carried.is_late((key, part)) else None
                made[key, part] = carried.made((key, part), slot, outputs, present, made)
                self._set(key, part, made[key, part])
        carried.hand_on(made)
        carried.bound(made)

    def _hand_over(self) -> None:
        """Go on in the handler that takes the exception of the last iteration."""
        core, (handling, error) = self.core, self.handler
        core.unwind([each for each in core.cleanups if each not in handling.cleanups])
        if not core.dead:
            path = self.knowledge.path
            handling.exits.append(Exit("raise", error, core.heap.snapshot(), path))
            core.dead = True

    def _end(self, finals: dict[str, Value], only_returns: bool) -> None:
        """Follow the ``return`` in the loop, by which alone it may end, and its ``else``."""
        core = self.core
        frame = core.frame
        assert frame is not None
        returned = core.truth(finals.get("returned", False))
        result = finals.get("result", MISSING)
        if isinstance(returned, Term) and not only_returns:
            core.fork(returned, lambda: core.leave("return", result, frame.exits), lambda: None)
        elif returned is not False:
            core.leave("return", result, frame.exits)
        caught = core.truth(finals.get("caught", False))
        if isinstance(caught, Term) and not core.dead:
            core.fork(caught, self._hand_over, lambda: None)
        elif caught is not False and not core.dead:
            self._hand_over()
        if self.node.orelse and not core.dead:
            broke = core.truth(finals.get("broke", False))
            if isinstance(broke, Term):
                core.fork(broke, lambda: None, lambda: core.execute(self.node.orelse))
            elif not broke:
                core.execute(self.node.orelse)
