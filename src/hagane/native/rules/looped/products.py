"""MatMul, MatMulInteger and QLinearMatMul of any operands, zero points among them."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.kernel import c_type, work_of
from hagane.native.kernels.tensor import Tensor
from hagane.native.kernels.written import emit_written, is_real, loaded, number_type, stored
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.indexing.axes import number_input
from hagane.native.rules.looped.byte_sums import are_bytes, emit_byte_sums, prepared
from hagane.native.rules.products.thin import FEW_COLUMNS, FEW_ROWS, thin_functions, thin_lines
from hagane.symbolic import Dim, ceildiv, maximum, product

# Rows of one task, and columns that are summed at once.
_ROWS, _COLUMNS = 8, 64
# Rows of doubles that are multiplied at once, and rows of one task.
_WIDE_ROWS, _WIDE_STRETCH = 6, 96


def _matrices(low: Lowering, node: ir.Node, left: int, right: int) -> tuple[Tensor, Tensor]:
    """Return both operands as stacks of matrices; a vector is a row, or a column."""
    a, b = low.forms.plain(node.inputs[left]), low.forms.plain(node.inputs[right])
    if not a.shape or not b.shape:
        raise NotNative("a product with a number")
    if len(a.shape) == 1:
        a = low.forms.contiguous(node.inputs[left]).reshaped((1, a.shape[0]))
    if len(b.shape) == 1:
        b = low.forms.contiguous(node.inputs[right]).reshaped((b.shape[0], 1))
    return a, b


def _per(low: Lowering, value: ir.Value | None, index: str) -> tuple[dict[str, Tensor], str]:
    """Return a parameter of one number, or one a row or column, and C text for it.

    Args:
        low: The state of lowering.
        value: The parameter.
        index: C text for the row or column.
    """
    if value is None:
        return {}, "0"
    found = low.forms.contiguous(value)
    name = f"parameter_{value.name}"
    key = "".join(c if c.isalnum() else "_" for c in name)
    if found.size == 1:
        return {key: found}, f"{key}[0]"
    if len(found.shape) != 1:
        raise NotNative("parameters of several axes")
    return {key: found}, f"{key}[{key}_n == 1 ? 0 : {index}]"


def lower_product(low: Lowering, node: ir.Node) -> None:
    """Lower a product of two stacks of matrices."""
    quantized = node.op_type == "QLinearMatMul"
    a, b = _matrices(low, node, 0, 3 if quantized else 1)
    out = node.outputs[0]
    y = low.forms.result(out)
    batch_rank = max(len(a.shape), len(b.shape)) - 2
    # The result lacks the axes that vectors were given.
    batch = y.shape[:batch_rank]
    (m, k), n = a.shape[-2:], b.shape[-1]
    low.stretched.add(node)
    a, b = a.broadcast((*batch, m, k)), b.broadcast((*batch, *b.shape[-2:]))
    reads = {"a": a, "b": b}
    more: dict[str, Tensor] = {}
    real = is_real(a.dtype)
    if real:
        kind = number_type(a.dtype)
        if a.dtype != b.dtype:
            raise NotNative(f"a product of {a.dtype} and {b.dtype}")
        left, right = loaded(a.dtype, "a0[row * am + i * ak]"), loaded(b.dtype, "v[j * bn]")
        result = stored(y.dtype, "sum[j]")
    elif node.op_type == "MatMul":
        # Whole numbers wrap around, which C defines for unsigned ones only.
        kind = f"u{a.dtype.name.removeprefix('u')}_t"
        left, right, result = "a0[row * am + i * ak]", "v[j * bn]", "sum[j]"
    else:
        kind = "int64_t" if quantized else "int32_t"
        of_a, za = _per(low, number_input(low, node, 2), "row")
        of_b, zb = _per(low, number_input(low, node, 5 if quantized else 3), "c + j")
        more |= of_a | of_b
        left = f"(a0[row * am + i * ak] - {za})"
        right = f"(v[j * bn] - {zb})"
        result = "sum[j]"
        if quantized:
            scales, texts = [], []
            for i, index in ((1, "row"), (4, "c + j"), (6, "0"), (7, "0")):
                found, text = _per(low, node.inputs[i], index)
                more |= found
                dtype = next(iter(found.values())).dtype
                texts.append(f"(float){loaded(dtype, text)}" if i != 7 else text)
                scales.append(found)
            limits = np.iinfo(y.dtype)
            result = (
                f"hg_saturate((float)sum[j] * ({texts[0]} * {texts[1]} / {texts[2]}), "
                f"{texts[3]}, {limits.min}, {limits.max})"
            )
    lengths = {f"{name}_n": tensor.size for name, tensor in more.items()}
    if node.op_type != "MatMul" and are_bytes(a, b):
        _byte_product(low, node, b, y, batch_rank, (za, zb), result, more, lengths)
        return
    if a.dtype == np.float64:
        _wide_product(low, node, a, b, y, batch_rank)
        return
    chunks = ceildiv(m, _ROWS)
    at = "\n".join(
        f"{{ int64_t at = index % B{i}; index /= B{i}; a0 += at * A{i}; b0 += at * C{i}; }}"
        for i in reversed(range(batch_rank))
    )
    text = f"""
if (K != K_right) {{ hg_fail(thread, K); return; }}
int64_t first = q % chunks * {_ROWS}, index = q / chunks;
Y *out = y + index * M * N; const A *a0 = a; const B *b0 = b;
{at}
for (int64_t row = first; row < hg_min(M, first + {_ROWS}); row++)
for (int64_t c = 0; c < N; c += {_COLUMNS}) {{
int64_t w = hg_min({_COLUMNS}, N - c);
S sum[{_COLUMNS}] = {{0}};
for (int64_t i = 0; i < K; i++) {{
S u = {left};
const B *v = b0 + i * bk + c * bn;
if (bn == 1) for (int64_t j = 0; j < w; j++) sum[j] += u * (S){right.replace("v[j * bn]", "v[j]")};
else for (int64_t j = 0; j < w; j++) sum[j] += u * (S){right};
}}
for (int64_t j = 0; j < w; j++) out[row * N + c + j] = {result}; }}"""
    (am, ak), (bk, bn) = a.strides[-2:], b.strides[-2:]
    sizes: dict[str, Dim] = {
        "M": m, "K": k, "N": n, "K_right": b.shape[-2], "chunks": chunks,
        "am": am, "ak": ak, "bk": bk, "bn": bn, **lengths,
        **{f"B{i}": dim for i, dim in enumerate(batch)},
        **{f"A{i}": stride for i, stride in enumerate(a.strides[:batch_rank])},
        **{f"C{i}": stride for i, stride in enumerate(b.strides[:batch_rank])},
    }  # fmt: skip
    whole = product((*batch, m, k, n))
    emit_written(
        low.recorder, node, text,
        reads=reads | more, writes={"y": y}, sizes=sizes,
        types={"A": c_type(a.dtype), "B": c_type(b.dtype), "Y": c_type(y.dtype), "S": kind},
        tasks=product(batch) * chunks, work=work_of(whole, 0.25),
    )  # fmt: skip
    low.forms[out] = y


def _wide_product(
    low: Lowering, node: ir.Node, a: Tensor, b: Tensor, y: Tensor, batch_rank: int
) -> None:
    """Write the kernel of a stack of products of doubles.

    A task brings two vectors of columns side by side, which meet some rows of the left side.

    Args:
        low: Takes the kernel.
        node: The product.
        a: The left side, ``(*stack, m, k)``.
        b: The right side, ``(*stack, k, n)``.
        y: The result, row-major.
        batch_rank: How many axes the stack has.
    """
    batch = y.shape[:batch_rank]
    (m, k), n = a.shape[-2:], b.shape[-1]
    lanes = low.facts.level.lanes // 2
    wide = 2 * lanes
    at = "\n".join(
        f"{{ const int64_t at = index % B{i}; index /= B{i}; a0 += at * A{i}; b0 += at * C{i}; }}"
        for i in reversed(range(batch_rank))
    )
    rows, new_line = range(_WIDE_ROWS), "\n"
    room = maximum(maximum(1, k) * wide, 1)
    few = thin_lines(
        "double", rows=not isinstance(m, int) or m <= FEW_ROWS,
        columns=not isinstance(n, int) or n <= FEW_COLUMNS, row="", room="room",
        threads=low.facts.threads,
    )  # fmt: skip
    text = f"""
if (K != K_right) {{ hg_fail(thread, K); return; }}
int64_t index = q;
const int64_t part = index % across, n0 = part * {wide}; index /= across;
const int64_t r0 = index % down * {_WIDE_STRETCH}; index /= down;
const int64_t w = hg_min({wide}, N - n0), r1 = hg_min(M, r0 + {_WIDE_STRETCH});
const double *a0 = a, *b0 = b; double *out0 = y + index * M * N, *out = out0 + n0;
{at}
const int64_t first = r0, last = r1; (void)first; (void)last;
{new_line.join(few)}
double *panel = (double *)(((uintptr_t)thread->scratch + 63) & ~(uintptr_t)63);
b0 += n0 * bn;
for (int64_t i = 0; i < K; i++) {{
double *to = panel + i * {wide}; const double *from = b0 + i * bk;
if (bn == 1) {{ vd_store(to, vd_load_n(from, w)); vd_store(to + {lanes}, vd_load_n(from + {lanes}, w - {lanes})); }}
else for (int64_t j = 0; j < {wide}; j++) to[j] = j < w ? from[j * bn] : 0; }}
for (int64_t r = r0; r < r1; r += {len(rows)}) {{
{" ".join(f"const double *x{i} = a0 + hg_min(r + {i}, r1 - 1) * am;" for i in rows)}
vd {", ".join(f"s{i} = {{0}}, t{i} = {{0}}" for i in rows)};
if (w > {lanes}) for (int64_t i = 0; i < K; i++) {{
const vd v = vd_load(panel + i * {wide}), u = vd_load(panel + i * {wide} + {lanes});
{" ".join(f"{{ const double e = x{i}[i * ak]; s{i} += v * e; t{i} += u * e; }}" for i in rows)} }}
else for (int64_t i = 0; i < K; i++) {{
const vd v = vd_load(panel + i * {wide});
{" ".join(f"s{i} += v * x{i}[i * ak];" for i in rows)} }}
{" ".join(f"if (r + {i} < r1) {{ double *d = out + (r + {i}) * N; vd_store_n(d, s{i}, w); vd_store_n(d + {lanes}, t{i}, w - {lanes}); }}" for i in rows)} }}"""
    (am, ak), (bk, bn) = a.strides[-2:], b.strides[-2:]
    across, down = ceildiv(n, wide), ceildiv(m, _WIDE_STRETCH)
    sizes: dict[str, Dim] = {
        "M": m, "K": k, "N": n, "K_right": b.shape[-2], "across": across, "down": down, "room": room,
        "am": am, "ak": ak, "bk": bk, "bn": bn,
        **{f"B{i}": dim for i, dim in enumerate(batch)},
        **{f"A{i}": stride for i, stride in enumerate(a.strides[:batch_rank])},
        **{f"C{i}": stride for i, stride in enumerate(b.strides[:batch_rank])},
    }  # fmt: skip
    emit_written(
        low.recorder, node, text,
        reads={"a": a, "b": b}, writes={"y": y}, sizes=sizes,
        tasks=product(batch) * across * down, work=work_of(product((*batch, m, k, n)), 0.05),
        scratch=k * (wide * 8) + 128, helper=thin_functions("double") if few else "",
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


def _byte_product(
    low: Lowering,
    node: ir.Node,
    b: Tensor,
    y: Tensor,
    batch_rank: int,
    zeros: tuple[str, str],
    result: str,
    more: dict[str, Tensor],
    lengths: dict[str, Dim],
) -> None:
    """Write the kernels of a stack of products of bytes; ``b`` has the axes of the stack."""
    batch = y.shape[:batch_rank]
    left = low.forms.contiguous(node.inputs[0])
    if len(left.shape) == 1:
        left = left.reshaped((1, left.shape[0]))
    m, k = left.shape[-2:]
    rows, sums = prepared(low, node, left)
    matrices = Tensor(rows.buffer, rows.dtype, rows.shape[:-1], sums.strides)
    step = matrices.broadcast((*batch, m)).strides
    n, (bk, bn) = b.shape[-1], b.strides[-2:]
    at = "\n".join(
        f"{{ int64_t at = index % B{i}; index /= B{i}; row0 += at * A{i}; b0 += at * C{i}; }}"
        for i in reversed(range(batch_rank))
    )
    start = f"""
if (K != K_right) {{ hg_fail(thread, K); return; }}
int64_t index = piece, row0 = 0; (void)index;
const uint8_t *b0 = (const uint8_t *)b;
{at}
Y *out = y + piece * M * N;"""
    line = """
const uint8_t *from = b0 + k * bk + n0 * bn;
if (bn == 1 && w == 64) for (int64_t j = 0; j < 64; j++) to[j] = from[j] ^ FLIP;
else for (int64_t j = 0; j < w; j++) to[j] = from[j * bn] ^ FLIP;"""
    emit_byte_sums(
        low, node, (rows, sums), b, y, start=start, line=line,
        zeros=(zeros[0], zeros[1].replace("c + j", "c")),
        signed=(left.dtype == np.int8, b.dtype == np.int8), exact=node.op_type == "QLinearMatMul",
        result=result.replace("sum[j]", "sum").replace("c + j", "c"), reads=more, pieces=product(batch),
        sizes={
            "M": m, "K": k, "N": n, "K_right": b.shape[-2], "bk": bk, "bn": bn, **lengths,
            **{f"B{i}": dim for i, dim in enumerate(batch)},
            **{f"A{i}": stride for i, stride in enumerate(step[:batch_rank])},
            **{f"C{i}": stride for i, stride in enumerate(b.strides[:batch_rank])},
        },
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


RULES: dict[tuple[str, str], Rule] = {
    ("", "MatMul"): lower_product,
    ("", "MatMulInteger"): lower_product,
    ("", "QLinearMatMul"): lower_product,
}
