"""Schemas of hagane's own operators, whose floating-point operands share one element type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hagane.ops.schema import Parameter, Schema

if TYPE_CHECKING:
    import onnx_ir as ir

DOMAIN = "hagane"
_FLOATS = frozenset(f"tensor({name})" for name in ("float16", "bfloat16", "float", "double"))


def float_schema(
    inputs: str,
    outputs: str,
    attributes: Mapping[str, ir.AttributeType],
    *,
    optional: int = 0,
    defaults: Mapping[str, Any] | None = None,
) -> Schema:
    """Return the schema of an operator on floating-point tensors of one type.

    Args:
        inputs: The names of its inputs.
        outputs: The names of its outputs, of which the first is always there.
        attributes: The types of its attributes; those without a default are required.
        optional: How many of the last inputs may be absent.
        defaults: Of attributes.
    """
    names, known = inputs.split(), dict(defaults or {})
    taken = tuple(
        Parameter(name, "T", _FLOATS, n >= len(names) - optional, False, True)
        for n, name in enumerate(names)
    )
    made = tuple(Parameter(name, "T", _FLOATS, False, False, True) for name in outputs.split())
    return Schema(
        inputs=taken,
        outputs=made,
        min_inputs=len(taken) - optional,
        max_inputs=len(taken),
        min_outputs=1,
        max_outputs=len(made),
        defaults=known,
        attribute_types=dict(attributes),
        required=frozenset(attributes) - frozenset(known),
    )
