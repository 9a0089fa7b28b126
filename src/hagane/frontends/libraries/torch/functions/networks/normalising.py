"""Normalisation of PyTorch."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.computing import built, computed
from hagane.frontends.libraries.memory.writing import renew
from hagane.frontends.libraries.torch.operands import (
    FLOAT,
    category,
    expect_axes,
    need_float,
    need_tensor,
    same_dtype,
    shape_of,
    sizes,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.printing import show_dims
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.builder import interpreting
from hagane.ops.functions.images import images
from hagane.ops.functions.numbers.elementary import add, cast, div
from hagane.ops.functions.sums import normalizing
from hagane.symbolic import Dim, floordiv, product
from hagane.symbolic.logic import either
from hagane.symbolic.path import Verdict


def channels_fit(t: Core, x: Tensor, count: Dim, what: str) -> None:
    """Fail unless axis 1 has ``count`` channels."""
    shape = shape_of(t, x)
    if len(shape) < 2:
        t.fail("rank", f"{what} expects (batch, channels, ...), got {t.show(x)}", x)
    if t.emit.differ(shape[1], count):
        t.fail(
            "shape-mismatch",
            f"{what} expects {count} channels in axis 1, got {shape[1]}: {t.show(x)}",
            x,
        )


@TORCH.function("batch_norm")
def batch_norm_of(
    t: Core, input: Value, weight: Value, bias: Value, running_mean: Value, running_var: Value,
    training: Value, momentum: Value, eps: Value, cudnn_enabled: Value,
) -> Tensor:  # fmt: skip
    """Return what ``nn.functional.batch_norm`` returns, of operands in another order."""
    return batch_norm(t, input, running_mean, running_var, weight, bias, training, momentum, eps)


@TORCH.function("nn.functional.batch_norm")
def batch_norm(
    t: Core, input: Value, running_mean: Value = None, running_var: Value = None,
    weight: Value = None, bias: Value = None, training: Value = False, momentum: Value = 0.1,
    eps: Value = 1e-5,
) -> Tensor:  # fmt: skip
    """Return the input normalised a channel; in training by its own mean and variance."""
    x = need_tensor(t, input, "input")
    need_float(t, x, "input")
    expect_axes(t, x, 2)
    for other in (running_mean, running_var, weight, bias):
        if isinstance(other, Tensor):
            channels_fit(t, x, shape_of(t, other, 1)[0], "batch_norm")
    if training:
        _need_several(t, x, shape_of(t, x)[:1] + shape_of(t, x)[2:])
    made = t.emit.typed("BatchNormalization", [x], x.dtype, x.shape)
    empty = any(isinstance(n, int) and n == 0 for n in shape_of(t, x))  # of which nothing is kept
    if training and isinstance(running_mean, Tensor) and not empty:
        _note_moments(t, x, running_mean, running_var, momentum)
    mean, variance = (None, None) if training else (running_mean, running_var)
    return computed(t, made, normalizing.batch_norm, x, mean, variance, weight, bias, eps)


def _need_several(t: Core, x: Tensor, counts: Sequence[Dim]) -> None:
    """Expect more than one value for each mean and variance."""
    total = product(counts)
    if total == 1:
        t.fail(
            "value", f"expected several values for each mean, got {t.show(x)}", x,
            remedy="normalise larger batches, or call eval() first",
        )  # fmt: skip
    if isinstance(total, int) or not all(t.knowledge.is_nonnegative(c - 1) for c in counts):
        return
    claim = functools.reduce(either, [t.knowledge.less(1, count) for count in counts])
    if t.knowledge.ask(claim).verdict is not Verdict.PROVED:
        text = f"{total} >= 2 (values for each mean)"
        t.emit.demand(claim, text)  # (in a run, a mean of one value is a number like any other)
        t.emit.suppose(claim, text)


def _note_moments(
    t: Core, x: Tensor, mean: Tensor, variance: Tensor, momentum: Value, *, samples: bool = False
) -> None:
    """Note how the running mean and variance change; ``samples`` have moments of their own."""
    if not t.emit.builds:
        return
    if not isinstance(momentum, int | float | Tensor):
        raise CheckError("capture", f"expected a number as momentum, got {t.show(momentum)}")
    with interpreting(t.emit):
        found = normalizing.batch_moments(x, samples=samples)
    for buffer, of_batch in zip((mean, variance), found, strict=True):
        renew(t, buffer, partial(normalizing.moved, new=of_batch, share=momentum))


def share_of_batch(t: Core, count: Value) -> Value:
    """Return the share of a batch in the mean over all, and count it; 0 where nothing counts.

    Args:
        t: The interpreter.
        count: The number of the batches before, an integer tensor.
    """
    found = count_batch(t, count)
    if found is None:
        return 0.0
    with interpreting(t.emit):
        return div(1.0, cast(found, ir.DataType.DOUBLE))


def count_batch(t: Core, count: Value) -> Tensor | None:
    """Count a batch, and return the number with it; None where nothing counts.

    Args:
        t: The interpreter.
        count: The number of the batches before, an integer tensor.
    """
    if not t.emit.builds or not isinstance(count, Tensor):
        return None
    open_count = replace(count, known=None)  # another one in each run
    found: list[Any] = []

    def more(old: Tensor) -> Any:
        found.append(add(open_count if old is count else old, 1))
        return found[0]

    renew(t, count, more)
    made: Tensor = found[0]
    return made


@TORCH.function("nn.functional.instance_norm")
def instance_norm(
    t: Core, input: Value, running_mean: Value = None, running_var: Value = None,
    weight: Value = None, bias: Value = None, use_input_stats: Value = True, momentum: Value = 0.1,
    eps: Value = 1e-5,
) -> Tensor:  # fmt: skip
    """Return each channel of each sample normalised."""
    if not use_input_stats:
        return batch_norm(t, input, running_mean, running_var, weight, bias, eps=eps)
    x = need_tensor(t, input, "input")
    _need_several(t, x, shape_of(t, x)[2:])
    for other in (running_mean, running_var):
        if isinstance(other, Tensor):
            channels_fit(t, x, shape_of(t, other, 1)[0], "instance_norm")
    if isinstance(running_mean, Tensor):
        _note_moments(t, x, running_mean, running_var, momentum, samples=True)
    made = batch_norm(t, x, None, None, weight, bias, True, eps=eps)
    return computed(t, made, normalizing.instance_norm, x, weight, bias, eps)


@TORCH.function("nn.functional.layer_norm", "layer_norm")
def layer_norm(
    t: Core, input: Value, normalized_shape: Value, weight: Value = None, bias: Value = None,
    eps: Value = 1e-5,
) -> Tensor:  # fmt: skip
    """Return the input normalised over its last axes."""
    x, count = _last_axes(t, input, normalized_shape, weight)
    made = t.emit.typed("LayerNormalization", [x], x.dtype, x.shape)
    return computed(t, made, normalizing.layer_norm, x, count, weight, bias, eps)


@TORCH.function("nn.functional.rms_norm", "rms_norm")
def rms_norm(
    t: Core, input: Value, normalized_shape: Value, weight: Value = None, eps: Value = None
) -> Tensor:
    """Return the input over its root mean square along the last axes."""
    x, count = _last_axes(t, input, normalized_shape, weight)
    made = t.emit.typed("RMSNormalization", [x], x.dtype, x.shape)
    if eps is None:  # that of the type in which it is computed
        double = x.dtype == ir.DataType.DOUBLE
        eps = float(np.finfo(np.float64 if double else np.float32).eps)
    return computed(t, made, normalizing.rms_norm, x, count, weight, eps)


def _last_axes(t: Core, input: Value, normalized: Value, weight: Value) -> tuple[Tensor, int]:
    """Return the input, and how many of its last axes are normalised."""
    x = need_tensor(t, input, "input")
    need_float(t, x, "input")
    if isinstance(weight, Tensor):
        same_dtype(t, x, weight, "input and weight")
    last = sizes(t, (normalized if isinstance(normalized, tuple | list) else (normalized,),))
    if not last:
        t.fail("shape-mismatch", "expected the sizes of one axis or more to normalise, got none", x)
    shape = shape_of(t, x)
    if len(shape) < len(last) or any(
        t.emit.differ(a, b) for a, b in zip(shape[len(shape) - len(last) :], last, strict=True)
    ):
        t.fail(
            "shape-mismatch", f"expected the last axes to be {show_dims(last)}, got {t.show(x)}", x
        )
    return x, len(last)


@TORCH.function("nn.functional.group_norm", "group_norm")
def group_norm(
    t: Core,
    input: Value,
    num_groups: Value,
    weight: Value = None,
    bias: Value = None,
    eps: Value = 1e-5,
) -> Tensor:
    """Return the input normalised over groups of channels."""
    x = need_tensor(t, input, "input")
    need_float(t, x, "input")
    expect_axes(t, x, 2)
    channels = shape_of(t, x)[1]
    if t.emit.indivisible(channels, num_groups, "channels in groups"):
        t.fail(
            "shape-mismatch",
            f"expected channels divisible by {num_groups} groups, got {t.show(x)}",
            x,
        )
    if isinstance(weight, Tensor):
        channels_fit(t, x, shape_of(t, weight, 1)[0], "group_norm")
    batch, _, *space = shape_of(t, x)
    _need_several(t, x, (batch, floordiv(channels, num_groups), *space))
    made = t.emit.typed("GroupNormalization", [x], x.dtype, x.shape)
    return computed(t, made, normalizing.group_norm, x, num_groups, weight, bias, eps)


@TORCH.function("nn.functional.local_response_norm")
def local_response_norm(
    t: Core, input: Value, size: Value, alpha: Value = 1e-4, beta: Value = 0.75, k: Value = 1.0
) -> Tensor:
    """Return the input normalised over neighbouring channels."""
    x = need_tensor(t, input, "input")
    numbers = [alpha, beta, k]
    if category(x.dtype) < 2:  # means of integers are cut
        return t.emit.typed("LRN", [x], FLOAT, x.shape)
    if not isinstance(size, int) or not all(isinstance(n, int | float) for n in numbers):
        return t.emit.typed("LRN", [x], x.dtype, x.shape)
    return built(t, x, images.response_normalized, x, size, *map(float, numbers))


@TORCH.function("_weight_norm")
def weight_norm_of(t: Core, v: Value, g: Value, dim: Value = 0) -> Value:
    """Return directions whose norms along all axes but one are given; along all for -1."""
    x = need_tensor(t, v, "v")
    rank = len(shape_of(t, x))
    axis = int(dim)
    among = {} if axis == -1 else {"dim": tuple(n for n in range(rank) if n != axis % rank)}
    norm = t.call_library("torch.linalg.vector_norm", [x], {**among, "keepdim": axis != -1})
    share = t.call_library("torch.div", [need_tensor(t, g, "g"), norm])
    return t.call_library("torch.mul", [x, share])


def spectral_norm(t: Core, part: Value, weight: Value) -> Value:
    """Return a weight over its largest singular value, which some steps of a power method follow.

    Args:
        t: The interpreter.
        part: The module of ``torch.nn.utils.parametrizations``; in training its vectors change.
        weight: The weight.
    """
    x = need_tensor(t, weight, "weight")
    rank = len(shape_of(t, x))
    eps = t.attribute(part, "eps")

    def normalised(y: Any) -> Any:
        return t.call_library("torch.nn.functional.normalize", [y], {"dim": 0, "eps": eps})

    if rank == 1:
        return normalised(x)
    axis = int(t.attribute(part, "dim"))
    order = [axis, *(n for n in range(rank) if n != axis)]
    rows = t.call_library("torch.permute", [x, order])
    rows = t.call_library("torch.flatten", [rows, 1])
    still = t.call(t.attribute(rows, "detach"), [], {})
    turned = t.call_library("torch.t", [still])
    left, right = t.attribute(part, "_u"), t.attribute(part, "_v")
    if t.attribute(part, "training"):
        found: list[Any] = []

        def moved(v: Any) -> Any:
            u = None
            for _ in range(int(t.attribute(part, "n_power_iterations"))):
                u = normalised(t.call_library("torch.mv", [still, v]))
                v = normalised(t.call_library("torch.mv", [turned, u]))
            found[:] = u, v
            return v

        renew(t, right, moved)
        renew(t, left, lambda _: found[0])
        left, right = found
    size = t.call_library("torch.dot", [left, t.call_library("torch.mv", [rows, right])])
    return t.call_library("torch.div", [x, size])
