"""Functions of PyTorch that weigh elements against those along an axis: softmax, norms."""

from __future__ import annotations

from typing import Any

from hagane.frontends.libraries.computing import computed
from hagane.frontends.libraries.torch.functions.arrays.creating import made
from hagane.frontends.libraries.torch.functions.arrays.drawing import drawn
from hagane.frontends.libraries.torch.operands import (
    axes,
    axis,
    cast,
    dtype_of,
    need_float,
    need_tensor,
    reshape,
    shape_of,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.builder import op
from hagane.ops.functions.sums import statistics


def _softmax(name: str) -> None:
    def softmax(
        t: Core, input: Value, dim: Value = None, _stacklevel: Value = 3, dtype: Value = None
    ) -> Tensor:
        x = need_tensor(t, input, "input")
        if name == "softmin":  # in the input's own type
            x = need_tensor(t, t.call_library("torch.neg", [x]), "input")
        x = cast(t, x, dtype_of(dtype, x.dtype))
        need_float(t, x, "input")
        rank = len(shape_of(t, x))
        if dim is None:  # as PyTorch chooses it
            dim = 0 if rank in (0, 1, 3) else 1
        place = axis(t, dim, rank, x)
        if not rank:
            return t.emit.typed("Softmax", [x], x.dtype, x.shape)
        operator = "LogSoftmax" if name == "log_softmax" else "Softmax"
        found: Tensor = t.op(operator, x, axis=place)
        return found

    def along(t: Core, input: Value, dim: Value, dtype: Value = None) -> Tensor:
        return softmax(t, input, dim, dtype=dtype)

    TORCH.function(f"nn.functional.{name}")(softmax)
    if name != "softmin":
        TORCH.function(name, f"special.{name}", methods=(name,))(along)


for _name in ("softmax", "log_softmax", "softmin"):
    _softmax(_name)


def _raised(x: Any, times: Any) -> Any:
    """Return logits plus Gumbel's numbers, from exponential ones."""
    return op("Sub", x, op("Log", times))


@TORCH.function("nn.functional.gumbel_softmax")
def gumbel_softmax(
    t: Core, logits: Value, tau: Value = 1, hard: Value = False, eps: Value = 1e-10, dim: Value = -1
) -> Tensor:
    """Return a sample of the Gumbel-softmax distribution."""
    x = need_tensor(t, logits, "logits")
    need_float(t, x, "logits")
    axis(t, dim, len(shape_of(t, x)), x)
    if not t.emit.draws_noise:
        return t.emit.typed("GumbelSoftmax", [x], x.dtype, x.shape)
    like = made(t, x.dtype, list(shape_of(t, x)), x.device)
    times = drawn(t, "exponential_", like, {}, 1.0)
    scaled = t.call_library("torch.div", [computed(t, x, _raised, x, times), tau])
    soft: Tensor = t.call_library("torch.softmax", [scaled, dim])
    if not t.truth(hard):
        return soft
    place = t.call_library("torch.argmax", [soft, dim, True])
    zeros = t.call_library("torch.zeros_like", [soft])
    one = t.call_library("torch.scatter", [zeros, dim, place, 1.0])
    return computed(
        t, x, lambda y, z, s: op("Add", op("Sub", y, s), z), one, soft, t.emit.stopped(soft)
    )


@TORCH.function("nn.functional.normalize")
def normalize(
    t: Core, input: Value, p: Value = 2.0, dim: Value = 1, eps: Value = 1e-12, out: Value = None
) -> Tensor:
    """Return the input divided by its norm along an axis."""
    x = need_tensor(t, input, "input")
    need_float(t, x, "input")
    if not shape_of(t, x):
        return reshape(t, normalize(t, reshape(t, x, [1]), p, dim, eps), [])
    places = axes(t, dim, len(shape_of(t, x)), x)
    made = t.emit.typed("Normalize", [x], x.dtype, x.shape)
    return computed(t, made, statistics.normalized, x, places, p, eps)
