"""Attention: scores, softmax and the sum of values in one kernel, a few rows at a time.

The scores of a tile of rows never leave the nearest cache, as in "FlashAttention" (Dao et al.,
2022); keys and values are packed once for all rows that a task handles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.elementwise_loops import emit_elementwise
from hagane.native.kernels.expression import BOOL, FLOAT32, Leaf, float_text
from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.tensor import Tensor
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.attention_rows import BLOCKS, heights, rows_function
from hagane.native.rules.attention_tiles import QUERIES, emit_attention_tiles, fits_tiles
from hagane.native.tiles.tile import tile_pixels
from hagane.symbolic import Dim, ceildiv, floordiv, product

# Attributes that the kernel has with these values only, and all that it knows of.
_PLAIN = {"softcap": 0.0, "left_window_size": -1, "right_window_size": -1}
_KNOWN = frozenset(
    {"scale", "is_causal", "q_num_heads", "kv_num_heads", "softmax_precision",
     "qk_matmul_output_mode", *_PLAIN}
)  # fmt: skip
# Fewer queries than this read keys and values where they lie.
_FEW_QUERIES = 3
# Tiles of rows of one task, where there are too few heads for the threads.
_TILES = 8


def lower_attention(low: Lowering, node: ir.Node) -> None:
    """Lower Attention of float32, with or without a mask and a cache of earlier keys."""
    attributes = low.facts.attributes(node)
    if not all(low.facts.is_float(value) for value in node.inputs[:3]):
        raise NotNative(f"element type {low.facts.dtype(node.inputs[0])}")
    if not attributes.keys() <= _KNOWN or any(
        attributes.get(name, value) != value for name, value in _PLAIN.items()
    ):
        raise NotNative("capped scores, windows, or an attribute that is new")
    if len(node.inputs) > 6 and node.inputs[6] is not None:
        raise NotNative("lengths of single sequences")
    if len(node.outputs) > 3 and low.facts.uses(node.outputs[3]):
        raise NotNative("the scores are wanted")
    few = attributes.get("kv_num_heads")
    heads = [attributes.get("q_num_heads"), few, few]
    q, k, v = (
        with_heads(low.forms.plain(value), count)
        for value, count in zip(node.inputs, heads, strict=False)
    )
    past: Dim = 0
    if len(node.inputs) > 4 and node.inputs[4] is not None:
        past = low.facts.shape(node.inputs[4])[2]
        k = _joined(low, node, 4, k)
        v = _joined(low, node, 5, v)
    elif any(low.facts.uses(value) for value in node.outputs[1:3]):
        raise NotNative("a cache is wanted of what there is no cache for")
    scale = attributes.get("scale")
    size = q.shape[3]
    if scale is None:
        if not isinstance(size, int):
            raise NotNative("a size of heads known only at run time")
        scale = 1.0 / float(np.sqrt(size))
    mask = _mask(low, node, (*q.shape[:3], k.shape[2]))
    out, target = _target(low, node, q.shape[:3], v.shape[3])
    shapes = _Shapes(q, k, v, mask, target, float(scale), bool(attributes["is_causal"]), past)
    _emit(low, node, shapes)
    low.forms[out[0]] = out[1]


@dataclass(frozen=True, slots=True)
class _Shapes:
    """Operands as (batch, heads, sequence, size), of any strides."""

    q: Tensor
    k: Tensor
    v: Tensor
    mask: Tensor | None
    target: Tensor
    scale: float
    causal: bool
    past: Dim


def with_heads(tensor: Tensor, heads: int | None) -> Tensor:
    """Return (batch, sequence, heads · size) as (batch, heads, sequence, size)."""
    if len(tensor.shape) == 4:
        return tensor
    assert heads is not None
    (n, length, width), (a, b, c) = tensor.shape, tensor.strides
    size = floordiv(width, heads)
    return replace(tensor, shape=(n, heads, length, size), strides=(a, size * c, b, c))


def _joined(low: Lowering, node: ir.Node, index: int, new: Tensor) -> Tensor:
    """Return earlier keys or values and the new ones in one piece, kept as an output if wanted."""
    old = low.forms.plain(node.inputs[index])
    before, shape = old.shape[2], list(new.shape)
    shape[2] = before + new.shape[2]
    number = index - 3
    value = node.outputs[number] if len(node.outputs) > number else None
    if value is not None and low.facts.uses(value):
        whole = low.forms.result(value)
        low.forms[value] = whole
        whole = replace(whole, shape=tuple(shape))
    else:
        whole = low.recorder.new(f"{node.name} joined {index}", FLOAT32, shape)
    first = replace(whole, shape=tuple(old.shape))
    after = whole.offset + before * whole.strides[2]
    emit_elementwise(low.recorder, f"copy '{node.name}'", Leaf(old), first)
    last = replace(whole, shape=tuple(new.shape), offset=after)
    emit_elementwise(low.recorder, f"copy '{node.name}'", Leaf(new), last)
    return whole


def _mask(low: Lowering, node: ir.Node, scores: tuple[Dim, ...]) -> Tensor | None:
    value = node.inputs[3] if len(node.inputs) > 3 else None
    if value is None:
        return None
    mask = low.forms.plain(value)
    if mask.dtype not in (FLOAT32, BOOL):
        raise NotNative(f"a mask of {mask.dtype}")
    own = mask.shape
    if any(a not in (1, b) for a, b in zip(own, scores[-len(own) :], strict=True)):
        raise NotNative("a mask that does not broadcast to the scores")
    if own and own[-1] == 1 and scores[-1] != 1:
        raise NotNative("a mask of one column, which would be filled up")
    return mask.broadcast(scores)


def _target(
    low: Lowering, node: ir.Node, lead: tuple[Dim, ...], size: Dim
) -> tuple[tuple[ir.Value, Tensor], Tensor]:
    """Return the value that is written, how it lies, and it as (batch, heads, sequence, size)."""
    value = node.outputs[0]
    _, heads, length = lead
    if len(low.facts.shape(node.inputs[0])) == 3:
        result = low.forms.result(value)
        step = heads * size
        strides: tuple[Dim, ...] = (length * step, size, step, 1)
        return (value, result), replace(result, shape=(*lead, size), strides=strides)
    follower = low.only_use(value)
    perm = None if follower is None else low.facts.attributes(follower).get("perm")
    if (
        follower is not None
        and follower.op_type == "Transpose"
        and list(perm or ()) == [0, 2, 1, 3]
    ):
        low.done.add(follower)
        value = follower.outputs[0]
        result = low.forms.result(value)
        return (value, result), result.permuted((0, 2, 1, 3))
    result = low.forms.result(value)
    return (value, result), result


def _emit(low: Lowering, node: ir.Node, at: _Shapes) -> None:
    level, lanes = low.facts.level, low.facts.level.lanes
    wide, rows = BLOCKS * lanes, tile_pixels(level, BLOCKS)
    batch, heads, queries, size = at.q.shape
    keys, width = at.k.shape[2], at.v.shape[3]
    body = Body()
    tiles = fits_tiles(low, at.q, at.k, at.v)
    enough = product((batch, heads)) if isinstance(batch, int) else heads
    split = not isinstance(enough, int) or enough < 2 * low.facts.threads
    chunks = ceildiv(queries, QUERIES if tiles else rows * _TILES) if split else 1
    q, k, v = (body.pointer(tensor) for tensor in (at.q, at.k, at.v))
    d = body.pointer(at.target, written=True)
    n_chunks, n_heads = body.size(chunks), body.size(heads)
    shared = body.size(floordiv(heads, at.k.shape[1]))
    body.add(
        f"const int64_t LQ = {body.size(queries)}, LK = {body.size(keys)};",
        f"const int64_t HS = {body.size(size)}, W = {body.size(width)};",
        f"int64_t chunk = q % {n_chunks}, h = q / {n_chunks} % {n_heads}, b = q / {n_chunks} / {n_heads};",
        f"int64_t first = LQ * chunk / {n_chunks}, last = LQ * (chunk + 1) / {n_chunks};",
        *(
            f"const float *{name} = {pointer} + b * {body.size(tensor.strides[0])}"
            f" + h{'' if name == 'Q' else f' / {shared}'} * {body.size(tensor.strides[1])};"
            for name, pointer, tensor in (("Q", q, at.q), ("K", k, at.k), ("V", v, at.v))
        ),
        f"float *O = {d} + b * {body.size(at.target.strides[0])} + h * {body.size(at.target.strides[1])};",
        f"const int64_t q2 = {body.size(at.q.strides[2])}, q3 = {body.size(at.q.strides[3])};",
        f"const int64_t k2 = {body.size(at.k.strides[2])}, k3 = {body.size(at.k.strides[3])};",
        f"const int64_t v2 = {body.size(at.v.strides[2])}, v3 = {body.size(at.v.strides[3])};",
        f"const int64_t o2 = {body.size(at.target.strides[2])};",
        f"const int64_t past = {body.size(at.past)}; (void)past;",
    )
    masked = _add_mask(body, at.mask)
    softmax = [*masked, *_softmax(at.causal)]
    near = at.k.strides[3] == 1 and at.v.strides[3] == 1 and at.q.strides[3] == 1
    if near:
        _few_queries(body, at, softmax)
    tasks = product((batch, heads, chunks))
    if tiles:
        shape = (batch, heads, queries, keys, size, width)
        emit_attention_tiles(low, node, body, softmax, shape, at.scale, tasks)
        return
    sizes = heights(rows)
    functions = {
        height: body.shared(partial(rows_function, rows=height, level=level)) for height in sizes
    }
    left = "Q + top * q2" if at.q.strides[3] == 1 else "PQ"
    step = "q2 * 4" if at.q.strides[3] == 1 else "HS * 4"
    body.add(
        f"const int64_t GK = (LK + {wide - 1}) / {wide}, GV = (W + {wide - 1}) / {wide}, LS = GK * {wide};",
        f"float *PK = (float *)thread->scratch, *PV = PK + GK * HS * {wide};",
        f"float *PQ = PV + GV * LK * {wide}, *S = PQ + {rows} * HS; (void)PQ;",
        f"float tile[{rows * wide}] __attribute__((aligned(64))); vf factors[{rows}];",
        f"for (int64_t g = 0; g < GK; g++) {{ float *to = PK + g * HS * {wide};",
        f"int64_t n = hg_min({wide}, LK - g * {wide}); const float *from = K + g * {wide} * k2;",
        f"if (n < {wide}) memset(to, 0, (size_t)HS * {wide * 4});",
        "int64_t c = 0, done = 0;",
        "if (k3 == 1) { for (; c + 8 <= n; c += 8) for (int64_t i = 0; i + 8 <= HS; i += 8)",
        f"hg_square_4((const uint32_t *)(from + c * k2 + i), k2, (uint32_t *)(to + i * {wide} + c), {wide});",
        "done = HS / 8 * 8; }",
        "for (int64_t r = 0; r < n; r++) for (int64_t i = r < c ? done : 0; i < HS; i++)",
        f"to[i * {wide} + r] = from[r * k2 + i * k3];",
        f"for (int64_t i = 0; i < HS * {wide}; i += VL) "
        f"v_store(to + i, v_load(to + i) * {float_text(at.scale)}); }}",
        f"for (int64_t g = 0; g < GV; g++) {{ float *to = PV + g * LK * {wide};",
        f"int64_t n = hg_min({wide}, W - g * {wide}); const float *from = V + g * {wide} * v3;",
        f"if (n < {wide}) memset(to, 0, (size_t)LK * {wide * 4});",
        f"for (int64_t i = 0; i < LK; i++) for (int64_t c = 0; c < n; c++) to[i * {wide} + c] = from[i * v2 + c * v3]; }}",
        "for (int64_t top = first, m; top < last; top += m) {",
        *_height(sizes),
        *_gathered(at),
        "for (int64_t g = 0; g < GK; g++) {",
        f"const float *s = {left}, *w = PK + g * HS * {wide}; float *d = S + g * {wide};",
        *_by_height(functions, f"s, {step}, w, HS, d, LS * 4"),
        "}",
        "for (int64_t t = 0; t < m; t++) { float *x = S + t * LS; int64_t row = top + t; (void)row;",
        *masked,
        *_softmax(at.causal, "factors[t] = factor;"),
        "}",
        "for (int64_t g = 0; g < GV; g++) {",
        f"const float *s = S, *w = PV + g * LK * {wide};",
        f"const int64_t n = hg_min({wide}, W - g * {wide}); float *o = O + top * o2 + g * {wide};",
        f"float *d = n == {wide} ? o : tile; const int64_t to = n == {wide} ? o2 : {wide};",
        *_by_height(functions, "s, LS * 4, w, LK, d, to * 4"),
        "for (int64_t t = 0; t < m; t++, d += to, o += o2)",
        f"if (n == {wide}) {{ v_store(o, v_load(o) * factors[t]); "
        f"v_store(o + {lanes}, v_load(o + {lanes}) * factors[t]); }}",
        f"else for (int64_t c = 0; c < n; c += {lanes})",
        "v_store_n(o + c, v_load(d + c) * factors[t], hg_min(VL, n - c));",
        "} }",
    )
    g_keys, g_values = ceildiv(keys, wide), ceildiv(width, wide)
    floats = g_keys * size * wide + g_values * keys * wide + rows * (size + g_keys * wide)
    whole = product((batch, heads, queries, keys, size + width))
    low.recorder.emit(
        node,
        body,
        tasks,
        work=work_of(whole, 2.0 / 60),
        flops=work_of(whole, 2.0),
        scratch=floats * 4 + 64,
    )


def _few_queries(body: Body, at: _Shapes, softmax: list[str]) -> None:
    """Write the way for few queries: keys and values are read once, where they lie."""
    body.add(
        f"if (LQ < {_FEW_QUERIES}) {{ float *x = (float *)thread->scratch;",
        "for (int64_t row = first; row < last; row++) { const float *qr = Q + row * q2;",
        "for (int64_t j = 0; j < LK; j++) { const float *kr = K + j * k2; vf sum = {0}; int64_t i = 0;",
        "for (; i + VL <= HS; i += VL) sum = v_fma(v_load(qr + i), v_load(kr + i), sum);",
        "if (i < HS) sum = v_fma(v_load_n(qr + i, HS - i), v_load_n(kr + i, HS - i), sum);",
        f"x[j] = v_sum(sum) * {float_text(at.scale)}; }}",
        *softmax,
        "float *o = O + row * o2; int64_t c = 0;",
        "for (; c + 4 * VL <= W; c += 4 * VL) { vf s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};",
        "for (int64_t j = 0; j < LK; j++) { vf p = v_set1(x[j]); const float *vr = V + j * v2 + c;",
        "s0 = v_fma(p, v_load(vr), s0); s1 = v_fma(p, v_load(vr + VL), s1);",
        "s2 = v_fma(p, v_load(vr + 2 * VL), s2); s3 = v_fma(p, v_load(vr + 3 * VL), s3); }",
        "v_store(o + c, s0); v_store(o + c + VL, s1); v_store(o + c + 2 * VL, s2); v_store(o + c + 3 * VL, s3); }",
        "for (; c < W; c += VL) { int64_t n = hg_min(VL, W - c); vf s = {0};",
        "for (int64_t j = 0; j < LK; j++) s = v_fma(v_set1(x[j]), v_load_n(V + j * v2 + c, n), s);",
        "v_store_n(o + c, s, n); }",
        "} return; }",
    )


def _add_mask(body: Body, mask: Tensor | None) -> list[str]:
    """Return lines that add the mask to the scores ``x`` of ``row``."""
    if mask is None:
        return []
    m = body.pointer(mask)
    lead, step = (body.size(stride) for stride in mask.strides[2:])
    start = (
        f"{m} + b * {body.size(mask.strides[0])} + h * {body.size(mask.strides[1])} + row * {lead}"
    )
    if mask.dtype == BOOL:
        return [
            f"{{ const uint8_t *mask = {start};",
            f"for (int64_t j = 0; j < LK; j++) x[j] = mask[j * {step}] ? x[j] : -INFINITY; }}",
        ]
    return [
        f"{{ const float *mask = {start};",
        f"for (int64_t j = 0; j < LK; j++) x[j] += mask[j * {step}]; }}",
    ]


def _height(sizes: Sequence[int]) -> list[str]:
    """Return lines that set ``m``, the height of the tile from row ``top`` on."""
    lines = [f"if (last - top >= {size}) m = {size}; else" for size in sizes[:-1]]
    return [*lines, f"m = {sizes[-1]};"]


def _by_height(functions: Mapping[int, str], arguments: str) -> list[str]:
    """Return lines that compute a tile of ``m`` rows, by the functions for some heights."""
    cases = [f"case {size}: {name}({arguments}); break;" for size, name in functions.items()]
    return ["switch (m) {", *cases, "}"]


def _gathered(at: _Shapes) -> list[str]:
    """Return lines that bring queries together whose numbers lie apart."""
    if at.q.strides[3] == 1:
        return []
    return [
        "for (int64_t t = 0; t < m; t++) for (int64_t i = 0; i < HS; i++)",
        "PQ[t * HS + i] = Q[(top + t) * q2 + i * q3];",
    ]


def _softmax(causal: bool, divided: str | None = None) -> list[str]:
    """Return lines that turn the scores ``x`` of ``row`` into probabilities, zero without a key.

    Args:
        causal: Whether a row sees keys up to itself alone.
        divided: What becomes of the vector ``factor``, which probabilities are still to be
            multiplied by; they are, if this is None.
    """
    count = "hg_max(0, hg_min(LK, row + past + 1))" if causal else "LK"
    product = [
        "i = 0; for (; i + VL <= n; i += VL) v_store(x + i, v_load(x + i) * factor);",
        "for (; i < n; i++) x[i] *= factor[0];",
    ]
    return [
        f"{{ int64_t n = {count}, i = 0; vf factor = v_set1(0.f); (void)factor;",
        "vf most = v_set1(-INFINITY);",
        "for (; i + VL <= n; i += VL) most = v_max2(most, v_load(x + i));",
        "float top1 = v_top(most); for (; i < n; i++) top1 = x[i] > top1 ? x[i] : top1;",
        # (The largest of -inf and NaN may be either.)
        "if (top1 == -INFINITY) for (i = 0; i < LK; i++) x[i] = i < n && x[i] != x[i] ? x[i] : 0; else {",
        "vf sum = {0}, top0 = v_set1(top1); i = 0; float total = 0;",
        "for (; i + VL <= n; i += VL) { vf e = v_exp_share(v_load(x + i) - top0); sum += e; v_store(x + i, e); }",
        "if (i < n) { vf e = v_exp_share(v_load_n(x + i, n - i) - top0); v_store_n(x + i, e, n - i);",
        "for (int64_t j = 0; j < n - i; j++) total += e[j]; }",
        "factor = v_set1(1.f / (total + v_sum(sum)));",
        *(product if divided is None else []),
        "for (i = n; i < LK; i++) x[i] = 0; }",
        divided or "",
        "}",
    ]


RULES: dict[str, Rule] = {"Attention": lower_attention}
