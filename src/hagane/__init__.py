"""hagane: a deep-learning model from source to checked, compiled, trained and shipped.

The public names load what they need when they are first used, so that ``import hagane`` costs
next to nothing. Where a program says ``import onnxruntime as ort``, ``import hagane as ort``
does as well.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from hagane import prob, rl
    from hagane.checking import Report, Shaped, check
    from hagane.gradients import gradient
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

# Modules that are attributes from the start and load when they are first used.
_MODULES = {
    "datasets": "hagane.datasets",
    "iterators": "hagane.iterators",
    "prob": "hagane.prob",
    "rl": "hagane.rl",
}

_PUBLIC = {
    "Report": "hagane.checking",
    "Shaped": "hagane.checking",
    "check": "hagane.checking",
    "gradient": "hagane.gradients",
    "ExecutionMode": "hagane.runtime",
    "GraphOptimizationLevel": "hagane.runtime",
    "IOBinding": "hagane.runtime",
    "InferenceSession": "hagane.runtime",
    "ModelMetadata": "hagane.runtime",
    "NodeArg": "hagane.runtime",
    "OrtValue": "hagane.runtime",
    "RunOptions": "hagane.runtime",
    "SessionOptions": "hagane.runtime",
    "get_available_providers": "hagane.runtime",
    "get_device": "hagane.runtime",
}

__all__ = [
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
    "check",
    "get_available_providers",
    "get_device",
    "gradient",
    "prob",
    "rl",
]


# What the graph library imports for arithmetic that hagane has its own of: 30 MiB and half a
# second, which are spent if somebody asks for an attribute of theirs.
_LATE = ("sympy", "onnx_ir._symbolic_shapes")


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


@contextmanager
def _late_imports() -> Iterator[None]:
    sys.meta_path.insert(0, _LateFinder)
    try:
        yield
    finally:
        sys.meta_path.remove(_LateFinder)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        module = importlib.import_module(_MODULES[name])
        globals()[name] = module
        return module
    if name in _PUBLIC:
        with _late_imports():
            value = getattr(importlib.import_module(_PUBLIC[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'hagane' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC, *_MODULES})
