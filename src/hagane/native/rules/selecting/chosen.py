"""NonZero and Compress: elements that a condition picks; Unique: distinct ones."""

from __future__ import annotations

import onnx_ir as ir

from hagane.native.kernels.kernel import c_type
from hagane.native.kernels.tensor import Tensor
from hagane.native.kernels.written import (
    as_bits,
    bits_type,
    coordinates,
    emit_written,
    is_real,
    loaded,
    number_type,
)
from hagane.native.lowering.found import Place, find_sizes
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.indexing.axes import around, axis_of
from hagane.native.rules.shaping.numbers import INT64
from hagane.symbolic import Dim, ceildiv

# Elements that one task counts.
_PIECE = 8192


def _counted(low: Lowering, node: ir.Node, x: Tensor, count: Dim) -> tuple[Tensor, Tensor]:
    """Return how many of the elements before each piece of ``x`` are not zero, and of all.

    Args:
        low: The state of lowering.
        node: The node.
        x: Elements.
        count: How many of them to look at.
    """
    name = node.outputs[0].name
    pieces = ceildiv(count, _PIECE)
    before = low.recorder.new(f"{name} counts", INT64, (pieces,))
    total = low.recorder.new(f"{name} count", INT64, (1,))
    test = f"{loaded(x.dtype, 'x[i]')} != 0"
    emit_written(
        low.recorder, node,
        f"""
int64_t end = hg_min(q * {_PIECE} + {_PIECE}, n), c = 0;
for (int64_t i = q * {_PIECE}; i < end; i++) c += {test};
before[q] = c;""",
        reads={"x": x}, writes={"before": before}, sizes={"n": count}, tasks=pieces, cost=1000.0,
    )  # fmt: skip
    emit_written(
        low.recorder, node,
        """
int64_t sum = 0;
for (int64_t i = 0; i < n; i++) { int64_t c = before[i]; before[i] = sum; sum += c; }
total[0] = sum;""",
        reads={}, writes={"before": before, "total": total}, sizes={"n": pieces}, tasks=1,
    )  # fmt: skip
    return before, total


def lower_non_zero(low: Lowering, node: ir.Node) -> None:
    """Lower NonZero: pieces are counted, then each writes behind those before it."""
    x, out = low.forms.contiguous(node.inputs[0]), node.outputs[0]
    x = x.reshaped(x.shape or (1,))  # a scalar's only place is 0
    rank = len(x.shape)
    before, total = _counted(low, node, x, x.size)
    count = low.facts.shape(out)[1]
    find_sizes(low, node, [(count, Place(total, 0))])
    y = low.forms.result(out)
    names, sizes = [f"c{i}" for i in range(rank)], [f"X{i}" for i in range(rank)]
    put = "\n".join(f"y[{i} * count + at] = {name};" for i, name in enumerate(names))
    step = "".join(
        f"if (++c{i} == X{i}) {{ c{i} = 0; " if i else "c0++;" for i in reversed(range(rank))
    ) + "}" * max(0, rank - 1)
    text = f"""
int64_t from = q * {_PIECE}, end = hg_min(from + {_PIECE}, n), at = before[q], left = from;
{coordinates(names, sizes)}
for (int64_t i = from; i < end; i++) {{
if ({loaded(x.dtype, "x[i]")} != 0) {{ {put} at++; }}
{step}
}}"""
    emit_written(
        low.recorder, node, text,
        reads={"x": x, "before": before}, writes={"y": y},
        sizes={"n": x.size, "count": count, **dict(zip(sizes, x.shape, strict=True))},
        tasks=ceildiv(x.size, _PIECE), cost=1000.0,
    )  # fmt: skip
    low.forms[out] = y


def lower_compress(low: Lowering, node: ir.Node) -> None:
    """Lower Compress."""
    x, condition = low.forms.contiguous(node.inputs[0]), low.forms.contiguous(node.inputs[1])
    out = node.outputs[0]
    if low.facts.attributes(node).get("axis") is None:
        x, axis = x.reshaped((x.size,)), 0
    else:
        axis = axis_of(low, node, len(x.shape))
    n = x.shape[axis]
    index = low.recorder.new(f"{out.name} chosen", INT64, (condition.size,))
    total = low.recorder.new(f"{out.name} count", INT64, (1,))
    emit_written(
        low.recorder, node,
        """
int64_t count = 0;
for (int64_t i = 0; i < length; i++) {
if (!condition[i]) continue;
if (i >= n) { hg_fail(thread, i); return; }
index[count++] = i;
}
total[0] = count;""",
        reads={"condition": condition}, writes={"index": index, "total": total},
        sizes={"length": condition.size, "n": n}, tasks=1, cost=500.0,
    )  # fmt: skip
    count = low.facts.shape(out)[axis]
    find_sizes(low, node, [(count, Place(total, 0))])
    _take(low, node, x, axis, index, count)


def _take(low: Lowering, node: ir.Node, x: Tensor, axis: int, index: Tensor, count: Dim) -> None:
    """Copy the slices of an axis that the first ``count`` indices name to the node's first result."""
    outer, n, inner = around(x.shape, axis)
    out = node.outputs[0]
    y = low.forms.result(out)
    emit_written(
        low.recorder, node,
        """
for (int64_t row = first; row < last; row++)
memcpy(y + row * inner, x + (row / count * n + index[row % count]) * inner, (size_t)inner * sizeof(T));""",
        reads={"x": as_bits(x), "index": index}, writes={"y": as_bits(y)},
        sizes={"count": count, "n": n, "inner": inner}, types={"T": bits_type(x.dtype)},
        items=outer * count, each=inner,
    )  # fmt: skip
    low.forms[out] = y


def sorting(less: str, arguments: str, passed: str) -> str:
    """Return a C function ``KERNEL_sort`` that brings indices into order and keeps ties as they are.

    Args:
        less: Whether index ``a`` comes before ``b``.
        arguments: Further parameters that this needs.
        passed: Their names.
    """
    return f"""
INLINE int KERNEL_less(int64_t a, int64_t b, {arguments}) {{ return {less}; }}
static void KERNEL_sort(int64_t *at, int64_t *spare, int64_t length, {arguments}) {{
for (int64_t i = 1; i < length; i++) {{ /* short runs by insertion */
if (i % 16 == 0) continue;
int64_t own = at[i], j = i;
for (; j % 16 > 0 && KERNEL_less(own, at[j - 1], {passed}); j--) at[j] = at[j - 1];
at[j] = own; }}
for (int64_t width = 16; width < length; width *= 2) {{
for (int64_t lo = 0; lo < length; lo += 2 * width) {{
int64_t mid = hg_min(lo + width, length), hi = hg_min(mid + width, length), i = lo, j = mid, k = lo;
while (i < mid && j < hi) spare[k++] = KERNEL_less(at[j], at[i], {passed}) ? at[j++] : at[i++];
while (i < mid) spare[k++] = at[i++];
while (j < hi) spare[k++] = at[j++]; }}
memcpy(at, spare, (size_t)length * 8); }} }}"""


def lower_unique(low: Lowering, node: ir.Node) -> None:
    """Lower Unique: slices are sorted, equal ones stand together."""
    attributes = low.facts.attributes(node)
    x, out = low.forms.contiguous(node.inputs[0]), node.outputs[0]
    flat = attributes.get("axis") is None
    if flat:
        x, axis = x.reshaped((x.size,)), 0
    else:
        axis = axis_of(low, node, len(x.shape))
    outer, n, inner = around(x.shape, axis)
    kind, name = c_type(x.dtype), out.name
    # NaN equals NaN among single elements alone, as NumPy has it, and comes last.
    nan = is_real(x.dtype)
    less = "u < v" + (" || (v != v && u == u)" if nan else "")
    same = "u == v" + (" || (u != u && v != v)" if nan and flat else "")
    arguments = f"const {kind} *x, int64_t n, int64_t outer, int64_t inner"
    loops = "for (int64_t o = 0; o < outer; o++) for (int64_t k = 0; k < inner; k++)"
    if flat:  # slices of one element
        loops = "const int64_t o = 0, k = 0; (void)n, (void)outer;"
    load = (
        f"{number_type(x.dtype)} u = {loaded(x.dtype, 'x[(o * n + a) * inner + k]')}, "
        f"v = {loaded(x.dtype, 'x[(o * n + b) * inner + k]')};"
    )
    helper = f"""
INLINE int KERNEL_before(int64_t a, int64_t b, {arguments}) {{
{loops} {{ {load}
if ({less}) return 1;
if (!({same})) return 0; }}
return 0; }}
static int KERNEL_same(int64_t a, int64_t b, {arguments}) {{
{loops} {{ {load}
if (!({same})) return 0; }}
return 1; }}
{sorting("KERNEL_before(a, b, x, n, outer, inner)", arguments, "x, n, outer, inner")}"""
    new = low.recorder.new
    order, spare, firsts, counts, groups = (
        new(f"{name} {part}", INT64, (n,))
        for part in ("order", "spare", "firsts", "counts", "groups")
    )
    total = new(f"{name} count", INT64, (1,))
    by_first = (
        ""
        if attributes["sorted"]
        else """
for (int64_t i = 0; i < count; i++) order[i] = i;
KERNEL_by_first(order, spare, count, firsts);
for (int64_t i = 0; i < count; i++) spare[order[i]] = i;
for (int64_t i = 0; i < n; i++) groups[i] = spare[groups[i]];
for (int64_t i = 0; i < count; i++) spare[i] = counts[order[i]];
for (int64_t i = 0; i < count; i++) counts[i] = spare[i], spare[i] = firsts[order[i]];
for (int64_t i = 0; i < count; i++) firsts[i] = spare[i];"""
    )
    if by_first:
        other = sorting("firsts[a] < firsts[b]", "const int64_t *firsts", "firsts")
        helper += other.replace("KERNEL_sort", "KERNEL_by_first").replace(
            "KERNEL_less", "KERNEL_earlier"
        )
    text = f"""
if (outer * inner == 0) {{ hg_fail(thread, 0); return; }}
for (int64_t i = 0; i < n; i++) order[i] = i;
KERNEL_sort(order, spare, n, x, n, outer, inner);
int64_t count = 0;
for (int64_t i = 0; i < n; i++) {{
if (i == 0 || !KERNEL_same(order[i - 1], order[i], x, n, outer, inner)) {{ counts[count] = 0; firsts[count++] = order[i]; }}
counts[count - 1]++; groups[order[i]] = count - 1; }}
{by_first}
total[0] = count;"""
    emit_written(
        low.recorder, node, text,
        reads={"x": x},
        writes={"order": order, "spare": spare, "firsts": firsts, "counts": counts,
                "groups": groups, "total": total},
        sizes={"n": n, "outer": outer, "inner": inner}, tasks=1, cost=65536.0, helper=helper,
    )  # fmt: skip
    count = low.facts.shape(out)[axis]
    find_sizes(low, node, [(count, Place(total, 0))])
    _take(low, node, x, axis, firsts, count)
    for value, source in zip(node.outputs[1:], (firsts, groups, counts), strict=False):
        if not value.name:
            continue
        target = low.forms.result(value)
        emit_written(
            low.recorder, node, "for (int64_t i = first; i < last; i++) y[i] = x[i];",
            reads={"x": source}, writes={"y": target}, items=target.size,
        )  # fmt: skip
        low.forms[value] = target


RULES: dict[tuple[str, str], Rule] = {
    ("", "Compress"): lower_compress,
    ("", "NonZero"): lower_non_zero,
    ("", "Unique"): lower_unique,
}
