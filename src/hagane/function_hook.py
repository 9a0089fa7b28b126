"""The base of hooks around functions."""

from hagane.nn.autograd.hooks import FunctionHook

__all__ = ["FunctionHook"]
