"""What a captured function may not do, because following it would give another distribution."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from hagane.errors import HaganeError
from hagane.frontends.python.interpret.arithmetic import BINARY
from hagane.frontends.python.interpret.tables import Tables
from hagane.frontends.python.values.values import (
    MISSING,
    Choice,
    DictRef,
    Frame,
    Function,
    Instance,
    ListRef,
    Real,
    SetRef,
    Truth,
    Unknown,
    Value,
)
from hagane.symbolic import Expr
from hagane.tools.prob.capture.turns import Turns
from hagane.tools.prob.python_function import PythonFunction

_REFUSED = {
    "_do_Try": "'try' is not supported; a run that raises has no value",
    "_do_With": "'with' is not supported",
    "_do_Global": "'global' is not supported: what a run leaves behind would change the next one",
    "_Yield": "'yield' is not supported; return a list",
    "_YieldFrom": "'yield' is not supported; return a list",
    "_Await": "'await' is not supported",
}


class Strict(Turns):
    """Refuses what the interpreter does not follow exactly.

    Args:
        found: The function.
        tables: What it may use of libraries.
    """

    def __init__(self, found: PythonFunction, tables: Tables):
        super().__init__(found, tables)
        self._outside: list[tuple[Value, Any]] = []

    def keep(self, value: Value) -> None:
        """Remember a list or dictionary that was there before the run."""
        if isinstance(value, ListRef | DictRef | SetRef):
            content = self.heap[value]
            self._outside.append((value, dict(content) if type(content) is dict else content))

    def evaluate(self, node: ast.expr) -> Value:
        """Return the value of an expression in the current frame."""
        try:
            value = super().evaluate(node)
        except HaganeError:
            raise
        except (TypeError, ValueError, LookupError, AttributeError, AssertionError):
            # The interpreter itself expects less of what a function of Python may be given.
            self.refuse("this cannot be followed; write it with plain numbers, lists and tuples")
        if isinstance(value, Unknown):
            self.refuse(value.reason.replace("depends on sizes", "depends on draws"))
        if isinstance(value, Real) and value.formula is None:
            self.refuse("this is a real number; draws are integers: use // and %")
        return value

    def _Name(self, node: ast.Name) -> Value:
        value = super()._Name(node)
        lost = _unknown_in(value)
        if lost is not None:
            self.refuse(f"'{node.id}' is not defined on every path to here")
        return value

    def assign(self, target: ast.expr, value: Value) -> None:
        """Bind a target to a value; formulas get the name they are assigned to."""
        if isinstance(target, ast.Name):
            value = self._called(value, target.id)
        super().assign(target, value)

    def _called(self, value: Value, label: str) -> Value:
        if isinstance(value, tuple) and type(value) is tuple:
            return tuple(self._called(item, label) for item in value)
        if isinstance(value, Expr):
            value = self.named(value, label)
            self.record.call(self.knowledge.term(value), label)
        elif isinstance(value, Truth):
            term = self.record.named_truth(value.term, self.span, label)
            self.record.call(term, label)
            return self.as_truth(term)
        return value

    def _do_AugAssign(self, node: ast.AugAssign) -> None:
        # The place is evaluated once.
        target = node.target
        if isinstance(target, ast.Subscript):
            owner, index = self.evaluate(target.value), self.evaluate(target.slice)
            left = self.item(owner, index)
            self._set_item(owner, index, self._added(node, left))
        elif isinstance(target, ast.Attribute):
            owner = self.evaluate(target.value)
            left = self.attribute(owner, target.attr)
            self.set_attribute(owner, target.attr, self._added(node, left))
        else:
            left = self.evaluate(ast.copy_location(ast.Name(target.id, ast.Load()), target))
            self.assign(target, self._added(node, left))

    def _added(self, node: ast.AugAssign, left: Value) -> Value:
        right = self.evaluate(node.value)
        if isinstance(left, Choice) and not isinstance(right, int | Expr | Truth):
            self.refuse("one of two lists is changed, and draws decide which")
        if isinstance(left, ListRef) and isinstance(node.op, ast.Add):
            self.extend(left, right)
            return left
        if isinstance(left, Instance):
            own = self.method_of(left, f"__i{BINARY[type(node.op)][0]}__")
            if own is not MISSING:
                return self.call(own, [right], {})
        return self.binary(type(node.op), left, right)

    def _do_Assert(self, node: ast.Assert) -> None:
        decided = self.decide(self.truth(self.evaluate(node.test)))
        if decided is not True:
            self.refuse(
                "the assertion may fail on a possible run; to keep only the runs on which it "
                "holds, use prob.observe"
            )

    def _do_Raise(self, node: ast.Raise) -> None:
        self.refuse(
            f"a possible run raises {self.collector.text(node.exc) if node.exc else 'again'}; to "
            "leave such runs out, use prob.observe"
        )

    def _do_Nonlocal(self, node: ast.Nonlocal) -> None:
        for name in node.names:
            where: Frame | None = self.frame
            while where is not None and (where is self.frame or name not in self.heap[where.key]):
                where = where.parent
            if where is None or where.function is None:
                self.refuse(_REFUSED["_do_Global"].replace("global", "nonlocal"))
        super()._do_Nonlocal(node)

    def set_attribute(self, receiver: Value, name: str, value: Value) -> None:
        """Set an attribute of an object that the function made."""
        receiver = self.settle(receiver)
        if not isinstance(receiver, Instance) or receiver.host is not None:
            self.refuse(f"the attribute '{name}' is set on what was there before the run")
        super().set_attribute(receiver, name, value)

    def check_unchanged(self) -> None:
        """Refuse a function that changed objects which were there before the run."""
        for value, before in self._outside:
            if self.heap[value] != before:
                self.refuse("a list or dictionary from outside is changed; copy it first")

    def _GeneratorExp(self, node: ast.GeneratorExp) -> Value:
        # Evaluated at once, where Python waits: nothing in it may be seen from outside.
        for part in ast.walk(node):
            if isinstance(part, ast.NamedExpr):
                self.refuse("':=' in a generator expression; use a list comprehension")
        before = len(self.record.steps)
        contents = self.heap.snapshot()
        value = super()._GeneratorExp(node)
        observed = any(s.name.startswith("observed#") for s in self.record.steps[before:])
        read = {*self.outside, *(module.key for module in self.modules.values())}
        changed = any(self.heap.contents[k] != c for k, c in contents.items() if k not in read)
        if observed or changed:
            self.refuse(
                "a generator expression that observes or changes something; use a list "
                "comprehension"
            )
        return value

    def call_real(
        self, found: Any, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call a real function: for real where everything is known."""
        module = (getattr(found, "__module__", None) or "").partition(".")[0]
        owner = type(getattr(found, "__self__", None)).__module__
        if "random" in (module, owner) or "numpy" in (module, owner.partition(".")[0]):
            name = getattr(found, "__name__", found)
            self.refuse(f"'{name}' is not known; draw with prob.rand, prob.flip or prob.choose")
        return super().call_real(found, arguments, keywords)

    def new_dict(self, items: Mapping[Any, Value] | None = None, kind: str = "dict") -> DictRef:
        """Return a new dictionary, whose keys have to be known."""
        for key in items or {}:
            self.need_known(key, "a key of a dictionary")
        made = super().new_dict(items, kind)
        self.dictionaries.add(made.key)
        return made

    def new_set(self, items: Sequence[Value]) -> SetRef:
        """Return a new set of known values."""
        for item in items:
            self.need_known(item, "an item of a set")
        return super().new_set(items)

    def check_arguments(self, frame: Frame, function: Function) -> None:
        """Leave annotations alone: they say nothing of shapes here."""

    def check_result(self, frame: Frame, function: Function, result: Value) -> Value:
        """Leave annotations alone: they say nothing of shapes here."""
        return result

    def check_annotated(self, name: str, annotation: ast.expr, value: Value) -> Value:
        """Leave annotations alone: they say nothing of shapes here."""
        return value

    def _call_cache(self, function: Value) -> Value:
        self.refuse("a cached function draws once only; leave the cache out")

    def _call_lru_cache(self, function: Value = None, **_: Value) -> Value:
        self.refuse("a cached function draws once only; leave the cache out")

    _call_cached_property = _call_cache


def _refusing(message: str) -> Any:
    def refuse(self: Strict, node: ast.AST) -> None:
        self.refuse(message)

    return refuse


for _method, _message in _REFUSED.items():
    setattr(Strict, _method, _refusing(_message))


def _unknown_in(value: Value) -> Unknown | None:
    if isinstance(value, Choice):
        return _unknown_in(value.yes) or _unknown_in(value.no)
    return value if isinstance(value, Unknown) else None
