"""Convolutions and pooling of PyTorch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.computing import built
from hagane.frontends.libraries.torch.operands import (
    FLOAT,
    INT64,
    at_least,
    cast,
    category,
    need_float,
    need_tensor,
    per_axis,
    same_dtype,
    same_shape,
    shape_of,
    size,
    sizes,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import (
    Tensor,
    Value,
    is_size,
)
from hagane.ops.builder import op
from hagane.ops.functions.images import images
from hagane.ops.functions.images.pooling import adaptive_means
from hagane.ops.functions.layers.grouped import convolved_in_groups
from hagane.symbolic import Dim, Expr, floordiv


def batched(t: Core, x: Tensor, spatial: int, what: str) -> tuple[Tensor, bool]:
    """Return the input with a batch axis, and whether it came without one."""
    shape = shape_of(t, x)
    if len(shape) == spatial + 1:
        return t.op("Unsqueeze", x, np.array([0], dtype=np.int64)), True
    if len(shape) != spatial + 2:
        names = "batch, channels, " + ", ".join(("depth", "height", "width")[-spatial:])
        t.fail("rank", f"{what} expects ({names}), got {t.show(x)}", x)
    return x, False


def unbatched(t: Core, x: Tensor, lone: bool) -> Tensor:
    """Return a result without the batch axis that its input lacked."""
    return t.op("Squeeze", x, np.array([0], dtype=np.int64)) if lone else x


def _positive(t: Core, y: Tensor, spatial: int, what: str) -> Tensor:
    """Restrict the inputs to those for which something is left to compute."""
    for found in shape_of(t, y)[-spatial:]:
        if isinstance(found, int) and found < 1:
            t.fail("shape-mismatch", f"{what} leaves nothing: the output would be {t.show(y)}", y)
        t.emit.require_size(found, 1, f"output of {t.emit.label or what}")
    return y


def conv(t: Core, spatial: int, x: Value, weight: Value, bias: Value, stride: Value,
         padding: Value, dilation: Value, groups: Value) -> Tensor:  # fmt: skip
    """Return a convolution over the last ``spatial`` axes."""
    what = f"conv{spatial}d"
    x, w = need_tensor(t, x, "input"), need_tensor(t, weight, "weight")
    same_dtype(t, x, w, "input and weight")
    x, lone = batched(t, x, spatial, what)
    strides, dilations = (
        per_axis(t, stride, spatial, "stride"),
        per_axis(t, dilation, spatial, "dilation"),
    )
    shape, kernel = shape_of(t, x), shape_of(t, w, spatial + 2, "weight")
    if t.emit.differ(shape[1], kernel[1] * groups):
        places = [i for i, dim in enumerate(shape) if dim == kernel[1] * groups]
        remedy = f"move axis {places[0]} to axis 1 with permute" if places else ""
        t.fail(
            "shape-mismatch",
            f"expected {kernel[1] * groups} channels in axis 1, got {shape[1]}: {t.show(x)}",
            x,
            remedy=remedy,
        )
    pads: Sequence[Dim] | None = None
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            t.fail("value", f"expected padding to be 'same', 'valid' or numbers, got '{padding}'")
        if padding == "same" and any(s != 1 for s in strides):
            t.fail("value", f"padding='same' needs stride 1, got {strides}",
                   remedy="pad with numbers")  # fmt: skip
        if padding == "same":
            totals = [d * (k - 1) for d, k in zip(dilations, kernel[2:], strict=True)]
            pads = [n // 2 for n in totals] + [n - n // 2 for n in totals]
    elif _is_formula(padding):
        given = _listed(padding)
        if len(given) not in (1, spatial):
            t.fail("value", f"expected padding of one or {spatial} numbers, got {len(given)}")
        pads = list(given if len(given) == spatial else given * spatial) * 2
    else:
        pads = per_axis(t, padding, spatial, "padding") * 2
    if pads is not None and not all(isinstance(n, int) for n in pads):  # no attribute holds them
        both = zip(pads[:spatial], pads[spatial:], strict=True)
        amounts = [n for pair in reversed([*both]) for n in pair]
        x, pads = t.call_library("torch.nn.functional.pad", [x, tuple(amounts)]), None
    settings: dict[str, Any] = {
        "strides": strides,
        "dilations": dilations,
        "pads": pads or [0] * 2 * spatial,
    }
    if isinstance(groups, Expr):
        if t.emit.indivisible(kernel[0], groups, "output channels in groups"):
            t.fail("value", f"expected weights that {groups} groups divide, got {t.show(w)}", w)
        y = _in_groups(t, "Conv", x, w, bias, groups, kernel[0], settings)
    else:
        y = _convolved(t, "Conv", x, w, bias, groups, settings)
    return unbatched(t, _positive(t, y, spatial, what), lone)


def _is_formula(value: Value) -> bool:
    """Whether a value is a size that is not known, or several sizes with such a one."""
    given = _listed(value)
    return all(map(is_size, given)) and any(isinstance(one, Expr) for one in given)


def _listed(value: Value) -> tuple[Value, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def _convolved(
    t: Core, operator: str, x: Tensor, w: Tensor, bias: Value, groups: Value,
    settings: Mapping[str, Any],
) -> Tensor:  # fmt: skip
    """Return a convolution; PyTorch has some of integers and of complex numbers too."""
    given = [x, w] if bias is None else [x, w, need_tensor(t, bias, "bias")]
    if bias is not None:
        same_dtype(t, x, given[2], "input and bias")
    if category(x.dtype) == 2:
        made: Tensor = t.op(operator, *given, group=groups, **settings)
        return made
    if t.emit.builds:
        t.fail("capture", f"{operator} of ONNX takes floats alone, got {t.show(x)}", x,
               remedy="convert input, weight and bias with .double()")  # fmt: skip
    with t.emit.types_only():
        floats = [t.emit.like(one, FLOAT) for one in given]
        made = t.op(operator, *floats, group=groups, **settings)
    return t.emit.like(made, x.dtype)


def _in_groups(
    t: Core, operator: str, x: Tensor, w: Tensor, bias: Value, groups: Expr, outside: Dim,
    settings: dict[str, Any],
) -> Tensor:  # fmt: skip
    """Return a convolution in a number of groups that is not known before it runs."""
    batch, _, *space = shape_of(t, x)
    _, _, *kernel = shape_of(t, w)
    pads, extra = settings["pads"], settings.get("output_padding", [0] * len(space))
    reach = [d * (k - 1) + 1 for d, k in zip(settings["dilations"], kernel, strict=True)]
    sums = [a + b for a, b in zip(pads[: len(space)], pads[len(space) :], strict=True)]
    if operator == "Conv":
        made = [
            floordiv(n + p - r, s) + 1
            for n, p, r, s in zip(space, sums, reach, settings["strides"], strict=True)
        ]
    else:
        made = [
            (n - 1) * s - p + r + e
            for n, s, p, r, e in zip(space, settings["strides"], sums, reach, extra, strict=True)
        ]
    b = [] if bias is None else [need_tensor(t, bias, "bias")]

    def convolved(x: Any, w: Any, b: Any = None) -> Any:
        return convolved_in_groups(operator, x, w, b, groups, **settings)

    return built(t, (x.dtype, (batch, outside, *made)), convolved, x, w, *b)


def conv_transpose(
    t: Core, spatial: int, x: Value, weight: Value, bias: Value, stride: Value, padding: Value,
    output_padding: Value, groups: Value, dilation: Value,
) -> Tensor:  # fmt: skip
    """Return a transposed convolution over the last ``spatial`` axes."""
    what = f"conv_transpose{spatial}d"
    x, w = need_tensor(t, x, "input"), need_tensor(t, weight, "weight")
    same_dtype(t, x, w, "input and weight")
    x, lone = batched(t, x, spatial, what)
    shape, kernel = shape_of(t, x), shape_of(t, w, spatial + 2, "weight")
    if t.emit.differ(shape[1], kernel[0]):
        t.fail(
            "shape-mismatch",
            f"expected {kernel[0]} channels in axis 1, got {shape[1]}: {t.show(x)}",
            x,
        )
    strides, dilations = (
        per_axis(t, stride, spatial, "stride"),
        per_axis(t, dilation, spatial, "dilation"),
    )
    extra = per_axis(t, output_padding, spatial, "output_padding")
    if any(e >= max(s, d) for e, s, d in zip(extra, strides, dilations, strict=True)):
        t.fail("value", f"expected output_padding below stride or dilation, got {extra}")
    pads = per_axis(t, padding, spatial, "padding")
    settings: dict[str, Any] = {
        "strides": strides, "dilations": dilations, "pads": pads * 2, "output_padding": extra
    }  # fmt: skip
    if isinstance(groups, Expr):
        if t.emit.indivisible(shape[1], groups, "channels in groups"):
            t.fail("value", f"expected channels that {groups} groups divide, got {t.show(x)}", x)
        y = _in_groups(t, "ConvTranspose", x, w, bias, groups, kernel[1] * groups, settings)
    else:
        y = _convolved(t, "ConvTranspose", x, w, bias, groups, settings)
    return unbatched(t, _positive(t, y, spatial, what), lone)


def _register_conv(spatial: int) -> None:
    def forward(
        t: Core, input: Value, weight: Value, bias: Value = None, stride: Value = 1,
        padding: Value = 0, dilation: Value = 1, groups: Value = 1,
    ) -> Tensor:  # fmt: skip
        return conv(t, spatial, input, weight, bias, stride, padding, dilation, groups)

    def transposed(
        t: Core, input: Value, weight: Value, bias: Value = None, stride: Value = 1,
        padding: Value = 0, output_padding: Value = 0, groups: Value = 1, dilation: Value = 1,
    ) -> Tensor:  # fmt: skip
        return conv_transpose(
            t, spatial, input, weight, bias, stride, padding, output_padding, groups, dilation
        )

    TORCH.function(f"nn.functional.conv{spatial}d", f"conv{spatial}d")(forward)
    TORCH.function(f"nn.functional.conv_transpose{spatial}d", f"conv_transpose{spatial}d")(
        transposed
    )


def pool(t: Core, operator: str, spatial: int, x: Value, kernel_size: Value, stride: Value,
         padding: Value, dilation: Value, ceil_mode: Value) -> Tensor:  # fmt: skip
    """Return a pooling over the last ``spatial`` axes."""
    what = f"{operator} over {spatial} axes"
    x, lone = batched(t, need_tensor(t, x, "input"), spatial, what)
    t.emit.require_size(shape_of(t, x)[1], 1, "number of channels")
    kernel = per_axis(t, kernel_size, spatial, "kernel_size")
    strides = kernel if stride in (None, (), []) else per_axis(t, stride, spatial, "stride")
    pads = per_axis(t, padding, spatial, "padding")
    if any(2 * p > k for p, k in zip(pads, kernel, strict=True)):
        t.fail("value", f"expected padding of at most half the kernel {kernel}, got {pads}")
    dilations = per_axis(t, dilation, spatial, "dilation")
    source = x if category(x.dtype) == 2 else cast(t, x, ir.DataType.DOUBLE)
    y: Tensor = t.op(operator, source, kernel_shape=kernel, strides=strides, pads=pads * 2,
                     dilations=dilations, ceil_mode=int(bool(ceil_mode)))  # fmt: skip
    y = y if source is x else cast(t, y, x.dtype)
    return unbatched(t, _positive(t, y, spatial, what), lone)


def _counts(t: Core, operator: str, spatial: int, x: Tensor, *settings: Value) -> Tensor:
    """Return the type of a pooling, which nothing computes."""
    with t.emit.types_only():
        return pool(t, operator, spatial, x, *settings)


def average_pool(
    t: Core, spatial: int, input: Value, kernel_size: Value, stride: Value, padding: Value,
    ceil_mode: Value, count_include_pad: Value, divisor_override: Value,
) -> Tensor:  # fmt: skip
    """Return the means of windows over the last ``spatial`` axes."""
    x = need_tensor(t, input, "input")
    if x.dtype != INT64:
        need_float(t, x, "input")
    if isinstance(divisor_override, int) and divisor_override == 0:
        t.fail("value", "expected a divisor_override that is not 0, got 0")
    made = _counts(t, "AveragePool", spatial, x, kernel_size, stride, padding, 1, ceil_mode)
    if x.dtype == INT64:  # means rounded towards zero
        return t.emit.typed("AveragePool", [x], INT64, shape_of(t, made))
    kernel = per_axis(t, kernel_size, spatial, "kernel_size")
    strides = kernel if stride in (None, (), []) else per_axis(t, stride, spatial, "stride")
    pads = per_axis(t, padding, spatial, "padding")
    counts = list(shape_of(t, made)[-spatial:]) if ceil_mode else None
    lone = len(shape_of(t, x)) == spatial + 1

    def means(x: Tensor) -> Any:
        wide = op("Unsqueeze", x, [0]) if lone else x
        found = images.averages(
            wide, kernel, strides, pads, counts, include_pads=bool(count_include_pad),
            divisor=divisor_override,
        )  # fmt: skip
        return op("Squeeze", found, [0]) if lone else found

    return built(t, made, means, x)


def _register_pools(spatial: int) -> None:
    def maximum(
        t: Core, input: Value, kernel_size: Value, stride: Value = None, padding: Value = 0,
        dilation: Value = 1, ceil_mode: Value = False, return_indices: Value = False,
    ) -> Value:  # fmt: skip
        if dilation == 1 and is_whole(
            t, input, kernel_size, stride, padding, ceil_mode, return_indices
        ):
            return adaptive_max(t, input, 1)
        y = pool(t, "MaxPool", spatial, input, kernel_size, stride, padding, dilation, ceil_mode)
        if not return_indices:
            return y
        x = need_tensor(t, input, "input")
        lone = len(shape_of(t, x)) == spatial + 1
        kernel = per_axis(t, kernel_size, spatial, "kernel_size")
        strides = kernel if stride in (None, (), []) else per_axis(t, stride, spatial, "stride")
        pads = per_axis(t, padding, spatial, "padding")
        dilations = per_axis(t, dilation, spatial, "dilation")
        settings = {"kernel_shape": kernel, "strides": strides, "pads": pads * 2,
                    "dilations": dilations, "ceil_mode": int(bool(ceil_mode))}  # fmt: skip

        def places(x: Tensor) -> Any:
            wide = op("Unsqueeze", x, [0]) if lone else x
            found = images.largest_with_places(wide, settings)[1]
            return op("Squeeze", found, [0]) if lone else found

        return y, built(t, (INT64, shape_of(t, y)), places, x)

    def average(
        t: Core, input: Value, kernel_size: Value, stride: Value = None, padding: Value = 0,
        ceil_mode: Value = False, count_include_pad: Value = True, divisor_override: Value = None,
    ) -> Value:  # fmt: skip
        if divisor_override is None and is_whole(t, input, kernel_size, stride, padding, ceil_mode):
            return adaptive_average(t, input, 1)
        return average_pool(
            t, spatial, input, kernel_size, stride, padding, ceil_mode, count_include_pad,
            divisor_override,
        )  # fmt: skip

    def norm(
        t: Core, input: Value, norm_type: Value, kernel_size: Value, stride: Value = None,
        ceil_mode: Value = False,
    ) -> Tensor:  # fmt: skip
        x = need_tensor(t, input, "input")
        powers = t.call_library("torch.pow", [x, norm_type])
        means = average_pool(t, spatial, powers, kernel_size, stride, 0, ceil_mode, True, None)
        if not isinstance(norm_type, int | float):
            return t.emit.typed("LpPool", [means], means.dtype, means.shape)
        area = math.prod(per_axis(t, kernel_size, spatial, "kernel_size"))
        return built(t, means, images.norms_of_windows, x, means, float(norm_type), area)

    def adaptive(t: Core, input: Value, output_size: Value) -> tuple[Tensor, Tensor]:
        """Return the operand, and the type of its windows' maxima or means."""
        x = need_tensor(t, input, "input")
        _, _ = batched(t, x, spatial, "adaptive pooling")
        shape = shape_of(t, x)
        wanted = (
            list(output_size) if isinstance(output_size, tuple | list) else [output_size] * spatial
        )
        if len(wanted) != spatial:
            t.fail("value", f"expected {spatial} output sizes, got {wanted}")
        for one in wanted:
            at_least(t, one, 0, "output_size")
        tail = shape[-spatial:]
        pairs = zip(tail, wanted, strict=True)
        result = tuple(old if new is None else size(t, new) for old, new in pairs)
        return x, t.emit.typed("AdaptivePool", [x], x.dtype, (*shape[:-spatial], *result))

    def adaptive_max(
        t: Core, input: Value, output_size: Value, return_indices: Value = False
    ) -> Value:
        x, y = adaptive(t, input, output_size)
        counts = shape_of(t, y)[-spatial:]
        if is_divided(x, counts):
            y = built(t, y, images.reduced_to, x, counts, "ReduceMax")
        if not return_indices:
            return y
        shape = shape_of(t, y)
        if not all(isinstance(n, int) for n in (*shape_of(t, x)[-spatial:], *counts)):
            return (y, t.emit.typed("AdaptivePool", [y], INT64, shape))
        return y, built(t, (INT64, shape), images.adaptive_places, x, counts)

    def is_divided(x: Tensor, counts: Sequence[Dim]) -> bool:
        """Whether the number of windows is known and small, or that of elements."""
        pairs = zip(_sizes(x)[-spatial:], counts, strict=True)
        return all(a == b or (isinstance(b, int) and b <= _MOST_WINDOWS) for a, b in pairs)

    def adaptive_average(t: Core, input: Value, output_size: Value) -> Value:
        x, y = adaptive(t, input, output_size)
        sizes = shape_of(t, y)[-spatial:]
        pairs = zip(shape_of(t, x)[-spatial:], sizes, strict=True)
        shared = [pair for pair in pairs if pair[1] != 1 and pair[0] != pair[1]]
        if all(isinstance(n, int) for pair in shared for n in pair):
            return built(t, y, adaptive_means, x, sizes)
        return built(t, y, images.reduced_to, x, sizes, "ReduceMean") if is_divided(
            x, sizes
        ) else y  # fmt: skip

    def is_whole(
        t: Core, input: Value, kernel_size: Value, stride: Value, padding: Value, *rest: Value
    ) -> bool:
        """Whether an open window is as large as what it moves over, so that there is one."""
        parts = kernel_size if isinstance(kernel_size, tuple | list) else [kernel_size] * spatial
        if not isinstance(input, Tensor) or not any(isinstance(n, Expr) for n in parts):
            return False
        plain = stride in (None, (), []) or stride is kernel_size or stride == 1
        tail = shape_of(t, input)[-spatial:]
        return plain and padding in (0, (0,) * spatial) and not any(rest) and all(
            isinstance(n, int | Expr) and n == own for n, own in zip(parts, tail, strict=False)
        )  # fmt: skip

    TORCH.function(f"nn.functional.max_pool{spatial}d", f"max_pool{spatial}d")(maximum)
    for kind, handler in (("max", adaptive_max), ("avg", adaptive_average)):
        TORCH.function(f"nn.functional.adaptive_{kind}_pool{spatial}d")(handler)
        if spatial == 1:
            TORCH.function(f"adaptive_{kind}_pool1d")(handler)
    alone = ("avg_pool1d",) if spatial == 1 else ()
    TORCH.function(f"nn.functional.avg_pool{spatial}d", *alone)(average)
    TORCH.function(f"nn.functional.lp_pool{spatial}d")(norm)


_MOST_WINDOWS = 64


def _sizes(x: Tensor) -> tuple[Dim, ...]:
    """Return the shape of a tensor whose rank is known."""
    assert x.shape is not None
    return x.shape


for _spatial in (1, 2, 3):
    _register_conv(_spatial)
    _register_pools(_spatial)


def _register_unpools(rank: int) -> None:
    @TORCH.function(f"nn.functional.max_unpool{rank}d")
    def max_unpool(
        t: Core, input: Value, indices: Value, kernel_size: Value, stride: Value = None,
        padding: Value = 0, output_size: Value = None,
    ) -> Tensor:  # fmt: skip
        """Return maxima put back where they came from."""
        shape = shape_of(t, need_tensor(t, input, "input"))
        places = need_tensor(t, indices, "indices")
        same_shape(t, places, shape, "indices of the shape of the input")
        kernel = per_axis(t, kernel_size, rank, "kernel_size")
        strides = kernel if stride is None else per_axis(t, stride, rank, "stride")
        pads = per_axis(t, padding, rank, "padding")
        tail = [
            (n - 1) * s - 2 * p + k
            for n, s, p, k in zip(shape[-rank:], strides, pads, kernel, strict=True)
        ]
        if output_size is not None:
            tail = sizes(t, (output_size,))[-rank:]
        made = (*shape[:-rank], *tail)
        return built(t, (input.dtype, made), images.put_back, input, indices, tail)


for _spatial in (1, 2, 3):
    _register_unpools(_spatial)
