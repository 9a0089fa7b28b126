"""The tensors in the result of a checked call, by their paths, and its printed type."""

from __future__ import annotations

from collections.abc import Iterator

from hagane.frontends.python.enter.interpreter import Interpreter
from hagane.frontends.python.values.objects import Class, Instance
from hagane.frontends.python.values.values import (
    MISSING,
    DictRef,
    Fields,
    ListRef,
    Many,
    Tensor,
    Value,
)

_MAX_DEPTH = 12


def tensors_of(core: Interpreter, result: Value) -> dict[str, Tensor]:
    """Return the tensors in a result by their path, such as ``logits`` or ``hidden.0``.

    The path of a result that is a tensor is empty. Tensors in lists of unknown length are left out,
    and in objects that were there before the call.
    """
    return dict(_walk(core, result, "", 0))


def shown(core: Interpreter, result: Value) -> str:
    """Return the printed type of a result: objects of tensors with their fields."""
    if not isinstance(result, Instance):
        return core.show(result)
    parts = [
        f"{name}={shown(core, core.settle(value))}"
        for name, value in _parts(core, result)
        if value is not None
    ]
    return f"{result.cls.name}({', '.join(parts)})" if parts else core.show(result)


def _walk(core: Interpreter, value: Value, path: str, depth: int) -> Iterator[tuple[str, Tensor]]:
    value = core.settle(value)
    if isinstance(value, Tensor):
        yield path, value
    elif depth < _MAX_DEPTH:
        for name, part in _parts(core, value) or _attributes(core, value):
            yield from _walk(core, part, f"{path}.{name}" if path else str(name), depth + 1)


def _parts(core: Interpreter, value: Value) -> list[tuple[object, Value]]:
    """Return the parts of a container by index, key or field; nothing for other values."""
    if isinstance(value, Fields):
        return list(zip(value.names, value, strict=True))
    if isinstance(value, tuple):
        return list(enumerate(value))
    if isinstance(value, ListRef | DictRef):
        content = core.heap[value]
        if isinstance(content, Many):
            return []
        return list(content.items() if isinstance(content, dict) else enumerate(content))
    if not isinstance(value, Instance) or not isinstance(value.cls, Class):
        return []
    if value.cls.fields:
        content = core.heap[value]
        named = [(name, content.get(name, MISSING)) for name, _ in value.cls.fields]
        return [(name, part) for name, part in named if part is not MISSING]
    inner = core.inherited(value)
    return [] if inner is None else _parts(core, inner)


def _attributes(core: Interpreter, value: Value) -> list[tuple[object, Value]]:
    """Return the attributes of an object that the call made."""
    if not isinstance(value, Instance) or value.host is not None:
        return []
    return [(name, part) for name, part in core.heap[value].items() if part is not MISSING]


__all__ = ["shown", "tensors_of"]
