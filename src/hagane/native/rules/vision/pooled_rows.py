"""AveragePool, LpPool and MaxPool of any rank and type, a row of results at a time.

Planes of a window are joined first, then the rows of that, then the elements of one row: results side
by side read what they share.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

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
from hagane.native.lowering.state import Lowering
from hagane.native.rules.ordering.reducing import limits
from hagane.native.rules.vision.windows import numbers_of, power, root
from hagane.symbolic import Dim, product


def _pads(low: Lowering, node: ir.Node, kernel: list[int], dilations: list[int]) -> list[str]:
    """Return C of the padding before each axis, then behind each."""
    rank = len(kernel)
    mode = low.facts.attributes(node).get("auto_pad", "NOTSET")
    if mode == "VALID":
        return ["0"] * 2 * rank
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        return [str(pad) for pad in numbers_of(low, node, "pads", 2 * rank, 0)]
    # The padding follows from the sizes.
    strides, lower = numbers_of(low, node, "strides", rank, 1), 1 if mode == "SAME_LOWER" else 0
    total = [
        f"hg_max(0, (Y{i} - 1) * {strides[i]} + {(kernel[i] - 1) * dilations[i] + 1} - X{i})"
        for i in range(rank)
    ]
    before = [f"(({each} + {lower}) / 2)" for each in total]
    return before + [f"({each} - ({each} + {lower}) / 2)" for each in total]


def lower_pool(low: Lowering, node: ir.Node) -> None:
    """Lower AveragePool, LpPool and MaxPool. The largest of no elements is the least number."""
    x, out = low.forms.contiguous(node.inputs[0]), node.outputs[0]
    window = _Window.of(low, node, x)
    rank, dtype = window.rank, x.dtype
    y = low.forms.result(out)
    sizes: dict[str, Dim] = {f"X{i}": dim for i, dim in enumerate(x.shape[2:])}
    sizes |= {f"Y{i}": dim for i, dim in enumerate(y.shape[2:])}
    writes, index = {"y": y}, ""
    if places := len(node.outputs) > 1 and bool(node.outputs[1].name):
        found = low.forms.result(node.outputs[1])
        writes["places"] = found
        low.forms[node.outputs[1]] = found
        column_major = bool(low.facts.attributes(node).get("storage_order"))
        index = _place(rank, column_major=column_major)
    text = _with_places(window, index) if places else _joined(window)
    # Planes are joined first, which the rows of results behind each other share.
    shared = 0 if places else max(rank - 2, 0)
    items, rows = product(y.shape[: 2 + shared]), y.shape[2 + shared : -1]
    if not shared:
        items, rows = product(y.shape[:-1]), ()
    room = _scratch(window, x, y, whole=bool(places or shared))
    emit_written(
        low.recorder, node, text, reads={"x": x}, writes=writes, sizes=sizes,
        types={"T": c_type(dtype), "N": _number(node.op_type, dtype)}, items=items,
        each=product(rows) * y.shape[-1] * product(window.kernel), cost=0.3,
        scratch=room,
    )  # fmt: skip
    low.forms[out] = y


def _scratch(window: _Window, x: Tensor, y: Tensor, *, whole: bool) -> Dim:
    """Return the bytes that a thread needs beside; ``whole`` says whether for whole rows."""
    reach = window.reach(window.rank - 1)
    if not whole:
        return _piece(window) * 8 + (_piece(window) * window.strides[-1] + reach) * 8 + 64
    width, span = x.shape[-1], y.shape[-1] * window.strides[-1] + reach
    flat = product(x.shape[-2:]) if window.rank > 2 else 0
    return y.shape[-1] * 24 + (2 * width + span + flat) * 8 + 64


def _piece(window: _Window) -> int:
    """Return how many results of a row are made at once, so that what they need stays near."""
    return max(64, _PIECE // window.strides[-1])


@dataclass(frozen=True, slots=True)
class _Window:
    """A window, and C of what becomes of its elements.

    Attributes:
        dtype: Of the elements.
        kernel, strides, dilations: Numbers, an axis each.
        pads: C of the padding before each axis, then behind each.
        include: Whether padding counts.
        join: C that takes ``a`` into ``{0}``.
        start: C of a number that nothing has been taken into.
        taken: C of an element ``v`` as it is joined.
        end: C of the result of ``all``, which ``n`` elements make up.
    """

    dtype: np.dtype[np.generic]
    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    pads: list[str]
    include: bool
    join: str
    start: str
    taken: str
    end: str

    @classmethod
    def of(cls, low: Lowering, node: ir.Node, x: Tensor) -> _Window:
        """Return the window of a node."""
        attributes, rank, operator = low.facts.attributes(node), len(x.shape) - 2, node.op_type
        kernel = [int(k) for k in attributes["kernel_shape"]]
        strides, dilations = (
            numbers_of(low, node, name, rank, 1) for name in ("strides", "dilations")
        )
        p = float(attributes.get("p", 2))
        start, taken, end = {
            "MaxPool": (limits(_number(operator, x.dtype))[0], "v", "all"),
            "AveragePool": ("0", "v", "all / (N)n"),
            "LpPool": ("0", power(p, "v"), root(p, "all")),
        }[operator]  # fmt: skip
        return cls(
            x.dtype, kernel, strides, dilations, _pads(low, node, kernel, dilations),
            bool(attributes.get("count_include_pad")) and operator == "AveragePool",
            {"MaxPool": _larger(x.dtype)}.get(operator, "{0} += a;"), start, taken, end,
        )  # fmt: skip

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.kernel)

    def reach(self, axis: int) -> int:
        """Return the elements from a window's first to behind its last."""
        return (self.kernel[axis] - 1) * self.dilations[axis] + 1

    def taps(self, axes: Iterable[int]) -> tuple[str, str, str, str]:
        """Return C of the taps ``k0, k1, ...`` along axes, at the elements ``i0, i1, ...``.

        Returns:
            Loops; their end; whether the tap lies within the image; whether it counts.
        """
        loops, axes = "", list(axes)
        for i in axes:
            loops += (
                f"for (int64_t k{i} = 0; k{i} < {self.kernel[i]}; k{i}++) {{\n"
                f"const int64_t i{i} = c{i} * {self.strides[i]} + k{i} * {self.dilations[i]} - {self.pads[i]};\n"
            )
        inside = " && ".join(f"i{i} >= 0 && i{i} < X{i}" for i in axes) or "1"
        within = " && ".join(f"i{i} < X{i} + {self.pads[self.rank + i]}" for i in axes) or "1"
        return loops, "}" * len(axes), inside, within if self.include else inside

    def span(self, *, padded: bool) -> str:
        """Return C of the results ``o0`` to ``o1`` of which tap ``k`` of the last axis counts."""
        last = self.rank - 1
        room = f"X{last} + {self.pads[self.rank + last]}" if padded else f"X{last}"
        least = f"-({self.pads[last]})" if padded else "0"
        stride = self.strides[last]
        return f"""
const int64_t off = k * {self.dilations[last]} - {self.pads[last]}, room = {room} - off;
const int64_t o0 = off < {least} ? hg_min(Y, ({least} - off + {stride} - 1) / {stride}) : 0;
const int64_t o1 = room > 0 ? hg_min(Y, (room + {stride} - 1) / {stride}) : 0;"""

    def counts(self) -> str:
        """Return C that counts the taps of the last axis for each result of a row."""
        return f"""
for (int64_t o = 0; o < Y; o++) counts[o] = 0;
for (int64_t k = 0; k < {self.kernel[-1]}; k++) {{ {self.span(padded=self.include)}
for (int64_t o = o0; o < o1; o++) counts[o]++; }}"""


def _offset(axes: Iterable[int]) -> str:
    """Return C of an element's place along axes."""
    text = "0"
    for i in axes:
        text = f"({text}) * X{i} + i{i}"
    return text


def _with_places(window: _Window, index: str) -> str:
    """Return C of the largest elements and of their places; ``index`` writes these."""
    rank, dtype, stride = window.rank, window.dtype, window.strides[-1]
    last = rank - 1
    nan = " | (a != a)" if is_real(dtype) else ""
    loops, close, inside, counted = window.taps(range(last))
    return f"""
const int64_t plane = {" * ".join(f"X{i}" for i in range(rank))}, Y = Y{last};
int64_t *restrict best = (int64_t *)thread->scratch, *restrict counts = best + Y;
N *restrict acc = (N *)(counts + Y);
{window.counts()}
for (int64_t row = first; row < last; row++) {{
int64_t left = row, lines = 0;
{coordinates(["image", *(f"c{i}" for i in range(last))], ["0", *(f"Y{i}" for i in range(last))])}
const T *from = x + image * plane;
for (int64_t o = 0; o < Y; o++) {{ acc[o] = {window.start}; best[o] = -1; }}
{loops}
lines += {counted};
if (!({inside})) continue;
const int64_t base = ({_offset(range(last))}) * X{last}; const T *restrict line = from + base;
for (int64_t k = 0; k < {window.kernel[last]}; k++) {{ {window.span(padded=False)}
for (int64_t o = o0; o < o1; o++) {{
const N a = {loaded(dtype, f"line[o * {stride} + off]")};
const int better = (a > acc[o]) | (best[o] < 0){nan};
acc[o] = better ? a : acc[o]; best[o] = better ? base + o * {stride} + off : best[o]; }} }}
{close}
for (int64_t o = 0; o < Y; o++) {{
const int64_t n = counts[o] * lines; const N all = acc[o];
y[row * Y + o] = {stored(dtype, window.end)};
{index} }} }}"""


# The rows of a window, joined; nearly always all of them are there.
_JOIN_ROWS = """
if (found == {rows}) {{
for (int64_t i = {low}; i < {high}; i++) {{ {each} whole[i] = all; }} }}
else {{
for (int64_t i = {low}; i < {high}; i++) whole[i] = {start};
for (int64_t r = 0; r < found; r++)
for (int64_t i = {low}; i < {high}; i++) {{ const N v = {element}, a = {taken}; {join} }} }}"""
# Rows that are joined at once.
_MOST_ROWS = 8
# Elements of a row that are joined before their results are made.
_PIECE = 4096


def _joined(window: _Window) -> str:
    """Return C that joins planes of three axes, then rows of two, then elements."""
    rank, dtype, stride = window.rank, window.dtype, window.strides[-1]
    last = rank - 1
    lead = range(max(rank - 2, 0))
    own = range(len(lead), last)  # the axis of rows, unless there is one axis
    outer, kernel = list(lead), window.kernel[own[0]] if own else 1
    element, taken = loaded(dtype, "rows[{0}][i]"), window.taken
    pointer = "T"
    planes = "const T *from = x + image * plane;"
    if outer:
        element, taken, pointer = "rows[{0}][i]", "v", "N"
        loops, close, inside, counted = window.taps(lead)
        v = loaded(dtype, "at[i]")
        planes = f"""
int64_t sheets = 0, taken = 0;
{loops}
sheets += {counted};
if (!({inside})) continue;
const T *restrict at = x + image * plane + ({_offset(lead)}) * area;
if (taken++ == 0) for (int64_t i = 0; i < area; i++) {{ const N v = {v}; flat[i] = {window.taken}; }}
else for (int64_t i = 0; i < area; i++) {{ const N v = {v}, a = {window.taken}; {window.join.format("flat[i]")} }}
{close}
if (taken == 0) for (int64_t i = 0; i < area; i++) flat[i] = {window.start};
const N *from = flat;"""
    each = ""
    for r in range(kernel):
        v = f"const N v = {element.format(r)}, a = {taken};"
        each += (
            f"N all; {{ {v} all = a; }}" if r == 0 else f" {{ {v} {window.join.format('all')} }}"
        )
    loops, close, inside, counted = window.taps(own)
    join_rows = _JOIN_ROWS.format(
        rows=kernel if kernel <= _MOST_ROWS else -1, start=window.start, taken=taken,
        each=each if kernel <= _MOST_ROWS else "N all = 0;", element=element.format("r"),
        join=window.join.format("whole[i]"),
        low="0" if outer else "low", high=f"X{last}" if outer else "high",
    )  # fmt: skip
    line = f"from + i{own[0]} * X{last}" if own else "from"
    taps = ""
    for k in range(window.kernel[last]):
        at = f"wide[o * {stride} + {k * window.dilations[last]}]"
        v = f"const N a = {at};"
        taps += f"N all = {at};" if k == 0 else f" {{ {v} {window.join.format('all')} }}"
    if window.kernel[last] > _MOST_ROWS:
        taps = f"""
N all = wide[o * {stride}];
for (int64_t k = 1; k < {window.kernel[last]}; k++) {{
const N a = wide[o * {stride} + k * {window.dilations[last]}]; {window.join.format("all")} }}"""
    n = "counts[o] * lines * sheets" if outer else "counts[o] * lines"
    results = f"""
{taps}
const int64_t n = {n}; (void)n;"""
    result = stored(dtype, window.end)
    rows = f"""
int64_t lines = 0, found = 0; const {pointer} *rows[{kernel}];
{loops}
lines += {counted};
if ({inside}) rows[found++] = {line};
{close}"""
    if not outer:
        return _in_pieces(window, planes + rows, join_rows, results, result)
    rows += f"""
{join_rows}
for (int64_t o = 0; o < Y; o++) {{ {results}
y[row * Y + o] = {result}; }}"""
    split = coordinates(
        ["image", *(f"c{i}" for i in outer)], ["0", *(f"Y{i}" for i in range(last))]
    )
    i = own[0]
    of_rows = f"for (int64_t c{i} = 0; c{i} < Y{i}; c{i}++) {{ const int64_t row = item * Y{i} + c{i};\n{rows} }}"
    area = f"X{last - 1} * X{last}"
    return f"""
const int64_t plane = {" * ".join(f"X{i}" for i in range(rank))}, Y = Y{last}, area = {area};
const int64_t before = {window.pads[last]}, reach = hg_max(before + X{last}, (Y - 1) * {stride} + {window.reach(last)});
int64_t *restrict counts = (int64_t *)thread->scratch;
N *restrict wide = (N *)(counts + Y), *restrict whole = wide + before, *restrict flat = wide + reach; (void)flat, (void)area;
for (int64_t i = 0; i < reach; i++) wide[i] = {window.start};
{window.counts()}
for (int64_t item = first; item < last; item++) {{
int64_t left = item;
{split}
{planes}
{of_rows} }}"""


def _in_pieces(window: _Window, rows: str, join_rows: str, results: str, result: str) -> str:
    """Return C that joins pieces of rows, and their elements.

    Args:
        window: Of one axis or two.
        rows: C that finds the rows of a window.
        join_rows: C that joins their elements from ``low`` to ``high``.
        results: C of the result of ``all``.
        result: That, as it is stored.
    """
    rank, stride, kernel = window.rank, window.strides[-1], window.kernel[-1]
    last, piece = rank - 1, _piece(window)
    split = coordinates(
        ["image", *(f"c{i}" for i in range(last))], ["0", *(f"Y{i}" for i in range(last))]
    )
    return f"""
const int64_t plane = {" * ".join(f"X{i}" for i in range(rank))}, Y = Y{last}, X = X{last};
const int64_t before = {window.pads[last]};
int64_t *restrict counts = (int64_t *)thread->scratch, counted = -1;
N *restrict wide = (N *)(counts + {piece});
for (int64_t item = first; item < last; item++) {{
int64_t left = item;
const int64_t row = item;
{split}
{rows}
for (int64_t p0 = 0; p0 < Y; p0 += {piece}) {{
const int64_t width = hg_min({piece}, Y - p0), b0 = p0 * {stride} - before;
const int64_t b1 = b0 + (width - 1) * {stride} + {window.reach(last)};
const int64_t low = hg_max(0, b0), high = hg_max(low, hg_min(X, b1));
for (int64_t i = b0; i < hg_min(low, b1); i++) wide[i - b0] = {window.start};
for (int64_t i = high; i < b1; i++) wide[i - b0] = {window.start};
{join_rows.replace("whole[i]", "wide[i - b0]")}
if (counted != p0) {{
counted = p0;
const int inner = b0 >= 0 && b1 <= X;
for (int64_t o = 0; o < width; o++) counts[o] = inner ? {kernel} : 0;
if (!inner) for (int64_t k = 0; k < {kernel}; k++) {{ {window.span(padded=window.include)}
for (int64_t o = hg_max(o0, p0); o < hg_min(o1, p0 + width); o++) counts[o - p0]++; }} }}
for (int64_t o = 0; o < width; o++) {{ {results}
y[row * Y + p0 + o] = {result}; }} }} }}"""


def _place(rank: int, *, column_major: bool) -> str:
    """Return C that writes where the largest element of a window lies."""
    if not column_major:
        return "places[row * Y + o] = image * plane + best[o];"
    text = "int64_t b = best[o] < 0 ? 0 : best[o], column = 0, size = 1;\n"
    text += coordinates([f"b{i}" for i in range(rank)], [f"X{i}" for i in range(rank)], "b") + "\n"
    text += "\n".join(f"column += b{i} * size; size *= X{i};" for i in range(rank))
    return text + "\nplaces[row * Y + o] = image * plane + column;"


def _number(operator: str, dtype: np.dtype[np.generic]) -> str:
    """Return the C type that elements are joined in."""
    if operator == "MaxPool" and dtype.kind in "iu":
        return c_type(dtype)  # as many lie in a vector as they are small
    return number_type(dtype)


def _larger(dtype: np.dtype[np.generic]) -> str:
    """Return C that keeps the larger of ``{0}`` and ``a``, or NaN."""
    nan = " | (a != a)" if is_real(dtype) else ""
    return f"{{0}} = (a > {{0}}){nan} ? a : {{0}};"
