"""Linear quantisation, and operators on quantised tensors."""

from hagane.ops.quantization import linear, product

OPERATORS = (*linear.OPERATORS, *product.OPERATORS)
