"""Converters of samples to batches."""

from hagane.nn.conversion import (
    ConcatWithAsyncTransfer,
    Converter,
    concat_examples,
    converter,
    to_device,
)

__all__ = [
    "ConcatWithAsyncTransfer",
    "Converter",
    "concat_examples",
    "converter",
    "to_device",
]
