"""Linear algebra of PyTorch."""

from __future__ import annotations

from hagane.frontends.libraries.torch.operands import (
    shape_of,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.core import Core
from hagane.frontends.python.values import Value


def _square(name: str) -> None:
    def function(t: Core, A: Value, *_: Value, **__: Value) -> Value:
        shape = shape_of(t, A)
        if len(shape) < 2 or (name in _SQUARE and t.emit.differ(shape[-1], shape[-2])):
            t.fail("shape-mismatch", f"{name} takes square matrices, got {t.show(A)}", A)
        if name in ("det", "logdet"):
            return t.emit.typed("Det", [A], A.dtype, shape[:-2])
        return t.emit.typed(name, [A], A.dtype, shape)

    TORCH.function(f"linalg.{name}", name)(function)


_SQUARE = ("inv", "inverse", "det", "logdet", "cholesky", "matrix_exp")
for _name in (*_SQUARE,):
    _square(_name)
