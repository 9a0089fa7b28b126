"""hagane: a deep-learning model from source to checked, compiled, trained and shipped.

The public names load their modules when they are first used, so that ``import hagane`` costs
next to nothing. Where a program says ``import onnxruntime as ort``, ``import hagane as ort``
does as well.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from hagane import prob, rl
    from hagane.capturing.capture import capture
    from hagane.capturing.compiled import CompileNotice
    from hagane.capturing.compiling import compile, jit  # noqa: A004
    from hagane.capturing.exported import from_torch
    from hagane.capturing.trace import trace
    from hagane.checking import Report, Shaped, check
    from hagane.gradients import gradient
    from hagane.onnxruntime.aliasing import install_as_onnxruntime
    from hagane.plugins import register_operator
    from hagane.runtime import (
        ExecutionMode,
        GraphOptimizationLevel,
        InferenceSession,
        IOBinding,
        ModelMetadata,
        NodeArg,
        OrtValue,
        RunOptions,
        SessionOptions,
        get_available_providers,
        get_device,
    )
    from hagane.ship import load_built

# Modules that are attributes from the start and load when they are first used.
_MODULES = {
    "backend": "hagane.backend",
    "backends": "hagane.backends",
    "computational_graph": "hagane.computational_graph",
    "configuration": "hagane.configuration",
    "cuda": "hagane.cuda",
    "dataset": "hagane.dataset",
    "datasets": "hagane.datasets",
    "device_resident": "hagane.device_resident",
    "distribution": "hagane.distribution",
    "distributions": "hagane.distributions",
    "function": "hagane.function",
    "function_hook": "hagane.function_hook",
    "function_hooks": "hagane.function_hooks",
    "function_node": "hagane.function_node",
    "functions": "hagane.functions",
    "gradient_check": "hagane.gradient_check",
    "initializer": "hagane.initializer",
    "initializers": "hagane.initializers",
    "iterators": "hagane.iterators",
    "link": "hagane.link",
    "link_hook": "hagane.link_hook",
    "link_hooks": "hagane.link_hooks",
    "links": "hagane.links",
    "onnxruntime": "hagane.onnxruntime",
    "optimizer": "hagane.optimizer",
    "optimizer_hooks": "hagane.optimizer_hooks",
    "optimizers": "hagane.optimizers",
    "prob": "hagane.prob",
    "reporter": "hagane.reporter",
    "rl": "hagane.rl",
    "sequential": "hagane.sequential",
    "serializer": "hagane.serializer",
    "serializers": "hagane.serializers",
    "testing": "hagane.testing",
    "training": "hagane.training",
    "zoo": "hagane.zoo",
    "utils": "hagane.utils",
    "variable": "hagane.variable",
    "warnings": "hagane.warnings",
}

_PUBLIC = {
    "AbstractSerializer": "hagane.serializer",
    "Chain": "hagane.link",
    "ChainList": "hagane.link",
    "DebugMode": "hagane.nn.autograd.configuration",
    "Deserializer": "hagane.serializer",
    "DeviceResident": "hagane.link",
    "DictSummary": "hagane.reporter",
    "Distribution": "hagane.nn.distributions.distribution",
    "ExecutionMode": "hagane.runtime",
    "Function": "hagane.function",
    "FunctionAdapter": "hagane.function",
    "FunctionHook": "hagane.function_hook",
    "FunctionNode": "hagane.function_node",
    "GradientMethod": "hagane.optimizer",
    "GraphOptimizationLevel": "hagane.runtime",
    "IOBinding": "hagane.runtime",
    "InferenceSession": "hagane.runtime",
    "Initializer": "hagane.initializer",
    "Link": "hagane.link",
    "LinkHook": "hagane.link_hook",
    "ModelMetadata": "hagane.runtime",
    "NodeArg": "hagane.runtime",
    "Optimizer": "hagane.optimizer",
    "OrtValue": "hagane.runtime",
    "Parameter": "hagane.variable",
    "Report": "hagane.checking",
    "Reporter": "hagane.reporter",
    "RunOptions": "hagane.runtime",
    "Sequential": "hagane.sequential",
    "Serializer": "hagane.serializer",
    "SessionOptions": "hagane.runtime",
    "Shaped": "hagane.checking",
    "Summary": "hagane.reporter",
    "UpdateRule": "hagane.optimizer",
    "Variable": "hagane.variable",
    "as_array": "hagane.variable",
    "as_variable": "hagane.variable",
    "backward": "hagane.nn.autograd.backprop",
    "capture": "hagane.capturing.capture",
    "CompileNotice": "hagane.capturing.compiled",
    "compile": "hagane.capturing.compiling",
    "check": "hagane.checking",
    "config": "hagane.configuration",
    "cross_entropy": "hagane.nn.distributions.distribution",
    "disable_experimental_feature_warning": "hagane.nn.names",
    "enable_backprop_mode": "hagane.nn.autograd.configuration",
    "force_backprop_mode": "hagane.nn.autograd.configuration",
    "from_torch": "hagane.capturing.exported",
    "get_array_types": "hagane.nn.names",
    "get_available_providers": "hagane.runtime",
    "get_compute_mode": "hagane.nn.names",
    "get_cpu_array_types": "hagane.nn.names",
    "get_current_reporter": "hagane.reporter",
    "get_device": "hagane.backend",
    "get_dtype": "hagane.nn.autograd.configuration",
    "get_function_hooks": "hagane.nn.autograd.hooks",
    "get_link_hooks": "hagane.nn.model.hooks",
    "global_config": "hagane.configuration",
    "grad": "hagane.function_node",
    "gradient": "hagane.gradients",
    "install_as_onnxruntime": "hagane.onnxruntime.aliasing",
    "is_arrays_compatible": "hagane.nn.names",
    "is_debug": "hagane.nn.autograd.configuration",
    "load_built": "hagane.ship",
    "jit": "hagane.capturing.compiling",
    "kl_divergence": "hagane.nn.distributions.distribution",
    "mixed16": "hagane.nn.autograd.configuration",
    "no_backprop_mode": "hagane.nn.autograd.configuration",
    "print_runtime_info": "hagane.nn.names",
    "register_kl": "hagane.nn.distributions.distribution",
    "register_operator": "hagane.plugins",
    "report": "hagane.reporter",
    "report_scope": "hagane.reporter",
    "set_debug": "hagane.nn.autograd.configuration",
    "should_use_cudnn": "hagane.backends.cuda",
    "should_use_cudnn_tensor_core": "hagane.backends.cuda",
    "static_code": "hagane.nn.names",
    "static_graph": "hagane.nn.names",
    "trace": "hagane.capturing.trace",
    "using_config": "hagane.configuration",
    "using_device": "hagane.backend",
}

__all__ = [
    "CompileNotice",
    "ExecutionMode",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtValue",
    "Report",
    "RunOptions",
    "SessionOptions",
    "Shaped",
    "__version__",
    "capture",
    "check",
    "compile",
    "from_torch",
    "get_available_providers",
    "get_device",
    "gradient",
    "install_as_onnxruntime",
    "jit",
    "load_built",
    "prob",
    "register_operator",
    "rl",
    "trace",
]


# Imports of the graph library for arithmetic that hagane does itself: 30 MiB and half a
# second, which are spent if somebody asks for an attribute of theirs.
_LIBRARY, _LATE = "onnx_ir", ("sympy", "onnx_ir._symbolic_shapes")


class _LateFinder:
    """Finds the modules of ``_LATE`` so that they load when they are first used."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        if name not in _LATE:
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = importlib.util.LazyLoader(spec.loader)
        return spec


class _LibraryLoader(Loader):
    """Loads the graph library, and what it imports meanwhile late."""

    def __init__(self, loader: Loader):
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        sys.meta_path.insert(0, _LateFinder)
        try:
            self._loader.exec_module(module)
        finally:
            sys.meta_path.remove(_LateFinder)


class _LibraryFinder:
    """Finds the graph library, whichever module of hagane or of a program imports it first."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        if name != _LIBRARY:
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _LibraryLoader(spec.loader)
        return spec


sys.meta_path.insert(0, _LibraryFinder)


class _ServedFinder:
    """Finds modules of hagane that have no file; it is asked last."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        if not name.startswith("hagane."):
            return None
        found: ModuleSpec | None = (
            importlib.import_module("hagane.chainer_modules").Finder().find_spec(name)
        )
        return found


sys.meta_path.append(_ServedFinder)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        module = importlib.import_module(_MODULES[name])
        globals()[name] = module
        return module
    if name in _PUBLIC:
        value = getattr(importlib.import_module(_PUBLIC[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'hagane' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC, *_MODULES})
