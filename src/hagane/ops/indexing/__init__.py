"""Operators that read or write elements by position."""

from hagane.ops.indexing import gather, scatter

OPERATORS = (*gather.OPERATORS, *scatter.OPERATORS)
