"""Built-in functions, and the standard library of models: math, functools, itertools."""

from __future__ import annotations

import ast
import builtins
import contextvars
import enum
import operator
import sys
import types
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from hagane.frontends.python.interpret.arithmetic import apply_plain, round_down
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.standard import standard
from hagane.frontends.python.standard.arguments import Arguments
from hagane.frontends.python.standard.outside import World
from hagane.frontends.python.standard.real import RealObjects
from hagane.frontends.python.standard.standard import StandardLibrary
from hagane.frontends.python.values.values import (
    MISSING,
    Bound,
    Choice,
    Class,
    Device,
    DictRef,
    DType,
    Earlier,
    Function,
    Host,
    Instance,
    Library,
    LibraryMethod,
    ListRef,
    Many,
    Method,
    Outside,
    Range,
    Real,
    SetRef,
    Stream,
    Tensor,
    Truth,
    Unknown,
    Value,
    Wrapped,
    identity,
    is_plain,
    is_size,
)
from hagane.symbolic import Dim, Expr, absolute, maximum, minimum
from hagane.symbolic.logic import both, either

_CALLABLE = (Function, Bound, Class, Library, LibraryMethod, Method, Wrapped)
# Python's classes of values that stand for themselves.
_OPERATORS: dict[Any, type[ast.operator]] = {
    operator.add: ast.Add, operator.sub: ast.Sub, operator.mul: ast.Mult,
    operator.truediv: ast.Div, operator.floordiv: ast.FloorDiv, operator.mod: ast.Mod,
    operator.matmul: ast.MatMult, operator.pow: ast.Pow,
}  # fmt: skip


class Builtins(StandardLibrary, RealObjects, World, Arguments):
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
        handler = getattr(self, f"_call_{getattr(found, '__name__', '')}", None)
        if handler is not None and _is_known(found):
            return handler(*arguments, **keywords)
        return self.call_real(found, arguments, keywords)

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
            return Real() if module == "time" else None
        if any(type(value) is Unknown for value in (*arguments, *keywords.values())):
            return next(v for v in (*arguments, *keywords.values()) if type(v) is Unknown)
        owner = getattr(found, "__self__", None)
        if isinstance(owner, contextvars.ContextVar):
            return self.call_variable(owner, found.__name__, arguments)
        if isinstance(found, Hashable) and found in _OPERATORS:
            return self.binary(_OPERATORS[found], arguments[0], arguments[1])
        if getattr(found, "__module__", "") == "math":
            return self.call_math(found, arguments)
        if "random" in (module, _module_of_method(found)):
            return self.call_chance(found.__name__, arguments)
        if found is sys.exit:
            self.dead = True
            return None
        told = self.real_call(found, arguments, keywords)
        if told is not MISSING:
            return told
        method = self._method_of_type(found, arguments)
        if method is not None:
            return self.call(method, arguments[1:], keywords)
        reached = self.call_world(found, arguments, keywords)
        if reached is not MISSING:
            return reached
        name = f"{getattr(found, '__module__', '')}.{getattr(found, '__qualname__', found)}"
        if hasattr(found, "cache_info"):
            return self.lost(
                f"'{name}' keeps its results (functools.lru_cache), so only the run knows what "
                "it returns; call its __wrapped__, or compute the result before"
            )
        return self.lost(f"'{name}' is not understood")

    def _method_of_type(self, found: Any, arguments: Sequence[Value]) -> Value:
        """Return the method of a container that is called through its class: ``dict.get(d, k)``."""
        owner = getattr(found, "__objclass__", None)
        if owner is object and arguments and isinstance(arguments[0], Instance):
            return LibraryMethod(arguments[0], f"object.{found.__name__}")
        if owner is None or not arguments or not issubclass(owner, dict | list | set | str):
            return None
        receiver = arguments[0]
        if isinstance(receiver, Instance):
            receiver = self.inherited(receiver)
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

    # Sizes and sequences.

    def _call_len(self, value: Value) -> Value:
        if isinstance(value, Tensor):
            if value.shape is None:
                return self.emit.fresh("length")
            if not value.shape:
                raise CheckError("type", "len() of a tensor without axes", tensors=(value,))
            return value.shape[0]
        if isinstance(value, Outside):
            return self.emit.fresh("length")
        if isinstance(value, Unknown):
            return value
        if isinstance(value, Instance):
            return self.call(self.attribute(value, "__len__"), [], {})
        if isinstance(value, Stream):
            raise CheckError("type", "an iterator has no len()")
        items = self.sequence(value)
        return items.length if isinstance(items, Many) else sum(map(_count, items))

    def _call_range(self, *bounds: Value) -> Value:
        found = [self._whole(bound) for bound in bounds]
        if all(isinstance(bound, int) for bound in found):
            return apply_plain(range, *found)
        start, stop, step = (0, found[0], 1) if len(found) == 1 else (*found, 1)[:3]
        return Range(start, stop, step)

    def _whole(self, value: Value) -> Dim:
        if isinstance(value, Tensor) and value.shape == () and value.dtype.is_integer():
            value = self.tensor_number(value, whole=True)
        if isinstance(value, Unknown):
            return self.emit.fresh("count")
        if not isinstance(value, int | Expr):
            raise CheckError("type", f"expected an integer, got {self.show(value)}")
        return value

    def _call_enumerate(self, value: Value, start: Value = 0) -> Value:
        items = self.sequence(value)
        if isinstance(items, Many):
            return self.new_stream(
                Many((start, items.element), items.length, lambda k: (start + k, items.item(k)))
            )
        return self.new_stream([(start + place, item) for place, item in enumerate(items)])

    def _call_zip(self, *values: Value, strict: Value = False) -> Value:
        if not values:
            return self.new_stream([])
        lists = [self.sequence(value) for value in values]
        if all(isinstance(items, list) for items in lists):
            lengths = {len(items) for items in lists}  # type: ignore[arg-type]
            if strict is True and len(lengths) > 1:
                raise CheckError("value", f"ValueError: zip() got lengths {sorted(lengths)}")
            return self.new_stream(list(zip(*lists, strict=False)))
        lengths = [i.length if isinstance(i, Many) else len(i) for i in lists]  # type: ignore[assignment]

        def at(k: Dim) -> Value:
            return tuple(self._at(items, k) for items in lists)

        return self.new_stream(Many(at(0), minimum(*lengths), at))

    def _at(self, items: list[Value] | Many, k: Dim) -> Value:
        if isinstance(items, Many):
            return items.item(k)
        return items[k] if isinstance(k, int) and k < len(items) else self.as_many(tuple(items))[0]

    def _call_reversed(self, value: Value) -> Value:
        items = self.sequence(value)
        if isinstance(items, Many):
            last = items.length - 1
            return self.new_stream(
                Many(items.element, items.length, lambda k: items.item(last - k))
            )
        return self.new_stream(items[::-1])

    def _call_sorted(self, value: Value, **keywords: Value) -> Value:
        items = self.sequence(value)
        if isinstance(items, Many):
            return self.new_list(Many(items.element, items.length))
        return self.new_list(self.sorted_items(items, keywords))

    def _call_list(self, value: Value = ()) -> Value:
        return self.new_list(self.sequence(value))

    def _call_tuple(self, value: Value = ()) -> Value:
        items = self.sequence(value)
        return self.new_list(items) if isinstance(items, Many) else tuple(items)

    def _call_set(self, value: Value = ()) -> Value:
        items = self.sequence(value)
        if isinstance(items, list) and is_plain(tuple(items)):
            return self.new_set(items)
        if not self.emit.builds and (isinstance(items, Many) or all(map(is_size, items))):
            element = items.element if isinstance(items, Many) else self.some_of(items)
            return SetRef(self.heap.new(Many(element, self.emit.fresh("different"))))
        return self.lost("a set of values that are not known")

    _call_frozenset = _call_set

    def _call_KeysView(self, value: Value) -> Value:
        items = self.sequence(self.call(self.attribute(value, "__iter__"), [], {}))
        return self.new_set(items) if isinstance(items, list) else self.new_list(items)

    def _call_ItemsView(self, value: Value) -> Value:
        keys = self.sequence(self._call_KeysView(value))
        if isinstance(keys, Many):
            return self.lost("the items of a mapping of which only the run knows the keys")
        return self.new_list([(key, self.item(value, key)) for key in keys])

    def _call_ValuesView(self, value: Value) -> Value:
        items = self.sequence(self._call_ItemsView(value))
        return self.new_list([v for _, v in items] if isinstance(items, list) else items)

    def _call_dict(self, value: Value = (), **keywords: Value) -> Value:
        content = self.mapping(value)
        found = self._pairs(value) if content is None else content
        return found if isinstance(found, Unknown) else self.new_dict({**found, **keywords})

    def _call_OrderedDict(self, *arguments: Value, **keywords: Value) -> Value:
        made = self._call_dict(*arguments, **keywords)
        if isinstance(made, DictRef) and isinstance(self.heap[made], dict):
            return self.new_dict(self.heap[made], "OrderedDict")
        return made

    def _call_defaultdict(self, factory: Value = None, **_: Value) -> Value:
        return self.new_dict({}, f"defaultdict:{self.heap.new(factory)}")

    def _call_deque(self, value: Value = (), maxlen: Value = None) -> Value:
        made = self.new_list(self.sequence(value))
        if maxlen is not None:
            self.bounds[made.key] = maxlen
            self.bound_list(made)
        return made

    def _call_iter(self, value: Value) -> Value:
        return value if isinstance(value, Stream) else self.new_stream(self.sequence(value))

    def _call_next(self, value: Value, *default: Value) -> Value:
        return self.next_of(value, default)

    def _call_map(self, function: Value, *values: Value) -> Value:
        stream = values[0] if len(values) == 1 else self._call_zip(*values)
        items = self.sequence(stream)
        spread = len(values) > 1

        def apply(item: Value) -> Value:
            return self.call(function, list(item) if spread else [item], {})

        if isinstance(items, Many):
            return self.new_stream(Many(apply(items.item(0)), items.length))
        with self.emit.lazily():
            made = [apply(item) for item in items]
        return self.new_stream(made)

    def _call_filter(self, function: Value, value: Value) -> Value:
        items = self.sequence(value)
        if isinstance(items, Many):
            return self.new_stream(Many(items.element, self.emit.fresh("kept")))
        kept = []
        for item in items:
            found = item if function is None else self.call(function, [item], {})
            decided = self.decide(self.truth(found))
            if not isinstance(decided, bool):
                return self.new_stream(Many(self.as_many(tuple(items))[0], self.emit.fresh("kept")))
            if decided:
                kept.append(item)
        return self.new_stream(kept)

    def _call_sum(self, value: Value, start: Value = 0) -> Value:
        items = self.sequence(value)
        if isinstance(items, Many):
            if is_size(items.element) and items.at is None and is_size(start):
                return start + items.element * items.length
            return self.binary(ast.Add, items.element, items.element)
        for item in items:
            start = self.binary(ast.Add, start, item) if start != 0 or not is_size(item) else item
        return start

    def _call_any(self, value: Value) -> Value:
        return self._junction(value, any_of=True)

    def _call_all(self, value: Value) -> Value:
        return self._junction(value, any_of=False)

    def _junction(self, value: Value, *, any_of: bool) -> Value:
        items = self.sequence(value)
        if isinstance(items, Many):
            return Truth(self.unknown_truth())
        terms = [self.as_term(self.truth(item)) for item in items]
        return self.as_truth((either if any_of else both)(*terms))

    def _call_min(self, *values: Value, **keywords: Value) -> Value:
        return self._extreme(min, minimum, values, keywords)

    def _call_max(self, *values: Value, **keywords: Value) -> Value:
        return self._extreme(max, maximum, values, keywords)

    def _extreme(
        self,
        plain: Callable[..., Any],
        sizes: Callable[..., Dim],
        values: Sequence[Value],
        keywords: Mapping[str, Value],
    ) -> Value:
        items = list(values)
        if len(values) == 1:
            found = self.sequence(values[0])
            if isinstance(found, Many):
                if isinstance(found.element, Expr | int):
                    return self.emit.fresh("extreme")
                return Real() if isinstance(found.element, float | Real) else found.element
            items = found
            if not items and "default" in keywords:
                return keywords["default"]
        if keywords.get("key") is not None:
            keys = [self.call(keywords["key"], [item], {}) for item in items]
            if all(map(is_plain, keys)):
                return items[apply_plain(lambda: keys.index(plain(keys)))]
            return items[0]
        if all(map(is_plain, items)):
            return apply_plain(plain, items)
        if all(map(is_size, items)):
            return sizes(*items)
        tensor = next((item for item in items if isinstance(item, Tensor)), None)
        return Real() if tensor is None else tensor

    # Conversions.

    def _call_int(self, value: Value = 0, *base: Value) -> Value:
        if is_plain(value) and not base:
            return apply_plain(int, value)
        if isinstance(value, Expr):
            return value
        if isinstance(value, Real):
            if isinstance(value.formula, Expr):
                return round_down(value.formula)
            return self.emit.fresh("whole")
        if isinstance(value, Tensor):
            return self.tensor_number(value, whole=True)
        return apply_plain(int, value, *base) if is_plain(value) else self.emit.fresh("whole")

    def tensor_number(self, value: Tensor, *, whole: bool) -> Value:
        """Return the only element of a tensor as a number."""
        if value.shape is not None and any(isinstance(d, int) and d != 1 for d in value.shape):
            raise CheckError(
                "value",
                f"expected a tensor with one element, got {self.show(value)}",
                tensors=(value,),
            )
        if value.known is not None and value.known.size == 1:
            found = value.known.ravel()[0]
            if isinstance(found, Expr):
                return found
            return int(found) if whole or value.known.dtype.kind in "iu" else found.item()
        return self.emit.scalar(value, whole=whole)

    def _call_float(self, value: Value = 0.0) -> Value:
        if is_plain(value):
            return apply_plain(float, value)
        if isinstance(value, Tensor):
            return self.tensor_number(value, whole=False)
        return (
            Real(value) if isinstance(value, Expr) else value if isinstance(value, Real) else Real()
        )

    def _call_bool(self, value: Value = False) -> Value:
        found = self.truth(value)
        return found if isinstance(found, bool) else self.as_truth(found)

    def _call_str(self, value: Value = "") -> Value:
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
        return self.outside("a text that depends on sizes")

    _call_repr = _call_str

    def _call_abs(self, value: Value) -> Value:
        if is_size(value):
            return absolute(value)
        if isinstance(value, Tensor):
            method = self.find_attribute(value, "abs")
            if method is MISSING:
                return self.tensor_unary("abs", value)
            return self.call(method, [], {})
        return apply_plain(abs, value) if is_plain(value) else Real()

    def _call_round(self, value: Value, digits: Value = None) -> Value:
        if is_plain(value) and is_plain(digits):
            return apply_plain(round, value, digits)
        if isinstance(value, Expr):
            return value
        return self.emit.fresh("rounded") if digits is None else Real()

    def _call_divmod(self, left: Value, right: Value) -> Value:
        return (self.binary(ast.FloorDiv, left, right), self.binary(ast.Mod, left, right))

    def _call_pow(self, left: Value, right: Value) -> Value:
        return self.binary(ast.Pow, left, right)

    def _call_print(self, *_: Value, **__: Value) -> Value:
        return None

    def _call_slice(self, *bounds: Value) -> Value:
        return slice(*bounds)

    def _call_id(self, value: Value) -> Value:
        return id(value)

    # Objects.

    def _call_isinstance(self, value: Value, classes: Value) -> Value:
        options = _options(classes)
        found = [self.tables.is_instance(self, value, option) for option in options]
        if True in found:
            return True
        return Truth(self.unknown_truth()) if None in found else False

    def _call_issubclass(self, value: Value, classes: Value) -> Value:
        options = _options(classes)
        if isinstance(value, Class):
            if any(option in self.resolution_order(value) for option in options):
                return True
            real = [o.object for o in options if isinstance(o, Host)]
            return value.host is not None and issubclass(value.host, tuple(real))
        if isinstance(value, Host) and isinstance(value.object, type):
            real = [o.object for o in options if isinstance(o, Host)]
            return issubclass(value.object, tuple(real))
        return value in options

    def _call_type(self, value: Value) -> Value:
        if isinstance(value, Instance):
            return value.cls
        if isinstance(value, Tensor):
            return Library(value.kind)
        python = {ListRef: list, DictRef: dict, SetRef: set, Expr: int, Real: float, Truth: bool}
        return Host(python.get(type(value), type(value)))

    def _call_callable(self, value: Value) -> Value:
        if isinstance(value, Instance):
            return self.method_of(value, "forward") is not MISSING or (
                self.method_of(value, "__call__") is not MISSING
            )
        return isinstance(value, _CALLABLE) or (isinstance(value, Host) and callable(value.object))

    def _call_hasattr(self, value: Value, name: Value) -> Value:
        if not isinstance(name, str):
            return Truth(self.unknown_truth())
        return self.attempt(lambda: self.find_attribute(value, name)) is not MISSING

    def _call_getattr(self, value: Value, name: Value, *default: Value) -> Value:
        if not isinstance(name, str):
            return self.lost("an attribute whose name is not known")
        if default:
            found = self.attempt(lambda: self.find_attribute(value, name))
            return default[0] if found is MISSING else found
        found = self.find_attribute(value, name)
        return self.attribute(value, name) if found is MISSING else found

    def _call_setattr(self, value: Value, name: Value, content: Value) -> Value:
        if not isinstance(name, str):
            return self.lost("an attribute whose name is not known is set")
        self.set_attribute(value, name, content)
        return None

    def _call_delattr(self, value: Value, name: Value) -> Value:
        if not isinstance(name, str):
            return self.lost("an attribute whose name is not known is deleted")
        self.delete_attribute(value, name)
        return None

    def _call_vars(self, value: Value) -> Value:
        return self.new_dict(self.heap[value]) if isinstance(value, Instance) else self.new_dict()


_MODULES = frozenset(
    ("builtins", "math", "functools", "_functools", "_operator", "_collections", "itertools",
     "collections", "copy", "dataclasses", "typing", "abc", "contextlib", "operator",
     "collections.abc", "argparse", "logging", standard.__name__, identity.__module__)
)  # fmt: skip


def _options(classes: Value) -> tuple[Value, ...]:
    """Return the classes that an argument of ``isinstance`` lists, unions taken apart."""
    if isinstance(classes, tuple):
        return tuple(option for part in classes for option in _options(part))
    real = classes.object if isinstance(classes, Host) else None
    if isinstance(real, types.UnionType):
        return tuple(Host(type(None) if o is None else o) for o in real.__args__)
    return (Host(type(None)) if classes is None else classes,)


def _count(item: Value) -> Dim:
    """Return how many items of a list one of its values stands for."""
    return item.count if isinstance(item, Earlier) else 1


def _is_known(found: Any) -> bool:
    module = getattr(found, "__module__", None) or ""
    own = getattr(found, "__self__", None)
    if isinstance(own, type):  # itertools.chain.from_iterable
        module = own.__module__
    return module in _MODULES or found in vars(builtins).values()


# Modules whose functions give a number that is different every time, or nothing.
_SILENT = frozenset(("warnings", "logging", "time", "_thread", "gc"))


def _module_of_method(found: Any) -> str:
    owner = getattr(found, "__self__", None)
    return type(owner).__module__.partition(".")[0] if owner is not None else ""


__all__ = ["Builtins", "DType"]
