"""Functions of PyTorch that say something of types, devices and the program's surroundings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torch.operands import (
    FLOAT,
    category,
    device_of,
    dtype_of,
    sizes,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Device, DType, Host, Tensor, Truth, Value


@TORCH.function("finfo", "iinfo")
def finfo(t: Core, dtype: Value = None) -> Value:
    """Return the limits of an element type."""
    found = dtype_of(dtype)
    if found.is_integer():
        return Host(Limits(int(found.bitwidth), *_integer_bounds(found)))
    if found == ir.DataType.BFLOAT16:
        return Host(Limits(16, -3.3895313892515355e38, 3.3895313892515355e38, 2**-7, 2**-126))
    info = np.finfo(found.numpy())
    low, high, eps, tiny = (float(v) for v in (info.min, info.max, info.eps, info.tiny))
    return Host(Limits(int(found.bitwidth), low, high, eps, tiny))


def _integer_bounds(dtype: ir.DataType) -> tuple[int, int]:
    info = np.iinfo(dtype.numpy())
    return int(info.min), int(info.max)


@dataclass(frozen=True)
class Limits:
    """The limits of an element type, as Python's numbers."""

    bits: int
    min: float
    max: float
    eps: float = 1.0
    tiny: float = 1.0

    @property
    def smallest_normal(self) -> float:
        """The smallest positive number with full precision."""
        return self.tiny


@TORCH.function("Size")
def torch_size(t: Core, values: Value = ()) -> Value:
    """Return a shape."""
    return tuple(sizes(t, (values,)))


@TORCH.function("device")
def device(t: Core, name: Value, index: Value = None) -> Value:
    """Return a device."""
    return Device(device_of(name if index is None else f"{name}:{index}"))


@TORCH.function(
    "cuda.is_available",
    "backends.mps.is_available",
    "cuda.is_bf16_supported",
    "jit.is_tracing",
    "onnx.is_in_onnx_export",
    "is_autocast_enabled",
    "distributed.is_initialized",
    "distributed.is_available",
    "compiler.is_compiling",
    "compiler.is_exporting",
    "compiler.is_dynamo_compiling",
    "_dynamo.is_compiling",
    "cuda.is_current_stream_capturing",
    "xpu.is_current_stream_capturing",
    "xpu.is_available",
    "mps.is_available",
    "jit.is_scripting",
    "fx._symbolic_trace.is_fx_tracing",
    "is_inference_mode_enabled",
    "are_deterministic_algorithms_enabled",
)
def is_available(t: Core) -> Value:
    """Return False: what is checked runs on a plain CPU unless it names another device."""
    return False


@TORCH.function("is_grad_enabled")
def is_grad_enabled(t: Core) -> Value:
    """Return True, the default."""
    return True


@TORCH.function("is_inference_mode_enabled", "are_deterministic_algorithms_enabled",
                "cuda.device_count", "cuda.current_device", "distributed.get_rank")  # fmt: skip
def zero(t: Core, *_: Value, **__: Value) -> Value:
    """Return 0: nothing of the kind on a plain CPU."""
    return 0


@TORCH.function("distributed.get_world_size", "get_num_threads")
def one(t: Core, *_: Value, **__: Value) -> Value:
    """Return 1: one process."""
    return 1


@TORCH.function("cuda.synchronize", "cuda.empty_cache", "cuda.set_device", "cuda.manual_seed",
                "cuda.manual_seed_all", "set_printoptions", "set_float32_matmul_precision",
                "seed", "save", "set_default_device", "autograd.backward",
                "distributed.barrier")  # fmt: skip
def nothing(t: Core, *_: Value, **__: Value) -> Value:
    """Return None."""
    return None


@TORCH.layer("Generator")
class Generator:
    """A generator of random numbers."""

    @staticmethod
    def init(t: Core, device: Value = "cpu") -> dict[str, Value]:
        """Return the attributes."""
        return {"device": Device(device_of(device))}

    @staticmethod
    def manual_seed(t: Core, self: View, seed: Value) -> Value:
        """Set the seed; return the generator."""
        return self.instance()


@TORCH.function("get_default_dtype")
def get_default_dtype(t: Core) -> Value:
    """Return float32."""
    return DType(FLOAT)


@TORCH.function("is_tensor")
def is_tensor(t: Core, value: Value) -> Value:
    """Return whether a value is a tensor."""
    return isinstance(value, Tensor)


@TORCH.function("is_complex", methods=("is_complex",))
def is_complex(t: Core, input: Value) -> Value:
    """Return whether a tensor holds complex numbers."""
    return category(input.dtype) == 3


@TORCH.function("is_nonzero", methods=("is_nonzero",))
def is_nonzero(t: Core, input: Value) -> Value:
    """Return whether the only element is not zero."""
    return Truth(t.unknown_truth())


@TORCH.function("is_floating_point", methods=("is_floating_point",))
def is_floating_point(t: Core, input: Value) -> Value:
    """Return whether a tensor holds floats."""
    return category(input.dtype) == 2


@TORCH.function("_C._log_api_usage_once")
def log_api_usage_once(t: Core, event: Value) -> Value:
    """Return None: PyTorch counts how often its libraries are used."""
    return None
