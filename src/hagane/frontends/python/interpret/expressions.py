"""Expressions of Python over abstract values."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from hagane.frontends.python.interpret.arithmetic import (
    apply_plain,
)
from hagane.frontends.python.interpret.comprehensions import constant_of
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.interpret.reading.local_names import local_names
from hagane.frontends.python.report.findings import OPEN, CheckError
from hagane.frontends.python.values.hashed import Step
from hagane.frontends.python.values.memory import UNSET
from hagane.frontends.python.values.objects import Frame, Function
from hagane.frontends.python.values.open_tuples import tuple_of
from hagane.frontends.python.values.values import (
    MISSING,
    DictRef,
    Doubtful,
    Library,
    Many,
    Origin,
    Stream,
    Tensor,
    Unknown,
    Value,
    is_plain,
)

_ABOUT_KINDS = frozenset(("type", "value", "call", "index", "attribute", "axis"))
_MAX_SOURCES = 4
_MAX_ERRORS = 3  # of one expression, each for sizes that the one before does not hit


class Expressions(Core):
    """Evaluates expressions; their values and origins are recorded on the way."""

    def evaluate(self, node: ast.expr) -> Value:
        """Return the value of an expression in the current frame.

        An error of the user's code is recorded here, at the innermost expression, and the value
        is unknown from there on.
        """
        frame = self.frame
        assert frame is not None
        nodes = self.collector.nodes
        before = nodes.get(frame.key)
        nodes[frame.key] = node
        try:
            value = self._checked(node, frame)
            if frame.is_user and isinstance(value, Tensor) and value.origin is None:
                self._mark(value, frame, node)
        finally:
            if before is not None:
                nodes[frame.key] = before
        if self.emit.builds:
            frame.made[node] = value
        if isinstance(value, Doubtful):
            self.collector.doubted += 1
        if frame.is_user and not self.collector.muted and not self.dead:
            if isinstance(value, Unknown) and not value.told:
                value = self.lost(value.reason)  # lost where nothing was reported
            self.collector.type(frame, node, value, self.show(value))
        return value

    def evaluate_to_end(self, node: ast.expr, *, whole: bool = True) -> Value:
        """Return the value of an expression; an iterator made by it is run to its end at once.

        Args:
            node: The expression.
            whole: Whether all items are taken before the program runs anything else.
        """
        late = self.emit.late()
        if whole and isinstance(node, ast.GeneratorExp):
            self.taken_whole = node
        value = self.evaluate(node)
        if isinstance(value, Stream) and isinstance(node, ast.GeneratorExp | ast.Call):
            self.emit.forget_late(late)
        return value

    def _checked(self, node: ast.expr, frame: Frame) -> Value:
        """Return the value of an expression; after an error, that of the sizes it does not hit."""
        for _ in range(_MAX_ERRORS):
            path = self.knowledge.path
            try:
                return self.domain.interpret(node)
            except CheckError as raised:
                error = raised if raised.code == OPEN else self._excused(raised, node)
                if self.handlers and self.catches(error):
                    raise
                if self.dead and self.handlers:
                    return Unknown(error.message, told=True, failed=True)
                if not (frame.is_user or self.attempts):
                    raise error from None
                self.collector.error(error, frame, node, self.path_text())
                told = not self.collector.muted
                open_ = error.is_open or error.code in (OPEN, "capture")  # not of the program
                failed = Unknown(error.message, told=told, failed=not open_)
                if error.claim is None or not self.knowledge.possible(error.claim):
                    break
                self.knowledge.path = path.taking(error.claim)
        return failed

    def _excused(self, error: CheckError, node: ast.expr) -> CheckError:
        """Return an error; where it is about a value of a module that nobody knows, an open one.

        Such a value has its name alone, which is neither a number nor a tensor.
        """
        if error.code not in _ABOUT_KINDS:
            return error
        for part in ast.walk(node):
            if not isinstance(part, ast.Name | ast.Attribute) or not _is_dotted(part):
                continue
            self.collector.muted += 1
            try:
                value = self.visit(part)
            except CheckError:
                continue
            finally:
                self.collector.muted -= 1
            if isinstance(value, Library) and not self.tables.knows(value.name):
                top = value.name.partition(".")[0]
                return CheckError(
                    OPEN,
                    f"the value of '{value.name}' is not known: '{top}' is no library that hagane "
                    "knows, and no module beside the file or in its project",
                )
        return error

    def visit(self, node: ast.expr | ast.stmt) -> Value:
        """Return the value of an expression, or run a statement, with Python's own meaning."""
        name = type(node).__name__
        is_statement = isinstance(node, ast.stmt)
        visitor = getattr(self, f"_do_{name}" if is_statement else f"_{name}", None)
        if visitor is None:
            kind = "statements" if is_statement else "expressions"
            lost = self.lost(f"'{name}' {kind} are not understood")
            for part in ast.walk(node) if is_statement else ():
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                    self.assign(part, lost)
            return lost
        return visitor(node)

    def _mark(self, value: Tensor, frame: Frame, node: ast.expr) -> None:
        """Remember where a tensor came from, and from which tensors."""
        sources: list[Tensor] = []
        queue = [value]
        for current in queue:
            producer = current.value.producer()
            for graph_value in producer.inputs if producer is not None else ():
                found = None if graph_value is None else self.emit.tensors.get(graph_value)
                if found is None:
                    continue
                if found.origin is not None:
                    sources.append(found)
                elif len(queue) < 12:
                    queue.append(found)
        text = self.collector.text(node)
        place = self.collector.place(frame.file, node)
        value.origin = Origin(place, text, tuple(sources[:_MAX_SOURCES]))
        self.emit.tensors[value.value] = value

    # Leaves.

    def _Constant(self, node: ast.Constant) -> Value:
        return node.value

    def _Name(self, node: ast.Name) -> Value:
        return self.settle(self.look_up(node.id))

    def look_up(self, name: str) -> Value:
        """Return the value of a name in the current frame."""
        assert self.frame is not None
        where: Frame | None = self.frame
        while where is not None:
            # Names of a class body are not seen from functions inside it.
            if not where.is_class or where is self.frame:
                found = self.heap[where.key].get(name, MISSING)
                if found is not MISSING:
                    if self.heap.late.noted:
                        self.heap.late.note(where.key, name)
                    if self.heap.late.owed:
                        self.heap.check_owed(where.key, name)
                    if (where.key, name) in self.heap.contents[UNSET] or (
                        self.handlers and name in self.heap.partly.get(where.key, ())
                    ):
                        return self.name_where_set(found, name, where.key)
                    return found
                if where.function is not None and name in local_names(where.function.node):
                    kind = "UnboundLocalError" if where is self.frame else "NameError"
                    raise CheckError("name", f"{kind}: the name '{name}' is not set here yet")
            where = where.parent
        return self.global_name(self.frame.module, name)

    def _JoinedStr(self, node: ast.JoinedStr) -> Value:
        return self.joined_text([self.evaluate(part) for part in node.values])

    def _FormattedValue(self, node: ast.FormattedValue) -> Value:
        value = self.evaluate(node.value)
        form = "" if node.format_spec is None else self.evaluate(node.format_spec)
        if is_plain(value) and isinstance(form, str):
            shown = repr(value) if node.conversion == ord("r") else value
            return apply_plain(format, shown, form)
        if form == "" and node.conversion == -1:
            return self.text_of_number(value)
        return self.outside("a text that depends on sizes")

    def _Lambda(self, node: ast.Lambda) -> Value:
        return self.make_function(node, "<lambda>")

    def make_function(
        self, node: ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef, name: str
    ) -> Function:
        """Return a function with its defaults evaluated."""
        assert self.frame is not None
        arguments = node.args
        defaults = tuple(self.evaluate(default) for default in arguments.defaults)
        keywords = {
            argument.arg: self.evaluate(default)
            for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            if default is not None
        }
        around: Frame | None = self.frame
        while around is not None and not around.kept:
            around.kept = True
            around = around.parent
        return Function(node, name, self.frame, defaults, keywords)

    # Containers.

    def _Tuple(self, node: ast.Tuple) -> Value:
        return tuple_of(self.heap, self._items(node.elts))

    def _List(self, node: ast.List) -> Value:
        return self.new_list(self._items(node.elts))

    def _Set(self, node: ast.Set) -> Value:
        items = self._items(node.elts)
        if isinstance(items, list) and all(map(self.is_member, items)):
            fixed = constant_of(self.frame, node) if len(node.elts) > 2 else None
            step = None if fixed is None else Step(None, "literal", (fixed,))
            return self.new_set(items, step=step)
        return self.lost("a set of values that are not known")

    def _Dict(self, node: ast.Dict) -> Value:
        result: dict[Any, Value] = {}
        for key_node, value_node in zip(node.keys, node.values, strict=True):
            key = None if key_node is None else self.evaluate(key_node)
            value = self.evaluate(value_node)
            if key_node is None:
                content = self.heap[value] if isinstance(value, DictRef) else None
                if not isinstance(content, dict):
                    return self.lost("a dictionary whose keys are not known")
                result.update(content)
                continue
            known = self.key_in(result, key)
            if known is MISSING:
                return self.lost("a dictionary whose keys are not known")
            result[known] = value
        return self.new_dict(result)

    def _items(self, nodes: Sequence[ast.expr]) -> list[Value] | Many:
        items: list[Value] = []
        whole: Value = None  # a list of those before, if their number is not known
        for node in nodes:
            if not isinstance(node, ast.Starred):
                items.append(self.evaluate(node))
                continue
            found = self.sequence(self.evaluate_to_end(node.value))
            if not isinstance(found, Many):
                items += found
                continue
            for part in (items, found):
                if part:
                    more = self.call(self.lift(list), [self.new_list(part)], {})
                    whole = more if whole is None else self.domain.operate(ast.Add, whole, more)
            items = []
        if whole is None:
            return items
        if items:
            whole = self.domain.operate(ast.Add, whole, self.new_list(items))
        return self.sequence(whole)

    def _Starred(self, node: ast.Starred) -> Value:
        return self.evaluate(node.value)

    def _Slice(self, node: ast.Slice) -> Value:
        parts = (node.lower, node.upper, node.step)
        return slice(*(None if part is None else self.evaluate(part) for part in parts))

    def _Yield(self, node: ast.Yield) -> Value:
        value = None if node.value is None else self.evaluate(node.value)
        assert self.frame is not None
        if self.frame.resume is not None:
            self.frame.resume(value)
        else:
            self._yielded([value])
            self.emit.handed(value)
            if node is not self.unused:
                return self.lost("a value that is sent into a generator")
        return None

    def _YieldFrom(self, node: ast.YieldFrom) -> Value:
        over = self.evaluate(node.value)
        self._yielded(self.sequence(over))
        return self.results.get(over.key) if isinstance(over, Stream) else None

    def _yielded(self, items: list[Value] | Many) -> None:
        frame = self.frame
        while frame is not None and frame.function is None:
            frame = frame.parent
        assert frame is not None
        self.extend(self.heap[frame.key]["<yielded>"], self.new_list(items))

    def _NamedExpr(self, node: ast.NamedExpr) -> Value:
        value = self.evaluate(node.value)
        assert self.frame is not None
        inner = where = self.frame
        while where.function is None and where.parent is not None and not where.is_class:
            where = where.parent  # out of comprehensions
        self.frame = where
        self.bind_name(node.target.id, value)
        self.frame = inner
        return value

    def _IfExp(self, node: ast.IfExp) -> Value:
        condition = self.decide(self.condition(node.test))
        if isinstance(condition, bool):
            return self.evaluate(node.body if condition else node.orelse)
        return self.fork(
            condition,
            lambda: self.evaluate(node.body),
            lambda: self.evaluate(node.orelse),
            self.collector.text(node.test),
        )


def _is_dotted(node: ast.expr) -> bool:
    """Whether an expression is a name, or names with dots between them."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)
