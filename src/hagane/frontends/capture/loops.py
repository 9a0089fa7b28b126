"""Loops of the program as loops of the graph."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import onnx_ir as ir

from hagane.frontends.capture.carried import (
    Earlier,
    Fixed,
    NumberSlot,
    Parts,
    Slot,
    TensorSlot,
    leaf_type,
    leaves,
    number_kind,
    packed,
    slot_for,
    unpacked,
)
from hagane.frontends.capture.paths import Paths
from hagane.frontends.capture.scope import Scope
from hagane.frontends.capture.terms import as_value
from hagane.frontends.python.interpret.core import Exit
from hagane.frontends.python.interpret.loops import changes
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import (
    MISSING,
    Frame,
    ListRef,
    Many,
    Tensor,
    Unknown,
    Value,
)
from hagane.graph.types import TensorType
from hagane.ops.builder import node_of
from hagane.ops.registry import operators
from hagane.symbolic import Dim, Expr
from hagane.symbolic.term import Term

_MAX_ROUNDS = 8
_MAX_UNROLLED = 64  # iterations of a 'while' that are decided one by one
_LENGTH = "a list whose length the data decide is used where its items have to be known"
_UNKNOWN_ITEMS = Unknown("items of a list whose length the data decide", told=False)


@dataclass(eq=False)
class Body:
    """A Loop being made: its body's scope, and what it hands on."""

    node: ir.Node
    inner: Scope
    outer: Scope
    emitter: Any
    states: int = 0
    scans: int = 0
    _exported: dict[ir.Value, ir.Value] = field(default_factory=dict)

    def export(self, value: ir.Value, scope: Scope) -> ir.Value:
        """Return the value of the last iteration; of none if there was none."""
        del scope
        if value not in self._exported:
            type_ = self.emitter.types.types[value]
            self._exported[value] = self._handed(value, type_)
        return self._exported[value]

    def _handed(self, value: ir.Value, type_: TensorType) -> ir.Value:
        emitter = self.emitter
        rank = len(type_.shape or ())
        empty = emitter.root.nodes.initializer(np.zeros((1,) * rank, type_.dtype.numpy()), "filler")
        inside = ir.Value(name=None, type=ir.TensorType(type_.dtype))
        place = 2 + self.states
        self.inner.graph.inputs.insert(place, inside)
        self.inner.graph.outputs.insert(1 + self.states, emitter._same(value, self.inner))
        self.node.resize_inputs(place + 1)
        self.node.replace_input_with(place, empty)
        if self.scans:
            raise CheckError(
                "capture", "a value of a loop that also fills a list is used after the loop"
            )
        self.node.resize_outputs(len(self.node.outputs) + 1)
        self.states += 1
        made = self.node.outputs[-1]
        emitter.set_type(made, type_)
        emitter.add_home(made, self.outer)
        self.outer.nodes.note_sizes(made)
        return made


@dataclass(eq=False)
class Iteration:
    """What an iteration left: how it ended, and the contents then."""

    going: Value
    broke: Value
    returned: Value
    result: Value
    contents: dict[int, Any]


Locations = dict[tuple[int, Any], Slot]


class Loops(Paths):
    """Interprets loops."""

    # Nothing stands for all items of a list here.

    def _refuse(self, message: str) -> NoReturn:
        raise CheckError("capture", message)

    def many_items(self, items: list[Value]) -> Many:
        """Return known items as a content of which one value stands for all."""
        if items and all(isinstance(i, int) for i in items):
            return super().many_items(items)
        raise CheckError("capture", _LENGTH)

    def as_many(self, content: Any) -> tuple[Value, Any]:
        """Return one value that stands for all of a list's content, and how many there are."""
        del content
        self._refuse(_LENGTH)

    def many_of(self, left: Any, right: Any) -> Many:
        """Return the contents of two lists behind each other, with one value for all."""
        del left, right
        self._refuse(_LENGTH)

    def _tensor_items(self, value: Tensor) -> list[Value] | Many:
        found = super()._tensor_items(value)
        if isinstance(found, Many) and value.shape:
            return Many(
                _UNKNOWN_ITEMS,
                found.length,
                lambda k: self.tables.tensor_item(self, value, k),
                value,
            )
        return found

    def _range_items(self, value: Any) -> list[Value] | Many:
        found = super()._range_items(value)
        return Many(_UNKNOWN_ITEMS, found.length, found.at) if isinstance(found, Many) else found

    def _call_len(self, value: Value) -> Value:
        content = self.heap[value] if isinstance(value, ListRef) else None
        if isinstance(content, tuple) and any(isinstance(item, Earlier) for item in content):
            total: Dim = 0
            for item in content:
                total = total + (item.count if isinstance(item, Earlier) else 1)
            return total
        return super()._call_len(value)

    # Loops.

    def _do_For(self, node: ast.For) -> None:
        items = self.sequence(self.evaluate(node.iter))
        if isinstance(items, list):
            self._turns(node, items)
        else:
            self._summary(node, items.length, lambda k: self._item_turn(node, items.item(k)))

    def _do_While(self, node: ast.While) -> None:
        assert self.frame is not None
        entry, breaks = self.knowledge.path, list[Exit]()
        for _ in range(_MAX_UNROLLED):
            condition = self.decide(self.truth(self.evaluate(node.test)))
            if condition is False:
                self._after(node.orelse, breaks, entry)
                return
            if isinstance(condition, Term) or self._may_end(node):
                break
            self._turn(lambda: self.execute(node.body), breaks)
            if self.dead:
                self._after((), breaks, entry)
                return
        self._loop(node, None, lambda k: self.execute(node.body), breaks)

    def _may_end(self, node: ast.While) -> bool:
        """Whether data decide if an iteration is the last one."""
        assert self.frame is not None
        mark, path = len(self.frame.exits), self.knowledge.path
        start = self.heap.snapshot()
        breaks: list[Exit] = []
        with self._scratch():
            self._turn(lambda: self.execute(node.body), breaks)
            ended = not self.dead and (bool(breaks) or len(self.frame.exits) > mark)
        del self.frame.exits[mark:]
        self.heap.restore(start)
        self.knowledge.path, self.dead = path, False
        return ended

    def _summary(
        self,
        node: ast.For | ast.While,
        length: Dim,
        turn: Callable[[Dim], None],
        outer: Sequence[Exit] = (),
        *,
        peeled: bool = False,
    ) -> None:
        """Run a loop of ``length`` iterations."""
        self._loop(node, length, turn, outer, peeled=peeled)

    @contextmanager
    def _scratch(self) -> Iterator[None]:
        """Interpret without leaving a trace in the graph or the report."""
        self.collector.muted += 1
        path, dead = self.knowledge.path, self.dead
        kept = self.emit.marked()
        scope = self.emit.scratch_scope()
        self.knowledge.path = path.within(scope)
        try:
            yield
        finally:
            self.emit.back_to(kept)
            self.knowledge.path, self.dead = path, dead
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
        entry, start = self.knowledge.path, self.heap.snapshot()
        slots: Locations = {}
        lists: dict[int, int] = {}  # lists that grow, by how much
        for _ in range(_MAX_ROUNDS):
            with self._scratch():
                body = self._open(slots)
                found = self._iteration(node, body, start, slots, lists, length, turn)
                odd, more = self._learn(start, found.contents, slots, lists)
            self._back(start)
            if odd is not None and not peeled and length is not None:
                self._peel(node, length, turn, outer)
                return
            if odd is not None:
                self._refuse(self._told(*odd))
            if not more:
                break
        else:
            self._refuse("the types of values keep changing from iteration to iteration")
        self.knowledge.path = entry
        self._write(node, length, turn, outer, (start, slots, lists))

    def _told(self, part: Any, before: Value, after: Value) -> str:
        name = f"'{part}'" if isinstance(part, str) else "a list or object"
        return (
            f"{name} changes from {self.show(before)} to {self.show(after)} in a loop whose number "
            "of iterations the data decide; give it one type before the loop"
        )

    def _back(self, start: dict[int, Any]) -> None:
        contents = dict(self.heap.contents)
        for key, content in start.items():
            contents[key] = dict(content) if type(content) is dict else content
        self.heap.restore(contents)

    def _learn(
        self,
        start: dict[int, Any],
        after: dict[int, Any],
        slots: Locations,
        lists: dict[int, int],
    ) -> tuple[tuple[Any, Value, Value] | None, bool]:
        """Note what an iteration changed; return what nothing holds, and whether more was noted."""
        more = False
        for key, part, before, value in changes(start, after):
            if part is None and isinstance(before, tuple) and isinstance(value, tuple):
                grown = _grown(before, value, lists.get(key))
                if grown:
                    more |= lists.get(key) != grown
                    lists[key] = grown
                    continue
            slot = slot_for(before, value, slots.get((key, part)))
            if slot is None and part is not None and self._is_rebound(before, value):
                slot = Fixed(Unknown(f"'{part}' has another type before the loop", told=False))
            if slot is None:
                return (part, before, value), False
            if slots.get((key, part)) != slot and not isinstance(slot, Fixed):
                slots[key, part] = slot
                more = True
            elif isinstance(slot, Fixed) and isinstance(slot.value, Unknown):
                more |= (key, part) not in slots
                slots[key, part] = slot
        return None, more

    @staticmethod
    def _is_rebound(before: Value, after: Value) -> bool:
        return before is not None and after is not None and type(before) is not type(after)

    def _open(self, slots: Locations) -> Body:
        emit = self.emit
        outer = emit.scope
        graph = ir.Graph([], [], nodes=[], name="body")
        node = node_of(operators()["", "Loop"], [None, None], {"body": graph}, 0)
        inner = emit.open_scope(graph, outer)
        body = Body(node, inner, outer, emit)
        inner.owner = body
        types = [TensorType(ir.DataType.INT64, ()), TensorType(ir.DataType.BOOL, ())]
        types += [leaf_type(leaf, emit) for slot in slots.values() for leaf in leaves(slot)]
        for type_ in types:
            value = ir.Value(name=None)
            emit.set_type(value, type_)
            emit.add_home(value, inner)
            graph.inputs.append(value)
            inner.nodes.note_sizes(value)
        body.states = len(types) - 2
        return body

    def _iteration(
        self,
        node: ast.For | ast.While,
        body: Body,
        start: dict[int, Any],
        slots: Locations,
        lists: dict[int, int],
        length: Dim | None,
        turn: Callable[[Dim], None],
    ) -> Iteration:
        """Run the body once, from the states that its inputs are."""
        assert self.frame is not None
        emit, path = self.emit, self.knowledge.path
        inside = path.within(body.inner)
        self.knowledge.path = inside
        self._back(start)
        k = emit.number(emit.tensor(body.inner.graph.inputs[0]), "iteration")
        self.knowledge.lowest[str(k)] = 0
        inputs = iter(list(body.inner.graph.inputs)[2:])
        for (key, part), slot in slots.items():
            self._set(key, part, packed(slot, inputs, emit))
        for key, grown in lists.items():
            before = start[key]
            count = len(before) + grown * k
            self.heap[key] = (Earlier("items of earlier iterations", count=count),)
        if length is not None:
            within = self.within(k, length)
            self.knowledge.path = inside = inside.taking(within)
        self.dead = False
        mark = len(self.frame.exits)
        breaks: list[Exit] = []
        self._turn(lambda: turn(k), breaks)
        returns = self.frame.exits[mark:]
        del self.frame.exits[mark:]
        exits = [Exit("break", (False, True, False, MISSING), e.contents, e.path) for e in breaks]
        exits += [
            Exit("return", (False, False, True, e.value), e.contents, e.path) for e in returns
        ]
        if not self.dead:
            going: Value = True
            if isinstance(node, ast.While):
                going = self.as_truth(self.as_term(self.truth(self.evaluate(node.test))))
            state = (going, False, False, MISSING)
            exits.append(Exit("turn", state, self.heap.contents, self.knowledge.path))
        value = self.merge(exits, inside)
        self.knowledge.path = inside
        going, broke, returned, result = value
        return Iteration(going, broke, returned, result, self.heap.contents)

    def _set(self, key: int, part: Any, value: Value) -> None:
        if part is None:
            self.heap[key] = value
        else:
            self.heap[key][part] = value

    def _write(
        self,
        node: ast.For | ast.While,
        length: Dim | None,
        turn: Callable[[Dim], None],
        outer: Sequence[Exit],
        plan: tuple[dict[int, Any], Locations, dict[int, int]],
    ) -> None:
        start, slots, lists = plan
        emit, entry = self.emit, self.knowledge.path
        assert self.frame is not None
        self._back(start)
        first = [
            emit.value_of(tensor)
            for (key, part), slot in slots.items()
            for tensor in unpacked(slot, _at(start, key, part), emit)
        ]
        limit = None if length is None else emit.value_of(emit.size(length))
        going = None
        if isinstance(node, ast.While):
            going = as_value(emit, self.as_term(self.truth(self.evaluate(node.test))))
        body = self._open(slots)
        found = self._iteration(node, body, start, slots, lists, length, turn)
        after = found.contents
        self.knowledge.path = entry.within(body.inner)
        outputs = [as_value(emit, self.as_term(self.truth(found.going)))]
        for (key, part), slot in slots.items():
            outputs += [emit.value_of(t) for t in unpacked(slot, _at(after, key, part), emit)]
        ends, end_slots = self._ends(found)
        for slot, value in zip(end_slots, ends, strict=True):
            outputs += [emit.value_of(t) for t in unpacked(slot, value, emit)]
        scanned = self._scanned(after, lists)
        outputs += [emit.value_of(tensor) for tensor, _ in scanned]
        for value in outputs:
            body.inner.graph.outputs.append(emit.own(value, body.inner))
        more = [leaf for slot in end_slots for leaf in leaves(slot)]
        for leaf in more:
            type_ = leaf_type(leaf, emit)
            value = ir.Value(name=None)
            emit.set_type(value, type_)
            emit.add_home(value, body.inner)
            body.inner.graph.inputs.append(value)
            first.append(emit.zeros(type_))
        body.states += len(more)
        self.knowledge.path = entry
        self._close(body, limit, going, first, [slots, end_slots, scanned])
        made = iter(list(body.node.outputs))
        self._leave_body(start, after, slots, made, length)
        finals = [packed(slot, made, emit) for slot in end_slots]
        for tensor, (key, grown) in scanned:
            is_number = not isinstance(after[key][1], Tensor)
            self._fill(key, start[key], grown, is_number, emit.tensor(next(made), tensor.kind))
        self.dead = False
        self._end(node, found, ends, finals, outer, entry)

    def _ends(self, found: Iteration) -> tuple[list[Value], list[Slot]]:
        """Return how iterations end, apart from going on, and what holds it."""
        ends: list[Value] = []
        slots: list[Slot] = []
        for value in (found.broke, found.returned):
            if value is not False:
                ends.append(value)
                slot = slot_for(True, value, slot_for(True, False))
                assert slot is not None
                slots.append(slot)
        if found.result is not MISSING:
            slot = _result_slot(found.result)
            if slot is None:
                self._refuse(
                    f"a loop whose number of iterations the data decide returns "
                    f"{self.show(found.result)}; return tensors or numbers"
                )
            ends.append(found.result)
            slots.append(slot)
        return ends, slots

    def _scanned(
        self, after: dict[int, Any], lists: dict[int, int]
    ) -> list[tuple[Tensor, tuple[int, int]]]:
        found = []
        for key, grown in lists.items():
            items = after[key][1:]
            tensors = [self._appended(item) for item in items]
            if len(tensors) > 1:
                shapes = {(t.dtype, t.shape) for t in tensors}
                if len(shapes) > 1:
                    self._refuse("a loop appends tensors of different shapes to one list")
            zero = np.array([0], np.int64)
            whole = tensors[0]
            if grown > 1:
                parts = [self.op("Unsqueeze", tensor, zero) for tensor in tensors]
                whole = self.op("Concat", *parts, axis=0)
            found.append((whole, (key, grown)))
        return found

    def _appended(self, item: Value) -> Tensor:
        if isinstance(item, Tensor):
            return item
        if isinstance(item, int | Expr) and not isinstance(item, bool):
            return self.emit.as_scalar(item, "int")
        raise CheckError(
            "capture",
            f"a loop whose number of iterations the data decide appends {self.show(item)} to a "
            "list; append tensors or integers",
        )

    def _close(
        self,
        body: Body,
        limit: ir.Value | None,
        going: ir.Value | None,
        first: Sequence[ir.Value],
        parts: Sequence[Any],
    ) -> None:
        slots, end_slots, scanned = parts
        emit, node = self.emit, body.node
        kinds = [leaf for slot in (*slots.values(), *end_slots) for leaf in leaves(slot)]
        node.resize_inputs(2 + len(first))
        for place, value in enumerate((limit, going, *first)):
            node.replace_input_with(place, value)
        node.resize_outputs(len(kinds) + len(scanned))
        types = [leaf_type(leaf, emit) for leaf in kinds]
        for tensor, _ in scanned:
            assert tensor.shape is not None
            types.append(TensorType(tensor.dtype, (emit.fresh("length"), *tensor.shape)))
        body.outer.nodes.insert(node)
        for value, type_ in zip(node.outputs, types, strict=True):
            emit.set_type(value, type_)
            body.outer.nodes.note_sizes(value)
        body.states, body.scans = len(kinds), len(scanned)

    def _leave_body(
        self,
        start: dict[int, Any],
        after: dict[int, Any],
        slots: Locations,
        made: Iterator[ir.Value],
        length: Dim | None,
    ) -> None:
        """Set the state to the one after the last iteration."""
        contents = dict(after)
        for key, content in start.items():
            if type(content) is dict:
                new = {n: v for n, v in after.get(key, {}).items() if n not in content}
                contents[key] = {**content, **new}
            else:
                contents[key] = content
        self.heap.restore(contents)
        some = length is not None and self.decide(self.knowledge.less(0, length)) is True
        for (key, part), slot in slots.items():
            if isinstance(slot, Fixed) and some:
                self._set(key, part, _at(after, key, part))
            else:
                self._set(key, part, packed(slot, made, self.emit))

    def _fill(self, key: int, before: Any, grown: int, is_number: bool, whole: Tensor) -> None:
        """Give a list what the iterations appended."""
        emit = self.emit
        assert whole.shape is not None
        if grown > 1:
            shape = (whole.shape[0] * grown, *whole.shape[2:])
            whole = self.op("Reshape", whole, emit.constant(list(shape), ir.DataType.INT64))
        if before:
            zero = np.array([0], np.int64)
            earlier = [self.op("Unsqueeze", self._appended(x), zero) for x in before]
            whole = self.op("Concat", *earlier, whole, axis=0)
        assert whole.shape is not None

        def at(k: Dim) -> Value:
            place = emit.size(k) if isinstance(k, Expr) else np.array(k, np.int64)
            taken: Tensor = self.op("Gather", whole, place, axis=0)
            return emit.number(taken, "item") if is_number else taken

        self.heap[key] = Many(_UNKNOWN_ITEMS, whole.shape[0], at, whole)

    def _end(
        self,
        node: ast.For | ast.While,
        found: Iteration,
        ends: Sequence[Value],
        finals: Sequence[Value],
        outer: Sequence[Exit],
        entry: Any,
    ) -> None:
        """Follow what comes after the loop: its ``else``, and the ``return`` in it."""
        assert self.frame is not None
        named = dict(zip(map(id, ends), finals, strict=True))
        broke = found.broke if found.broke is False else named[id(found.broke)]
        if found.returned is not False:
            returned = self.truth(named[id(found.returned)])
            result = found.result if found.result is MISSING else finals[-1]
            frame: Frame = self.frame
            if isinstance(returned, Term):
                self.fork(returned, lambda: self.leave("return", result, frame.exits), lambda: None)
            elif returned:
                self.leave("return", result, frame.exits)
        if node.orelse and not self.dead:
            condition = self.truth(broke)
            if isinstance(condition, Term):
                self.fork(condition, lambda: None, lambda: self.execute(node.orelse))
            elif not condition:
                self.execute(node.orelse)
        if outer:
            self._after((), list(outer), entry)

    # Comprehensions.

    def _generate_many(
        self,
        generators: Sequence[ast.comprehension],
        place: int,
        items: Many,
        result: Callable[[], Value],
    ) -> Many:
        """Return what a comprehension makes of items that data decide the number of."""
        generator = generators[place]
        if place + 1 < len(generators) or generator.ifs:
            self._refuse(
                "a comprehension with conditions or several 'for's over items whose number the "
                "data decide; write it as a loop"
            )
        made = self.new_list()

        def turn(k: Dim) -> None:
            self.assign(generator.target, items.item(k))
            self.heap[made] = (*self.heap[made], result())

        loop = ast.For(generator.target, generator.iter, [], [])
        self._loop(loop, items.length, turn, ())
        content = self.heap[made]
        assert isinstance(content, Many)
        return content


def _at(contents: dict[int, Any], key: int, part: Any) -> Value:
    return contents[key] if part is None else contents[key][part]


def _grown(before: tuple[Value, ...], after: tuple[Value, ...], known: int | None) -> int:
    """Return by how many items a list grows in an iteration; 0 if it changes otherwise."""
    if known is not None:
        started = after[:1] and isinstance(after[0], Earlier)
        return len(after) - 1 if started else 0
    same = len(after) > len(before) and all(a is b for a, b in zip(before, after, strict=False))
    return len(after) - len(before) if same else 0


def _result_slot(value: Value) -> Slot | None:
    if isinstance(value, tuple):
        found = [_result_slot(item) for item in value]
        return None if None in found else Parts(tuple(s for s in found if s is not None))
    if isinstance(value, Tensor):
        return TensorSlot(value.dtype, tuple(value.shape or ()), value.kind, value.device)
    return NumberSlot(number_kind(value)) if number_kind(value) else None


__all__ = ["Loops"]
