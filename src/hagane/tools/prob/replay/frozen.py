"""Values of Python as keys: equal keys mean values that no program can tell apart."""

from __future__ import annotations

import itertools
import warnings
from collections import deque
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from fractions import Fraction
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from hagane.tools.prob.replay.unseen import Unseen

_PLAIN = (int, bool, float, complex, str, bytes, type(None), Fraction)
_WHOLE = {int}
_NAMED = (type, ModuleType, BuiltinFunctionType)


class Unfrozen(Exception):
    """A value whose state cannot be told, such as a generator."""


def freeze(values: Iterable[tuple[str, Any]]) -> tuple[Any, ...]:
    """Return named values as one key, in which a list that two of them share is one.

    Raises:
        Unfrozen: One of them is, or holds, an object whose state cannot be told.
    """
    freezing = _Freezing()
    return tuple((name, freezing.key(value)) for name, value in values)


class _Freezing:
    """Keys of objects that may share parts: a part met again is told by its number."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._held: list[Any] = []

    def key(self, value: Any) -> Any:
        """Return the key of a value."""
        kind = type(value)
        if kind is Unseen:
            raise Unfrozen
        if kind in _PLAIN:
            # NaN is its own: two runs that have one go on alike.
            return kind, str(value) if kind in (float, complex) else value
        if isinstance(value, _NAMED):
            return "named", value  # and not its place in memory, which others may take
        if kind is tuple:
            return "tuple", tuple(map(self.key, value))
        if id(value) in self._numbers:
            return "again", self._numbers[id(value)]
        self._numbers[id(value)] = len(self._numbers)
        self._held.append(value)  # so that no other object takes its place in memory
        return kind, self._content(value)

    def _content(self, value: Any) -> Any:
        if isinstance(value, Mapping) and isinstance(value, dict):
            items = tuple((self.key(key), self.key(item)) for key, item in value.items())
            return items, self._fields(value), self.key(getattr(value, "default_factory", None))
        if type(value) in (list, set) and set(map(type, value)) <= _WHOLE:
            # Many states hold such; numbers and keys of them are not equal to keys of others.
            return tuple(value)
        if isinstance(value, list | tuple | deque):
            longest = value.maxlen if isinstance(value, deque) else None
            return tuple(map(self.key, value)), longest, self._fields(value)
        if isinstance(value, set | frozenset):
            # Where hashes collide, the order tells which item came first.
            return tuple(map(self.key, value)), self._fields(value)
        if isinstance(value, range):
            return value.start, value.stop, value.step
        if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
            return value.dtype.str, value.shape, value.tobytes()
        if isinstance(value, MethodType):
            return self.key(value.__self__), self.key(value.__func__)
        if isinstance(value, CellType):
            try:
                return self.key(value.cell_contents)
            except ValueError:  # empty
                return ()
        if isinstance(value, FunctionType):
            given = (value.__closure__, value.__defaults__, value.__kwdefaults__)
            return value.__code__, tuple(map(self.key, given)), self._fields(value)
        if isinstance(value, bytearray | str | int | float | bytes):
            return bytes(value) if isinstance(value, bytearray) else str(value), self._fields(value)
        if hasattr(value, "__next__") and type(value).__module__ in ("builtins", "itertools"):
            return self._iterator(value)
        if isinstance(value, ContextVar):
            return value, self.key(value.get(None))
        if hasattr(value, "__next__"):
            raise Unfrozen
        if not _is_of_python(type(value)):
            return self._pickled(value)
        return self._fields(value)

    def _pickled(self, value: Any) -> Any:
        """Return the key of what an object of a class in C is pickled as (a date, a number)."""
        if value.__reduce_ex__.__qualname__.partition(".")[0] != "object":
            raise Unfrozen
        try:
            return self.key(value.__reduce_ex__(4))
        except TypeError:
            raise Unfrozen from None

    def _iterator(self, value: Any) -> Any:
        try:
            with warnings.catch_warnings():
                # From Python 3.12 on those of itertools warn that they will lose this.
                warnings.simplefilter("ignore", DeprecationWarning)
                return self.key(value.__reduce__())
        except TypeError:  # a generator
            if isinstance(value, itertools.count):  # whose text is its state
                return repr(value)
            raise Unfrozen from None

    def _fields(self, value: Any) -> tuple[Any, ...]:
        fields = dict(getattr(value, "__dict__", {}))
        for cls in type(value).__mro__:
            slots = cls.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if hasattr(value, name):
                    fields[name] = getattr(value, name)
        return tuple((name, self.key(item)) for name, item in sorted(fields.items()))


def _is_of_python(kind: type) -> bool:
    """Tell whether all of an object's state lies in its fields, as in classes of Python."""
    slots = 0
    for cls in kind.__mro__[:-1]:
        if not cls.__flags__ & _MADE_IN_PYTHON:
            return False
        own = cls.__dict__.get("__slots__", ())
        slots += 1 if isinstance(own, str) else len(tuple(own))
        # A dictionary, and a list of weak references, which classes in C do not show.
        slots += ("__dict__" in vars(cls)) + ("__weakref__" in vars(cls))
    return kind.__basicsize__ <= object.__basicsize__ + _POINTER * slots


_POINTER = 8
_MADE_IN_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE; the size tells those that C makes
