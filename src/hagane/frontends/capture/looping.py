"""One loop of the program as a Loop of the graph: attempts, then the iteration that is written."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.capture.body import Body
from hagane.frontends.capture.carried import (
    Carried,
    Fixed,
    Slot,
    at,
    leaf_type,
    leaves,
    packed,
    slot_for,
    slot_of_result,
    unpacked,
)
from hagane.frontends.capture.paths import Paths
from hagane.frontends.capture.terms import as_value
from hagane.frontends.python.interpret.core import Exit
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import (
    MISSING,
    Earlier,
    Many,
    Tensor,
    Unknown,
    Value,
)
from hagane.graph.types import TensorType
from hagane.symbolic import Dim, Expr
from hagane.symbolic.term import Term

UNKNOWN_ITEMS = Unknown("items of a list whose length the data decide", told=False)
_FIRST = np.array([0], np.int64)


@dataclass(frozen=True, slots=True)
class Iteration:
    """What an iteration left: how it ended, and the contents then.

    Attributes:
        going: Whether another one follows.
        broke: Whether it ended by ``break``.
        returned: Whether it ended by ``return``.
        result: The value returned; ``MISSING`` where none is.
        contents: The contents of the heap.
    """

    going: Value
    broke: Value
    returned: Value
    result: Value
    contents: dict[int, Any]


@dataclass(frozen=True, slots=True)
class Stack:
    """What each iteration appends to a list: how many items, together as one tensor."""

    key: int
    grown: int
    tensor: Tensor
    is_number: bool


class Looping:
    """A loop whose number of iterations the data decide.

    Args:
        domain: The domain, at the start of the loop.
        node: The loop.
        length: The number of iterations; None where only its condition says it.
        turn: Runs the body, given the number of the iteration.
    """

    def __init__(
        self,
        domain: Paths,
        node: ast.For | ast.While,
        length: Dim | None,
        turn: Callable[[Dim], None],
    ):
        self.core, self.emit, self.knowledge = domain.core, domain.emit, domain.knowledge
        self.node, self.length, self.turn = node, length, turn
        self.carried = Carried(self.core.heap.snapshot())

    def attempt(self) -> tuple[tuple[Any, Value, Value] | None, bool]:
        """Run an iteration, and note what it hands on, as :meth:`Carried.learn` returns it."""
        body = Body.opened(self.emit, self.carried.leaf_types(self.emit))
        return self.carried.learn(self._iteration(body).contents)

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
        inputs = iter(body.inputs)
        k = emit.number(emit.tensor(next(inputs)), "iteration")
        next(inputs)
        self.knowledge.lowest[str(k)] = 0
        for (key, part), slot in carried.slots.items():
            self._set(key, part, packed(slot, inputs, emit))
        for key, grown in carried.lists.items():
            count = len(carried.start[key]) + grown * k
            core.heap[key] = (Earlier("items of earlier iterations", count=count),)
        if self.length is not None:
            inside = self.knowledge.path = inside.taking(core.within(k, self.length))
        core.dead = False
        exits = self._run(k)
        going, broke, returned, result = core.merge(exits, inside)
        self.knowledge.path = inside
        return Iteration(going, broke, returned, result, core.heap.contents)

    def _run(self, k: Expr) -> list[Exit]:
        """Run the body; return its ends, of which each says how the iteration ended."""
        core = self.core
        assert core.frame is not None
        before, breaks = len(core.frame.exits), list[Exit]()
        core.turn(lambda: self.turn(k), breaks)
        returns = core.frame.exits[before:]
        del core.frame.exits[before:]
        ends = [("break", e, (False, True, False, MISSING)) for e in breaks]
        ends += [("return", e, (False, False, True, e.value)) for e in returns]
        exits = [Exit(kind, state, e.contents, e.path) for kind, e, state in ends]
        if not core.dead:
            going = core.as_truth(self._condition())
            exits.append(core.exit("turn", (going, False, False, MISSING)))
        return exits

    def _set(self, key: int, part: Any, value: Value) -> None:
        if part is None:
            self.core.heap[key] = value
        else:
            self.core.heap[key][part] = value

    # The Loop.

    def write(self, outer: Sequence[Exit]) -> None:
        """Write the loop, and go on after it together with earlier breaks."""
        core, emit, carried = self.core, self.emit, self.carried
        entry = self.knowledge.path
        self.rewind()
        first = carried.tensors(carried.start, emit)
        limit = None if self.length is None else emit.value_of(emit.size(self.length))
        going = as_value(emit, self._condition()) if isinstance(self.node, ast.While) else None
        body = Body.opened(emit, carried.leaf_types(emit))
        found = self._iteration(body)
        self.knowledge.path = entry.within(body.inner)
        another = as_value(emit, core.as_term(core.truth(found.going)))
        states = carried.tensors(found.contents, emit)
        ends = self._ends(found)
        for value, slot in ends.values():
            states += [emit.value_of(tensor) for tensor in unpacked(slot, value, emit)]
        stacks = self._stacks(found.contents)
        body.finish(another, states, [emit.value_of(stack.tensor) for stack in stacks])
        more = [leaf for _, slot in ends.values() for leaf in leaves(slot)]
        first += body.add_states([leaf_type(leaf, emit) for leaf in more])
        self.knowledge.path = entry
        types = carried.leaf_types(emit) + [leaf_type(leaf, emit) for leaf in more]
        outputs = iter(body.close(limit, going, first, types + list(map(self._whole, stacks))))
        self._leave(found.contents, outputs)
        finals = {how: packed(slot, outputs, emit) for how, (_, slot) in ends.items()}
        for stack in stacks:
            self._fill(stack, emit.tensor(next(outputs), stack.tensor.kind))
        core.dead = False
        self._end(finals)
        if outer:
            core.after((), list(outer), entry)

    def _ends(self, found: Iteration) -> dict[str, tuple[Value, Slot]]:
        """Return how iterations end, apart from going on, and what holds it."""
        ends: dict[str, tuple[Value, Slot]] = {}
        for how, value in (("broke", found.broke), ("returned", found.returned)):
            if value is not False:
                slot = slot_for(True, value, slot_for(True, False))
                assert slot is not None
                ends[how] = value, slot
        if found.result is not MISSING:
            slot = slot_of_result(found.result)
            if slot is None:
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
            else:
                contents[key] = content
        self.core.heap.restore(contents)
        some = self.length is not None and (
            self.core.decide(self.knowledge.less(0, self.length)) is True
        )
        for (key, part), slot in self.carried.slots.items():
            if isinstance(slot, Fixed) and some:
                self._set(key, part, at(after, key, part))
            else:
                self._set(key, part, packed(slot, outputs, self.emit))

    def _end(self, finals: dict[str, Value]) -> None:
        """Follow the ``return`` in the loop, and its ``else``."""
        core = self.core
        frame = core.frame
        assert frame is not None
        returned = core.truth(finals.get("returned", False))
        result = finals.get("result", MISSING)
        if isinstance(returned, Term):
            core.fork(returned, lambda: core.leave("return", result, frame.exits), lambda: None)
        elif returned:
            core.leave("return", result, frame.exits)
        if self.node.orelse and not core.dead:
            broke = core.truth(finals.get("broke", False))
            if isinstance(broke, Term):
                core.fork(broke, lambda: None, lambda: core.execute(self.node.orelse))
            elif not broke:
                core.execute(self.node.orelse)

    # Lists that grow.

    def _stacks(self, after: dict[int, Any]) -> list[Stack]:
        """Return what an iteration appends to each list that grows."""
        found = []
        for key, grown in self.carried.lists.items():
            items = after[key][1:]
            tensors = [self._appended(item) for item in items]
            if len({(t.dtype, t.shape) for t in tensors}) > 1:
                raise CheckError(
                    "capture", "a loop appends tensors of different shapes to one list"
                )
            whole = tensors[0]
            if grown > 1:
                parts = [self.core.op("Unsqueeze", tensor, _FIRST) for tensor in tensors]
                whole = self.core.op("Concat", *parts, axis=0)
            found.append(Stack(key, grown, whole, not isinstance(items[0], Tensor)))
        return found

    def _appended(self, item: Value) -> Tensor:
        if isinstance(item, Tensor):
            return item
        if isinstance(item, int | Expr) and not isinstance(item, bool):
            return self.emit.as_scalar(item, "int")
        raise CheckError(
            "capture",
            "a loop whose number of iterations the data decide appends "
            f"{self.core.show(item)} to a list; append tensors or integers",
        )

    def _whole(self, stack: Stack) -> TensorType:
        """Return the type of what all iterations append."""
        tensor = stack.tensor
        assert tensor.shape is not None
        return TensorType(tensor.dtype, (self.emit.fresh("length"), *tensor.shape))

    def _fill(self, stack: Stack, whole: Tensor) -> None:
        """Give a list what the iterations appended."""
        emit, op = self.emit, self.core.op
        assert whole.shape is not None
        if stack.grown > 1:
            shape = (whole.shape[0] * stack.grown, *whole.shape[2:])
            whole = op("Reshape", whole, emit.constant(list(shape), ir.DataType.INT64))
        before = self.carried.start[stack.key]
        if before:
            earlier = [op("Unsqueeze", self._appended(x), _FIRST) for x in before]
            whole = op("Concat", *earlier, whole, axis=0)
        assert whole.shape is not None

        def item(k: Dim) -> Value:
            place = emit.size(k) if isinstance(k, Expr) else np.array(k, np.int64)
            taken: Tensor = op("Gather", whole, place, axis=0)
            return emit.number(taken, "item") if stack.is_number else taken

        self.core.heap[stack.key] = Many(UNKNOWN_ITEMS, whole.shape[0], item, whole)
