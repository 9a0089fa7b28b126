"""The base classes of optimizers."""

from hagane.nn.optimizers.decays import (
    GradientClipping,
    GradientHardClipping,
    GradientNoise,
    Lasso,
    WeightDecay,
)
from hagane.nn.optimizers.hyperparameter import Hyperparameter, HyperparameterProxy
from hagane.nn.optimizers.optimizer import GradientMethod, Optimizer, UpdateRule

__all__ = [
    "GradientClipping",
    "GradientHardClipping",
    "GradientMethod",
    "GradientNoise",
    "Hyperparameter",
    "HyperparameterProxy",
    "Lasso",
    "Optimizer",
    "UpdateRule",
    "WeightDecay",
]
