"""Tensors shared with other libraries by DLPack, its types that NumPy lacks included.

NumPy speaks DLPack for the types that it has itself. For bfloat16 and the like the structure of a
tensor is the same but for the number of its type, which is exchanged here: such a tensor passes
through NumPy as one of unsigned integers of its width. Layout of the structure: ``DLTensor`` of
dlpack.h, the same in all versions of the unversioned capsule.
"""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np

from hagane.errors import InvalidArgument
from hagane.ops.definition import Array

_CAPSULE = b"dltensor"

# Number of the type in dlpack.h, and its bits.
_NUMBERS: dict[np.dtype[Any], tuple[int, int]] = {
    np.dtype(ml_dtypes.bfloat16): (4, 16),
    np.dtype(ml_dtypes.float8_e4m3fn): (10, 8),
    np.dtype(ml_dtypes.float8_e4m3fnuz): (11, 8),
    np.dtype(ml_dtypes.float8_e5m2): (12, 8),
    np.dtype(ml_dtypes.float8_e5m2fnuz): (13, 8),
    np.dtype(ml_dtypes.float8_e8m0fnu): (14, 8),
}
_TYPES = {number: dtype for dtype, number in _NUMBERS.items()}
_UNSIGNED = 1


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    )


class _Offer:
    """The argument of ``numpy.from_dlpack``: a capsule with its device."""

    def __init__(self, capsule: Any):
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def _header(capsule: Any) -> _Tensor:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return _Tensor.from_address(pointer(capsule, _CAPSULE))


def _is_capsule(value: Any) -> bool:
    valid = ctypes.pythonapi.PyCapsule_IsValid
    valid.restype, valid.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)
    return type(value).__name__ == "PyCapsule" and bool(valid(value, _CAPSULE))


def to_capsule(array: Array) -> Any:
    """Return a capsule of DLPack that shares the memory of ``array``.

    Raises:
        InvalidArgument: Its elements have no type of DLPack, or its memory may not be written.
    """
    number = _NUMBERS.get(array.dtype)
    if number is None and array.dtype.kind not in "iufbc":
        raise InvalidArgument(f"expected a tensor of numbers for DLPack, got {array.dtype}")
    if not array.flags.writeable:
        raise InvalidArgument(
            "expected a tensor that may be written for DLPack, got a read-only one; share a copy"
        )
    if number is None:
        return array.__dlpack__()
    capsule = array.view(f"u{array.itemsize}").__dlpack__()
    header = _header(capsule)
    header.code, header.bits = number
    return capsule


def from_capsule(data: Any) -> Array:
    """Return an array that shares the memory of a tensor of another library.

    Args:
        data: An object with ``__dlpack__``, or a capsule that has not been used; its elements lie
            in order without gaps.

    Raises:
        InvalidArgument: It is neither, lies on another device, has gaps or a type that hagane
            lacks.
    """
    if hasattr(data, "__dlpack__"):
        device = data.__dlpack_device__() if hasattr(data, "__dlpack_device__") else (1, 0)
        if int(device[0]) != 1:
            raise InvalidArgument(
                f"expected a tensor in the memory of this machine, got one on device {device}; "
                "bring it to the CPU first"
            )
        try:
            data = data.__dlpack__()
        except BufferError as error:
            raise InvalidArgument(f"expected a tensor that may be shared: {error}") from error
    if not _is_capsule(data):
        raise InvalidArgument(
            f"expected an object with __dlpack__ or a capsule 'dltensor', got {type(data).__name__}"
        )
    header = _header(data)
    if header.device_type != 1:
        raise InvalidArgument(
            f"expected a tensor in the memory of this machine, got one on device "
            f"({header.device_type}, {header.device_id}); bring it to the CPU first"
        )
    number = (int(header.code), int(header.bits))
    foreign = _TYPES.get(number)
    if foreign is not None:
        header.code = _UNSIGNED
    try:
        shared: Array = np.from_dlpack(_Offer(data))
    except (RuntimeError, BufferError) as error:
        raise InvalidArgument(
            f"expected a tensor of a type that ONNX has, got number {number[0]} of {number[1]} "
            f"bits: {error}"
        ) from error
    if not shared.flags.c_contiguous:
        raise InvalidArgument("expected a tensor whose elements lie in order without gaps")
    return _writable(shared, shared.dtype if foreign is None else foreign)


def _writable(shared: Array, dtype: np.dtype[Any]) -> Array:
    """Return ``shared`` with leave to write: NumPy gives none to arrays of old capsules."""
    if shared.nbytes == 0:
        return np.empty(shared.shape, dtype)
    memory: Any = (ctypes.c_char * shared.nbytes).from_address(shared.ctypes.data)
    memory.owner = shared  # which lets go of the capsule when it goes
    return np.frombuffer(memory, dtype).reshape(shared.shape)
