"""Results of programs, made of the outputs of their graphs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hagane.frontends.capture.interface.rebuilding import rebuilt
from hagane.frontends.capture.interface.structure import (
    Column,
    Items,
    Leaf,
    Made,
    Opaque,
    Record,
)


def builder(
    structure: Any, names: Sequence[str], convert: Callable[[Any, str], Any]
) -> Callable[[Sequence[Any]], Any]:
    """Return the function from outputs in order to the result; see :func:`rebuilt`."""
    if any(leaf.is_found for leaf in leaves_of(structure)):
        return lambda found: rebuilt(
            structure, dict(zip(names, found, strict=True)), convert, {}, {}
        )
    if type(structure) in (list, tuple) and all(isinstance(part, Leaf) for part in structure):
        kind, parts = type(structure), [(names.index(leaf.name), leaf.kind) for leaf in structure]
        return lambda found: kind([convert(found[i], each) for i, each in parts])
    if isinstance(structure, Leaf):
        at, own = names.index(structure.name), structure.kind
        return lambda found: convert(found[at], own)
    return lambda found: rebuilt(structure, dict(zip(names, found, strict=True)), convert, {})


def can_be_rebuilt(structure: Any) -> bool:
    """Whether the classes of all objects in a structure are known, and all that they hold."""
    if isinstance(structure, Items):
        return can_be_rebuilt(structure.item)
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


def leaves_of(structure: Any) -> Iterator[Leaf]:
    """Yield the outputs of a structure in order."""
    if isinstance(structure, Items):
        structure = structure.item
    if isinstance(structure, Column):
        structure = (structure.values, structure.sizes)
    if isinstance(structure, Leaf):
        yield structure
    if isinstance(structure, Made):
        structure = (*structure.attributes.values(), structure.items)
    if isinstance(structure, Record):
        structure = structure.fields
    if isinstance(structure, Mapping):
        structure = tuple(structure.values())
    for part in structure if isinstance(structure, list | tuple) else ():
        yield from leaves_of(part)


def kinds_of(structure: Any) -> dict[str, str]:
    """Return the kinds of outputs by name, in order."""
    return {leaf.name: leaf.kind for leaf in leaves_of(structure)}


def tensors_of(structure: Any, result: Any, kind: str) -> list[Any]:
    """Return the tensors of a kind in a result, in the order of the outputs."""
    if isinstance(structure, Items):
        return _columns_of(structure.item, result, kind)
    if isinstance(structure, Leaf):
        return [result] if structure.kind.removeprefix("complex ") == kind else []
    if isinstance(structure, Record):
        pairs = [(part, getattr(result, name)) for name, part in structure.fields.items()]
    elif isinstance(structure, Made):
        pairs = [(part, getattr(result, name)) for name, part in structure.attributes.items()]
        pairs += [] if structure.items is None else [(structure.items, result)]
    elif isinstance(structure, Mapping):
        pairs = [(part, result[key]) for key, part in structure.items()]
    elif isinstance(structure, list | tuple):
        pairs = list(zip(structure, result, strict=True))
    else:
        pairs = []
    return [tensor for part, value in pairs for tensor in tensors_of(part, value, kind)]


def _columns_of(item: Any, results: Sequence[Any], kind: str) -> list[Any]:
    """Return the tensors of a kind in a list whose length the data decide."""
    if isinstance(item, Column):
        if item.values.kind != kind:
            return []
        return [_stack(results, kind) if item.sizes is None else _join(results, item.axis, kind)]
    if isinstance(item, Record):
        pairs = [(p, [getattr(r, name) for r in results]) for name, p in item.fields.items()]
    elif isinstance(item, Mapping):
        pairs = [(part, [result[key] for result in results]) for key, part in item.items()]
    elif isinstance(item, list | tuple):
        pairs = [(part, [result[i] for result in results]) for i, part in enumerate(item)]
    else:
        pairs = []
    return [tensor for part, value in pairs for tensor in _columns_of(part, value, kind)]


def _join(tensors: Sequence[Any], axis: int, kind: str) -> Any:
    """Return tensors of PyTorch or variables behind each other."""
    if kind == "torch.Tensor":
        torch = sys.modules["torch"]
        return torch.cat(list(tensors), axis) if len(tensors) else torch.zeros(0)
    from hagane.nn.autograd.variable import Variable
    from hagane.nn.functions.joining import concat

    return concat(list(tensors), axis) if len(tensors) else Variable(np.zeros(0, np.float32))


def _stack(tensors: Sequence[Any], kind: str) -> Any:
    """Return tensors of PyTorch or variables as one; none as one that nothing leads back from."""
    if kind == "torch.Tensor":
        torch = sys.modules["torch"]
        return torch.stack(tensors) if tensors else torch.zeros(0)
    from hagane.nn.autograd.variable import Variable
    from hagane.nn.functions.joining import stack

    return stack(tensors) if tensors else Variable(np.zeros(0, np.float32))


__all__ = ["builder", "can_be_rebuilt", "kinds_of", "leaves_of", "tensors_of"]
