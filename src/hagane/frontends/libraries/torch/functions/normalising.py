"""Normalisation, dropout, embeddings and attention of PyTorch."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.computing import built, computed
from hagane.frontends.libraries.torch.functions.elementwise import broadcast_shape
from hagane.frontends.libraries.torch.operands import (
    BOOL,
    FLOAT,
    INT64,
    axis,
    need_float,
    need_tensor,
    same_dtype,
    shape_of,
    sizes,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.libraries.writing import renew
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.memory import own
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.builder import interpreting, op, size_of
from hagane.ops.functions.images import images
from hagane.ops.functions.layers import attention, drawing
from hagane.ops.functions.layers.heads import repeat_heads
from hagane.ops.functions.numbers import activations
from hagane.ops.functions.numbers.elementary import add, cast, div, squeeze, transpose, unsqueeze
from hagane.ops.functions.sums import normalizing
from hagane.ops.functions.tensors import filling
from hagane.symbolic import Dim, floordiv, product
from hagane.symbolic.logic import either
from hagane.symbolic.path import Verdict


def channels_fit(t: Core, x: Tensor, count: Dim, what: str) -> None:
    """Fail unless axis 1 has ``count`` channels."""
    shape = shape_of(t, x)
    if len(shape) < 2:
        t.fail("rank", f"{what} expects (batch, channels, ...), got {t.show(x)}", x)
    if t.emit.differ(shape[1], count):
        t.fail(
            "shape-mismatch",
            f"{what} expects {count} channels in axis 1, got {shape[1]}: {t.show(x)}",
            x,
        )


@TORCH.function("nn.functional.batch_norm", "batch_norm")
def batch_norm(
    t: Core, input: Value, running_mean: Value = None, running_var: Value = None,
    weight: Value = None, bias: Value = None, training: Value = False, momentum: Value = 0.1,
    eps: Value = 1e-5,
) -> Tensor:  # fmt: skip
    """Return the input normalised a channel; in training by its own mean and variance."""
    x = need_tensor(t, input, "input")
    need_float(t, x, "input")
    for other in (running_mean, running_var, weight, bias):
        if isinstance(other, Tensor):
            channels_fit(t, x, shape_of(t, other, 1)[0], "batch_norm")
    if training:
        _need_several(t, x, shape_of(t, x)[:1] + shape_of(t, x)[2:])
    made = t.emit.typed("BatchNormalization", [x], x.dtype, x.shape)
    if training and isinstance(running_mean, Tensor):
        _note_moments(t, x, running_mean, running_var, momentum)
    mean, variance = (None, None) if training else (running_mean, running_var)
    return computed(t, made, normalizing.batch_norm, x, mean, variance, weight, bias, eps)


def _need_several(t: Core, x: Tensor, counts: Sequence[Dim]) -> None:
    """Expect more than one value for each mean and variance."""
    total = product(counts)
    if total == 1:
        t.fail(
            "value", f"expected several values for each mean, got {t.show(x)}", x,
            remedy="normalise larger batches, or call eval() first",
        )  # fmt: skip
    if isinstance(total, int) or not all(t.knowledge.is_nonnegative(c - 1) for c in counts):
        return
    claim = functools.reduce(either, [t.knowledge.less(1, count) for count in counts])
    if t.knowledge.ask(claim).verdict is not Verdict.PROVED:
        t.emit.suppose(claim, f"{total} >= 2 (values for each mean)")


def _note_moments(
    t: Core, x: Tensor, mean: Tensor, variance: Tensor, momentum: Value, *, samples: bool = False
) -> None:
    """Note how the running mean and variance change; ``samples`` have moments of their own."""
    if not t.emit.builds:
        return
    if not isinstance(momentum, int | float | Tensor):
        raise CheckError("capture", f"expected a number as momentum, got {t.show(momentum)}")
    with interpreting(t.emit):
        found = normalizing.batch_moments(x, samples=samples)
    for buffer, of_batch in zip((mean, variance), found, strict=True):
        renew(t, buffer, partial(normalizing.moved, new=of_batch, share=momentum))


def share_of_batch(t: Core, count: Value) -> Value:
    """Return the share of a batch in the mean over all, and count it; 0 where nothing counts.

    Args:
        t: The interpreter.
        count: The number of the batches before, an integer tensor.
    """
    found = count_batch(t, count)
    if found is None:
        return 0.0
    with interpreting(t.emit):
        return div(1.0, cast(found, FLOAT))


def count_batch(t: Core, count: Value) -> Tensor | None:
    """Count a batch, and return the number with it; None where nothing counts.

    Args:
        t: The interpreter.
        count: The number of the batches before, an integer tensor.
    """
    if not t.emit.builds or not isinstance(count, Tensor):
        return None
    open_count = replace(count, known=None)  # another one in each run
    found: list[Any] = []

    def more(old: Tensor) -> Any:
        found.append(add(open_count if old is count else old, 1))
        return found[0]

    renew(t, count, more)
    made: Tensor = found[0]
    return made


@TORCH.function("nn.functional.instance_norm")
def instance_norm(
    t: Core, input: Value, running_mean: Value = None, running_var: Value = None,
    weight: Value = None, bias: Value = None, use_input_stats: Value = True, momentum: Value = 0.1,
    eps: Value = 1e-5,
) -> Tensor:  # fmt: skip
    """Return each channel of each sample normalised."""
    if not use_input_stats:
        return batch_norm(t, input, running_mean, running_var, weight, bias, eps=eps)
    x = need_tensor(t, input, "input")
    _need_several(t, x, shape_of(t, x)[2:])
    for other in (running_mean, running_var):
        if isinstance(other, Tensor):
            channels_fit(t, x, shape_of(t, other, 1)[0], "instance_norm")
    if isinstance(running_mean, Tensor):
        _note_moments(t, x, running_mean, running_var, momentum, samples=True)
    made = batch_norm(t, x, None, None, weight, bias, True, eps=eps)
    return computed(t, made, normalizing.instance_norm, x, weight, bias, eps)


@TORCH.function("nn.functional.layer_norm", "layer_norm")
def layer_norm(
    t: Core, input: Value, normalized_shape: Value, weight: Value = None, bias: Value = None,
    eps: Value = 1e-5,
) -> Tensor:  # fmt: skip
    """Return the input normalised over its last axes."""
    x, count = _last_axes(t, input, normalized_shape, weight)
    made = t.emit.typed("LayerNormalization", [x], x.dtype, x.shape)
    return computed(t, made, normalizing.layer_norm, x, count, weight, bias, eps)


@TORCH.function("nn.functional.rms_norm", "rms_norm")
def rms_norm(
    t: Core, input: Value, normalized_shape: Value, weight: Value = None, eps: Value = None
) -> Tensor:
    """Return the input over its root mean square along the last axes."""
    x, count = _last_axes(t, input, normalized_shape, weight)
    made = t.emit.typed("RMSNormalization", [x], x.dtype, x.shape)
    if eps is None:
        eps = float(np.finfo(x.dtype.numpy()).eps)
    return computed(t, made, normalizing.rms_norm, x, count, weight, eps)


def _last_axes(t: Core, input: Value, normalized: Value, weight: Value) -> tuple[Tensor, int]:
    """Return the input, and how many of its last axes are normalised."""
    x = need_tensor(t, input, "input")
    need_float(t, x, "input")
    if isinstance(weight, Tensor):
        same_dtype(t, x, weight, "input and weight")
    last = sizes(t, (normalized if isinstance(normalized, tuple | list) else (normalized,),))
    shape = shape_of(t, x)
    if len(shape) < len(last) or any(
        t.emit.differ(a, b) for a, b in zip(shape[len(shape) - len(last) :], last, strict=True)
    ):
        t.fail("shape-mismatch", f"expected the last axes to be {_text(last)}, got {t.show(x)}", x)
    return x, len(last)


def _text(dims: list[Dim]) -> str:
    return f"({', '.join(map(str, dims))}{',' if len(dims) == 1 else ''})"


@TORCH.function("nn.functional.group_norm", "group_norm")
def group_norm(
    t: Core,
    input: Value,
    num_groups: Value,
    weight: Value = None,
    bias: Value = None,
    eps: Value = 1e-5,
) -> Tensor:
    """Return the input normalised over groups of channels."""
    x = need_tensor(t, input, "input")
    need_float(t, x, "input")
    channels = shape_of(t, x)[1]
    if t.emit.indivisible(channels, num_groups, "channels in groups"):
        t.fail(
            "shape-mismatch",
            f"expected channels divisible by {num_groups} groups, got {t.show(x)}",
            x,
        )
    if isinstance(weight, Tensor):
        channels_fit(t, x, shape_of(t, weight, 1)[0], "group_norm")
    batch, _, *space = shape_of(t, x)
    _need_several(t, x, (batch, floordiv(channels, num_groups), *space))
    made = t.emit.typed("GroupNormalization", [x], x.dtype, x.shape)
    return computed(t, made, normalizing.group_norm, x, num_groups, weight, bias, eps)


@TORCH.function("nn.functional.local_response_norm")
def local_response_norm(
    t: Core, input: Value, size: Value, alpha: Value = 1e-4, beta: Value = 0.75, k: Value = 1.0
) -> Tensor:
    """Return the input normalised over neighbouring channels."""
    x = need_tensor(t, input, "input")
    numbers = [alpha, beta, k]
    if not isinstance(size, int) or not all(isinstance(n, int | float) for n in numbers):
        return t.emit.typed("LRN", [x], x.dtype, x.shape)
    return built(t, x, images.response_normalized, x, size, *map(float, numbers))


@dataclass(frozen=True, slots=True)
class Projected:
    """The weights and biases of attention in several heads.

    Attributes:
        inner: Those of query, key and value.
        outer: Those of the result.
    """

    inner: tuple[tuple[Tensor, Tensor | None], ...]
    outer: tuple[Tensor, Tensor | None]


def _dropout(
    names: Sequence[str], *, channels: bool = False, lone: int = 0, alpha: bool = False
) -> None:
    """Register a function that drops elements, or channels as a whole.

    Args:
        names: Its names.
        channels: Whether the elements of a channel are dropped together.
        lone: The rank of an input without a batch, whose channels lie in the first axis.
        alpha: Whether it keeps mean and variance, as ``alpha_dropout`` does.
    """

    def function(
        t: Core, input: Value, p: Value = 0.5, training: Value = True, inplace: Value = False, *,
        train: Value = None,
    ) -> Tensor:  # fmt: skip
        x = need_tensor(t, input, "input")
        if isinstance(p, int | float) and not 0 <= p <= 1:
            t.fail("value", f"expected a dropout probability between 0 and 1, got {p}")
        typed = t.emit.typed("Dropout", [x], x.dtype, x.shape)
        if not (training if train is None else train) or p == 0:
            return computed(t, typed, lambda: op("Identity", x))
        if t.emit.training is None or not t.emit.builds or not isinstance(p, float | int):
            return typed
        seed, number = t.emit.draw()
        rank = len(shape_of(t, x))
        axes = (1 if rank == lone else min(2, rank)) if channels else None
        dropped = drawing.alpha_dropped if alpha else drawing.dropped
        return computed(t, typed, lambda: dropped(x, float(p), seed, number, axes))

    TORCH.function(*names)(function)


_dropout(("dropout", "nn.functional.dropout"))
_dropout(("feature_dropout", "nn.functional.dropout2d"), channels=True)
_dropout(("nn.functional.dropout1d",), channels=True, lone=2)
_dropout(("nn.functional.dropout3d",), channels=True, lone=4)
_dropout(("alpha_dropout", "nn.functional.alpha_dropout"), alpha=True)
_dropout(
    ("feature_alpha_dropout", "nn.functional.feature_alpha_dropout"), channels=True, alpha=True
)


@TORCH.function("nn.functional.glu")
def glu(t: Core, input: Value, dim: Value = -1) -> Tensor:
    """Return one half of an axis gated by the other."""
    x = need_tensor(t, input, "input")
    shape = list(shape_of(t, x))
    place = axis(t, dim, len(shape), x)
    half = floordiv(shape[place], 2)
    if t.emit.indivisible(shape[place], 2, f"axis {place}, which glu halves"):
        t.fail("shape-mismatch", f"glu halves axis {place}, which is odd: {t.show(x)}", x)
    shape[place] = half
    made = t.emit.typed("Glu", [x], x.dtype, tuple(shape))
    return computed(t, made, activations.glu, x, place)


@TORCH.function("nn.functional.embedding", "embedding")
def embedding(
    t: Core, input: Value, weight: Value, padding_idx: Value = None, max_norm: Value = None,
    norm_type: Value = 2.0, scale_grad_by_freq: Value = False, sparse: Value = False,
) -> Tensor:  # fmt: skip
    """Return rows of the weight: (*input, features); padding has no gradient."""
    x, w = need_tensor(t, input, "input"), need_tensor(t, weight, "weight")
    if x.dtype not in (INT64, ir.DataType.INT32):
        t.fail(
            "dtype-mismatch",
            f"an embedding takes int64 or int32 indices, got {t.show(x)}",
            x,
            remedy="convert it with .long()",
        )
    _known_rows(t, x, w)
    if max_norm is not None:  # which changes the weight
        made_shape = (*shape_of(t, x), *shape_of(t, w)[1:])
        return t.emit.typed("Embedding", [w], w.dtype, made_shape)
    made: Tensor = t.op("Gather", w, x, axis=0)
    if t.emit.training is not None:
        if scale_grad_by_freq:
            t.fail("capture", "an embedding with scale_grad_by_freq cannot be trained in a "
                   "compiled step: gradients are not divided by counts", w)  # fmt: skip
        if isinstance(padding_idx, int):
            row = padding_idx if padding_idx >= 0 else padding_idx + shape_of(t, w)[0]
            padded = t.op("Equal", x, np.array(row, x.dtype.numpy()))
            made = t.op("Where", t.op("Unsqueeze", padded, [-1]), t.emit.stopped(made), made)
    if made.value is not None:
        own(made.value)  # rows are copied, unlike those of w[0]
    return made


def _known_rows(t: Core, x: Tensor, w: Tensor) -> None:
    rows = shape_of(t, w, 2, "weight")[0]
    if x.known is not None and x.known.dtype != object and x.known.size and isinstance(rows, int):
        highest = int(x.known.max())
        if highest >= rows:
            t.fail(
                "index", f"index {highest} is out of range for the {rows} rows of the embedding", x
            )


@TORCH.function("nn.functional.embedding_bag")
def embedding_bag(
    t: Core, input: Value, weight: Value, offsets: Value = None, max_norm: Value = None,
    norm_type: Value = 2, scale_grad_by_freq: Value = False, mode: Value = "mean",
    sparse: Value = False, per_sample_weights: Value = None, include_last_offset: Value = False,
    padding_idx: Value = None,
) -> Tensor:  # fmt: skip
    """Return sums or means of rows: (bags, features)."""
    if isinstance(offsets, Tensor) and len(shape_of(t, input)) != 1:
        t.fail("value", f"expected one axis of indices beside offsets, got {t.show(input)}", input)
    bags = shape_of(t, offsets, 1)[0] if isinstance(offsets, Tensor) else shape_of(t, input)[0]
    last = bool(include_last_offset)
    made = (weight.dtype, (bags - int(last), shape_of(t, weight)[1]))
    if max_norm is not None or mode not in ("sum", "mean", "max"):
        return t.emit.typed("EmbeddingBag", [weight], *made)
    shape = shape_of(t, input)
    weights = [per_sample_weights] if isinstance(per_sample_weights, Tensor) else []

    def rows(weight: Tensor, places: Tensor, *rest: Tensor) -> Any:
        if isinstance(offsets, Tensor):
            starts: Any = rest[0]
        else:
            starts = op("Mul", op("Range", 0, shape[0], 1), shape[1])
        factors = op("Reshape", rest[-1], [-1]) if weights else None
        return images.bags(
            weight, op("Reshape", places, [-1]), starts, mode, factors, last=last,
            padding=padding_idx,
        )  # fmt: skip

    given = [offsets] if isinstance(offsets, Tensor) else []
    return built(t, made, rows, weight, input, *given, *weights)


@TORCH.function("nn.functional.one_hot")
def one_hot(t: Core, tensor: Value, num_classes: Value = -1) -> Tensor:
    """Return one-hot vectors as a new last axis, int64."""
    x = need_tensor(t, tensor, "tensor")
    if x.dtype != INT64:
        t.fail(
            "dtype-mismatch",
            f"one_hot takes int64, got {t.show(x)}",
            x,
            remedy="convert it with .long()",
        )
    depth = t.emit.fresh("classes") if num_classes == -1 else num_classes
    made = (INT64, (*shape_of(t, x), depth))
    if num_classes == -1:
        return built(t, made, filling.one_hot_of_all, x)
    return built(t, made, filling.one_hot, x, depth, INT64)


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
    lead = _lead(t, [q, k, v], bool(enable_gqa))
    if isinstance(attn_mask, Tensor):
        if attn_mask.dtype != BOOL and attn_mask.dtype != q.dtype:
            t.fail(
                "dtype-mismatch",
                f"expected a bool mask or one of the query's type, got {t.show(attn_mask)}",
                attn_mask,
            )
        scores = t.emit.new(FLOAT, (*lead, qs[-2], ks[-2]))
        shape = broadcast_shape(t, scores, attn_mask)
        if shape is not None and len(shape) != len(lead) + 2:
            t.fail("rank", f"the mask {t.show(attn_mask)} has more axes than the scores", attn_mask)
    made = t.emit.typed("Attention", [q, k, v], q.dtype, (*lead, qs[-2], vs[-1]))
    if dropout_p or (enable_gqa and len(qs) != 4):
        return made
    return computed(t, made, _attended, q, k, v, attn_mask, is_causal, scale, enable_gqa)


def _attended(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float | None,
    grouped: bool,
) -> Tensor:  # fmt: skip
    if grouped:
        heads = size_of(q, 1)
        k, v = (repeat_heads(x, floordiv(heads, size_of(x, 1))) for x in (k, v))
    added = attention.hiding(q, k, None if causal else mask, causal=causal)
    # (Under a causal mask, each query sees the first key.)
    found: Tensor = attention.attend(q, k, v, added, scale, safe=not causal)[0]
    return found


def _lead(t: Core, tensors: list[Tensor], grouped: bool) -> tuple[Dim, ...]:
    if grouped:
        return shape_of(t, tensors[0])[:-2]
    fronts = [t.emit.new(FLOAT, shape_of(t, x)[:-2]) for x in tensors]
    found: tuple[Dim, ...] = broadcast_shape(t, *fronts)
    return found


def multi_head_attention(
    t: Core, embed: Dim, heads: Value, batch_first: bool, query: Tensor, key: Tensor, value: Tensor,
    key_features: Dim, value_features: Dim, key_padding_mask: Value, attn_mask: Value,
    need_weights: Value, average: Value, parts: Projected | None = None,
) -> Value:  # fmt: skip
    """Return the output of ``nn.MultiheadAttention`` and its weights (None if not asked for).

    Where ``parts`` is None, nothing can compute them.
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
        "Attention", [query, key], query.dtype, (*front, *middle, target, source)
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
        q, k, v, heads, parts.inner, parts.outer, mask, padding, weighted=weighted
    )
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
            f"expected '{what}' of shape {_text(list(expected))}, got {t.show(x)}",
            x,
        )
