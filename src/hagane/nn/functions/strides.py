"""Views of the memory of an array, by strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.nn.autograd.function_node import FunctionNode


def _places(shape: Sequence[int], strides: Sequence[int], offset: int) -> Any:
    """Return the place in memory of each element, in elements."""
    found = np.full(tuple(shape), offset, np.int64)
    for axis, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        view = [1] * len(shape)
        view[axis] = -1
        found += np.arange(size).reshape(view) * stride
    return found


def memory_of(x: Any) -> tuple[Any, int]:
    """Return the memory that an array looks at, flat, and where in it the array begins."""
    base = x
    while isinstance(base.base, np.ndarray):
        base = base.base
    if base.dtype != x.dtype or not (base.flags.c_contiguous or base.flags.f_contiguous):
        base = x = np.ascontiguousarray(x)
    begin = x.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return base.ravel(order="K"), begin // x.itemsize


class AsStrided(FunctionNode):
    """Elements of the memory of an array, beyond the part that the array shows too."""

    def __init__(self, shape: Any, strides: Any, storage_offset: int | None = None):
        if len(shape) != len(strides):
            raise ValueError(f"expected as many strides as sizes, got {strides} for {shape}")
        self.shape, self.strides = tuple(shape), tuple(strides)
        self.storage_offset = storage_offset

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the elements.

        Raises:
            ValueError: Some lie outside of the memory.
        """
        (x,) = inputs
        memory, begin = memory_of(x)
        offset = begin if self.storage_offset is None else self.storage_offset
        places = _places(self.shape, self.strides, offset)
        if places.size and (places.min() < 0 or places.max() >= memory.size):
            raise ValueError(
                f"as_strided: expected places in a memory of {memory.size} elements, got "
                f"{places.min()} to {places.max()}"
            )
        steps = [stride // x.itemsize for stride in x.strides]
        self._own, self._taken = _places(x.shape, steps, begin), places
        self._size = memory.size
        return (memory[places],)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Sequence[Any]:
        """Return the sums of the gradients of each place; elements that share it share the sum."""
        return AsStridedGrad(self._own, self._taken, self._size).apply(grad_outputs)


class AsStridedGrad(FunctionNode):
    """The gradient of :class:`AsStrided`."""

    def __init__(self, own: Any, taken: Any, size: int):
        self._own, self._taken, self._size = own, taken, size

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the gradient of the array.

        Raises:
            TypeError: The gradient is not of floating-point numbers.
        """
        (gy,) = inputs
        if gy.dtype.kind != "f":
            raise TypeError(f"Only float is supported for back propagation, got {gy.dtype}")
        memory = np.zeros(self._size, gy.dtype)
        np.add.at(memory, self._taken.reshape(-1), gy.reshape(-1))
        counts = np.bincount(self._own.reshape(-1), minlength=self._size)
        return ((memory / np.maximum(counts, 1)).astype(gy.dtype)[self._own],)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Sequence[Any]:
        """Refuse.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError("as_strided: there is no second derivative")


def as_strided(x: Any, shape: Any, strides: Any, storage_offset: int | None = None) -> Any:
    """Return elements of the memory of an array, by strides.

    Args:
        x: An array; the visible part of its memory does not matter.
        shape: Sizes of the result.
        strides: Steps between neighbours of each axis, in elements.
        storage_offset: The place of the first element, by default that of ``x``.
    """
    return AsStrided(shape, strides, storage_offset).apply((x,))[0]
