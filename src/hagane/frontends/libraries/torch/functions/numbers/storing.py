"""Results that are written into tensors: their element type and shape have to fit."""

from __future__ import annotations

from hagane.frontends.libraries.torch.operands import cast, category
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.graph.types import dtype_name


def stored(t: Core, target: Value, result: Value) -> Value:
    """Return a result as a tensor holds it that it is written into, of that one's element type."""
    if not isinstance(target, Tensor) or not isinstance(result, Tensor):
        return result
    same_place(t, target, result)
    return cast(t, result, target.dtype)


def same_place(t: Core, target: Tensor, result: Tensor) -> None:
    """Fail unless ``result`` can be stored where ``target`` lies."""
    if category(result.dtype) > category(target.dtype):
        t.fail(
            "dtype-mismatch",
            f"the result {dtype_name(result.dtype)} cannot be stored in place in a tensor of "
            f"{dtype_name(target.dtype)}",
            target,
        )
    if target.shape is None or result.shape is None:
        return
    if len(target.shape) != len(result.shape) or any(
        t.emit.differ(a, b) for a, b in zip(target.shape, result.shape, strict=True)
    ):
        t.fail(
            "shape-mismatch",
            f"the result {t.show(result)} does not fit in place into {t.show(target)}",
            target,
            result,
        )


__all__ = ["same_place", "stored"]
