"""Kernels that bring images into blocks of channels and back.

All blocks of some pixels come before those of the next ones: large images are computed a share of
their pixels by each thread, and the pixels that another one wrote last are slow to read.
"""

from __future__ import annotations

from dataclasses import replace

from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.recorder import Recorder
from hagane.native.kernels.tensor import Blocked, Tensor
from hagane.symbolic import Dim, ceildiv


def _four(source: Tensor) -> tuple[Tensor, Dim, Dim]:
    """Return a plain image as ``(N, C, rows, columns)``."""
    if len(source.shape) == 3:
        source = replace(
            source,
            shape=(*source.shape[:2], 1, source.shape[2]),
            strides=(*source.strides[:2], 0, source.strides[2]),
        )
    return source, source.shape[2], source.shape[3]


# Pixels of one task.
_PIXELS = 64


def _loops(body: Body, images: Dim, rows: Dim, columns: Dim, blocks: int) -> tuple[list[str], Dim]:
    """Return lines that set ``image``, ``y``, ``x0``, ``x1`` and ``block`` of a task, and the tasks."""
    parts = ceildiv(columns, _PIXELS)
    n = body.number
    lines = [
        f"int64_t block = q % {blocks}, part = q / {blocks} % {n(parts)};",
        f"int64_t y = q / {n(blocks * parts)} % {n(rows)}, image = q / {n(blocks * parts * rows)};",
        f"int64_t x0 = part * {_PIXELS}, x1 = hg_min({n(columns)}, x0 + {_PIXELS});",
    ]
    return lines, images * rows * parts * blocks


def emit_block(recorder: Recorder, source: Tensor, target: Blocked) -> None:
    """Write the kernel that copies a plain image into blocks; channels past the last are zero."""
    tensor, rows, columns = _four(source)
    body = Body()
    s = body.pointer(tensor)
    d = body.pointer(target.view(), written=True)
    n_stride, c_stride, h_stride, w_stride = (body.size(stride) for stride in tensor.strides)
    channels, lanes = target.shape[1], target.lanes
    lines, tasks = _loops(body, target.shape[0], rows, columns, target.blocks)
    body.add(
        *lines,
        f"const float *s = {s} + image * {n_stride} + block * {lanes} * {c_stride} + y * {h_stride};",
        f"float *d = {d} + (image * {target.blocks} + block) * {body.number(target.plane_stride)}"
        f" + y * {body.number(target.row_stride)};",
        f"int64_t n = hg_min({lanes}, {channels} - block * {lanes});",
        "for (int64_t x = x0; x < x1; x++) {",
        "vf v = {0};",
        f"for (int64_t c = 0; c < n; c++) v[c] = s[c * {c_stride} + x * {w_stride}];",
        f"v_store(d + x * {lanes}, v);",
        "}",
    )
    work = work_of(target.floats, 0.4)
    recorder.emit(f"to blocks '{source.buffer.name}'", body, tasks, work=work)


def emit_unblock(recorder: Recorder, source: Blocked, target: Tensor) -> None:
    """Write the kernel that copies an image in blocks into row-major order."""
    tensor, rows, columns = _four(target)
    body = Body()
    s = body.pointer(source.view())
    d = body.pointer(tensor, written=True)
    channels, lanes = source.shape[1], source.lanes
    lines, tasks = _loops(body, source.shape[0], rows, columns, source.blocks)
    body.add(
        *lines,
        f"const float *s = {s} + (image * {source.blocks} + block) * {body.number(source.plane_stride)}"
        f" + y * {body.number(source.row_stride)};",
        f"float *d = {d} + (image * {channels} + block * {lanes}) * {body.number(rows * columns)}"
        f" + y * {body.number(columns)};",
        f"int64_t n = hg_min({lanes}, {channels} - block * {lanes});",
        "for (int64_t c = 0; c < n; c++)",
        "  for (int64_t x = x0; x < x1; x++)",
        f"    d[c * {body.number(rows * columns)} + x] = s[x * {lanes} + c];",
    )
    recorder.emit(
        f"from blocks '{source.buffer.name}'", body, tasks, work=work_of(source.floats, 0.4)
    )
