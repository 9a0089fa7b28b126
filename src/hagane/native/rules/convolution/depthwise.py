"""Depthwise convolution: rows of one block of channels at a time."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.kernel import Body
from hagane.native.kernels.packing import Packing
from hagane.native.lowering.epilogue import Epilogue, follow
from hagane.native.lowering.state import Lowering
from hagane.native.rules.convolution.images import bias_buffer, with_border
from hagane.native.rules.convolution.window import Window, needed_pads
from hagane.native.tiles.tile import bounded
from hagane.ops.definition import Array


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
    if any(have < want for have, want in zip(source.pads, pads, strict=True)):
        source = with_border(low, x, source, pads)
    target = low.forms.new_blocked(epilogue.value, low.facts.fixed_shape(epilogue.value))
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
    rows = max(1, min(window.out_height, 24_000 // max(1, window.out_width * taps * 2)))
    chunks = -(-window.out_height // rows)
    body.add(
        f"int64_t chunk = q % {chunks}, block = q / {chunks} % {blocks}, image = q / {chunks * blocks};",
        f"const float *s = {s} + (image * {blocks} + block) * {source.plane_stride};",
        f"float *d = {d} + (image * {blocks} + block) * {target.plane_stride};",
        f"const float *w = {w} + block * {taps * lanes};",
        f"vf bias = v_load({b} + block * {lanes});",
    )
    in_registers = taps <= (9 if low.facts.level.registers == 32 else 0)
    if in_registers:
        body.add(*(f"vf w{i} = v_load(w + {i * lanes});" for i in range(taps)))
    body.add(
        f"for (int64_t y = chunk * {rows}; y < hg_min({window.out_height}, (chunk + 1) * {rows}); y++) {{",
        f"const float *row = s + y * {window.strides[0] * source.row_stride};",
        f"float *out = d + y * {target.row_stride};",
        "int64_t x = 0;",
    )
    width = min(window.out_width, 8 if low.facts.level.registers == 32 else 4)
    for count in (width, 1):
        if count == 1 and window.out_width % width == 0 and width > 1:
            continue
        body.add(f"for (; x + {count} <= {window.out_width}; x += {count}) {{")
        body.add(f"const float *p = row + x * {window.strides[1] * lanes};")
        _depthwise_pixels(body, window, source.row_stride, lanes, count, in_registers, epilogue)
        body.add("}")
    body.add("}")
    flops = 2.0 * taps * window.channels * window.out_height * window.out_width * window.images
    low.recorder.emit(
        node,
        body,
        window.images * blocks * chunks,
        work=flops / 40,
        flops=flops,
        followers=epilogue.nodes,
        name=window.name("depthwise"),
    )
    low.forms[epilogue.value] = target


def _depthwise_pixels(
    body: Body,
    window: Window,
    row_stride: int,
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
            at = i * dh * row_stride + column * lanes
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
