"""Variables and parameters."""

from hagane.nn.autograd.node import VariableNode
from hagane.nn.autograd.parameter import Parameter
from hagane.nn.autograd.variable import Variable, as_array, as_variable

__all__ = ["Parameter", "Variable", "VariableNode", "as_array", "as_variable"]
