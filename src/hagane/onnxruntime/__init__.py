"""ONNX Runtime's interface over hagane: found by ``import onnxruntime`` once hagane stands in.

``hagane.install_as_onnxruntime()`` puts it there; ``import hagane.onnxruntime as ort`` does
without. Everything that the package ``onnxruntime`` has by name is here: it works, or raises
``NotOffered`` with the reason.
"""

from __future__ import annotations

from typing import Any

from hagane.onnxruntime.absent import absent
from hagane.onnxruntime.adapters import AdapterFormat, LoraAdapter
from hagane.onnxruntime.binding import IOBinding
from hagane.onnxruntime.described import ModelMetadata
from hagane.onnxruntime.devices import (
    OrtArenaCfg,
    OrtDevice,
    OrtEpDevice,
    OrtExternalInitializerInfo,
    OrtHardwareDevice,
    OrtMemoryInfo,
    OrtSyncStream,
)
from hagane.onnxruntime.enums import (
    ExecutionOrder,
    ModelPackageWriteMode,
    OrtAllocatorType,
    OrtCompileApiFlags,
    OrtDeviceMemoryType,
    OrtDeviceVendorId,
    OrtExecutionProviderDevicePolicy,
    OrtHardwareDeviceType,
    OrtMemoryInfoDeviceType,
    OrtMemType,
    OrtSparseFormat,
)
from hagane.onnxruntime.environment import (
    create_and_register_allocator,
    create_and_register_allocator_v2,
    disable_telemetry_events,
    enable_telemetry_events,
    get_all_providers,
    get_available_providers,
    get_build_info,
    get_device,
    get_ep_devices,
    get_version_string,
    has_collective_ops,
    package_version,
    preload_dlls,
    print_debug_info,
    set_default_logger_callback,
    set_default_logger_severity,
    set_default_logger_verbosity,
    set_global_thread_pool_sizes,
    set_seed,
)
from hagane.onnxruntime.model_compiler import ModelCompiler
from hagane.onnxruntime.options import RunOptions, SessionOptions
from hagane.onnxruntime.session import InferenceSession
from hagane.onnxruntime.values import OrtValue, SparseTensor, copy_tensors
from hagane.runtime import ExecutionMode, GraphOptimizationLevel, NodeArg

__version__ = package_version()
__author__ = "the authors of hagane"

package_name = "onnxruntime"
version = __version__
cuda_version = ""
import_capi_exception = None

SessionIOBinding = IOBinding

_ABSENT = (
    "ModelPackage",
    "ModelPackageComponentContext",
    "ModelPackageContext",
    "ModelPackageOptions",
    "OrtEpAssignedNode",
    "OrtEpAssignedSubgraph",
    "OrtEpContextData",
    "OrtEpContextDataBuffer",
    "register_execution_provider_library",
    "unregister_execution_provider_library",
)

__all__ = [
    "AdapterFormat",
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "LoraAdapter",
    "ModelCompiler",
    "ModelMetadata",
    "ModelPackageWriteMode",
    "NodeArg",
    "OrtAllocatorType",
    "OrtArenaCfg",
    "OrtCompileApiFlags",
    "OrtDevice",
    "OrtDeviceMemoryType",
    "OrtDeviceVendorId",
    "OrtEpDevice",
    "OrtExecutionProviderDevicePolicy",
    "OrtExternalInitializerInfo",
    "OrtHardwareDevice",
    "OrtHardwareDeviceType",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtMemoryInfoDeviceType",
    "OrtSparseFormat",
    "OrtSyncStream",
    "OrtValue",
    "RunOptions",
    "SessionIOBinding",
    "SessionOptions",
    "SparseTensor",
    "copy_tensors",
    "create_and_register_allocator",
    "create_and_register_allocator_v2",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_ep_devices",
    "get_version_string",
    "has_collective_ops",
    "preload_dlls",
    "print_debug_info",
    "set_default_logger_callback",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_global_thread_pool_sizes",
    "set_seed",
]


def __getattr__(name: str) -> Any:
    if name not in _ABSENT:
        raise AttributeError(f"module 'onnxruntime' has no attribute '{name}'")
    value = absent(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_ABSENT})
