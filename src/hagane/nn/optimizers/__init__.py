"""Optimizers."""

from hagane.nn.optimizers.adaptive import (
    SMORMS3,
    AdaBound,
    AdaDelta,
    AdaGrad,
    Adam,
    AdamW,
    AMSBound,
    AMSGrad,
    RMSprop,
    RMSpropGraves,
)
from hagane.nn.optimizers.descent import (
    MSVAG,
    SGD,
    CorrectedMomentumSGD,
    MomentumSGD,
    NesterovAG,
)

__all__ = [
    "MSVAG",
    "SGD",
    "SMORMS3",
    "AMSBound",
    "AMSGrad",
    "AdaBound",
    "AdaDelta",
    "AdaGrad",
    "Adam",
    "AdamW",
    "CorrectedMomentumSGD",
    "MomentumSGD",
    "NesterovAG",
    "RMSprop",
    "RMSpropGraves",
]
