"""DeformConv."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hagane.ops.context import InferContext
from hagane.ops.convolution.window import Window
from hagane.ops.definition import OpDef
from hagane.ops.delegated import onnx_kernel
from hagane.ops.precision import widened


def _infer_deform_conv(ctx: InferContext) -> Sequence[Any]:
    x, w = ctx.shape(0), ctx.shape(1)
    if len(x) < 3 or len(w) != len(x):
        ctx.fail(f"expected (batch, channels, *spatial) and a weight, got {ctx.inputs_text()}")
    group = ctx.attr("group")
    ctx.unify(x[1], w[1] * group, f"expected the weight to hold {x[1]} / {group} channels")
    kernel = [k for k in ctx.attr("kernel_shape") or w[2:] if isinstance(k, int)]
    if len(kernel) != len(w) - 2:
        return [(x[0], w[0], *(ctx.fresh() for _ in x[2:]))]
    window = Window.of(kernel, ctx.attr("strides"), ctx.attr("dilations"), ctx.attr("pads"))
    return [(x[0], w[0], *window.output(x[2:]))]


OPERATORS = (OpDef("DeformConv", _infer_deform_conv, widened(onnx_kernel("DeformConv"))),)
