"""Operators with subgraphs: If, Loop, Scan, SequenceMap."""

from hagane.ops.control import branch, loop, scan

OPERATORS = (*branch.OPERATORS, *loop.OPERATORS, *scan.OPERATORS)
