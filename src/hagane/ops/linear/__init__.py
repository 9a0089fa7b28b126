"""Matrix products."""

from hagane.ops.linear import einsum, matmul

OPERATORS = (*einsum.OPERATORS, *matmul.OPERATORS)
