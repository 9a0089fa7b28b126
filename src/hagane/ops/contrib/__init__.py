"""Operators of the domains ``com.microsoft`` and ``com.microsoft.nchwc`` that real models use.

ONNX has no schemas for them; each module declares its own beside the definitions, after
https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md (version 1).
"""

from hagane.ops.contrib import (
    activation,
    attention,
    blocked,
    bnb4,
    channels_last,
    dynamic,
    experiments,
    experts,
    fused,
    gates,
    grams,
    moved,
    normalization,
    qlinear,
    quantized,
    weights,
    whole,
    words,
)

_MODULES = (
    *(
        activation,
        attention,
        blocked,
        bnb4,
        channels_last,
        dynamic,
        experiments,
        fused,
        gates,
        experts,
        grams,
    ),
    *(moved, normalization, qlinear, quantized, weights, whole, words),
)

OPERATORS = tuple(op for module in _MODULES for op in module.OPERATORS)
SCHEMAS = {key: schema for module in _MODULES for key, schema in module.SCHEMAS.items()}
