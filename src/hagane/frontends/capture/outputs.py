"""A program's results as outputs of its graph."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np

from hagane.frontends.capture.emitter import GraphEmitter
from hagane.frontends.capture.names import joined
from hagane.frontends.capture.structure import Constant, Leaf, Made, Opaque, Record
from hagane.frontends.python.enter.interpreter import Interpreter
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import (
    MISSING,
    Bound,
    Choice,
    Class,
    Device,
    DictRef,
    DType,
    Function,
    Host,
    Instance,
    Library,
    LibraryMethod,
    ListRef,
    Many,
    Method,
    Real,
    SetRef,
    Tensor,
    Truth,
    Unknown,
    Value,
    Wrapped,
    is_plain,
)
from hagane.symbolic import Expr


def outputs(core: Interpreter, value: Value, path: str, *, suffix: str = "") -> Any:
    """Make outputs of a result, called by their paths, and return its structure.

    Raises:
        CheckError: Some of it is no tensor, number or container of such.
    """
    value = core.settle(value)
    emit = core.emit
    assert isinstance(emit, GraphEmitter)
    if isinstance(value, Tensor):
        return _output(core, value, path, suffix)
    if isinstance(value, ListRef):
        content = core.heap[value]
        if isinstance(content, Many):
            if content.stacked is None:
                raise CheckError("capture", "a list whose length the data decide is returned")
            return _output(core, content.stacked, path, suffix)
        return [
            outputs(core, item, joined(path, i), suffix=suffix) for i, item in enumerate(content)
        ]
    if isinstance(value, tuple):
        names = getattr(value, "names", None)
        parts = tuple(
            outputs(core, item, joined(path, name), suffix=suffix)
            for name, item in zip(names or range(len(value)), value, strict=True)
        )
        if names is None:
            return parts
        return Record(None, dict(zip(names, parts, strict=True)), is_tuple=True)
    if isinstance(value, DictRef) and isinstance(core.heap[value], dict):
        items = core.heap[value].items()
        named = {k: outputs(core, v, joined(path, k), suffix=suffix) for k, v in items}
        return OrderedDict(named) if value.kind == "OrderedDict" else named
    if isinstance(value, Instance) and isinstance(value.cls, Class) and value.cls.fields:
        content = core.heap[value]
        fields = {
            name: Constant(None) if content[name] is None
            else outputs(core, content[name], joined(path, name), suffix=suffix)
            for name, _ in value.cls.fields
            if name in content
        }  # fmt: skip
        return Record(core.real_class(value.cls), fields, "named tuple" in value.cls.flags)
    if isinstance(value, Instance) and isinstance(value.cls, Class):
        if value.host is None:
            return _made(core, value, value.cls, path, suffix, ())
        return Constant(value.host)  # members changed by the call are outputs of their own
    if isinstance(value, Expr):
        return _output(core, emit.size(value), path, suffix, "int")
    if isinstance(value, Real):
        return _output(core, emit.real_tensor(value), path, suffix, "float")
    if isinstance(value, Truth):
        return _output(core, emit.as_scalar(value, "bool"), path, suffix, "bool")
    if isinstance(value, Unknown):
        raise CheckError("capture", value.reason)
    if isinstance(value, Choice):
        raise CheckError(
            "capture",
            f"{core.show(value)}: the data decide which; return values of one type on all paths",
        )
    if value is None or isinstance(value, str):
        return Constant(value)
    if isinstance(value, bool | int | float):
        dtype = {bool: np.bool_, int: np.int64, float: np.float64}[type(value)]
        made = emit.constant(np.array(value, dtype))
        return _output(core, made, path, suffix, type(value).__name__)
    raise CheckError("capture", f"{core.show(value)} is no tensor, number or container of such")


def _made(
    core: Interpreter, value: Instance, cls: Class, path: str, suffix: str, around: tuple[int, ...]
) -> Made:
    """Make outputs of the tensors in an object, and of its numbers that are not known."""
    if value.key in around:
        raise CheckError(
            "capture", f"{core.show(value)} at '{path}' holds itself: return its tensors alone"
        )
    around = (*around, value.key)
    found = {
        name: _part(core, item, joined(path, name), suffix, around)
        for name, item in core.heap[value].items()
        if item is not MISSING
    }
    inner = core.inherited(value)
    items = None if inner is None else _part(core, inner, path, suffix, around)
    return Made(core.real_class(cls), found, items)


def _part(core: Interpreter, value: Value, path: str, suffix: str, around: tuple[int, ...]) -> Any:
    """Make outputs of a part of an object; known members stay constants."""
    value = core.settle(value)
    if isinstance(value, DType | Device) or (is_plain(value) and not isinstance(value, tuple)):
        return Constant(value)
    if isinstance(value, Host):
        return Constant(value.object)
    if isinstance(value, Class | Function) and value.host is not None:
        return Constant(value.host)
    if isinstance(value, _NO_VALUES):
        return Opaque(f"'{path}' is {core.show(value)}")
    if isinstance(value, SetRef):
        return Constant(set(core.heap[value]))
    if isinstance(value, ListRef | DictRef) and not isinstance(core.heap[value], Many):
        content = core.heap[value]
        if isinstance(content, dict):
            return {k: _part(core, v, joined(path, k), suffix, around) for k, v in content.items()}
        return [_part(core, v, joined(path, i), suffix, around) for i, v in enumerate(content)]
    if type(value) is tuple:
        return tuple(_part(core, v, joined(path, i), suffix, around) for i, v in enumerate(value))
    if isinstance(value, Instance) and isinstance(value.cls, Class) and not value.cls.fields:
        if value.host is not None:
            return Constant(value.host)
        return _made(core, value, value.cls, path, suffix, around)
    return outputs(core, value, path, suffix=suffix)


# Parts of objects that hold no tensor which a caller could read.
_NO_VALUES = (Bound, Class, Function, Library, LibraryMethod, Method, Wrapped)


def _output(core: Interpreter, tensor: Tensor, path: str, suffix: str, kind: str = "") -> Leaf:
    emit = core.emit
    assert isinstance(emit, GraphEmitter)
    emit.label = path or "output"
    with emit.at(emit.root):
        made = emit.op("Identity", tensor)
    name = path or "output"
    taken = any(value.name == name for value in emit.root.graph.inputs)
    made.value.name = f"{name}{suffix or ('.new' if taken else '')}"
    emit.root.graph.outputs.append(made.value)
    return Leaf(str(made.value.name), kind or tensor.kind)


__all__ = ["outputs"]
