"""Sequences and optional values."""

from hagane.ops.container import optional, sequence

OPERATORS = (*optional.OPERATORS, *sequence.OPERATORS)
