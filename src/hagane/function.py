"""Old-style functions that users write, and whether computations are recorded."""

from hagane.nn.autograd.configuration import force_backprop_mode, no_backprop_mode
from hagane.nn.autograd.function import Function, FunctionAdapter

__all__ = ["Function", "FunctionAdapter", "force_backprop_mode", "no_backprop_mode"]
