"""All operators, family by family."""

from __future__ import annotations

from hagane.ops import (
    convolution,
    elementwise,
    layout,
    linear,
    normalization,
    reduction,
)
from hagane.ops.definition import OpDef
from hagane.ops.schema import Schema

OPERATORS: tuple[OpDef, ...] = (
    *convolution.OPERATORS,
    *elementwise.OPERATORS,
    *layout.OPERATORS,
    *linear.OPERATORS,
    *normalization.OPERATORS,
    *reduction.OPERATORS,
)

SCHEMAS: dict[tuple[str, str], Schema] = {}
