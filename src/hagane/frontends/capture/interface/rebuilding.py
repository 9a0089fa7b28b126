"""Values of programs, made of the outputs of their graphs: results, new content of arguments."""

from __future__ import annotations

import copy
import dataclasses
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hagane.frontends.capture.interface.structure import (
    Change,
    Column,
    Constant,
    Handed,
    Items,
    Kept,
    Leaf,
    Made,
    Queued,
    Record,
    Sized,
)
from hagane.frontends.python.values.dictionaries import empty, fill, items_of


def rebuilt(
    structure: Any,
    values: Mapping[str, Any],
    convert: Callable[[Any, str], Any],
    given: Mapping[str, Any],
    known: dict[str, Any] | None = None,
) -> Any:
    """Return the result of a program, from the outputs of its graph.

    Args:
        structure: As :class:`hagane.frontends.capture.capture.Captured` has it.
        values: The outputs by name.
        convert: Makes of an output a value of the kind of the program.
        given: The objects of the caller by their paths, as :func:`objects` returns them; with
            ``known``, tensors too.
        known: The tensors that outputs are, by name, where they are the same object elsewhere too;
            takes those that are made. If None each output becomes a tensor of its own.
    """

    def leaf(part: Leaf) -> Any:
        if known is None or not part.first:
            return convert(values[part.name], part.kind)
        if part.path:
            return given[part.path]
        if part.held is not None:
            return part.held
        if part.first not in known:
            known[part.first] = convert(values[part.name], part.kind)
        return known[part.first]

    def build(part: Any) -> Any:
        if isinstance(part, Leaf):
            return leaf(part)
        if isinstance(part, Items):
            items = _listed(part.item, values, convert)
            return tuple(items) if part.is_tuple else items
        if isinstance(part, Handed):
            return given[part.path]
        if isinstance(part, Constant):
            return _real(part.value)
        if isinstance(part, Made):
            held = None if part.items is None else build(part.items)
            return _made(part, {name: build(item) for name, item in part.attributes.items()}, held)
        if isinstance(part, Record):
            return _record(part, {name: build(item) for name, item in part.fields.items()})
        if isinstance(part, dict):
            made = copy.copy(part)  # of its class, with its default
            made.clear()
            for key, item in part.items():
                made[_real(key)] = build(item)
            return made
        if isinstance(part, Sized):
            return sys.modules["torch"].Size([build(item) for item in part])
        if isinstance(part, Queued):
            return deque(map(build, part), part.most)
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


def _record(record: Any, fields: dict[str, Any]) -> Any:
    if record.cls is None:
        from collections import namedtuple

        return namedtuple("result", list(fields))(**fields)
    if record.is_tuple:
        is_sequence = not hasattr(record.cls, "_fields")  # torch.return_types.max
        return record.cls(tuple(fields.values())) if is_sequence else record.cls(**fields)
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
        fill(made, items)
    elif items is not None:
        list.extend(made, items)
    for name, value in attributes.items():
        object.__setattr__(made, name, value)
    return made


def _real(value: Any) -> Any:
    """Return the object of the running Python that a known value of the interpreter stands for."""
    from hagane.frontends.python.values.sizes import Size
    from hagane.frontends.python.values.values import Device, DType
    from hagane.graph.types import dtype_name

    if isinstance(value, Size):
        return sys.modules["torch"].Size(value)
    if type(value) in (tuple, set):  # a set of the caller's own
        return type(value)(map(_real, value))
    if isinstance(value, Device):
        return sys.modules["torch"].device(value.name)
    if isinstance(value, DType):
        name = dtype_name(value.dtype)
        return getattr(sys.modules["torch"], name) if value.library == "torch" else np.dtype(name)
    return value


def content_changes(
    change: Change,
    real: Any,
    values: Mapping[str, Any],
    convert: Callable[[Any, str], Any],
    given: Mapping[str, Any],
    known: dict[str, Any] | None = None,
) -> list[Callable[[], None]]:
    """Return the steps that give an argument its new attributes and items; nothing changes yet.

    Args:
        change: What changes.
        real: The caller's object.
        values: The outputs of the graph by name.
        convert: Makes of an output a value of the kind of the program.
        given: The objects of the caller by path.
        known: As :func:`rebuilt` takes it.
    """
    steps: list[Callable[[], None]] = []
    for name, part in change.attributes.items():
        content = None if part is None else rebuilt(part, values, convert, given, known)
        steps.append(_setting(real, name, content, gone=part is None))
    if change.items is not None:
        steps.append(_filling(real, change.items, values, convert, given, known))
    return steps


def _setting(real: Any, name: str, content: Any, *, gone: bool) -> Callable[[], None]:
    if gone:
        return lambda: object.__delattr__(real, name)
    return lambda: object.__setattr__(real, name, content)


def _filling(
    real: Any,
    items: Any,
    values: Mapping[str, Any],
    convert: Callable[[Any, str], Any],
    given: Mapping[str, Any],
    known: dict[str, Any] | None,
) -> Callable[[], None]:
    def new(part: Any) -> Any:
        if isinstance(part, Kept):
            kind: Any = next(kind for kind in (dict, list, deque) if isinstance(real, kind))
            return kind.__getitem__(real, part.key)
        return rebuilt(part, values, convert, given, known)

    if isinstance(items, dict):
        content = {_real(key): new(part) for key, part in items.items()}

        def filled() -> None:
            if [key for key, _ in items_of(real)] != [*content][
                : len(real)
            ]:  # the order may be another one
                empty(real)
            fill(real, content)

        return filled
    made = [new(part) for part in items]
    if isinstance(real, deque):

        def refilled() -> None:
            deque.clear(real)
            deque.extend(real, made)

        return refilled
    return lambda: list.__setitem__(real, slice(None), made)


__all__ = ["content_changes", "rebuilt"]
