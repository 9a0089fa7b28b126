"""Lists of samples as batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hagane.nn.autograd.devices import CpuDevice, get_device


class Converter:
    """Base of converters: from a list of samples and a device to a batch."""

    def __call__(self, batch: Sequence[Any], device: Any = None) -> Any:
        """Return the batch."""
        raise NotImplementedError(f"{type(self).__name__} defines no conversion")


class _Called(Converter):
    def __init__(self, function: Callable[..., Any]):
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)


def converter() -> Callable[[Callable[..., Any]], Converter]:
    """Return a decorator that makes a function of batch and device a converter."""
    return _Called


def call_converter(function: Callable[..., Any], batch: Sequence[Any], device: Any) -> Any:
    """Return a batch as a function or a converter makes it.

    A plain function gets the number of the device, which is -1 for the CPU, as programs written
    before there were classes of devices expect.

    Args:
        function: Called with batch and device.
        batch: A list of samples.
        device: A device, or None.
    """
    old = not isinstance(function, Converter) and isinstance(device, CpuDevice)
    return function(batch, -1 if old else device)


def to_device(device: Any, x: Any) -> Any:
    """Return an array after a check that the device, if one is given, is the CPU."""
    if device is not None:
        get_device(device)
    return x


def concat_examples(batch: Sequence[Any], device: Any = None, padding: Any = None) -> Any:
    """Return samples stacked to arrays.

    Args:
        batch: Arrays, numbers, tuples or dicts of these; or arrays of a whole batch in a tuple or
            dict.
        device: The CPU.
        padding: The padding of arrays of different sizes; None where all have one. A tuple or dict
            for samples that are such.

    Returns:
        An array; a tuple or dict of arrays where samples are such.

    Raises:
        ValueError: The batch is empty, or its arrays differ in shape and there is no padding.
    """
    if device is not None:
        get_device(device)
    if len(batch) == 0:
        raise ValueError("batch is empty")
    first = batch[0]
    if isinstance(first, tuple):
        for i, sample in enumerate(batch):
            if len(sample) < len(first):
                raise IndexError(
                    f"concat_examples: expected {len(first)} elements in each sample, as in the "
                    f"first, got {len(sample)} in sample {i}"
                )
        row = padding if isinstance(padding, tuple) else (padding,) * len(first)
        return tuple(_stacked([sample[i] for sample in batch], row[i]) for i in range(len(first)))
    if isinstance(first, dict):
        named = padding if isinstance(padding, dict) else dict.fromkeys(first, padding)
        return {key: _stacked([sample[key] for sample in batch], named[key]) for key in first}
    return _stacked(batch, padding)


def _stacked(values: Sequence[Any], padding: Any) -> Any:
    if not isinstance(values[0], np.ndarray):
        return np.array(values)
    if padding is None:
        try:
            return np.concatenate([array[None] for array in values])
        except ValueError:
            shapes = list(dict.fromkeys(array.shape for array in values))
            if len(shapes) < 2:
                raise
            raise ValueError(
                f"concat_examples: expected arrays of one shape, got {shapes[0]} and {shapes[1]}; "
                "padding=0 fills the shorter ones up"
            ) from None
    shape = np.max([array.shape for array in values], axis=0).astype(int)
    made: Any = np.full((len(values), *shape), padding, dtype=values[0].dtype)
    for i, array in enumerate(values):
        made[(i, *(slice(n) for n in array.shape))] = array
    return made


class ConcatWithAsyncTransfer(Converter):
    """``concat_examples``; on the CPU there is nothing to transfer."""

    def __init__(self, stream: Any = None, compute_stream: Any = None):
        """Ignore the streams."""

    def __call__(self, batch: Sequence[Any], device: Any = None, padding: Any = None) -> Any:
        """Return the batch."""
        return concat_examples(batch, device, padding)
