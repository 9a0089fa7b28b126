"""Arguments of a step behind its model: tensors, alone and in dicts, lists, tuples and objects."""

from __future__ import annotations

import enum
import inspect
import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from hagane.errors import InvalidArgument
from hagane.frontends.capture.interface.structure import (
    Constant,
    Example,
    Leaf,
    Made,
    Object,
    Record,
    Same,
    Text,
    Whole,
)
from hagane.frontends.python.values.dictionaries import items_of
from hagane.nn.autograd.variable import Variable

_PLAIN = (bool, int, float, bytes, type(None), type(Ellipsis), range, enum.Enum, np.dtype)


class Signature:
    """The arguments that a loss takes.

    Args:
        loss: A function.
        model: The kind of its first argument in words; None for a link that is its own loss.

    Attributes:
        model: The name of the first argument, empty if there is none.
        names: Those of the others that have a position.

    Raises:
        InvalidArgument: It takes no model.
    """

    def __init__(self, loss: Callable[..., Any], model: str | None):
        found = inspect.signature(loss).parameters.values()
        taken = [p for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        if model is not None and not taken:
            raise InvalidArgument(f"compile: expected loss({model}, ...), got no arguments")
        self._of = f"a {model} and " if model is not None else ""
        self.model = taken.pop(0).name if model is not None else ""
        self.names = [parameter.name for parameter in taken]
        self._defaults = {p.name: p.default for p in found if p.default is not p.empty}
        self._many = next((p.name for p in found if p.kind is p.VAR_POSITIONAL), "")
        self._keywords = [p.name for p in found if p.kind is p.KEYWORD_ONLY]
        self._unnamed = {p.name for p in taken if p.kind is p.POSITIONAL_ONLY}
        self._any = any(p.kind is p.VAR_KEYWORD for p in found)

    def complete(self, given: Sequence[Any], named: Mapping[str, Any]) -> Complete:
        """Return the arguments of a call behind the model, with defaults for missing ones.

        Args:
            given: Those by position.
            named: Those by name.

        Raises:
            InvalidArgument: There are too many or too few.
        """
        placed = dict(zip(self.names, given, strict=False))
        more = given[len(self.names) :]
        wrong = [
            name
            for name in named
            if name in placed or name in self._unnamed or name == self.model
            or not (name in self.names or name in self._keywords or self._any)
        ]  # fmt: skip
        places = {name: named[name] for name in self.names if name in named}
        known = {**self._defaults, **places, **placed}
        keywords = {name: value for name, value in named.items() if name not in places}
        missing = [name for name in self.names if name not in known]
        missing += [n for n in self._keywords if n not in named and n not in self._defaults]
        if wrong or missing or (more and not self._many):
            names = [*self.names, *([f"*{self._many}"] * bool(self._many)), *self._keywords]
            by_name = f", by name {', '.join(named)}" if named else ""
            raise InvalidArgument(
                f"step: expected {self._of}{', '.join(names) or 'nothing else'}, "
                f"got {len(given)} arguments{' after it' * bool(self._of)}{by_name}"
            )
        # (Called as capture calls them.)
        titles = [self._many] if len(more) == 1 else [f"{self._many}{i}" for i in range(len(more))]
        for title in titles:
            if title in known or title in keywords:
                raise InvalidArgument(
                    f"step: two arguments are called '{title}': give '{self._many}' another name"
                )
        positional = {name: known[name] for name in self.names}
        return Complete({**positional, **dict(zip(titles, more, strict=True))}, keywords)


@dataclass(frozen=True, slots=True)
class Complete:
    """The arguments of a call behind the model.

    Attributes:
        positional: Those that are passed by position, by their names.
        keywords: Those that are passed by name.
    """

    positional: Mapping[str, Any]
    keywords: Mapping[str, Any]


class Given:
    """The arguments of one call.

    Args:
        arguments: Their values by name; variables count as their arrays.

    Attributes:
        leaves: Tensors and arrays by their paths: ``x``, ``batch.labels``, ``pair.0``.
        objects: Dicts, lists and objects that the loss may change, likewise.
        numbers: Numbers of Python, likewise; of two with one path the first one.
        outline: Equal in calls that differ in these numbers and in the content and sizes of tensors
            alone.

    Raises:
        InvalidArgument: Two parts have one path.
    """

    def __init__(self, arguments: Complete):
        self.leaves: dict[str, Any] = {}
        self.objects: dict[str, Any] = {}
        self.numbers: dict[str, int | float] = {}
        self._seen: dict[int, int] = {}
        self._again: set[str] = set()  # paths of two numbers
        self._positional, self._keywords = arguments.positional, arguments.keywords
        self.outline: Hashable = tuple(
            (name, self._outline(value, name))
            for name, value in (*self._positional.items(), *self._keywords.items())
        )

    @property
    def values(self) -> list[Any]:
        """Tensors and arrays in order."""
        return list(self.leaves.values())

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The sizes of the leaves."""
        return [tuple(leaf.shape) for leaf in self.leaves.values()]

    @property
    def variable(self) -> dict[str, int | float]:
        """Numbers that may become inputs: those that alone have their path."""
        known = self._again | self.leaves.keys()
        return {path: value for path, value in self.numbers.items() if path not in known}

    def types(
        self, sizes: Sequence[Sequence[str]], free: Set[str] = frozenset()
    ) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments as capture takes them: those by position, and those by name.

        Args:
            sizes: Those of the leaves as text.
            free: The paths of the numbers that become inputs; others are known.
        """
        texts = {
            path: f"{_dtype(leaf)}[{', '.join(one)}]"
            for (path, leaf), one in zip(self.leaves.items(), sizes, strict=True)
        }
        texts |= {path: type(self.numbers[path]).__name__ for path in free}
        made: dict[int, Object] = {}
        return (
            [self._typed(value, name, texts, made) for name, value in self._positional.items()],
            {name: self._typed(v, name, texts, made) for name, v in self._keywords.items()},
        )

    def _outline(self, value: Any, path: str) -> Hashable:
        value = _plain_variable(value)
        if _is_array(value):
            known = self.leaves.setdefault(path, value)
            if known is not value and not isinstance(value, np.generic):
                raise InvalidArgument(
                    f"step: two parts of the arguments are called '{path}', as the keys 1 and '1' "
                    "of a dict are: give them names that differ"
                )
            return type(value), _dtype(value), len(value.shape)
        if type(value) in (int, float):
            if path not in self.numbers:
                self.numbers[path] = value
                return (type(value),)
            self._again.add(path)
        if isinstance(value, float):
            return type(value), repr(value)  # 0.0 and -0.0 differ, NaN is one value
        if isinstance(value, str) or _is_plain(value):
            return type(value), value
        if type(value) is tuple:
            return type(value), *(self._outline(v, f"{path}.{i}") for i, v in enumerate(value))
        if id(value) in self._seen:
            return "again", self._seen[id(value)]
        parts = ({}, dict(enumerate(value))) if type(value) is list else _parts(value)
        if parts is None:
            return Same(value)
        self._seen[id(value)] = len(self._seen)
        self.objects[path] = value
        return type(value), *(
            (name, self._outline(part, f"{path}.{name}"))
            for found in parts
            for name, part in (found or {}).items()
        )

    def _typed(
        self, value: Any, path: str, texts: Mapping[str, str], made: dict[int, Object]
    ) -> Any:
        value = _plain_variable(value)
        if path in texts and _is_array(value):
            of_numpy = isinstance(value, np.ndarray | np.generic)
            kind = "numpy.ndarray" if of_numpy else "torch.Tensor"
            return Example(texts[path], kind, is_array=isinstance(value, np.ndarray))
        if isinstance(value, str):
            return Text(value)
        if _is_plain(value):
            return Example(texts[path]) if type(value) in (int, float) and path in texts else value
        if type(value) is tuple:
            return tuple(self._typed(v, f"{path}.{i}", texts, made) for i, v in enumerate(value))
        if id(value) in made:
            return made[id(value)]
        parts = ({}, None) if type(value) is list else _parts(value)
        if parts is None:
            return Whole(value)
        found = made[id(value)] = Object(type(value), value)
        attributes, items = parts
        found.attributes = {
            name: self._typed(part, f"{path}.{name}", texts, made)
            for name, part in attributes.items()
        }
        if type(value) is list:
            found.items = [
                self._typed(part, f"{path}.{i}", texts, made) for i, part in enumerate(value)
            ]
        elif items is not None:
            found.items = {
                name: self._typed(part, f"{path}.{name}", texts, made)
                for name, part in items.items()
            }
        return found


def check_result(structure: Any) -> None:
    """Fail unless a loss returns one tensor.

    Args:
        structure: Of its result, as capture describes it.

    Raises:
        InvalidArgument: It returns something else, which is named.
    """
    if isinstance(structure, Leaf) and structure.kind not in ("int", "float", "bool", "range"):
        return
    found: object = type(structure).__name__
    if isinstance(structure, Leaf):
        found = f"a number of Python ({structure.kind}), through which no gradient goes"
    elif isinstance(structure, Constant):
        found = repr(structure.value)
    elif isinstance(structure, Record | Made) and structure.cls is not None:
        found = f"a {structure.cls.__qualname__}"
    raise InvalidArgument(
        f"step: expected the loss to return a tensor of one number, got {found}: return the loss "
        "alone"
    )


def _plain_variable(value: Any) -> Any:
    """Return the array of a variable, other values as they are."""
    return value.array if isinstance(value, Variable) else value


def _is_array(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return isinstance(value, np.ndarray | np.generic) or (
        torch is not None and isinstance(value, torch.Tensor)
    )


def _is_plain(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return isinstance(value, _PLAIN) or (
        torch is not None and isinstance(value, torch.dtype | torch.device)
    )


def _dtype(leaf: Any) -> str:
    return str(leaf.dtype).removeprefix("torch.")


def _parts(value: Any) -> tuple[dict[Any, Any], dict[Any, Any] | None] | None:
    """Return attributes and items of an object; None for one that is known as a whole."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict(zip(value._fields, value, strict=True)), None
    if type(value) in (dict, OrderedDict):
        return {}, value
    cls = type(value)
    if isinstance(value, type) or not hasattr(value, "__dict__") or callable(value):
        return None
    if (
        hasattr(cls, "named_parameters")
        or hasattr(cls, "namedparams")
        or cls.__module__ == "builtins"
    ):
        return None
    items = dict(items_of(value)) if isinstance(value, dict) else None
    bases = [base for base in cls.__mro__ if base not in (object, dict, OrderedDict)]
    if any(not base.__flags__ & _HEAP_TYPE for base in bases):
        return None
    return dict(vars(value)), items


_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class made by Python code, or by a module in C


__all__ = ["Complete", "Given", "Same", "Signature", "check_result"]
