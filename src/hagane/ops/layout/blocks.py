"""DepthToSpace and SpaceToDepth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hagane.ops.builder import Call, op
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef, VjpRule
from hagane.ops.traits import Trait
from hagane.symbolic import Dim, floordiv


def _depth_to_space(x: Array, *, blocksize: int, mode: str = "DCR") -> Array:
    n, c, h, w = x.shape
    b = blocksize
    if mode == "DCR":
        blocks = x.reshape(n, b, b, c // (b * b), h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        blocks = x.reshape(n, c // (b * b), b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return blocks.reshape(n, c // (b * b), h * b, w * b)


def _space_to_depth(x: Array, *, blocksize: int, mode: str = "DCR") -> Array:
    n, c, h, w = x.shape
    b = blocksize
    blocks = x.reshape(n, c, h // b, b, w // b, b)
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return blocks.transpose(order).reshape(n, c * b * b, h // b, w // b)


def _divided(ctx: InferContext, dim: Dim, divisor: int, axis: int) -> Dim:
    part = floordiv(dim, divisor)
    ctx.unify(dim, part * divisor, f"expected axis {axis} to be a multiple of {divisor}")
    return part


def _infer_depth_to_space(ctx: InferContext) -> Sequence[Any]:
    n, c, h, w = ctx.shape(0, rank=4)
    b = ctx.attr("blocksize")
    return [(n, _divided(ctx, c, b * b, 1), h * b, w * b)]


def _infer_space_to_depth(ctx: InferContext) -> Sequence[Any]:
    n, c, h, w = ctx.shape(0, rank=4)
    b = ctx.attr("blocksize")
    return [(n, c * (b * b), _divided(ctx, h, b, 2), _divided(ctx, w, b, 3))]


def _inverse(name: str) -> VjpRule:
    """Return the gradient of a rearrangement that another one undoes."""

    def vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
        return [op(name, gradients[0], **call.attributes)]

    return vjp


OPERATORS = (
    OpDef(
        "DepthToSpace",
        _infer_depth_to_space,
        _depth_to_space,
        vjp=_inverse("SpaceToDepth"),
        traits=Trait.FREE | Trait.MOVING,
    ),
    OpDef(
        "SpaceToDepth",
        _infer_space_to_depth,
        _space_to_depth,
        vjp=_inverse("DepthToSpace"),
        traits=Trait.FREE | Trait.MOVING,
    ),
)
