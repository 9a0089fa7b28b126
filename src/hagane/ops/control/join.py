"""The type that holds two types: the result of a branch or a loop."""

from __future__ import annotations

from collections.abc import Callable, Container

import onnx_ir as ir

from hagane.graph.types import OptionalType, SequenceType, TensorType, Type
from hagane.symbolic import Dim, Expr


def join(
    left: Type | None,
    right: Type | None,
    fresh: Callable[[], Expr],
    open_: Container[Dim] = (),
) -> Type | None:
    """Return a type that both fit, with new dimensions where they differ; None for no such.

    Args:
        left: One type.
        right: Another.
        fresh: Makes a dimension.
        open_: Dimensions of ``left`` that stand for any size already.
    """
    if left is None or right is None:
        return left or right
    if isinstance(left, TensorType) and isinstance(right, TensorType):
        if left.dtype != right.dtype:
            return None
        if left.shape is None or right.shape is None or len(left.shape) != len(right.shape):
            return TensorType(left.dtype, None)
        return TensorType(
            left.dtype,
            tuple(
                _join_dim(a, b, fresh, open_) for a, b in zip(left.shape, right.shape, strict=True)
            ),
        )
    if isinstance(left, SequenceType) and isinstance(right, SequenceType):
        return SequenceType(join(left.element, right.element, fresh, open_))
    if isinstance(left, OptionalType) or isinstance(right, OptionalType):
        return OptionalType(join(_element(left), _element(right), fresh, open_))
    return left if left == right else None


def _element(type_: Type) -> Type | None:
    return type_.element if isinstance(type_, OptionalType) else type_


def _join_dim(left: Dim, right: Dim, fresh: Callable[[], Expr], open_: Container[Dim]) -> Dim:
    return left if left == right or left in open_ else fresh()


def same_kind(left: Type | None, right: Type | None) -> bool:
    """Whether two types can be of one value: the same containers and element types."""
    if left is None or right is None:
        return True
    if isinstance(left, TensorType) and isinstance(right, TensorType):
        return ir.DataType.UNDEFINED in (left.dtype, right.dtype) or left.dtype == right.dtype
    if isinstance(left, SequenceType) and isinstance(right, SequenceType):
        return same_kind(left.element, right.element)
    if isinstance(left, OptionalType) or isinstance(right, OptionalType):
        return same_kind(_element(left), _element(right))
    return left == right
