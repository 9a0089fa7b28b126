"""Methods of PyTorch that change the element type or the device."""

from __future__ import annotations

import onnx_ir as ir

from hagane.frontends.libraries.torch.operands import (
    BOOL,
    FLOAT,
    INT64,
    TENSOR_CLASSES,
    cast,
    dtype_of,
    element_type,
    need_tensor,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import (
    Device,
    Library,
    Tensor,
    Truth,
    Value,
)


def _convert(name: str, dtype: ir.DataType) -> None:
    def method(t: Core, self: Value, memory_format: Value = None) -> Tensor:
        return cast(t, self, dtype)

    TORCH.method(name)(method)


for _name, _dtype in (
    ("float", FLOAT), ("double", ir.DataType.DOUBLE), ("half", ir.DataType.FLOAT16),
    ("bfloat16", ir.DataType.BFLOAT16), ("long", INT64), ("int", ir.DataType.INT32),
    ("short", ir.DataType.INT16), ("char", ir.DataType.INT8), ("byte", ir.DataType.UINT8),
    ("bool", BOOL), ("cfloat", ir.DataType.COMPLEX64), ("cdouble", ir.DataType.COMPLEX128),
):  # fmt: skip
    _convert(_name, _dtype)


@TORCH.method("type")
def type_(t: Core, self: Tensor, dtype: Value = None, **_: Value) -> Value:
    """Return the tensor with another element type, or the name of the class of tensors of its."""
    if dtype is None:
        names = (name for name, known in TENSOR_CLASSES.items() if known == self.dtype)
        name = next(names, None)
        return t.lost("the name of a class of tensors") if name is None else f"torch.{name}"
    named = dtype.name if isinstance(dtype, Library) else dtype if isinstance(dtype, str) else ""
    found = TENSOR_CLASSES.get(named.removeprefix("torch."))
    return cast(t, self, dtype_of(dtype, self.dtype) if found is None else found)


@TORCH.method("to")
def to(
    t: Core, self: Value, *arguments: Value, dtype: Value = None, device: Value = None,
    memory_format: Value = None, **_: Value,
) -> Tensor:  # fmt: skip
    """Return the tensor with another element type, on another device."""
    from hagane.frontends.libraries.torch.operands import device_of

    result: Tensor = self
    for argument in (*arguments, dtype, device):
        found = element_type(argument)
        if found is not None:
            result = cast(t, result, found)
        elif isinstance(argument, Tensor):
            result = t.emit.on(cast(t, result, argument.dtype), argument.device)
        elif isinstance(argument, Device | str) or (
            isinstance(argument, int) and not isinstance(argument, bool)
        ):
            result = t.emit.on(result, device_of(argument))
        elif argument is not None and not isinstance(argument, bool | Truth):
            t.fail("type", "expected an element type, a device or a tensor, "
                   f"got {t.show(argument)}", self)  # fmt: skip
    if memory_format not in (None, "preserve_format"):
        result = t.call_library("torch.Tensor.contiguous", [result, memory_format])
    return result


@TORCH.method("type_as")
def type_as(t: Core, self: Value, other: Value) -> Tensor:
    """Return the tensor with the element type of another."""
    return t.emit.on(cast(t, self, need_tensor(t, other, "other").dtype), other.device)


@TORCH.method("cuda")
def cuda(t: Core, self: Value, device: Value = None, **_: Value) -> Tensor:
    """Return the tensor on a GPU."""
    from hagane.frontends.libraries.torch.operands import device_of

    return t.emit.on(self, device_of(device, "cuda:0"))


@TORCH.method("cpu")
def cpu(t: Core, self: Value) -> Tensor:
    """Return the tensor on the CPU."""
    return t.emit.on(self, "cpu")
