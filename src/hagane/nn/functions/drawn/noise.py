"""Functions that draw random numbers, from NumPy's global generator."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.nn.autograd import type_check
from hagane.nn.autograd.configuration import config
from hagane.nn.functions.activation import gumbel_softmax, rrelu
from hagane.nn.functions.applying import (
    array_of,
    as_dtype_of,
    constant_like,
    function,
    noted,
    pop_options,
    require,
    shape_of,
)
from hagane.nn.functions.products import linear
from hagane.ops.builder import op

__all__ = ["gumbel_softmax", "rrelu"]


@function("x")
def dropout(x: Any, ratio: float = 0.5, **kwargs: Any) -> Any:
    """Return an array with elements dropped at random in training, the others scaled up.

    Args:
        x: An array.
        ratio: The share that is dropped, less than one.
        kwargs: ``mask`` gives the factors of elements; with ``return_mask`` it is returned
            too.
    """
    mask, return_mask = pop_options("dropout", kwargs, mask=None, return_mask=False)
    require("dropout", "x", x, kind="f")
    if not 0.0 <= ratio < 1.0:
        raise ValueError(f"dropout: expected ratio in [0, 1), got {ratio}")
    if not config.train:
        return (x, None) if return_mask else x
    if mask is None:
        flag = np.random.rand(*shape_of(x)) >= ratio
        mask = flag * constant_like(1 / (1 - ratio), x)
        mask = np.asarray(mask, dtype=x.dtype)
    elif mask.shape != tuple(shape_of(x)) or mask.dtype.kind != "f":
        raise type_check.refuse(
            "dropout", f"mask: {x.dtype} {x.shape}", f"{mask.dtype} {mask.shape}"
        )
    else:
        mask = mask.astype(x.dtype, copy=False)
    y = noted(op("Mul", x, mask), mask=lambda: mask)
    return (y, mask) if return_mask else y


@function("mean", "ln_var")
def gaussian(mean: Any, ln_var: Any, **kwargs: Any) -> Any:
    """Return a sample of a normal distribution, differentiable by its moments.

    Args:
        mean: The means.
        ln_var: Logarithms of the variances.
        kwargs: ``eps`` gives the standard normal sample; with ``return_eps`` it is returned too.
    """
    eps, return_eps = pop_options("gaussian", kwargs, (), eps=None, return_eps=False)
    require("gaussian", "mean", mean, kind="f")
    require("gaussian", "ln_var", ln_var, dtype_as=("mean", mean), shape_as=("mean", mean))
    if eps is None:
        eps = np.random.standard_normal(shape_of(mean)).astype(mean.dtype)
    elif eps.shape != tuple(shape_of(mean)) or eps.dtype != mean.dtype:
        raise type_check.refuse(
            "gaussian", f"eps: {mean.dtype} {mean.shape}", f"{eps.dtype} {eps.shape}"
        )
    deviation = op("Exp", op("Mul", ln_var, constant_like(0.5, mean)))
    y = op("Add", mean, op("Mul", deviation, eps))
    return (y, eps) if return_eps else y


@function("h", "x")
def zoneout(h: Any, x: Any, ratio: float = 0.5, **kwargs: Any) -> Any:
    """Return elements of ``h`` at random places, else of ``x`` (Krueger et al. 2016).

    Not in training it is ``x``.
    """
    pop_options("zoneout", kwargs)
    require("zoneout", "h", h, kind="f")
    require("zoneout", "x", x, dtype_as=("h", h), shape_as=("h", h))
    if config.train:
        kept = (np.random.rand(*shape_of(x)) >= ratio).astype(x.dtype)
        y = op("Add", op("Mul", h, 1 - kept), op("Mul", x, kept))
        return noted(y, flag_h=lambda: 1 - kept, flag_x=lambda: kept)
    return op("Identity", x)


@function("x", "W", "b")
def simplified_dropconnect(
    x: Any,
    W: Any,
    b: Any = None,
    ratio: float = 0.5,
    train: bool = True,
    mask: Any = None,
    use_batchwise_mask: bool = True,
) -> Any:
    """Return a linear layer whose weights are dropped at random (Wan et al. 2013).

    Args:
        x: (batch, *features).
        W: (outputs, features).
        b: (outputs,).
        ratio: The share that is dropped.
        train: Whether they are dropped at all.
        mask: Which are kept, of the sizes of ``W``, or a first axis more; drawn by default. The
            function that made the result tells it, as ``mask``.
        use_batchwise_mask: Whether each sample has a mask of its own.
    """
    from hagane.nn.functions.array import reshape

    if not 0.0 <= ratio < 1.0:
        raise ValueError("ratio must be in the range [0, 1)")
    if not train:
        ratio = 0.0
        if mask is None:
            kept_all = lambda: np.ones(_mask_shape(x, W, use_batchwise_mask), bool)  # noqa: E731
            return noted(linear(x, W, b), mask=kept_all)
    require("simplified_dropconnect", "x", x, kind="f", at_least=2)
    require("simplified_dropconnect", "W", W, kind="f", ndim=2)
    n = shape_of(x)[0]
    features = int(np.prod(shape_of(x)[1:]))
    if features != shape_of(W)[1]:
        raise type_check.refuse(
            "simplified_dropconnect", f"{shape_of(W)[1]} features", f"x.shape == {shape_of(x)}"
        )
    W, b = as_dtype_of(x, W), as_dtype_of(x, b)
    rows = reshape(x, (n, features))
    shape = _mask_shape(x, W, use_batchwise_mask)
    if mask is None:
        mask = np.random.rand(*shape) >= ratio
    mask = array_of(mask)
    if mask.shape != shape:
        raise type_check.refuse("simplified_dropconnect", f"mask.shape == {shape}", f"{mask.shape}")
    kept = op("Mul", W, mask.astype(W.dtype) * constant_like(1 / (1 - ratio), x))
    if mask.ndim == 3:
        y = op(
            "Squeeze",
            op("MatMul", op("Unsqueeze", rows, [1]), op("Transpose", kept, perm=(0, 2, 1))),
            [1],
        )
    else:
        y = op("MatMul", rows, op("Transpose", kept, perm=(1, 0)))
    return noted(y if b is None else op("Add", y, b), mask=lambda: mask)


def _mask_shape(x: Any, W: Any, batchwise: bool) -> tuple[Any, ...]:
    return (shape_of(x)[0], *shape_of(W)) if batchwise else tuple(shape_of(W))
