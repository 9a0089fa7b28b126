"""Initializers: fillers of the arrays of parameters."""

from hagane.nn.initializers.constant import Constant, Identity, NaN, One, Zero
from hagane.nn.initializers.drawn import (
    DownsamplingConvFilter,
    GlorotNormal,
    GlorotUniform,
    HeNormal,
    HeUniform,
    LeCunNormal,
    LeCunUniform,
    Normal,
    Orthogonal,
    Uniform,
    UpsamplingDeconvFilter,
    get_initializer,
)
from hagane.nn.initializers.initializer import Initializer, generate_array, get_fans

__all__ = [
    "Constant",
    "DownsamplingConvFilter",
    "GlorotNormal",
    "GlorotUniform",
    "HeNormal",
    "HeUniform",
    "Identity",
    "Initializer",
    "LeCunNormal",
    "LeCunUniform",
    "NaN",
    "Normal",
    "One",
    "Orthogonal",
    "Uniform",
    "UpsamplingDeconvFilter",
    "Zero",
    "generate_array",
    "get_fans",
    "get_initializer",
]
