"""HannWindow, HammingWindow, BlackmanWindow, MelWeightMatrix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops.builder import op
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.delegated import onnx_kernel
from hagane.ops.functions.numbers.elementary import add, cast, div, mul
from hagane.ops.vjp import CONSTANT
from hagane.symbolic import floordiv


def _window(name: str, coefficients: Sequence[float]) -> OpDef:
    """Define a sum of cosines: Σ (-1)ᵏ aₖ cos(2πkn / N) (Harris, 1978)."""

    def reference(size: Array, *, output_datatype: int = 1, periodic: int = 1) -> Array:
        count = int(np.asarray(size).ravel()[0])
        period = count if periodic else count - 1
        phase = 2 * np.pi * np.arange(count) / max(period, 1)
        values = sum((-1) ** k * a * np.cos(k * phase) for k, a in enumerate(coefficients))
        return np.asarray(values).astype(ir.DataType(output_datatype).numpy())

    def compose(size: Any, *, output_datatype: int = 1, periodic: int = 1) -> Any:
        count = op("Reshape", cast(size, ir.DataType.INT64), op("Identity", np.zeros(0, np.int64)))
        period = count if periodic else op("Max", op("Sub", count, 1), 1)
        turn = div(2 * math.pi, cast(period, ir.DataType.DOUBLE))
        phase = mul(cast(op("Range", 0, count, 1), ir.DataType.DOUBLE), turn)
        terms = [
            mul(op("Cos", mul(phase, float(k))), (-1.0) ** k * a)
            for k, a in enumerate(coefficients)
            if k
        ]
        return cast(reduce(add, terms, coefficients[0]), ir.DataType(output_datatype))

    return OpDef(name, _infer_window, reference, vjp=CONSTANT, compose=compose)


def _infer_window(ctx: InferContext) -> Sequence[Any]:
    known = ctx.data(0)
    size = ctx.fresh() if known is None else ctx.dims(0)[0]  # type: ignore[index]
    return [TensorType(ir.DataType(ctx.attr("output_datatype")), (size,))]


def _infer_mel(ctx: InferContext) -> Sequence[Any]:
    bins, length = ctx.data(0), ctx.data(1)
    rows = ctx.fresh() if length is None else floordiv(ctx.dims(1)[0], 2) + 1  # type: ignore[index]
    columns = ctx.fresh() if bins is None else ctx.dims(0)[0]  # type: ignore[index]
    return [TensorType(ir.DataType(ctx.attr("output_datatype")), (rows, columns))]


OPERATORS = (
    _window("BlackmanWindow", (0.42, 0.5, 0.08)),
    _window("HammingWindow", (25 / 46, 21 / 46)),
    _window("HannWindow", (0.5, 0.5)),
    OpDef("MelWeightMatrix", _infer_mel, onnx_kernel("MelWeightMatrix"), vjp=CONSTANT),
)
