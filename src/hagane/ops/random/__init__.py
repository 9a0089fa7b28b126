"""Random numbers."""

from hagane.ops.random import draw

OPERATORS = draw.OPERATORS
