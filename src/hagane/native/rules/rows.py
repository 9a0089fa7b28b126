"""Reductions, softmax and normalisation: kernels that walk along rows."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from hagane.native.kernels.elementwise_loops import Axis, emit_copy, merged_axes
from hagane.native.kernels.expression import float_text
from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.tensor import Blocked, Tensor
from hagane.native.lowering.facts import AT_RUN_TIME, NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.convolution.pooling import reduce_planes
from hagane.symbolic import Dim, ceildiv, floordiv, maximum, product

# One task handles about this many elements.
_TASK_ELEMENTS = 8192
# So many numbers are added in one chain, and so many such sums in another: a chain of thousands
# loses digits (see "The accuracy of floating point summation", Higham 1993).
_CHAIN = 64


def _axes(low: Lowering, node: ir.Node, rank: int) -> list[int]:
    attributes = low.facts.attributes(node)
    value = node.inputs[1] if len(node.inputs) > 1 else None
    if value is None:
        return [] if attributes.get("noop_with_empty_axes") else list(range(rank))
    array = low.facts.constant(value)
    if array is None:
        raise NotNative("axes known only at run time")
    axes = sorted({int(axis) % rank for axis in array.reshape(-1)}) if rank else []
    if not axes:
        return [] if attributes.get("noop_with_empty_axes") else list(range(rank))
    return axes


# start, step from `a` and `v`, last step from `a` (n: count)
_REDUCTIONS = {
    "ReduceSum": ("0.f", "a + v", "a"),
    "ReduceMean": ("0.f", "a + v", "a / (float)n"),
    "ReduceMax": ("-INFINITY", "{p}max(a, v)", "a"),
    "ReduceMin": ("INFINITY", "{p}min(a, v)", "a"),
    "ReduceSumSquare": ("0.f", "a + v * v", "a"),
    "ReduceL1": ("0.f", "a + {p}abs(v)", "a"),
    "ReduceL2": ("0.f", "a + v * v", "{p}sqrt(a)"),
}


# The sign that makes the extreme a maximum.
_SIGNS = {"ReduceMax": "", "ReduceMin": "-"}


def lower_reduce(low: Lowering, node: ir.Node) -> None:
    """Lower a reduction of float32 over fixed axes."""
    x, out = node.inputs[0], node.outputs[0]
    if not low.facts.is_float(x):
        raise NotNative(f"element type {low.facts.dtype(x)}")
    rank = len(low.facts.shape(x))
    axes = _axes(low, node, rank)
    if not axes:
        raise NotNative("no axis to reduce")
    found = low.forms.stored(x)
    whole = low.facts.attributes(node)["keepdims"] and axes == list(range(2, rank))
    if isinstance(found, Blocked) and whole and node.op_type in ("ReduceMean", "ReduceMax"):
        reduce_planes(low, node, largest=node.op_type == "ReduceMax")
        return
    source, target = low.forms.plain(x), low.forms.result(out)
    emit_reduction(low, node, source, target, axes)
    low.forms[out] = target


def emit_reduction(
    low: Lowering, node: ir.Node, source: Tensor, target: Tensor, axes: Sequence[int]
) -> None:
    """Write the kernel of a reduction over ``axes``."""
    start, step, last = _REDUCTIONS[node.op_type]
    kept = [i for i in range(len(source.shape)) if i not in axes]
    outer = merged_axes([source.shape[i] for i in kept], [[source.strides[i] for i in kept]])
    inner = merged_axes([source.shape[i] for i in axes], [[source.strides[i] for i in axes]])
    n_out = product([source.shape[i] for i in kept])
    count = product([source.shape[i] for i in axes])
    body = Body()
    s, d = body.pointer(source), body.pointer(target, written=True)
    across = outer[-1].strides[0] == 1 and inner[-1].strides[0] != 1
    width = body.size(outer[-1].length) if across else "1L"
    body.add(f"int64_t n = {body.size(count)};")
    rows: Dim = product([axis.length for axis in outer[:-1]]) if across else n_out
    known_count = count if isinstance(count, int) else 64
    chained = node.op_type in _SIGNS or (isinstance(count, int) and count <= _CHAIN)
    per_task = max(1, _TASK_ELEMENTS // max(1, known_count)) if not across else 1
    tasks: Dim
    if across:
        pieces = (outer[-1].length + 63) // 64
        tasks = rows * pieces
        body.add(
            f"int64_t row = q / {body.size(pieces)}, x0 = q % {body.size(pieces)} * 64;",
            f"int64_t x1 = hg_min({width}, x0 + 64);",
            "{",
        )
    else:
        tasks = (rows + per_task - 1) // per_task
        body.add(
            f"for (int64_t row = q * {per_task}; row < hg_min({body.size(rows)}, (q + 1) * {per_task}); row++) {{",
        )
    body.add("int64_t left = row, at = 0;")
    loops = outer[:-1] if across else outer
    for number, axis in reversed(list(enumerate(loops))):
        length, stride = body.size(axis.length), body.size(axis.strides[0])
        if number == 0:
            body.add(f"at += left * {stride};")
        else:
            body.add(f"at += left % {length} * {stride}; left /= {length};")
    if across:
        body.add("for (int64_t x = x0; x < x1; x += VL) { int64_t m = hg_min(VL, x1 - x);")
        _add_steps(
            body, inner, start, step.format(p="v_"), f"v_load_n({s} + at + x + {{}}, m)", "vf",
            chained=chained,
        )  # fmt: skip
        body.add(f"v_store_n({d} + row * {width} + x, {last.format(p='v_')}, m);", "} }")
    elif inner[-1].strides[0] == 1 and node.op_type in _SIGNS:
        _add_extreme(body, node.op_type, s, inner)
        body.add(f"{d}[row] = a;", "}")
    elif inner[-1].strides[0] == 1:
        _add_row_sums(body, step.format(p="v_"), s, inner)
        body.add(f"{d}[row] = {last.format(p='s_')};", "}")
    else:
        _add_steps(
            body, inner, start, step.format(p="s_"), f"{s}[at + {{}}]", "float",
            chained=chained,
        )  # fmt: skip
        body.add(f"{d}[row] = {last.format(p='s_')};", "}")
    size = source.size
    low.recorder.emit(node, body, tasks, work=work_of(size, 0.1), flops=work_of(size, 1.0))


# A sum of some numbers that goes to those so far, which become one of all at times.
_FOLD = f"part += {{}}; if (++parts % {_CHAIN} == 0) {{{{ whole += part; part = none; }}}}"


def _add_steps(
    body: Body,
    inner: Sequence[Axis],
    start: str,
    step: str,
    value: str,
    kind: str,
    *,
    chained: bool,
) -> None:
    """Write the steps of a reduction of vectors or of single numbers to ``a``.

    Args:
        body: The kernel's body.
        inner: The reduced axes.
        start: The first ``a``.
        step: The next one, from ``a`` and ``v``.
        value: C text of ``v``, at an offset.
        kind: The C type of both.
        chained: Whether all steps are one chain; else they are sums, and added up by stretches.
    """
    first = f"v_set1({start})" if kind == "vf" else start
    body.add(f"{kind} a = {first};")
    if chained:
        offset = _inner_loops(body, inner)
        body.add(f"{kind} v = {value.format(offset)}; a = {step};", *["}"] * len(inner))
        return
    body.add(f"const {kind} none = a; {kind} part = none, whole = none; int64_t parts = 0;")
    offset = _inner_loops(body, inner[:-1])
    length, stride = body.size(inner[-1].length), body.size(inner[-1].strides[0])
    body.add(
        f"for (int64_t i0 = 0; i0 < {length}; i0 += {_CHAIN}) {{",
        f"for (int64_t i = i0; i < hg_min({length}, i0 + {_CHAIN}); i++) {{",
        f"{kind} v = {value.format(f'{offset} + i * {stride}')}; a = {step}; }}",
        _FOLD.format("a") + " a = none; }",
        *["}"] * (len(inner) - 1),
        "a = whole + part;",
    )


def _add_row_sums(body: Body, step: str, source: str, inner: Sequence[Axis]) -> None:
    """Write the sum ``a`` of rows whose elements lie side by side, by stretches of four chains."""
    body.add("const vf none = {0}; vf part = none, whole = none; int64_t parts = 0;")
    offset = _inner_loops(body, inner[:-1])
    length = body.size(inner[-1].length)
    four = " ".join(
        f"{{ vf v = v_load(p + i + {j} * VL), a = s{j}; s{j} = {step}; }}" for j in range(4)
    )
    body.add(
        f"const float *p = {source} + at + {offset};",
        f"for (int64_t i = 0; i < {length};) {{",
        f"const int64_t end = hg_min({length}, i + {4 * _CHAIN} * VL);",
        "vf s0 = none, s1 = none, s2 = none, s3 = none;",
        f"for (; i + 4 * VL <= end; i += 4 * VL) {{ {four} }}",
        f"for (; i + VL <= end; i += VL) {{ vf v = v_load(p + i), a = s0; s0 = {step}; }}",
        f"if (i < end) {{ vf v = v_load_n(p + i, end - i), a = s1; s1 = {step}; i = end; }}",
        _FOLD.format("(s0 + s1) + (s2 + s3)") + " }",
        *["}"] * (len(inner) - 1),
        "float a = v_sum(whole + part);",
    )


def _add_extreme(body: Body, name: str, source: str, inner: Sequence[Axis]) -> None:
    """Write the search for the greatest or least number ``a`` in rows, NaN where there is one.

    Numbers that are none are marked apart: to keep them in the maximum takes three steps in place of
    one, each of which waits for the one before.
    """
    sign = _SIGNS[name]
    body.add(
        "vf most = v_set1(-INFINITY), other = most; vm bad = {0}; float a = -INFINITY; int none = 0;"
    )
    offset = _inner_loops(body, inner[:-1])
    length = body.size(inner[-1].length)
    body.add(
        f"const float *p = {source} + at + {offset}; int64_t i = 0;",
        f"for (; i + 2 * VL <= {length}; i += 2 * VL) {{",
        f"vf v = {sign}v_load(p + i), w = {sign}v_load(p + i + VL);",
        "most = v_max2(most, v); other = v_max2(other, w); bad |= (v != v) | (w != w); }",
        f"for (; i + VL <= {length}; i += VL) {{",
        f"vf v = {sign}v_load(p + i); most = v_max2(most, v); bad |= v != v; }}",
        f"for (; i < {length}; i++) {{ float v = {sign}p[i]; a = v > a ? v : a; none |= v != v; }}",
        *["}"] * (len(inner) - 1),
        f"a = none | v_any(bad) ? NAN : {sign}s_max2(a, v_top(v_max2(most, other)));",
    )


def _inner_loops(body: Body, axes: Sequence[object]) -> str:
    offset = "0"
    for number, axis in enumerate(axes):
        name = f"r{number}"
        length, stride = body.size(axis.length), body.size(axis.strides[0])  # type: ignore[attr-defined]
        body.add(f"for (int64_t {name} = 0; {name} < {length}; {name}++) {{")
        offset += f" + {name} * {stride}"
    return offset


def _row_kernel(
    low: Lowering,
    node: ir.Node,
    rows: Dim,
    length: Dim,
    lines: Sequence[str],
    body: Body,
    cost: float,
    failure: str = "",
) -> None:
    """Write a kernel that does ``lines`` for each ``row`` of ``n`` elements."""
    per_task = maximum(1, floordiv(_TASK_ELEMENTS, maximum(1, length)))
    share = body.size(per_task)
    body.lines.append(f"const int64_t n = {body.size(length)};")
    body.add(
        f"for (int64_t row = q * {share}, end = hg_min({body.size(rows)}, row + {share}); row < end; row++) {{",
        *lines,
        "}",
    )
    total = rows * length
    tasks = ceildiv(rows, per_task)
    work, flops = work_of(total, cost), work_of(total, 4.0)
    low.recorder.emit(node, body, tasks, work=work, flops=flops, failure=failure)


def lower_softmax(low: Lowering, node: ir.Node) -> None:
    """Lower Softmax and LogSoftmax along the last axis, or along any axis of a transposed copy."""
    x, out = node.inputs[0], node.outputs[0]
    if not low.facts.is_float(x):
        raise NotNative(f"element type {low.facts.dtype(x)}")
    shape = low.facts.shape(x)
    axis = int(low.facts.attributes(node)["axis"]) % len(shape)
    source = low.forms.plain(x)
    order = [i for i in range(len(shape)) if i != axis] + [axis]
    moved = source.permuted(order)
    if not moved.contiguous:
        moved = emit_copy(
            low.recorder, moved, low.recorder.new(f"{out.name} rows", source.dtype, moved.shape)
        )
    last = axis == len(shape) - 1
    target = low.forms.result(out)
    written = target if last else low.recorder.new(f"{out.name} rows", source.dtype, moved.shape)
    body = Body()
    s, d = body.pointer(moved), body.pointer(written, written=True)
    lines = [f"const float *x = {s} + row * n; float *y = {d} + row * n;"]
    lines.append("const float m = hg_top_of(x, n); int64_t i;")
    if node.op_type == "Softmax":
        lines += [
            "vf sum = {0}; vf top = v_set1(m); i = 0;",
            "for (; i + VL <= n; i += VL) { vf e = v_exp_share(v_load(x + i) - top); sum += e; v_store(y + i, e); }",
            "float total = v_sum(sum);",
            "if (i < n) { vf e = v_exp_share(v_load_n(x + i, n - i) - top); v_store_n(y + i, e, n - i);",
            "for (int64_t k = 0; k < n - i; k++) total += e[k]; }",
            "vf scale = v_set1(1.f / total); i = 0;",
            "for (; i + VL <= n; i += VL) v_store(y + i, v_load(y + i) * scale);",
            "for (; i < n; i++) y[i] *= scale[0];",
        ]
    else:
        lines += [
            "vf sum = {0}, top = v_set1(m); i = 0;",
            "for (; i + VL <= n; i += VL) sum += v_exp_share(v_load(x + i) - top);",
            "float total = v_sum(sum), shift;",
            "if (i < n) { vf e = v_exp_share(v_load_n(x + i, n - i) - top);",
            "for (int64_t k = 0; k < n - i; k++) total += e[k]; }",
            "if (total > 1.5f) shift = logf(total);",
            "else {",
            # One element is far the largest and adds one; beside it the rest would be lost.
            "sum = v_set1(0.f); i = 0;",
            "for (; i < n; i += VL) { vf z = v_load_n(x + i, hg_min(n - i, VL)) - top;",
            "sum += v_sel(v_first(n - i) & (z != 0.f), v_exp_share(z), v_set1(0.f)); }",
            "shift = log1pf(v_sum(sum)); }",
            "for (i = 0; i < n; i++) y[i] = (x[i] - m) - shift;",
        ]
    _row_kernel(low, node, product(moved.shape[:-1]), moved.shape[-1], lines, body, 0.15)
    if not last:
        back = [order.index(i) for i in range(len(shape))]
        emit_copy(low.recorder, written.permuted(back), target)
    low.forms[out] = target


def _of_rows(
    low: Lowering, node: ir.Node, value: ir.Value | None, shape: Sequence[Dim], axis: int
) -> tuple[Tensor, str]:
    """Return a parameter of rows, and C text for where that of a row begins behind its pointer.

    One that broadcasts is written out, for a row if it is that of all rows.
    """
    assert value is not None
    found = low.forms.contiguous(value)
    if found.size == product(shape[axis:]):
        return found, ""
    lead = max(0, len(found.shape) - len(shape) + axis)
    every = all(dim == 1 for dim in found.shape[:lead])
    wanted = [*([1] * axis if every else shape[:axis]), *shape[axis:]]
    written = low.recorder.new(f"{value.name} of rows", found.dtype, tuple(wanted))
    emit_copy(low.recorder, found.broadcast(wanted), written)
    return written, "" if every else " + row * n"


def lower_layer_norm(low: Lowering, node: ir.Node) -> None:
    """Lower LayerNormalization and RMSNormalization over the last axes."""
    x, out = node.inputs[0], node.outputs[0]
    attributes = low.facts.attributes(node)
    if not low.facts.is_float(x) or any(low.facts.uses(value) for value in node.outputs[1:]):
        raise NotNative("not float32, or mean and deviation are wanted")
    source = low.forms.contiguous(x)
    axis = int(attributes["axis"]) % len(source.shape)
    rows, length = product(source.shape[:axis]), product(source.shape[axis:])
    scale, by_row = _of_rows(low, node, node.inputs[1], source.shape, axis)
    shift_value = node.inputs[2] if len(node.inputs) > 2 else None
    shift, shift_by_row = (
        (None, "") if shift_value is None else _of_rows(low, node, shift_value, source.shape, axis)
    )
    target = low.forms.result(out)
    body = Body()
    s, w = body.pointer(source), body.pointer(scale) + by_row
    b = None if shift is None else body.pointer(shift) + shift_by_row
    d = body.pointer(target, written=True)
    epsilon = float_text(float(attributes["epsilon"]))
    centred = node.op_type != "RMSNormalization"
    lines = [f"const float *x = {s} + row * n; float *y = {d} + row * n; int64_t i;"]
    if centred:
        lines.append("const float mean = hg_sum_of(x, n) / n;")
    else:
        lines.append("const float mean = 0;")
    lines += [
        "const vf centre = v_set1(mean);",
        f"float factor = 1.f / sqrtf(hg_squares_of(x, n, mean) / n + {epsilon}); vf f = v_set1(factor);",
        "for (i = 0; i + VL <= n; i += VL) v_store(y + i, (v_load(x + i) - centre) * f * v_load(w + i)"
        + (" + v_load(b + i));" if b else ");"),
        "for (; i < n; i++) y[i] = (x[i] - mean) * factor * w[i]" + (" + b[i];" if b else ";"),
    ]
    lines[0] += f" const float *w = {w};" + (f" const float *b = {b};" if b else "")
    _row_kernel(low, node, rows, length, lines, body, 0.12)
    low.forms[out] = target


def lower_instance_norm(low: Lowering, node: ir.Node) -> None:
    """Lower InstanceNormalization and GroupNormalization of contiguous images."""
    x, out = node.inputs[0], node.outputs[0]
    attributes = low.facts.attributes(node)
    if not low.facts.is_float(x):
        raise NotNative(f"element type {low.facts.dtype(x)}")
    shape = low.facts.shape(x)
    source = low.forms.contiguous(x)
    channels = shape[1]
    if not isinstance(channels, int):
        raise NotNative(AT_RUN_TIME)
    groups = int(attributes.get("num_groups", channels))
    if 0 in shape:
        raise NotNative("an empty image")
    scale, shift = low.forms.contiguous(node.inputs[1]), low.forms.contiguous(node.inputs[2])
    if scale.size != channels or shift.size != channels:
        raise NotNative("a scale that is not one number a channel")
    target = low.forms.result(out)
    body = Body()
    plane = body.number(product(shape[2:]))
    s, w, b = body.pointer(source), body.pointer(scale), body.pointer(shift)
    d = body.pointer(target, written=True)
    epsilon = float_text(float(attributes["epsilon"]))
    each = channels // groups
    lines = [
        f"const float *x = {s} + row * n; float *y = {d} + row * n; const int64_t plane = {plane};",
        "const float mean = hg_sum_of(x, n) / n;",
        f"const float factor = 1.f / sqrtf(hg_squares_of(x, n, mean) / n + {epsilon});",
        f"for (int64_t c = 0; c < {each}; c++) {{ const int64_t channel = row % {groups} * {each} + c;",
        f"const float k = {w}[channel] * factor, t = {b}[channel] - mean * k;",
        "for (int64_t i = 0; i < plane; i++) y[c * plane + i] = x[c * plane + i] * k + t; }",
    ]
    _row_kernel(low, node, shape[0] * groups, each * product(shape[2:]), lines, body, 0.15)
    low.forms[out] = target


RULES: dict[str, Rule] = {
    **dict.fromkeys(_REDUCTIONS, lower_reduce),
    "GroupNormalization": lower_instance_norm,
    "InstanceNormalization": lower_instance_norm,
    "LayerNormalization": lower_layer_norm,
    "LogSoftmax": lower_softmax,
    "RMSNormalization": lower_layer_norm,
    "Softmax": lower_softmax,
}
