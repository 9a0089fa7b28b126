"""Built-in functions of single values: conversions; real functions."""

from __future__ import annotations

import ast
import builtins
import contextvars
import enum
import inspect
import operator
import random
import sys
import types
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar, get_origin

from hagane.frontends.python.interpret.arithmetic import apply_plain, round_down
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.standard import records, signatures, standard
from hagane.frontends.python.standard.arguments import Arguments
from hagane.frontends.python.standard.kept import KeptResults
from hagane.frontends.python.standard.outside import World
from hagane.frontends.python.standard.questions import Questions
from hagane.frontends.python.standard.weak import WeakReferences
from hagane.frontends.python.values.in_python import in_python
from hagane.frontends.python.values.members import Member
from hagane.frontends.python.values.objects import (
    Class,
    Instance,
    Wrapped,
)
from hagane.frontends.python.values.stand_ins import identity
from hagane.frontends.python.values.values import (
    MISSING,
    Choice,
    Device,
    DictRef,
    DType,
    Host,
    Library,
    LibraryMethod,
    ListRef,
    Method,
    Outside,
    Real,
    Ref,
    SetRef,
    Stream,
    Tensor,
    Unknown,
    Value,
    is_plain,
    is_size,
)
from hagane.symbolic import Dim, Expr, absolute

# Python's classes of values that stand for themselves.
_FROM_KEYS = (dict.fromkeys, OrderedDict.fromkeys)
_OPERATORS: dict[Any, type[ast.operator | ast.cmpop | ast.Subscript]] = {
    operator.add: ast.Add, operator.sub: ast.Sub, operator.mul: ast.Mult,
    operator.truediv: ast.Div, operator.floordiv: ast.FloorDiv, operator.mod: ast.Mod,
    operator.matmul: ast.MatMult, operator.pow: ast.Pow, operator.getitem: ast.Subscript,
    operator.eq: ast.Eq, operator.ne: ast.NotEq, operator.lt: ast.Lt, operator.le: ast.LtE,
    operator.gt: ast.Gt, operator.ge: ast.GtE,
}  # fmt: skip


_PLAIN = (object, int, float, str, bytes)  # classes whose __new__ enumerations call


# Iterators with an item for each of their sources' items: 1 in the same order, -1 from behind.
_ORDERS = {"iter": 1, "enumerate": 1, "zip": 1, "map": 1, "reversed": -1}


class Builtins(Questions, KeptResults, World, Arguments, WeakReferences):
    """Calls built-in functions."""

    def call_builtin(
        self, function: Value, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call a built-in function, a method of a container, or a real function."""
        if isinstance(function, Method):
            return self.call_method(function, arguments, keywords)
        place = next((i for i, a in enumerate(arguments) if isinstance(a, Choice)), None)
        if place is not None:
            before, after = arguments[:place], arguments[place + 1 :]
            return self.either(
                arguments[place],
                lambda v: self.call(function, [*before, v, *after], keywords),
            )
        found = function.object
        origin = get_origin(found)
        if isinstance(origin, type):  # dict[str, int]()
            return self.call(Host(origin), arguments, keywords)
        handler = getattr(self, f"_call_{getattr(found, '__name__', '')}", None)
        if handler is not None and _is_known(found):
            if keywords and not _takes(handler, keywords):
                return self.lost(f"'{found.__name__}' with the keywords {', '.join(keywords)}")
            return self.derived(found, arguments, lambda: handler(*arguments, **keywords))
        return self.call_real(found, arguments, keywords)

    def derived(
        self, function: Any, arguments: Sequence[Value], make: Callable[[], Value]
    ) -> Value:
        """Return what a built-in function makes; an iterator reads its arguments later."""
        if not self.emit.literal:
            return make()
        with self.heap.reading() as reads:
            made = make()
        if isinstance(made, Stream):
            given = [v for v in arguments if isinstance(v, Ref | Stream)]
            sources = [v for v in given if v.key != made.key]
            self.heap.late.read_later(made.key, reads, {v.key for v in sources})
            self.heap.derive(made.key, sources, _ORDERS.get(function.__name__, 0))
            self.lend(arguments, made)
        return made

    def _call_object(self) -> Value:
        return Host(object())

    def call_real(
        self, found: Any, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call a real function: for real where everything is known."""
        if isinstance(found, type) and issubclass(found, BaseException):
            return self._exception_of(found, arguments)
        module = (getattr(found, "__module__", None) or "").partition(".")[0]
        if module in _SILENT or _module_of_method(found) in _SILENT:
            return self.call_silent(found, module, arguments)
        if any(type(value) is Unknown for value in (*arguments, *keywords.values())):
            return next(v for v in (*arguments, *keywords.values()) if type(v) is Unknown)
        owner = getattr(found, "__self__", None)
        if isinstance(owner, contextvars.ContextVar):
            return self.call_variable(owner, found.__name__, arguments)
        if isinstance(found, Hashable) and found in _OPERATORS:
            return self.domain.operate(_OPERATORS[found], arguments[0], arguments[1])
        if found is operator.contains:
            return self.compare(ast.In, arguments[1], arguments[0])
        if getattr(found, "__module__", "") in ("math", "cmath"):
            return self.call_math(found, arguments, keywords)
        if isinstance(found, type) and issubclass(found, random.Random):
            return Host(found())  # a generator of its own
        if "random" in (module, _module_of_method(found)):
            return self.call_chance(found.__name__, arguments)
        new = getattr(found, "__name__", "") == "__new__" and owner in _PLAIN
        if new and isinstance(owner, type) and arguments and isinstance(arguments[0], Class):
            return self.new_plain(owner, arguments[0], arguments[1:])
        weak = self.call_weak(found, arguments, keywords)
        if weak is not MISSING:
            return weak
        if isinstance(found, enum.EnumMeta) and not found.__members__ and len(arguments) == 2:
            return self.new_enumeration(found, *arguments)
        if found is sys.exit or type(found).__name__ == "Quitter":
            self.dead = True
            return None
        if isinstance(found, Hashable) and found in _FROM_KEYS:
            kind = "OrderedDict" if owner is OrderedDict else "dict"
            return self.from_keys(*arguments, kind=kind)
        told = self.real_call(found, arguments, keywords)
        if told is not MISSING:
            return told
        method = self._method_of_type(found, arguments)
        if method is not None:
            return self.call(method, arguments[1:], keywords)
        reached = self.call_world(found, arguments, keywords)
        if reached is not MISSING:
            return reached
        program = in_python(found)
        if program is not None:
            return self.call(self.lift(program), arguments, keywords)
        if hasattr(found, "cache_info"):
            return self.call_kept(found, arguments, keywords)
        module = getattr(found, "__module__", None) or getattr(owner, "__module__", "")
        name = f"{module}.{getattr(found, '__qualname__', found)}"
        return self.lost(f"'{name}' is not understood")

    def _method_of_type(self, found: Any, arguments: Sequence[Value]) -> Value:
        """Return the method of a container that is called through its class: ``dict.get(d, k)``."""
        owner = getattr(found, "__objclass__", None)
        if owner is object and arguments and isinstance(arguments[0], Instance):
            return LibraryMethod(arguments[0], f"object.{found.__name__}")
        if owner is None or not arguments or not issubclass(owner, dict | list | set | str | tuple):
            return None
        receiver = arguments[0]
        if isinstance(receiver, Outside):  # a text of a file
            return self.attribute(receiver, found.__name__)
        if isinstance(receiver, Instance):
            receiver = self.inherited(receiver)
            if isinstance(receiver, tuple):
                return self.attribute(arguments[0], found.__name__)
        if isinstance(receiver, ListRef | DictRef | SetRef | str):
            return Method(receiver, found.__name__)
        return None

    def call_variable(
        self, variable: contextvars.ContextVar[Any], name: str, arguments: Sequence[Value]
    ) -> Value:
        """Call a method of a context variable; the program's settings are its own."""
        content = self.heap[self.variables]
        now = content.get(variable, MISSING)
        if now is MISSING and name == "get":
            default = () if not arguments else (MISSING,)
            found = variable.get(*default)
            return arguments[0] if found is MISSING else self.lift(found)
        if name == "get":
            return now
        if name == "set":
            content[variable] = arguments[0]
            return (now,)
        before = arguments[0][0] if isinstance(arguments[0], tuple) else MISSING
        if before is MISSING:
            content.pop(variable, None)
        else:
            content[variable] = before
        return None

    @staticmethod
    def _exception_of(found: type[BaseException], arguments: Sequence[Value]) -> Value:
        """Return an exception with the known parts of its arguments."""
        told = [value if is_plain(value) else "…" for value in arguments]
        made = found.__new__(found, *told)
        made.args = tuple(told)
        return Host(made)

    # Conversions.

    def _call_int(self, value: Value = 0, base: Value = None) -> Value:
        if is_plain(value) and base is None:
            return apply_plain(int, value)
        if isinstance(value, Expr):
            return value
        if isinstance(value, Real):
            if isinstance(value.formula, Expr):
                return round_down(value.formula)
            return self.emit.fresh("whole")
        if isinstance(value, Tensor):
            return self.tensor_number(value, whole=True)
        return apply_plain(int, value, base) if is_plain(value) else self.emit.fresh("whole")

    def _is_one(self, size: Dim, value: Tensor) -> bool:
        """Whether a size may be 1; checks restrict the inputs to that, graphs fail as they run."""
        if isinstance(size, int) or self.emit.builds:
            return size == 1 or not isinstance(size, int)
        told = f"{size} == 1 (the only element of {self.show(value)})"
        return self.emit.restrict(self.knowledge.equal(size, 1), told)

    def tensor_number(self, value: Tensor, *, whole: bool) -> Value:
        """Return the only element of a tensor as a number."""
        if not all(self._is_one(size, value) for size in value.shape or ()):
            raise CheckError(
                "value",
                f"expected a tensor with one element, got {self.show(value)}",
                tensors=(value,),
                counterexample=self.emit.counterexample,
            )
        if value.known is not None and value.known.size == 1:
            found = value.known.ravel()[0]
            if isinstance(found, Expr):
                return found
            return int(found) if whole or value.known.dtype.kind in "iu" else float(found)
        if whole and self.emit.builds and value.dtype.is_floating_point():
            return self.call(Host(int), [self.emit.scalar(value, whole=False)], {})
        return self.emit.scalar(value, whole=whole)

    def _call_float(self, value: Value = 0.0) -> Value:
        if is_plain(value):
            return apply_plain(float, value)
        if isinstance(value, Tensor):
            return self.tensor_number(value, whole=False)
        return (
            Real(value) if isinstance(value, Expr) else value if isinstance(value, Real) else Real()
        )

    def _call_complex(self, real: Value = 0.0, imag: Value = 0.0) -> Value:
        if is_plain(real) and is_plain(imag):
            return apply_plain(complex, real, *([] if isinstance(real, str) else [imag]))
        return self.tables.complex_parts.number(self, real, imag)

    def _call_bool(self, value: Value = False) -> Value:
        found = self.truth(value)
        return found if isinstance(found, bool) else self.as_truth(found)

    def _call_str(self, value: Value = "") -> Value:
        if isinstance(value, Member):
            method = self.method_of(value.instance, "__str__")
            return str(value) if method is MISSING else self.call(method, [], {})
        if is_plain(value):
            return str(value)
        if isinstance(value, Device):
            return value.name
        if isinstance(value, Library) and value.name.rpartition(".")[2][:1].isupper():
            return f"<class '{value.name}'>"
        if isinstance(value, Class):
            return f"<class '{value.module.name}.{value.name}'>"
        if isinstance(value, Instance):
            method = self.method_of(value, "__str__")
            if method is not MISSING:
                return self.call(method, [], {})
        if isinstance(value, Host) and isinstance(value.object, type | BaseException | enum.Enum):
            return str(value.object)
        return self.text_of_number(value)

    _call_repr = _call_str

    def _call_ord(self, character: Value) -> Value:
        return apply_plain(ord, character) if is_plain(character) else self.emit.fresh("code")

    def _call_chr(self, code: Value) -> Value:
        return apply_plain(chr, code) if is_plain(code) else self.outside("a character")

    def _call_abs(self, value: Value) -> Value:
        if is_size(value):
            return absolute(value)
        if isinstance(value, Tensor):
            method = self.find_attribute(value, "abs")
            if method is MISSING:
                return self.tensor_unary("abs", value)
            return self.call(method, [], {})
        return apply_plain(abs, value) if is_plain(value) else Real()

    def _call_round(self, number: Value, ndigits: Value = None) -> Value:
        if is_plain(number) and is_plain(ndigits):
            return apply_plain(round, number, ndigits)
        if isinstance(number, Expr):
            return number
        return self.emit.fresh("rounded") if ndigits is None else Real()

    def _call_divmod(self, left: Value, right: Value) -> Value:
        return (self.binary(ast.FloorDiv, left, right), self.binary(ast.Mod, left, right))

    def _call_pow(self, left: Value, right: Value) -> Value:
        return self.binary(ast.Pow, left, right)

    def _call_print(self, *_: Value, **__: Value) -> Value:
        return None

    def _call_slice(self, *bounds: Value) -> Value:
        return slice(*bounds)

    # Objects.

    def _call_staticmethod(self, function: Value) -> Value:
        return Wrapped("staticmethod", function)

    def _call_classmethod(self, function: Value) -> Value:
        return Wrapped("classmethod", function)

    def _call_TypeVar(self, name: Value, *_: Value, **__: Value) -> Value:
        # Bounds may be classes of the program; nothing at run time asks for them.
        return Host(TypeVar(str(name)))

    def _call_NewType(self, name: Value, supertype: Value) -> Value:
        return Host(identity)


_MODULES = frozenset(
    ("builtins", "math", "functools", "_functools", "_operator", "_collections", "itertools",
     "collections", "copy", "dataclasses", "typing", "abc", "contextlib", "operator",
     "collections.abc", "argparse", "inspect", "logging", standard.__name__,
     records.__name__, signatures.__name__, "typing_extensions", identity.__module__)
)  # fmt: skip


def _is_known(found: Any) -> bool:
    if found is types.FunctionType:  # a function from its code
        return False
    module = getattr(found, "__module__", None) or ""
    own = getattr(found, "__self__", None)
    if isinstance(own, type):  # itertools.chain.from_iterable
        module = own.__module__
    return module in _MODULES or found is types.SimpleNamespace or found in vars(builtins).values()


def _takes(handler: Any, keywords: Mapping[str, Value]) -> bool:
    """Whether a handler knows the keywords of a call."""
    known = inspect.signature(handler).parameters
    return all(one in known for one in keywords) or any(
        one.kind is one.VAR_KEYWORD for one in known.values()
    )


# Modules whose functions give a number that is different every time, or nothing.
_SILENT = frozenset(("warnings", "_warnings", "logging", "time", "_thread", "gc"))


def _module_of_method(found: Any) -> str:
    owner = getattr(found, "__self__", None)
    return type(owner).__module__.partition(".")[0] if owner is not None else ""


__all__ = ["Builtins", "DType"]
