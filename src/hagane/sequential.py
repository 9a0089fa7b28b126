"""Links and functions one after another."""

from hagane.nn.model.sequential import Sequential

__all__ = ["Sequential"]
