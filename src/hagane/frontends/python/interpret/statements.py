"""Statements of Python over abstract values."""

from __future__ import annotations

import ast
import enum
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import DynamicClassAttribute
from typing import Any

from hagane.frontends.python.interpret.assigning import Assignments
from hagane.frontends.python.interpret.matching import as_branches
from hagane.frontends.python.interpret.setting.metaclasses import refuse_metaclass
from hagane.frontends.python.interpret.tables import Tables
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.objects import (
    Class,
    Frame,
    Function,
    Instance,
    Wrapped,
)
from hagane.frontends.python.values.values import (
    MISSING,
    Host,
    Library,
    Unknown,
    Value,
)

# Attributes of tensors that change no content; those that give one another content, and all of it.
_OF_GRADIENTS = ("grad", "requires_grad", "name", "grad_var")
_PARTS = ("flat", "real", "imag")
_CONTENT = ("data", "array", "shape", "dtype", "strides", "T", *_PARTS)
_STEPS = 16  # statements between two looks at the clock

_OWN_KEYWORDS = (None, "metaclass")  # of a class statement: those that no hook gets


def _documents(decorator: ast.expr) -> bool:
    """Whether a decorator by its name writes the text of documentation, which nothing computes."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name.endswith(("docstring", "docstrings"))


class Statements(Assignments):
    """Runs statements, one path at a time."""

    tables: Tables

    def execute(self, body: Sequence[ast.stmt]) -> None:
        """Run statements until they end or the path does."""
        for statement in body:
            if self.dead:
                return
            self._execute_one(statement)

    def _execute_one(self, statement: ast.stmt) -> None:
        frame = self.frame
        assert frame is not None
        self.collector.nodes[frame.key] = statement
        self.steps += 1
        if self.steps % _STEPS == 0:
            self.look_at_clock()
        try:
            self.domain.interpret(statement)
        except CheckError as error:
            error.within = error.within or self.collector.within(frame)
            if self.handlers:
                if self.catches(error):
                    raise
                if self.dead and error.code != "raises" and error.first is None:
                    return
            if not (frame.is_user or self.attempts):
                raise
            self.collector.error(error, frame, statement, self.path_text())

    def _do_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.unused = node.value
            self.evaluate(node.value)

    def _do_Pass(self, node: ast.Pass) -> None:
        pass

    # Names.

    def _do_Global(self, node: ast.Global) -> None:
        assert self.frame is not None
        self.frame.outer.update(dict.fromkeys(node.names, "global"))

    def _do_Nonlocal(self, node: ast.Nonlocal) -> None:
        assert self.frame is not None
        self.frame.outer.update(dict.fromkeys(node.names, "nonlocal"))

    # Branches.

    def _do_If(self, node: ast.If) -> None:
        condition = self.decide(self.condition(node.test))
        if isinstance(condition, bool):
            self.execute(node.body if condition else node.orelse)
            return
        text = self.collector.text(node.test)
        self.fork(
            condition, lambda: self.execute(node.body), lambda: self.execute(node.orelse), text
        )

    def _do_Match(self, node: ast.Match) -> None:
        if node not in self.matches:
            self.matches[node] = as_branches(node)
        self.execute(self.matches[node])

    def _do_Return(self, node: ast.Return) -> None:
        value = None if node.value is None else self.evaluate(node.value)
        frame: Frame | None = self.frame
        assert frame is not None
        if not self.dead:
            self.leave("return", value, frame.exits)

    # Definitions.

    def _do_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        value: Value = self.make_function(node, node.name)
        if self.frame is not None and self.frame.cls is not None:
            value = self._owned(value, self.frame.cls)
        for decorator in reversed(node.decorator_list):
            if not _documents(decorator):
                value = self._decorated(self.evaluate(decorator), value)
        self.bind_name(node.name, value)

    _do_AsyncFunctionDef = _do_FunctionDef

    def _decorated(self, decorator: Value, value: Value) -> Value:
        if isinstance(decorator, Unknown):
            return value
        if isinstance(decorator, Library) and self.tables.is_transparent(decorator.name):
            return value
        if isinstance(decorator, Host) and decorator.object in (
            property,
            staticmethod,
            classmethod,
        ):
            return Wrapped(decorator.object.__name__, value)
        if isinstance(decorator, Host) and decorator.object in (
            DynamicClassAttribute,
            enum.property,
        ):
            return Wrapped("property", value)
        result = self.call(decorator, [value], {})
        return value if isinstance(result, Unknown) else result

    def _do_ClassDef(self, node: ast.ClassDef) -> None:
        try:
            value = self._defined_class(node)
        except CheckError as error:
            self.bind_name(node.name, Unknown(error.message, told=True, failed=True))
            raise
        self.bind_name(node.name, value)

    def _defined_class(self, node: ast.ClassDef) -> Value:
        outer = self.frame
        assert outer is not None
        bases = tuple(self.as_base(self.evaluate(base)) for base in node.bases)
        cls = Class(self.heap.new({}), node.name, bases, outer.module)
        self._inherit(cls)
        if self.emit.builds:
            given = next((k.value for k in node.keywords if k.arg == "metaclass"), None)
            refuse_metaclass(self, cls, None if given is None else self.evaluate(given))
        frame = Frame(
            cls.key, outer.file, outer.module, outer, outer.is_user, is_class=True, caller=outer,
            cls=cls,
        )  # fmt: skip
        self.frame = frame
        try:
            for statement in node.body:
                self._class_statement(cls, statement)
        finally:
            self.frame = outer
        content = self.heap[cls]
        for name, found in list(content.items()):
            content[name] = self._owned(found, cls)
        if "__eq__" in content:
            cls.flags.add("by value")
        if "enum" in cls.flags:
            self.make_members(cls)
        self._tell_of_class(
            cls,
            {k.arg: self.evaluate(k.value) for k in node.keywords if k.arg not in _OWN_KEYWORDS},
        )
        value: Value = cls
        for decorator in reversed(node.decorator_list):
            if not _documents(decorator):
                value = self._decorated(self.evaluate(decorator), value)
        return value

    def made_class(
        self, name: str, bases: Sequence[Value], attributes: Mapping[Any, Value]
    ) -> Value:
        """Return the class that ``type(name, bases, attributes)`` makes."""
        assert self.frame is not None
        own = tuple(map(self.as_base, bases))
        cls = Class(self.heap.new({}), name, own, self.frame.module)
        self._inherit(cls)
        self.heap[cls].update({key: self._owned(v, cls) for key, v in attributes.items()})
        self._tell_of_class(cls, {})
        return cls

    def _tell_of_class(self, cls: Class, keywords: dict[str, Value]) -> None:
        """Call what Python calls once a class is made: ``__set_name__``, ``__init_subclass__``."""
        for name, value in list(self.heap[cls].items()):
            if isinstance(value, Instance) and value.cls is not cls:
                hook = self.method_of(value, "__set_name__")
                if hook is not MISSING:
                    self.call(hook, [cls, name], {})
        told = self.find_in_class(cls, "__init_subclass__", after=cls)
        if told is not MISSING:
            inner = told.function if isinstance(told, Wrapped) else told
            self.call(inner, [cls], keywords)

    def _inherit(self, cls: Class) -> None:
        for base in cls.bases:
            if isinstance(base, Class):
                cls.flags.update(base.flags)
            elif isinstance(base, Library | Host):
                cls.flags.update(self.tables.class_flags(base))

    def _class_statement(self, cls: Class, statement: ast.stmt) -> None:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            default: Value = MISSING
            if statement.value is not None:
                default = self.evaluate(statement.value)
                self.heap[cls][statement.target.id] = default
            self.add_field(cls, statement.target.id, statement.annotation, default)
            return
        self._execute_one(statement)

    def _owned(self, value: Value, cls: Class) -> Value:
        """Return a function of a class body that knows its class, for ``super()``."""
        if isinstance(value, Function) and value.owner is None:
            return replace(value, owner=cls)
        if isinstance(value, Wrapped) and value.kind != "partial":
            return Wrapped(
                value.kind, self._owned(value.function, cls), value.arguments, value.keywords
            )
        return value
