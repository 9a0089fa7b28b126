"""Answers to programs that ask for a GPU: there is none."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from hagane.errors import NoDevice
from hagane.nn.autograd.devices import GpuDevice, get_array_module

__all__ = [
    "Device",
    "DummyDevice",
    "DummyDeviceType",
    "Event",
    "GpuDevice",
    "Stream",
    "available",
    "check_cuda_available",
    "clear_memo",
    "copy",
    "cudnn_enabled",
    "cupy",
    "elementwise",
    "fuse",
    "get_array_module",
    "get_device",
    "get_device_from_array",
    "get_device_from_id",
    "get_max_workspace_size",
    "memoize",
    "ndarray",
    "raw",
    "reduce",
    "set_max_workspace_size",
    "should_use_cudnn",
    "should_use_cudnn_tensor_core",
    "to_cpu",
    "to_gpu",
]

available = False
cudnn_enabled = False


class ndarray:  # noqa: N801
    """The class of arrays on a GPU, of which there are none."""


class _Cupy:
    """What stands for the package of arrays on a GPU; false, and refuses to make any."""

    ndarray = ndarray

    def __bool__(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # which Python asks for
            raise AttributeError(name)
        raise NoDevice(
            f"cupy.{name}: hagane computes on the CPU and has no CUDA device; use numpy.{name}"
        )


cupy = _Cupy()


class Device:
    """The class of GPUs, of which there are none."""


class Event:
    """The class of events on a GPU, of which there are none."""


class Stream:
    """The class of streams of a GPU, of which there are none."""


class DummyDeviceType:
    """What stands for the GPU of arrays that lie on none; a context that changes nothing."""

    id = -1

    def __int__(self) -> int:
        return self.id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DummyDeviceType)

    def __hash__(self) -> int:
        return self.id

    def __enter__(self) -> DummyDeviceType:
        return self

    def __exit__(self, *error: object) -> None:
        """Leave the context."""

    def use(self) -> None:
        """Change nothing."""

    def synchronize(self) -> None:
        """Wait for nothing."""


DummyDevice = DummyDeviceType()


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


def get_device_from_id(device_id: Any) -> DummyDeviceType:
    """Refuse a GPU; -1 and None name none."""
    if device_id is not None and device_id >= 0:
        check_cuda_available()
    return DummyDevice


def get_device_from_array(*arrays: Any) -> DummyDeviceType:
    """Return what stands for the GPU of arrays that lie on none."""
    return DummyDevice


def get_device(*args: Any) -> DummyDeviceType:
    """Refuse a GPU; arrays, -1 and None name none."""
    warnings.warn(
        "get_device is deprecated; use get_device_from_id or get_device_from_array",
        DeprecationWarning,
        stacklevel=2,
    )
    for one in args:
        if isinstance(one, int) and not isinstance(one, bool):
            return get_device_from_id(one)
    return DummyDevice


def copy(array: Any, out: Any = None, out_device: Any = None, stream: Any = None) -> Any:
    """Refuse: there are no arrays on a GPU."""
    check_cuda_available()


def elementwise(in_params: str, out_params: str, operation: str, name: str, **kwargs: Any) -> Any:
    """Refuse to make a kernel of a GPU."""
    check_cuda_available()


def reduce(
    in_params: str,
    out_params: str,
    map_expr: str,
    reduce_expr: str,
    post_map_expr: str,
    identity: Any,
    name: str,
    **kwargs: Any,
) -> Any:
    """Refuse to make a kernel of a GPU."""
    check_cuda_available()


def raw(code: str, name: str, *args: Any, **kwargs: Any) -> Any:
    """Refuse to make a kernel of a GPU."""
    check_cuda_available()


def memoize(for_each_device: bool = False) -> Callable[[Any], Any]:
    """Return a decorator that leaves functions as they are: what they keep is for a GPU."""
    return _as_it_is


def clear_memo() -> None:
    """Forget nothing: nothing was kept."""


def fuse(*args: Any, **kwargs: Any) -> Any:
    """Return a function, or a decorator of functions, that leaves them as they are."""
    if len(args) == 1 and not kwargs and callable(args[0]):
        return args[0]
    return _as_it_is


def _as_it_is(function: Any) -> Any:
    return function


def get_max_workspace_size() -> int:
    """Return 0, the bytes that cuDNN may take."""
    return 0


def set_max_workspace_size(size: int) -> None:
    """Change nothing: there is no cuDNN."""


def should_use_cudnn(level: Any, lowest_version: int = 0) -> bool:
    """Return False."""
    if level not in (">=auto", "==always"):
        raise ValueError(f"invalid cuDNN use level: {level!r} (must be '>=auto' or '==always')")
    return False


def should_use_cudnn_tensor_core(dtype: Any) -> bool:
    """Return False."""
    return False
