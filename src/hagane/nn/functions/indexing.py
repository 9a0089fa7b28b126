"""Elements by NumPy's indices, with their gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.nn.autograd import type_check
from hagane.nn.autograd.function_node import FunctionNode
from hagane.nn.autograd.variable import Variable, as_array
from hagane.nn.autograd.way_back import DESCRIBED
from hagane.ops.builder import op
from hagane.ops.functions.chainer.arrays import scatter_add as scattered


def _key(where: str, slices: Any) -> tuple[Any, ...]:
    if isinstance(slices, list):
        slices = (slices,) if all(isinstance(one, int) for one in slices) else tuple(slices)
    elif not isinstance(slices, tuple):
        slices = (slices,)
    found = tuple(as_array(one) for one in slices)
    if sum(one is Ellipsis for one in found if not isinstance(one, np.ndarray)) > 1:
        raise ValueError(f"{where}: only one Ellipsis is allowed")
    return found


def _axes_of(one: Any) -> int:
    """Return how many axes an index takes: truth values as many as they have."""
    if one is None or one is Ellipsis:
        return 0
    return one.ndim if isinstance(one, np.ndarray) and one.dtype == np.bool_ else 1


def _check_key(key: tuple[Any, ...], shape: tuple[int, ...]) -> None:
    """Check indices as far as NumPy's error would not say which function was meant."""
    used = sum(map(_axes_of, key))
    if used > len(shape):
        type_check.expect(type_check.make_variable(len(shape), "in_types[0].ndim") >= used)


class GetItem(FunctionNode):
    """``x[key]``."""

    def __init__(self, slices: Any):
        self.key = _key("get_item", slices)

    def check_type_forward(self, in_types: Any) -> None:
        """Check the number of indices and the fixed ones."""
        type_check.expect(in_types.size() == 1)
        (x,) = in_types
        type_check.expect(x.ndim >= sum(map(_axes_of, self.key)))
        axis = 0
        for place, one in enumerate(self.key):
            if one is None:
                continue
            if one is Ellipsis:
                left = sum(map(_axes_of, self.key[place + 1 :]))
                axis = -left if left else axis
                continue
            if isinstance(one, int | np.integer) and not isinstance(one, bool):
                type_check.expect(x.shape[axis] > one if one >= 0 else x.shape[axis] >= -one)
            axis += _axes_of(one)

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the elements."""
        (x,) = inputs
        return (np.asarray(x[self.key]),)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Sequence[Any]:
        """Return zeros with the gradient added at the indices."""
        x = self.inputs[0]
        return GetItemGrad(self.key, x.shape, x.dtype).apply(grad_outputs)

    def operators(self, *inputs: Any) -> Sequence[Any]:
        """Return the elements, written in operators."""
        (x,) = inputs
        if _plain_key(self.key) is not None:
            ranges, sizes = _ranges(self.key, self.inputs[0].shape)
            return [sliced(x, ranges=ranges, sizes=sizes)]
        return [op("Gather", op("Reshape", x, [-1]), _places(self.key, self.inputs[0].shape))]


class GetItemGrad(FunctionNode):
    """Zeros with elements added at indices."""

    def __init__(self, key: Any, shape: Any, dtype: Any):
        self.key, self.shape, self.dtype = key, shape, dtype

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the sum."""
        made = np.zeros(self.shape, self.dtype)
        _add_at(made, self.key, inputs[0])
        return (made,)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Sequence[Any]:
        """Return the elements of the gradient."""
        return GetItem(self.key).apply(grad_outputs)


class ScatterAdd(FunctionNode):
    """``a`` with ``b`` added at indices."""

    def __init__(self, slices: Any):
        self.key = _key("scatter_add", slices)

    def check_type_forward(self, in_types: Any) -> None:
        """Check that both have one element type, and the number of indices."""
        type_check.expect(in_types.size() == 2, in_types[0].dtype == in_types[1].dtype)
        valid = [one for one in self.key if one is not None and one is not Ellipsis]
        type_check.expect(in_types[0].ndim >= len(valid))

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the sum."""
        a, b = inputs
        made = a.copy()
        _add_at(made, self.key, b)
        return (made,)

    def operators(self, *inputs: Any) -> Sequence[Any]:
        """Return the sum, written in operators."""
        a, b = inputs
        return [scattered(a, _places(self.key, self.inputs[0].shape), b)]

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Sequence[Any]:
        """Return the gradient, and its elements."""
        (g,) = grad_outputs
        found = []
        if 0 in target_input_indexes:
            found.append(g)
        if 1 in target_input_indexes:
            from hagane.nn.functions.math import sum_to

            found.append(sum_to(get_item(g, self.key), self.inputs[1].shape))
        return found


def sliced(x: Any, *, ranges: tuple[tuple[int, ...], ...], sizes: tuple[int, ...]) -> Any:
    """Return ``x[key]`` of a key of numbers and slices.

    Args:
        x: An array.
        ranges: Axis, start, end and step of each axis that is not taken whole.
        sizes: Of the result.
    """
    if ranges:
        axes, starts, ends, steps = zip(*ranges, strict=True)
        x = op("Slice", x, list(starts), list(ends), list(axes), list(steps))
    return op("Reshape", x, np.array(sizes, np.int64))


def _plain_key(key: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return a key of numbers and slices as something to be compared; None of any other."""
    found: list[Any] = []
    for one in key:
        if type(one) is slice:
            found.append((one.start, one.stop, one.step))
        elif one is None or one is Ellipsis or type(one) is int:
            found.append(one)
        else:
            return None
    return tuple(found)


def _sign(function: GetItem) -> object:
    key, x = _plain_key(function.key), function.inputs[0]
    return None if key is None else ("item", key, x.dtype, x.shape)


def _ranges(
    whole: tuple[Any, ...], shape: tuple[int, ...]
) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """Return the ranges of a key of numbers and slices, and the sizes of the result."""
    key = [one for one in whole if one is not None]
    if Ellipsis in key:
        at = key.index(Ellipsis)
        key[at : at + 1] = [slice(None)] * (len(shape) - len(key) + 1)
    ranges = []
    for axis, one in enumerate(key):
        size = shape[axis]
        start, end, step = (
            one.indices(size) if isinstance(one, slice) else (one % size, one % size + 1, 1)
        )
        if (start, end, step) != (0, size, 1):
            ranges.append((axis, start, end if end >= 0 else -size - 1, step))
    return tuple(ranges), np.broadcast_to(np.zeros(()), shape)[whole].shape


def _places(key: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    """Return the number of each chosen element among all."""
    return np.arange(np.prod(shape, dtype=np.int64)).reshape(shape)[key]


def _described(function: GetItem) -> tuple[Any, ...]:
    ranges, sizes = _ranges(function.key, function.inputs[0].shape)
    attributes = ("ranges", ranges), ("sizes", sizes)
    return __name__, "sliced", "function", attributes, [0], None


DESCRIBED[GetItem] = _sign, _described


def _add_at(target: Any, key: tuple[Any, ...], values: Any) -> None:
    if any(isinstance(one, np.ndarray | list) for one in key):
        np.add.at(target, key, values)
    else:
        target[key] += values


def get_item(x: Any, slices: Any) -> Variable:
    """Return ``x[slices]``, by NumPy's rules of indexing.

    Args:
        x: An array.
        slices: A number, slice, ``...``, None, array of integers or bools, or a tuple of these.

    Raises:
        InvalidType: There are more indices than axes, or one lies outside.
    """
    return GetItem(slices).apply((x,))[0]


def scatter_add(a: Any, slices: Any, b: Any) -> Variable:
    """Return ``a`` with ``b`` added at ``slices``; repeated places are added to repeatedly."""
    return ScatterAdd(slices).apply((a, b))[0]
