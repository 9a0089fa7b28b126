"""Attention of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hagane.frontends.libraries.computing import computed
from hagane.frontends.libraries.torch.functions.networks.dropping import dropout_of_weights
from hagane.frontends.libraries.torch.functions.numbers.elementwise import broadcast_shape
from hagane.frontends.libraries.torch.operands import (
    BOOL,
    FLOAT,
    need_tensor,
    same_dtype,
    shape_of,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.printing import show_dims
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.builder import interpreting, op, rank_of, size_of
from hagane.ops.functions.layers import attention
from hagane.ops.functions.layers.heads import repeat_heads
from hagane.ops.functions.numbers.elementary import squeeze, transpose, unsqueeze
from hagane.ops.functions.tensors.filling import filled
from hagane.symbolic import Dim, floordiv


@dataclass(frozen=True, slots=True)
class Projected:
    """The weights and biases of attention in several heads.

    Attributes:
        inner: Those of query, key and value.
        outer: Those of the result.
        more: Projected keys and values behind all others, (1, count, features).
        drop: Dropout of the weights of attention.
    """

    inner: tuple[tuple[Tensor, Tensor | None], ...]
    outer: tuple[Tensor, Tensor | None]
    more: tuple[Tensor, Tensor] | None = None
    drop: Callable[[Tensor], Tensor] | None = None


def further(
    t: Core, bias_k: Value, bias_v: Value, zeros: bool, weight: Tensor
) -> tuple[Tensor, Tensor] | None:
    """Return keys and values that attention has in addition: trained ones, then zeros."""
    with interpreting(t.emit):
        none = filled([1, 1, shape_of(t, weight)[0]], 0, weight.dtype) if zeros else None
        trained = [x if x is None else op("Reshape", x, [1, 1, -1]) for x in (bias_k, bias_v)]
        rows = [[x for x in (row, none) if x is not None] for row in trained]
        if not rows[0]:
            return None
        keys, values = (each[0] if len(each) == 1 else op("Concat", *each, axis=1) for each in rows)
    return keys, values


@TORCH.function("nn.functional.scaled_dot_product_attention")
def scaled_dot_product_attention(
    t: Core, query: Value, key: Value, value: Value, attn_mask: Value = None,
    dropout_p: Value = 0.0, is_causal: Value = False, scale: Value = None,
    enable_gqa: Value = False,
) -> Tensor:  # fmt: skip
    """Return attention: (..., queries, value features)."""
    q, k, v = (need_tensor(t, x, n) for x, n in ((query, "query"), (key, "key"), (value, "value")))
    same_dtype(t, q, k, "query and key")
    same_dtype(t, q, v, "query and value")
    qs, ks, vs = shape_of(t, q), shape_of(t, k), shape_of(t, v)
    if min(len(qs), len(ks), len(vs)) < 2:
        t.fail("rank", f"attention takes at least two axes, got {t.show(q)}", q)
    if t.emit.differ(qs[-1], ks[-1]):
        t.fail(
            "shape-mismatch",
            f"expected query and key with one feature size, got {t.show(q)} and {t.show(k)}",
            q,
            k,
        )
    if t.emit.differ(ks[-2], vs[-2]):
        t.fail(
            "shape-mismatch",
            f"expected as many keys as values, got {t.show(k)} and {t.show(v)}",
            k,
            v,
        )
    if enable_gqa:
        _check_groups(t, q, k, v)
    lead = _lead(t, [q, k, v], bool(enable_gqa))
    if isinstance(attn_mask, Tensor):
        if attn_mask.dtype not in (BOOL, FLOAT, q.dtype):
            t.fail(
                "dtype-mismatch",
                "expected a mask of bool, of float32 or of the query's type, got "
                f"{t.show(attn_mask)}",
                attn_mask,
            )
        scores = t.emit.new(FLOAT, (*lead, qs[-2], ks[-2]))
        shape = broadcast_shape(t, scores, attn_mask)
        if shape is not None and len(shape) != len(lead) + 2:
            t.fail("rank", f"the mask {t.show(attn_mask)} has more axes than the scores", attn_mask)
    made = t.emit.typed("Attention", [q, k, v], q.dtype, (*lead, qs[-2], vs[-1]))
    drop = dropout_of_weights(t, dropout_p) if dropout_p else None
    if dropout_p and drop is None:
        return made
    return computed(t, made, _attended, q, k, v, attn_mask, is_causal, scale, enable_gqa, drop)


def _attended(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float | None,
    grouped: bool, drop: Callable[[Tensor], Tensor] | None,
) -> Tensor:  # fmt: skip
    if grouped:
        heads = size_of(q, rank_of(q) - 3)
        k, v = (repeat_heads(x, floordiv(heads, size_of(x, rank_of(x) - 3))) for x in (k, v))
    added = attention.hiding(q, k, None if causal else mask, causal=causal)
    # (Under a causal mask, each query sees the first key.)
    found: Tensor = attention.attend(q, k, v, added, scale, safe=not causal, drop=drop)[0]
    return found


def _check_groups(t: Core, query: Tensor, key: Tensor, value: Tensor) -> None:
    for x in (query, key, value):
        if len(shape_of(t, x)) < 3:
            t.fail("rank", f"enable_gqa takes (..., heads, length, features), got {t.show(x)}", x)
    heads = shape_of(t, query)[-3]
    for x, name in ((key, "key"), (value, "value")):
        own = shape_of(t, x)[-3]
        if isinstance(heads, int) and isinstance(own, int) and (not own or heads % own):
            t.fail(
                "shape-mismatch",
                f"enable_gqa expects a number of heads of the {name} that divides the query's, "
                f"got {own} and {heads}",
                query,
                x,
            )


def _lead(t: Core, tensors: list[Tensor], grouped: bool) -> tuple[Dim, ...]:
    if grouped:
        return shape_of(t, tensors[0])[:-2]
    fronts = [t.emit.new(FLOAT, shape_of(t, x)[:-2]) for x in tensors]
    found: tuple[Dim, ...] = broadcast_shape(t, *fronts)
    return found


def multi_head_attention(
    t: Core, embed: Dim, heads: Value, batch_first: bool, query: Tensor, key: Tensor, value: Tensor,
    key_features: Dim, value_features: Dim, key_padding_mask: Value, attn_mask: Value,
    need_weights: Value, average: Value, parts: Projected | None = None, more: int = 0,
) -> Value:  # fmt: skip
    """Return the output of ``nn.MultiheadAttention`` and its weights (None if not asked for).

    Where ``parts`` is None, nothing can compute them. ``more`` keys are added to those given.
    """
    batched = len(shape_of(t, query)) == 3
    if len(shape_of(t, query)) not in (2, 3) or len(shape_of(t, key)) != len(shape_of(t, query)):
        t.fail(
            "rank",
            f"expected (length, batch, features), got {t.show(query)} and {t.show(key)}",
            query,
            key,
        )
    for x, expected, name in (
        (query, embed, "query"), (key, key_features, "key"), (value, value_features, "value"),
    ):  # fmt: skip
        if t.emit.differ(shape_of(t, x)[-1], expected):
            t.fail(
                "shape-mismatch",
                f"expected {expected} features in the last axis of the {name}, got {t.show(x)}",
                x,
            )
    first = 0 if not (batched and batch_first) else 1
    target, source = shape_of(t, query)[first], shape_of(t, key)[first]
    if t.emit.differ(source, shape_of(t, value)[first]):
        t.fail(
            "shape-mismatch",
            f"expected as many keys as values, got {t.show(key)} and {t.show(value)}",
            key,
            value,
        )
    batch: Dim = 1
    if batched:
        batch = shape_of(t, query)[1 - first]
        for x in (key, value):
            if t.emit.differ(shape_of(t, x)[1 - first], batch):
                t.fail(
                    "shape-mismatch",
                    f"expected one batch size, got {t.show(query)} and {t.show(x)}",
                    query,
                    x,
                    remedy="batch_first=True expects (batch, length, features)",
                )
    _check_masks(t, key_padding_mask, attn_mask, batch, heads, target, source, batched)
    out = t.emit.typed(
        "Attention", [query, key, value], query.dtype, (*shape_of(t, query)[:-1], embed)
    )
    if parts is not None:
        with interpreting(t.emit):
            return _in_heads(
                query, key, value, heads, parts, attn_mask, key_padding_mask, batched,
                bool(batch_first), bool(need_weights), bool(average),
            )  # fmt: skip
    if need_weights is False:
        return (out, None)
    middle = () if average else (heads,)
    front = (batch,) if batched else ()
    weights = t.emit.typed(
        "Attention", [query, key], query.dtype, (*front, *middle, target, source + more)
    )
    return (out, weights)


def _in_heads(
    query: Tensor, key: Tensor, value: Tensor, heads: int, parts: Projected, mask: Value,
    padding: Value, batched: bool, batch_first: bool, weighted: bool, average: bool,
) -> Value:  # fmt: skip
    order = [1, 0, 2] if batched and not batch_first else [0, 1, 2]
    given = [x if batched else unsqueeze(x, [0]) for x in (query, key, value)]
    q, k, v = (transpose(x, order) for x in given)
    if isinstance(padding, Tensor) and not batched:
        padding = unsqueeze(padding, [0])
    y, weights = attention.multi_head(
        q, k, v, heads, parts.inner, parts.outer, mask, padding, weighted=weighted,
        more=parts.more, drop=parts.drop,
    )  # fmt: skip
    y = transpose(y, order) if batched else squeeze(y, [0])
    if not weighted:
        return (y, None)
    weights = attention.mean_of_heads(weights) if average else weights
    return (y, weights if batched else squeeze(weights, [0]))


def _check_masks(
    t: Core,
    padding: Value,
    mask: Value,
    batch: Dim,
    heads: Value,
    target: Dim,
    source: Dim,
    batched: bool,
) -> None:
    if isinstance(padding, Tensor):
        expected = (batch, source) if batched else (source,)
        _same_shape(t, padding, expected, "key_padding_mask")
    if isinstance(mask, Tensor):
        if len(shape_of(t, mask)) == 3:
            _same_shape(t, mask, (batch * heads, target, source), "attn_mask")
        else:
            _same_shape(t, mask, (target, source), "attn_mask")


def _same_shape(t: Core, x: Tensor, expected: tuple[Dim, ...], what: str) -> None:
    shape = shape_of(t, x)
    if len(shape) != len(expected) or any(
        t.emit.differ(a, b) for a, b in zip(shape, expected, strict=True)
    ):
        t.fail(
            "shape-mismatch",
            f"expected '{what}' of shape {show_dims(expected)}, got {t.show(x)}",
            x,
        )


@TORCH.function("nn.functional.multi_head_attention_forward")
def multi_head_attention_forward(
    t: Core, query: Value, key: Value, value: Value, embed_dim_to_check: Value, num_heads: Value,
    in_proj_weight: Value, in_proj_bias: Value, bias_k: Value, bias_v: Value, add_zero_attn: Value,
    dropout_p: Value, out_proj_weight: Value, out_proj_bias: Value, training: Value = True,
    key_padding_mask: Value = None, need_weights: Value = True, attn_mask: Value = None,
    use_separate_proj_weight: Value = False, q_proj_weight: Value = None,
    k_proj_weight: Value = None, v_proj_weight: Value = None, static_k: Value = None,
    static_v: Value = None, average_attn_weights: Value = True, is_causal: Value = False,
) -> Value:  # fmt: skip
    """Return what ``nn.MultiheadAttention`` returns with ``batch_first=False``."""
    q, k, v = (
        need_tensor(t, x, name) for x, name in ((query, "query"), (key, "key"), (value, "value"))
    )
    more = (bias_k is not None) + bool(add_zero_attn)
    unseen = hides_more(more, is_causal, key_padding_mask, need_weights)
    given = static_k is not None or static_v is not None
    dropping = bool(training) and dropout_p != 0
    drop = dropout_of_weights(t, dropout_p) if dropping else None
    parts = None
    if not given and not unseen and (drop is not None or not dropping):
        if use_separate_proj_weight:
            weights = [q_proj_weight, k_proj_weight, v_proj_weight]
        else:
            weights = list(t.op("Split", in_proj_weight, axis=0, num_outputs=3, outputs=3))
        biases: list[Value] = [None] * 3
        if in_proj_bias is not None:
            biases = list(t.op("Split", in_proj_bias, axis=0, num_outputs=3, outputs=3))
        inner = tuple(zip(weights, biases, strict=True))
        rows = further(t, bias_k, bias_v, bool(add_zero_attn), out_proj_weight)
        parts = Projected(inner, (out_proj_weight, out_proj_bias), rows, drop)
    return multi_head_attention(
        t, embed_dim_to_check, num_heads, False, q, k, v, shape_of(t, k)[-1], shape_of(t, v)[-1],
        key_padding_mask, attn_mask, need_weights, average_attn_weights, parts, more,
    )  # fmt: skip


def hides_more(more: int, causal: Value, padding: Value, weighted: Value) -> bool:
    """Whether PyTorch hides the further keys, too: it then takes a causal mask of all keys."""
    return bool(more) and bool(causal) and padding is None and not weighted
