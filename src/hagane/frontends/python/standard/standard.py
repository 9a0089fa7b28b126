"""The standard library's offers to models: functools, itertools, math, copy, dataclasses."""

from __future__ import annotations

import ast
import contextlib
import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from hagane.frontends.python.interpret.arithmetic import apply_plain, exact, round_down, round_up
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.standard.iterators import Iterators
from hagane.frontends.python.values import complex_math
from hagane.frontends.python.values.deques import list_like
from hagane.frontends.python.values.objects import (
    Bound,
    Class,
    Function,
    Instance,
    ModuleRef,
    Wrapped,
)
from hagane.frontends.python.values.printing import name_of
from hagane.frontends.python.values.stand_ins import identity
from hagane.frontends.python.values.values import (
    MISSING,
    DictRef,
    Endless,
    Host,
    Library,
    ListRef,
    Many,
    Real,
    SetRef,
    Tensor,
    Value,
    is_plain,
)
from hagane.symbolic import Dim

# Methods that say how an object is copied, beside __copy__ and __deepcopy__.
_STATES = ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__")

# The comparisons that functools.total_ordering makes of one.
_COMPARISONS: dict[str, Any] = vars(functools)["_convert"]


class StandardLibrary(Iterators):
    """Calls functions of the standard library."""

    def call_math(
        self, function: Any, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call a function of ``math`` or ``cmath``."""
        given = (*arguments, *keywords.values())
        if function.__module__ == "cmath" and not all(map(is_plain, given)):
            return self.call(self.lift(complex_math.PROGRAMS[function]), arguments, keywords)
        values = [
            self.tensor_number(v, whole=False) if isinstance(v, Tensor) else v for v in arguments
        ]
        if all(map(is_plain, values)):
            return apply_plain(functools.partial(function, **keywords), *values)
        if function.__name__ == "prod":
            items = self.sequence(values[0])
            result: Value = 1
            for item in items if isinstance(items, list) else [self.emit.fresh("product")]:
                result = self.binary(ast.Mult, result, item)
            return result
        formula = exact(values[0])
        if function.__name__ in ("ceil", "floor", "trunc") and formula is not None:
            return (round_up if function.__name__ == "ceil" else round_down)(formula)
        if function.__name__ in ("ceil", "floor", "trunc", "gcd", "isqrt"):
            return self.emit.fresh(function.__name__)
        return Real()

    def _call_partial(self, function: Value, *arguments: Value, **keywords: Value) -> Value:
        return Wrapped("partial", function, arguments, keywords)

    def _call_reduce(self, function: Value, value: Value, *initial: Value) -> Value:
        items = self.sequence(value)
        if isinstance(items, Many):
            return self.call(function, [items.element, items.element], {})
        queue = [*initial, *items]
        result = queue[0]
        for item in queue[1:]:
            result = self.call(function, [result, item], {})
        return result

    def _call_chain(self, *values: Value) -> Value:
        items: list[Value] = []
        for value in values:
            found = self.sequence(value)
            if isinstance(found, Many):
                return self.new_stream(found)
            items += found
        return self.new_stream(items)

    def _call_from_iterable(self, value: Value) -> Value:
        return self._call_chain(*self.sequence(value))  # type: ignore[misc]

    def _call_count(self, start: Value = 0, step: Value = 1) -> Value:
        return self.new_stream(
            Endless(start, self.emit.fresh("turns"), lambda k: self.binary(ast.Add, start,
                 self.binary(ast.Mult, step, k)))
        )  # fmt: skip

    def _call_cycle(self, value: Value) -> Value:
        items = self.sequence(value)
        if not isinstance(items, Many) and not items:
            return self.new_stream([])
        ref = self.new_list(items)
        count = items.length if isinstance(items, Many) else len(items)
        if self.emit.builds:
            first = self.item(ref, 0)
            return self.new_stream(
                Endless(first, self.emit.fresh("turns"), lambda k: self.item(ref, k % count))
            )
        if isinstance(items, Many):
            return self.new_stream(Endless(items.element, self.emit.fresh("turns")))
        element = self.as_many(tuple(items))[0]

        def at(k: Dim) -> Value:
            return items[k % len(items)] if isinstance(k, int) else element

        return self.new_stream(Endless(element, self.emit.fresh("turns"), at))

    def _call_product(self, *values: Value, repeat: Value = 1) -> Value:
        lists = [self.sequence(value) for value in values]
        if any(isinstance(items, Many) for items in lists):
            return self.lost("itertools.product of lists whose lengths depend on sizes")
        return self.new_stream(list(itertools.product(*lists, repeat=repeat)))  # type: ignore[arg-type]

    def _call_combinations(self, iterable: Value, r: Value) -> Value:
        return self._chosen(itertools.combinations, iterable, r)

    def _call_combinations_with_replacement(self, iterable: Value, r: Value) -> Value:
        return self._chosen(itertools.combinations_with_replacement, iterable, r)

    def _call_permutations(self, iterable: Value, r: Value = None) -> Value:
        return self._chosen(itertools.permutations, iterable, r)

    def _chosen(self, pick: Any, iterable: Value, r: Value) -> Value:
        items = self.sequence(iterable)
        if isinstance(items, Many) and isinstance(r, int) and r > 0:
            return self.new_stream(Many((items.element,) * r, self.emit.fresh("choices")))
        if isinstance(items, Many) or not (r is None or isinstance(r, int)):
            return self.lost(f"itertools.{pick.__name__} of how many items is not known")
        return self.new_stream(list(apply_plain(lambda: list(pick(items, r)))))

    def _call_pairwise(self, value: Value) -> Value:
        items = self.sequence(value)
        if isinstance(items, Many):
            return self.new_stream(Many((items.element, items.element), items.length - 1))
        return self.new_stream(list(itertools.pairwise(items)))

    def _call_deepcopy(self, value: Value) -> Value:
        return self.copied(value, {})

    def copied(self, value: Value, done: dict[int, Value]) -> Value:
        """Return a deep copy of a value; ``done`` has the copies of shared parts by their keys."""
        if isinstance(value, tuple):
            return tuple(self.copied(item, done) for item in value)
        if isinstance(value, Tensor) and not self.emit.builds:  # equal, and another one
            if -id(value) not in done:
                made = self.emit.new(
                    value.dtype, value.shape, kind=value.kind, known=value.known,
                    device=value.device,
                )  # fmt: skip
                made.origin, made.parameter, made.strides = (
                    value.origin, value.parameter, value.strides
                )  # fmt: skip
                done[-id(value)] = made
            return done[-id(value)]
        if isinstance(value, Bound):  # a method of what is copied becomes one of the copy
            return replace(value, receiver=self.copied(value.receiver, done))
        if not isinstance(value, ListRef | DictRef | SetRef | Instance):
            return value
        if value.key in done:
            return done[value.key]
        own = self._own_copy(value, "__deepcopy__", [self.new_dict()])
        if own is not MISSING:
            done[value.key] = own
            return own
        done[value.key] = made = self._call_copy(value)
        self.copies[made.key] = self.copies.get(value.key, value.key)
        content = self.heap[value]
        if isinstance(content, tuple) and isinstance(value, ListRef):
            self.heap[made] = tuple(self.copied(item, done) for item in content)
        elif isinstance(content, dict) and not isinstance(value, SetRef):
            self.heap[made].update({k: self.copied(v, done) for k, v in content.items()})
        if isinstance(value, Instance) and (items := self.inherited(value)) is not None:
            self.hold_items(made, self.copied(items, done))
        return made

    def _call_copy(self, value: Value) -> Value:
        if isinstance(value, ListRef):
            return list_like(self.heap, value, self.heap[value])
        if isinstance(value, SetRef):
            return self.copied_set(value)
        if isinstance(value, DictRef):
            content = self.heap[value]
            if not isinstance(content, dict):
                return DictRef(self.heap.new(content), value.kind)
            return self.new_dict(content, value.kind)
        if isinstance(value, Instance):
            own = self._own_copy(value, "__copy__", [])
            if own is not MISSING:
                return own
            other = Instance(self.heap.new(dict(self.heap[value])), value.cls, value.host)
            if (items := self.inherited(value)) is not None:
                self.hold_items(other, self._call_copy(items))
            return other
        return value

    def _own_copy(self, value: Value, name: str, arguments: list[Value]) -> Value:
        """Return the copy that a class says how to make; ``MISSING`` if it says nothing."""
        if not isinstance(value, Instance) or not isinstance(value.cls, Class):
            return MISSING
        own = self.find_in_class(value.cls, name)
        if own is not MISSING:
            return self.call(self.bind(own, value, value.cls), arguments, {})
        for name in _STATES if self.emit.builds else ():
            found = self.find_in_class(value.cls, name)
            if found is not MISSING and "_dataclass" not in getattr(found, "name", ""):
                return self.lost(f"a copy of an object whose class has '{name}'")
        return MISSING

    def _call_namedtuple(
        self, typename: Value, field_names: Value, *, rename: Value = False,
        defaults: Value = (), module: Value = None,
    ) -> Value:  # fmt: skip
        names = (
            field_names.replace(",", " ").split()
            if isinstance(field_names, str)
            else self.sequence(field_names)
        )
        given = self.sequence(() if defaults is None else defaults)
        if isinstance(names, Many) or isinstance(given, Many) or rename is True:
            return self.lost("a namedtuple of which only the run knows the fields")
        if len(given) > len(names):
            raise CheckError("value", "TypeError: got more default values than field names")
        assert self.frame is not None
        made = Class(self.heap.new({}), str(typename), (), self.frame.module)
        values = [MISSING] * (len(names) - len(given)) + given
        made.fields.extend((str(n), v) for n, v in zip(names, values, strict=True))
        made.flags.update(("dataclass", "named tuple"))
        return made

    def _call_dir(self, value: Value = MISSING) -> Value:
        names: set[Any] = set()
        if value is MISSING:
            assert self.frame is not None
            names.update(self.heap[self.frame.key])
        elif isinstance(value, ModuleRef):
            names.update(self.heap[value])
        else:
            cls = value.cls if isinstance(value, Instance) else value
            if not isinstance(cls, Class):
                return self.lost(f"the names of {self.show(value)}")
            own = self.find_in_class(cls, "__dir__")
            if own is not MISSING and isinstance(value, Instance):
                items = self.call(self.bind(own, value, cls), [], {})
                return self.call(Host(sorted), [items], {})
            self.refuse_half_set(value)
            if isinstance(value, Instance):
                names.update(self.heap[value])
            for base in self.resolution_order(cls):
                if isinstance(base, Class):
                    names.update(self.heap[base])
                elif isinstance(base, Library):
                    return self.lost(f"the names of {base.name}")
        return self.new_list(sorted(n for n in names if isinstance(n, str) and n[:1] != "<"))

    def _call_total_ordering(self, cls: Value) -> Value:
        if isinstance(cls, Class):
            content = self.heap[cls]
            root = next((name for name in _COMPARISONS if name in content), None)
            for name, function in _COMPARISONS.get(root or "", ()):
                content.setdefault(name, self.lift(function))
        return cls

    def _call_singledispatch(self, function: Value) -> Value:
        return Wrapped("dispatching", function)

    def _call_registered(self, what: Value) -> Value:
        return what if isinstance(what, Function) else Host(identity)

    _call_singledispatchmethod = _call_singledispatch

    def _call_suppress(self, *kinds: Value) -> Value:
        return Wrapped("suppress", None, kinds)

    def _call_closing(self, thing: Value) -> Value:
        return Wrapped("closing", thing)

    def _call_cached_property(self, function: Value) -> Value:
        return Wrapped("cached property", function)

    def _call_property(
        self, fget: Value = None, fset: Value = None, fdel: Value = None, doc: Value = None
    ) -> Value:
        del doc
        return Wrapped("property", fget, (fset,), {"deleter": fdel})

    def _call_with_accessor(self, value: Value, kind: Value, function: Value) -> Value:
        if kind == "getter":
            return replace(value, function=function)
        if kind == "setter":
            return replace(value, arguments=(function,))
        return replace(value, keywords={"deleter": function})

    def _call_wraps(self, original: Value, *_: Value, **__: Value) -> Value:
        return Wrapped("partial", Host(_renamed), (original,))

    def _call__renamed(self, original: Value, function: Value) -> Value:
        if not isinstance(function, Function):
            return function
        return replace(function, name=name_of(original))

    def _call_lru_cache(self, function: Value = None, **_: Value) -> Value:
        return self._call_cache(function) if isinstance(function, Function) else Host(cache)

    def _call_cache(self, function: Value) -> Value:
        return Wrapped("cached", function) if self.emit.builds else function

    def _call_identity(self, value: Value) -> Value:
        return value

    def _call_deprecated(self, *_: Value, **__: Value) -> Value:
        return Host(identity)

    _call_dataclass_transform = _call_deprecated
    _call_runtime_checkable = _call_identity
    _call_abstractmethod = _call_identity
    _call_overload = _call_identity
    _call_final = _call_identity
    _call_override = _call_identity

    def _call_contextmanager(self, function: Value) -> Value:
        return Wrapped("managed", function)

    def _call_nullcontext(self, value: Value = None) -> Value:
        return Host(contextlib.nullcontext(value))

    def _call_cast(self, _: Value, value: Value) -> Value:
        return value


def _renamed(original: Any, function: Any) -> Any:
    return function
