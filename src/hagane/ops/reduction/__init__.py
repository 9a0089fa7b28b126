"""Operators that fold axes."""

from hagane.ops.reduction import arg, cumulative, reduce, topk

OPERATORS = (
    *arg.OPERATORS,
    *cumulative.OPERATORS,
    *reduce.OPERATORS,
    *topk.OPERATORS,
)
