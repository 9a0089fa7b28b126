"""Activation functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.nn.autograd import type_check
from hagane.nn.autograd.configuration import config
from hagane.nn.autograd.variable import Variable
from hagane.nn.functions.applying import constant_like, function, pop_options, require, shape_of
from hagane.nn.functions.arithmetic import add, div, mul
from hagane.nn.functions.array import reshape
from hagane.nn.functions.extremes import extreme
from hagane.nn.functions.joining import split_axis
from hagane.nn.functions.recurrent.cells import lstm_cell
from hagane.ops.builder import op


@function("x")
def relu(x: Any) -> Any:
    """Return ``max(x, 0)``."""
    require("relu", "x", x, kind="f")
    return op("Relu", x)


@function("x")
def relu6(x: Any) -> Any:
    """Return ``min(max(x, 0), 6)``."""
    return clipped_relu(x, 6.0)


@function("x")
def clipped_relu(x: Any, z: float = 20.0) -> Any:
    """Return ``min(max(x, 0), z)``."""
    require("clipped_relu", "x", x, kind="f")
    # The gradient is 0 where ``x`` is just 0 or ``z``; that of Clip, as of ``clip``, is 1 there.
    bound = constant_like(z, x)
    return op("Where", op("GreaterOrEqual", x, bound), bound, op("Relu", x))


@function("x")
def leaky_relu(x: Any, slope: float = 0.2) -> Any:
    """Return ``x`` where it is positive, else ``slope * x``."""
    require("leaky_relu", "x", x, kind="f")
    return op("LeakyRelu", x, alpha=float(slope))


@function("x", "W")
def prelu(x: Any, W: Any) -> Any:
    """Return ``x`` where it is positive, else ``W * x``.

    Args:
        x: An array of shape (batch, *sizes).
        W: Slopes, of the first sizes of a sample.
    """
    require("prelu", "x", x, kind="f")
    require("prelu", "W", W, dtype_as=("x", x))
    sizes, wanted = tuple(shape_of(W)), tuple(shape_of(x))
    if sizes != wanted[1 : 1 + len(sizes)] or len(wanted) < len(sizes) + 1:
        raise type_check.refuse(
            "prelu", f"x.shape[1:{1 + len(sizes)}] == W.shape", f"{wanted} and {sizes}"
        )
    slope = reshape(W, (1, *sizes, *(1,) * (len(wanted) - 1 - len(sizes))))
    return op("Where", op("GreaterOrEqual", x, constant_like(0, x)), x, op("Mul", x, slope))


@function("x")
def rrelu(
    x: Any,
    l: float = 1.0 / 8,  # noqa: E741
    u: float = 1.0 / 3,
    **kwargs: Any,
) -> Any:
    """Return ``x`` where it is positive, else ``r * x`` with ``r`` drawn evenly from [l, u].

    Not in training ``r`` is the middle. With ``return_r`` the slopes are returned too; ``r`` gives
    them.
    """
    require("rrelu", "x", x, kind="f")
    r, return_r = pop_options("rrelu", kwargs, r=None, return_r=False)
    if config.train:
        if r is None:
            r = np.random.uniform(l, u, tuple(shape_of(x)))
            r = np.asarray(r, dtype=x.dtype)
        elif r.dtype != x.dtype or r.shape != x.shape:
            raise type_check.refuse("rrelu", f"r: {x.dtype} {x.shape}", f"{r.dtype} {r.shape}")
        y = op("Where", x.array >= 0, x, op("Mul", x, r))
        return (y, r) if return_r else y
    y = leaky_relu(x, (l + u) / 2)
    return (y, np.full(x.shape, (l + u) / 2, x.dtype)) if return_r else y


@function("x")
def elu(x: Any, alpha: float = 1.0) -> Any:
    """Return ``x`` where it is positive, else ``alpha * (exp(x) - 1)``."""
    require("elu", "x", x, kind="f")
    return op("Elu", x, alpha=float(alpha))


@function("x", composed=True)
def selu(
    x: Any,
    alpha: float = 1.6732632423543772848170429916717,
    scale: float = 1.0507009873554804934193349852946,
) -> Any:
    """Return ``scale * elu(x, alpha)`` (Klambauer et al. 2017)."""
    require("selu", "x", x, kind="f")
    if isinstance(x, Variable):
        return mul(elu(x, alpha), float(scale))
    return op("Selu", x, alpha=float(alpha), gamma=float(scale))


@function("x")
def sigmoid(x: Any) -> Any:
    """Return ``1 / (1 + exp(-x))``."""
    require("sigmoid", "x", x, kind="f")
    return op("Sigmoid", x)


@function("x")
def hard_sigmoid(x: Any) -> Any:
    """Return ``min(max(0.2 x + 0.5, 0), 1)``."""
    require("hard_sigmoid", "x", x, kind="f")
    return op("HardSigmoid", x, alpha=0.2, beta=0.5)


@function("x")
def tanh(x: Any) -> Any:
    """Return the hyperbolic tangent."""
    require("tanh", "x", x, kind="f")
    return op("Tanh", x)


@function("x")
def softplus(x: Any, beta: float = 1.0) -> Any:
    """Return ``log(1 + exp(beta * x)) / beta``."""
    require("softplus", "x", x, kind="f")
    if beta == 1.0:
        return op("Softplus", x)
    inner = op("Softplus", op("Mul", x, constant_like(beta, x)))
    return op("Mul", inner, constant_like(1 / beta, x))


@function("x", "beta")
def swish(x: Any, beta: Any) -> Any:
    """Return ``x * sigmoid(beta * x)`` (Ramachandran et al. 2017).

    Args:
        x: An array of shape (batch, *sizes).
        beta: An array of the first sizes of a sample.
    """
    require("swish", "x", x, kind="f")
    require("swish", "beta", beta, dtype_as=("x", x))
    sizes, wanted = tuple(shape_of(beta)), tuple(shape_of(x))
    if len(wanted) < len(sizes) + 1 or sizes != wanted[1 : 1 + len(sizes)]:
        raise type_check.refuse(
            "swish", f"x.shape[1:{1 + len(sizes)}] == beta.shape", f"{wanted} and {sizes}"
        )
    beta = reshape(beta, (1, *sizes, *(1,) * (len(wanted) - 1 - len(sizes))))
    return op("Mul", x, op("Sigmoid", op("Mul", x, beta)))


@function("x")
def silu(x: Any) -> Any:
    """Return ``x * sigmoid(x)``."""
    require("silu", "x", x, kind="f")
    return op("Mul", x, op("Sigmoid", x))


@function("x")
def gelu(x: Any, approximate: str = "none") -> Any:
    """Return ``x * Phi(x)`` (Hendrycks and Gimpel 2016); ``approximate`` may be ``tanh``."""
    require("gelu", "x", x, kind="f")
    return op("Gelu", x, approximate=approximate)


@function("x")
def crelu(x: Any, axis: int = 1) -> Any:
    """Return the positive and the negative part, joined along an axis (Shang et al. 2016)."""
    if not isinstance(axis, int):
        raise TypeError("axis must be an integer value")
    require("crelu", "x", x, kind="f")
    rank = len(shape_of(x))
    if not -rank <= axis < rank:
        raise type_check.refuse("crelu", f"{-rank} <= axis < {rank}", f"axis == {axis}")
    return op("Relu", op("Concat", x, op("Neg", x), axis=axis % rank))


@function("x")
def softmax(x: Any, axis: int = 1) -> Any:
    """Return exponentials divided by their sum along an axis."""
    return op("Softmax", x, axis=_axis("softmax", x, axis))


@function("x")
def log_softmax(x: Any, axis: int = 1) -> Any:
    """Return the logarithm of the softmax along an axis."""
    return op("LogSoftmax", x, axis=_axis("log_softmax", x, axis))


def _axis(where: str, x: Any, axis: int) -> int:
    if not isinstance(axis, int):
        raise TypeError(f"{where}: expected axis to be an int, got {axis!r}")
    require(where, "x", x, kind="f")
    rank = len(shape_of(x))
    if not -rank <= axis < rank:
        raise type_check.refuse(where, f"{-rank} <= axis < {rank}", f"axis == {axis}")
    return axis


@function("x", composed=True)
def maxout(x: Any, pool_size: int, axis: int = 1) -> Any:
    """Return the largest of each ``pool_size`` elements along an axis (Goodfellow et al. 2013)."""
    if pool_size <= 0:
        raise ValueError(f"pool_size must be a positive integer, got {pool_size}")
    shape = list(shape_of(x))
    if not -len(shape) <= axis < len(shape):
        raise type_check.refuse("maxout", f"axis < {len(shape)}", f"axis == {axis}")
    if shape[axis] % pool_size:
        raise type_check.refuse(
            "maxout", f"x.shape[{axis}] % {pool_size} == 0", f"x.shape == {tuple(shape)}"
        )
    axis %= len(shape)
    shape[axis : axis + 1] = [shape[axis] // pool_size, pool_size]
    return _largest(reshape(x, tuple(shape)), axis + 1)


@function("x", name="max")
def _largest(x: Any, axis: int) -> Any:
    return extreme("ReduceMax", x, (axis,), False)


@function("log_pi", composed=True)
def gumbel_softmax(log_pi: Any, tau: float = 0.1, axis: int = 1) -> Any:
    """Return a relaxed sample of categories (Jang, Gu and Poole 2016); one for a number alone."""
    if not shape_of(log_pi):
        return op("Sub", constant_like(1, log_pi), op("Mul", log_pi, constant_like(0, log_pi)))
    from hagane.nn.autograd.configuration import get_dtype

    drawn = np.asarray(np.random.gumbel(size=tuple(shape_of(log_pi))), get_dtype(log_pi.dtype))
    return softmax(div(add(log_pi, drawn), tau), axis=axis)


@function("c_prev", "x")
def lstm(c_prev: Any, x: Any) -> Any:
    """Return the next cell and output of an LSTM (Zaremba, Sutskever and Vinyals 2014).

    Args:
        c_prev: The cells, (batch, units).
        x: Inputs and states after their linear layers, (at most batch, 4 units): cell input, input
            gate, forget gate and output gate, interleaved in this order.
    """
    first, rest = _recurrent("lstm", c_prev, x, 4)
    new, h = lstm_cell(first, x, _lstm)
    return (new if rest is None else op("Concat", new, rest, axis=0)), h


def _lstm(cell: Any, x: Any) -> tuple[Any, Any]:
    a, i, f, o = _gates(x, 4)
    new = op("Add", op("Mul", op("Tanh", a), op("Sigmoid", i)), op("Mul", op("Sigmoid", f), cell))
    return new, op("Mul", op("Sigmoid", o), op("Tanh", new))


def _recurrent(where: str, c: Any, x: Any, gates: int) -> tuple[Any, Any]:
    require(where, "c_prev", c, kind="f", at_least=2)
    require(where, "x", x, kind="f", at_least=2, dtype_as=("c_prev", c))
    c_shape, x_shape = tuple(shape_of(c)), tuple(shape_of(x))
    batch = x_shape[0]
    if (
        len(c_shape) != len(x_shape)
        or x_shape[1] != gates * c_shape[1]
        or c_shape[2:] != x_shape[2:]
        or batch > c_shape[0]
    ):
        raise type_check.refuse(
            where,
            f"x of shape (up to {c_shape[0]}, {gates * c_shape[1]}, …)",
            f"c_prev.shape == {c_shape}, x.shape == {x_shape}",
        )
    if batch == c_shape[0]:
        return c, None
    first, rest = split_axis(c, [batch], 0)
    return first, rest


def _gates(x: Any, count: int) -> Any:
    n, units, *more = shape_of(x)
    rows = reshape(x, (n, units // count, count, *more))
    found = op("Split", rows, axis=2, num_outputs=count, outputs=count)
    return [op("Squeeze", one, [2]) for one in found]


@function("c_prev1", "c_prev2", "x1", "x2")
def slstm(c_prev1: Any, c_prev2: Any, x1: Any, x2: Any) -> Any:
    """Return the next cell and output of an S-LSTM, which joins two (Zhu et al. 2015)."""
    for name, x in (("c_prev1", c_prev1), ("c_prev2", c_prev2), ("x1", x1), ("x2", x2)):
        require("slstm", name, x, kind="f", at_least=2, dtype_as=("c_prev1", c_prev1))
    require("slstm", "c_prev2", c_prev2, shape_as=("c_prev1", c_prev1))
    n, units, *more = shape_of(c_prev1)
    require("slstm", "x1", x1, shape=(n, 4 * units, *more))
    require("slstm", "x2", x2, shape_as=("x1", x1))
    a1, i1, f1, o1 = _gates(x1, 4)
    a2, i2, f2, o2 = _gates(x2, 4)
    c = op("Mul", op("Tanh", a1), op("Sigmoid", i1))
    c = op("Add", c, op("Mul", op("Tanh", a2), op("Sigmoid", i2)))
    c = op("Add", c, op("Mul", op("Sigmoid", f1), c_prev1))
    c = op("Add", c, op("Mul", op("Sigmoid", f2), c_prev2))
    return c, op("Mul", op("Sigmoid", op("Add", o1, o2)), op("Tanh", c))


@function("*inputs")
def tree_lstm(*inputs: Any) -> Any:
    """Return the cell and output of a tree LSTM (Tai et al. 2015).

    Args:
        inputs: The cells of the children, (batch, units) each, then their joined inputs, of
            (3 + children) times the units: cell input, input gate, output gate, forget gates.
    """
    *cells, x = inputs
    if not cells:
        raise type_check.refuse("tree_lstm", "cells and inputs", "one argument")
    n, units = shape_of(cells[0])
    for i, c in enumerate(cells):
        require("tree_lstm", f"c{i + 1}", c, kind="f", shape=(n, units), dtype_as=("x", x))
    require("tree_lstm", "x", x, kind="f", shape=(n, (3 + len(cells)) * units))
    a, i, o, *forgets = split_axis(x, 3 + len(cells), 1)
    c = op("Mul", op("Tanh", a), op("Sigmoid", i))
    for forget, cell in zip(forgets, cells, strict=True):
        c = op("Add", c, op("Mul", op("Sigmoid", forget), cell))
    return c, op("Mul", op("Sigmoid", o), op("Tanh", c))
