"""What a program returns as outputs of its graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.frontends.capture.emitter import GraphEmitter
from hagane.frontends.capture.names import joined
from hagane.frontends.capture.structure import Constant, Leaf, Record
from hagane.frontends.python.enter.interpreter import Interpreter
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import (
    Choice,
    Class,
    DictRef,
    Instance,
    ListRef,
    Many,
    Real,
    Tensor,
    Truth,
    Unknown,
    Value,
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
        return {
            k: outputs(core, v, joined(path, k), suffix=suffix) for k, v in core.heap[value].items()
        }
    if isinstance(value, Instance) and isinstance(value.cls, Class) and value.cls.fields:
        content = core.heap[value]
        fields = {
            name: Constant(None) if content[name] is None
            else outputs(core, content[name], joined(path, name), suffix=suffix)
            for name, _ in value.cls.fields
            if name in content
        }  # fmt: skip
        return Record(core.real_class(value.cls), fields, "named tuple" in value.cls.flags)
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
