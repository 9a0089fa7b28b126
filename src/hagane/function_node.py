"""Functions that users write, and gradients."""

from hagane.nn.autograd.backprop import grad
from hagane.nn.autograd.function_node import FunctionNode

__all__ = ["FunctionNode", "grad"]
