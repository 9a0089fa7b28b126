"""Sliding-window operators: convolutions and pooling."""

from hagane.ops.convolution import conv, deform, gradient, pool, pooled_gradient, transposed, unpool

OPERATORS = (
    *conv.OPERATORS,
    *deform.OPERATORS,
    *gradient.OPERATORS,
    *pool.OPERATORS,
    *pooled_gradient.OPERATORS,
    *transposed.OPERATORS,
    *unpool.OPERATORS,
)
