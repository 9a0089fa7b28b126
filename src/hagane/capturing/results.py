"""Results of programs, made of the outputs of their graphs."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hagane.frontends.capture.interface.structure import (
    Column,
    Constant,
    Handed,
    Items,
    Leaf,
    Made,
    Opaque,
    Record,
)


def rebuilt(
    structure: Any,
    values: Mapping[str, Any],
    convert: Callable[[Any, str], Any],
    given: Mapping[str, Any],
) -> Any:
    """Return the result of a program, from the outputs of its graph.

    Args:
        structure: As :class:`hagane.frontends.capture.capture.Captured` has it.
        values: The outputs by name.
        convert: Makes of an output a value of the kind of the program.
        given: The objects of the caller by their paths, as :func:`objects` returns them.
    """

    def build(part: Any) -> Any:
        if isinstance(part, Leaf):
            return convert(values[part.name], part.kind)
        if isinstance(part, Items):
            return _listed(part.item, values, convert)
        if isinstance(part, Handed):
            return given[part.path]
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


def _listed(item: Any, values: Mapping[str, Any], convert: Callable[[Any, str], Any]) -> list[Any]:
    """Return a list whose length the data decide, given the structure of its items."""
    if isinstance(item, Column):
        whole = convert(values[item.values.name], item.values.kind)
        found = list(whole) if item.sizes is None else _cut(whole, values[item.sizes.name], item)
        if item.inner:
            python = _PYTHON[item.inner]
            return [[python(number) for number in part] for part in found]
        return found
    if isinstance(item, Constant):
        return [_real(item.value)]
    if isinstance(item, Record):
        names, parts = list(item.fields), list(item.fields.values())
        rows = _rows([_listed(part, values, convert) for part in parts], parts)
        return [_record(item, dict(zip(names, row, strict=True))) for row in rows]
    if isinstance(item, dict):
        parts = list(item.values())
        rows = _rows([_listed(part, values, convert) for part in parts], parts)
        return [dict(zip(item, row, strict=True)) for row in rows]
    return [type(item)(row) for row in _rows([_listed(p, values, convert) for p in item], item)]


def _rows(columns: Sequence[list[Any]], parts: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return the parts of each item; those that are the same in all are there once."""
    count = max(
        (len(c) for c, p in zip(columns, parts, strict=True) if not isinstance(p, Constant)),
        default=0,
    )
    full = [
        c * count if isinstance(p, Constant) else c for c, p in zip(columns, parts, strict=True)
    ]
    return list(zip(*full, strict=True))


def _cut(whole: Any, sizes: Any, column: Column) -> list[Any]:
    """Return the tensors that lie behind each other along an axis."""
    stops = [int(stop) for stop in np.cumsum(np.asarray(sizes))]
    front = (slice(None),) * column.axis
    return [
        whole[(*front, slice(start, stop))] for start, stop in zip([0, *stops], stops, strict=False)
    ]


_PYTHON: dict[str, Callable[[Any], Any]] = {"int": int, "float": float, "bool": bool}


def builder(
    structure: Any, names: Sequence[str], convert: Callable[[Any, str], Any]
) -> Callable[[Sequence[Any]], Any]:
    """Return the function from outputs in order to the result; see :func:`rebuilt`."""
    if type(structure) in (list, tuple) and all(isinstance(part, Leaf) for part in structure):
        kind, parts = type(structure), [(names.index(leaf.name), leaf.kind) for leaf in structure]
        return lambda found: kind([convert(found[i], each) for i, each in parts])
    if isinstance(structure, Leaf):
        at, own = names.index(structure.name), structure.kind
        return lambda found: convert(found[at], own)
    return lambda found: rebuilt(structure, dict(zip(names, found, strict=True)), convert, {})


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
    if issubclass(found.cls, tuple):
        made = tuple.__new__(found.cls, items)
    else:
        made = found.cls.__new__(found.cls)
    if isinstance(made, tuple):
        pass
    elif isinstance(items, dict):
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


def kinds_of(structure: Any) -> dict[str, str]:
    """Return the kinds of outputs by name, in order."""
    if isinstance(structure, Items):
        structure = structure.item
    if isinstance(structure, Column):
        sizes = kinds_of(structure.sizes)
        return {**kinds_of(structure.values), **sizes}
    if isinstance(structure, Leaf):
        return {structure.name: structure.kind}
    if isinstance(structure, Made):
        structure = (*structure.attributes.values(), structure.items)
    if isinstance(structure, Record):
        structure = structure.fields
    if isinstance(structure, Mapping):
        structure = tuple(structure.values())
    made: dict[str, str] = {}
    for part in structure if isinstance(structure, list | tuple) else ():
        made.update(kinds_of(part))
    return made


def tensors_of(structure: Any, result: Any, kind: str) -> list[Any]:
    """Return the tensors of a kind in a result, in the order of the outputs."""
    if isinstance(structure, Items):
        return _columns_of(structure.item, result, kind)
    if isinstance(structure, Leaf):
        return [result] if structure.kind == kind else []
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


__all__ = ["builder", "can_be_rebuilt", "kinds_of", "rebuilt", "tensors_of"]
