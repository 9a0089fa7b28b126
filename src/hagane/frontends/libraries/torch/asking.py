"""Functions of PyTorch that say something of types, devices and the program's surroundings."""

from __future__ import annotations

import numpy as np

from hagane.frontends.libraries.torch.operands import (
    FLOAT,
    category,
    device_of,
    dtype_of,
    sizes,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.core import Core
from hagane.frontends.python.values import (
    DType,
    Tensor,
    Value,
)


@TORCH.function("finfo", "iinfo")
def finfo(t: Core, dtype: Value = None) -> Value:
    """Return the limits of an element type."""
    from hagane.frontends.python.values import Host

    found = dtype_of(dtype)
    if found.is_integer():
        return Host(np.iinfo(found.numpy()))
    return Host(np.finfo(np.float32 if found.itemsize < 4 else found.numpy()))


@TORCH.function("Size")
def torch_size(t: Core, values: Value = ()) -> Value:
    """Return a shape."""
    return tuple(sizes(t, (values,)))


@TORCH.function("device")
def device(t: Core, name: Value, index: Value = None) -> Value:
    """Return a device."""
    from hagane.frontends.python.values import Device

    return Device(device_of(name if index is None else f"{name}:{index}"))


@TORCH.function(
    "cuda.is_available",
    "backends.mps.is_available",
    "cuda.is_bf16_supported",
    "jit.is_scripting",
    "jit.is_tracing",
    "onnx.is_in_onnx_export",
    "is_autocast_enabled",
    "distributed.is_initialized",
    "distributed.is_available",
    "compiler.is_compiling",
)
def is_available(t: Core) -> Value:
    """Return False: what is checked runs on a plain CPU unless it names another device."""
    return False


@TORCH.function("get_default_dtype")
def get_default_dtype(t: Core) -> Value:
    """Return float32."""
    return DType(FLOAT)


@TORCH.function("is_tensor")
def is_tensor(t: Core, value: Value) -> Value:
    """Return whether a value is a tensor."""
    return isinstance(value, Tensor)


@TORCH.function("is_floating_point", methods=("is_floating_point",))
def is_floating_point(t: Core, input: Value) -> Value:
    """Return whether a tensor holds floats."""
    return category(input.dtype) == 2
