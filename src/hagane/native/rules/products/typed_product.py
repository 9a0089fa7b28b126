"""Matrix products of whole numbers, in plain loops that compilers vectorise."""

from __future__ import annotations

import onnx_ir as ir

from hagane.native.kernels.kernel import Body, c_type, work_of
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering
from hagane.symbolic import ceildiv, product

_TYPES = frozenset({"int32", "int64", "uint32", "uint64"})
# Rows of one task, and columns that are summed at once.
_ROWS, _COLUMNS = 8, 64


def lower_typed_product(low: Lowering, node: ir.Node) -> None:
    """Lower MatMul of whole numbers."""
    dtype = low.facts.dtype(node.inputs[0])
    a, b = low.forms.plain(node.inputs[0]), low.forms.plain(node.inputs[1])
    if dtype.name not in _TYPES or b.dtype != dtype:
        raise NotNative(f"element type {dtype}")
    if len(a.shape) < 2 or len(b.shape) < 2:
        raise NotNative("a product with a vector")
    target = low.forms.result(node.outputs[0])
    batch = target.shape[:-2]
    low.stretched.add(node)
    a, b = a.broadcast((*batch, *a.shape[-2:])), b.broadcast((*batch, *b.shape[-2:]))
    (m, k), n = a.shape[-2:], b.shape[-1]
    kind = c_type(dtype)
    # Whole numbers wrap around, which C defines for unsigned ones only.
    summed = kind if dtype.kind != "i" else f"u{kind}"
    body = Body()
    s, w, d = body.pointer(a), body.pointer(b), body.pointer(target, written=True)
    chunks = ceildiv(m, _ROWS)
    body.add(
        f"const int64_t M = {body.size(m)}, K = {body.size(k)}, N = {body.size(n)};",
        f"int64_t first = q % {body.size(chunks)} * {_ROWS}, index = q / {body.size(chunks)};",
        f"{kind} *out = {d} + index * M * N; const {kind} *a0 = {s}, *b0 = {w};",
    )
    for axis in reversed(range(len(batch))):
        length = body.size(batch[axis])
        body.add(
            f"{{ int64_t at = index % {length}; index /= {length};",
            f"a0 += at * {body.size(a.strides[axis])}; b0 += at * {body.size(b.strides[axis])}; }}",
        )
    (am, ak), (bk, bn) = (
        tuple(body.size(stride) for stride in tensor.strides[-2:]) for tensor in (a, b)
    )
    body.add(
        f"for (int64_t row = first; row < hg_min(M, first + {_ROWS}); row++)",
        f"for (int64_t c = 0; c < N; c += {_COLUMNS}) {{ int64_t w = hg_min({_COLUMNS}, N - c);",
        f"{summed} sum[{_COLUMNS}] = {{0}};",
        f"for (int64_t i = 0; i < K; i++) {{ {summed} x = a0[row * {am} + i * {ak}];",
        f"const {kind} *y = b0 + i * {bk} + c * {bn};",
        f"for (int64_t j = 0; j < w; j++) sum[j] += x * ({summed})y[j * {bn}]; }}",
        f"for (int64_t j = 0; j < w; j++) out[row * N + c + j] = ({kind})sum[j]; }}",
    )
    whole = product((*batch, m, k, n))
    tasks = product(batch) * chunks
    low.recorder.emit(node, body, tasks, work=work_of(whole, 0.5), flops=work_of(whole, 2.0))
    low.forms[node.outputs[0]] = target
