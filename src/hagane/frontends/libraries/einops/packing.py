"""Tensors packed along an axis, sums of products, sizes by name."""

from __future__ import annotations

import re

from hagane.frontends.libraries.einops.functions import EINOPS, reshaped, root_of
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.symbolic import Dim, floordiv, product


@EINOPS.function("einsum")
def einsum(t: Core, *arguments: Value) -> Value:
    """Return a sum of products; axes have names of any length, and the pattern comes last."""
    *tensors, pattern = arguments
    if not isinstance(pattern, str):
        t.fail("einops", "einsum takes its pattern last")
    names = sorted(set(re.findall(r"[A-Za-z_]\w*", pattern)))
    letters = {name: chr(ord("a") + place) for place, name in enumerate(names)}
    short = re.sub(r"[A-Za-z_]\w*", lambda found: letters[found.group()], pattern)
    root = next((root_of(t, x) for x in tensors if isinstance(x, Tensor)), "torch")
    return t.call_library(f"{root}.einsum", [short.replace(" ", ""), *tensors])


@EINOPS.function("parse_shape")
def parse_shape(t: Core, x: Value, pattern: Value) -> Value:
    """Return the sizes of axes by name; ``_`` skips one."""
    names = str(pattern).split()
    shape = list(x.shape or ())
    spread = len(shape) - len(names) + 1
    if "..." in names and spread >= 0:
        place = names.index("...")
        names[place : place + 1] = ["_"] * spread
    if len(names) != len(shape):
        t.fail("rank", f"'{pattern}' expects {len(names)} axes, got {t.show(x)}", x)
    return {name: dim for name, dim in zip(names, shape, strict=True) if name != "_"}


def _star(t: Core, pattern: Value, what: str) -> tuple[int, int]:
    """Return how many axes stand before and behind the ``*`` of a pattern."""
    names = str(pattern).split()
    if names.count("*") != 1:
        t.fail("einops", f"{what} takes a pattern with one '*', got {pattern!r}")
    place = names.index("*")
    return place, len(names) - place - 1


@EINOPS.function("pack")
def pack(t: Core, tensors: Value, pattern: Value) -> Value:
    """Return tensors joined along the axis ``*``, in which each has any axes, and those axes."""
    before, behind = _star(t, pattern, "pack")
    flat: list[Tensor] = []
    packed: list[Value] = []
    for x in tensors:
        shape = x.shape or ()
        if len(shape) < before + behind:
            t.fail(
                "rank", f"'{pattern}' expects at least {before + behind} axes, got {t.show(x)}", x
            )
        inner = shape[before : len(shape) - behind]
        packed.append(tuple(inner))
        joined = (*shape[:before], product(inner), *shape[len(shape) - behind :])
        flat.append(reshaped(t, x, joined))
    if not flat:
        t.fail("einops", "pack takes at least one tensor")
    name = {"torch": "torch.cat", "numpy": "numpy.concatenate"}[root_of(t, flat[0])]
    return (t.call_library(name, [flat, before]), packed)


@EINOPS.function("unpack")
def unpack(t: Core, tensor: Value, packed_shapes: Value, pattern: Value) -> Value:
    """Return the parts that ``pack`` joined."""
    before, behind = _star(t, pattern, "unpack")
    shape = tensor.shape or ()
    if len(shape) != before + behind + 1:
        t.fail(
            "rank", f"'{pattern}' expects {before + behind + 1} axes, got {t.show(tensor)}", tensor
        )
    parts = [tuple(axes) for axes in packed_shapes]
    known = [product(axes) for axes in parts if -1 not in axes]
    total: Dim = 0
    for length in known:
        total = total + length
    if len(known) == len(parts) and t.emit.differ(total, shape[before]):
        t.fail(
            "shape-mismatch", f"the parts have {total} elements, the axis {shape[before]}", tensor
        )
    result = []
    start: Dim = 0
    for axes in parts:
        rest = product(dim for dim in axes if dim != -1)
        open_ = floordiv(shape[before] - total, rest)
        inner = tuple(open_ if dim == -1 else dim for dim in axes)
        whole = (*shape[:before], *inner, *shape[before + 1 :])
        stop = start + product(inner)
        part = tensor
        if t.emit.builds and len(parts) > 1:
            here = (*[slice(None)] * before, slice(start, stop))
            part = t.tables.tensor_item(t, tensor, here)
        result.append(reshaped(t, part, whole))
        start = stop
    return result


__all__ = ["einsum", "pack", "parse_shape", "unpack"]
