"""Activations and other functions of one variable that keep its shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hagane.frontends.libraries.chainer.arithmetic import binary
from hagane.frontends.libraries.chainer.configuration import settings
from hagane.frontends.libraries.chainer.operands import (
    axes,
    broadcast_shape,
    computed,
    dtype_of,
    floating,
    made,
    of_torch,
    same_dtype,
    same_shape,
    shape_of,
    variable,
)
from hagane.frontends.libraries.chainer.operands import axis as checked_axis
from hagane.frontends.libraries.chainer.table import VARIABLE, function
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.builder import op
from hagane.ops.functions.chainer import elementwise as functions
from hagane.ops.functions.layers import drawing
from hagane.ops.functions.numbers import activations
from hagane.ops.functions.numbers.activations import number_like
from hagane.ops.functions.numbers.elementary import add, div, exp, mul, where
from hagane.ops.functions.numbers.elementary import cast as cast_to
from hagane.ops.functions.tensors.shapes import filled_like
from hagane.symbolic import Dim, floordiv, product

# Functions of one variable whose formulas are those of PyTorch's, under these names.
_SPECIAL = {
    "erfinv": "erfinv", "erfcx": "special.erfcx", "digamma": "digamma", "lgamma": "lgamma",
    "ndtri": "special.ndtri", "log_ndtr": "special.log_ndtr",
}  # fmt: skip


def _of_one(name: str) -> None:
    def run(t: Core, x: Value) -> Tensor:
        found = floating(t, x)
        if name in _SPECIAL:
            return of_torch(t, _SPECIAL[name], found)
        if (
            name == "erfcinv"
        ):  # by the quantile of half of it, which small ones keep their digits in
            half = binary(t, "mul", found, 0.5)
            return binary(t, "mul", of_torch(t, "special.ndtri", half), -(0.5**0.5))
        return same(t, found, functions.OF_ONE[name], found)

    function(name)(run)


for _name in (*functions.OF_ONE, *_SPECIAL, "erfcinv"):
    _of_one(_name)


def same(t: Core, x: Tensor, run: Callable[..., Any], *operands: Any) -> Tensor:
    """Return a variable of the type of another one that a function over the builder makes."""
    return computed(t, (x.dtype, x.shape), run, *operands)


def _setting(t: Core, value: Value, name: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    t.fail("value", f"expected '{name}' to be a number that is known, got {t.show(t.wrap(value))}")
    return 0.0


@function("leaky_relu")
def leaky_relu(t: Core, x: Value, slope: Value = 0.2) -> Tensor:
    """Return x where it is positive, else ``slope * x``."""
    found, alpha = floating(t, x), _setting(t, slope, "slope")
    return same(t, found, lambda x: op("LeakyRelu", x, alpha=alpha), found)


@function("elu")
def elu(t: Core, x: Value, alpha: Value = 1.0) -> Tensor:
    """Return x where it is positive, else ``alpha * (exp(x) - 1)``."""
    found, scale = floating(t, x), _setting(t, alpha, "alpha")
    return same(t, found, lambda x: op("Elu", x, alpha=scale), found)


@function("selu")
def selu(
    t: Core, x: Value, alpha: Value = 1.6732632423543772848, scale: Value = 1.0507009873554804935
) -> Tensor:
    """Return ``scale * elu(x, alpha)``."""
    found, a, b = floating(t, x), _setting(t, alpha, "alpha"), _setting(t, scale, "scale")
    return same(t, found, lambda x: op("Selu", x, alpha=a, gamma=b), found)


@function("softplus")
def softplus(t: Core, x: Value, beta: Value = 1.0) -> Tensor:
    """Return ``log(1 + exp(beta * x)) / beta``."""
    found = floating(t, x)
    return same(t, found, functions.softplus, found, _setting(t, beta, "beta"))


@function("clipped_relu")
def clipped_relu(t: Core, x: Value, z: Value = 20.0) -> Tensor:
    """Return ``min(max(x, 0), z)``."""
    found = floating(t, x)
    return same(t, found, functions.clipped_relu, found, _setting(t, z, "z"))


@function("clip")
def clip(t: Core, x: Value, x_min: Value, x_max: Value) -> Tensor:
    """Return elements brought between two bounds, None for none."""
    found = floating(t, x)
    bounds = [
        None if v is None else _setting(t, v, n) for v, n in ((x_min, "x_min"), (x_max, "x_max"))
    ]
    low, high = bounds
    if low is not None and high is not None and low >= high:
        t.fail("value", f"expected x_min to be less than x_max, got {low} and {high}", found)
    if low is None and high is None:
        t.fail("value", "expected x_min or x_max to be a number, got None for both", found)
    return same(t, found, activations.clip, found, *bounds)


@function("rrelu")
def rrelu(
    t: Core, x: Value, l: Value = 1.0 / 8, u: Value = 1.0 / 3, *, r: Value = None,  # noqa: E741
    return_r: Value = False,
) -> Value:  # fmt: skip
    """Return x where it is positive, else x with a slope that is drawn while training."""
    found = floating(t, x)
    low, high = _setting(t, l, "l"), _setting(t, u, "u")
    if not 0 <= low < high < 1:
        t.fail("value", f"expected 0 <= l < u < 1, got l = {low} and u = {high}", found)
    if settings(t)["train"] and r is None:
        y = made(t, "rrelu", [found], found.dtype, found.shape)
        slope = y
    else:
        middle = (low + high) / 2
        fixed = settings(t)["train"]
        slope = (
            floating(t, r, "r")
            if fixed
            else same(t, found, lambda x: filled_like(x, middle), found)
        )
        y = same(t, found, activations.prelu, found, slope)
    return (y, slope) if return_r else y


@function("normalize")
def normalize(t: Core, x: Value, eps: Value = 1e-5, axis: Value = 1) -> Tensor:
    """Return vectors along axes over their lengths."""
    if isinstance(axis, list):
        t.fail("type", f"expected axis to be an integer or a tuple, got {t.show(axis)}")
    found, least = floating(t, x), _setting(t, eps, "eps")
    places = axes(t, axis, len(shape_of(t, found)), found)
    return same(
        t, found, lambda x: div(x, add(op("ReduceL2", x, places, keepdims=1), least)), found
    )


@function("polygamma", "zeta")
def polygamma(t: Core, n: Value, x: Value) -> Tensor:
    """Return a function of two variables of which no operator computes the values."""
    found = floating(t, x)
    order = variable(t, n, "n") if isinstance(n, Tensor) else found
    return made(t, "polygamma", [found], found.dtype, broadcast_shape(t, order, found))


def _softmax(name: str, operator: str) -> None:
    def run(t: Core, x: Value, axis: Value = 1) -> Tensor:
        found = floating(t, x)
        place = checked_axis(t, axis, len(shape_of(t, found)), found)
        return same(t, found, lambda x: op(operator, x, axis=place), found)

    function(name)(run)


_softmax("softmax", "Softmax")
_softmax("log_softmax", "LogSoftmax")


@function("swish")
def swish(t: Core, x: Value, beta: Value) -> Tensor:
    """Return ``x * sigmoid(beta * x)``; the shape of beta is that of x from axis 1 on."""
    found, w = floating(t, x), floating(t, beta, "beta")
    _first_sizes(t, found, w, "the slopes")
    return same(t, found, functions.swish, found, w)


@function("prelu")
def prelu(t: Core, x: Value, W: Value) -> Tensor:
    """Return ``max(0, x) + W * min(0, x)``; the shape of W is that of x from axis 1 on."""
    found, w = floating(t, x), floating(t, W, "W")
    _first_sizes(t, found, w, "the slopes")
    return same(t, found, functions.prelu, found, w)


def _first_sizes(t: Core, x: Tensor, w: Tensor, what: str) -> None:
    shape, own = shape_of(t, x), shape_of(t, w)
    if len(own) >= len(shape) or any(
        t.emit.differ(a, b) for a, b in zip(shape[1:], own, strict=False)
    ):
        t.fail("shape-mismatch", f"{what} {t.show(w)} do not fit {t.show(x)}", x, w)


@function("crelu")
def crelu(t: Core, x: Value, axis: Value = 1) -> Tensor:
    """Return the positive and the negative parts, joined along an axis."""
    found, place, shape = _resized(t, x, axis, 2, 1)
    return computed(t, (found.dtype, shape), functions.crelu, found, place)


@function("maxout")
def maxout(t: Core, x: Value, pool_size: Value, axis: Value = 1) -> Tensor:
    """Return the maxima of groups of ``pool_size`` elements along an axis."""
    t.emit.require_size(pool_size, 1, "pool_size")
    found, place, shape = _resized(t, x, axis, 1, pool_size)
    return computed(t, (found.dtype, shape), functions.maxout, found, pool_size, place)


def _resized(
    t: Core, x: Value, where: Value, times: int, parts: Value
) -> tuple[Tensor, int, tuple[Dim, ...]]:
    """Return the variable, the axis, and the shape with another size there."""
    found = floating(t, x)
    shape = list(shape_of(t, found))
    place = checked_axis(t, where, len(shape), found)
    if t.emit.indivisible(shape[place], parts, f"axis {place}"):
        t.fail(
            "shape-mismatch",
            f"expected axis {place} to be divisible by {parts}, got {t.show(found)}",
            found,
        )
    shape[place] = floordiv(shape[place], parts) * times
    return found, place, tuple(shape)


@function("cast")
def cast(t: Core, x: Value, typ: Value) -> Tensor:
    """Return the variable with another element type."""
    found = variable(t, x)
    wanted = dtype_of(t, typ, found.dtype)
    return computed(t, (wanted, found.shape), cast_to, found, wanted)


@function("copy")
def copy(t: Core, x: Value, dst: Value = -1) -> Tensor:
    """Return the variable, on another device."""
    return variable(t, x)


@function("identity")
def identity(t: Core, *inputs: Value) -> Value:
    """Return the variables; one comes bare."""
    found = tuple(variable(t, x) for x in inputs)
    return found[0] if len(found) == 1 else found


@function("dropout")
def dropout(t: Core, x: Value, ratio: Value = 0.5, *, mask: Value = None,
            return_mask: Value = False, **_: Value) -> Value:  # fmt: skip
    """Return the variable with elements dropped while training."""
    found = floating(t, x)
    if isinstance(ratio, int | float) and not 0 <= ratio < 1:
        t.fail("value", f"expected a ratio in [0, 1), got {ratio}", found)
    if not settings(t)["train"]:
        return (found, None) if return_mask else same(t, found, lambda x: op("Identity", x), found)
    if isinstance(mask, Tensor):
        y, kept = same(t, found, mul, found, floating(t, mask, "mask")), mask
    else:
        y = kept = drawn(t, "Dropout", found, ratio)
    return (y, kept) if return_mask else y


def drawn(t: Core, name: str, x: Tensor, ratio: Value) -> Tensor:
    """Return a variable with random elements set to zero and the others raised."""
    if t.emit.builds and t.emit.training is not None and isinstance(ratio, int | float):
        if t.emit.training.masks is not None:
            return same(t, x, mul, x, t.emit.mask(x, float(ratio)))
        seed, number = t.emit.draw()
        return same(t, x, lambda x: drawing.dropped(x, float(ratio), seed, number), x)
    if t.emit.builds:
        name = f"{name} in training; capture within hagane.using_config('train', False)"
    return made(t, name, [x], x.dtype, x.shape)


@function("zoneout")
def zoneout(t: Core, h: Value, x: Value, ratio: Value = 0.5, **_: Value) -> Tensor:
    """Return elements of the present state, while training some of the former one."""
    if settings(t)["train"]:
        before, found = floating(t, h, "h"), floating(t, x)
        same_shape(t, before, found, "h and x")
        if _is_drawn_by_caller(t) and isinstance(ratio, int | float) and 0 <= ratio < 1:
            mask = t.emit.mask(found, float(ratio))
            return same(t, found, _chosen, mask, found, before)
        return made(t, "Zoneout", [before, found], found.dtype, found.shape)
    found = variable(t, x)
    return same(t, found, lambda x: op("Identity", x), found)


@function("gaussian")
def gaussian(
    t: Core, mean: Value, ln_var: Value, *, eps: Value = None, return_eps: Value = False
) -> Value:
    """Return a sample of a normal distribution."""
    m, v = floating(t, mean, "mean"), floating(t, ln_var, "ln_var")
    same_dtype(t, m, v, "mean and ln_var")
    same_shape(t, m, v, "mean and ln_var")
    if isinstance(eps, Tensor):
        noise = floating(t, eps, "eps")
        y = same(t, m, lambda m, v, e: add(m, mul(exp(mul(v, 0.5)), e)), m, v, noise)
    elif _is_drawn_by_caller(t):
        noise = t.emit.mask(m, None).seen_as(VARIABLE)
        y = same(t, m, lambda m, v, e: add(m, mul(exp(mul(v, 0.5)), e)), m, v, noise)
    else:
        y = noise = made(t, "Gaussian", [m, v], m.dtype, m.shape)
    return (y, noise) if return_eps else y


def _is_drawn_by_caller(t: Core) -> bool:
    training = t.emit.training if t.emit.builds else None
    return training is not None and training.masks is not None


def _chosen(mask: Any, x: Any, y: Any) -> Any:
    """Return elements of x where a mask is not zero, else of y."""
    return where(op("Greater", mask, number_like(0, mask)), x, y)


@function("gumbel_softmax")
def gumbel_softmax(t: Core, log_pi: Value, tau: Value = 0.1, axis: Value = 1) -> Tensor:
    """Return a sample of the Gumbel-softmax distribution."""
    found = floating(t, log_pi)
    checked_axis(t, axis, len(shape_of(t, found)), found)
    return made(t, "GumbelSoftmax", [found], found.dtype, found.shape)


def _cumulative(name: str, run_: Callable[..., Any]) -> None:
    def run(t: Core, x: Value, axis: Value = None) -> Tensor:
        found = floating(t, x)
        shape = shape_of(t, found)
        place = None if axis is None else checked_axis(t, axis, len(shape), found)
        result = (product(shape),) if place is None else shape
        return computed(t, (found.dtype, result), run_, found, place)

    function(name)(run)


_cumulative("cumsum", functions.cumulative_sum)
_cumulative("cumprod", functions.cumulative_product)


@function("forget")
def forget(t: Core, func: Value, *xs: Value) -> Value:
    """Call a function; its results are forgotten and computed again."""
    return t.call(func, list(xs), {})
