"""Operators on strings."""

from hagane.ops.text import ngrams, string

OPERATORS = (*ngrams.OPERATORS, *string.OPERATORS)
