"""Sessions that run models, with the interface of ONNX Runtime."""

from hagane.runtime.binding import IOBinding
from hagane.runtime.metadata import ModelMetadata, NodeArg
from hagane.runtime.options import (
    ExecutionMode,
    GraphOptimizationLevel,
    RunOptions,
    SessionOptions,
)
from hagane.runtime.session import InferenceSession, get_available_providers, get_device
from hagane.runtime.value import OrtValue

__all__ = [
    "ExecutionMode",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "get_available_providers",
    "get_device",
]
