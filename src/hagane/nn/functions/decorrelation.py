"""Decorrelated batch normalization (Huang et al. 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.nn.autograd import type_check
from hagane.nn.autograd.function_node import FunctionNode
from hagane.nn.functions.applying import as_dtype_of, function, pop_options, require, shape_of
from hagane.ops.builder import op
from hagane.ops.functions.numbers.elementary import swapped


class InverseRoot(FunctionNode):
    """The inverse square roots of symmetric positive definite matrices."""

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the inverse roots of (groups, size, size)."""
        (x,) = inputs
        wide = x.astype(np.float32) if x.dtype == np.float16 else x
        self._values, self._vectors = np.linalg.eigh(wide)
        found = (self._vectors * self._values[:, None, :] ** -0.5) @ swapped_array(self._vectors)
        return (found.astype(x.dtype),)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Sequence[Any]:
        """Return the gradient by the divided differences of ``x ** -0.5`` at the eigenvalues."""
        return InverseRootGrad(self._values, self._vectors).apply(grad_outputs)


class InverseRootGrad(FunctionNode):
    """The gradient of :class:`InverseRoot`."""

    def __init__(self, values: Any, vectors: Any):
        self._values, self._vectors = values, vectors

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the gradient of the matrices."""
        (g,) = inputs
        root, v = self._values**0.5, self._vectors
        product = root[:, :, None] * root[:, None, :]
        slopes = -1 / (product * (root[:, :, None] + root[:, None, :]))
        inner = slopes * (swapped_array(v) @ g @ v)
        return ((v @ inner @ swapped_array(v)).astype(g.dtype),)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Sequence[Any]:
        """Refuse.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(
            "Double backward is not implemented for decorrelated batch normalization."
        )


def swapped_array(x: Any) -> Any:
    """Return matrices transposed."""
    return x.swapaxes(-1, -2)


def _grouped(where: str, x: Any, groups: int) -> tuple[Any, list[int]]:
    """Return values as (groups, channels of a group, batch and places), and the order of axes."""
    require(where, "x", x, kind="f", at_least=2)
    channels = shape_of(x)[1]
    if channels % groups:
        raise type_check.refuse(where, f"x.shape[1] % {groups} == 0", f"x.shape == {shape_of(x)}")
    order = [1, 0, *range(2, len(shape_of(x)))]
    return op("Reshape", op("Transpose", x, perm=order), [groups, channels // groups, -1]), order


def _restored(y: Any, x: Any, order: list[int]) -> Any:
    sizes = shape_of(x)
    return op("Transpose", op("Reshape", y, [sizes[i] for i in order]), perm=order)


@function("x")
def decorrelated_batch_normalization(x: Any, **kwargs: Any) -> Any:
    """Return values whose channels, within groups, have no correlation and variance one.

    Args:
        x: (batch, channels, *places).
        kwargs: ``groups`` (16), ``eps`` (2e-5, added to variances), ``running_mean`` (groups,
            channels of a group) and ``running_projection`` (groups, channels, channels), which are
            changed in place, and their ``decay`` (0.9).
    """
    where = "decorrelated_batch_normalization"
    groups, eps, running_mean, running_projection, decay = pop_options(
        where, kwargs, groups=16, eps=2e-5, running_mean=None, running_projection=None, decay=0.9
    )
    rows, order = _grouped(where, x, groups)
    _groups, size, count = shape_of(rows)
    mean = op("ReduceMean", rows, [2], keepdims=1)
    centred = op("Sub", rows, mean)
    # The covariance of half precision is scaled before the sum, which would overflow.
    scaled = op("Mul", centred, np.array(1 / max(count, 1), x.dtype))
    covariance = op(
        "Add",
        op("MatMul", scaled, swapped(centred)),
        np.eye(size, dtype=x.dtype) * x.dtype.type(eps),
    )
    projection = InverseRoot().apply((covariance,))[0]
    if running_mean is not None:
        running_mean *= decay
        running_mean += (1 - decay) * mean.array[:, :, 0]
    if running_projection is not None:
        running_projection *= decay
        running_projection += (1 - decay) * (count / max(count - 1.0, 1.0)) * projection.array
    return _restored(op("MatMul", projection, centred), x, order)


@function("x", "mean", "projection")
def fixed_decorrelated_batch_normalization(
    x: Any, mean: Any, projection: Any, groups: int = 16
) -> Any:
    """Return values centred and projected by given statistics.

    Args:
        x: (batch, channels, *places).
        mean: (groups, channels of a group).
        projection: (groups, channels of a group, channels of a group).
        groups: Into how many the channels are split.
    """
    where = "fixed_decorrelated_batch_normalization"
    rows, order = _grouped(where, x, groups)
    size = shape_of(rows)[1]
    require(where, "mean", mean, kind="f", shape=(groups, size))
    require(where, "projection", projection, kind="f", shape=(groups, size, size))
    mean, projection = as_dtype_of(x, mean), as_dtype_of(x, projection)
    centred = op("Sub", rows, op("Unsqueeze", mean, [2]))
    return _restored(op("MatMul", projection, centred), x, order)
