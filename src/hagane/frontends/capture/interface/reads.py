"""Reads of a capture from the running Python, which have to stay as they were for its graph."""

from __future__ import annotations

import functools
import gc
import re
import types
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from inspect import getattr_static
from operator import is_
from typing import Any

import numpy as np

from hagane.frontends.python.enter.interpreter import Interpreter
from hagane.frontends.python.values.deques import items_of_sequence
from hagane.frontends.python.values.objects import (
    Class,
    Instance,
    ModuleRef,
)
from hagane.frontends.python.values.values import (
    MISSING,
    Tensor,
    Value,
)

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_OWN = ("_parameters", "_buffers", "_modules")
_TOLD_NOTHING = ("__module__", "__doc__", "__firstlineno__", "__qualname__", "_abc_impl")
# Objects of Python's own that stay as they are.
_CALLED = frozenset(("forward", "__call__", "_call_impl"))  # of modules
_STEADY = (types.ModuleType, str, bytes, int, float, complex, slice, range, np.dtype, re.Pattern)
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class made by Python code


@dataclass(frozen=True, slots=True)
class NameRead:
    """A name that was looked up in a namespace.

    Attributes:
        names: The namespace: the attributes of an object or a class, the globals of a module.
        name: The name.
        value: The value then; ``MISSING`` if it was not there.
        place: How the reader is told of it, ``scale`` or ``Net.scale``.
    """

    names: Mapping[str, Any]
    name: str
    value: Any
    place: str

    def broken(self) -> str:
        """Return how it differs now; empty if it does not."""
        now = self.names.get(self.name, MISSING)
        if now is self.value or _same(self.value, now):
            return ""
        before, after = shown(self.value), shown(now)
        return f"'{self.place}' was {before} and is {'another one' if before == after else after}"


@dataclass(frozen=True, slots=True)
class ContentRead:
    """Items of a list, dict or set, cells of a function, a small array, the class of an object."""

    found: Any
    content: Any
    now: Callable[[Any], Any]
    kind: str

    def broken(self) -> str:
        """Return how it differs now; empty if it does not."""
        now = self.now(self.found)
        if self.kind == "array":
            same = now.shape == self.content.shape and np.array_equal(now, self.content)
        elif self.kind == "count":
            same = now == self.content
            if not same:
                return "a class has other attributes"
        elif self.kind == "class":
            same = now is self.content
            if not same:
                return f"an object is a {now.__name__}, and was a {self.content.__name__}"
        elif self.kind == "type":
            if now != self.content:
                return "a variable that is read has another shape or element type"
            return ""
        elif self.kind == "bits":
            same = bool(now == self.content)
        else:
            same = len(now) == len(self.content) and (
                all(map(is_, now, self.content)) or all(map(_same_item, now, self.content))
            )
        return "" if same else f"the content of a {type(self.found).__name__} that is read changed"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question to a real object of which no source is read."""

    found: Any
    question: Callable[[], Any]
    answer: Any

    def broken(self) -> str:
        """Return how it differs now; empty if it does not."""
        now = self.question()
        if now is self.answer or _same(self.answer, now):
            return ""
        return f"a {type(self.found).__name__} that is read changed"


Read = NameRead | ContentRead | Answer


@dataclass
class Reads:
    """Everything that was read.

    Attributes:
        reads: Names and contents, in the order in which they were read first.
        tensors: Tensors of PyTorch whose content is a weight of the graph.
        arrays: Arrays of NumPy, likewise.
        variables: Variables of define-by-run code, likewise.
        modules: Modules of PyTorch that were called or looked into.
        compares: Whether the program asks if two tensors are one object.
        lacks: Whether it asks a tensor for an attribute that the class of tensors lacks.
    """

    reads: list[Read] = field(default_factory=list)
    tensors: list[Any] = field(default_factory=list)
    arrays: list[Any] = field(default_factory=list)
    variables: list[Any] = field(default_factory=list)
    modules: list[Any] = field(default_factory=list)
    compares: bool = False
    lacks: bool = False
    _seen: set[object] = field(default_factory=set)
    _kept: list[Any] = field(default_factory=list)

    def is_new(self, *key: object) -> bool:
        """Whether something is read for the first time."""
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def name(self, names: Mapping[str, Any], name: str, place: str) -> None:
        """Note that a name was looked up."""
        if self.is_new(id(names), name):
            self._kept.append(names)
            self.reads.append(NameRead(names, name, names.get(name, MISSING), place))

    def content(self, found: Any, now: Callable[[Any], Any], kind: str) -> None:
        """Note that a content was read."""
        if self.is_new(id(found), kind):
            self.reads.append(ContentRead(found, now(found), now, kind))

    def answer(self, found: Any, question: Callable[[], Any], answer: Any) -> None:
        """Note that a question was answered."""
        self.reads.append(Answer(found, question, answer))


class Reading:
    """Notes an interpretation's reads of the running Python.

    Args:
        reads: Takes the notes.
        core: The interpreter.
    """

    def __init__(self, reads: Reads, core: Interpreter):
        self.reads = reads
        self.core = core

    def attribute(self, value: Instance, name: str, held: Callable[[], Value]) -> Value:
        """Return the value of an attribute of a real object, not of its class."""
        own = getattr(value.host, "__dict__", None)
        if own is not None:
            place = f"{type(value.host).__name__}.{name}"
            self.reads.name(own, name, place)
            for part in _OWN:
                inner = own.get(part) if name not in own else None
                if isinstance(inner, dict) and name in inner:
                    self.reads.name(inner, name, place)
        if isinstance(getattr_static(type(value.host), name, None), types.MemberDescriptorType):
            question = partial(getattr, value.host, name, MISSING)  # of a class with __slots__
            if self.reads.is_new(id(value.host), name):
                self.reads.answer(value.host, question, question())
        return held()

    def global_name(self, module: ModuleRef, name: str) -> None:
        """Note that a global was read."""
        self.reads.name(module.host, name, f"{module.name}.{name}")

    def library_name(self, owner: Any, name: str) -> None:
        """Note that a name of a library was read, which a program may set."""
        if isinstance(owner, types.ModuleType) and name in vars(owner):  # others are made late
            self.reads.name(vars(owner), name, f"{owner.__name__}.{name}")
        elif isinstance(owner, type) and owner.__flags__ & _HEAP_TYPE:
            self.reads.name(namespace_of(owner), name, f"{owner.__name__}.{name}")

    def listed(self, names: Mapping[str, Any]) -> None:
        """Note the names of an object's members."""
        if self.reads.is_new(id(names), "listed"):
            self.reads.answer(names, partial(tuple, names), tuple(names))

    def compared(self) -> None:
        """Note that two tensors are compared by identity."""
        self.reads.compares = True

    def lacking(self) -> None:
        """Note that a tensor is asked for an attribute that its class lacks."""
        self.reads.lacks = True

    def asked(self, found: Any, question: Callable[[], Any], answer: Any) -> None:
        """Note a question to an object, if its answer may change."""
        if isinstance(found, type):
            stays = not found.__flags__ & _HEAP_TYPE
        else:
            # Methods are equal, not the same, each time; of others nobody can tell.
            is_made = callable(answer) and not isinstance(answer, types.MethodType)
            of_module = type(found) is not types.ModuleType and isinstance(answer, _PLAIN)
            if isinstance(found, types.ModuleType) and of_module:  # torch.backends.cudnn.enabled
                stays = False
            else:
                stays = isinstance(found, _STEADY) or (is_made and question() is not answer)
        if not stays:
            self.reads.answer(found, question, answer)

    def lifted(self, found: Any, value: Value) -> None:
        """Note the content of an object that a value stands for."""
        reads = self.reads
        if isinstance(value, Instance) and value.host is found:
            reads.content(found, type, "class")
        match found:
            case list() | tuple() | deque():
                reads.content(found, items_of_sequence, "items")
            case dict():
                reads.content(found, _items, "items")
            case set():
                reads.content(found, lambda s: sorted(s, key=repr), "items")
            case types.FunctionType():
                reads.content(found, _cells, "items")
            case np.ndarray() if isinstance(value, Tensor):
                if value.known is None:
                    reads.arrays.append(found)
                else:
                    reads.content(found, np.array, "array")
            case _ if isinstance(value, Tensor) and hasattr(found, "creator_node"):
                reads.variables.append(found)
                reads.content(found, _type, "type")
            case type() if isinstance(value, Class):
                self._class(found)
                meta: Any = type(found)
                if meta.__flags__ & _HEAP_TYPE:  # of a class of its own
                    self._class(meta)
            case functools.partial():
                reads.answer(found, partial(_parts, found), _parts(found))
            case _ if isinstance(value, Tensor) and hasattr(found, "_version"):
                if value.known is None:
                    reads.tensors.append(found)
                else:
                    reads.content(found, _bits, "bits")
            case _ if isinstance(getattr_static(found, "_forward_hooks", None), dict):  # no mock
                reads.modules.append(found)
                for cls in type(found).__mro__[:-1]:
                    names = namespace_of(cls)
                    for name in _CALLED.intersection(names):
                        reads.name(names, name, f"{cls.__name__}.{name}")
                for hooks in (found._forward_hooks, found._forward_pre_hooks):
                    if hooks:
                        reads.content(hooks, _items, "items")
            case _ if getattr_static(found, "_local_link_hooks", MISSING) is not MISSING:
                reads.answer(found, lambda: bool(found._local_link_hooks), False)

    def _class(self, found: type) -> None:
        """Note what a class itself has."""
        names = namespace_of(found)
        self.reads.content(names, len, "count")
        for name in names:
            if name not in _TOLD_NOTHING:
                self.reads.name(names, name, f"{found.__name__}.{name}")


def namespace_of(cls: type) -> Mapping[str, Any]:
    """Return the dictionary behind a class's view of its attributes, the view if there is none."""
    found = [one for one in gc.get_referents(vars(cls)) if type(one) is dict]
    return found[0] if len(found) == 1 else vars(cls)


def _parts(found: functools.partial[Any]) -> tuple[Any, ...]:
    """Return what a partial function adds to the arguments of its calls."""
    return (found.func, *found.args, *found.keywords, *found.keywords.values())


def count_read(reads: Reads, counted: Mapping[int, int]) -> str:
    """Return the name of a count of batches that the program reads; empty if it reads none.

    Args:
        reads: What it reads.
        counted: How often it calls modules that count batches, by identity.
    """
    found = {id(x) for x in reads.tensors}
    found |= {id(read.found) for read in reads.reads if isinstance(read, ContentRead)}
    for module in reads.modules:
        if id(module) in counted and id(module.num_batches_tracked) in found:
            return "num_batches_tracked"
    return ""


def _bits(tensor: Any) -> tuple[Any, Any, bytes]:
    return tensor.shape, tensor.dtype, tensor.detach().cpu().numpy().tobytes()


def _type(variable: Any) -> tuple[Any, ...]:
    array = variable.array
    return () if array is None else (array.dtype.str, array.shape)


def _items(found: dict[Any, Any]) -> list[Any]:
    return [*found.keys(), *found.values()]


def _cells(found: types.FunctionType) -> list[Any]:
    cells = []
    for cell in found.__closure__ or ():
        try:
            cells.append(cell.cell_contents)
        except ValueError:  # not set yet
            cells.append(MISSING)
    return [
        found.__code__,
        *cells,
        *(found.__defaults__ or ()),
        *(found.__kwdefaults__ or {}).values(),
    ]


def _same(before: Any, now: Any) -> bool:
    if type(before) is not type(now):
        return False
    if isinstance(before, _PLAIN):
        same = before == now or (before != before and now != now)  # NaN stays NaN
        signed = isinstance(before, float | complex)  # 0.0 is not -0.0
        return bool(same) and (not signed or str(before) == str(now))
    if isinstance(before, tuple):
        return len(before) == len(now) and all(map(_same_item, before, now))
    return isinstance(before, types.MethodType) and bool(before == now)


def _same_item(before: Any, now: Any) -> bool:
    return before is now or _same(before, now)


def shown(value: Any) -> str:
    """Return a short text for a value."""
    if value is MISSING:
        return "not there"
    if isinstance(value, _PLAIN):
        return repr(value)
    return f"of type {type(value).__name__}"


__all__ = ["ContentRead", "NameRead", "Reading", "Reads", "count_read", "shown"]
