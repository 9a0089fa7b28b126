"""Sessions that run models, with the interface of ONNX Runtime.

Names load their modules when they are first used: a session from the cache needs few of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hagane.runtime.device import CPU, Device
    from hagane.runtime.options import (
        ExecutionMode,
        GraphOptimizationLevel,
        RunOptions,
        SessionOptions,
    )
    from hagane.runtime.port import (
        Backend,
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

_MODULES = {
    "values.binding": ("IOBinding",),
    "values.described": ("ModelMetadata", "NodeArg"),
    "device": ("CPU", "Device"),
    "options": ("ExecutionMode", "GraphOptimizationLevel", "RunOptions", "SessionOptions"),
    "port": (
        *("Backend", "Memory", "Part", "Planned", "Refusal", "Region", "ShapeMismatch", "Watch"),
    ),
    "session": ("InferenceSession", "get_available_providers", "get_device"),
    "values.value": ("OrtValue",),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}

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


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'hagane.runtime' has no attribute '{name}'")
    value = getattr(import_module(f"hagane.runtime.{_PLACES[name]}"), name)
    globals()[name] = value
    return value
