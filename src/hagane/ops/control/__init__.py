"""Operators with subgraphs: If, Loop, Scan, SequenceMap, OwnGradient."""

from hagane.ops.control import branch, loop, own_gradient, scan

OPERATORS = (
    *branch.OPERATORS, *loop.OPERATORS, *scan.OPERATORS, *own_gradient.OPERATORS,
)  # fmt: skip
