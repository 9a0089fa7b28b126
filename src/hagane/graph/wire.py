"""The wire format of a model's file, as far as it takes to leave the weights where they are.

Protocol Buffers encode a message as fields, each a key and a value; weights are byte strings some
messages deep: ``raw_data`` of a ``TensorProto``, which is ``ModelProto.graph.initializer`` or, in
files of Paddle, ``ModelProto.graph.node.attribute.t`` (protobuf.dev, "Encoding"; ``onnx.in.proto``,
IR version 13).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import onnx

# Keys: field number times eight, plus the kind of the value.
_GRAPH, _INITIALIZER, _NODE, _ATTRIBUTE, _TENSOR = (n << 3 | 2 for n in (7, 5, 1, 5, 5))
_DIMS, _DIMS_PACKED, _DATA_TYPE, _RAW, _LOCATION = 1 << 3, 1 << 3 | 2, 2 << 3, 9 << 3 | 2, 14 << 3
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

_SIZES = {
    onnx.TensorProto.FLOAT: 4,
    onnx.TensorProto.DOUBLE: 8,
    onnx.TensorProto.FLOAT16: 2,
    onnx.TensorProto.BFLOAT16: 2,
    onnx.TensorProto.INT8: 1,
    onnx.TensorProto.UINT8: 1,
    onnx.TensorProto.INT16: 2,
    onnx.TensorProto.UINT16: 2,
    onnx.TensorProto.INT32: 4,
    onnx.TensorProto.INT64: 8,
}


class _Inside(dict[int, "_Inside"]):
    """Keys of a message's fields that hold tensors, and where in them; empty for a tensor."""


_MODEL = _Inside(
    {
        _GRAPH: _Inside(
            {
                _INITIALIZER: _Inside(),
                _NODE: _Inside({_ATTRIBUTE: _Inside({_TENSOR: _Inside()})}),
            }
        )
    }
)


class Irregular(Exception):
    """Bytes that this reader does not follow; a complete one has to say whether they are wrong."""


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a message: where it begins, its key, its number or where its bytes begin."""

    start: int
    key: int
    value: int
    end: int


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 127) << shift
        if byte < 128:
            return result, at
        shift += 7
        if shift > 63:
            raise Irregular


def _fields(data: memoryview, at: int, end: int) -> Iterator[_Field]:
    while at < end:
        start = at
        key, at = _varint(data, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
        elif kind == _BYTES:
            length, at = _varint(data, at)
            value, at = at, at + length
        elif kind in (_FIXED64, _FIXED32):
            value, at = at, at + (8 if kind == _FIXED64 else 4)
        else:
            raise Irregular
        if at > end:
            raise Irregular
        yield _Field(start, key, value, at)


def _encoded(number: int) -> bytes:
    result = bytearray()
    while number > 127:
        result.append(number & 127 | 128)
        number >>= 7
    result.append(number)
    return bytes(result)


def without_weights(data: memoryview, place: str, least: int) -> bytes:
    """Return a model's bytes without its large weights, each of which names where it was.

    An initializer, or a tensor that a node of the graph holds, whose raw data have as many bytes as
    its shape and type need becomes a tensor with external data: ``place`` as the location, and the
    offset and length in ``data``.

    Args:
        data: A serialized ``ModelProto``.
        place: Stands for ``data``.
        least: Smaller weights, in bytes, stay.

    Raises:
        Irregular: The bytes are not those of a model.
    """
    try:
        found = _without(data, _Field(0, 0, 0, len(data)), _MODEL, place, least)
        return bytes(data) if found is None else found
    except (IndexError, ValueError) as error:
        raise Irregular from error


def _without(
    data: memoryview, message: _Field, inside: _Inside, place: str, least: int
) -> bytes | None:
    """Return a message without the large weights in it, or None if it has none."""
    if not inside:
        return _without_raw(data, message, place, least)
    pieces: list[bytes] = []
    kept = message.value
    for field in _fields(data, message.value, message.end):
        if field.key not in inside or field.end - field.value < least:
            continue
        part = _without(data, field, inside[field.key], place, least)
        if part is not None:
            pieces += [
                bytes(data[kept : field.start]),
                _encoded(field.key),
                _encoded(len(part)),
                part,
            ]
            kept = field.end
    if not pieces:
        return None
    return b"".join([*pieces, bytes(data[kept : message.end])])


def _without_raw(data: memoryview, tensor: _Field, place: str, least: int) -> bytes | None:
    """Return a tensor that points at its raw data, or None if it has to stay as it is."""
    dims: list[int] = []
    data_type = 0
    raw: _Field | None = None
    rest: list[bytes] = []
    for field in _fields(data, tensor.value, tensor.end):
        if field.key == _RAW:
            if raw is not None:
                return None
            raw = field
            continue
        if field.key == _DIMS:
            dims.append(field.value)
        elif field.key == _DIMS_PACKED:
            at = field.value
            while at < field.end:
                number, at = _varint(data, at)
                dims.append(number)
        elif field.key == _DATA_TYPE:
            data_type = field.value
        elif field.key == _LOCATION and field.value:
            return None
        rest.append(bytes(data[field.start : field.end]))
    if raw is None or data_type not in _SIZES or any(dim >= 1 << 62 for dim in dims):
        return None
    length = raw.end - raw.value
    if length < least or length != math.prod(dims) * _SIZES[data_type]:
        return None
    pointer = onnx.TensorProto(data_location=onnx.TensorProto.EXTERNAL)
    for key, text in (("location", place), ("offset", raw.value), ("length", length)):
        pointer.external_data.add(key=key, value=str(text))
    rest.append(pointer.SerializeToString())
    return b"".join(rest)
