"""Answers to programs that ask for a GPU: there is none."""

from __future__ import annotations

from typing import Any

from hagane.nn.autograd.devices import GpuDevice, get_array_module

__all__ = [
    "GpuDevice",
    "available",
    "check_cuda_available",
    "cudnn_enabled",
    "cupy",
    "get_array_module",
    "get_device_from_id",
    "ndarray",
    "should_use_cudnn",
    "should_use_cudnn_tensor_core",
    "to_cpu",
    "to_gpu",
]

available = False
cudnn_enabled = False
cupy = None


class ndarray:  # noqa: N801
    """The class of arrays on a GPU, of which there are none."""


def check_cuda_available() -> None:
    """Refuse.

    Raises:
        RuntimeError: Always.
    """
    raise RuntimeError("CUDA is not available: hagane computes on the CPU; use device '@numpy'")


def to_cpu(array: Any, stream: Any = None) -> Any:
    """Return an array as it is."""
    return array


def to_gpu(array: Any, device: Any = None, stream: Any = None) -> Any:
    """Refuse: there is no GPU."""
    check_cuda_available()


def get_device_from_id(device_id: Any) -> Any:
    """Refuse a GPU; -1 and None name none."""
    if device_id is not None and device_id >= 0:
        check_cuda_available()


def should_use_cudnn(level: Any, lowest_version: int = 0) -> bool:
    """Return False."""
    if level not in (">=auto", "==always"):
        raise ValueError(f"invalid cuDNN use level: {level!r} (must be '>=auto' or '==always')")
    return False


def should_use_cudnn_tensor_core(dtype: Any) -> bool:
    """Return False."""
    return False
