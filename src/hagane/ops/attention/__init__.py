"""Attention, its positions and its linear-time relatives."""

from hagane.ops.attention import dot_product, recurrent, rotary

OPERATORS = (*dot_product.OPERATORS, *recurrent.OPERATORS, *rotary.OPERATORS)
