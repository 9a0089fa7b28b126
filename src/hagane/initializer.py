"""The base of what fills parameters."""

from hagane.nn.initializers.initializer import Initializer, get_fans

__all__ = ["Initializer", "get_fans"]
