"""RotaryEmbedding: pairs of numbers rotated by angles that grow with their position."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.written import emit_written
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.attention import with_heads
from hagane.symbolic import Dim, product


def lower_rotary(low: Lowering, node: ir.Node) -> None:
    """Lower RotaryEmbedding of float32, of halves or of neighbours, with or without positions."""
    attributes = low.facts.attributes(node)
    x = node.inputs[0]
    if not low.facts.is_float(x):
        raise NotNative(f"element type {low.facts.dtype(x)}")
    source = with_heads(low.forms.plain(x), attributes.get("num_heads") or None)
    whole = low.forms.result(node.outputs[0])
    target = with_heads(whole, attributes.get("num_heads") or None)
    cos, sin = low.forms.contiguous(node.inputs[1]), low.forms.contiguous(node.inputs[2])
    ids = node.inputs[3] if len(node.inputs) > 3 else None
    batch, heads, length, size = source.shape
    rotated = int(attributes.get("rotary_embedding_dim") or 0) or size
    half = cos.shape[-1]
    if not isinstance(half, int) or rotated != 2 * half or not isinstance(size, int):
        raise NotNative("tables that are not half as wide as what is rotated")
    if source.strides[3] != 1 or target.strides[3] != 1:
        raise NotNative("elements that are not next to one another")
    same = list(zip(cos.shape, sin.shape, strict=True))
    if ids is not None:
        same += zip(low.facts.shape(ids), (batch, length), strict=True)
    else:
        same += zip(cos.shape, (batch, length), strict=False)
    _check_sizes(low, node, same)
    body = Body()
    s, d = body.pointer(source), body.pointer(target, written=True)
    c, n = body.pointer(cos), body.pointer(sin)
    at = [body.size(stride) for stride in source.strides[:3]]
    to = [body.size(stride) for stride in target.strides[:3]]
    n_heads, n_rows = body.size(heads), body.size(length)
    body.add(
        f"int64_t row = q % {n_rows}, h = q / {n_rows} % {n_heads}, b = q / {n_rows} / {n_heads};",
        f"const float *x = {s} + b * {at[0]} + h * {at[1]} + row * {at[2]};",
        f"float *y = {d} + b * {to[0]} + h * {to[1]} + row * {to[2]};",
    )
    failure = ""
    if ids is None:
        if len(cos.shape) != 3:
            raise NotNative("tables without positions that are not one row a position")
        body.add(f"int64_t place = b * {n_rows} + row;")
    else:
        positions = low.forms.contiguous(ids)
        if positions.dtype != np.int64 or len(cos.shape) != 2:
            raise NotNative("positions that are not int64, or tables of more than one sequence")
        rows = body.size(cos.shape[0])
        body.add(
            f"int64_t place = {body.pointer(positions)}[b * {n_rows} + row];",
            f"if (place < 0 || place >= {rows}) {{ hg_fail(thread, place); return; }}",
        )
        failure = f"position {{value}} is out of range, the tables have {cos.shape[0]} rows"
    body.add(f"const float *c = {c} + place * {half}, *n = {n} + place * {half};")
    if attributes["interleaved"]:
        body.add(
            f"for (int64_t i = 0; i < {half}; i++) {{ float a = x[2 * i], b = x[2 * i + 1];",
            "y[2 * i] = a * c[i] - b * n[i]; y[2 * i + 1] = a * n[i] + b * c[i]; }",
        )
    else:
        body.add(
            f"for (int64_t i = 0; i < {half}; i += VL) {{ int64_t w = hg_min(VL, {half} - i);",
            f"vf a = v_load_n(x + i, w), b = v_load_n(x + {half} + i, w);",
            "vf u = v_load_n(c + i, w), v = v_load_n(n + i, w);",
            f"v_store_n(y + i, a * u - b * v, w); v_store_n(y + {half} + i, a * v + b * u, w); }}",
        )
    body.add(f"for (int64_t i = {2 * half}; i < {size}; i++) y[i] = x[i];")
    tasks = product((batch, heads, length))
    work, flops = work_of(tasks, 0.3 * size), work_of(tasks, 3.0 * size)
    low.recorder.emit(node, body, tasks, work=work, flops=flops, failure=failure)
    low.forms[node.outputs[0]] = whole


def _check_sizes(low: Lowering, node: ir.Node, same: Sequence[tuple[Dim, Dim]]) -> None:
    """Leave a run to the reference kernel whose tables or positions are of another shape."""
    differing = [(a, b) for a, b in same if a != b]
    if any(isinstance(a, int) and isinstance(b, int) for a, b in differing):
        raise NotNative("tables or positions of another shape")
    if not differing:
        return
    sizes = {
        f"{side}{i}": pair[k] for i, pair in enumerate(differing) for k, side in enumerate("ab")
    }
    wrong = " || ".join(f"a{i} != b{i}" for i in range(len(differing)))
    text = f"if ({wrong}) hg_fail(thread, q);"
    emit_written(low.recorder, node, text, reads={}, writes={}, sizes=sizes, tasks=1)


RULES: dict[str, Rule] = {"RotaryEmbedding": lower_rotary}
