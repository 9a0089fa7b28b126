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


def _in_one_row(tensor: Tensor, image: Blocked) -> tuple[Tensor, Dim, Dim, Dim]:
    """Return a plain image, its rows and columns, and the floats between rows of the blocks.

    Where rows follow each other without gaps in both, they are one row.
    """
    tensor, rows, columns = _four(tensor)
    of_rows, of_columns = tensor.strides[2:]
    if image.row_stride == columns * image.lanes and (of_rows == of_columns * columns or rows == 1):
        strides = (*tensor.strides[:2], 0, of_columns)
        tensor = replace(tensor, shape=(*tensor.shape[:2], 1, rows * columns), strides=strides)
        return tensor, 1, rows * columns, 0
    return tensor, rows, columns, image.row_stride


def emit_block(recorder: Recorder, source: Tensor, target: Blocked) -> None:
    """Write the kernel that copies a plain image into blocks; channels past the last are zero."""
    tensor, rows, columns, row_stride = _in_one_row(source, target)
    body = Body()
    s = body.pointer(tensor)
    d = body.pointer(target.view(), written=True)
    n_stride, c_stride, h_stride, w_stride = (body.size(stride) for stride in tensor.strides)
    channels, lanes = target.shape[1], target.lanes
    lines, tasks = _loops(body, target.shape[0], rows, columns, target.blocks)
    body.add(
        *lines,
        f"const int64_t of_channels = {c_stride}, of_columns = {w_stride};",
        f"const float *s = {s} + image * {n_stride} + block * {lanes} * of_channels + y * {h_stride};",
        f"float *d = {d} + (image * {target.blocks} + block) * {body.number(target.plane_stride)}"
        f" + y * {body.number(row_stride)};",
        f"const int64_t n = hg_min({lanes}, {channels} - block * {lanes});",
        "int64_t x = x0;",
    )
    if tensor.strides[1] == 1:
        body.add(
            f"if (n == {lanes}) for (; x < x1; x++) v_store(d + x * {lanes}, v_load(s + x * of_columns));",
            f"else for (; x < x1; x++) v_store(d + x * {lanes}, v_load_n(s + x * of_columns, n));",
        )
    else:
        if tensor.strides[3] == 1:
            body.add(
                f"if (n == {lanes}) for (; x + 8 <= x1; x += 8) for (int64_t c = 0; c < {lanes}; c += 8)",
                f"hg_square_4((const uint32_t *)(s + c * of_channels + x), of_channels, (uint32_t *)(d + x * {lanes} + c), {lanes});",
            )
        body.add(
            "for (; x < x1; x++) {",
            "vf v = {0};",
            "for (int64_t c = 0; c < n; c++) v[c] = s[c * of_channels + x * of_columns];",
            f"v_store(d + x * {lanes}, v);",
            "}",
        )
    work = work_of(target.floats, 0.15)
    recorder.emit(f"to blocks '{source.buffer.name}'", body, tasks, work=work)


def emit_unblock(recorder: Recorder, source: Blocked, target: Tensor) -> None:
    """Write the kernel that copies an image in blocks into row-major order."""
    tensor, rows, columns, row_stride = _in_one_row(target, source)
    body = Body()
    s = body.pointer(source.view())
    d = body.pointer(tensor, written=True)
    channels, lanes = source.shape[1], source.lanes
    lines, tasks = _loops(body, source.shape[0], rows, columns, source.blocks)
    body.add(
        *lines,
        f"const int64_t plane = {body.number(rows * columns)};",
        f"const float *s = {s} + (image * {source.blocks} + block) * {body.number(source.plane_stride)}"
        f" + y * {body.number(row_stride)};",
        f"float *d = {d} + (image * {channels} + block * {lanes}) * plane + y * {body.number(columns)};",
        f"const int64_t n = hg_min({lanes}, {channels} - block * {lanes});",
        "int64_t x = x0;",
        "for (; x + 8 <= x1; x += 8) {",
        "int64_t c = 0;",
        f"for (; c + 8 <= n; c += 8) hg_square_4((const uint32_t *)(s + x * {lanes} + c), {lanes}, (uint32_t *)(d + c * plane + x), plane);",
        f"for (; c < n; c++) for (int64_t k = x; k < x + 8; k++) d[c * plane + k] = s[k * {lanes} + c]; }}",
        f"for (; x < x1; x++) for (int64_t c = 0; c < n; c++) d[c * plane + x] = s[x * {lanes} + c];",
    )
    recorder.emit(
        f"from blocks '{source.buffer.name}'", body, tasks, work=work_of(source.floats, 0.15)
    )
