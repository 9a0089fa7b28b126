"""The table of NumPy: its element types and constants."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.table import Table
from hagane.frontends.python.values.values import DType

NUMPY = Table("numpy", "numpy.ndarray")

DTYPES = {
    "bool": ir.DataType.BOOL, "bool_": ir.DataType.BOOL,
    "int8": ir.DataType.INT8, "int16": ir.DataType.INT16, "int32": ir.DataType.INT32,
    "int64": ir.DataType.INT64, "uint8": ir.DataType.UINT8, "uint16": ir.DataType.UINT16,
    "uint32": ir.DataType.UINT32, "uint64": ir.DataType.UINT64,
    "float16": ir.DataType.FLOAT16, "float32": ir.DataType.FLOAT, "float64": ir.DataType.DOUBLE,
    "complex64": ir.DataType.COMPLEX64, "complex128": ir.DataType.COMPLEX128,
    "half": ir.DataType.FLOAT16, "single": ir.DataType.FLOAT, "double": ir.DataType.DOUBLE,
    "float_": ir.DataType.DOUBLE, "int_": ir.DataType.INT64, "intc": ir.DataType.INT32,
    "intp": ir.DataType.INT64, "longlong": ir.DataType.INT64, "byte": ir.DataType.INT8,
    "ubyte": ir.DataType.UINT8, "short": ir.DataType.INT16, "ushort": ir.DataType.UINT16,
    "uint": ir.DataType.UINT64, "uintp": ir.DataType.UINT64, "uintc": ir.DataType.UINT32,
    "csingle": ir.DataType.COMPLEX64, "cdouble": ir.DataType.COMPLEX128,
}  # fmt: skip

NUMPY.constants.update(
    {f"numpy.{name}": DType(dtype, "numpy") for name, dtype in DTYPES.items()}
    | {
        "numpy.pi": math.pi,
        "numpy.e": math.e,
        "numpy.euler_gamma": 0.5772156649015329,
        "numpy.inf": math.inf,
        "numpy.nan": math.nan,
        "numpy.newaxis": None,
        "numpy.__version__": np.__version__,
    }
)
NUMPY.transparent.update({"numpy.errstate", "numpy.printoptions", "numpy.vectorize"})
