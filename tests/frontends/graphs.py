"""Values of the nodes that the checker recorded for a call, computed by reference kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.python.interpret.emitting.emit import Emitter
from hagane.frontends.python.values.values import (
    ListRef,
    Many,
    Tensor,
)
from hagane.ops.context import known_attributes
from hagane.ops.registry import find, schema_of
from hagane.ops.values import tensor_to_array

LIBRARY = "hagane.library"


class TypedOnly(Exception):
    """A value that only has a type: its node is no operator."""


def values_of(emitter: Emitter, inputs: Mapping[ir.Value, Any]) -> Any:
    """Return a function from graph values to arrays, given those of the inputs."""
    known: dict[ir.Value, Any] = dict(inputs)

    def value(one: ir.Value) -> Any:
        if one in known:
            return known[one]
        node = one.producer()
        if node is None:
            if one.const_value is not None:
                return tensor_to_array(one.const_value)
            tensor = emitter.tensors.get(one)
            if tensor is not None and tensor.known is not None:
                return _plain(tensor)
            raise TypedOnly("a value that nothing makes")
        if node.domain == LIBRARY:
            raise TypedOnly(node.op_type)
        attributes = known_attributes(node, schema_of(node).defaults)
        arguments = [None if item is None else value(item) for item in node.inputs]
        with np.errstate(all="ignore"):
            results = find(node)(arguments, attributes, len(node.outputs))
        for output, result in zip(node.outputs, results, strict=False):
            known[output] = result
        return known[one]

    return value


def _plain(tensor: Tensor) -> np.ndarray:
    assert tensor.known is not None
    return (
        np.asarray(tensor.known.tolist()).astype(tensor.dtype.numpy()).reshape(tensor.known.shape)
    )


def tensors_in(t: Any, value: Any) -> list[Tensor]:
    """Return the tensors of a result, in the order in which PyTorch's nests hold them."""
    if isinstance(value, ListRef):
        content = t.heap[value]
        return [] if isinstance(content, Many) else tensors_in(t, tuple(content))
    if isinstance(value, tuple):
        return [tensor for item in value for tensor in tensors_in(t, item)]
    return [value] if isinstance(value, Tensor) else []
