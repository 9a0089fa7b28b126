"""Chainer's settings, reports, back ends and initializers."""

from __future__ import annotations

import sys
from functools import partial
from weakref import WeakKeyDictionary

import onnx_ir as ir

from hagane.frontends.libraries.chainer import programs
from hagane.frontends.libraries.chainer.operands import FLOAT, dtype_of
from hagane.frontends.libraries.chainer.table import CHAINER
from hagane.frontends.libraries.composed import programmed
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.values import (
    DType,
    Library,
    Tensor,
    Value,
)

_DEFAULTS: dict[str, Value] = {
    "train": True, "enable_backprop": True, "debug": False, "keep_graph_on_report": False,
    "type_check": True, "use_cudnn": "auto", "use_ideep": "never", "cudnn_deterministic": False,
    "autotune": False, "lazy_grad_sum": False, "in_recomputing": False, "schedule_func": None,
    "dtype": DType(FLOAT, "numpy"), "cudnn_fast_batch_normalization": False,
    "use_cudnn_tensor_core": "auto", "warn_nondeterministic": False,
}  # fmt: skip
# Where the settings of an interpretation lie in its heap, so that branches keep them apart.
_KEYS: WeakKeyDictionary[Core, int] = WeakKeyDictionary()


def settings(t: Core) -> dict[str, Value]:
    """Return the settings: those by default, or of the running Chainer where a graph is written."""
    key = _KEYS.get(t)
    if key is None or key not in t.heap.contents:
        running = getattr(sys.modules.get("chainer", sys.modules.get("hagane")), "config", None)
        held: dict[str, Value] = {}
        if running is not None and t.emit.builds:
            for name in ("train", "enable_backprop"):
                held[name] = bool(getattr(running, name))
                t.observer.asked(running, partial(getattr, running, name), held[name])
        key = _KEYS[t] = t.heap.new({**_DEFAULTS, **held})
    found: dict[str, Value] = t.heap[key]
    return found


def _setting(name: str) -> None:
    def read(t: Core) -> Value:
        return settings(t)[name]

    def write(t: Core, value: Value) -> None:
        settings(t)[name] = value
        _follow(t)

    for owner in ("config", "global_config"):
        CHAINER.names[f"chainer.{owner}.{name}"] = (read, write)


for _name in _DEFAULTS:
    _setting(_name)


@CHAINER.layer("using_config")
class UsingConfig:
    """A context in which one setting is another."""

    @staticmethod
    def init(t: Core, name: Value, value: Value, config: Value = None) -> dict[str, Value]:
        """Return the attributes."""
        return {"name": name, "value": value, "before": None}


@CHAINER.method("__enter__", of="chainer.using_config")
def enter(t: Core, self: Value) -> Value:
    """Change the setting."""
    content = t.heap[self]
    if isinstance(content["name"], str):
        content["before"] = settings(t).get(content["name"])
        settings(t)[content["name"]] = content["value"]
        _follow(t)
    return None


@CHAINER.method("__exit__", of="chainer.using_config")
def leave(t: Core, self: Value, *_: Value) -> Value:
    """Change the setting back."""
    content = t.heap[self]
    if isinstance(content["name"], str):
        settings(t)[content["name"]] = content["before"]
        _follow(t)
    return None


def _follow(t: Core) -> None:
    """Compute with gradients or without, by the setting."""
    t.emit.still = settings(t)["enable_backprop"] is False


def _mode(name: str, *, on: bool) -> None:
    @CHAINER.layer(name)
    class Mode:
        """A context with gradients or without."""

        @staticmethod
        def init(t: Core) -> dict[str, Value]:
            """Return the attributes."""
            return {"name": "enable_backprop", "value": on, "before": None}

    CHAINER.method("__enter__", of=f"chainer.{name}")(enter)
    CHAINER.method("__exit__", of=f"chainer.{name}")(leave)


_mode("no_backprop_mode", on=False)
_mode("force_backprop_mode", on=True)


@CHAINER.function(
    "report",
    "reporter.report",
    "set_debug",
    "print_runtime_info",
    "disable_experimental_feature_warning",
    "cuda.check_cuda_available",
    "backends.cuda.check_cuda_available",
)
def report(t: Core, *_: Value, **__: Value) -> Value:
    """Return None: it changes no type."""
    return None


@CHAINER.function("is_debug", "backends.cuda.available", "cuda.available")
def is_debug(t: Core) -> Value:
    """Return False."""
    return False


@CHAINER.function(
    "backend.get_array_module", "backends.cuda.get_array_module", "cuda.get_array_module",
    "get_array_module",
)  # fmt: skip
def get_array_module(t: Core, *_: Value) -> Value:
    """Return NumPy: checked programs run on the CPU."""
    return Library("numpy")


@CHAINER.function("backends.cuda.to_cpu", "cuda.to_cpu", "backends.cuda.to_gpu", "cuda.to_gpu",
                  "backend.to_chx", "backend.from_chx", "utils.force_array")  # fmt: skip
def to_cpu(t: Core, array: Value, *_: Value, **__: Value) -> Value:
    """Return the array itself."""
    return array


@CHAINER.function("get_dtype")
def get_dtype(t: Core, dtype: Value = None, map_mixed16: Value = None) -> Value:
    """Return the element type, that of the settings without one."""
    return DType(dtype_of(t, dtype, FLOAT), "numpy")


def _initializer(name: str) -> None:
    def init(t: Core, *_: Value, **keywords: Value) -> dict[str, Value]:
        dtype = keywords.get("dtype")
        return {"dtype": None if dtype is None else DType(dtype_of(t, dtype, FLOAT), "numpy")}

    cls = type(name, (), {"init": staticmethod(init)})
    CHAINER.layer(f"initializers.{name}", base="chainer.Initializer")(cls)
    CHAINER.bases[f"chainer.initializers.{name}"] = "chainer.Initializer"


for _name in (
    "Normal",
    "LeCunNormal",
    "GlorotNormal",
    "HeNormal",
    "Uniform",
    "LeCunUniform",
    "GlorotUniform",
    "HeUniform",
    "Zero",
    "One",
    "Constant",
    "Identity",
    "Orthogonal",
    "NaN",
    "UpsamplingDeconvFilter",
    "DownsamplingConvFilter",
):
    _initializer(_name)


@CHAINER.layer("Initializer", "initializer.Initializer")
class Initializer:
    """The base class of initializers."""

    @staticmethod
    def init(t: Core, dtype: Value = None) -> dict[str, Value]:
        """Return the attributes."""
        return {"dtype": dtype}

    @staticmethod
    def forward(t: Core, self: Value, array: Value) -> Value:
        """Fill an array."""
        return None


def initial_dtype(t: Core, initializer: Value) -> ir.DataType:
    """Return the element type that an initializer gives a parameter."""
    if isinstance(initializer, Tensor):
        return initializer.dtype
    if isinstance(initializer, Instance):
        dtype = t.heap[initializer].get("dtype")
        return dtype_of(t, dtype, FLOAT)
    return FLOAT


for _name in ("dataset.concat_examples", "dataset.convert.concat_examples"):
    programmed(CHAINER, _name, programs.concat_examples)
for _name in ("get_device", "backend.get_device"):
    programmed(CHAINER, _name, programs.get_device)
