"""Sliding-window operators: convolutions and pooling."""

from hagane.ops.convolution import conv, deform, gradient, pool, transposed, unpool

OPERATORS = (
    *conv.OPERATORS,
    *deform.OPERATORS,
    *gradient.OPERATORS,
    *pool.OPERATORS,
    *transposed.OPERATORS,
    *unpool.OPERATORS,
)
