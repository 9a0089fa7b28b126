"""PyTorch's tensors on their way through shared memory; nothing here imports PyTorch itself."""

from __future__ import annotations

import copyreg
import importlib
import io
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

# Element types that both have; others travel as bytes.
_SHARED = {"bool", "float16", "float32", "float64", "complex64", "complex128"}
_SHARED |= {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}


def loaded() -> Any:
    """Return PyTorch if the program has imported it, else None."""
    return sys.modules.get("torch")


def is_tensor(value: Any) -> bool:
    """Say whether a value is a tensor whose elements an array can show without copying."""
    kind = type(value)
    if kind.__name__ != "Tensor" or not kind.__module__.startswith("torch"):
        return False
    return _plain(value) and _element(value) in _SHARED


def as_tensor(array: npt.NDArray[Any]) -> Any:
    """Return a tensor over the memory of an array."""
    return importlib.import_module("torch").from_numpy(array)


def _plain(tensor: Any) -> bool:
    if str(tensor.layout) != "torch.strided" or tensor.device.type != "cpu":
        return False
    return not (tensor.is_quantized or tensor.is_nested or tensor.is_conj() or tensor.is_neg())


def _element(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def dumps(value: Any, beside: Callable[[pickle.PickleBuffer], bool]) -> bytes:
    """Return a pickle of protocol 5 whose arrays, and tensors, go where ``beside`` puts them.

    PyTorch's own way of pickling a tensor copies it into the stream.
    """
    torch = loaded()
    if torch is None:
        return pickle.dumps(value, protocol=5, buffer_callback=beside)
    stream = io.BytesIO()
    pickler = pickle.Pickler(stream, protocol=5, buffer_callback=beside)
    pickler.dispatch_table = {**copyreg.dispatch_table, torch.Tensor: _reduce}
    pickler.dump(value)
    return stream.getvalue()


def _reduce(tensor: Any) -> Any:
    if not _plain(tensor) or tensor.requires_grad:
        return tensor.__reduce_ex__(5)
    element = _element(tensor)
    if element in _SHARED:
        return as_tensor, (np.ascontiguousarray(tensor.numpy()).reshape(tensor.shape),)
    torch = sys.modules["torch"]
    data = tensor.contiguous().reshape(-1).view(torch.uint8).numpy()
    return _of_bytes, (data, element, tuple(tensor.shape))


def _of_bytes(data: npt.NDArray[np.uint8], element: str, shape: tuple[int, ...]) -> Any:
    torch = importlib.import_module("torch")
    return torch.from_numpy(data).view(getattr(torch, element)).reshape(shape)
