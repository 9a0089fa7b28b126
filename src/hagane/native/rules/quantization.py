"""Quantised models: 8-bit integers with scales and zero points."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.native.expression import FLOAT32, Apply, Constant, Expression, Leaf
from hagane.native.int8 import emit_int8_product, pack_rows
from hagane.native.kernel import Body, c_type
from hagane.native.lowering import Lazy, Lowering, NotNative, Rule, operand
from hagane.native.rules.elementwise import keep
from hagane.native.tensor import Tensor
from hagane.ops.convolution.window import Window
from hagane.ops.definition import Array
from hagane.symbolic import Dim, product

_BYTES = (np.dtype(np.int8), np.dtype(np.uint8))


def _along(low: Lowering, node: ir.Node, value: ir.Value | None, rank: int) -> Expression | None:
    """Return a scale or zero point as an operand: one for all, or one an index of the axis."""
    if value is None:
        return None
    attributes = low.attributes(node)
    array = low.constant(value)
    if array is not None and array.size == 1:
        item = array.reshape(-1)[0]
        dtype = low.dtype(value)
        return Constant(float(item) if dtype.kind == "f" else int(item), dtype)
    if attributes.get("block_size") or len(low.shape(value)) != 1:
        raise NotNative("a scale a block")
    axis = int(attributes["axis"])
    shape: list[Dim] = [1] * rank
    shape[axis + rank if axis < 0 else axis] = low.shape(value)[0]
    return Leaf(low.contiguous(value).reshaped(shape))


def lower_quantize(low: Lowering, node: ir.Node) -> None:
    """Lower QuantizeLinear of float32 to bytes."""
    x, out = node.inputs[0], node.outputs[0]
    dtype = low.dtype(out)
    if not low.is_float(x) or dtype not in _BYTES or low.attributes(node).get("precision"):
        raise NotNative(f"quantisation of {low.dtype(x)} to {dtype}")
    rank = len(low.shape(x))
    scale = _along(low, node, node.inputs[1], rank)
    zero = _along(low, node, node.inputs[2] if len(node.inputs) > 2 else None, rank)
    assert scale is not None
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    arguments = (operand(low.get(x)), scale, zero or Constant(0, dtype))
    text = f"({c_type(dtype)})hg_saturate({{0}} / {{1}}, {{2}}, {least}, {most})"
    _keep(low, node, Apply(text, arguments, dtype, vector=False))


def lower_dequantize(low: Lowering, node: ir.Node) -> None:
    """Lower DequantizeLinear of integers to float32."""
    x, out = node.inputs[0], node.outputs[0]
    if low.dtype(out) != FLOAT32 or low.dtype(x) not in (*_BYTES, np.dtype(np.int32)):
        raise NotNative(f"dequantisation of {low.dtype(x)} to {low.dtype(out)}")
    rank = len(low.shape(x))
    scale = _along(low, node, node.inputs[1], rank)
    zero = _along(low, node, node.inputs[2] if len(node.inputs) > 2 else None, rank)
    assert scale is not None
    arguments = (operand(low.get(x)), scale, zero or Constant(0, low.dtype(x)))
    text = "((float)((int64_t){0} - (int64_t){2}) * {1})"
    _keep(low, node, Apply(text, arguments, FLOAT32, vector=False))


def lower_dynamic_quantize(low: Lowering, node: ir.Node) -> None:
    """Lower DynamicQuantizeLinear: the range is found first, zero always lies in it."""
    source = low.contiguous(node.inputs[0])
    y, scale_value, zero_value = node.outputs
    scale, zero = low.result(scale_value), low.result(zero_value)
    body = Body()
    x = body.pointer(source)
    s, z = body.pointer(scale, written=True), body.pointer(zero, written=True)
    body.add(
        f"float low = 0, high = 0; int64_t n = {body.size(source.size)};",
        f"for (int64_t i = 0; i < n; i++) {{ float v = {x}[i]; low = v < low ? v : low; "
        "high = v > high ? v : high; }",
        "float step = (high - low) / 255.f;",
        f"{s}[0] = step; {z}[0] = step == 0 ? 0 : hg_saturate(-low / step, 0, 0, 255);",
    )
    known = source.size if isinstance(source.size, int) else 65536
    low.emit(f"range '{node.name}'", body, 1, work=known * 0.1)
    low.lowered[scale_value], low.lowered[zero_value] = scale, zero
    byte = np.dtype(np.uint8)
    arguments = (Leaf(source), Leaf(scale), Leaf(zero))
    text = "({1} == 0 ? 0 : (uint8_t)hg_saturate({0} / {1}, {2}, 0, 255))"
    lazy = Lazy(
        Apply(text, arguments, byte, vector=False), byte, low.shape(y), False, (node.op_type,)
    )
    low.lowered[y] = low.store(y, lazy)


def _keep(low: Lowering, node: ir.Node, expression: Expression) -> None:
    out = node.outputs[0]
    keep(low, out, Lazy(expression, low.dtype(out), low.shape(out), False, (node.op_type,)))


def _one(low: Lowering, value: ir.Value | None, default: int = 0) -> int:
    """Return a constant zero point, which has to be one for all."""
    if value is None:
        return default
    array = low.constant(value)
    if array is None or len(set(array.reshape(-1).tolist())) != 1:
        raise NotNative("a zero point that differs, or is known only at run time")
    return int(array.reshape(-1)[0])


def _weight(low: Lowering, value: ir.Value | None) -> Array:
    array = low.constant(value)
    if array is None or array.dtype not in _BYTES:
        raise NotNative("weights that are not constant bytes")
    return array


def lower_matmul_integer(low: Lowering, node: ir.Node) -> None:
    """Lower MatMulInteger with constant weights; the left zero point may come at run time."""
    a = node.inputs[0]
    weight = _weight(low, node.inputs[1])
    if weight.ndim != 2 or len(low.shape(a)) < 2 or 0 in weight.shape:
        raise NotNative("operands that are not a stack of rows and a matrix")
    zero = node.inputs[2] if len(node.inputs) > 2 else None
    if zero is not None and product(low.shape(zero)) != 1:
        raise NotNative("a zero point a row")
    right = _one(low, node.inputs[3] if len(node.inputs) > 3 else None)
    point = None if zero is None else low.contiguous(zero)

    def left(body: Body) -> str:
        return "0" if point is None else f"{body.pointer(point)}[0]"

    target = low.result(node.outputs[0])
    source = low.contiguous(a)
    rows = product(source.shape[:-1])
    packed = pack_rows(low, node, source, rows, weight.shape[0])
    emit_int8_product(
        low, node, packed, rows, weight, (left, right), target, shifted=source.dtype == np.int8
    )
    low.lowered[node.outputs[0]] = target


def _numbers(low: Lowering, node: ir.Node, first: int) -> tuple[Array, int]:
    """Return a constant scale and its constant zero point."""
    scale = low.constant(node.inputs[first])
    if scale is None:
        raise NotNative("a scale known only at run time")
    return scale.reshape(-1), _one(low, node.inputs[first + 1])


def lower_qlinear_matmul(low: Lowering, node: ir.Node) -> None:
    """Lower QLinearMatMul with constant weights, scales and zero points."""
    weight = _weight(low, node.inputs[3])
    a_scale, a_zero = _numbers(low, node, 1)
    b_scale, b_zero = _numbers(low, node, 4)
    y_scale, y_zero = _numbers(low, node, 6)
    if weight.ndim != 2 or len(low.shape(node.inputs[0])) < 2 or a_scale.size != 1:
        raise NotNative("operands that are not a stack of rows and a matrix")
    source = low.contiguous(node.inputs[0])
    rows = product(source.shape[:-1])
    sums = low.new(f"{node.name} sums", np.dtype(np.int32), (rows, weight.shape[1]))
    packed = pack_rows(low, node, source, rows, weight.shape[0])
    emit_int8_product(
        low, node, packed, rows, weight, (lambda _: str(a_zero), b_zero), sums,
        shifted=source.dtype == np.int8,
    )  # fmt: skip
    factor = a_scale.astype(np.float64) * b_scale.astype(np.float64)
    target = low.result(node.outputs[0])
    _requantize(low, node, sums, target, factor, None, (float(y_scale[0]), y_zero), 1)
    low.lowered[node.outputs[0]] = target


def _elements(rows: Dim) -> float:
    return float(rows) if isinstance(rows, int) else 64.0


def _requantize(
    low: Lowering,
    node: ir.Node,
    sums: Tensor,
    target: Tensor,
    factor: Array,
    bias: Array | None,
    result: tuple[float, int],
    pixels: Dim,
) -> None:
    """Bring sums (images * pixels, maps) to bytes (images, maps, pixels)."""
    rows, maps = sums.shape
    scale, zero = result
    assert isinstance(maps, int)
    spread = np.broadcast_to(factor, (maps,)).astype(np.float64)
    added = np.zeros(maps, np.int32) if bias is None else bias.astype(np.int32)
    body = Body()
    s, d = body.pointer(sums), body.pointer(target, written=True)
    f = body.raw(low.weight(("factor", id(node)), lambda: spread, maps * 8), ctype="double")
    b = body.raw(low.weight(("added", id(node)), lambda: added, maps * 4), ctype="int32_t")
    least, most = np.iinfo(target.dtype).min, np.iinfo(target.dtype).max
    size, plane = body.size(rows), body.size(pixels)
    body.add(
        f"int64_t r0 = q * 64, r1 = hg_min({size}, r0 + 64);",
        f"for (int64_t r = r0, end; r < r1; r = end) {{ int64_t image = r / {plane};",
        f"end = hg_min(r1, (image + 1) * {plane}); int64_t m = end - r;",
        f"for (int64_t j = 0; j < {maps}; j++) {{ double factor = {f}[j]; int32_t own = {b}[j];",
        f"const int32_t *x = {s} + r * {maps} + j;",
        f"__typeof__({d}) o = {d} + (image * {maps} + j) * {plane} + r - image * {plane};",
        "for (int64_t i = 0; i < m; i++) {",
        f"double v = (double)(x[i * {maps}] + own) * factor / {scale!r};",
        f"o[i] = hg_saturate_d(v, {zero}, {least}, {most});",
        "} } }",
    )
    low.emit(f"requantize '{node.name}'", body, (rows + 63) // 64, work=_elements(rows) * maps)


def lower_qlinear_conv(low: Lowering, node: ir.Node) -> None:
    """Lower QLinearConv of one group with constant weights, scales and zero points."""
    weight = _weight(low, node.inputs[3])
    x_scale, x_zero = _numbers(low, node, 1)
    w_scale, w_zero = _numbers(low, node, 4)
    y_scale, y_zero = _numbers(low, node, 6)
    bias_value = node.inputs[8] if len(node.inputs) > 8 else None
    bias = low.constant(bias_value)
    if bias_value is not None and bias is None:
        raise NotNative("a bias known only at run time")
    sums, pixels = _convolved(low, node, weight, x_zero, w_zero)
    target = low.result(node.outputs[0])
    factor = (x_scale * w_scale).astype(np.float64)  # in float32, as the operator has it
    _requantize(low, node, sums, target, factor, bias, (float(y_scale[0]), y_zero), pixels)
    low.lowered[node.outputs[0]] = target


def lower_conv_integer(low: Lowering, node: ir.Node) -> None:
    """Lower ConvInteger of one group with constant weights and zero points."""
    weight = _weight(low, node.inputs[1])
    x_zero = _one(low, node.inputs[2] if len(node.inputs) > 2 else None)
    w_zero = _one(low, node.inputs[3] if len(node.inputs) > 3 else None)
    sums, pixels = _convolved(low, node, weight, x_zero, w_zero)
    out = node.outputs[0]
    images, maps = low.shape(out)[0], weight.shape[0]
    by_pixel = sums.reshaped((images, pixels, maps)).permuted((0, 2, 1))
    target = low.result(out)
    low.copy(by_pixel, target.reshaped((images, maps, pixels)))
    low.lowered[out] = target


def _convolved(
    low: Lowering, node: ir.Node, weight: Array, x_zero: int, w_zero: int
) -> tuple[Tensor, Dim]:
    """Return the sums (images * pixels, maps) of a convolution, and the pixels of an image.

    The image becomes pixels of bytes, channels innermost, with its padding; a window is then a few
    runs of bytes, and a row of a matrix product.
    """
    attributes = low.attributes(node)
    if int(attributes["group"]) != 1 or weight.ndim != 4:
        raise NotNative("groups, or other than two spatial axes")
    source = low.contiguous(node.inputs[0])
    window = Window.of(
        weight.shape[2:], attributes.get("strides"), attributes.get("dilations"),
        attributes.get("pads"), attributes["auto_pad"],
    )  # fmt: skip
    sizes = tuple(int(dim) for dim in low.fixed_shape(node.inputs[0])[2:])
    image = _emit_pixels(low, node, source, window.amounts(sizes), x_zero)
    height, width = (int(n) for n in window.output(sizes))
    maps, channels, *kernel = weight.shape
    depth = channels * kernel[0] * kernel[1]
    rows = source.shape[0] * height * width
    wide = -(-depth // 4) * 4
    packed = low.new(f"{node.name} windows", np.dtype(np.uint8), (rows, wide))
    _emit_windows(low, node, image, packed, window, (height, width))
    matrix = np.ascontiguousarray(weight.transpose(2, 3, 1, 0).reshape(depth, maps))
    sums = low.new(f"{node.name} sums", np.dtype(np.int32), (rows, maps))
    emit_int8_product(
        low, node, packed, rows, matrix, (lambda _: str(x_zero), w_zero), sums,
        shifted=source.dtype == np.int8,
    )  # fmt: skip
    return sums, height * width


def _emit_pixels(
    low: Lowering, node: ir.Node, source: Tensor, pads: list[tuple[int, int]], zero: int
) -> Tensor:
    """Write an image as unsigned bytes (N, rows, columns, C); its border is the zero point."""
    images, channels, rows, columns = source.shape
    (top, bottom), (left, right) = pads
    assert isinstance(rows, int)
    assert isinstance(columns, int)
    shape = (images, rows + top + bottom, columns + left + right, channels)
    target = low.new(f"{node.name} pixels", np.dtype(np.uint8), shape)
    flip = 128 if source.dtype == np.int8 else 0
    body = Body()
    s, d = body.pointer(source, ctype="uint8_t"), body.pointer(target, written=True)
    high, wide = rows + top + bottom, columns + left + right
    body.add(
        f"int64_t image = q / {high}, y = q % {high} - {top};",
        f"uint8_t *o = {d} + q * {wide * channels};",
        f"if (y < 0 || y >= {rows}) {{ for (int64_t i = 0; i < {wide * channels}; i++) o[i] = "
        f"(uint8_t)({zero} ^ {flip}); return; }}",
        f"for (int64_t i = 0; i < {left * channels}; i++) o[i] = (uint8_t)({zero} ^ {flip});",
        f"for (int64_t i = 0; i < {right * channels}; i++) o[{(left + columns) * channels} + i] = "
        f"(uint8_t)({zero} ^ {flip});",
        f"o += {left * channels}; const uint8_t *x = {s} + (image * {channels * rows} + y) * {columns};",
        f"for (int64_t c = 0; c < {channels}; c++) for (int64_t j = 0; j < {columns}; j++)",
        f"o[j * {channels} + c] = x[c * {rows * columns} + j] ^ {flip};",
    )
    low.emit(f"pixels '{node.name}'", body, images * high, work=columns * 32.0)
    return target


def _emit_windows(
    low: Lowering,
    node: ir.Node,
    image: Tensor,
    packed: Tensor,
    window: Window,
    output: tuple[int, int],
) -> None:
    """Copy the runs of bytes of each window into a row."""
    _, rows, columns, channels = image.shape
    (kh, kw), (sy, sx), (dy, dx) = window.kernel, window.strides, window.dilations
    wide = packed.shape[1]
    height, width = output
    assert isinstance(wide, int)
    body = Body()
    s, d = body.pointer(image), body.pointer(packed, written=True)
    runs, run = (1, kw * channels) if dx == 1 else (kw, channels)
    body.add(
        f"int64_t image = q / {height}, oy = q % {height};",
        f"const uint8_t *x = {s} + (image * {rows} + oy * {sy}) * {columns * channels};",
        f"for (int64_t ox = 0; ox < {width}; ox++) {{",
        f"uint8_t *o = {d} + (q * {width} + ox) * {wide};",
        f"for (int64_t i = 0; i < {kh}; i++) for (int64_t j = 0; j < {runs}; j++, o += {run})",
        f"__builtin_memcpy(o, x + (i * {dy * columns} + ox * {sx} + j * {dx}) * {channels}, {run});",
        f"for (int64_t at = {kh * kw * channels}; at < {wide}; at++) *o++ = 0; }}",
    )
    tasks = image.shape[0] * height
    low.emit(f"windows '{node.name}'", body, tasks, work=float(width * wide) * 0.05)


RULES: dict[str, Rule] = {
    "ConvInteger": lower_conv_integer,
    "DequantizeLinear": lower_dequantize,
    "DynamicQuantizeLinear": lower_dynamic_quantize,
    "MatMulInteger": lower_matmul_integer,
    "QLinearConv": lower_qlinear_conv,
    "QLinearMatMul": lower_qlinear_matmul,
    "QuantizeLinear": lower_quantize,
}
