"""Sliding-window operators: convolutions and pooling."""

from hagane.ops.convolution import conv, deform, pool, transposed, unpool

OPERATORS = (
    *conv.OPERATORS,
    *deform.OPERATORS,
    *pool.OPERATORS,
    *transposed.OPERATORS,
    *unpool.OPERATORS,
)
