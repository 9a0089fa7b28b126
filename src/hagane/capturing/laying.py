"""Results that lie in the memory of arguments, of tensors of the program, or of each other."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np

from hagane.capturing.tensors import array_of, is_tensor, returned
from hagane.capturing.variables import is_variable
from hagane.frontends.capture.interface.views import View


def lay_views(
    views: Mapping[str, View],
    feeds: Mapping[str, Any],
    made: dict[str, Any],
    given: Mapping[str, Any],
) -> None:
    """Put outputs into the memory of the arguments, tensors and other outputs that they view.

    Views of tensors of PyTorch are such ones, through which gradients go.

    Args:
        views: How they lie, by the names of the outputs.
        feeds: The inputs of the graph by name, as arrays.
        made: The outputs by name, as arrays or tensors; those that are views change.
        given: The tensors of the caller by path.
    """
    for name, view in views.items():
        if view.output and view.kind == _TENSOR and view.base_kind.endswith(_TENSOR):
            made[view.output] = returned(made[view.output], view.base_kind)
        whole: Any = given.get(view.path) if view.path else made.get(view.output, view.held)
        base = _base(view, feeds, made)
        found = view.of(base, made[name], made)
        if found is made[name]:
            continue
        is_plain = view.kind == _TENSOR and is_tensor(whole) and not whole.is_neg()
        made[name] = _seen(whole, base, found, view) if is_plain else found


def turn_axes(views: Mapping[str, View], made: dict[str, Any]) -> None:
    """Turn outputs whose axes the graph gives as they lie in memory; the others stay apart."""
    for name, view in views.items():
        if view.axes:
            made[name] = made[name].transpose(view.axes)


_TENSOR = "torch.Tensor"


def is_laid(view: View, feeds: Mapping[str, Any], made: Mapping[str, Any], name: str) -> bool:
    """Whether an output of a call is a view, and no copy; see :func:`lay_views`."""
    return view.of(_base(view, feeds, made), made[name], made) is not made[name]


def _base(view: View, feeds: Mapping[str, Any], made: Mapping[str, Any]) -> Any:
    """Return the array in which a view lies."""
    if view.path:
        return feeds[view.path]
    if not view.output:
        return state_array(view.held)
    whole = made[view.output]
    return array_of(whole) if is_tensor(whole) else whole


def _seen(whole: Any, base: Any, found: Any, view: View) -> Any:
    """Return the view of a tensor that a view of its array is."""
    torch = sys.modules["torch"]
    with torch.no_grad() if view.still else nullcontext():
        if view.detached or view.by_function:
            whole = whole.detach()
        sizes, strides = found.shape, found.strides
        joined = view.is_complex and not whole.is_complex()
        if view.is_complex and not joined:
            sizes, strides = sizes[:-1], strides[:-1]
        elif whole.is_complex():
            whole = torch.view_as_real(whole)
        size = whole.element_size()
        at = (_address(found) - _address(base)) // size + whole.storage_offset()
        made = whole.as_strided(sizes, [step // size for step in strides], at)
        return torch.view_as_complex(made) if joined else made


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def state_array(value: Any) -> Any:
    """Return the content of a tensor, variable, array or number as an array, without a copy."""
    if is_variable(value):
        return value.array
    return array_of(value) if is_tensor(value) else np.asarray(value)


__all__ = ["is_laid", "lay_views", "state_array", "turn_axes"]
