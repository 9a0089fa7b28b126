"""Depthwise convolution: rows of one block of channels at a time."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.packing import Packing
from hagane.native.lowering.epilogue import Epilogue, follow
from hagane.native.lowering.state import Lowering
from hagane.native.rules.convolution.images import bias_buffer, with_border
from hagane.native.rules.convolution.window import Window, covers, needed_pads
from hagane.native.tiles.tile import bounded
from hagane.ops.definition import Array
from hagane.symbolic import Dim, ceildiv, floordiv, maximum, minimum

# So many products of vectors make a task.
_TASK_PRODUCTS = 12_000


def lower_depthwise(
    low: Lowering, node: ir.Node, window: Window, weight: Array, bias: Array | None
) -> None:
    """Write the kernel of a convolution in which each channel has a filter of its own."""
    lanes = low.facts.level.lanes
    x = node.inputs[0]
    assert x is not None
    epilogue = follow(low, node.outputs[0], residuals=False)
    source = low.forms.blocked(x)
    pads = needed_pads(window)
    if not covers(source.pads, pads):
        source = with_border(low, x, source, pads)
    target = low.forms.new_blocked(epilogue.value, low.facts.shape(epilogue.value))
    kh, kw = window.kernel
    taps = kh * kw
    blocks = source.blocks

    packing = Packing(pack_depthwise, (weight, blocks, lanes))
    weights = low.recorder.weight(("depthwise", id(node)), packing, blocks * lanes * taps * 4)
    body = Body()
    start = -window.pads[0] * source.row_stride - window.pads[1] * lanes
    s = body.pointer(source.view(), offset=start)
    w = body.raw(weights)
    b = body.raw(bias_buffer(low, node, window, bias))
    d = body.pointer(target.view(), written=True)
    height, columns = window.out_height, window.out_width
    rows = minimum(height, maximum(1, floordiv(_TASK_PRODUCTS, maximum(1, columns * taps))))
    rows = maximum(1, rows)
    chunks = ceildiv(height, rows)
    n = body.number
    body.add(
        f"int64_t chunk = q % {n(chunks)}, block = q / {n(chunks)} % {blocks}, "
        f"image = q / {n(chunks * blocks)};",
        f"const float *s = {s} + (image * {blocks} + block) * {n(source.plane_stride)};",
        f"float *d = {d} + (image * {blocks} + block) * {n(target.plane_stride)};",
        f"const float *w = {w} + block * {taps * lanes};",
        f"vf bias = v_load({b} + block * {lanes});",
    )
    in_registers = taps <= (9 if low.facts.level.registers == 32 else 0)
    if in_registers:
        body.add(*(f"vf w{i} = v_load(w + {i * lanes});" for i in range(taps)))
    body.add(
        f"for (int64_t y = chunk * {n(rows)}; y < hg_min({n(height)}, (chunk + 1) * {n(rows)}); y++) {{",
        f"const float *row = s + y * {n(window.strides[0] * source.row_stride)};",
        f"float *out = d + y * {n(target.row_stride)};",
        "int64_t x = 0;",
    )
    for count in _pixels_at_once(columns, 8 if low.facts.level.registers == 32 else 4):
        body.add(f"for (; x + {count} <= {n(columns)}; x += {count}) {{")
        body.add(f"const float *p = row + x * {window.strides[1] * lanes};")
        _depthwise_pixels(body, window, source.row_stride, lanes, count, in_registers, epilogue)
        body.add("}")
    body.add("}")
    flops = 2.0 * taps
    low.recorder.emit(
        node,
        body,
        window.images * blocks * chunks,
        work=work_of(window.elements, flops / 40),
        flops=work_of(window.elements, flops),
        followers=epilogue.nodes,
        name=window.name("depthwise"),
    )
    low.forms[epilogue.value] = target


def _pixels_at_once(columns: Dim, most: int) -> list[int]:
    """Return how many pixels of a row are computed together: as many as can, then the rest."""
    if not isinstance(columns, int):
        return [most, 3, 1]
    width = min(columns, most)
    return [width] if columns % width == 0 else [width, 1]


def _depthwise_pixels(
    body: Body,
    window: Window,
    row_stride: Dim,
    lanes: int,
    count: int,
    in_registers: bool,
    epilogue: Epilogue,
) -> None:
    (kh, kw), stride = window.kernel, window.strides[1]
    dh, dw = window.dilations
    body.add(" ".join(f"vf a{t} = bias;" for t in range(count)))
    for i in range(kh):
        columns: dict[int, list[tuple[int, int]]] = {}
        for t in range(count):
            for j in range(kw):
                columns.setdefault(t * stride + j * dw, []).append((t, j))
        for column, uses in sorted(columns.items()):
            at = body.number(i * dh * row_stride + column * lanes)
            calls = []
            for t, j in uses:
                tap = i * kw + j
                value = f"w{tap}" if in_registers else f"v_load(w + {tap * lanes})"
                calls.append(f"a{t} = v_fma(v, {value}, a{t});")
            body.add(f"{{ vf v = v_load(p + {at}); {' '.join(calls)} }}")
    for t in range(count):
        body.add(f"v_store(out + (x + {t}) * {lanes}, {bounded(f'a{t}', epilogue.activation)});")


def pack_depthwise(weight: Array, blocks: int, lanes: int) -> Array:
    """Return filters ``(channels, 1, rows, columns)`` as ``(blocks, taps, lanes)``."""
    channels = len(weight)
    taps = weight.size // channels
    padded = np.zeros((blocks * lanes, taps), np.float32)
    padded[:channels] = weight.reshape(channels, taps)
    return padded.reshape(blocks, lanes, taps).transpose(0, 2, 1).reshape(-1)
