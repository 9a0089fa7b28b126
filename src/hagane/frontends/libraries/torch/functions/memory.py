"""The order of a tensor's axes in memory, on which ``view`` depends."""

from __future__ import annotations

from collections.abc import Sequence

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor
from hagane.symbolic import Dim, Expr, definitely_equal, product, symbols_of


def turned(t: Core, x: Tensor, order: Sequence[int]) -> Tensor:
    """Return a tensor with its axes in another order; its memory stays as it is."""
    made: Tensor = t.op("Transpose", x, perm=list(order))
    before = x.order or tuple(range(len(order)))
    after = tuple(before[place] for place in order)
    made.order = None if _is_plain(after, made.shape or ()) else after
    return made


def _is_plain(order: Sequence[int], shape: Sequence[Dim]) -> bool:
    """Whether axes lie in memory as they are named; those of one element lie anywhere."""
    kept = [place for place, size in zip(order, shape, strict=False) if not _is_one(size)]
    return kept == sorted(kept)


def _is_one(size: Dim) -> bool:
    return isinstance(size, int) and size == 1


def expect_viewable(t: Core, x: Tensor, shape: Sequence[Dim]) -> None:
    """Fail unless the memory of a tensor can be seen in another shape without a copy.

    Axes that lie behind each other in memory may be joined and split; no others may.
    """
    assert x.shape is not None
    assert x.order is not None
    if any(t.knowledge.invented & symbols_of(n) for n in (*x.shape, *shape) if isinstance(n, Expr)):
        return
    runs: list[list[Dim]] = []
    places = [(p, n) for p, n in zip(x.order, x.shape, strict=True) if not _is_one(n)]
    ranks = {place: rank for rank, place in enumerate(sorted(p for p, _ in places))}
    last = -2
    for place, size in places:
        if ranks[place] != last + 1:
            runs.append([])
        runs[-1].append(size)
        last = ranks[place]
    rest = [size for size in shape if not _is_one(size)]
    for run in runs:
        wanted, found = product(run), _front(rest, product(run))
        if found is None:
            t.fail(
                "view",
                f"{t.show(x)} cannot be viewed as ({', '.join(map(str, shape))}): its axes lie in "
                f"memory in another order, {list(x.order)}, and the view joins or splits "
                f"{wanted} elements that are no neighbours",
                x,
                remedy="use .reshape(...), or .contiguous() before .view(...)",
            )
        rest = rest[found:]


def _front(sizes: Sequence[Dim], wanted: Dim) -> int | None:
    """Return how many of the first sizes have a product; None if none do."""
    total: Dim = 1
    for count in range(len(sizes) + 1):
        if definitely_equal(total, wanted):
            return count
        if count < len(sizes):
            total = total * sizes[count]
    return None
