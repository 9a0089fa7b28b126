"""Methods of PyTorch that change the element type or the device."""

from __future__ import annotations

import onnx_ir as ir

from hagane.frontends.libraries.torch.operands import (
    BOOL,
    FLOAT,
    INT64,
    cast,
    device_of,
    need_tensor,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Device, DType, Library, Tensor, Truth, Value


def _convert(name: str, dtype: ir.DataType) -> None:
    def method(t: Core, self: Value, memory_format: Value = None) -> Tensor:
        return cast(t, self, dtype)

    TORCH.method(name)(method)


for _name, _dtype in (
    ("float", FLOAT), ("double", ir.DataType.DOUBLE), ("half", ir.DataType.FLOAT16),
    ("bfloat16", ir.DataType.BFLOAT16), ("long", INT64), ("int", ir.DataType.INT32),
    ("short", ir.DataType.INT16), ("char", ir.DataType.INT8), ("byte", ir.DataType.UINT8),
    ("bool", BOOL), ("cfloat", ir.DataType.COMPLEX64),
):  # fmt: skip
    _convert(_name, _dtype)


# The classes that name element types in ``x.type()``.
TENSOR_TYPES = {
    "FloatTensor": FLOAT, "DoubleTensor": ir.DataType.DOUBLE, "HalfTensor": ir.DataType.FLOAT16,
    "BFloat16Tensor": ir.DataType.BFLOAT16, "LongTensor": INT64, "IntTensor": ir.DataType.INT32,
    "ShortTensor": ir.DataType.INT16, "CharTensor": ir.DataType.INT8,
    "ByteTensor": ir.DataType.UINT8, "BoolTensor": BOOL,
}  # fmt: skip


@TORCH.method("to")
def to(
    t: Core, self: Value, *arguments: Value, dtype: Value = None, device: Value = None, **_: Value
) -> Tensor:
    """Return the tensor with another element type, on another device."""
    result: Tensor = self
    for argument in (*arguments, dtype, device):
        if isinstance(argument, DType):
            result = cast(t, result, argument.dtype)
        elif isinstance(argument, Tensor):
            result = t.emit.on(cast(t, result, argument.dtype), argument.device)
        elif isinstance(argument, Device | str) or (
            isinstance(argument, int) and not isinstance(argument, bool)
        ):
            result = t.emit.on(result, device_of(argument))
        elif argument is not None and not isinstance(argument, bool | Truth):
            t.fail("type", "expected an element type, a device or a tensor, "
                   f"got {t.show(argument)}", self)  # fmt: skip
    return result


@TORCH.method("type")
def type_(t: Core, self: Value, dtype: Value = None, non_blocking: Value = False) -> Value:
    """Return the tensor with another element type; without one, the name of its class."""
    if dtype is None:
        name = next((n for n, found in TENSOR_TYPES.items() if found == self.dtype), None)
        if name is None or not self.device:
            return t.lost(f"the name of the class of {t.show(self)}")
        return f"torch.cuda.{name}" if self.device.startswith("cuda") else f"torch.{name}"
    if isinstance(dtype, DType):
        return cast(t, self, dtype.dtype)
    told = dtype.name if isinstance(dtype, Library) else dtype if isinstance(dtype, str) else ""
    place, _, name = told.rpartition(".")
    if name not in TENSOR_TYPES or place not in ("torch", "torch.cuda"):
        t.fail("type", f"expected an element type, got {t.show(dtype)}", self,
               remedy="give it as in x.type(torch.int64)")  # fmt: skip
    return t.emit.on(cast(t, self, TENSOR_TYPES[name]), "cuda:0" if place != "torch" else "cpu")


@TORCH.method("type_as")
def type_as(t: Core, self: Value, other: Value) -> Tensor:
    """Return the tensor with the element type of another."""
    return t.emit.on(cast(t, self, need_tensor(t, other, "other").dtype), other.device)


@TORCH.method("cuda")
def cuda(t: Core, self: Value, device: Value = None, **_: Value) -> Tensor:
    """Return the tensor on a GPU."""
    return t.emit.on(self, device_of(device, "cuda:0"))


@TORCH.method("cpu")
def cpu(t: Core, self: Value) -> Tensor:
    """Return the tensor on the CPU."""
    return t.emit.on(self, "cpu")
