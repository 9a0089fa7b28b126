"""Tensors without axes in functions along an axis, which take them for one axis of one element."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import (
    Fields,
    Tensor,
    Value,
)

_OWNERS = ("torch", "torch.Tensor", "torch.nn.functional", "torch.special")
_ALONG = frozenset(
    ("softmax", "log_softmax", "softmin", "cumsum", "cumprod", "cummax", "cummin", "logcumsumexp",
     "norm", "sort", "argsort", "msort", "median", "nanmedian", "mode", "flip", "topk", "kthvalue",
     "quantile", "nanquantile")
)  # fmt: skip


def takes_one_axis(name: str, arguments: Sequence[Value]) -> bool:
    """Whether a function of PyTorch works along an axis that its tensor lacks."""
    owner, _, last = name.rpartition(".")
    x = arguments[0] if arguments else None
    return last in _ALONG and owner in _OWNERS and isinstance(x, Tensor) and x.shape == ()


def without_axis(core: Core, made: Value) -> Value:
    """Return results of a tensor with one axis as those of its only element."""
    if isinstance(made, Fields):
        return made.of(without_axis(core, part) for part in made)
    if isinstance(made, tuple):
        return tuple(without_axis(core, part) for part in made)
    if isinstance(made, Tensor) and made.shape == (1,):
        none: Tensor = core.op("Reshape", made, core.emit.constant([], ir.DataType.INT64))
        return none
    return made


__all__ = ["takes_one_axis", "without_axis"]
