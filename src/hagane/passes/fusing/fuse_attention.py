"""Recognise softmax attention as exporters write it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import onnx_ir as ir

from hagane.graph.types import Shape
from hagane.ops.builder import dtype_of, op
from hagane.ops.inference import GraphTypes
from hagane.passes.edit import (
    attributes_of,
    building,
    constant,
    has_dtype,
    is_read_once,
    name_of,
    only_reader,
    producer,
    put_in_place,
    readers,
    scalar,
    shape_of,
)
from hagane.passes.fusing.bounds import lower_bound

# Added to any score that is not of this order itself, a filler this low gives the filler.
_LOW = -1e30
# Scores are a few nodes away from their product.
_MOST_STEPS = 8


def fuse_attention(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Replace ``softmax(Q · Kᵀ · scale + mask) · V`` by Attention; return where.

    ``Q``, ``K`` and ``V`` are float32 of shape (batch, heads, sequence, size), with the same batch
    and heads, or a list of matrices, which become the heads of a batch of one (Vaswani et al.,
    2017, equation 1). Recognised are

    - ``Kᵀ`` by a Transpose of any kind, by one of the last two axes between two Reshapes, or given
      as it is, which is then transposed;
    - the scale as products and quotients by positive constants, of the scores, of ``Q``, of ``K``
      before or after it is transposed, or of several of them;
    - heads of ``K`` and ``V`` that several heads of ``Q`` share, repeated by Unsqueeze, Expand and
      Reshape: Attention does without the copies;
    - masks that are added, one or several, and ``Where(mask, scores, filler)`` or its opposite,
      with a filler of −∞ or below −10³⁰;
    - ``Where(IsNaN(p), 0, p)`` of the probabilities, which Attention itself makes of a row
      without a key.

    Elsewhere such a row is NaN. Unless the mask is known to leave every row a key, the rows without
    are found in the mask and are NaN afterwards too. Scores are taken to be finite.

    Nothing changes where the scores or probabilities have other readers, a mask has another last
    axis than the scores or widens them, it is added before the scale, the filler is a number that
    unmasked scores may come near or meets other masks, or a factor is not a positive constant.
    """
    changed: list[str] = []
    for node in list(graph):
        if node.op_type != "Softmax" or node.domain != "":
            continue
        found = _match(node, types)
        if found is not None:
            changed.append(name_of(found.end))
            _replace(graph, types, found)
    return changed


@dataclass(frozen=True, slots=True)
class _Scores:
    """The product of Q and Kᵀ, its factor, and the masks from the last to the first."""

    product: ir.Node
    scale: float
    masks: tuple[ir.Value | _Choice, ...]


@dataclass(frozen=True, slots=True)
class _Choice:
    """A boolean mask: where it is ``keeps``, scores stay; elsewhere they are the filler."""

    mask: ir.Value
    keeps: bool
    filler: float


@dataclass(frozen=True, slots=True)
class _Match:
    end: ir.Node
    q: ir.Value
    k: ir.Value
    k_perm: tuple[int, ...] | None
    v: ir.Value
    scale: float
    masks: tuple[ir.Value | _Choice, ...]
    zeroes_nan: bool
    shape: Shape


def _match(softmax: ir.Node, types: GraphTypes) -> _Match | None:
    scores, out = softmax.inputs[0], softmax.outputs[0]
    shape = shape_of(scores, types)
    if scores is None or shape is None or len(shape) not in (3, 4):
        return None
    last = attributes_of(softmax)["axis"] in (-1, len(shape) - 1)
    if not last or not has_dtype(scores, types, ir.DataType.FLOAT):
        return None
    guarded = _without_nan(softmax, types)
    end = only_reader(out if guarded is None else guarded, "MatMul")
    if end is None or end.inputs[0] is not (out if guarded is None else guarded):
        return None
    found = _read_scores(scores, shape, types)
    if found is None:
        return None
    q, q_scale = _unscaled(found.product.inputs[0], types)
    k, perm, k_scale = _read_key(found.product.inputs[1], len(shape), types)
    v = end.inputs[1]
    scale = found.scale * q_scale * k_scale
    limits = np.finfo(np.float32)
    if v is None or k is None or not limits.tiny <= scale <= limits.max:
        return None
    q_shape, k_shape, v_shape = (shape_of(value, types) for value in (q, k, v))
    if q is None or q_shape is None or k_shape is None or v_shape is None:
        return None
    if perm is not None:
        k_shape = tuple(k_shape[axis] for axis in perm) if len(k_shape) == len(perm) else ()
    if not len(q_shape) == len(k_shape) == len(v_shape) == len(shape):
        return None
    agree = (
        q_shape[:-2] == k_shape[:-2] == v_shape[:-2] == shape[:-2]
        and q_shape[-1] == k_shape[-1]
        and k_shape[-2] == v_shape[-2] == shape[-1]
    )
    if not agree:
        return None
    few_k, few_v = _unrepeated(k, types), _unrepeated(v, types)
    if perm is None and few_k is not None and few_v is not None:
        fewer, other = shape_of(few_k, types), shape_of(few_v, types)
        if fewer is not None and other is not None and fewer[1] == other[1]:
            k, v = few_k, few_v
    return _Match(end, q, k, perm, v, scale, found.masks, guarded is not None, shape)


def _unrepeated(value: ir.Value, types: GraphTypes) -> ir.Value | None:
    """Return (batch, g, sequence, size) if (batch, g · r, sequence, size) has each head r times."""
    whole = producer(value, "Reshape")
    repeated = None if whole is None else producer(whole.inputs[0], "Expand")
    single = None if repeated is None else repeated.inputs[0]
    if repeated is None or single is None:
        return None
    apart = producer(single, "Unsqueeze") or producer(single, "Reshape")
    source = None if apart is None else apart.inputs[0]
    shapes = [shape_of(one, types) for one in (source, single, repeated.outputs[0], value)]
    if source is None or any(shape is None for shape in shapes):
        return None
    own, one, many, out = (shape or () for shape in shapes)
    if len(own) != 4 or len(many) != 5 or not isinstance(many[1], int):
        return None
    if not isinstance(many[2], int) or out != (own[0], many[1] * many[2], *own[2:]):
        return None
    inserted = (*own[:2], 1, *own[2:])
    return source if one == inserted and many == (*own[:2], many[2], *own[2:]) else None


def _without_nan(softmax: ir.Node, types: GraphTypes) -> ir.Value | None:
    """Return ``Where(IsNaN(p), 0, p)`` if only that reads the probabilities."""
    out = softmax.outputs[0]
    test = next(readers(out, "IsNaN"), None)
    if test is None or len(out.uses()) != 2 or out.is_graph_output():
        return None
    choice = only_reader(test.outputs[0], "Where")
    if choice is None or choice.inputs[0] is not test.outputs[0] or choice.inputs[2] is not out:
        return None
    return choice.outputs[0] if scalar(choice.inputs[1], types) == 0 else None


def _read_scores(value: ir.Value, shape: Shape, types: GraphTypes) -> _Scores | None:
    """Follow masks, then factors, from the argument of the softmax up to a matrix product."""
    masks: list[ir.Value | _Choice] = []
    scale = 1.0
    while is_read_once(value):
        node = value.producer()
        if node is None or node.domain != "":
            return None
        if node.op_type == "MatMul":
            mixed = len(masks) > 1 and any(
                isinstance(mask, _Choice) and math.isfinite(mask.filler) for mask in masks
            )
            return None if mixed else _Scores(node, scale, tuple(masks))
        step: ir.Value | None = None
        if node.op_type in ("Mul", "Div"):
            step, factor = _unscaled_once(node, types)
            scale *= factor
        elif scale == 1.0 and node.op_type == "Where":
            step, choice = _read_choice(node, types)
            if choice is None or not _fits(choice.mask, shape, types):
                return None
            masks.append(choice)
        elif scale == 1.0 and node.op_type == "Add":
            step, mask = _read_addition(node, shape, types)
            if mask is None:
                return None
            masks.append(mask)
        if step is None or shape_of(step, types) != shape:
            return None
        value = step
    return None


def _read_addition(
    node: ir.Node, shape: Shape, types: GraphTypes
) -> tuple[ir.Value | None, ir.Value | None]:
    """Return the scores and the mask of a sum."""
    for scores, mask in (node.inputs, tuple(reversed(node.inputs))):
        if scores is not None and mask is not None and _leads_to_product(scores):
            return (scores, mask) if _fits(mask, shape, types) else (None, None)
    return None, None


def _leads_to_product(value: ir.Value, steps: int = _MOST_STEPS) -> bool:
    """Whether a value is a matrix product, behind factors and masks of its own."""
    node = value.producer()
    if not steps or node is None or node.domain != "" or not is_read_once(value):
        return False
    if node.op_type == "MatMul":
        return True
    if node.op_type not in ("Mul", "Div", "Add", "Where"):
        return False
    return any(one is not None and _leads_to_product(one, steps - 1) for one in node.inputs)


def _read_choice(node: ir.Node, types: GraphTypes) -> tuple[ir.Value | None, _Choice | None]:
    mask, kept, dropped = node.inputs
    for keeps, scores, filler in ((True, kept, dropped), (False, dropped, kept)):
        low = scalar(filler, types)
        if mask is not None and scores is not None and low is not None and low <= _LOW:
            return scores, _Choice(mask, keeps, low)
    return None, None


def _fits(mask: ir.Value, shape: Shape, types: GraphTypes) -> bool:
    """Whether a mask broadcasts to the scores and has their last axis, which Attention pads."""
    own = shape_of(mask, types)
    if own is None or not 2 <= len(own) <= len(shape) or own[-1] != shape[-1]:
        return False
    return all(a in (1, b) for a, b in zip(reversed(own), reversed(shape), strict=False))


def _unscaled_once(node: ir.Node, types: GraphTypes) -> tuple[ir.Value | None, float]:
    """Return the value that a positive constant multiplies, and the constant; or None."""
    left, right = node.inputs
    pairs = [(left, right)] if node.op_type == "Div" else [(left, right), (right, left)]
    for value, factor in pairs:
        found, rank = scalar(factor, types), shape_of(factor, types)
        if found is not None and rank is not None and len(rank) <= 1 and 0 < found < math.inf:
            return value, 1 / found if node.op_type == "Div" else found
    return None, 1.0


def _unscaled(value: ir.Value | None, types: GraphTypes) -> tuple[ir.Value | None, float]:
    """Return the operand of products and quotients by positive constants, and the whole factor."""
    scale = 1.0
    while (node := producer(value, "Mul") or producer(value, "Div")) is not None:
        inner, factor = _unscaled_once(node, types)
        if inner is None:
            break
        value, scale = inner, scale * factor
    return value, scale


def _read_key(
    value: ir.Value | None, rank: int, types: GraphTypes
) -> tuple[ir.Value | None, tuple[int, ...] | None, float]:
    """Return a value, how to transpose it to K, if at all, and its scale, from the value of Kᵀ."""
    value, scale = _unscaled(value, types)
    axes = tuple(range(rank))
    swapped = (*axes[:-2], axes[-1], axes[-2])
    transpose = producer(value, "Transpose")
    if transpose is not None:
        inner, factor = _unscaled(transpose.inputs[0], types)
        perm = attributes_of(transpose).get("perm")
        if perm is not None and len(perm) == rank:
            own = tuple(perm[axis] for axis in swapped)
            return inner, None if own == axes else own, scale * factor
    inner = _through_matrices(value, types)
    if inner is not None:
        inner, factor = _unscaled(inner, types)
        return inner, None, scale * factor
    return value, swapped, scale


def _through_matrices(value: ir.Value | None, types: GraphTypes) -> ir.Value | None:
    """Return the value of which a list of matrices is transposed between two Reshapes."""
    last = producer(value, "Reshape")
    transpose = None if last is None else producer(last.inputs[0], "Transpose")
    if transpose is None or attributes_of(transpose).get("perm") != (0, 2, 1):
        return None
    first = producer(transpose.inputs[0], "Reshape")
    if first is None:
        return None
    inner, flat, turned, shape = (
        shape_of(one, types)
        for one in (first.inputs[0], first.outputs[0], transpose.outputs[0], value)
    )
    if inner is None or flat is None or turned is None or shape is None:
        return None
    kept = inner[-2:] == flat[-2:] and shape[-2:] == turned[-2:] and inner[:-2] == shape[:-2]
    return first.inputs[0] if kept else None


def _replace(graph: ir.Graph, types: GraphTypes, found: _Match) -> None:
    end = found.end
    with building(graph, types, end, end.name or ""):
        made = _attention(found, types)
    put_in_place(graph, types, end, made)


def _attention(found: _Match, types: GraphTypes) -> ir.Value:
    k, guard = found.k, None
    if found.k_perm is not None:
        k = op("Transpose", k, perm=found.k_perm)
    mask = _joined_mask(found.masks) if found.masks else None
    if mask is not None and not found.zeroes_nan and not _keeps_a_key(mask, types):
        guard = _rows_with_a_key(mask)
    heads = [found.q, k, found.v]
    matrices = len(found.shape) == 3
    if matrices:
        heads = [op("Unsqueeze", one, [0]) for one in heads]
    out = op("Attention", *heads, mask, scale=found.scale)
    if guard is not None:
        out = op("Where", guard, out, math.nan)
    made: ir.Value = op("Squeeze", out, [0]) if matrices else out
    return made


def _joined_mask(masks: Sequence[ir.Value | _Choice]) -> ir.Value:
    """Return one mask of all: the boolean one, or the sum of them as numbers."""
    only = masks[0]
    if len(masks) == 1 and isinstance(only, _Choice) and math.isinf(only.filler):
        found: ir.Value = only.mask if only.keeps else op("Not", only.mask)
        return found
    numbers = [_as_number(mask) if isinstance(mask, _Choice) else mask for mask in masks]
    return reduce(lambda total, number: op("Add", total, number), numbers)


def _as_number(choice: _Choice) -> ir.Value:
    ends = (0.0, choice.filler) if choice.keeps else (choice.filler, 0.0)
    made: ir.Value = op("Where", choice.mask, *(np.float32(end) for end in ends))
    return made


def _keeps_a_key(mask: ir.Value, types: GraphTypes) -> bool:
    """Whether a mask is known to leave every row a key."""
    array = constant(mask, types)
    if array is not None:
        kept = array if array.dtype == bool else array > -np.inf
        return bool(kept.any(axis=-1).all())
    return has_dtype(mask, types, ir.DataType.FLOAT) and lower_bound(mask, types) > -np.inf


def _rows_with_a_key(mask: ir.Value) -> ir.Value:
    """Return which rows of a mask leave some key, (..., queries or 1, 1)."""
    largest: ir.Value = op("ReduceMax", mask, [-1])
    if dtype_of(mask) == ir.DataType.BOOL:
        return largest
    made: ir.Value = op("Greater", largest, -math.inf)
    return made
