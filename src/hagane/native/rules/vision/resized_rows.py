"""Rows of a resized image from tables: which elements each coordinate is made of, and by how much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir

from hagane.native.kernels.kernel import c_type
from hagane.native.kernels.tensor import Tensor
from hagane.native.kernels.written import (
    as_bits,
    bits_type,
    coordinates,
    emit_written,
    loaded,
)
from hagane.native.lowering.state import Lowering
from hagane.symbolic import Dim, product


@dataclass(frozen=True, slots=True)
class Table:
    """The elements that each coordinate of a result along an axis is made of.

    Attributes:
        places: ``(taps, coordinates)`` of int64.
        weights: The same of their factors, in the type in which is computed; None for one of 1.
        taps: How many there are.
    """

    places: Tensor
    weights: Tensor | None = None
    taps: int = 1


def _frame(x: Tensor, y: Tensor, tables: Mapping[int, Table]) -> tuple[dict[str, Dim], str]:
    """Return the sizes by name, and C of the coordinates of a row."""
    last = len(y.shape) - 1
    sizes: dict[str, Dim] = {f"Y{i}": dim for i, dim in enumerate(y.shape)}
    sizes |= {f"S{i}": stride for i, stride in enumerate(x.strides)}
    sizes |= {"width": x.shape[last]}
    names = [f"c{i}" for i in range(last)]
    found = coordinates(names, [f"Y{i}" for i in range(last)]) if last else "(void)left;"
    return sizes, f"int64_t left = row;\n{found}"


def _operands(tables: Mapping[int, Table]) -> dict[str, Tensor]:
    found = {f"at{axis}": table.places for axis, table in tables.items()}
    weights = {axis: table.weights for axis, table in tables.items()}
    return found | {f"by{axis}": each for axis, each in weights.items() if each is not None}


def pick_rows(
    low: Lowering, node: ir.Node, x: Tensor, y: Tensor, tables: Mapping[int, Table]
) -> None:
    """Append the kernel whose elements are the nearest ones of ``x``, of which tables tell."""
    last = len(y.shape) - 1
    sizes, found = _frame(x, y, tables)
    place = " + ".join(f"{f'at{i}[c{i}]' if i in tables else f'c{i}'} * S{i}" for i in range(last))
    row = "memcpy(to, from, (size_t)Y * sizeof(T));"
    if last in tables:
        row = f"for (int64_t j = 0; j < Y; j++) to[j] = from[at{last}[j]];"
    text = f"""
const int64_t Y = Y{last};
const T *before = 0;
for (int64_t row = first; row < last; row++) {{
{found}
const T *from = x + ({place or "0"});
T *to = y + row * Y;
if (from == before) memcpy(to, to - Y, (size_t)Y * sizeof(T));
else {{ {row} }}
before = from;
}}"""
    emit_written(
        low.recorder, node, text,
        reads={"x": as_bits(x), **_operands(tables)}, writes={"y": as_bits(y)}, sizes=sizes,
        types={"T": bits_type(x.dtype)}, items=product(y.shape[:-1]), each=y.shape[-1], cost=0.3,
    )  # fmt: skip


def blend_rows(
    low: Lowering,
    node: ir.Node,
    x: Tensor,
    y: Tensor,
    tables: Mapping[int, Table],
    wide: str,
    value: str,
) -> None:
    """Append the kernel of weighted sums: over rows first, then along each.

    Args:
        low: Takes the kernel.
        node: The node that it computes.
        x: Its operand, in row-major order.
        y: Its result.
        tables: By axis, all with weights.
        wide: The C type in which is computed.
        value: C of a result from the sum ``v``.
    """
    last = len(y.shape) - 1
    sizes, found = _frame(x, y, tables)
    fixed = " + ".join(f"c{i} * S{i}" for i in range(last) if i not in tables)
    opening, closing, before = "", "", ("1", fixed or "0")
    for i in (axis for axis in range(last) if axis in tables):
        opening += f"""
for (int64_t t{i} = 0; t{i} < {tables[i].taps}; t{i}++) {{
const S own{i} = by{i}[t{i} * Y{i} + c{i}];
if (own{i} == 0) continue;
const S w{i} = {before[0]} * own{i};
const int64_t p{i} = {before[1]} + at{i}[t{i} * Y{i} + c{i}] * S{i};"""
        closing += "}"
        before = f"w{i}", f"p{i}"
    element = f"(S){loaded(x.dtype, 'from[i]')}"
    along = f"for (int64_t j = 0; j < Y; j++) {{ const S v = line[j]; to[j] = {value}; }}"
    if last in tables:
        sums = "\n".join(
            f"{{ const S w = by{last}[{t} * Y + j]; v += w == 0 ? 0 : w * line[at{last}[{t} * Y + j]]; }}"
            for t in range(tables[last].taps)
        )
        along = f"for (int64_t j = 0; j < Y; j++) {{ S v = 0;\n{sums}\nto[j] = {value}; }}"
    text = f"""
const int64_t Y = Y{last};
S *line = (S *)thread->scratch;
for (int64_t row = first; row < last; row++) {{
{found}
T_OUT *to = y + row * Y;
int filled = 0;
{opening}
const T *from = x + {before[1]};
const S w = {before[0]};
if (!filled) for (int64_t i = 0; i < width; i++) line[i] = w * {element};
else for (int64_t i = 0; i < width; i++) line[i] += w * {element};
filled = 1;
{closing}
if (!filled) memset(line, 0, (size_t)width * sizeof(S));
{along}
}}"""
    emit_written(
        low.recorder, node, text,
        reads={"x": x, **_operands(tables)}, writes={"y": y}, sizes=sizes,
        types={"T": c_type(x.dtype), "T_OUT": c_type(y.dtype), "S": wide},
        items=product(y.shape[:-1]), each=y.shape[-1] * 3, cost=0.5,
        scratch=x.shape[-1] * (8 if wide == "double" else 4) + 64,
    )  # fmt: skip
