"""Operators that rearrange elements: shapes, axes, joining, cutting, padding, filling."""

from hagane.ops.layout import axes, blocks, constant, joining, padding, shape, slicing, stopping

OPERATORS = (
    *axes.OPERATORS,
    *blocks.OPERATORS,
    *constant.OPERATORS,
    *joining.OPERATORS,
    *padding.OPERATORS,
    *shape.OPERATORS,
    *slicing.OPERATORS,
    *stopping.OPERATORS,
)
