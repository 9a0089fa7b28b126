"""Strides of a tensor's memory in another shape, where it can be seen so without a copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.strides import Strides, is_one, strides_of
from hagane.frontends.python.values.values import Tensor
from hagane.symbolic import Dim
from hagane.symbolic.path import Verdict


def seen_as(t: Core, x: Tensor, shape: Sequence[Dim]) -> tuple[Strides | None, bool]:
    """Return the strides of a tensor's memory in another shape, and whether that is certain.

    Axes of which one begins where the next one ends are joined, and may be split anywhere; others
    stay apart. There are no strides if the shape joins what lies apart.
    """
    assert x.shape is not None
    certain = True

    def equal(left: Dim, right: Dim) -> bool:
        nonlocal certain
        verdict = t.knowledge.same(left, right).verdict
        certain = certain and verdict is not Verdict.UNKNOWN
        return verdict is Verdict.PROVED

    runs = _joined(x.shape, strides_of(x), equal)
    rest, found = list(shape), list[Dim]()
    for elements, stride in runs:
        total: Dim = 1
        while not equal(total, elements):
            if not rest:
                return None, certain
            size = rest.pop()
            found.append(total * stride)
            total = total * size
    found += [1] * len(rest)  # of one item each
    return tuple(reversed(found)), certain


def _joined(
    shape: Sequence[Dim], strides: Sequence[Dim], equal: Callable[[Dim, Dim], bool]
) -> list[tuple[Dim, Dim]]:
    """Return the elements and strides of axes that lie behind each other, last ones first."""
    runs: list[tuple[Dim, Dim]] = []
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if is_one(size):
            continue
        if runs and equal(stride, runs[-1][0] * runs[-1][1]):
            runs[-1] = (runs[-1][0] * size, runs[-1][1])
        else:
            runs.append((size, stride))
    return runs
