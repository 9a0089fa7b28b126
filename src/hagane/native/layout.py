"""Kernels that bring images into blocks of channels and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hagane.native.kernel import Body
from hagane.native.tensor import Blocked, Tensor

if TYPE_CHECKING:
    from hagane.native.lowering import Lowering


def _four(source: Tensor) -> tuple[Tensor, int, int]:
    """Return a plain image as ``(N, C, rows, columns)``."""
    from dataclasses import replace

    if len(source.shape) == 3:
        source = replace(
            source,
            shape=(*source.shape[:2], 1, source.shape[2]),
            strides=(*source.strides[:2], 0, source.strides[2]),
        )
    return source, int(source.shape[2]), int(source.shape[3])


def emit_block(low: Lowering, source: Tensor, target: Blocked) -> None:
    """Write the kernel that copies a plain image into blocks; channels past the last are zero."""
    tensor, rows, columns = _four(source)
    body = Body()
    s = body.pointer(tensor)
    d = body.pointer(target.view(), written=True)
    n_stride, c_stride, h_stride, w_stride = (body.size(stride) for stride in tensor.strides)
    channels, lanes = target.shape[1], target.lanes
    body.add(
        f"int64_t y = q % {rows}, block = q / {rows} % {target.blocks};",
        f"int64_t image = q / {rows * target.blocks};",
        f"const float *s = {s} + image * {n_stride} + block * {lanes} * {c_stride} + y * {h_stride};",
        f"float *d = {d} + (image * {target.blocks} + block) * {target.plane_stride}"
        f" + y * {target.row_stride};",
        f"int64_t n = hg_min({lanes}, {channels} - block * {lanes});",
        f"for (int64_t x = 0; x < {columns}; x++) {{",
        "vf v = {0};",
        f"for (int64_t c = 0; c < n; c++) v[c] = s[c * {c_stride} + x * {w_stride}];",
        f"v_store(d + x * {lanes}, v);",
        "}",
    )
    elements = target.floats
    low.emit(
        f"to blocks '{source.buffer.name}'",
        body,
        target.shape[0] * target.blocks * rows,
        work=elements * 0.4,
    )


def emit_unblock(low: Lowering, source: Blocked, target: Tensor) -> None:
    """Write the kernel that copies an image in blocks into row-major order."""
    tensor, rows, columns = _four(target)
    body = Body()
    s = body.pointer(source.view())
    d = body.pointer(tensor, written=True)
    channels, lanes = source.shape[1], source.lanes
    body.add(
        f"int64_t y = q % {rows}, block = q / {rows} % {source.blocks};",
        f"int64_t image = q / {rows * source.blocks};",
        f"const float *s = {s} + (image * {source.blocks} + block) * {source.plane_stride}"
        f" + y * {source.row_stride};",
        f"float *d = {d} + (image * {channels} + block * {lanes}) * {rows * columns}"
        f" + y * {columns};",
        f"int64_t n = hg_min({lanes}, {channels} - block * {lanes});",
        "for (int64_t c = 0; c < n; c++)",
        f"  for (int64_t x = 0; x < {columns}; x++)",
        f"    d[c * {rows * columns} + x] = s[x * {lanes} + c];",
    )
    low.emit(
        f"from blocks '{source.buffer.name}'",
        body,
        source.shape[0] * source.blocks * rows,
        work=source.floats * 0.4,
    )
