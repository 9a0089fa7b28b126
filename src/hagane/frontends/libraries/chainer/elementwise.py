"""Activations and other functions of one variable that keep its shape."""

from __future__ import annotations

from hagane.frontends.libraries.chainer.operands import (
    axis,
    dtype_of,
    floating,
    made,
    shape_of,
    variable,
)
from hagane.frontends.libraries.chainer.table import function
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.symbolic import floordiv

# Chainer's name -> the operator; none where the type is all there is.
_SAME = {
    "relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "exp": "Exp", "log": "Log",
    "sqrt": "Sqrt", "sin": "Sin", "cos": "Cos", "tan": "Tan", "arcsin": "Asin", "arccos": "Acos",
    "arctan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "arctanh": "Atanh", "erf": "Erf",
    "floor": "Floor", "ceil": "Ceil", "absolute": "Abs", "sign": "Sign",
    "relu6": "", "expm1": "", "log1p": "", "log2": "", "log10": "", "square": "", "rsqrt": "",
    "erfc": "", "erfinv": "", "erfcinv": "", "erfcx": "", "fix": "", "digamma": "", "lgamma": "",
    "ndtr": "", "ndtri": "", "log_ndtr": "",
}  # fmt: skip


def _same(name: str, operator: str) -> None:
    def run(t: Core, x: Value) -> Tensor:
        found = floating(t, x)
        if operator:
            result: Tensor = t.op(operator, found)
            return result
        return made(t, name, [found], found.dtype, found.shape)

    function(name)(run)


for _name, _operator in _SAME.items():
    _same(_name, _operator)


def _activation(name: str, count: int) -> None:
    """Register a function with up to ``count`` settings, which change no type."""

    def run(t: Core, x: Value, *settings: Value, **named: Value) -> Tensor:
        if len(settings) + len(named) > count:
            t.fail("call", f"{name}() takes at most {count} settings, got {len(settings)}")
        found = floating(t, x)
        return made(t, name, [found], found.dtype, found.shape)

    function(name)(run)


for _name, _count in (
    ("leaky_relu", 1), ("elu", 1), ("selu", 2), ("hard_sigmoid", 0), ("softplus", 1),
    ("clipped_relu", 1), ("clip", 2), ("rrelu", 4), ("normalize", 3),
    ("polygamma", 1), ("zeta", 1),
):  # fmt: skip
    _activation(_name, _count)


@function("softmax", "log_softmax")
def softmax(t: Core, x: Value, axis: Value = 1) -> Tensor:
    """Return exponentials that sum to 1 along an axis, or their logarithms."""
    from hagane.frontends.libraries.chainer.operands import axis as checked

    found = floating(t, x)
    place = checked(t, axis, len(shape_of(t, found)), found)
    result: Tensor = t.op("Softmax", found, axis=place)
    return result


@function("swish")
def swish(t: Core, x: Value, beta: Value) -> Tensor:
    """Return ``x * sigmoid(beta * x)``."""
    found = floating(t, x)
    floating(t, beta, "beta")
    return made(t, "Swish", [found], found.dtype, found.shape)


@function("prelu")
def prelu(t: Core, x: Value, W: Value) -> Tensor:
    """Return ``max(0, x) + W * min(0, x)``; the shape of W is that of x from axis 1 on."""
    found, w = floating(t, x), floating(t, W, "W")
    shape, own = shape_of(t, found), shape_of(t, w)
    if len(own) >= len(shape) or any(
        t.emit.differ(a, b) for a, b in zip(shape[1:], own, strict=False)
    ):
        t.fail("shape-mismatch", f"the slopes {t.show(w)} do not fit {t.show(found)}", found, w)
    return made(t, "PRelu", [found, w], found.dtype, shape)


@function("crelu")
def crelu(t: Core, x: Value, axis: Value = 1) -> Tensor:
    """Return the positive and the negative parts, joined along an axis."""
    return _resized(t, x, axis, 2, 1)


@function("maxout")
def maxout(t: Core, x: Value, pool_size: Value, axis: Value = 1) -> Tensor:
    """Return the maxima of groups of ``pool_size`` elements along an axis."""
    return _resized(t, x, axis, 1, pool_size)


def _resized(t: Core, x: Value, where: Value, times: int, parts: Value) -> Tensor:
    found = floating(t, x)
    shape = list(shape_of(t, found))
    place = axis(t, where, len(shape), found)
    if t.emit.differ(floordiv(shape[place], parts) * parts, shape[place]):
        t.fail(
            "shape-mismatch",
            f"expected axis {place} to be divisible by {parts}, got {t.show(found)}",
            found,
        )
    shape[place] = floordiv(shape[place], parts) * times
    return made(t, "Maxout", [found], found.dtype, tuple(shape))


@function("cast")
def cast(t: Core, x: Value, typ: Value) -> Tensor:
    """Return the variable with another element type."""
    found = variable(t, x)
    wanted = dtype_of(t, typ, found.dtype)
    return found if wanted == found.dtype else t.emit.like(found, wanted)


@function("copy", "identity")
def copy(t: Core, x: Value, *_: Value) -> Tensor:
    """Return the variable, on another device."""
    return variable(t, x)


@function("dropout")
def dropout(t: Core, x: Value, ratio: Value = 0.5, **_: Value) -> Tensor:
    """Return the variable with elements dropped while training."""
    found = floating(t, x)
    if isinstance(ratio, int | float) and not 0 <= ratio < 1:
        t.fail("value", f"expected a ratio in [0, 1), got {ratio}", found)
    return made(t, "Dropout", [found], found.dtype, found.shape)


@function("zoneout")
def zoneout(t: Core, h: Value, x: Value, ratio: Value = 0.5, **_: Value) -> Tensor:
    """Return elements of the former or of the present state."""
    from hagane.frontends.libraries.chainer.operands import same_shape

    before, found = floating(t, h, "h"), floating(t, x)
    same_shape(t, before, found, "h and x")
    return made(t, "Zoneout", [before, found], found.dtype, found.shape)


@function("gaussian")
def gaussian(
    t: Core, mean: Value, ln_var: Value, *, eps: Value = None, return_eps: Value = False
) -> Value:
    """Return a sample of a normal distribution."""
    from hagane.frontends.libraries.chainer.operands import same_dtype, same_shape

    m, v = floating(t, mean, "mean"), floating(t, ln_var, "ln_var")
    same_dtype(t, m, v, "mean and ln_var")
    same_shape(t, m, v, "mean and ln_var")
    y = made(t, "Gaussian", [m, v], m.dtype, m.shape)
    return (y, y) if return_eps else y


@function("gumbel_softmax")
def gumbel_softmax(t: Core, log_pi: Value, tau: Value = 0.1, axis: Value = 1) -> Tensor:
    """Return a sample of the Gumbel-softmax distribution."""
    return softmax(t, log_pi, axis)


@function("cumsum", "cumprod")
def cumsum(t: Core, x: Value, axis: Value = None) -> Tensor:
    """Return running sums along an axis, of all elements without one."""
    from hagane.frontends.libraries.chainer.operands import axis as checked
    from hagane.symbolic import product

    found = floating(t, x)
    shape = shape_of(t, found)
    if axis is None:
        return made(t, "CumSum", [found], found.dtype, (product(shape),))
    checked(t, axis, len(shape), found)
    return made(t, "CumSum", [found], found.dtype, shape)


@function("forget")
def forget(t: Core, func: Value, *xs: Value) -> Value:
    """Call a function; what it computed is forgotten and computed again."""
    return t.call(func, list(xs), {})
