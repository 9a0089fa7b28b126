"""List, set and dictionary comprehensions, and generator expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from typing import Any

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.interpret.reading.iterating import MAX_UNROLLED
from hagane.frontends.python.values.hashed import constant_set
from hagane.frontends.python.values.objects import Frame, is_key
from hagane.frontends.python.values.values import (
    MISSING,
    DictRef,
    ListRef,
    Many,
    Pairs,
    Ref,
    SetRef,
    Stream,
    Tensor,
    Value,
)
from hagane.symbolic import Dim
from hagane.symbolic.term import Term

_DOTTED = (ast.Name, ast.Attribute)
_PLAIN = ("dict", "OrderedDict")  # a counter counts what updates it
_MAX_OPEN = 16  # items of which only the run knows whether they are kept


class Comprehensions(Core):
    """Evaluates comprehensions."""

    def _ListComp(self, node: ast.ListComp) -> Value:
        return self.new_list(self._comprehension(node.generators, lambda: self.evaluate(node.elt)))

    def _GeneratorExp(self, node: ast.GeneratorExp) -> Value:
        at_once, self.taken_whole = self.taken_whole is node, None
        with nullcontext() if at_once else self.emit.lazily():
            source = self.read_once(self.iterated(node.generators[0].iter))
            with self.heap.reading() as reads:
                items = self._comprehension(node.generators, lambda: self._given(node.elt), source)
        made = self.new_stream(items)
        if self.emit.literal:
            sources = [source] if isinstance(source, Ref | Stream) else []
            self.heap.late.read_later(made.key, reads, {one.key for one in sources})
            self.heap.derive(made.key, sources)
            self.lend([source], made)
        return made

    def iterated(self, node: ast.expr) -> Value:
        """Return the value of what a loop runs over; of constants in braces a frozenset."""
        fixed = constant_of(self.frame, node) if isinstance(node, ast.Set) else None
        return self.evaluate(node) if fixed is None else fixed

    def extend_in_turn(self, receiver: ast.expr, value: ast.expr) -> bool:
        """Extend a container by a generator expression that reads it itself, item by item.

        Such as ``y.extend(f(y[-1]) for f in functions)``, each of whose items reads the one
        before, and ``update`` of sets and dictionaries. Returns False, and does nothing, for
        others.
        """
        if not isinstance(value, ast.GeneratorExp) or not isinstance(receiver, _DOTTED):
            return False
        if not _reads_in_turn(value, receiver):
            return False
        container = self.evaluate(receiver)
        if not isinstance(container, ListRef | SetRef | DictRef):
            return False
        if isinstance(container, DictRef) and container.kind not in _PLAIN:
            return False
        name = "append" if isinstance(container, ListRef) else "add"
        adding = _adding(receiver, value, "" if isinstance(container, DictRef) else name)
        if adding is None:
            return False
        outer = self.frame
        assert outer is not None
        frame = _inner_frame(self.heap.new({}), outer)
        self.frame = frame
        try:
            self.execute([adding])
        finally:
            self.frame = outer
        return True

    def _given(self, node: ast.expr) -> Value:
        value = self.evaluate(node)
        self.emit.handed(value)
        return value

    def _SetComp(self, node: ast.SetComp) -> Value:
        items = self._comprehension(node.generators, lambda: self.evaluate(node.elt))
        if isinstance(items, Many):
            return self.lost("a set of a number of values that is not known")
        if not all(is_key(item) or isinstance(item, Tensor) for item in items):
            return self.lost("a set of values that are not known")
        return self.new_set(items)

    def _DictComp(self, node: ast.DictComp) -> Value:
        items = self._comprehension(
            node.generators, lambda: (self.evaluate(node.key), self.evaluate(node.value))
        )
        if isinstance(items, Many):
            if self.emit.builds or not isinstance(items.element, tuple):
                return self.lost("a dictionary of a number of keys that is not known")
            key, item = items.element
            return DictRef(self.heap.new(Pairs(item, self.emit.fresh("different"), key=key)))
        made = self.with_keys(items)
        if made is None:
            return self.lost("a dictionary whose keys are not known")
        return self.new_dict(made)

    def _comprehension(
        self, generators: Sequence[ast.comprehension], result: Callable[[], Value],
        source: Value = MISSING,
    ) -> list[Value] | Many:  # fmt: skip
        outer = self.frame
        assert outer is not None
        if source is MISSING:
            source = self.read_once(self.iterated(generators[0].iter))
        items = self.sequence(source)
        frame = _inner_frame(self.heap.new({}), outer)
        self.frame = frame
        try:
            with self._in_turns(source):
                return self._generate(generators, 0, items, result)
        finally:
            self.frame = outer
            self.collector.nodes.pop(frame.key, None)
            if not frame.kept:
                self.heap.drop(frame.key)

    def _generate(
        self,
        generators: Sequence[ast.comprehension],
        place: int,
        items: list[Value] | Many,
        result: Callable[[], Value],
    ) -> list[Value] | Many:
        generator = generators[place]
        if isinstance(items, list) and len(items) > 4 * MAX_UNROLLED and not self.emit.builds:
            items = self.many_items(items)
        if isinstance(items, Many):
            return self._generate_many(generators, place, items, result)
        found: list[Value] = []
        many: Many | None = None
        if generator.ifs and self.emit.builds:
            return self._generate_many(generators, place, items, result)
        for item in self.in_turn(items):
            self.assign(generator.target, item)
            entry = self.knowledge.path
            kept = self._kept(generator)
            if kept is False:
                continue
            if kept is None and len(items) > _MAX_OPEN:
                self.knowledge.path = entry
                return self._generate_many(generators, place, self.many_items(items), result)
            number = self.emit.fresh("kept") if kept is None else None
            inner = self._inner(generators, place, result)
            if kept is None:
                self.knowledge.path = entry
            if isinstance(inner, Many) or number is not None:
                piece = inner if isinstance(inner, Many) else self.many_items(inner)
                if number is not None:
                    piece = Many(piece.element, number)
                so_far = many if many is not None else tuple(found)
                many = self.many_of(so_far, piece)
            elif many is not None:
                many = self.many_of(many, tuple(inner))
            else:
                found += inner
        return found if many is None else many

    def _inner(
        self, generators: Sequence[ast.comprehension], place: int, result: Callable[[], Value]
    ) -> list[Value] | Many:
        if place + 1 == len(generators):
            self.steps += not self.emit.builds
            return [self.settle(result())]
        source = self.read_once(self.iterated(generators[place + 1].iter))
        items = self.sequence(source)
        with self._in_turns(source):
            return self._generate(generators, place + 1, items, result)

    @contextmanager
    def _in_turns(self, source: Value) -> Iterator[None]:
        """Refuse code for the items of an iterator that reads what the iterator's changes.

        The items are there before that code runs, which Python runs in between.
        """
        late = self.heap.late
        if not isinstance(source, Stream) or not self.emit.literal:
            yield
            return
        late.looped.add(source.key)
        try:
            yield
        finally:
            late.looped.discard(source.key)
        if late.changed(source.key):
            self.heap.refuse_unread()

    def _kept(self, generator: ast.comprehension) -> bool | None:
        """Return whether an item passes the conditions; None where nobody can tell.

        The path is then that of an item that passes, until the caller puts it back.
        """
        open_ = False
        for test in generator.ifs:
            condition = self.decide(self.condition(test))
            if condition is False:
                return False
            if isinstance(condition, Term):
                open_ = True
                if not self.emit.builds:
                    self.knowledge.path = self.knowledge.path.taking(condition)
        return None if open_ else True

    def _generate_many(
        self,
        generators: Sequence[ast.comprehension],
        place: int,
        items: Many | list[Value],
        result: Callable[[], Value],
    ) -> list[Value] | Many:
        generator = generators[place]

        def step(k: Dim) -> tuple[bool | None, list[Value] | Many]:
            self.assign(generator.target, items.item(k) if isinstance(items, Many) else items[0])
            return self._kept(generator), self._inner(generators, place, result)

        def visit(item: Value, give: Callable[[list[Value] | Many], None]) -> None:
            self.assign(generator.target, item)
            self._under(generator.ifs, lambda: give(self._inner(generators, place, result)))

        plain = place + 1 == len(generators) and not generator.ifs
        return self.domain.gather(generator, items, step, visit, plain=plain)

    def _under(self, tests: Sequence[ast.expr], run: Callable[[], None]) -> None:
        """Run something where all conditions hold."""
        if not tests:
            run()
            return
        condition = self.decide(self.condition(tests[0]))
        if isinstance(condition, Term):
            text = self.collector.text(tests[0])
            self.fork(condition, lambda: self._under(tests[1:], run), lambda: None, text)
        elif condition:
            self._under(tests[1:], run)


def _inner_frame(key: int, outer: Frame) -> Frame:
    """Return the frame of a comprehension within another one; ``key`` is that of its names."""
    return Frame(
        key, outer.file, outer.module, outer, outer.is_user, receiver=outer.receiver, caller=outer
    )


def _reads_in_turn(node: ast.GeneratorExp, receiver: ast.expr) -> bool:
    """Whether what a generator expression does for each item reads an object."""
    first = node.generators[0]
    parts = [node.elt, *first.ifs, *node.generators[1:]]
    wanted = ast.dump(receiver)
    return any(
        isinstance(part, type(receiver)) and ast.dump(part) == wanted
        for each in parts
        for part in ast.walk(each)
    )


def constant_of(frame: Frame | None, node: ast.Set) -> frozenset[Any] | None:
    """Return the constant that Python makes of constants in braces; None for others."""
    try:
        values = frozenset(map(ast.literal_eval, node.elts))
    except (TypeError, ValueError):
        return None
    while frame is not None and (frame.function is None or frame.function.host is None):
        frame = frame.parent
    host = None if frame is None or frame.function is None else frame.function.host
    return constant_set(values, getattr(host, "__code__", None))


@lru_cache(maxsize=256)
def _adding(receiver: ast.expr, node: ast.GeneratorExp, name: str) -> ast.stmt | None:
    """Return the loop that adds each item of a generator expression to a container.

    ``name`` is that of the method, empty for dictionaries; None where an item of these is not
    written as a key and a value.
    """
    made: ast.stmt
    if not name:
        if not isinstance(node.elt, ast.Tuple) or len(node.elt.elts) != 2:
            return None
        key, value = node.elt.elts
        made = ast.Assign([ast.Subscript(receiver, key, ast.Store())], value)
    else:
        made = ast.Expr(ast.Call(ast.Attribute(receiver, name, ast.Load()), [node.elt], []))
    for generator in reversed(node.generators):
        for test in reversed(generator.ifs):
            made = ast.If(test, [made], [])
        made = ast.For(generator.target, generator.iter, [made], [])
    for part in ast.walk(made):
        if isinstance(part, ast.expr | ast.stmt) and not hasattr(part, "lineno"):
            ast.copy_location(part, node)
    return made
