"""Schemas in one line: ``declare("A:T, B:T, bias:T? -> Y:T", T=FLOATS)``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

from hagane.ops.schema import Parameter, Schema

DOMAIN = "com.microsoft"

FLOATS = "float16 bfloat16 float double"
INTS = "int8 uint8"
INDICES = "int32 int64"
ANY = (
    "float16 bfloat16 float double int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool string "
    "complex64 complex128"
)

# Attributes without a default are declared by their type.
INT, FLOAT, STRING = ir.AttributeType.INT, ir.AttributeType.FLOAT, ir.AttributeType.STRING
INT_LIST, FLOAT_LIST = ir.AttributeType.INTS, ir.AttributeType.FLOATS
STRING_LIST = ir.AttributeType.STRINGS

WINDOW = {
    "auto_pad": "NOTSET",
    "dilations": INT_LIST,
    "kernel_shape": INT_LIST,
    "pads": INT_LIST,
    "strides": INT_LIST,
}


def declare(
    signature: str,
    attributes: Mapping[str, Any] | None = None,
    required: tuple[str, ...] = (),
    **types: str,
) -> Schema:
    """Return a schema.

    Args:
        signature: ``inputs -> outputs``, each ``name:TYPE``; ``?`` marks optional ones, ``*`` a
            variadic one.
        attributes: Default of each attribute, or its type where it has none.
        required: Attributes that have to be given.
        types: The element types that each type variable may stand for.
    """
    left, right = signature.split("->")
    inputs = tuple(_parameter(text, types) for text in left.split(",") if text.strip())
    outputs = tuple(_parameter(text, types) for text in right.split(",") if text.strip())
    given = dict(attributes or {})
    return Schema(
        inputs=inputs,
        outputs=outputs,
        min_inputs=sum(not p.optional and not p.variadic for p in inputs),
        max_inputs=2**31 if any(p.variadic for p in inputs) else len(inputs),
        min_outputs=1,
        max_outputs=len(outputs),
        defaults={k: v for k, v in given.items() if not isinstance(v, ir.AttributeType)},
        attribute_types={
            k: v if isinstance(v, ir.AttributeType) else _type_of(v) for k, v in given.items()
        },
        required=frozenset(required),
    )


def _parameter(text: str, types: Mapping[str, str]) -> Parameter:
    name, _, variable = text.strip().partition(":")
    kind = variable.rstrip("?*")
    allowed = types.get(kind, kind).split()
    return Parameter(
        name=name,
        type_variable=kind,
        types=frozenset(f"tensor({dtype})" for dtype in allowed),
        optional=variable.endswith("?"),
        variadic=variable.endswith("*"),
        homogeneous=not variable.startswith("TV"),  # by ONNX Runtime's naming
    )


def _type_of(value: Any) -> ir.AttributeType:
    if isinstance(value, str):
        return ir.AttributeType.STRING
    return ir.AttributeType.FLOAT if isinstance(value, float) else ir.AttributeType.INT
