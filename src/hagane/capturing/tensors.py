"""Tensors of PyTorch as arrays and back, without copies; gradients through a compiled call."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.capturing.leaves import TensorLeaf
from hagane.capturing.variables import KIND, variable_of
from hagane.frontends.capture.emitting.scoped import pairs_of

_BFLOAT16 = ir.DataType.BFLOAT16.numpy()


def as_array(leaf: TensorLeaf) -> Any:
    """Return the array of a leaf; it shares the tensor's memory."""
    if leaf.kind == "numpy.ndarray":
        return in_parts(leaf.value)
    if leaf.kind == KIND:
        return leaf.value.array
    return array_of(leaf.value)


def in_parts(array: Any) -> Any:
    """Return an array of NumPy as graphs take it: complex numbers as pairs."""
    return pairs_of(array) if array.dtype.kind == "c" else array


def array_of(tensor: Any) -> Any:
    """Return a tensor of PyTorch as an array that shares its memory."""
    plain = tensor.detach()
    if plain.is_neg():
        plain = plain.resolve_neg()
    if str(plain.dtype) == "torch.bfloat16":
        torch = sys.modules["torch"]
        return plain.view(torch.int16).numpy().view(_BFLOAT16)
    if plain.is_complex():
        plain = pairs_of(plain)
    return plain.numpy()


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of PyTorch."""
    return hasattr(value, "_version")


def returned(value: Any, kind: str) -> Any:
    """Return an output as the program has it: a tensor, an array, numbers."""
    if is_tensor(value):  # a view
        return value
    if kind.startswith("complex "):
        parts = np.ascontiguousarray(value)
        whole = parts.view(np.result_type(parts, np.complex64)).reshape(parts.shape[:-1])
        kind = kind.removeprefix("complex ")
        return complex(whole) if kind == "number" else returned(whole, kind)
    if kind == "torch.Tensor":
        torch = sys.modules["torch"]
        if value.dtype == _BFLOAT16:
            return torch.from_numpy(np.asarray(value).view(np.int16)).view(torch.bfloat16)
        return torch.from_numpy(np.asarray(value))
    if kind == KIND:
        return variable_of(np.asarray(value))
    if kind in ("int", "float", "bool"):
        return np.asarray(value).item()
    if kind == "numbers":
        return value.tolist()
    if kind == "range":
        return _range_of(value.tolist())
    return value[()] if kind == "numpy.generic" else np.asarray(value)


def _range_of(numbers: list[int]) -> range:
    """Return a range of some numbers, which is equal to any other one of them."""
    step = numbers[1] - numbers[0] if len(numbers) > 1 else 1
    return range(numbers[0], numbers[-1] + step, step) if numbers else range(0)


def wants_gradients(tensors: Sequence[Any]) -> bool:
    """Whether PyTorch would record a call with these tensors, to go back through it."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.is_grad_enabled() and any(t.requires_grad for t in tensors)


def is_casting() -> bool:
    """Whether ``torch.autocast`` is on: it changes element types that the source does not show."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.is_autocast_enabled("cpu")


@cache
def _recomputed() -> Any:
    """Return the function that PyTorch sees for a compiled call."""
    import torch

    class Recomputed(torch.autograd.Function):  # type: ignore[misc]
        """Runs the graph; gradients come from the original, run again when they are wanted."""

        @staticmethod
        def forward(ctx: Any, run: Any, again: Any, instead: Any, apart: Any, *tensors: Any) -> Any:
            ctx.again, ctx.instead = again, instead
            ctx.save_for_backward(*tensors)
            outputs = tuple(run())
            fixed = (
                output
                for output, is_apart in zip(outputs, apart, strict=True)
                if is_apart or not (output.is_floating_point() or output.is_complex())
            )
            ctx.mark_non_differentiable(*fixed)
            ctx.set_materialize_grads(False)
            return outputs

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            tensors = ctx.saved_tensors  # refuses tensors changed since
            is_recorded = torch.is_grad_enabled()  # as with create_graph=True
            known = ctx.instead(tensors, gradients, is_recorded)
            if known is not None:
                return (None, None, None, None, *known)
            with torch.enable_grad(), torch.autocast("cpu", enabled=False):  # as in the call
                outputs, given = ctx.again(tensors, is_recorded)
            wanted = [
                (output, gradient)
                for output, gradient in zip(outputs, gradients, strict=True)
                if gradient is not None and output.requires_grad
            ]
            places = [i for i, tensor in enumerate(given) if tensor.requires_grad]
            found = torch.autograd.grad(
                [output for output, _ in wanted],
                [given[i] for i in places],
                [gradient for _, gradient in wanted],
                create_graph=is_recorded,
                allow_unused=True,
            )
            made: list[Any] = [None] * len(given)
            for place, gradient in zip(places, found, strict=True):
                made[place] = gradient
            return (None, None, None, None, *made)

    return Recomputed


def with_gradients(
    run: Callable[[], Sequence[Any]],
    again: Callable[[Sequence[Any], bool], tuple[Sequence[Any], Sequence[Any]]],
    instead: Callable[[Sequence[Any], Sequence[Any], bool], Sequence[Any] | None],
    apart: Sequence[bool],
    tensors: Sequence[Any],
) -> Sequence[Any]:
    """Return the tensors of a compiled call such that gradients can be had.

    Args:
        run: Returns the outputs of the graph.
        again: Runs the original with the tensors as they were; returns its outputs and the tensors
            to which gradients go. It is told whether gradients of gradients are wanted.
        instead: Returns the gradients of the tensors for those of the outputs, where the original
            would compute something else by now, else None. It is told the same.
        apart: Whether each output has no gradient.
        tensors: Where gradients may go.
    """
    found: Sequence[Any] = _recomputed().apply(run, again, instead, apart, *tensors)
    return found
