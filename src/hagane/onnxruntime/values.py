"""Values: tensors, vectors of them, sparse tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane import runtime
from hagane.onnxruntime.devices import OrtDevice, OrtMemoryInfo, cpu_only
from hagane.onnxruntime.enums import OrtSparseFormat
from hagane.onnxruntime.raised import BoundError, as_bound
from hagane.ops.values import array_dtype
from hagane.runtime.values.value import checked_shape, element_dtype, value_at


class OrtValue(runtime.OrtValue):
    """A value in the memory of this machine."""

    @staticmethod
    def ortvalue_from_numpy(  # type: ignore[override]
        numpy_obj: Any, /, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> OrtValue:
        """Return a value that shares the memory of ``numpy_obj``."""
        cpu_only(device_type)
        if not isinstance(numpy_obj, np.ndarray):
            raise BoundError(f"expected a NumPy array, got {type(numpy_obj).__name__}")
        if not _can_be_held(numpy_obj):
            raise BoundError(
                f"expected an array of a type that ONNX's tensors have, got {numpy_obj.dtype}"
                f"{' of other objects than str' if numpy_obj.dtype.kind == 'O' else ''}"
            )
        return OrtValue(numpy_obj)

    @staticmethod
    def ortvalue_from_numpy_with_onnx_type(data: Any, /, onnx_element_type: int) -> OrtValue:
        """Return a value that shares the memory of ``data``, read as elements of another type."""
        with as_bound():
            made = runtime.OrtValue.ortvalue_from_numpy_with_onnx_type(data, onnx_element_type)
        return OrtValue(made.content)

    @staticmethod
    def ortvalue_from_shape_and_type(  # type: ignore[override]
        shape: Sequence[int],
        element_type: Any,
        device_type: str = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
        memory_info: OrtMemoryInfo | None = None,
    ) -> OrtValue:
        """Return a value with room for a tensor, its content not set."""
        cpu_only(device_type)
        if isinstance(shape, str) or not all(hasattr(size, "__index__") for size in shape):
            raise TypeError(f"expected a shape of whole numbers, got {shape!r}")
        with as_bound():
            return OrtValue(np.empty(checked_shape(shape), element_dtype(element_type)))

    @staticmethod
    def from_dlpack(data: Any, /) -> OrtValue:
        """Return a value that shares the memory of a tensor of another library."""
        try:
            with as_bound():
                return OrtValue(runtime.OrtValue.from_dlpack(data).content)
        except BoundError as error:
            if hasattr(data, "__dlpack__"):
                raise
            raise TypeError(str(error)) from error

    @staticmethod
    def ort_value_from_sparse_tensor(sparse_tensor: SparseTensor) -> OrtValue:
        """Return a value that holds a sparse tensor."""
        return _SparseValue(sparse_tensor)

    def as_sparse_tensor(self) -> SparseTensor:
        """Return the sparse tensor that the value holds."""
        raise BoundError(f"expected a sparse tensor, the value holds {self.data_type()}")

    def __dlpack__(self, *, stream: Any = None, **more: Any) -> Any:
        with as_bound():
            return super().__dlpack__(stream=stream, **more)

    def to_dlpack(self) -> Any:
        """Return a DLPack capsule that shares the tensor's memory."""
        return self.__dlpack__()

    def numpy(self) -> Any:
        """Return the tensor as an array that shares its memory."""
        with as_bound():
            return super().numpy()

    def shape(self) -> list[int]:
        """Return the sizes of the tensor."""
        with as_bound():
            return super().shape()

    def update_inplace(self, np_arr: Any) -> None:
        """Copy an array, or the tensor of another value, into the memory of this one."""
        if not isinstance(np_arr, np.ndarray | runtime.OrtValue):
            raise TypeError(f"expected a numpy.ndarray or an OrtValue, got {type(np_arr).__name__}")
        if isinstance(np_arr, np.ndarray) and np_arr.size == np.prod(self.shape()):
            np_arr = np_arr.reshape(self.shape())
        with as_bound():
            super().update_inplace(np_arr)

    def _get_c_value(self) -> OrtValue:
        return self

    @property
    def _ortvalue(self) -> OrtValue:
        # ONNX Runtime's class keeps the value that has ``to_dlpack`` there.
        return self

    @property
    def _is_webgpu_buffer(self) -> bool:
        return False


def _can_be_held(array: np.ndarray[Any, Any]) -> bool:
    """Return whether ONNX Runtime's tensors have elements like an array's: complex numbers no."""
    if array.dtype.kind == "O":
        return all(isinstance(one, str | bytes) for one in array.ravel().tolist())
    return array.dtype.kind != "c" and array_dtype(array) != ir.DataType.UNDEFINED


class OrtValueVector:
    """A list of values."""

    def __init__(self, values: Iterable[OrtValue] = ()):
        self._values = list(values)

    def push_back(self, value: Any, *flags: bool) -> None:
        """Add a value, or a tensor of DLPack."""
        is_value = isinstance(value, runtime.OrtValue)
        self._values.append(value if is_value else OrtValue.from_dlpack(value))

    def push_back_batch(
        self,
        tensors: Sequence[Any],
        data_ptrs: Sequence[int],
        element_types: Sequence[Any],
        shapes: Sequence[Sequence[int]],
        devices: Sequence[OrtDevice],
    ) -> None:
        """Add tensors at addresses.

        Args:
            tensors: Their owners, which are kept.
            data_ptrs: Addresses of their first elements.
            element_types: Their types.
            shapes: Their sizes.
            devices: Where they lie.
        """
        for owner, address, kind, shape, device in zip(
            tensors, data_ptrs, element_types, shapes, devices, strict=True
        ):
            cpu_only(device)
            with as_bound():
                value = OrtValue(value_at(address, shape, kind, owner).content)
            self._values.append(value)

    def reserve(self, size: int) -> None:
        """Expect so many values."""

    def shrink_to_fit(self) -> None:
        """Expect no more values."""

    def dlpack_at(self, index: int) -> Any:
        """Return one as a capsule of DLPack."""
        return self._values[index].__dlpack__()

    def element_type_at(self, index: int) -> int:
        """Return the element type of one as ONNX numbers it."""
        return self._values[index].element_type()

    def to_dlpacks(self, to_tensor: Any) -> list[Any]:
        """Return all as capsules of DLPack, or as a function's results of these."""
        capsules = [value.__dlpack__() for value in self._values]
        return capsules if to_tensor is None else [to_tensor(one) for one in capsules]

    def bool_tensor_indices(self) -> list[int]:
        """Return the places of tensors of truth values."""
        return [i for i, one in enumerate(self._values) if one.data_type() == "tensor(bool)"]

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[OrtValue]:
        return iter(self._values)

    def __getitem__(self, index: int) -> OrtValue:
        return self._values[index]


class SparseIndices:
    """The places of the elements of a sparse tensor."""

    def __init__(self, **arrays: Any):
        self._arrays = arrays

    def indices(self) -> Any:
        """Return the places of elements."""
        return _read_only(self._arrays["indices"])

    def inner(self) -> Any:
        """Return the column of each element."""
        return _read_only(self._arrays["inner"])

    def outer(self) -> Any:
        """Return where each row begins among the elements."""
        return _read_only(self._arrays["outer"])


def _read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a view that cannot be written, as ONNX Runtime's views cannot."""
    view = array.view()
    view.flags.writeable = False
    return view


class SparseTensor:
    """Elements with their places; dense for models, whose sparse weights are made so too."""

    def __init__(self, form: OrtSparseFormat, shape: Any, values: Any, places: SparseIndices):
        self._form, self._values, self._places = form, np.asarray(values), places
        self._shape = np.asarray(shape, np.int64)

    @classmethod
    def sparse_coo_from_numpy(
        cls, dense_shape: Any, values: Any, coo_indices: Any, ort_device: OrtDevice
    ) -> SparseTensor:
        """Return a tensor by the coordinates of its elements.

        Args:
            dense_shape: Its sizes.
            values: ``(elements,)``.
            coo_indices: int64: places in order of rows ``(elements,)``, or coordinates
                ``(elements, axes)`` or ``(2 * elements,)``.
            ort_device: The CPU.
        """
        cpu_only(ort_device)
        places = np.asarray(coo_indices, np.int64)
        count, axes = len(values), len(dense_shape)
        if places.size not in (count, count * axes):
            raise BoundError(
                f"expected {count} indices, or {count} times {axes}, for {count} values, "
                f"got {places.size}"
            )
        if not count:
            places = places.reshape(0, 2)  # as ONNX Runtime shows it, for any number of axes
        elif places.size == count * axes and axes > 1:
            places = places.reshape(count, axes)
        return cls(
            OrtSparseFormat.ORT_SPARSE_COO, dense_shape, values, SparseIndices(indices=places)
        )

    @classmethod
    def sparse_csr_from_numpy(
        cls,
        dense_shape: Any,
        values: Any,
        inner_indices: Any,
        outer_indices: Any,
        ort_device: OrtDevice,
    ) -> SparseTensor:
        """Return a matrix by rows.

        Args:
            dense_shape: Rows and columns.
            values: ``(elements,)``.
            inner_indices: The column of each, int64.
            outer_indices: Where each row begins among them, and the last ends, int64.
            ort_device: The CPU.
        """
        cpu_only(ort_device)
        inner, outer = np.asarray(inner_indices, np.int64), np.asarray(outer_indices, np.int64)
        if len(inner) != len(values) or (len(values) and len(outer) != dense_shape[0] + 1):
            raise BoundError(
                f"expected {len(values)} columns and {dense_shape[0] + 1} starts of rows, "
                f"got {len(inner)} and {len(outer)}"
            )
        places = SparseIndices(inner=inner, outer=outer)
        return cls(OrtSparseFormat.ORT_SPARSE_CSRC, dense_shape, values, places)

    def values(self) -> Any:
        """Return the elements."""
        return self._values if self._values.dtype.kind in "OUS" else _read_only(self._values)

    def format(self) -> OrtSparseFormat:
        """Return its form."""
        return self._form

    def dense_shape(self) -> list[int]:
        """Return its sizes."""
        sizes: list[int] = self._shape.tolist()
        return sizes

    def data_type(self) -> str:
        """Return its type as ONNX writes it."""
        return f"sparse_{OrtValue(self._values).data_type()}"

    def device_name(self) -> str:
        """Return where it lies."""
        return "cpu"

    def _view(self, form: OrtSparseFormat) -> SparseIndices:
        if self._form != form:
            raise BoundError(f"expected a tensor of the form {form.name}, got {self._form.name}")
        return self._places

    def as_coo_view(self) -> SparseIndices:
        """Return the coordinates of the elements."""
        return self._view(OrtSparseFormat.ORT_SPARSE_COO)

    def as_csrc_view(self) -> SparseIndices:
        """Return the columns of the elements and the starts of rows."""
        return self._view(OrtSparseFormat.ORT_SPARSE_CSRC)

    def as_blocksparse_view(self) -> SparseIndices:
        """Return the places of blocks."""
        return self._view(OrtSparseFormat.ORT_SPARSE_BLOCK_SPARSE)

    def to_cuda(self, ort_device: OrtDevice) -> SparseTensor:
        """Refuse: there is no GPU."""
        cpu_only(ort_device)
        raise BoundError("the tensor lies on the CPU, which is where hagane computes")

    def dense(self) -> Any:
        """Return it as an array with zeros in the other places."""
        result = np.zeros(self._shape, self._values.dtype)
        if self._form == OrtSparseFormat.ORT_SPARSE_CSRC:
            inner, outer = self._places.inner(), self._places.outer()
            rows = np.repeat(np.arange(self._shape[0]), np.diff(outer))
            result[rows, inner] = self._values
            return result
        places = self._places.indices()
        if len(self._values):
            flat = places.ndim == 1
            at = np.unravel_index(places, result.shape) if flat else tuple(places.T)
            result[at] = self._values
        return result

    def _get_c_tensor(self) -> SparseTensor:
        return self


class _SparseValue(OrtValue):
    """A sparse tensor as a value: a model takes it as the dense one."""

    def __init__(self, tensor: SparseTensor):
        super().__init__(tensor.dense())
        self._tensor = tensor

    def as_sparse_tensor(self) -> SparseTensor:
        return self._tensor

    def numpy(self) -> Any:
        raise BoundError(
            "expected a tensor, the value holds a sparse one; as_sparse_tensor() returns it"
        )

    def is_sparse_tensor(self) -> bool:
        return True

    def is_tensor(self) -> bool:
        return False

    def data_type(self) -> str:
        return self._tensor.data_type()


def copy_tensors(src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: Any = None) -> None:
    """Copy tensors into the memory of others of their shapes and types."""
    if len(src) != len(dst):
        raise BoundError(f"expected as many targets as tensors ({len(src)}), got {len(dst)}")
    for one, other in zip(src, dst, strict=True):
        other.update_inplace(one)
