"""Axes moved, joined, split, reduced and repeated.

A graph has the steps that einops takes: the axes of the left side by themselves, those of the right
side in their order with the reduced ones behind, the reduction, new axes, and groups joined.
"""

from __future__ import annotations

from collections.abc import Sequence

from hagane.frontends.libraries.einops.patterns import Axes, axes_of, names_of, parse, shown
from hagane.frontends.libraries.table import Table
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import (
    Many,
    Tensor,
    Value,
)
from hagane.symbolic import Dim

EINOPS = Table("einops", "einops.Tensor")
_REDUCTIONS = ("min", "max", "sum", "mean", "prod", "any", "all")


def root_of(t: Core, x: Tensor) -> str:
    """Return the library that a tensor belongs to, of those that einops takes."""
    root = x.kind.partition(".")[0]
    if root not in ("torch", "numpy"):
        t.fail("type", f"einops takes tensors of PyTorch and arrays of NumPy, got {t.show(x)}", x)
    return root


def reshaped(t: Core, x: Tensor, shape: Sequence[Dim]) -> Tensor:
    """Return a tensor in another shape of as many elements."""
    if not t.emit.builds:
        return t.emit.typed("Rearrange", [x], x.dtype, tuple(shape))
    if tuple(shape) == x.shape:
        return x
    made: Tensor = t.call_library(f"{root_of(t, x)}.reshape", [x, list(shape)])
    t.emit.show_sizes(made, tuple(shape))
    return made


def _taken(t: Core, value: Value, what: str) -> Tensor:
    """Return the tensor that a function of einops gets: a list is stacked."""
    if (isinstance(value, list | tuple) and value) or isinstance(value, Many):
        first = value.stacked if isinstance(value, Many) else value[0]
        kind = first.kind if isinstance(first, Tensor) else "torch.Tensor"
        given = value if isinstance(value, Many) else list(value)
        made: Tensor = t.call_library(f"{kind.partition('.')[0]}.stack", [given])
        return made
    if not isinstance(value, Tensor):
        t.fail("type", f"{what} takes a tensor, got {t.show(t.wrap(value))}")
    return value


def _applied(t: Core, x: Tensor, axes: Axes, reduction: Value = None) -> Tensor:
    """Return a tensor as the right side of a pattern has it."""
    root = root_of(t, x)
    order = [name for group in axes.right for name in group]
    kept = [name for name in order if name in axes.left]
    gone = [name for name in axes.left if name not in order]
    made = reshaped(t, x, [axes.sizes[name] for name in axes.left])
    places = [axes.left.index(name) for name in (*kept, *gone)]
    if places != sorted(places):
        turn = {"torch": "permute", "numpy": "transpose"}[root]
        made = t.call_library(f"{root}.{turn}", [made, places])
    if gone:
        made = _reduced(t, made, reduction, tuple(range(len(kept), len(places))))
    if len(order) > len(kept):
        made = _spread(t, made, order, axes)
    return reshaped(t, made, axes.shape())


def _reduced(t: Core, x: Tensor, reduction: Value, places: tuple[int, ...]) -> Tensor:
    root = root_of(t, x)
    made: Tensor
    if not isinstance(reduction, str):  # a function of a tensor and of places of axes
        made = t.unwrap(t.call(reduction, [x, places], {}))
        return made
    if reduction == "prod" and root == "torch":
        for place in reversed(places):
            x = t.call_library("torch.prod", [x, place])
        return x
    name = {"min": "amin", "max": "amax"}.get(reduction, reduction)
    made = t.call_library(f"{root}.{name}", [x, places])
    return made


def _spread(t: Core, x: Tensor, order: Sequence[str], axes: Axes) -> Tensor:
    """Return a tensor with the axes that only the right side has."""
    root = root_of(t, x)
    new = [place for place, name in enumerate(order) if name not in axes.left]
    insert = {"torch": "unsqueeze", "numpy": "expand_dims"}[root]
    for place in new:
        x = t.call_library(f"{root}.{insert}", [x, place])
    sizes = [axes.sizes[name] for name in order]
    made: Tensor
    if root == "torch":
        made = t.tables.call_method(t, "torch.Tensor.expand", [x, *sizes], {})
    else:
        times = [size if place in new else 1 for place, size in enumerate(sizes)]
        made = t.call_library("numpy.tile", [x, times])
    return made


@EINOPS.function("rearrange")
def rearrange(t: Core, tensor: Value, pattern: Value, **axes_lengths: Value) -> Tensor:
    """Return the tensor with its axes in another order, joined and split."""
    x = _taken(t, tensor, "rearrange")
    found = parse(t, pattern, "rearrange")
    left, right = names_of(found.left), names_of(found.right)
    numbers = {name for name in left | right if "@" in name}
    if numbers:
        t.fail(
            "einops", f"rearrange takes no number but 1 as an axis, got {shown(numbers)} in "
            f"'{pattern}'", x, remedy="give the axis a name and pass its size",
        )  # fmt: skip
    if left != right:
        t.fail(
            "einops",
            f"{shown(left ^ right)} stands on one side only of '{pattern}'",
            x,
            remedy="reduce drops axes, repeat adds them",
        )
    return _applied(t, x, axes_of(t, x, found, axes_lengths))


@EINOPS.function("reduce")
def reduce(
    t: Core, tensor: Value, pattern: Value, reduction: Value, **axes_lengths: Value
) -> Tensor:
    """Return the tensor with the axes reduced that the right side lacks."""
    if reduction in ("rearrange", "repeat"):  # as layers write them
        other = rearrange if reduction == "rearrange" else repeat
        return other(t, tensor, pattern, **axes_lengths)
    x = _taken(t, tensor, "reduce")
    found = parse(t, pattern, "reduce")
    new = names_of(found.right) - names_of(found.left)
    if new:
        t.fail("einops", f"{shown(new)} stands on the right only of '{pattern}'", x)
    if isinstance(reduction, str) and reduction not in _REDUCTIONS:
        known = ", ".join(_REDUCTIONS)
        t.fail("value", f"expected one of {known} as reduction, got '{reduction}'")
    if reduction == "mean" and x.dtype.is_integer():
        t.fail("dtype-mismatch", f"the mean takes floats, got {t.show(x)}", x,
               remedy="convert it with .float()")  # fmt: skip
    return _applied(t, x, axes_of(t, x, found, axes_lengths), reduction)


@EINOPS.function("repeat")
def repeat(t: Core, tensor: Value, pattern: Value, **axes_lengths: Value) -> Tensor:
    """Return the tensor repeated along the axes that only the right side has."""
    x = _taken(t, tensor, "repeat")
    found = parse(t, pattern, "repeat")
    gone = names_of(found.left) - names_of(found.right)
    if gone:
        t.fail("einops", f"{shown(gone)} stands on the left only of '{pattern}'", x)
    return _applied(t, x, axes_of(t, x, found, axes_lengths))


__all__ = ["EINOPS", "rearrange", "reduce", "repeat", "reshaped", "root_of"]
