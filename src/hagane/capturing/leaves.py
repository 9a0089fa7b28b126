"""Arguments of a call as leaves: tensors, and values that a graph takes for known."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hagane.errors import HaganeError

_PLAIN = (str, bytes, type(None))
_NUMBERS = (bool, int, float)


class Obstacle(HaganeError, NotImplementedError):
    """A reason why a call cannot run as a graph."""


@dataclass(frozen=True, slots=True)
class TensorLeaf:
    """A tensor or an array.

    Attributes:
        path: Its path in the arguments: ``x``, ``states.0``.
        value: It.
        kind: ``torch.Tensor`` or ``numpy.ndarray``.
        dtype: Its element type.
        shape: Its sizes.
    """

    path: str
    value: Any
    kind: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NumberLeaf:
    """A number of Python."""

    path: str
    value: Any


Leaf = TensorLeaf | NumberLeaf
Tree = Any  # of tuples, lists and dicts, leaves and plain values


def read_arguments(arguments: inspect.BoundArguments) -> dict[str, Tree]:
    """Return the arguments of a call as trees of leaves, by name.

    Raises:
        Obstacle: One is of a type that no graph takes, or stands for any number of arguments.
    """
    made: dict[str, Tree] = {}
    for name, value in arguments.arguments.items():
        kind = arguments.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL and value:
            raise Obstacle(f"the call gives arguments to '*{name}'")
        if kind is inspect.Parameter.VAR_KEYWORD:
            made.update({key: _tree(item, key) for key, item in value.items()})
        elif kind is not inspect.Parameter.VAR_POSITIONAL:
            made[name] = _tree(value, name)
    return made


def _tree(value: Any, path: str) -> Tree:
    if type(value) in _NUMBERS:
        return NumberLeaf(path, value)
    if isinstance(value, _PLAIN):
        return value
    if type(value) in (list, tuple):
        return type(value)(_tree(item, f"{path}.{i}") for i, item in enumerate(value))
    if type(value) is dict:
        return {key: _tree(item, f"{path}.{key}") for key, item in value.items()}
    if type(value) is np.ndarray or isinstance(value, np.generic):
        if value.dtype.kind not in "biuf":
            raise Obstacle(f"'{path}' is an array of {value.dtype}")
        return TensorLeaf(path, value, "numpy.ndarray", value.dtype.name, value.shape)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _torch_leaf(torch, value, path)
    if torch is not None and isinstance(value, torch.dtype | torch.device):
        return value
    raise Obstacle(
        f"'{path}' is a {type(value).__qualname__}; arguments may be tensors, numbers, texts, None "
        "and tuples, lists and dicts of these"
    )


def _torch_leaf(torch: Any, value: Any, path: str) -> TensorLeaf:
    if type(value) not in (torch.Tensor, torch.nn.Parameter):
        raise Obstacle(f"'{path}' is a {type(value).__qualname__}, not a plain tensor")
    if value.device.type != "cpu" or value.layout is not torch.strided:
        raise Obstacle(f"'{path}' lies on {value.device} ({value.layout}); graphs run on the CPU")
    if value.is_complex() or value.is_quantized:
        raise Obstacle(f"'{path}' is of {value.dtype}")
    dtype = str(value.dtype).removeprefix("torch.")
    return TensorLeaf(path, value, "torch.Tensor", dtype, tuple(value.shape))


def leaves(tree: Tree) -> list[Leaf]:
    """Return the leaves of a tree in order."""
    if isinstance(tree, TensorLeaf | NumberLeaf):
        return [tree]
    if isinstance(tree, dict):
        tree = tuple(tree.values())
    if isinstance(tree, tuple | list):
        return [leaf for item in tree for leaf in leaves(item)]
    return []


def outline(tree: Tree) -> Any:
    """Return the common part of calls that one graph may serve: all but sizes and numbers."""
    if isinstance(tree, TensorLeaf):
        return (tree.kind, tree.dtype, len(tree.shape))
    if isinstance(tree, NumberLeaf):
        return type(tree.value)
    if isinstance(tree, dict):
        return (dict, *((key, outline(item)) for key, item in tree.items()))
    if isinstance(tree, tuple | list):
        return (type(tree), *map(outline, tree))
    return tree


def replaced(tree: Tree, change: Callable[[Leaf], Any]) -> Any:
    """Return a tree with its leaves replaced."""
    if isinstance(tree, TensorLeaf | NumberLeaf):
        return change(tree)
    if isinstance(tree, dict):
        return {key: replaced(item, change) for key, item in tree.items()}
    if isinstance(tree, tuple | list):
        return type(tree)(replaced(item, change) for item in tree)
    return tree


def rebuilt(structure: Any, values: Mapping[str, Any], convert: Callable[[Any, str], Any]) -> Any:
    """Return the result of a program, from the outputs of its graph.

    Args:
        structure: As :class:`hagane.frontends.capture.capture.Captured` has it.
        values: The outputs by name.
        convert: Makes of an output a value of the kind of the program.
    """
    from hagane.frontends.capture.structure import Constant, Leaf, Made, Record

    def build(part: Any) -> Any:
        if isinstance(part, Leaf):
            return convert(values[part.name], part.kind)
        if isinstance(part, Constant):
            return _real(part.value)
        if isinstance(part, Made):
            items = None if part.items is None else build(part.items)
            return _made(part, {name: build(item) for name, item in part.attributes.items()}, items)
        if isinstance(part, Record):
            return _record(part, {name: build(item) for name, item in part.fields.items()})
        if isinstance(part, dict):
            return type(part)((key, build(item)) for key, item in part.items())
        return type(part)(build(item) for item in part)

    return build(structure)


def _record(record: Any, fields: dict[str, Any]) -> Any:
    if record.cls is None:
        from collections import namedtuple

        return namedtuple("result", list(fields))(**fields)
    if record.is_tuple:
        return record.cls(**fields)
    given = {
        f.name: fields[f.name]
        for f in dataclasses.fields(record.cls)
        if f.init and f.name in fields
    }
    made = record.cls(**given)
    for name, value in fields.items():
        if name not in given:
            object.__setattr__(made, name, value)
    return made


def _made(found: Any, attributes: dict[str, Any], items: Any) -> Any:
    """Return an object of a class with its attributes, without a call of its ``__init__``."""
    made = found.cls.__new__(found.cls)
    if isinstance(items, dict):
        dict.update(made, items)
    elif items is not None:
        list.extend(made, items)
    for name, value in attributes.items():
        object.__setattr__(made, name, value)
    return made


def _real(value: Any) -> Any:
    """Return the object of the running Python that a known value of the interpreter stands for."""
    from hagane.frontends.python.values.values import Device, DType
    from hagane.graph.types import dtype_name

    if isinstance(value, Device):
        return sys.modules["torch"].device(value.name)
    if isinstance(value, DType):
        name = dtype_name(value.dtype)
        return getattr(sys.modules["torch"], name) if value.library == "torch" else np.dtype(name)
    return value


def can_be_rebuilt(structure: Any) -> bool:
    """Whether the classes of all objects in a structure are known, and all that they hold."""
    from hagane.frontends.capture.structure import Made, Opaque, Record

    if isinstance(structure, Opaque):
        return False
    if isinstance(structure, Made):
        parts = (*structure.attributes.values(), structure.items)
        return structure.cls is not None and all(map(can_be_rebuilt, parts))
    if isinstance(structure, Record):
        if structure.cls is None and not structure.is_tuple:
            return False
        return all(map(can_be_rebuilt, structure.fields.values()))
    if isinstance(structure, dict):
        return all(map(can_be_rebuilt, structure.values()))
    return not isinstance(structure, list | tuple) or all(map(can_be_rebuilt, structure))
