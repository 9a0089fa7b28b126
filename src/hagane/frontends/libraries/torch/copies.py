"""Functions of PyTorch that take a view and copy it, and those that split without a check.

Their copies lie without gaps (``torch/_refs`` and ``aten/src/ATen/native/native_functions.yaml`` of
PyTorch's sources, ``view_copy`` tags).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def apart(view: Any) -> Any:
    """Return a copy without gaps; of several views one each."""
    import torch

    if isinstance(view, (tuple, list)):
        return tuple(one.clone(memory_format=torch.contiguous_format) for one in view)
    return view.clone(memory_format=torch.contiguous_format)


def alias_copy(input: Any) -> Any:
    """Return a copy."""
    return apart(input)


def detach_copy(input: Any) -> Any:
    """Return a copy apart from gradients."""
    return apart(input.detach())


def as_strided_copy(input: Any, size: Any, stride: Any, storage_offset: Any = None) -> Any:
    """Return a copy of the memory in any sizes and strides."""
    return apart(input.as_strided(size, stride, storage_offset))


def diagonal_copy(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Return a copy of diagonals."""
    return apart(input.diagonal(offset, dim1, dim2))


def expand_copy(input: Any, size: Any, *, implicit: bool = False) -> Any:
    """Return a copy with axes of size 1 repeated."""
    return apart(input.expand(size))


def narrow_copy(input: Any, dim: int, start: Any, length: Any) -> Any:
    """Return a copy of a range of an axis."""
    return apart(input.narrow(dim, start, length))


def permute_copy(input: Any, dims: Any) -> Any:
    """Return a copy with its axes in another order."""
    return apart(input.permute(dims))


def select_copy(input: Any, dim: int, index: Any) -> Any:
    """Return a copy of one item of an axis."""
    return apart(input.select(dim, index))


def slice_copy(input: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    """Return a copy of a slice of an axis."""
    place = dim + input.dim() if dim < 0 else dim
    return apart(input[(slice(None),) * place + (slice(start, end, step),)])


def split_copy(input: Any, split_size: Any, dim: int = 0) -> Any:
    """Return copies of parts of one size."""
    return apart(input.split(split_size, dim))


def split_with_sizes_copy(input: Any, split_sizes: Any, dim: int = 0) -> Any:
    """Return copies of parts of given sizes."""
    return apart(input.split(list(split_sizes), dim))


def squeeze_copy(input: Any, dim: Any = None) -> Any:
    """Return a copy without axes of size 1."""
    return apart(input.squeeze() if dim is None else input.squeeze(dim))


def t_copy(input: Any) -> Any:
    """Return a copy of a matrix transposed."""
    return apart(input.t())


def transpose_copy(input: Any, dim0: int, dim1: int) -> Any:
    """Return a copy with two axes swapped."""
    return apart(input.transpose(dim0, dim1))


def unbind_copy(input: Any, dim: int = 0) -> Any:
    """Return copies of the items of an axis."""
    return apart(input.unbind(dim))


def unfold_copy(input: Any, dimension: int, size: int, step: int) -> Any:
    """Return a copy of windows of an axis."""
    return apart(input.unfold(dimension, size, step))


def unsqueeze_copy(input: Any, dim: int) -> Any:
    """Return a copy with a new axis of size 1."""
    return apart(input.unsqueeze(dim))


def view_copy(input: Any, size: Any) -> Any:
    """Return a copy in another shape, or of the same bytes as another type."""
    return apart(input.view(size))


def view_as_real_copy(input: Any) -> Any:
    """Return the parts of complex numbers as a last axis, copied."""
    import torch

    return apart(torch.view_as_real(input))


def view_as_complex_copy(input: Any) -> Any:
    """Return pairs of the last axis as complex numbers, copied."""
    import torch

    return apart(torch.view_as_complex(input))


def unsafe_split(input: Any, split_size: Any, dim: int = 0) -> Any:
    """Return parts of one size."""
    return tuple(input.split(split_size, dim))


def unsafe_split_with_sizes(input: Any, split_sizes: Any, dim: int = 0) -> Any:
    """Return parts of given sizes."""
    return tuple(input.split(list(split_sizes), dim))


_FUNCTIONS = (
    alias_copy, detach_copy, as_strided_copy, diagonal_copy, expand_copy, narrow_copy,
    permute_copy, select_copy, slice_copy, split_copy, split_with_sizes_copy, squeeze_copy, t_copy,
    transpose_copy, unbind_copy, unfold_copy, unsqueeze_copy, view_copy, view_as_real_copy,
    view_as_complex_copy, unsafe_split, unsafe_split_with_sizes,
)  # fmt: skip
PROGRAMS: dict[str, Callable[..., Any]] = {program.__name__: program for program in _FUNCTIONS}
METHODS = ("narrow_copy", "unsafe_split", "unsafe_split_with_sizes")
