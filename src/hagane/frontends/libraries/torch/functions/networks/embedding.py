"""Embeddings of PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.computing import built
from hagane.frontends.libraries.torch.indices import from_front
from hagane.frontends.libraries.torch.operands import (
    INT64,
    category,
    need_tensor,
    shape_of,
    size,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.memory import own
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.builder import op
from hagane.ops.functions.images import images
from hagane.ops.functions.tensors import filling
from hagane.ops.gradient.marks import mark_padding


@TORCH.function("embedding")
def embedding_of(
    t: Core, weight: Value, indices: Value, padding_idx: Value = -1,
    scale_grad_by_freq: Value = False, sparse: Value = False,
) -> Tensor:  # fmt: skip
    """Return rows of the weight; a padding of -1 is none."""
    padding = None if padding_idx == -1 else padding_idx
    return embedding(t, indices, weight, padding, None, 2.0, scale_grad_by_freq, sparse)


@TORCH.function("nn.functional.embedding")
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
    x = from_front(t, x)
    _known_rows(t, x, w)
    if max_norm is not None:  # which changes the weight
        _refuse_norm(t, w)
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
    elif t.emit.builds and isinstance(padding_idx, int) and made.value is not None:
        rows = shape_of(t, w)[0]
        node = made.value.producer()
        if node is not None and (padding_idx >= 0 or isinstance(rows, int)):
            mark_padding(node, padding_idx if padding_idx >= 0 else padding_idx + int(rows))
    if made.value is not None:
        own(made.value)  # rows are copied, unlike those of w[0]
    return made


def _refuse_norm(t: Core, w: Tensor) -> None:
    if t.emit.builds:
        t.fail(
            "capture",
            "an embedding with max_norm shortens rows of its weight in the call, which cannot be "
            "captured",
            w,
            remedy="leave max_norm out, and shorten them between calls under torch.no_grad(): "
            "weight.copy_(torch.renorm(weight, 2, 0, max_norm))",
        )


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
    if category(input.dtype) == 2 and category(weight.dtype) < 2:  # in the order of old programs
        input, weight = weight, input
    if isinstance(offsets, Tensor) and len(shape_of(t, input)) != 1:
        t.fail("value", f"expected one axis of indices beside offsets, got {t.show(input)}", input)
    bags = shape_of(t, offsets, 1)[0] if isinstance(offsets, Tensor) else shape_of(t, input)[0]
    last = bool(include_last_offset) and isinstance(offsets, Tensor)
    made = (weight.dtype, (bags - int(last), shape_of(t, weight)[1]))
    if max_norm is not None or mode not in ("sum", "mean", "max"):
        if max_norm is not None:
            _refuse_norm(t, weight)
        return t.emit.typed("EmbeddingBag", [weight], *made)
    input = from_front(t, input)
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
    x = from_front(t, x)
    if isinstance(num_classes, Tensor):
        num_classes = t.tensor_number(num_classes, whole=True)
    if x.known is not None and isinstance(num_classes, int) and num_classes > 0 and x.known.size:
        largest = 0 if x.known.dtype == object else int(x.known.max())
        if largest >= num_classes:
            t.fail("value", f"one_hot: expected classes below num_classes={num_classes}, got "
                   f"{largest}", x)  # fmt: skip
    depth = t.emit.fresh("classes") if num_classes == -1 else size(t, num_classes)
    made = (INT64, (*shape_of(t, x), depth))
    if num_classes == -1:
        return built(t, made, filling.one_hot_of_all, x)
    return built(t, made, filling.one_hot, x, depth, INT64)
