"""Random numbers of PyTorch: of unknown content, or inputs that the caller of a step draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hagane.frontends.libraries.computing import computed
from hagane.frontends.libraries.torch.functions.arrays.creating import made
from hagane.frontends.libraries.torch.functions.numbers.elementwise import broadcast_shape
from hagane.frontends.libraries.torch.operands import (
    FLOAT,
    INT64,
    at_least,
    device_of,
    dtype_of,
    need_float,
    need_tensor,
    promote,
    shape_of,
    size,
    sizes,
    to_tensor,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.builder import op
from hagane.ops.functions.numbers.elementary import add, mask_like, mul
from hagane.symbolic import Dim, Expr

# Functions whose numbers the caller of a compiled step draws.
DRAWN = frozenset(
    f"torch.{name}" for name in (
        "rand", "randn", "rand_like", "randn_like", "randint", "randint_like", "randperm", "normal",
        "bernoulli", "Tensor.bernoulli", "multinomial", "Tensor.multinomial",
        "nn.functional.gumbel_softmax", "distributions.Distribution.sample",
        "distributions.Distribution.rsample", "distributions.Distribution.sample_n",
    )
)  # fmt: skip


def drawn(
    t: Core,
    kind: str,
    like: Tensor,
    keywords: Mapping[str, Value],
    *bounds: Dim | float,
) -> Tensor:
    """Return random numbers; those of compiled steps are drawn by their caller.

    Args:
        t: The interpreter.
        kind: The function of PyTorch that draws them.
        like: A tensor of their type, of unknown content.
        keywords: The others of the call.
        bounds: The arguments of the function before the shape, or of the method in place.
    """
    if not t.emit.draws_noise:
        return like
    if keywords.get("generator") is not None:
        t.fail("capture", f"'torch.{kind}' with a generator of its own cannot be captured; draw "
               "the numbers outside and pass them in")  # fmt: skip
    return t.emit.noise(kind, like, bounds)


# Methods that draw a new content for a tensor: their parameters, which are numbers, and defaults.
REDRAWN: dict[str, Mapping[str, float | None]] = {
    "normal_": {"mean": 0.0, "std": 1.0}, "uniform_": {"from": 0.0, "to": 1.0},
    "log_normal_": {"mean": 1.0, "std": 2.0}, "cauchy_": {"median": 0.0, "sigma": 1.0},
    "exponential_": {"lambd": 1.0}, "geometric_": {"p": None}, "bernoulli_": {"p": 0.5},
    "random_": {"from": None, "to": None},
}  # fmt: skip


def redrawn(
    t: Core, method: str, x: Tensor, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Tensor | None:
    """Return the content that a method in place draws for a tensor.

    Args:
        t: The interpreter.
        method: One of ``REDRAWN``.
        x: The tensor.
        arguments: The others of the call.
        keywords: Those by name.

    Returns:
        The numbers; None where nobody draws them, or where a parameter is a tensor.
    """
    defaults = REDRAWN[method]
    given: dict[str, Value] = {
        **defaults,
        **dict(zip(defaults, arguments, strict=False)),
        **keywords,
    }
    if method == "random_" and len(arguments) == 1 and not keywords:
        given = {"from": 0, "to": arguments[0]}
    bounds = [v for name, v in given.items() if name != "generator" and v is not None]
    numbers = all(isinstance(value, int | float | Expr) for value in bounds)
    if not numbers or not t.emit.draws_noise:
        return None
    like = made(t, x.dtype, list(shape_of(t, x)), x.device)
    return drawn(t, method, like, keywords, *bounds)


def _random(name: str) -> None:
    def function(
        t: Core, *size: Value, dtype: Value = None, device: Value = None, **keywords: Value
    ) -> Tensor:
        given = (keywords["size"],) if "size" in keywords else size
        x = made(t, dtype_of(dtype), sizes(t, given), device_of(device))
        return drawn(t, name, x, keywords)

    def like(
        t: Core, input: Value, *, dtype: Value = None, device: Value = None, **keywords: Value
    ) -> Tensor:
        x = need_tensor(t, input, "input")
        place = device_of(device, x.device)
        numbers = made(t, dtype_of(dtype, x.dtype), list(shape_of(t, x)), place)
        return drawn(t, name, numbers, keywords)

    TORCH.function(name)(function)
    TORCH.function(f"{name}_like")(like)


for _name in ("rand", "randn"):
    _random(_name)


@TORCH.function("randint")
def randint(
    t: Core, *arguments: Value, dtype: Value = None, device: Value = None, **keywords: Value
) -> Tensor:
    """Return random integers: ``randint(low=0, high, size)``."""
    size = keywords.get("size", arguments[-1] if arguments else None)
    if not isinstance(size, tuple | list):
        t.fail("type", f"randint takes its size as a tuple, got {t.show(t.wrap(size))}",
               remedy="write randint(low, high, (n,))")  # fmt: skip
    x = made(t, dtype_of(dtype, INT64), sizes(t, (size,)), device_of(device))
    limits = _limits(arguments if "size" in keywords else arguments[:-1], keywords)
    return drawn(t, "randint", x, keywords, *limits)


def _limits(arguments: Sequence[Value], keywords: Mapping[str, Value]) -> list[Dim]:
    """Return the least of random integers, and the number behind the largest."""
    given = [*arguments, *(keywords[name] for name in ("low", "high") if name in keywords)]
    limits: list[Dim] = [item for item in given if isinstance(item, int | Expr)]
    return limits if len(limits) > 1 else [0, *limits]


@TORCH.function("randint_like")
def randint_like(
    t: Core, input: Value, *arguments: Value, dtype: Value = None, **keywords: Value
) -> Tensor:
    """Return random integers in the shape of another tensor."""
    x = need_tensor(t, input, "input")
    numbers = made(t, dtype_of(dtype, x.dtype), list(shape_of(t, x)), x.device)
    return drawn(t, "randint", numbers, keywords, *_limits(arguments, keywords))


@TORCH.function("randperm")
def randperm(
    t: Core, n: Value, *, device: Value = None, dtype: Value = None, **keywords: Value
) -> Tensor:
    """Return the numbers below ``n`` in random order."""
    found = made(t, dtype_of(dtype, INT64), [size(t, n)], device_of(device))
    return drawn(t, "randperm", found, keywords)


@TORCH.function("normal")
def normal(
    t: Core, mean: Value, *arguments: Value, std: Value = None, size: Value = None,
    device: Value = None, dtype: Value = None, **keywords: Value,
) -> Tensor:  # fmt: skip
    """Return normal numbers in the shape of the parameters, or of ``size``."""
    places = (a for a in arguments if isinstance(a, tuple | list))
    shape = size if size is not None else next(places, None)
    deviation = std if std is not None else next((a for a in arguments if a is not shape), 1.0)
    tensors = [v for v in (mean, deviation) if isinstance(v, Tensor)]
    if shape is not None:
        like = made(t, dtype_of(dtype, FLOAT), sizes(t, (shape,)), device_of(device))
    else:
        x = tensors[0] if len(tensors) == 1 else promote(t, *tensors)[0]
        like = made(t, x.dtype, list(broadcast_shape(t, *tensors)), x.device)
    at_least(t, deviation, 0, "std")
    noise = drawn(t, "randn", like, keywords)
    if noise is like:
        return like
    # PyTorch gives their gradients as zeros: a draw is no function of them.
    parameters = (t.emit.stopped(to_tensor(t, v, like.dtype)) for v in (mean, deviation))
    return computed(t, like, lambda m, s, e: add(m, mul(s, e)), *parameters, noise)


@TORCH.function("poisson")
def poisson(t: Core, input: Value, **_: Value) -> Tensor:
    """Return random counts of some rates."""
    x = need_tensor(t, input, "input")
    return t.emit.typed("RandomPoisson", [x], x.dtype, x.shape)


@TORCH.function("bernoulli", methods=("bernoulli",))
def bernoulli(t: Core, input: Value, p: Value = None, **keywords: Value) -> Tensor:
    """Return 1 with the probabilities of a tensor, or with ``p``, else 0."""
    x = need_tensor(t, input, "input")
    like = made(t, x.dtype, list(shape_of(t, x)), x.device)
    u = drawn(t, "rand", like, keywords)
    if u is like:
        return like

    def below(u: Any, shares: Any) -> Any:
        return mask_like(op("Less", u, shares), u)

    return computed(t, like, below, u, x if p is None else to_tensor(t, p, x.dtype))


@TORCH.function("multinomial", methods=("multinomial",))
def multinomial(
    t: Core, input: Value, num_samples: Value, replacement: Value = False, **keywords: Value
) -> Tensor:
    """Return drawn categories: (..., num_samples)."""
    x = need_tensor(t, input, "input")
    shape = shape_of(t, x)
    if len(shape) not in (1, 2):
        t.fail("rank", f"multinomial takes one or two axes, got {t.show(x)}", x)
    need_float(t, x, "input")
    count = size(t, num_samples)
    at_least(t, count, 1, "num_samples")
    most = shape[-1]
    both = isinstance(count, int) and isinstance(most, int)
    if replacement is False and both and int(str(count)) > int(str(most)):
        t.fail("value", f"expected at most {most} samples without replacement, got {count}", x,
               remedy="set replacement=True")  # fmt: skip
    if not t.emit.draws_noise:
        return t.emit.typed("Multinomial", [x], INT64, (*shape[:-1], size(t, num_samples)))
    if replacement is not False and num_samples != 1:
        t.fail("capture", "'torch.multinomial' of several samples with replacement cannot be "
               "captured; draw them outside and pass them in, or one after the other")  # fmt: skip
    likely = raced(t, x, keywords)
    if num_samples == 1:
        found: Tensor = t.call_library("torch.argmax", [likely, -1, True])
    else:
        _, found = t.call_library("torch.topk", [likely, num_samples])
    return found


def raced(t: Core, shares: Tensor, keywords: Mapping[str, Value]) -> Tensor:
    """Return shares, each over an exponential number: the largest is a draw, as in PyTorch.

    Args:
        t: The interpreter.
        shares: The shares of categories, along the last axis.
        keywords: The others of the call.
    """
    like = made(t, shares.dtype, list(shape_of(t, shares)), shares.device)
    times = drawn(t, "exponential_", like, keywords, 1.0)
    return computed(t, shares, lambda p, q: op("Div", p, q), t.emit.stopped(shares), times)


__all__ = ["DRAWN", "REDRAWN", "drawn", "raced", "redrawn"]
