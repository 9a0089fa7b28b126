"""Fourier transforms of PyTorch."""

from __future__ import annotations

import onnx_ir as ir

from hagane.frontends.libraries.torch.operands import (
    FLOAT,
    axis,
    shape_of,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.core import Core
from hagane.frontends.python.values import Tensor, Value
from hagane.symbolic import floordiv


def _fourier(name: str) -> None:
    def function(
        t: Core, input: Value, n: Value = None, dim: Value = -1, norm: Value = None
    ) -> Tensor:
        sizes = list(shape_of(t, input))
        place = axis(t, dim, len(sizes), input)
        count = sizes[place] if n is None else n
        if name == "rfft":
            count = floordiv(count, 2) + 1
        elif name == "irfft" and n is None:
            count = (count - 1) * 2
        sizes[place] = count
        dtype_ = FLOAT if name == "irfft" else ir.DataType.COMPLEX64
        return t.emit.typed("DFT", [input], dtype_, tuple(sizes))

    TORCH.function(f"fft.{name}")(function)


for _name in ("fft", "ifft", "rfft", "irfft"):
    _fourier(_name)
