"""Sparse tensors of files as plain ones: no kernel makes use of their zeros."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import onnx
from onnx import numpy_helper

from hagane.errors import InvalidModel

# Elements of one of them: more are taken for damage.
_MOST = 2**31


def make_dense(graphs: Iterable[onnx.GraphProto | onnx.FunctionProto]) -> None:
    """Replace sparse tensors of graphs, and the types of such, by plain ones, in place.

    Raises:
        InvalidModel: One of them is damaged; the message names it.
    """
    for graph in graphs:
        if isinstance(graph, onnx.GraphProto):
            graph.initializer.extend(_dense(each) for each in graph.sparse_initializer)
            del graph.sparse_initializer[:]
            for value in (*graph.input, *graph.output, *graph.value_info):
                if value.type.HasField("sparse_tensor_type"):
                    given = value.type.sparse_tensor_type.SerializeToString()
                    value.type.tensor_type.ParseFromString(given)  # of the same fields
        for node in graph.node:
            for attribute in node.attribute:
                if not attribute.HasField("sparse_tensor"):
                    continue
                if node.op_type == "Constant" and attribute.name == "sparse_value":
                    attribute.name = "value"
                attribute.t.CopyFrom(_dense(attribute.sparse_tensor))
                attribute.type = onnx.AttributeProto.TENSOR
                attribute.ClearField("sparse_tensor")


def _dense(sparse: onnx.SparseTensorProto) -> onnx.TensorProto:
    shape = tuple(sparse.dims)
    name = sparse.values.name
    where = f"sparse tensor '{name or '(unnamed)'}'"
    if any(size < 0 for size in shape) or math.prod(shape) > _MOST:
        raise InvalidModel(f"{where}: expected sizes of a tensor of at most {_MOST}, got {shape}")
    try:
        values = numpy_helper.to_array(sparse.values).reshape(-1)
        indices = numpy_helper.to_array(sparse.indices)
    except Exception as error:  # onnx raises errors of many classes
        raise InvalidModel(f"{where} cannot be read: {error}") from error
    if indices.shape not in ((values.size,), (values.size, len(shape))):
        raise InvalidModel(
            f"{where}: expected indices of the shape [{values.size}] or "
            f"[{values.size}, {len(shape)}], got {list(indices.shape)}"
        )
    limits = (math.prod(shape),) if indices.ndim == 1 else shape
    if values.size and not np.all((indices >= 0) & (indices < np.array(limits))):
        raise InvalidModel(f"{where}: an index lies outside of the shape {list(shape)}")
    made = np.zeros(shape, values.dtype)
    if indices.ndim == 1:
        made.reshape(-1)[indices] = values
    else:
        made[tuple(indices.T)] = values
    return numpy_helper.from_array(made, name)
