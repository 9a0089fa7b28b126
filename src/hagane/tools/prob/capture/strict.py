"""Statements that capture refuses, because following them would give another distribution."""

from __future__ import annotations

import ast
import functools
import weakref
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from hagane.errors import HaganeError
from hagane.frontends.python.interpret.arithmetic import BINARY
from hagane.frontends.python.interpret.setting.metaclasses import refuse_construction
from hagane.frontends.python.values.objects import (
    Class,
    Frame,
    Instance,
    is_compared_by_value,
)
from hagane.frontends.python.values.values import (
    MISSING,
    Choice,
    DictRef,
    Host,
    ListRef,
    Real,
    SetRef,
    Truth,
    Unknown,
    Value,
    alternatives,
)
from hagane.symbolic import Expr
from hagane.tools.prob.capture.turns import Turns

_GLOBAL = "'%s' is not supported: what a run leaves behind would change the next one"
_YIELD = "'yield' is not supported; return a list"
_REFUSED: dict[type[ast.AST], str] = {
    ast.Try: "'try' is not supported; a run that raises has no value",
    ast.With: "'with' is not supported",
    ast.Global: _GLOBAL % "global",
    ast.Yield: _YIELD,
    ast.YieldFrom: _YIELD,
    ast.Await: "'await' is not supported",
}
_CONTAINERS = ListRef | DictRef | SetRef
_ONCE = (functools.cache, functools.lru_cache, functools.cached_property)
_LOOKING = (locals, vars, dir, globals, eval, exec)
_MOMENT = (weakref.ref, weakref.proxy, weakref.WeakMethod, weakref.finalize, id)


class Strict(Turns):
    """Refuses programs that the interpreter does not follow exactly."""

    def interpret(self, node: ast.expr | ast.stmt) -> Value:
        """Return the value of an expression, or run a statement, if it can be followed exactly."""
        if type(node) in _REFUSED:
            self.refuse(_REFUSED[type(node)])
        if isinstance(node, ast.stmt):
            return self._statement(node)
        try:
            value = self._expression(node)
        except HaganeError:
            raise
        except (TypeError, ValueError, LookupError, AttributeError, AssertionError):
            # The interpreter itself allows fewer arguments of a function of Python.
            self.refuse("this cannot be followed; write it with plain numbers, lists and tuples")
        if isinstance(value, Unknown):
            self.refuse(value.reason.replace("depends on sizes", "depends on draws"))
        if isinstance(value, Real) and value.formula is None:
            self.refuse("this is a real number; draws are integers: use // and %")
        self._note_keys(value)
        return value

    def _statement(self, node: ast.stmt) -> Value:
        match node:
            case ast.AugAssign():
                return self._augmented(node)
            case ast.Assert():
                return self._assertion(node)
            case ast.Raise():
                raised = self.collector.text(node.exc) if node.exc else "again"
                self.refuse(
                    f"a possible run raises {raised}; to leave such runs out, use prob.observe"
                )
            case ast.Nonlocal():
                self._only_inside(node)
        return self.core.visit(node)

    def _expression(self, node: ast.expr) -> Value:
        match node:
            case ast.Name():
                return self.named_value(node)
            case ast.Compare():
                return self.compared(node)
            case ast.GeneratorExp():
                return self._generated(node)
        return self.core.visit(node)

    def named_value(self, node: ast.Name) -> Value:
        """Return the value of a name, if it is bound on every path to here."""
        value = self.core.visit(node)
        if _unknown_in(value) is not None:
            self.refuse(f"'{node.id}' is not defined on every path to here")
        return value

    def _note_keys(self, value: Value) -> None:
        """Refuse keys and members that draws decide, and remember which contents have keys."""
        if isinstance(value, DictRef):
            self.dictionaries.add(value.key)
        if isinstance(value, DictRef | SetRef):
            what = "a key of a dictionary" if isinstance(value, DictRef) else "an item of a set"
            content = self.core.heap[value]
            for key in content if isinstance(content, dict | tuple) else ():
                if is_compared_by_value(key):
                    self.refuse(f"an object with fields that are compared is {what}")
                self.need_known(key, what)

    def bind(self, owner: Value, name: str, value: Value) -> Value:
        """Return a value under the name it is assigned to; the value before stays as it is."""
        if owner is None:
            return self._called(value, name)
        if not isinstance(owner, Instance) or owner.host is not None:
            self.refuse(f"the attribute '{name}' is set on what was there before the run")
        return value

    def _called(self, value: Value, label: str) -> Value:
        if isinstance(value, tuple) and type(value) is tuple:
            return tuple(self._called(item, label) for item in value)
        if isinstance(value, Expr):
            value = self.named(value, label)
            self.record.call(self.knowledge.term(value), label)
        elif isinstance(value, Truth):
            term = self.record.named_truth(value.term, self.span, label)
            self.record.call(term, label)
            return self.core.as_truth(term)
        return value

    def _augmented(self, node: ast.AugAssign) -> None:
        # The place is evaluated once.
        target = node.target
        if isinstance(target, ast.Subscript):
            owner, index = self.core.evaluate(target.value), self.core.evaluate(target.slice)
            left = self.core.item(owner, index)
            self.core.set_item(owner, index, self._added(node, left))
        elif isinstance(target, ast.Attribute):
            owner = self.core.evaluate(target.value)
            left = self.core.attribute(owner, target.attr)
            self.core.set_attribute(owner, target.attr, self._added(node, left))
        else:
            left = self.core.evaluate(ast.copy_location(ast.Name(target.id, ast.Load()), target))
            self.core.assign(target, self._added(node, left))

    def _added(self, node: ast.AugAssign, left: Value) -> Value:
        right = self.core.evaluate(node.value)
        containers = (one for one in alternatives(left) if isinstance(one, _CONTAINERS))
        if isinstance(left, Choice) and any(containers):
            self.refuse("one of two lists is changed, and draws decide which")
        changed = self.core.change(type(node.op), left, right)
        if changed is not MISSING:
            return changed
        if isinstance(left, Instance):
            own = self.core.method_of(left, f"__i{BINARY[type(node.op)][0]}__")
            if own is not MISSING:
                return self.core.call(own, [right], {})
        return self.core.binary(type(node.op), left, right)

    def _assertion(self, node: ast.Assert) -> None:
        decided = self.core.decide(self.core.condition(node.test))
        if decided is not True:
            self.refuse(
                "the assertion may fail on a possible run; to keep only the runs on which it "
                "holds, use prob.observe"
            )

    def _only_inside(self, node: ast.Nonlocal) -> None:
        frame, heap = self.core.frame, self.core.heap
        for name in node.names:
            where: Frame | None = frame
            while where is not None and (where is frame or name not in heap[where.key]):
                where = where.parent
            if where is None or where.function is None:
                self.refuse(_GLOBAL % "nonlocal")

    def check_unchanged(self) -> None:
        """Refuse a function that changed objects which were there before the run."""
        core = self.core
        for found, value in list(core.lifted.values()):
            match found:
                case list():
                    before: Any = tuple(map(core.lift, found))
                case dict():
                    before = {key: core.lift(item) for key, item in found.items()}
                case set():
                    before = core.heap[core.new_set([core.lift(item) for item in found])]
                case _:
                    continue
            if core.heap[value] != before:
                self.refuse("a list or dictionary from outside is changed; copy it first")

    def _generated(self, node: ast.GeneratorExp) -> Value:
        # Evaluated at once, where Python waits: nothing in it may be seen from outside.
        for part in ast.walk(node):
            if isinstance(part, ast.NamedExpr):
                self.refuse("':=' in a generator expression; use a list comprehension")
        before = len(self.record.steps)
        contents = self.core.heap.snapshot()
        value = self.core.visit(node)
        observed = any(s.name.startswith("observed#") for s in self.record.steps[before:])
        read = self.read_only()
        changed = any(self.core.heap.contents[k] != c for k, c in contents.items() if k not in read)
        if observed or changed:
            self.refuse(
                "a generator expression that observes or changes something; use a list "
                "comprehension"
            )
        return value

    def call(
        self, function: Value, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call any value, if it draws from no other source and each time anew."""
        if isinstance(function, Host):
            self._check_real(function.object, arguments)
        elif isinstance(function, Class):
            refuse_construction(self.core, function)
        value = super().call(function, arguments, keywords)
        self._note_keys(value)
        return value

    def _check_real(self, found: Any, arguments: Sequence[Value]) -> None:
        if any(found is one for one in _ONCE):
            self.refuse("a cached function draws once only; leave the cache out")
        if any(found is one for one in _LOOKING) and not (found is vars and arguments):
            self.refuse(f"'{found.__name__}' tells names, and draws decide which there are")
        if isinstance(getattr(found, "__self__", None), ContextVar) and found.__name__ != "get":
            self.refuse("a context variable, which is older than a run, is changed by it")
        if any(found is one for one in _MOMENT):
            self.refuse(f"'{found.__name__}' tells objects apart by how long they are there")
        module = (getattr(found, "__module__", None) or "").partition(".")[0]
        owner = type(getattr(found, "__self__", None)).__module__
        if "random" in (module, owner) or "numpy" in (module, owner.partition(".")[0]):
            name = getattr(found, "__name__", found)
            self.refuse(f"'{name}' is not known; draw with prob.rand, prob.flip or prob.choose")


def _unknown_in(value: Value) -> Unknown | None:
    if isinstance(value, Choice):
        return _unknown_in(value.yes) or _unknown_in(value.no)
    return value if isinstance(value, Unknown) else None
