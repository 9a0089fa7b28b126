"""All operators, family by family."""

from __future__ import annotations

from hagane.ops import (
    attention,
    container,
    contrib,
    control,
    convolution,
    elementwise,
    indexing,
    layout,
    linear,
    ml,
    normalization,
    quantization,
    random,
    recurrent,
    reduction,
    signal,
    text,
    vision,
)
from hagane.ops.definition import OpDef
from hagane.ops.schema import Schema

OPERATORS: tuple[OpDef, ...] = (
    *attention.OPERATORS,
    *container.OPERATORS,
    *contrib.OPERATORS,
    *control.OPERATORS,
    *convolution.OPERATORS,
    *elementwise.OPERATORS,
    *indexing.OPERATORS,
    *layout.OPERATORS,
    *linear.OPERATORS,
    *ml.OPERATORS,
    *normalization.OPERATORS,
    *quantization.OPERATORS,
    *random.OPERATORS,
    *recurrent.OPERATORS,
    *reduction.OPERATORS,
    *signal.OPERATORS,
    *text.OPERATORS,
    *vision.OPERATORS,
)

SCHEMAS: dict[tuple[str, str], Schema] = dict(contrib.SCHEMAS)
