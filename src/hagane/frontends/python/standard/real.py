"""Real objects behind values of the program, for questions to the running Python."""

from __future__ import annotations

import argparse
import dataclasses
import importlib.metadata
import inspect
import os
import sys
import types
from collections import deque
from collections.abc import Mapping, MutableMapping, MutableSequence, MutableSet, Sequence
from functools import partial
from typing import Any

from hagane.frontends.python.interpret.arithmetic import apply_plain
from hagane.frontends.python.interpret.leaving.exceptions import Raised
from hagane.frontends.python.interpret.reading.packages import imported
from hagane.frontends.python.interpret.running import Observer
from hagane.frontends.python.standard.records import Records
from hagane.frontends.python.standard.signatures import Given, UnknownValue, fill_defaults, like
from hagane.frontends.python.values.deques import Deque
from hagane.frontends.python.values.objects import (
    Bound,
    Class,
    Function,
    Instance,
    ModuleRef,
    Wrapped,
)
from hagane.frontends.python.values.sizes import Size
from hagane.frontends.python.values.values import (
    MISSING,
    DictRef,
    Fields,
    Host,
    Library,
    ListRef,
    SetRef,
    Value,
    is_plain,
)

# Modules of the standard library whose functions change nothing and depend on their arguments,
# or on things that stay while a program runs.
_PURE = frozenset(
    ("functools", "itertools", "operator", "typing", "_operator", "string", "re", "fractions",
     "decimal", "statistics", "numbers", "enum", "types", "posixpath", "genericpath", "ntpath",
     "inspect", "textwrap", "json", "keyword", "_collections", "packaging", "platform", "os.path",
     "importlib.util", "importlib.metadata", "ast", "math", "datetime", "uuid", "hashlib",
     "pathlib", "_json", "_sre", "copyreg", "unicodedata", "locale", "bisect", "_bisect", "_struct")
)  # fmt: skip
_IMPURE = frozenset(
    ("open", "input", "exec", "eval", "compile", "__import__", "exit", "quit", "breakpoint", "help")
)
# Functions and methods that change the object that they are of, or their first argument.
_CHANGES = frozenset(
    ("append", "appendleft", "extend", "extendleft", "insert", "remove", "pop", "popleft",
     "popitem", "rotate", "reverse", "sort", "clear", "update", "setdefault", "add", "discard",
     "difference_update", "intersection_update", "symmetric_difference_update", "subtract",
     "move_to_end", "write", "writelines", "truncate", "insort", "insort_left", "insort_right",
     "setitem", "delitem", "iconcat", "__setitem__", "__delitem__", "__iadd__", "__imul__",
     "__ior__", "__iand__", "__isub__", "__ixor__", "__setstate__", "pack_into", "send", "throw",
     "close", "__next__", "release", "setattr", "delattr", "__setattr__", "__delattr__")
)  # fmt: skip
# Of these modules they tell something else each time: clocks and chance.
_TOLD_ANEW = {
    "datetime": frozenset(("now", "utcnow", "today")),
    "uuid": frozenset(("uuid1", "uuid4", "getnode")),
}
_OF_PARAMETERS = (inspect.signature, inspect.getfullargspec)
_BINDING = (inspect.Signature.bind, inspect.Signature.bind_partial)
_ASKING = (os.getenv, dataclasses.is_dataclass, sys.intern, os.fspath)
# Questions to the disk, whose answer a check leaves open.
_OF_FILES = (os.path.exists, os.path.isfile, os.path.isdir, os.path.islink, os.path.lexists)
# Classes whose objects never change, or whose methods only tell.
_VALUES = (
    inspect.Signature, inspect.Parameter, types.MappingProxyType, os._Environ, type, str, int,
    float, bytes, types.CodeType, types.SimpleNamespace,
)  # fmt: skip
# Classes without source whose objects change, beside lists and dicts, which are read by item.
_CHANGING = (MutableMapping, MutableSequence, MutableSet, types.SimpleNamespace, argparse.Namespace)


class RealObjects(Records):
    """Calls real functions with real objects."""

    observer: Observer

    def real_of(self, value: Value) -> Any:
        """Return the real object that a value stands for, ``MISSING`` where there is none."""
        match value:
            case Host(object=found):
                return found
            case Function(host=host) | Class(host=host) if host is not None:
                return host
            case Instance(host=host) if host is not None and self._is_untouched(value):
                return host
            case Bound(function=Function() as function, receiver=receiver):
                inner, owner = self.real_of(function), self.real_of(receiver)
                if inner is MISSING or owner is MISSING:
                    return MISSING
                return types.MethodType(inner, owner)
            case Library(name=name):
                if self.imports:
                    imported(name.partition(".")[0])
                return _resolved(name)
            case ModuleRef(name=name) if value.host:
                return sys.modules.get(name, MISSING)
            case Size():
                found = self._all(value, tuple)
                return found if found is MISSING else sys.modules["torch"].Size(found)
            case tuple() if type(value) is tuple:
                return self._all(value, tuple)
            case Deque() if isinstance(self.heap[value], tuple):
                found = self._all(self.heap[value], list)
                return found if found is MISSING else deque(found, value.most)
            case ListRef() | SetRef() if isinstance(self.heap[value], tuple):
                return self._all(self.heap[value], list if isinstance(value, ListRef) else set)
            case DictRef() if isinstance(self.heap[value], dict):
                keys = self._all([*self.heap[value]], list)
                items = self._all([*self.heap[value].values()], list)
                if keys is MISSING or items is MISSING:
                    return MISSING
                return dict(zip(keys, items, strict=True))
        if is_plain(value):
            return value
        return MISSING

    def _all(self, values: Sequence[Value], kind: Any) -> Any:
        found = [self.real_of(value) for value in values]
        return MISSING if any(item is MISSING for item in found) else kind(found)

    def _is_untouched(self, value: Instance) -> bool:
        """Whether the program did not change an object's attributes."""
        for name, now in self.heap[value].items():
            before = self.host_attribute(value.host, name)
            if before is not now and not (is_plain(now) and before == now):
                return False
        return True

    def annotated(self, value: Value, index: Value) -> Value:
        """Return a class with the types of its items (``List[int]``), or the class itself."""
        real = self.real_of(index) if isinstance(value, Host) else MISSING
        if real is MISSING:
            return value
        try:
            return Host(value.object[real])
        except TypeError:
            return value

    def real_call(
        self, found: Any, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Return the result of a real function, ``MISSING`` where it may not be asked."""
        if found is dataclasses.fields:
            return self._fields(arguments[0])
        if found in _BINDING and isinstance(
            signature := self.real_of(arguments[0]), inspect.Signature
        ):
            return self._bound(found, signature, arguments[1:], keywords)
        if not _only_tells(found) or (found in _OF_FILES and not self.emit.builds):
            return MISSING
        real_of = self.real_of
        if any(found is one for one in _OF_PARAMETERS):
            real_of = partial(like, real_of=self.real_of)
            arguments = [self._called(value) for value in arguments]
        plain = [real_of(value) for value in arguments]
        named = {name: self.real_of(value) for name, value in keywords.items()}
        if any(item is MISSING for item in (*plain, *named.values())):
            return MISSING
        try:
            answer = apply_plain(lambda: found(*plain, **named))
            asked = os.environ if found is os.getenv else getattr(found, "__self__", None)
            for one in (asked, *plain):
                if isinstance(one, _CHANGING):
                    self.observer.asked(one, lambda: found(*plain, **named), answer)
            return self._new(answer) if _makes(found) else self.lift(answer)
        except importlib.metadata.PackageNotFoundError as error:
            if self.emit.builds:
                raise Raised(f"{type(error).__name__}: {error}", Host(error)) from None
            return self.outside("the packages that are installed")
        except (ImportError, AttributeError, OSError, RuntimeError) as error:
            if isinstance(error, OSError) and not self.emit.builds:
                return self.outside("what a file or the system says")
            raise Raised(f"{type(error).__name__}: {error}", Host(error)) from None

    def _called(self, value: Value) -> Value:
        """Return the method that a call of an object of the program runs; others as they are."""
        if not isinstance(value, Instance) or not isinstance(value.cls, Class):
            return value
        method = self.method_of(value, "__call__")
        return value if method is MISSING else method

    def made_for_real(
        self, cls: type, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Return a real object of a class of settings, ``MISSING`` where a part is not known."""
        plain = [self.real_of(value) for value in arguments]
        named = {name: self.real_of(value) for name, value in keywords.items()}
        if any(item is MISSING for item in (*plain, *named.values())):
            return MISSING
        return self.lift(apply_plain(lambda: cls(*plain, **named)))

    def _bound(
        self,
        bind: Any,
        signature: inspect.Signature,
        arguments: Sequence[Value],
        keywords: Mapping[str, Value],
    ) -> Value:
        """Return the arguments of a call that a signature binds to its parameters."""
        named = {name: Given(value) for name, value in keywords.items()}
        bound = apply_plain(lambda: bind(signature, *map(Given, arguments), **named))
        found: dict[str, Value] = {}
        for name, given in bound.arguments.items():
            if isinstance(given, dict):
                found[name] = self.new_dict({k: one.value for k, one in given.items()})
            else:
                rest = isinstance(given, tuple)
                found[name] = tuple(one.value for one in given) if rest else given.value
        held = self.new_dict(found)
        fill = Wrapped("partial", Host(fill_defaults), (held, Host(signature)))
        parts = {
            "arguments": held,
            "args": tuple(one.value for one in bound.args),
            "kwargs": self.new_dict({k: one.value for k, one in bound.kwargs.items()}),
            "signature": Host(signature),
            "apply_defaults": fill,
        }
        return self.call(Host(types.SimpleNamespace), [], parts)

    def _call_fill_defaults(self, held: Value, signature: Value) -> Value:
        content = self.heap[held]
        assert isinstance(signature, Host)
        for name, parameter in signature.object.parameters.items():
            empty: dict[Any, Value] = {
                parameter.VAR_POSITIONAL: (),
                parameter.VAR_KEYWORD: self.new_dict(),
            }
            default = empty.get(parameter.kind, parameter.default)
            if name in content or default is parameter.empty:
                continue
            if isinstance(default, UnknownValue):
                content[name] = self.lost(f"the default of '{name}'")
            else:
                content[name] = default if parameter.kind in empty else self.lift(default)
        return None

    def _new(self, found: Any) -> Value:
        """Return the stand-in of an object that nothing else holds, so that it may be changed."""
        if type(found) is list:
            return self.new_list([self._new(item) for item in found])
        if type(found) is dict:
            return self.new_dict({self.lift(k): self._new(v) for k, v in found.items()})
        return self.lift(found)

    def _fields(self, value: Value) -> Value:
        cls = value.cls if isinstance(value, Instance) else value
        if not isinstance(cls, Class):
            real = self.real_of(value)
            return tuple(Host(f) for f in dataclasses.fields(real))
        if cls.host is not None and dataclasses.is_dataclass(cls.host):
            return tuple(Host(found) for found in dataclasses.fields(cls.host))
        return self.described_fields(cls)

    # Activations of functions, as programs ask for them.

    def _call_currentframe(self) -> Value:
        return Wrapped("frame", self.frame)

    def _call_getargvalues(self, frame: Value) -> Value:
        if not isinstance(frame, Wrapped) or frame.kind != "frame":
            return self.lost("the arguments of a call that is not known")
        node = getattr(frame.function.function, "node", None)
        formal = None if node is None else node.args
        names = [] if formal is None else [a.arg for a in (*formal.posonlyargs, *formal.args)]
        rest = [
            None if formal is None or a is None else a.arg
            for a in (getattr(formal, "vararg", None), getattr(formal, "kwarg", None))
        ]
        found = (self.new_list(names), *rest, self.attribute(frame, "f_locals"))
        return Fields(found, ("args", "varargs", "keywords", "locals"))


def _only_tells(found: Any) -> bool:
    """Whether a real function may be run: it changes nothing and depends on its arguments only."""
    if any(found is one for one in _ASKING):
        return True
    owner = getattr(found, "__self__", None)
    where = owner if isinstance(owner, type) else found
    root = (getattr(where, "__module__", None) or "").partition(".")[0]
    if getattr(found, "__name__", "") in _TOLD_ANEW.get(root, ()):
        return False
    if getattr(found, "__name__", "") in _CHANGES and not isinstance(owner, str | bytes):
        return False
    if owner is not None and not isinstance(owner, types.ModuleType):
        if isinstance(owner, _VALUES):
            return getattr(found, "__name__", "") not in ("setdefault", "pop", "update", "clear")
        module = type(owner).__module__
    else:
        module = getattr(found, "__module__", None) or ""
        if getattr(found, "__objclass__", None) is not None:  # str.upper
            module = found.__objclass__.__module__
    if module == "builtins":
        return getattr(found, "__name__", "") not in _IMPURE
    root = module.partition(".")[0]
    return module in _PURE or root in ("collections", "packaging", "re", "regex", "json")


def _makes(found: Any) -> bool:
    """Whether a real function, one of texts, makes the lists and dictionaries that it returns."""
    owner = getattr(found, "__self__", None)
    module = getattr(found, "__module__", None) or type(owner).__module__
    return isinstance(owner, str) or module.partition(".")[0] in ("re", "regex", "json")


def _resolved(name: str) -> Any:
    """Return the real object of a library under a name, where that is imported."""
    parts = name.split(".")
    found: Any = sys.modules.get(parts[0], MISSING)
    for part in parts[1:]:
        found = MISSING if found is MISSING else getattr(found, part, MISSING)
    return found


__all__ = ["RealObjects"]
