"""Questions to PyTorch about types, devices, surroundings, and the elements of tensors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.computing import computed
from hagane.frontends.libraries.naming import real_named
from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torch.functions.numbers.elementwise import broadcast_typed
from hagane.frontends.libraries.torch.operands import (
    BOOL,
    FLOAT,
    at_least,
    cast,
    category,
    device_of,
    dtype_of,
    need_tensor,
    promote,
    same_dtype,
    sizes,
    to_tensor,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.sizes import Size
from hagane.frontends.python.values.values import (
    Device,
    DType,
    Fields,
    Host,
    Tensor,
    Truth,
    Value,
)
from hagane.ops.builder import op
from hagane.ops.functions.numbers import pairs
from hagane.ops.functions.tensors import ordering

_STATE = 5056  # bytes of the state of PyTorch's generator of random numbers


@TORCH.function("finfo", "iinfo")
def finfo(t: Core, dtype: Value = None) -> Value:
    """Return the limits of an element type."""
    found = dtype_of(dtype)
    if found.is_integer():
        return Host(Limits(int(found.bitwidth), *_integer_bounds(found)))
    if found == ir.DataType.BFLOAT16:
        return Host(Limits(16, -3.3895313892515355e38, 3.3895313892515355e38, 2**-7, 2**-126))
    info = np.finfo(found.numpy())
    low, high, eps, tiny = (float(v) for v in (info.min, info.max, info.eps, info.tiny))
    return Host(Limits(int(found.bitwidth), low, high, eps, tiny))


def _integer_bounds(dtype: ir.DataType) -> tuple[int, int]:
    info = np.iinfo(dtype.numpy())
    return int(info.min), int(info.max)


@dataclass(frozen=True)
class Limits:
    """The limits of an element type, as Python's numbers."""

    bits: int
    min: float
    max: float
    eps: float = 1.0
    tiny: float = 1.0

    @property
    def smallest_normal(self) -> float:
        """The smallest positive number with full precision."""
        return self.tiny


@TORCH.function("Size")
def torch_size(t: Core, values: Value = ()) -> Value:
    """Return a shape."""
    return Size(sizes(t, (values,)))


@TORCH.function("device")
def device(t: Core, name: Value, index: Value = None) -> Value:
    """Return a device."""
    return Device(device_of(name if index is None else f"{name}:{index}"))


@TORCH.function(
    "cuda.is_available",
    "backends.mps.is_available",
    "cuda.is_bf16_supported",
    "jit.is_tracing",
    "_C._get_tracing_state",
    "onnx.is_in_onnx_export",
    "compiler.is_compiling",
    "compiler.is_exporting",
    "compiler.is_dynamo_compiling",
    "_dynamo.is_compiling",
    "cuda.is_current_stream_capturing",
    "xpu.is_current_stream_capturing",
    "xpu.is_available",
    "mps.is_available",
    "accelerator.is_available",
    "jit.is_scripting",
    "fx._symbolic_trace.is_fx_tracing",
    "_C._are_functorch_transforms_active",
)
def is_available(t: Core) -> Value:
    """Return False: checked programs run on a plain CPU unless they name another device."""
    return False


@TORCH.function("distributed.is_available")
def has_processes(t: Core) -> Value:
    """Return whether this PyTorch can compute with several processes."""
    return _answer(t, "distributed.is_available", default=True)


@TORCH.function("distributed.is_initialized")
def is_one_of_several(t: Core) -> Value:
    """Return whether this process is one of a group; a program that is checked is none."""
    return _answer(t, "distributed.is_initialized", default=False)


@TORCH.function("is_inference_mode_enabled")
def is_inference_mode_enabled(t: Core) -> Value:
    """Return whether the call is within ``torch.inference_mode``."""
    return _answer(t, "is_inference_mode_enabled", default=False)


def _answer(t: Core, name: str, *, default: int) -> int:
    """Return what a function of PyTorch tells of this process, where a graph is made for it."""
    question = real_named(f"torch.{name}") if t.emit.builds else None
    if question is None:
        return default
    answer: int = question()
    t.observer.asked(question, question, answer)
    return answer


@TORCH.function("fx.experimental.proxy_tensor.get_proxy_mode")
def get_proxy_mode(t: Core) -> Value:
    """Return None: nothing records what the program does."""
    return None


@TORCH.function("_subclasses.fake_tensor.is_fake",
                "_C._functorch.is_functorch_wrapped_tensor", "_C._functorch.is_batchedtensor",
                "_C._functorch.is_gradtrackingtensor")  # fmt: skip
def is_traced(t: Core, x: Value = None) -> Value:
    """Return False: tensors hold numbers, and no other library records what is done with them."""
    return False


@TORCH.function("autograd.forward_ad.unpack_dual")
def unpack_dual(t: Core, tensor: Value, *, level: Value = None) -> Value:
    """Return a tensor and its tangent, which it has within ``dual_level`` alone."""
    return Fields((tensor, None), ("primal", "tangent"))


@TORCH.function("_dynamo.eval_frame.is_dynamo_supported", "_dynamo.is_dynamo_supported")
def is_dynamo_supported(t: Core) -> Value:
    """Return True, as on every machine that PyTorch compiles for."""
    return True


@TORCH.function("is_grad_enabled")
def is_grad_enabled(t: Core) -> Value:
    """Return whether the program computes with gradients now."""
    return not t.emit.still


@TORCH.function("are_deterministic_algorithms_enabled")
def are_deterministic_algorithms_enabled(t: Core) -> Value:
    """Return the setting of the process where a graph is made, else its default."""
    torch = sys.modules.get("torch") if t.emit.builds else None
    return torch is not None and bool(torch.are_deterministic_algorithms_enabled())


@TORCH.function("cuda.device_count", "cuda.current_device",
                "accelerator.device_count", "accelerator.current_device_index",
                "distributed.get_rank")  # fmt: skip
def zero(t: Core, *_: Value, **__: Value) -> Value:
    """Return 0: nothing of the kind on a plain CPU."""
    return 0


@TORCH.function("get_num_threads")
def get_num_threads(t: Core) -> Value:
    """Return the number of threads of PyTorch in the process where a graph is made, else 1."""
    return _answer(t, "get_num_threads", default=1)


@TORCH.function("distributed.get_world_size")
def one(t: Core, *_: Value, **__: Value) -> Value:
    """Return 1: one process."""
    return 1


@TORCH.function("cuda.synchronize", "cuda.empty_cache", "cuda.set_device", "cuda.manual_seed",
                "cuda.manual_seed_all", "set_printoptions", "set_float32_matmul_precision",
                "seed", "save", "set_default_device", "autograd.backward",
                "distributed.barrier", "set_rng_state", "random.set_rng_state",
                "cuda.set_rng_state", "cuda.set_rng_state_all", "accelerator.synchronize",
                "accelerator.current_accelerator", "accelerator.set_device_index",
                "accelerator.empty_cache")  # fmt: skip
def nothing(t: Core, *_: Value, **__: Value) -> Value:
    """Return None."""
    return None


@TORCH.function("get_rng_state", "random.get_rng_state")
def get_rng_state(t: Core) -> Tensor:
    """Return the state of PyTorch's generator."""
    return t.emit.new(ir.DataType.UINT8, (_STATE,), kind="torch.Tensor")


@TORCH.function("initial_seed", "random.initial_seed")
def initial_seed(t: Core) -> Value:
    """Return the number that the stream of random numbers began with."""
    return t.emit.fresh("seed")


@TORCH.layer("Generator")
class Generator:
    """A generator of random numbers."""

    @staticmethod
    def init(t: Core, device: Value = "cpu") -> dict[str, Value]:
        """Return the attributes."""
        return {"device": Device(device_of(device))}

    @staticmethod
    def manual_seed(t: Core, self: View, seed: Value) -> Value:
        """Set the seed; return the generator."""
        return self.instance()


@TORCH.function("get_default_dtype")
def get_default_dtype(t: Core) -> Value:
    """Return float32."""
    return DType(FLOAT)


@TORCH.function("get_default_device")
def get_default_device(t: Core) -> Value:
    """Return the processor."""
    return Device("cpu")


@TORCH.function("is_tensor")
def is_tensor(t: Core, value: Value) -> Value:
    """Return whether a value is a tensor of PyTorch."""
    return isinstance(value, Tensor) and value.kind == "torch.Tensor"


@TORCH.function("is_complex", methods=("is_complex",))
def is_complex(t: Core, input: Value) -> Value:
    """Return whether a tensor holds complex numbers."""
    return category(input.dtype) == 3


@TORCH.function("is_nonzero", methods=("is_nonzero",))
def is_nonzero(t: Core, input: Value) -> Value:
    """Return whether the only element is not zero."""
    return Truth(t.unknown_truth())


@TORCH.function("is_floating_point", methods=("is_floating_point",))
def is_floating_point(t: Core, input: Value) -> Value:
    """Return whether a tensor holds floats."""
    return category(input.dtype) == 2


@TORCH.function("_C._log_api_usage_once")
def log_api_usage_once(t: Core, event: Value) -> Value:
    """Return None: PyTorch counts how often its libraries are used."""
    return None


@TORCH.function("isclose", methods=("isclose",))
def isclose(
    t: Core, input: Value, other: Value, rtol: Value = 1e-5, atol: Value = 1e-8,
    equal_nan: Value = False,
) -> Tensor:  # fmt: skip
    """Return where two tensors are nearly equal."""
    same_dtype(t, need_tensor(t, input, "input"), need_tensor(t, other, "other"), "both tensors")
    at_least(t, rtol, 0, "rtol")
    at_least(t, atol, 0, "atol")
    a, b = promote(t, input, other)
    made = broadcast_typed(t, "IsClose", a, b, BOOL)
    if category(a.dtype) == 3 or not all(isinstance(n, int | float) for n in (rtol, atol)):
        return made
    if category(a.dtype) < 2:
        a, b = cast(t, a, ir.DataType.DOUBLE), cast(t, b, ir.DataType.DOUBLE)
    return computed(t, made, pairs.are_close, a, b, float(rtol), float(atol), bool(equal_nan))


def _both(truth: Any) -> tuple[Any, Any]:
    """Return a truth and its opposite, of which one always holds."""
    return truth, op("Not", truth)


def _question(name: str, function_of: Callable[[Any], Any]) -> None:
    def question(t: Core, input: Value) -> Tensor:
        x = need_tensor(t, input, "input")
        made = t.emit.typed("IsNaN", [x], BOOL, x.shape)
        if category(x.dtype) == 3:
            return made
        if name == "isreal" or (name == "isfinite" and category(x.dtype) < 2):
            return computed(t, made, lambda x: op("Or", *_both(op("Equal", x, x))), x)
        if name != "signbit" and category(x.dtype) < 2:
            return computed(t, made, lambda x: op("Not", op("Equal", x, x)), x)
        if x.dtype == BOOL:
            return made
        return computed(t, made, function_of, x)

    TORCH.function(name, methods=(name,))(question)


for _name, _asked in (
    ("isnan", lambda x: op("IsNaN", x)), ("isinf", lambda x: op("IsInf", x)),
    ("isposinf", lambda x: op("IsInf", x, detect_negative=0)),
    ("isneginf", lambda x: op("IsInf", x, detect_positive=0)),
    ("isfinite", lambda x: op("Not", op("Or", op("IsNaN", x), op("IsInf", x)))),
    ("isreal", lambda x: op("Equal", x, x)), ("signbit", pairs.is_negative),
):  # fmt: skip
    _question(_name, _asked)


@TORCH.function("isin")
def isin(
    t: Core, elements: Value, test_elements: Value, *, assume_unique: Value = False,
    invert: Value = False,
) -> Tensor:  # fmt: skip
    """Return which elements are among others."""
    x, others = promote(t, to_tensor(t, elements), to_tensor(t, test_elements))
    made = t.emit.typed("IsIn", [x], BOOL, x.shape)
    if category(x.dtype) == 3 or not isinstance(invert, bool) or x.shape is None:
        return made
    among = computed(t, made, ordering.is_among, x, others)
    return computed(t, made, lambda x: op("Not", x), among) if invert else among
