"""A value held for a session: an array or a container of arrays."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hagane.errors import InvalidArgument
from hagane.runtime.device import CPU, Device, Value

if TYPE_CHECKING:
    from hagane.ops.definition import Array, RuntimeValue


class OrtValue:
    """A value on a device that a session reads, or writes its output into.

    Args:
        content: The value as its device holds it; on the CPU an array, which is shared.
        device: Where it lies.
    """

    def __init__(self, content: Value, device: Device = CPU):
        self._held, self.device = content, device

    @property
    def content(self) -> RuntimeValue:
        """The value on the CPU: as it is there already, else a copy."""
        return self.device.get(self._held)

    @staticmethod
    def ortvalue_from_numpy(
        numpy_obj: Array, device_type: str | Device = "cpu", device_id: int = 0
    ) -> OrtValue:
        """Return a value that shares the memory of ``numpy_obj``, or a copy on another device."""
        device = device_of(device_type)
        return OrtValue(device.put(np.asarray(numpy_obj)), device)

    @staticmethod
    def ortvalue_from_shape_and_type(
        shape: Sequence[int],
        element_type: Any = np.float32,
        device_type: str | Device = "cpu",
        device_id: int = 0,
    ) -> OrtValue:
        """Return a value with room for a tensor, its content not set.

        Args:
            shape: Its sizes.
            element_type: A type of NumPy's, or the number of one of ONNX's.
            device_type: Where it lies.
            device_id: Accepted.
        """
        device = device_of(device_type)
        dtype = element_dtype(element_type)
        return OrtValue(device.put(np.empty(checked_shape(shape), dtype)), device)

    @staticmethod
    def ortvalue_from_numpy_with_onnx_type(data: Array, onnx_element_type: int) -> OrtValue:
        """Return a value that shares the memory of ``data``, read as elements of another type.

        Args:
            data: Elements of the same width, such as uint16 for bfloat16.
            onnx_element_type: The number of the type in ``onnx.TensorProto``.
        """
        dtype = element_dtype(onnx_element_type)
        if data.dtype.itemsize != dtype.itemsize:
            raise InvalidArgument(
                f"expected elements of {dtype.itemsize} bytes to be read as {dtype}, "
                f"got {data.dtype}"
            )
        return OrtValue(np.ascontiguousarray(data).view(dtype).reshape(data.shape))

    @staticmethod
    def from_dlpack(data: Any) -> OrtValue:
        """Return a value that shares the memory of a tensor of another library.

        Args:
            data: An object with ``__dlpack__``, such as a tensor of PyTorch, or a capsule.

        Raises:
            InvalidArgument: It lies on another device, or is no tensor.
        """
        from hagane.runtime.values.dlpack import from_capsule

        return OrtValue(from_capsule(data))

    @property
    def _array(self) -> Array:
        content = self.content
        if not isinstance(content, np.ndarray):
            raise InvalidArgument(f"expected a tensor, the value holds {self.data_type()}")
        return content

    def numpy(self) -> Array:
        """Return the tensor as an array: one that shares its memory, or a copy of a device's."""
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self._array, dtype=dtype, copy=copy)

    def __dlpack__(self, *, stream: Any = None, **_: Any) -> Any:
        from hagane.runtime.values.dlpack import to_capsule

        return to_capsule(self._array)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return int(self._array.ctypes.data)

    def tensor_size_in_bytes(self) -> int:
        """Return the size of the tensor in bytes."""
        return int(self._array.nbytes)

    def element_type(self) -> int:
        """Return the number of the element type in ``onnx.TensorProto``."""
        from hagane.ops.values import array_dtype

        return int(array_dtype(self._array))

    def update_inplace(self, np_arr: Array | OrtValue) -> None:
        """Let this value hold ``np_arr``, of the same shape and element type.

        On the CPU it is copied into the memory of the value.
        """
        if isinstance(np_arr, OrtValue):
            np_arr = np_arr.numpy()
        target = self._array
        if np_arr.shape != target.shape or np_arr.dtype != target.dtype:
            raise InvalidArgument(
                f"expected {target.dtype}{list(target.shape)}, "
                f"got {np_arr.dtype}{list(np_arr.shape)}"
            )
        if self.device is CPU:
            target[...] = np_arr
        else:
            self._held = self.device.put(np_arr)

    def shape(self) -> list[int]:
        """Return the sizes of the tensor."""
        return list(self._array.shape)

    def data_type(self) -> str:
        """Return the type as ONNX writes it, such as ``tensor(float)``."""
        from hagane.graph.types import TensorType
        from hagane.ops.schema import type_string
        from hagane.ops.values import array_dtype

        content = self.content
        if isinstance(content, list):
            return f"seq({OrtValue(content[0]).data_type()})" if content else "seq"
        if not isinstance(content, np.ndarray):
            return "none" if content is None else "map"
        return type_string(TensorType(array_dtype(content), content.shape))

    def device_name(self) -> str:
        """Return the name of the device where the value lies, such as ``cpu``."""
        return self.device.name

    def has_value(self) -> bool:
        """Whether an optional value is present."""
        return self.content is not None

    def is_tensor(self) -> bool:
        """Whether the value is a tensor."""
        return isinstance(self.content, np.ndarray)

    def is_sparse_tensor(self) -> bool:
        """Whether the value is a sparse tensor: never, they are made dense when they are read."""
        return False

    def is_tensor_sequence(self) -> bool:
        """Whether the value is a sequence."""
        return isinstance(self.content, list)


def device_of(device: str | Device) -> Device:
    """Return a device: the CPU by its name, others as they are.

    Raises:
        InvalidArgument: It is the name of another device.
    """
    if not isinstance(device, str):
        return device
    if device.lower() != "cpu":
        raise InvalidArgument(
            f"expected the device 'cpu' or the device of a backend, got the name '{device}'"
        )
    return CPU


def element_dtype(element_type: Any) -> np.dtype[Any]:
    """Return NumPy's type for a type of NumPy's or the number of one of ONNX's.

    Raises:
        InvalidArgument: It is neither, or tensors of ONNX have no such elements.
    """
    import onnx_ir as ir

    from hagane.ops.values import array_dtype

    try:
        if isinstance(element_type, int) and not isinstance(element_type, bool):
            dtype = np.dtype(ir.DataType(element_type).numpy())
        else:
            dtype = np.dtype(element_type)
        known = array_dtype(np.empty(0, dtype)) != ir.DataType.UNDEFINED
    except (TypeError, ValueError):
        known = False
    if not known:
        raise InvalidArgument(
            f"expected a type of NumPy's that ONNX has, or a number of onnx.TensorProto, "
            f"got {element_type!r}"
        )
    return dtype


def checked_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Return sizes as a tuple.

    Raises:
        InvalidArgument: One of them is negative.
    """
    sizes = tuple(int(size) for size in shape)
    if any(size < 0 for size in sizes):
        raise InvalidArgument(f"expected sizes of 0 and more, got {list(sizes)}")
    return sizes


def value_at(address: int, shape: Sequence[int], element_type: Any, owner: Any = None) -> OrtValue:
    """Return a value over memory of the caller's, which has to stay while it is used.

    Args:
        address: Of the first element; elements lie in order without gaps.
        shape: The sizes of the tensor.
        element_type: A type of NumPy's, or the number of one of ONNX's.
        owner: Kept as long as the value.

    Raises:
        InvalidArgument: The type or shape is none of a tensor.
    """
    dtype, sizes = element_dtype(element_type), checked_shape(shape)
    if dtype.kind in "OSU":
        raise InvalidArgument(f"expected elements of a fixed width in a buffer, got {dtype}")
    size = math.prod(sizes) * dtype.itemsize
    if size == 0:
        return OrtValue(np.empty(sizes, dtype))
    memory: Any = (ctypes.c_char * size).from_address(int(address))
    memory.owner = owner
    return OrtValue(np.frombuffer(memory, dtype).reshape(sizes))
