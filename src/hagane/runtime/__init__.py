"""Sessions that run models, with the interface of ONNX Runtime."""

from hagane.runtime.options import (
    ExecutionMode,
    GraphOptimizationLevel,
    RunOptions,
    SessionOptions,
)
from hagane.runtime.port import (
    CPU,
    Backend,
    Device,
    Memory,
    Part,
    Planned,
    Refusal,
    Region,
    ShapeMismatch,
    Watch,
)
from hagane.runtime.session import InferenceSession, get_available_providers, get_device
from hagane.runtime.values.binding import IOBinding
from hagane.runtime.values.described import ModelMetadata, NodeArg
from hagane.runtime.values.value import OrtValue

__all__ = [
    "CPU",
    "Backend",
    "Device",
    "ExecutionMode",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "Memory",
    "ModelMetadata",
    "NodeArg",
    "OrtValue",
    "Part",
    "Planned",
    "Refusal",
    "Region",
    "RunOptions",
    "SessionOptions",
    "ShapeMismatch",
    "Watch",
    "get_available_providers",
    "get_device",
]
