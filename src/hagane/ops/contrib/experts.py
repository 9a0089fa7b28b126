"""MoE, QMoE: mixtures of experts, of which a router chooses some for each token."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hagane.ops.builder import content_of, op, rank_of, size_of
from hagane.ops.context import InferContext
from hagane.ops.contrib.declare import DOMAIN, FLOAT, FLOATS, INT, declare
from hagane.ops.contrib.weights import unpack
from hagane.ops.definition import Array, OpDef
from hagane.ops.precision import composed_wide, widened
from hagane.ops.vjp import PACKED
from hagane.symbolic import ceildiv, product

_ACTIVATIONS = ("relu", "relu2", "gelu", "silu", "identity", "swiglu", "geglu")
_GATED = ("swiglu", "geglu")
_FAR = 1 << 40


# ---- reference ----


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _gelu(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))


_PLAIN: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0),
    "relu2": lambda x: np.maximum(x, 0) ** 2,
    "gelu": _gelu,
    "silu": lambda x: x * _sigmoid(x),
    "identity": lambda x: x,
}


def _activated(h: Array, gated: Array | None, a: Mapping[str, Any]) -> Array:
    kind, limit = a["activation_type"], a.get("swiglu_limit")
    if kind not in _GATED:
        return _PLAIN[kind](h)
    if gated is None:
        half = h.shape[-1] // 2
        h, gated = (
            (h[:, ::2], h[:, 1::2]) if a["swiglu_fusion"] == 1 else (h[:, :half], h[:, half:])
        )
    if kind == "geglu":
        return _gelu(h) * gated
    if limit is not None:
        h, gated = np.minimum(h, limit), np.clip(gated, -limit, limit)
    return h * _sigmoid(a["activation_alpha"] * h) * (gated + a["activation_beta"])


# A product of some rows with an expert's weights, and its bias; None where there are no weights.
_Layer = Callable[[int, Array], Array]


def _mixed(
    x: Array,
    router: Array,
    given: Array | None,
    layers: Sequence[_Layer | None],
    a: Mapping[str, Any],
) -> Array:
    """Return the sum of the chosen experts' results, for each token."""
    first, second, third = layers
    assert first is not None
    assert second is not None
    tokens = x.reshape(-1, x.shape[-1])
    chosen = np.argsort(-router, axis=-1, kind="stable")[:, : a["k"]]
    shares = given
    if shares is None:
        shares = np.exp(router - router.max(axis=-1, keepdims=True, initial=-np.inf))
        shares = shares / shares.sum(axis=-1, keepdims=True)
    shares = np.take_along_axis(shares, chosen, -1)
    if a["normalize_routing_weights"]:
        shares = shares / shares.sum(axis=-1, keepdims=True)
    y = np.zeros_like(tokens)
    for expert in np.unique(chosen):
        rows, slots = np.nonzero(chosen == expert)
        read = tokens[rows]
        gated = None if third is None else third(expert, read)
        made = second(expert, _activated(first(expert, read), gated, a))
        y[rows] += made * shares[rows, slots, None]
    return y.reshape(x.shape)


def _layer(weights: Array | None, bias: Array | None) -> _Layer | None:
    if weights is None:
        return None

    def apply(expert: int, rows: Array) -> Array:
        y = rows @ weights[expert].T
        return y if bias is None else y + bias[expert]

    return apply


@widened
def _moe(
    x: Array,
    router: Array,
    fc1: Array,
    bias1: Array | None,
    fc2: Array,
    bias2: Array | None = None,
    fc3: Array | None = None,
    bias3: Array | None = None,
    *,
    attributes: Mapping[str, Any],
) -> Array:
    layers = _layer(fc1, bias1), _layer(fc2, bias2), _layer(fc3, bias3)
    return _mixed(x, router, None, layers, attributes)


def _bits(a: Mapping[str, Any], layer: int) -> int:
    found: int = a.get(f"fc{layer}_expert_weight_bits") or a["expert_weight_bits"]
    return found


def _zeros(zero_points: Array, bits: int, columns: int, blocks: int, block_size: int) -> Array:
    """Return the zero point of each expert, column and block."""
    found = unpack(zero_points, bits)
    if block_size > 0:
        return found[..., :blocks]
    return found[:, :columns, None]


def _dequantized(
    weights: Array | None,
    scales: Array | None,
    zero_points: Array | None,
    bits: int,
    block_size: int,
) -> Array | None:
    if weights is None:
        return None
    assert scales is not None
    numbers = unpack(weights, bits).astype(np.float32)
    experts, columns, length = numbers.shape
    scales = scales.reshape(experts, columns, -1).astype(np.float32)
    blocks = scales.shape[-1]
    zero: Any = np.float32(1 << (bits - 1))
    if zero_points is not None:
        found = _zeros(zero_points, bits, columns, blocks, block_size)
        zero = found[..., None].astype(np.float32)
    parts = numbers.reshape(experts, columns, blocks, length // blocks)
    return ((parts - zero) * scales[..., None]).reshape(numbers.shape)


@widened
def _qmoe(x: Array, router: Array, *given: Array | None, attributes: Mapping[str, Any]) -> Array:
    taken = [*given, *[None] * (13 - len(given))]
    layers = []
    for n, (weights, scales, bias) in enumerate(zip(*[iter(taken[:9])] * 3, strict=True)):
        bits, block_size = _bits(attributes, n + 1), attributes["block_size"]
        real = _dequantized(weights, scales, taken[9 + n], bits, block_size)
        layers.append(_layer(real, bias))
    return _mixed(x, router, taken[12], layers, attributes)


# ---- composition ----


def _composed_activation(h: Any, gated: Any, a: Mapping[str, Any]) -> Any:
    kind, limit = a["activation_type"], a.get("swiglu_limit")
    if kind in _GATED:
        if gated is None and a["swiglu_fusion"] == 1:
            h, gated = (op("Slice", h, [i], [_FAR], [1], [2]) for i in (0, 1))
        elif gated is None:
            h, gated = op("Split", h, axis=1, num_outputs=2, outputs=2)
        if kind == "geglu":
            return op("Mul", op("Gelu", h, approximate="tanh"), gated)
        if limit is not None:
            high = float(limit)
            h, gated = op("Min", h, high), op("Clip", gated, -high, high)
        gate = op("Mul", h, op("Sigmoid", op("Mul", h, float(a["activation_alpha"]))))
        return op("Mul", gate, op("Add", gated, float(a["activation_beta"])))
    if kind == "gelu":
        return op("Gelu", h, approximate="tanh")
    if kind == "silu":
        return op("Mul", h, op("Sigmoid", h))
    if kind == "identity":
        return h
    y = op("Relu", h)
    return y if kind == "relu" else op("Mul", y, y)


def _composed(
    x: Any,
    router: Any,
    given: Any,
    layers: Sequence[Callable[[int, Any], Any] | None],
    a: Mapping[str, Any],
) -> Any:
    """Each expert computes the rows that chose it: none, for most of many experts."""
    first, second, third = layers
    experts, k = size_of(router, 1), a["k"]
    if not isinstance(experts, int) or first is None or second is None:
        return None
    tokens = x if rank_of(x) == 2 else op("Reshape", x, [-1, size_of(x, -1)])
    _, chosen = op("TopK", router, [k], axis=-1, outputs=2)
    shares = op("Softmax", router, axis=-1) if given is None else given
    shares = op("GatherElements", shares, chosen, axis=-1)
    if a["normalize_routing_weights"]:
        shares = op("Div", shares, op("ReduceSum", shares, [-1], keepdims=1))
    y = op("Mul", tokens, 0.0)
    for expert in range(experts):
        mine = op("Where", op("Equal", chosen, expert), shares, 0.0)
        share = op("ReduceSum", mine, [-1], keepdims=1)
        rows = op(
            "Reshape", op("NonZero", op("ReduceMax", op("Abs", mine), [-1], keepdims=0)), [-1]
        )
        read = op("Gather", tokens, rows, axis=0)
        gated = None if third is None else third(expert, read)
        made = second(expert, _composed_activation(first(expert, read), gated, a))
        made = op("Mul", made, op("Gather", share, rows, axis=0))
        y = op("ScatterND", y, op("Unsqueeze", rows, [-1]), made, reduction="add")
    return y if rank_of(x) == 2 else op("Reshape", y, op("Shape", x))


def _composed_layer(weights: Any, bias: Any) -> Callable[[int, Any], Any] | None:
    if weights is None:
        return None

    def apply(expert: int, rows: Any) -> Any:
        own = op("Transpose", op("Gather", weights, expert, axis=0), perm=[1, 0])
        y = op("MatMul", rows, own)
        return y if bias is None else op("Add", y, op("Gather", bias, expert, axis=0))

    return apply


@composed_wide
def _composed_moe(
    x: Any,
    router: Any,
    fc1: Any,
    bias1: Any,
    fc2: Any,
    bias2: Any = None,
    fc3: Any = None,
    bias3: Any = None,
    *,
    attributes: Mapping[str, Any],
) -> Any:
    pairs = (fc1, bias1), (fc2, bias2), (fc3, bias3)
    return _composed(x, router, None, [_composed_layer(*pair) for pair in pairs], attributes)


def _composed_bits(
    weights: Any, scales: Any, bias: Any, zero_points: Any, bits: int, block_size: int
) -> Callable[[int, Any], Any] | None:
    content, zeros = None if weights is None else content_of(weights), None
    if content is None or scales is None:
        return None
    experts, columns, length = content.shape[0], content.shape[1], content.shape[2] * 8 // bits
    size = block_size if block_size > 0 else length
    if zero_points is not None:
        found = content_of(zero_points)
        if found is None:
            return None
        zeros = _zeros(found, bits, columns, length // size, block_size).astype(np.float32)
    rows = content.reshape(experts, columns, length // size, -1)
    scales = op("Reshape", scales, [experts, -1])
    form = {"K": length, "N": columns, "bits": bits, "block_size": size, "domain": DOMAIN}

    def apply(expert: int, x: Any) -> Any:
        zero = None if zeros is None else zeros[expert].reshape(-1)
        own = op("Gather", scales, expert, axis=0)
        y = op("MatMulNBits", x, rows[expert], own, zero, **form)
        return y if bias is None else op("Add", y, op("Gather", bias, expert, axis=0))

    return apply


@composed_wide
def _composed_qmoe(x: Any, router: Any, *given: Any, attributes: Mapping[str, Any]) -> Any:
    taken = [*given, *[None] * (13 - len(given))]
    layers = []
    for n, (weights, scales, bias) in enumerate(zip(*[iter(taken[:9])] * 3, strict=True)):
        bits, block_size = _bits(attributes, n + 1), attributes["block_size"]
        layers.append(_composed_bits(weights, scales, bias, taken[9 + n], bits, block_size))
    if taken[6] is not None and layers[2] is None:
        return None
    return _composed(x, router, taken[12], layers, attributes)


# ---- types ----


def _check(ctx: InferContext, third: int) -> tuple[Any, Any, int]:
    """Return the experts, the columns of tokens, and how many columns a gated layer has for one."""
    shape, kind = ctx.shape(0), ctx.attr("activation_type")
    if len(shape) not in (2, 3):
        ctx.fail(f"expected tokens of 2 or 3 axes, got {len(shape)}")
    if kind not in _ACTIVATIONS:
        ctx.fail(f"expected activation_type of {', '.join(_ACTIVATIONS)}, got '{kind}'")
    for name in ("use_sparse_mixer", "swiglu_limit_after_activation"):
        if ctx.attr(name):
            ctx.fail(f"{name} is not supported")
    tokens, experts = ctx.shape(1, rank=2)
    ctx.unify(tokens, product(shape[:-1]), "expected a row of router_probs for each token")
    k = ctx.attr("k")
    if k < 1 or (isinstance(experts, int) and k > experts):
        ctx.fail(f"expected k from 1 to the {experts} experts, got {k}")
    fused = kind in _GATED and ctx.attr("swiglu_fusion") in (1, 2)
    if ctx.has(third) != (kind == "swiglu" and not fused) or (kind == "geglu" and not fused):
        ctx.fail(
            f"expected fc3 for 'swiglu' with swiglu_fusion=0 alone, got it "
            f"{'' if ctx.has(third) else 'not '}with '{kind}' and "
            f"swiglu_fusion={ctx.attr('swiglu_fusion')}"
        )
    return experts, shape[-1], 2 if fused else 1


def _infer_moe(ctx: InferContext) -> Sequence[Any]:
    experts, hidden, many = _check(ctx, 6)
    _, _, inner = ctx.shape(4, rank=3)
    ctx.fit(2, (experts, inner * many, hidden))
    ctx.fit(3, (experts, inner * many))
    ctx.fit(4, (experts, hidden, inner))
    ctx.fit(5, (experts, hidden))
    ctx.fit(6, (experts, inner, hidden))
    ctx.fit(7, (experts, inner))
    return [ctx.type(0)]


def _infer_qmoe(ctx: InferContext) -> Sequence[Any]:
    experts, hidden, many = _check(ctx, 8)
    if ctx.attr("quant_type") != "int" or ctx.attr("weights_prepacked") == 1:
        ctx.fail(
            f"expected quant_type='int' and weights as they are, got "
            f"'{ctx.attr('quant_type')}', weights_prepacked={ctx.attr('weights_prepacked')}"
        )
    rows = ctx.shape(2, rank=3)[1]
    inner, block = rows // many if isinstance(rows, int) else None, ctx.attr("block_size")
    sides = ((rows, hidden), (hidden, inner), (inner, hidden))
    for n, (columns, length) in enumerate(sides):
        bits = ctx.attr(f"fc{n + 1}_expert_weight_bits", 0) or ctx.attr("expert_weight_bits")
        if bits not in (2, 4, 8):
            ctx.fail(f"expected 2, 4 or 8 bits a number, got {bits}")
        if not isinstance(length, int) or not isinstance(columns, int):
            continue
        if length * bits % 8 or (block > 0 and length % block):
            ctx.fail(f"expected rows of whole bytes and blocks, got {length} of {bits} bits")
        if ctx.has(2 + 3 * n) and not ctx.has(3 + 3 * n):
            ctx.fail(f"expected scales of fc{n + 1}")
        blocks = length // block if block > 0 else 1
        ctx.fit(2 + 3 * n, (experts, columns, length * bits // 8))
        ctx.fit(3 + 3 * n, *[(experts, columns, blocks)] if block > 0 else [(experts, columns)])
        ctx.fit(4 + 3 * n, (experts, columns))
        zeros = (columns, ceildiv(blocks * bits, 8)) if block > 0 else (ceildiv(columns * bits, 8),)
        ctx.fit(11 + n, (experts, *zeros))
    ctx.fit(14, ctx.shape(1))
    return [ctx.type(0)]


_FORM = {
    "activation_alpha": 1.0,
    "activation_beta": 0.0,
    "activation_type": "relu",
    "k": 1,
    "normalize_routing_weights": 0,
    "swiglu_fusion": 0,
    "swiglu_limit": FLOAT,
    "swiglu_limit_after_activation": 0,
    "use_sparse_mixer": 0,
}
OPERATORS = (
    OpDef("MoE", _infer_moe, _moe, domain=DOMAIN, compose=_composed_moe),
    OpDef("QMoE", _infer_qmoe, _qmoe, domain=DOMAIN, compose=_composed_qmoe, vjp=PACKED),
)

SCHEMAS = {
    (DOMAIN, "MoE"): declare(
        "input:T, router_probs:T, fc1_experts_weights:T, fc1_experts_bias:T?, "
        "fc2_experts_weights:T, fc2_experts_bias:T?, fc3_experts_weights:T?, "
        "fc3_experts_bias:T? -> output:T",
        _FORM,
        T=FLOATS,
    ),
    (DOMAIN, "QMoE"): declare(
        "input:T, router_probs:T, fc1_experts_weights:T1, fc1_scales:T2?, fc1_experts_bias:T?, "
        "fc2_experts_weights:T1, fc2_scales:T2?, fc2_experts_bias:T?, fc3_experts_weights:T1?, "
        "fc3_scales:T2?, fc3_experts_bias:T?, fc1_zero_points:T1?, fc2_zero_points:T1?, "
        "fc3_zero_points:T1?, router_weights:T? -> output:T",
        {
            **_FORM,
            "accuracy_level": 0,
            "block_size": 0,
            "expert_weight_bits": 4,
            "fc1_expert_weight_bits": INT,
            "fc2_expert_weight_bits": INT,
            "fc3_expert_weight_bits": INT,
            "quant_type": "int",
            "weights_prepacked": -1,
        },
        T=FLOATS,
        T1="uint8",
        T2=FLOATS,
    ),
}
