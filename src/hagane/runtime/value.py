"""A value held for a session: an array or a container of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.errors import InvalidArgument
from hagane.ops.definition import Array, RuntimeValue
from hagane.ops.schema import type_string
from hagane.ops.values import array_dtype


class OrtValue:
    """An array that a session reads in place or writes its output into."""

    def __init__(self, content: RuntimeValue):
        self.content = content

    @staticmethod
    def ortvalue_from_numpy(
        numpy_obj: Array, device_type: str = "cpu", device_id: int = 0
    ) -> OrtValue:
        """Return a value that shares the memory of ``numpy_obj``."""
        _check_device(device_type)
        return OrtValue(np.asarray(numpy_obj))

    @staticmethod
    def ortvalue_from_shape_and_type(
        shape: Sequence[int],
        element_type: Any = np.float32,
        device_type: str = "cpu",
        device_id: int = 0,
    ) -> OrtValue:
        """Return a value with room for a tensor, its content not set."""
        _check_device(device_type)
        return OrtValue(np.empty(tuple(shape), dtype=element_type))

    @property
    def _array(self) -> Array:
        if not isinstance(self.content, np.ndarray):
            raise InvalidArgument(f"expected a tensor, the value holds {self.data_type()}")
        return self.content

    def numpy(self) -> Array:
        """Return the tensor as an array that shares its memory."""
        return self._array

    def update_inplace(self, np_arr: Array) -> None:
        """Copy ``np_arr``, of the same shape and element type, into this value."""
        target = self._array
        if np_arr.shape != target.shape or np_arr.dtype != target.dtype:
            raise InvalidArgument(
                f"expected {target.dtype}{list(target.shape)}, "
                f"got {np_arr.dtype}{list(np_arr.shape)}"
            )
        target[...] = np_arr

    def shape(self) -> list[int]:
        """Return the sizes of the tensor."""
        return list(self._array.shape)

    def data_type(self) -> str:
        """Return the type as ONNX writes it, such as ``tensor(float)``."""
        if isinstance(self.content, list):
            return "seq"
        if not isinstance(self.content, np.ndarray):
            return "none" if self.content is None else "map"
        from hagane.graph.types import TensorType

        return type_string(TensorType(array_dtype(self.content), self.content.shape))

    def device_name(self) -> str:
        """Return ``cpu``."""
        return "cpu"

    def has_value(self) -> bool:
        """Whether an optional value is present."""
        return self.content is not None

    def is_tensor(self) -> bool:
        """Whether the value is a tensor."""
        return isinstance(self.content, np.ndarray)

    def is_tensor_sequence(self) -> bool:
        """Whether the value is a sequence."""
        return isinstance(self.content, list)


def _check_device(device_type: str) -> None:
    if device_type.lower() != "cpu":
        raise InvalidArgument(f"expected the device 'cpu', got '{device_type}'")
