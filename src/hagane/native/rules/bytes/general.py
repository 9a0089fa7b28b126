"""QuantizeLinear and DequantizeLinear of any types, by scales of blocks too."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.expression import HALVES, TINY_FLOATS
from hagane.native.kernels.kernel import c_type
from hagane.native.kernels.tensor import Tensor
from hagane.native.kernels.written import (
    coordinates,
    emit_written,
    is_real,
    loaded,
    number_type,
    stored,
)
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.indexing.axes import axis_of, number_input
from hagane.symbolic import Dim, product

_LIMITS = {"int2": (-2, 1), "uint2": (0, 3), "int4": (-8, 7), "uint4": (0, 15)}


def _limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    if dtype.name in _LIMITS:
        return _LIMITS[dtype.name]
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def _steps(low: Lowering, node: ir.Node, x: Tensor, scale: Tensor) -> dict[int, tuple[Dim, int]]:
    """Return how far scales lie apart along axes, and for how many elements each is."""
    rank, block = len(x.shape), int(low.facts.attributes(node).get("block_size") or 0)
    if rank == 0 or (len(scale.shape) < 2 and scale.size == 1):
        return {}
    if len(scale.shape) == 1 and not block:
        return {axis_of(low, node, rank): (1, 1)}
    if not block or len(scale.shape) != rank:
        raise NotNative("a scale of another form")
    axis = axis_of(low, node, rank)
    return {i: (step, block if i == axis else 1) for i, step in enumerate(scale.strides)}


def _emit(low: Lowering, node: ir.Node, x: Tensor, scale: Tensor, value: str) -> None:
    """Append the kernel of C text for ``x[at]`` and for ``scale`` and ``zero`` at ``s``."""
    out, last = node.outputs[0], len(x.shape) - 1
    y, steps = low.forms.result(out), _steps(low, node, x, scale)
    sizes: dict[str, Dim] = {f"X{i}": dim for i, dim in enumerate(x.shape)}
    sizes |= {f"S{i}": step for i, (step, _) in steps.items()}
    place = {i: f"c{i} / {by} * S{i}" for i, (_, by) in steps.items()}
    base = " + ".join(place[i] for i in place if i != last) or "0"
    names, lengths = [f"c{i}" for i in range(last)], [f"X{i}" for i in range(last)]
    reads = {"x": x, "scale": scale}
    zero = number_input(low, node, 2)
    if zero is not None:
        reads["zero"] = low.forms.contiguous(zero)
    if not steps:  # one for all: rows of images may be shorter than a vector
        text = f"""
const int64_t s = 0; (void)s;
for (int64_t at = first; at < last; at++) {{
{value}
}}"""
        emit_written(
            low.recorder, node, text, reads=reads, writes={"y": y}, sizes={},
            items=product(x.shape), each=1, cost=1.0,
        )  # fmt: skip
        low.forms[out] = y
        return
    inner, own = f"X{last}", f"c{last}"
    text = f"""
for (int64_t row = first; row < last; row++) {{
int64_t left = row;
{coordinates(names, lengths) if last > 0 else "(void)left;"}
const int64_t base = {base};
for (int64_t {own} = 0; {own} < {inner}; {own}++) {{
const int64_t at = row * {inner} + {own}, s = base + {place.get(last, "0")};
(void)s;
{value}
}} }}"""
    emit_written(
        low.recorder, node, text, reads=reads, writes={"y": y}, sizes=sizes,
        items=product(x.shape[:-1]), each=x.shape[-1], cost=3.0,
    )  # fmt: skip
    low.forms[out] = y


def lower_quantize(low: Lowering, node: ir.Node) -> None:
    """Lower QuantizeLinear: the quotient rounded, the zero point added."""
    x, scale = low.forms.contiguous(node.inputs[0]), low.forms.contiguous(node.inputs[1])
    to, attributes = low.facts.dtype(node.outputs[0]), low.facts.attributes(node)
    precision = int(attributes.get("precision") or 0)
    kind = np.dtype(ir.DataType(precision).numpy()) if precision else scale.dtype
    if not precision and (kind in HALVES or x.dtype != np.float64):
        kind = np.dtype(np.float32)
    if to.name == "float8_e8m0fnu":
        raise NotNative("scales as results")
    wide = "double" if kind == np.float64 else "float"

    def rounded(number: str) -> str:
        return f"s_round_{HALVES[kind]}({number})" if kind in HALVES else f"({wide})({number})"

    a = rounded(f"({wide}){loaded(x.dtype, 'x[at]')}")
    b = rounded(f"({wide}){loaded(scale.dtype, 'scale[s]')}")
    zero = loaded(to, "zero[s]") if number_input(low, node, 2) is not None else ""
    lines = [f"const {wide} quotient = {rounded(f'{a} / {b}')};"]
    if to in TINY_FLOATS:
        total = rounded(f"quotient + {rounded(zero)}") if zero else "quotient"
        saturate = int(attributes["saturate"])
        lines.append(f"y[at] = hg_code_{TINY_FLOATS[to]}({total}, {saturate});")
    else:
        least, most = _limits(to)
        # (Floats hold sums of 16-bit numbers, and what is rounded is far beyond the limits.)
        sums, rint = ("float", "rintf") if wide == "float" and most < 2**16 else ("double", "rint")
        lines.append(f"{sums} v = {rint}(quotient){f' + ({sums}){zero}' if zero else ''};")
        lines.append(f"v = v != v ? 0 : v < {least} ? {least} : v > {most} ? {most} : v;")
        lines.append(f"y[at] = {stored(to, f'({number_type(to)})v')};")
    _emit(low, node, x, scale, "\n".join(lines))


def lower_dequantize(low: Lowering, node: ir.Node) -> None:
    """Lower DequantizeLinear: the difference from the zero point times the scale."""
    x, scale = low.forms.contiguous(node.inputs[0]), low.forms.contiguous(node.inputs[1])
    to = low.facts.dtype(node.outputs[0])
    wide = "float" if is_real(x.dtype) else "int32_t" if x.dtype.itemsize < 4 else "int64_t"
    text = f"({wide}){loaded(x.dtype, 'x[at]')}"
    if number_input(low, node, 2) is not None:
        text = f"({text} - ({wide}){loaded(x.dtype, 'zero[s]')})"
    number = f"(float){text} * (float){loaded(scale.dtype, 'scale[s]')}"
    value = stored(to, number) if to in HALVES else f"({c_type(to)})({number})"
    _emit(low, node, x, scale, f"y[at] = {value};")


RULES: dict[tuple[str, str], Rule] = {
    ("", "DequantizeLinear"): lower_dequantize,
    ("", "QuantizeLinear"): lower_quantize,
}
