"""``torch.autocast``: which functions compute in 16 bits, in 32, or in the widest type they get.

The lists are those of PyTorch 2.13 ("Automatic Mixed Precision package", op references), by the
functions that programs call. Elements of 64 bits and tensors elsewhere stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import onnx_ir as ir

from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torch.operands import FLOAT, cast, dtype_of, promoted
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.objects import Instance, Wrapped
from hagane.frontends.python.values.values import (
    Device,
    DType,
    Tensor,
    Unknown,
    Value,
)

_PLACES = ("cpu", "cuda")
_SMALL = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
_CONVOLUTIONS = tuple(f"{kind}{n}d" for kind in ("conv", "conv_transpose") for n in (1, 2, 3))
_PRODUCTS = (
    "matmul", "mm", "bmm", "addmm", "addbmm", "baddbmm", "linear", "einsum", "prelu", "vecdot",
    "scaled_dot_product_attention", "multi_head_attention_forward", *_CONVOLUTIONS,
)  # fmt: skip
_LOSSES = (
    "mse_loss", "nll_loss", "cross_entropy", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div",
    "cosine_embedding_loss", "hinge_embedding_loss", "poisson_nll_loss", "margin_ranking_loss",
    "soft_margin_loss", "triplet_margin_loss", "multi_margin_loss", "multilabel_margin_loss",
    "binary_cross_entropy_with_logits",
)  # fmt: skip
LOWER = {
    "cpu": frozenset(_PRODUCTS),
    "cuda": frozenset((*_PRODUCTS, "mv", "addmv", "addr", "chain_matmul", "multi_dot", "lstm_cell",
                       "gru_cell")),
}  # fmt: skip
WIDER = {
    "cpu": frozenset((*_LOSSES, "binary_cross_entropy", "ctc_loss", "grid_sample", "prod",
                      "quantile", "nanquantile", "cdist", "trace", "avg_pool3d", "max_pool3d",
                      "adaptive_avg_pool3d", "stft", "inverse", "cholesky", "pinverse")),
    "cuda": frozenset((*_LOSSES, "acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10",
                       "log2", "log1p", "reciprocal", "rsqrt", "sinh", "tan", "pow", "softplus",
                       "layer_norm", "group_norm", "norm", "cosine_similarity", "dist", "cdist",
                       "pdist", "renorm", "logsumexp", "prod", "softmax", "log_softmax", "cumprod",
                       "cumsum", "sum", "vector_norm", "matrix_norm")),
}  # fmt: skip
WIDEST = {
    "cpu": frozenset(("cat", "stack", "concat", "index_copy")),
    "cuda": frozenset(("cat", "stack", "concat", "addcdiv", "addcmul", "atan2", "bilinear",
                       "cross", "dot", "grid_sample", "index_put", "tensordot", "scatter_add")),
}  # fmt: skip
# Layers whose weights are cast with their inputs.
_LAYERS = frozenset(
    f"torch.nn.{name}.forward"
    for name in ("Linear", "Bilinear", "MultiheadAttention",
                 *(f"{kind}{n}d" for kind in ("Conv", "ConvTranspose") for n in (1, 2, 3)))
)  # fmt: skip
_RECURRENT = frozenset(f"torch.nn.{name}.forward" for name in ("LSTM", "GRU", "RNN"))
_WEIGHTS = ("weight", "bias", "in_proj_weight", "in_proj_bias", "q_proj_weight", "k_proj_weight",
            "v_proj_weight", "bias_k", "bias_v", "out_proj")  # fmt: skip
# Normalisations compute in 32 bits and return the type of their input.
_MIXED = frozenset(("layer_norm", "batch_norm", "group_norm", "instance_norm", "rms_norm"))


def _key(place: str) -> str:
    return f"<autocast {place}>"


def _now(t: Core, place: str) -> Value:
    """Return the element type that functions on a device cast to; None if they don't."""
    return t.settle(t.heap[t.variables].get(_key(place)))


def _dtype(dtype: ir.DataType) -> Value:
    """Return an element type as the one object that stands for it."""
    return next(v for v in TORCH.constants.values() if isinstance(v, DType) and v.dtype == dtype)


@TORCH.layer("autocast", "amp.autocast", "amp.autocast_mode.autocast", "cuda.amp.autocast",
             "cpu.amp.autocast")  # fmt: skip
class Autocast:
    """A context in which some functions cast their arguments."""

    @staticmethod
    def init(
        t: Core, device_type: Value = "cuda", dtype: Value = None, enabled: Value = True,
        cache_enabled: Value = None,
    ) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        if isinstance(device_type, bool):  # torch.cuda.amp.autocast(enabled)
            device_type, enabled = "cuda", device_type
        if isinstance(device_type, Device):
            t.fail("type", "autocast: expected a text as device_type, got a device",
                   remedy="pass its .type")  # fmt: skip
        place = str(device_type).partition(":")[0]
        default = ir.DataType.BFLOAT16 if place == "cpu" else ir.DataType.FLOAT16
        wanted = DType(dtype_of(dtype, default))
        if not isinstance(enabled, bool):
            enabled = t.lost("autocast of which only a run knows whether it is enabled")
        return {"place": place, "wanted": wanted, "enabled": enabled, "outer": ()}

    @staticmethod
    def __enter__(t: Core, self: View) -> Value:
        content = t.heap[self.instance()]
        key = _key(content["place"])
        content["outer"] = (*content["outer"], t.heap[t.variables].get(key))
        on = content["enabled"] is True
        t.heap[t.variables][key] = _dtype(content["wanted"].dtype) if on else None
        return self.instance()

    @staticmethod
    def __exit__(t: Core, self: View, *_: Value) -> Value:
        content = t.heap[self.instance()]
        if content["outer"]:
            t.heap[t.variables][_key(content["place"])] = content["outer"][-1]
            content["outer"] = content["outer"][:-1]
        return None

    @staticmethod
    def __call__(t: Core, self: View, function: Value) -> Value:
        """Return a function that runs within the context."""
        return Wrapped("within", function, (self.instance(),))


@TORCH.function("is_autocast_cpu_enabled")
def is_autocast_cpu_enabled(t: Core) -> Value:
    """Return whether a context of the CPU is entered."""
    return is_autocast_enabled(t, "cpu")


@TORCH.function("is_autocast_enabled")
def is_autocast_enabled(t: Core, device_type: Value = "cuda") -> Value:
    """Return whether a context is entered."""
    return _now(t, str(device_type)) is not None


@TORCH.function("get_autocast_dtype", "get_autocast_gpu_dtype")
def get_autocast_dtype(t: Core, device_type: Value = "cuda") -> Value:
    """Return the element type of the context, or the one that it would have."""
    cpu = str(device_type) == "cpu"
    default = ir.DataType.BFLOAT16 if cpu else ir.DataType.FLOAT16
    return _now(t, str(device_type)) or DType(default)


@TORCH.function("get_autocast_cpu_dtype")
def get_autocast_cpu_dtype(t: Core) -> Value:
    """Return the element type of the context of the CPU, or the one that it would have."""
    return get_autocast_dtype(t, "cpu")


def casted(
    t: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> tuple[list[Value], dict[str, Value], ir.DataType | None]:
    """Return the arguments of a function in the present context, and the type of its result."""
    given, named = list(arguments), dict(keywords)
    state = {place: _now(t, place) for place in _PLACES}
    if all(found is None for found in state.values()):
        return given, named, None
    tensors = _tensors([*given, *named.values()])
    places = {x.device.partition(":")[0] for x in tensors}
    place = next((p for p in _PLACES if p in places and state[p] is not None), "")
    if not place:
        return given, named, None
    short = name.rpartition(".")[2]
    if not isinstance(state[place], DType):
        t.lost("autocast that is on in one of two branches only")
        return given, named, None
    small: ir.DataType = state[place].dtype
    if short == "forward":
        return _layer(t, name, given, named, small, place)
    if short in LOWER[place]:
        return _each(t, given, named, small) if _fits(tensors) else (given, named, None)
    if short in WIDER[place]:
        return _each(t, given, named, FLOAT)
    if short in WIDEST[place]:
        wide = small
        for x in tensors:
            wide = promoted(wide, x.dtype) if _casts(x) else wide
        return _each(t, given, named, wide)
    if short in _MIXED and tensors and tensors[0].dtype in _SMALL:
        kept = tensors[0].dtype
        return (*_each(t, given, named, FLOAT)[:2], kept)
    return given, named, None


def _layer(
    t: Core, name: str, given: list[Value], named: dict[str, Value], small: ir.DataType, place: str
) -> tuple[list[Value], dict[str, Value], ir.DataType | None]:
    """Return the same for a layer, which has weights of 32 bits."""
    if name in _LAYERS and _fits(_tensors([*given, *named.values()])):
        return _each(t, given, named, small)
    if name in _RECURRENT and place == "cuda":
        return (*_each(t, given, named, FLOAT)[:2], small)
    if name in _RECURRENT:
        t.lost("a recurrent layer under autocast on a CPU, which casts where oneDNN has it")
        return given, named, None
    tensors = _tensors(given)
    if "Norm" in name and tensors and tensors[0].dtype in _SMALL:
        wide = place == "cuda" and ("LayerNorm" in name or "GroupNorm" in name)
        return (*_each(t, given, named, FLOAT)[:2], None if wide else tensors[0].dtype)
    return given, named, None


@contextmanager
def narrowed(t: Core, name: str, layer: Instance) -> Iterator[None]:
    """Let a layer see its weights in the element type of the context, while it is called.

    Args:
        t: The interpreter.
        name: The method that is called.
        layer: Whose weights, and those of layers in it, are cast; others than the layers whose
            weights PyTorch casts stay as they are.
    """
    kept: list[tuple[dict[str, Value], dict[str, Value]]] = []
    if name in _LAYERS:
        place, now = next(((p, x) for p in _PLACES if (x := _now(t, p)) is not None), ("", None))
        if isinstance(now, DType):
            _narrow(t, layer, now.dtype, place, kept)
    try:
        yield
    finally:
        for content, before in kept:
            content.clear()
            content.update(before)


def _narrow(
    t: Core, layer: Instance, dtype: ir.DataType, place: str,
    kept: list[tuple[dict[str, Value], dict[str, Value]]],
) -> None:  # fmt: skip
    content = t.heap[layer]
    kept.append((content, dict(content)))
    for name in _WEIGHTS:
        held = t.settle(t.find_attribute(layer, name))
        if isinstance(held, Instance):
            _narrow(t, held, dtype, place, kept)
        elif isinstance(held, Tensor) and _casts(held) and held.device.startswith(place):
            content[name] = cast(t, held, dtype)


def _fits(tensors: Sequence[Tensor]) -> bool:
    return not any(x.dtype == ir.DataType.DOUBLE for x in tensors)


def _tensors(values: Sequence[Value]) -> list[Tensor]:
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif type(value) in (list, tuple):
            found += _tensors(value)
    return found


def _casts(x: Tensor) -> bool:
    return x.dtype in (FLOAT, *_SMALL)


def _each(
    t: Core, given: list[Value], named: dict[str, Value], dtype: ir.DataType
) -> tuple[list[Value], dict[str, Value], None]:
    def one(value: Any) -> Any:
        if isinstance(value, Tensor) and _casts(value) and value.dtype != dtype:
            made = cast(t, value, dtype)
            made.origin = value.origin
            return made
        return type(value)(map(one, value)) if type(value) in (list, tuple) else value

    return [one(x) for x in given], {key: one(x) for key, x in named.items()}, None


def result_of(t: Core, found: Value, dtype: ir.DataType | None) -> Value:
    """Return a result cast to the element type that goes with the context."""
    if dtype is None or isinstance(found, Unknown):
        return found
    if type(found) in (tuple, list):
        return type(found)(result_of(t, one, dtype) for one in found)
    return cast(t, found, dtype) if isinstance(found, Tensor) and _casts(found) else found
