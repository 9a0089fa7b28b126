"""The type of a value: element type and symbolic shape, or a container of such."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import onnx_ir as ir

from hagane.symbolic import Dim, parse_dim

Shape: TypeAlias = tuple[Dim, ...]

_NAMES = {
    ir.DataType.FLOAT: "float32",
    ir.DataType.DOUBLE: "float64",
    ir.DataType.UNDEFINED: "unknown",
}


def dtype_name(dtype: ir.DataType) -> str:
    """Return the NumPy-style name of an element type (``float32``, ``int64``, ``bfloat16``)."""
    return _NAMES.get(dtype, dtype.name.lower())


@dataclass(frozen=True, slots=True)
class TensorType:
    """A tensor; ``shape`` is None when not even the rank is known."""

    dtype: ir.DataType
    shape: Shape | None

    def __str__(self) -> str:
        dims = "..." if self.shape is None else ", ".join(map(str, self.shape))
        return f"{dtype_name(self.dtype)}[{dims}]"


@dataclass(frozen=True, slots=True)
class SequenceType:
    """A list of values of one type; ``element`` is None when that type is not known."""

    element: Type | None

    def __str__(self) -> str:
        return f"sequence({'...' if self.element is None else self.element})"


@dataclass(frozen=True, slots=True)
class OptionalType:
    """A value that may be absent."""

    element: Type | None

    def __str__(self) -> str:
        return f"optional({'...' if self.element is None else self.element})"


@dataclass(frozen=True, slots=True)
class MapType:
    """A dictionary from scalars of one element type to values of one type."""

    key: ir.DataType
    value: Type

    def __str__(self) -> str:
        return f"map({dtype_name(self.key)}, {self.value})"


Type: TypeAlias = TensorType | SequenceType | OptionalType | MapType

# Where a value keeps, in ``meta``, a declared type that onnx_ir cannot hold.
DECLARED = "declared type"


def from_ir_shape(shape: ir.Shape | None) -> tuple[Dim | None, ...] | None:
    """Return the dimensions of ``shape``; None stands for one without size and name."""
    if shape is None:
        return None
    return tuple(_from_ir_dim(dim) for dim in shape)


def _from_ir_dim(dim: int | ir.SymbolicDim) -> Dim | None:
    # Exporters write -1 and "?" for sizes that they do not know, each time for another one, and
    # some number such axes: "0" is a name, not a size.
    if isinstance(dim, int):
        return dim if dim >= 0 else None
    name = (dim.value or "?").strip()
    return None if name in ("", "?", "-1") or name.isdecimal() else parse_dim(name)


def to_ir_shape(shape: Sequence[Dim] | None) -> ir.Shape | None:
    """Return ``shape`` in the form that graph values hold."""
    if shape is None:
        return None
    return ir.Shape([dim if isinstance(dim, int) else str(dim) for dim in shape])


def to_ir_type(type_: Type) -> ir.TypeProtocol | None:
    """Return ``type_`` without its shape, in the form that graph values hold."""
    match type_:
        case TensorType(dtype=dtype):
            return ir.TensorType(dtype)
        case SequenceType(element=element) if element is not None:
            inner = to_ir_type(element)
            return None if inner is None else ir.SequenceType(inner)
        case OptionalType(element=element) if element is not None:
            inner = to_ir_type(element)
            return None if inner is None else ir.OptionalType(inner)
    return None
