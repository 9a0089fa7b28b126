"""``onnxruntime.capi.onnxruntime_pybind11_state``: the names of ONNX Runtime's compiled module."""

from __future__ import annotations

from typing import Any

import hagane.onnxruntime as surface
from hagane.onnxruntime.absent import CLASSES, FUNCTIONS, absent
from hagane.onnxruntime.compiled import CompiledBinding as SessionIOBinding
from hagane.onnxruntime.compiled import CompiledDevice as OrtDevice
from hagane.onnxruntime.compiled import CompiledSession as InferenceSession
from hagane.onnxruntime.enums import (
    ArenaExtendStrategy,
    OrtCompiledModelCompatibility,
    OrtDeviceEpIncompatibilityReason,
)
from hagane.onnxruntime.environment import (
    get_default_session_options,
    get_hardware_devices,
)
from hagane.onnxruntime.errors import (
    DeviceReset,
    EngineError,
    EPFail,
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    ModelLoadCanceled,
    ModelLoaded,
    ModelRequiresCompilation,
    NoModel,
    NoSuchFile,
    NotFound,
    NotImplemented,  # noqa: A004
    RuntimeException,
)
from hagane.onnxruntime.values import OrtValueVector
from hagane.onnxruntime.weights_of_few_bits import (
    quantize_matmul_bnb4,
    quantizer_of_columns,
    quantizer_of_rows,
)

kNextPowerOfTwo = ArenaExtendStrategy.kNextPowerOfTwo  # noqa: N816
kSameAsRequested = ArenaExtendStrategy.kSameAsRequested  # noqa: N816

quantize_matmul_2bits = quantizer_of_columns(2)
quantize_matmul_4bits = quantizer_of_columns(4)
quantize_matmul_8bits = quantizer_of_columns(8)
quantize_qdq_matmul_2bits = quantizer_of_rows(2)
quantize_qdq_matmul_4bits = quantizer_of_rows(4)

__all__ = [
    "ArenaExtendStrategy",
    "DeviceReset",
    "EPFail",
    "EngineError",
    "Fail",
    "InferenceSession",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "ModelLoadCanceled",
    "ModelLoaded",
    "ModelRequiresCompilation",
    "NoModel",
    "NoSuchFile",
    "NotFound",
    "NotImplemented",
    "OrtCompiledModelCompatibility",
    "OrtDevice",
    "OrtDeviceEpIncompatibilityReason",
    "OrtValueVector",
    "RuntimeException",
    "SessionIOBinding",
    "get_default_session_options",
    "get_hardware_devices",
    "kNextPowerOfTwo",
    "kSameAsRequested",
    "quantize_matmul_2bits",
    "quantize_matmul_4bits",
    "quantize_matmul_8bits",
    "quantize_matmul_bnb4",
    "quantize_qdq_matmul_2bits",
    "quantize_qdq_matmul_4bits",
]
_VIEWS = ("SparseBlockSparseView", "SparseCooView", "SparseCsrView")


def __getattr__(name: str) -> Any:
    if name in _VIEWS:
        from hagane.onnxruntime import values

        found: Any = values.SparseIndices
    elif name in surface.__all__:
        found = getattr(surface, name)
    elif name in CLASSES or name in FUNCTIONS:
        found = absent(name)
    else:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *surface.__all__, *CLASSES, *FUNCTIONS, *_VIEWS})
