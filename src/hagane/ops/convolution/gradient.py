"""ConvWeightGradient: the gradient of a convolution by its weight, an operator of hagane's own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from hagane.ops.builder import Call, op, shape_of
from hagane.ops.context import InferContext
from hagane.ops.convolution.window import Window, pad_spatial
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.images.windows import add_windows, composed_weight_gradient
from hagane.ops.precision import composed_wide, widened
from hagane.ops.schema import Parameter, Schema

DOMAIN = "hagane"
NAME = "ConvWeightGradient"


@widened
def _reference(
    x: Array,
    g: Array,
    *,
    kernel_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    group: int = 1,
) -> Array:
    window = Window.of(kernel_shape, strides, dilations, pads)
    batch, channels = x.shape[:2]
    maps, counts = g.shape[1], g.shape[2:]
    if 0 in g.shape:
        return np.zeros((maps, channels // group, *window.kernel), x.dtype)
    taps, places = int(np.prod(window.kernel)), int(np.prod(counts))
    padded = pad_spatial(x, window.amounts(x.shape[2:]))
    windows = window.view(padded, counts)  # (batch, channels, *counts, *kernel)
    rank = window.rank
    order = (0, *range(2, 2 + rank), 1, *range(2 + rank, 2 + 2 * rank))
    rows = windows.transpose(order).reshape(batch * places, group, channels // group * taps)
    parts = np.moveaxis(g.reshape(batch, group, maps // group, places), 0, 2)
    columns = parts.reshape(group, maps // group, batch * places)
    found = np.matmul(columns, rows.transpose(1, 0, 2))
    return found.reshape(maps, channels // group, *window.kernel)


def _infer(ctx: InferContext) -> Sequence[Any]:
    x, g = ctx.shape(0), ctx.shape(1)
    if len(x) < 3 or len(g) != len(x):
        ctx.fail(
            f"expected data and a gradient of (batch, channels, *spatial), got {ctx.inputs_text()}"
        )
    group, kernel = ctx.attr("group"), ctx.attr("kernel_shape")
    if len(kernel) != len(x) - 2:
        ctx.fail(
            f"expected {len(x) - 2} numbers in kernel_shape for {len(x) - 2} spatial axes, "
            f"got {list(kernel)}"
        )
    ctx.unify(x[0], g[0], "expected data and gradient of one batch")
    for name, channels in (("channels", x[1]), ("maps", g[1])):
        if group < 1 or (isinstance(channels, int) and channels % group):
            ctx.fail(f"expected group={group} to divide the {channels} {name}")
    return [(g[1], x[1] // group, *kernel)]


@composed_wide
def _composed(
    x: Any,
    g: Any,
    *,
    kernel_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    group: int = 1,
) -> Any:
    rank = len(kernel_shape)
    return composed_weight_gradient(
        x,
        g,
        list(kernel_shape),
        list(strides or (1,) * rank),
        list(dilations or (1,) * rank),
        list(pads or (0,) * (2 * rank)),
        group,
    )


def _vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    (x, g), (u,) = call.inputs, gradients
    rank = len(shape_of(x)) - 2
    strides = call.attr("strides") or (1,) * rank
    dilations = call.attr("dilations") or (1,) * rank
    pads = call.attr("pads") or (0,) * (2 * rank)
    attributes = {
        "strides": list(strides), "dilations": list(dilations), "pads": list(pads),
        "group": call.attr("group"),
    }  # fmt: skip
    return [
        # It is linear in both: the weight of the convolution takes the place of its gradient.
        partial(add_windows, g, u, x, strides, dilations, pads[:rank], call.attr("group")),
        lambda: op("Conv", x, u, **attributes),
    ]


def _schema() -> Schema:
    # (``contrib.declare`` would import all operators there.)
    import onnx_ir as ir

    floats = frozenset(f"tensor({name})" for name in ("float16", "bfloat16", "float", "double"))
    x, g, w = (Parameter(name, "T", floats, False, False, True) for name in ("X", "GY", "GW"))
    kinds = dict.fromkeys(("kernel_shape", "strides", "dilations", "pads"), ir.AttributeType.INTS)
    return Schema(
        inputs=(x, g),
        outputs=(w,),
        min_inputs=2,
        max_inputs=2,
        min_outputs=1,
        max_outputs=1,
        defaults={"group": 1},
        attribute_types={**kinds, "group": ir.AttributeType.INT},
        required=frozenset({"kernel_shape"}),
    )


OPERATORS = (OpDef(NAME, _infer, _reference, domain=DOMAIN, vjp=_vjp, compose=_composed),)
SCHEMAS = {(DOMAIN, NAME): _schema()}
