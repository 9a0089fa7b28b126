"""Arguments of a call as trees of leaves: tensors, and values that a graph takes for known."""

from __future__ import annotations

import enum
import functools
import inspect
import sys
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from hagane.capturing.leaves import Leaf, NumberLeaf, Obstacle, TensorLeaf, Tree, joined
from hagane.capturing.variables import KIND, is_variable
from hagane.frontends.capture.interface.structure import Object, Sized, Text, Whole
from hagane.frontends.python.values.dictionaries import items_of

_NUMBERS = (bool, int, float, complex)
_PLAIN = (str, bytes, type(None), type(Ellipsis), range, np.dtype, enum.Enum)
_WHOLE = (
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, type,
    functools.partial,
)  # fmt: skip
_DICTS = (dict, OrderedDict, defaultdict)
_REMEDY = (
    "arguments may be tensors, numbers, texts, None, lists, tuples and dicts of these, and objects "
    "whose class has Python source"
)
Arrays = Callable[[Any, str], Leaf | None]


class Reader:
    """Makes trees of the arguments of one call; values shared among them stay shared.

    Args:
        array: Returns the leaf of a tensor or an array, None for other values.
        texts: Returns the value of a text.
    """

    def __init__(self, array: Arrays, texts: Callable[[str], Any] = str):
        self._array, self._texts = array, texts
        self._objects: dict[int, Object] = {}
        self._kept: list[Any] = []
        self._paths: dict[str, Leaf] = {}

    def read(self, value: Any, path: str) -> Tree:
        """Return the tree of an argument or of a part of one.

        Raises:
            Obstacle: It may hold tensors that no graph would see, or two parts have one path.
        """
        if type(value) in _NUMBERS:
            return self._named(NumberLeaf(path, value))
        if type(value) is str:
            return self._texts(value)
        if isinstance(value, _PLAIN) or _is_plain_slice(value):
            return value
        leaf = self._array(value, path)
        if leaf is not None:
            return self._named(leaf)
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.dtype | torch.device):
            return value
        is_size = torch is not None and type(value) is torch.Size
        if type(value) is tuple or is_size:
            made = Sized if is_size else tuple
            return made(self.read(item, joined(path, i)) for i, item in enumerate(value))
        if isinstance(value, _WHOLE) or _is_model(value):
            return Whole(value)
        return self._object(value, path)

    def _named(self, leaf: Leaf) -> Leaf:
        """Return a leaf of which no other one has the path."""
        known = self._paths.setdefault(leaf.path, leaf)
        if known is not leaf and known.value is not leaf.value:
            raise Obstacle(
                f"two parts of the arguments are called '{leaf.path}', as the keys 1 and '1' of a "
                "dict are; give them names that differ"
            )
        return known

    def _object(self, value: Any, path: str) -> Object:
        known = self._objects.get(id(value))
        if known is not None:
            return known
        made = self._objects[id(value)] = Object(type(value), value)
        if isinstance(value, dict):
            items = items_of(value)
            made.items = {k: self.read(v, joined(path, k)) for k, v in items}
        elif isinstance(value, list):
            made.items = [self.read(v, joined(path, i)) for i, v in enumerate(list.copy(value))]
        elif type(value) is deque:
            made.items = [self.read(v, joined(path, i)) for i, v in enumerate(value.copy())]
            made.attributes = {"maxlen": value.maxlen}
            return made
        elif isinstance(value, tuple) and hasattr(value, "_fields"):
            pairs = zip(value._fields, value, strict=True)
            made.attributes = {name: self.read(v, joined(path, name)) for name, v in pairs}
            return made
        elif isinstance(value, tuple):
            numbered = enumerate(tuple.__iter__(value))
            made.items = [self.read(v, joined(path, i)) for i, v in numbered]
        elif not _is_open(value):
            raise Obstacle(
                f"'{path}' is a {type(value).__qualname__}, whose content no graph sees; {_REMEDY}"
            )
        if type(value) is defaultdict:
            made.attributes = {"default_factory": Whole(value.default_factory)}
        for name, held in _attributes(value):
            made.attributes[name] = self.read(held, joined(path, name))
        return made


def read_arguments(
    arguments: inspect.BoundArguments, array: Arrays, held: Mapping[str, Any] | None = None
) -> dict[str, Tree]:
    """Return the arguments of a call as trees of leaves, by name.

    Args:
        arguments: They.
        array: Makes the leaves of arrays.
        held: Lists and dicts that the program finds elsewhere; they come behind the arguments.

    Raises:
        Obstacle: One is of a type that no graph takes.
    """
    reader = Reader(array)
    made: dict[str, Tree] = {}
    for name, value in arguments.arguments.items():
        kind = arguments.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            made.update({key: reader.read(item, key) for key, item in value.items()})
        elif kind is not inspect.Parameter.VAR_POSITIONAL or value:
            made[name] = reader.read(value, name)
    made.update({name: reader.read(value, name) for name, value in (held or {}).items()})
    return made


def seen_places(model: Any, signature: inspect.Signature) -> int:
    """Return how many arguments have a place, where a wrapper sees which are given by position."""
    if not hasattr(getattr(model, "forward", model), "__wrapped__"):
        return 0
    placed = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(parameter.kind in placed for parameter in signature.parameters.values())


def array_leaf(value: Any, path: str) -> TensorLeaf | None:
    """Return the leaf of a tensor, a variable or an array; None for anything else.

    Raises:
        Obstacle: It is one that the engine cannot take.
    """
    if type(value) is np.ndarray or isinstance(value, np.generic):
        if value.dtype.kind not in "biufc" or value.dtype.name == "complex256":
            raise Obstacle(f"'{path}' is an array of {value.dtype}")
        if not value.dtype.isnative:
            raise Obstacle(f"'{path}' is an array of {value.dtype!r}, another order of bytes")
        return TensorLeaf(path, value, "numpy.ndarray", value.dtype.name, value.shape)
    if is_variable(value):
        return _variable_leaf(value, path)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _torch_leaf(torch, value, path)
    return None


def _variable_leaf(value: Any, path: str) -> TensorLeaf:
    if value.array is None or value.dtype.kind not in "biuf":
        told = "has no array yet" if value.array is None else f"is of {value.dtype}"
        raise Obstacle(f"'{path}' {told}")
    return TensorLeaf(path, value, KIND, value.dtype.name, value.shape)


def _torch_leaf(torch: Any, value: Any, path: str) -> TensorLeaf:
    if type(value) not in (torch.Tensor, torch.nn.Parameter):
        raise Obstacle(f"'{path}' is a {type(value).__qualname__}, not a plain tensor")
    if value.device.type != "cpu" or value.layout is not torch.strided:
        raise Obstacle(f"'{path}' lies on {value.device} ({value.layout}); graphs run on the CPU")
    dtype = str(value.dtype).removeprefix("torch.")
    if value.is_quantized or dtype == "complex32":
        raise Obstacle(f"'{path}' is of {value.dtype}")
    if value.is_complex() and value.requires_grad:
        raise Obstacle(f"'{path}' is of {value.dtype} and requires gradients")
    return TensorLeaf(path, value, "torch.Tensor", dtype, tuple(value.shape))


def example_leaf(value: Any, path: str) -> TensorLeaf | None:
    """Return the leaf of an example, which is anything with an element type and sizes."""
    if isinstance(value, type) or not (hasattr(value, "dtype") and hasattr(value, "shape")):
        return None
    if hasattr(value, "creator_node"):
        kind = "chainer.Variable"
    else:
        kind = "torch.Tensor" if hasattr(value, "_version") else "numpy.ndarray"
    dtype = str(value.dtype).removeprefix("torch.")
    return TensorLeaf(path, value, kind, dtype, tuple(int(size) for size in value.shape))


def text_leaf(value: str) -> Text:
    """Return a text that is an argument."""
    return Text(value)


def _is_plain_slice(value: Any) -> bool:
    """Whether a value is a slice between whole numbers."""
    bounds = (value.start, value.stop, value.step) if type(value) is slice else (value,)
    return type(value) is slice and all(type(n) in (int, type(None)) for n in bounds)


def _is_model(value: Any) -> bool:
    """Whether an object has weights of its own, which are those of the graph."""
    return hasattr(type(value), "named_parameters") or hasattr(type(value), "namedparams")


def _is_open(value: Any) -> bool:
    """Whether all that an object holds lies in attributes."""
    hidden = [base for base in type(value).__mro__ if not base.__flags__ & _HEAP_TYPE]
    return all(base is object for base in hidden) and (
        hasattr(value, "__dict__") or any("__slots__" in vars(base) for base in type(value).__mro__)
    )


_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class made by Python code, or by a module in C


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    yield from getattr(value, "__dict__", {}).items()
    for base in type(value).__mro__:
        slots = vars(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                yield name, getattr(value, name)


__all__ = [
    "Reader", "array_leaf", "example_leaf", "read_arguments", "seen_places", "text_leaf",
]  # fmt: skip
