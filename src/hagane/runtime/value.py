"""A value held for a session: an array or a container of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hagane.errors import InvalidArgument
from hagane.runtime.port import CPU, Device, Value

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
        """Return a value with room for a tensor, its content not set."""
        device = device_of(device_type)
        return OrtValue(device.put(np.empty(tuple(shape), dtype=element_type)), device)

    @property
    def _array(self) -> Array:
        content = self.content
        if not isinstance(content, np.ndarray):
            raise InvalidArgument(f"expected a tensor, the value holds {self.data_type()}")
        return content

    def numpy(self) -> Array:
        """Return the tensor as an array: one that shares its memory, or a copy of a device's."""
        return self._array

    def update_inplace(self, np_arr: Array) -> None:
        """Let this value hold ``np_arr``, of the same shape and element type.

        On the CPU it is copied into the memory of the value.
        """
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
            return "seq"
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
