"""MatMulNBits: weights of two, four or eight bits, of which each block along a column has a scale.

Weights lie in words of 32 bits, one a column, those of neighbouring columns side by side: a vector of
words has the next numbers of as many columns. The bytes of a word are four numbers in a row; where
several share a byte, its lowest bits are the first four, the next bits the four behind them.

Few rows multiply numbers as these are unpacked; of many rows, a task unpacks columns into memory of its
thread. Where a model allows for rows of bytes (``accuracy_level``), and the processor multiplies
these, each block of a row is brought to bytes by a scale of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from hagane.machine import multiplies_bytes
from hagane.native.kernels.elementwise_loops import emit_elementwise
from hagane.native.kernels.expression import FLOAT32, HALVES, Apply, Leaf
from hagane.native.kernels.kernel import work_of
from hagane.native.kernels.packing import Packing
from hagane.native.kernels.tensor import Tensor, row_major
from hagane.native.kernels.written import emit_written, is_real, loaded
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.indexing.axes import number_input
from hagane.ops.definition import Array
from hagane.symbolic import Dim, ceildiv, product

# Vectors of columns of one task, rows of one task, and rows that meet numbers as they are unpacked.
_VECTORS, _STRETCH, _FEW = 2, 96, 12
# Numbers of a column that are unpacked into memory at once, and rows that meet them together.
_DEPTH, _TILE = 256, 6
_BYTES_LEVEL = 4  # the ``accuracy_level`` of rows of bytes


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Sizes of the weights: ``k`` numbers in each of ``n`` columns."""

    n: int
    k: int
    bits: int
    block: int
    lanes: int

    @property
    def wide(self) -> int:
        """Columns of a group."""
        return _VECTORS * self.lanes

    @property
    def groups(self) -> int:
        return -(-self.n // self.wide)

    @property
    def per_word(self) -> int:
        return 32 // self.bits

    @property
    def words(self) -> int:
        """Words of a column."""
        return -(-self.k // self.per_word)

    @property
    def each(self) -> int:
        """Words of a block."""
        return self.block // self.per_word

    @property
    def blocks(self) -> int:
        return -(-self.k // self.block)

    @property
    def row(self) -> int:
        """Numbers of a row that is filled up with zeros."""
        return -(-self.words * self.per_word // 64) * 64


def pack_few_bits(packed: Array, n: int, k: int, bits: int, wide: int) -> Iterator[Array]:
    """Yield weights ``(n, blocks, bytes)`` as words, ``(words, wide)`` for each group of columns."""
    columns = packed.reshape(n, -1)
    per_byte, words = 8 // bits, -(-k // (32 // bits))
    for first in range(0, n, wide):
        some = columns[first : first + wide]
        places = [some >> (bits * p) & ((1 << bits) - 1) for p in range(per_byte)]
        numbers = np.zeros((wide, words * (32 // bits)), np.uint8)
        numbers[: len(some), :k] = np.stack(places, -1).reshape(len(some), -1)[:, :k]
        parts = numbers.reshape(wide, words, per_byte, 4) << np.arange(0, 8, bits)[:, None]
        joined = np.bitwise_or.reduce(parts, axis=2).astype(np.uint8)
        yield np.ascontiguousarray(joined.transpose(1, 0, 2))


def pack_block_numbers(numbers: Array, n: int, blocks: int, bits: int, wide: int) -> Array:
    """Return a number for each block of each column as ``(groups, blocks, wide)``.

    Args:
        numbers: Floats, or, of ``bits`` bits, bytes of several numbers.
        n: Columns.
        blocks: Blocks of a column.
        bits: Of a number in bytes; 0 where these are floats.
        wide: Columns of a group.
    """
    if bits:
        rows = numbers.reshape(n, -1)
        places = [rows >> (bits * p) & ((1 << bits) - 1) for p in range(8 // bits)]
        numbers = np.stack(places, -1).reshape(n, -1)[:, :blocks]
    groups = -(-n // wide)
    filled = np.zeros((groups * wide, blocks), np.uint8 if bits else np.float32)
    filled[:n] = numbers.reshape(n, blocks)
    return np.ascontiguousarray(filled.reshape(groups, wide, blocks).transpose(0, 2, 1))


def _packed(low: Lowering, node: ir.Node, sizes: _Sizes) -> Tensor:
    """Return the weights in words, packed in each run if they vary."""
    value, per_byte, mask = node.inputs[1], 8 // sizes.bits, (1 << sizes.bits) - 1
    assert value is not None
    shape: tuple[Dim, ...] = (sizes.groups, sizes.words, sizes.wide * 4)
    known = low.facts.constant(value)
    if known is not None:
        recipe = (np.ascontiguousarray(known), sizes.n, sizes.k, sizes.bits, sizes.wide)
        size = sizes.groups * sizes.words * sizes.wide * 4
        buffer = low.recorder.weight((node, 1), Packing(pack_few_bits, recipe), size)
        return Tensor(buffer, np.dtype(np.uint8), shape, row_major(shape))
    given = low.forms.contiguous(value)
    words = low.recorder.new(f"{value.name} words", np.dtype(np.uint8), shape)
    emit_written(
        low.recorder, node,
        f"""
for (int64_t item = first; item < last; item++) for (int64_t j = 0; j < {sizes.wide}; j++) {{
const int64_t c = item / {sizes.words} * {sizes.wide} + j;
for (int64_t t = 0; t < 4; t++) {{
uint8_t joined = 0;
for (int64_t p = 0; p < {per_byte}; p++) {{
const int64_t k = item % {sizes.words} * {sizes.per_word} + p * 4 + t;
const uint8_t v = c < {sizes.n} && k < {sizes.k} ? given[c * {sizes.blocks * sizes.block // per_byte} + k / {per_byte}] >> k % {per_byte} * {sizes.bits} & {mask} : 0;
joined |= (uint8_t)(v << p * {sizes.bits}); }}
words[(item * {sizes.wide} + j) * 4 + t] = joined; }} }}""",
        reads={"given": given}, writes={"words": words},
        items=sizes.groups * sizes.words, each=sizes.wide * sizes.per_word,
    )  # fmt: skip
    return words


def _block_numbers(low: Lowering, node: ir.Node, index: int, sizes: _Sizes) -> Tensor:
    """Return the scale, or zero point, of each block, packed in each run if it varies."""
    value = node.inputs[index]
    assert value is not None
    given, known = low.facts.dtype(value), low.facts.constant(value)
    bits = sizes.bits if given == np.uint8 else 0
    if not bits and not is_real(given):
        raise NotNative(f"zero points of type {given}")
    per_byte = 8 // bits if bits else 1
    count = sizes.n * (-(-sizes.blocks // per_byte))
    if product(low.facts.shape(value)) != count:
        raise NotNative("scales or zero points of another size")
    dtype = np.dtype(np.uint8 if bits else np.float32)
    shape: tuple[Dim, ...] = (sizes.groups, sizes.blocks, sizes.wide)
    if known is not None:
        own = np.ascontiguousarray(known if bits else known.astype(np.float32))
        size = sizes.groups * sizes.blocks * sizes.wide * dtype.itemsize
        recipe = Packing(pack_block_numbers, (own, sizes.n, sizes.blocks, bits, sizes.wide))
        buffer = low.recorder.weight((node, index), recipe, size)
        return Tensor(buffer, dtype, shape, row_major(shape))
    number = (
        f"given[c * {-(-sizes.blocks // per_byte)} + g / {per_byte}] >> g % {per_byte} * {bits} & {(1 << bits) - 1}"
        if bits
        else loaded(given, f"given[c * {sizes.blocks} + g]")
    )
    made = low.recorder.new(f"{value.name} by block", dtype, shape)
    emit_written(
        low.recorder, node,
        f"""
for (int64_t item = first; item < last; item++) for (int64_t j = 0; j < {sizes.wide}; j++) {{
const int64_t c = item / {sizes.blocks} * {sizes.wide} + j, g = item % {sizes.blocks};
made[item * {sizes.wide} + j] = c < {sizes.n} ? {number} : 0; }}""",
        reads={"given": low.forms.contiguous(value)}, writes={"made": made},
        items=sizes.groups * sizes.blocks, each=sizes.wide,
    )  # fmt: skip
    return made


def _rows(
    low: Lowering, node: ir.Node, x: Tensor, rows: Dim, sizes: _Sizes, *, as_bytes: bool
) -> dict[str, Tensor]:
    """Return rows that are filled up, the sum of each block, and its scale if rows become bytes."""
    name, new = node.outputs[0].name or node.name, low.recorder.new
    k, row, blocks, block = sizes.k, sizes.row, sizes.blocks, sizes.block
    filled = new(f"{name} rows", np.dtype(np.int8) if as_bytes else FLOAT32, (rows, row))
    sums = new(f"{name} sums", np.dtype(np.int32) if as_bytes else FLOAT32, (rows, blocks))
    made = {"rows_of": filled, "sums": sums}
    start = f"""
for (int64_t r = first; r < last; r++) {{
for (int64_t i = {k // sizes.lanes * sizes.lanes}; i < {row}; i++) rows_of[r * {row} + i] = 0;
for (int64_t g = 0; g < {blocks}; g++) {{
const float *from = x + r * {k} + g * {block};
const int64_t n = hg_min({block}, {k} - g * {block});"""
    if as_bytes:
        made["by"] = new(f"{name} scales", FLOAT32, (rows, blocks))
        text = f"""
vf most = {{0}}; vm odd = {{0}}; vi sum = {{0}};
for (int64_t i = 0; i < n; i += VL) {{ const vf v = v_load_n(from + i, hg_min(VL, n - i)); most = v_max2(most, v_abs(v)); odd |= v != v; }}
const float top = v_top(most), inverse = top > 1e-30f ? 127.f / top : 0.f;
for (int64_t i = 0; i < n; i += VL) {{
const vf v = v_round(v_load_n(from + i, hg_min(VL, n - i)) * inverse);
const vi whole = __builtin_convertvector(v_sel(v == v, v, v_set1(0)), vi);
*(vc *)(rows_of + r * {row} + g * {block} + i) = __builtin_convertvector(whole, vc);
sum += whole; }}
int32_t total = 0;
for (int i = 0; i < VL; i++) total += sum[i];
sums[r * {blocks} + g] = total;
by[r * {blocks} + g] = v_any(odd) ? NAN : top / 127.f; }} }}"""
    else:
        text = f"""
vf sum = {{0}};
for (int64_t i = 0; i < n; i += VL) {{
const int64_t w = hg_min(VL, n - i);
const vf v = v_load_n(from + i, w);
v_store_n(rows_of + r * {row} + g * {block} + i, v, w);
sum += v; }}
sums[r * {blocks} + g] = v_sum(sum); }} }}"""
    emit_written(
        low.recorder, node, start + text,
        reads={"x": x}, writes=made, items=rows, each=k, cost=0.1, name="rows_of_few_bits",
    )  # fmt: skip
    return made


def _lines(lines: Iterator[str]) -> str:
    return "\n".join(lines)


def _zero(sizes: _Sizes, zeros: Tensor | None, c: int, at: str) -> str:
    """Return C of the zero points of a vector of columns, as floats."""
    if zeros is None:
        return f"v_set1({float(1 << (sizes.bits - 1))}f)"
    place = f"zeros + {at} + {c} * VL"
    if zeros.dtype == np.uint8:
        return f"__builtin_convertvector(WIDE_u8({place}), vf)"
    return f"v_load({place})"


def _tile(sizes: _Sizes, zeros: Tensor | None, count: int, *, as_bytes: bool) -> str:
    """Return C that multiplies ``count`` rows from ``row`` on as their numbers are unpacked."""
    rows, columns = range(count), range(_VECTORS)
    each = [(r, c) for r in rows for c in columns]
    # A lone row has few sums: two chains of each are added up side by side.
    ways = 2 if count == 1 else 1
    kind, mask = ("vi", "M") if as_bytes else ("vf", str((1 << sizes.bits) - 1))
    steps: list[str] = []
    if as_bytes:
        for p in range(8 // sizes.bits):
            moved = f">> {sizes.bits * p} & {mask}" if sizes.bits < 8 else ""
            steps += [f"const vi v{p}_{c} = b{c} {moved};" for c in columns]
            for r in rows:
                steps.append(
                    f"{{ int32_t four; memcpy(&four, x{r} + u * {sizes.per_word} + {4 * p}, 4);"
                    " const vi f = (vi){0} + four;"
                )
                steps += [
                    f"s{r}_{c}_{p % ways} = (vi)hg_dot_quads((__m512i)s{r}_{c}_{p % ways}, (__m512i)v{p}_{c}, (__m512i)f);"
                    for c in columns
                ]
                steps.append("}")
    else:
        for i in range(sizes.per_word):
            shift = i // 4 * sizes.bits + i % 4 * 8
            steps.append("{")
            steps += [
                f"const vf v{c} = __builtin_convertvector(b{c} >> {shift} & {mask}, vf);"
                for c in columns
            ]
            for r in rows:
                steps.append(f"{{ const vf f = v_set1(x{r}[u * {sizes.per_word} + {i}]);")
                steps += [
                    f"s{r}_{c}_{i % ways} = v_fma(f, v{c}, s{r}_{c}_{i % ways});" for c in columns
                ]
                steps.append("}")
            steps.append("}")
    at = f"g * {sizes.wide}"
    ends: list[str] = []
    for c in columns:
        ends.append(
            f"{{ const vf scale = v_load(scales + {at} + {c} * VL), zero = {_zero(sizes, zeros, c, at)};"
        )
        for r in rows:
            total = " + ".join(f"s{r}_{c}_{way}" for way in range(ways))
            own, by = f"(row + {r}) * {sizes.blocks} + g", "scale"
            if as_bytes:
                total = f"__builtin_convertvector({total}, vf)"
                by = f"scale * by[{own}]"
            ends.append(f"a{r}_{c} = v_fma({total} - zero * (float)sums[{own}], {by}, a{r}_{c});")
        ends.append("}")
    pointer = "const int8_t" if as_bytes else "const float"
    return f"""{{
{_lines(f"{pointer} *x{r} = rows_of + (row + {r}) * {sizes.row};" for r in rows)}
{_lines(f"vf a{r}_{c} = {{0}};" for r, c in each)}
const uint8_t *w = words;
for (int64_t g = 0, u = 0; g < {sizes.blocks}; g++) {{
{_lines(f"{kind} s{r}_{c}_{way} = {{0}};" for r, c in each for way in range(ways))}
for (const int64_t end = hg_min({sizes.words}, u + {sizes.each}); u < end; u++, w += {sizes.wide * 4}) {{
{_lines(f"const vi b{c} = *(const vi *)(w + {c} * VL * 4);" for c in columns)}
{_lines(iter(steps))} }}
{_lines(iter(ends))} }}
{_lines(f"v_store_n(y + (row + {r}) * {sizes.n} + c0 + {c} * VL, a{r}_{c} + o{c}, hg_max(0, hg_min(VL, {sizes.n} - c0 - {c} * VL)));" for r, c in each)}
row += {count}; }}"""


def _panels(sizes: _Sizes, zeros: Tensor | None) -> str:
    """Return C that unpacks columns by stretches, which then meet all rows up to ``r1``."""
    columns, rows = range(_VECTORS), range(_TILE)
    each = [(r, c) for r in rows for c in columns]
    stretch, mask = _DEPTH // sizes.per_word, (1 << sizes.bits) - 1
    at = f"g * {sizes.wide}"
    widened = _lines(
        f"v_store(to + {i} * {sizes.wide} + {c} * VL, (__builtin_convertvector("
        f"b >> {i // 4 * sizes.bits + i % 4 * 8} & {mask}, vf) - zero) * scale);"
        for c in ["{c}"]
        for i in range(sizes.per_word)
    )
    unpacked = _lines(
        f"{{ const vf scale = v_load(scales + {at} + {c} * VL), zero = {_zero(sizes, zeros, c, at)};"
        f" const vi b = *(const vi *)(words + (u * {sizes.wide} + {c} * VL) * 4);\n"
        + widened.replace("{c}", str(c))
        + "}"
        for c in columns
    )
    left = f"hg_max(0, hg_min(VL, {sizes.n} - c0 - {{c}} * VL))"
    return f"""
float *panel = (float *)thread->scratch;
for (int64_t u0 = 0; u0 < {sizes.words}; u0 += {stretch}) {{
const int64_t u1 = hg_min({sizes.words}, u0 + {stretch}), depth = (u1 - u0) * {sizes.per_word};
for (int64_t u = u0; u < u1; u++) {{
const int64_t g = u / {sizes.each};
float *to = panel + (u - u0) * {sizes.per_word * sizes.wide};
{unpacked} }}
for (int64_t row = r0; row < r1; row += {_TILE}) {{
{_lines(f"const float *x{r} = rows_of + hg_min(row + {r}, r1 - 1) * {sizes.row} + u0 * {sizes.per_word}; float *y{r} = y + hg_min(row + {r}, r1 - 1) * {sizes.n} + c0;" for r in rows)}
{_lines(f"vf a{r}_{c} = u0 == 0 ? o{c} : v_load_n(y{r} + {c} * VL, {left.format(c=c)});" for r, c in each)}
for (int64_t i = 0; i < depth; i++) {{
{_lines(f"const vf b{c} = v_load(panel + i * {sizes.wide} + {c} * VL);" for c in columns)}
{_lines(f"{{ const vf f = v_set1(x{r}[i]); {' '.join(f'a{r}_{c} = v_fma(f, b{c}, a{r}_{c});' for c in columns)} }}" for r in rows)} }}
{_lines(f"if (row + {r} < r1) v_store_n(y{r} + {c} * VL, a{r}_{c}, {left.format(c=c)});" for r, c in each)}
}} }}"""


def lower_matmul_nbits(low: Lowering, node: ir.Node) -> None:
    """Lower MatMulNBits."""
    attributes, lanes = low.facts.attributes(node), low.facts.level.lanes
    sizes = _Sizes(
        int(attributes["N"]),
        int(attributes["K"]),
        int(attributes.get("bits", 4)),
        int(attributes["block_size"]),
        lanes,
    )
    x, kind = low.forms.contiguous(node.inputs[0]), low.facts.dtype(node.inputs[1])
    zeros, order, bias = (number_input(low, node, i) for i in (3, 4, 5))
    if sizes.bits not in (2, 4, 8) or (order is not None and low.facts.shape(order) != (0,)):
        raise NotNative(f"weights of {sizes.bits} bits in an order of their own")
    if not is_real(x.dtype) or x.dtype.itemsize > 4 or kind != np.uint8:
        raise NotNative(f"operands of type {x.dtype} and {kind}")
    if sizes.block % max(16, sizes.per_word):
        raise NotNative(f"blocks of {sizes.block} numbers")
    count = sizes.n * sizes.blocks * (sizes.block * sizes.bits // 8)
    if product(low.facts.shape(node.inputs[1])) != count or count == 0:
        raise NotNative("weights of another size")
    out = node.outputs[0]
    if x.dtype != np.float32:
        wide = low.recorder.new(f"{out.name} operand", FLOAT32, x.shape)
        emit_elementwise(
            low.recorder, f"widen '{out.name}'", Apply("{0}", (Leaf(x),), FLOAT32), wide
        )
        x = wide
    as_bytes = int(attributes.get("accuracy_level", 0)) == _BYTES_LEVEL and multiplies_bytes(
        low.facts.level
    )
    reads = {
        "packed": _packed(low, node, sizes),
        "scale": _block_numbers(low, node, 2, sizes),
    }
    points = None
    if zeros is not None:
        points = reads["points"] = _block_numbers(low, node, 3, sizes)
    added = ["v_set1(0)"] * _VECTORS
    if bias is not None:
        reads["bias"] = low.forms.contiguous(bias)
        one = loaded(reads["bias"].dtype, f"bias[hg_min({sizes.n} - 1, c0 + {{c}} * VL + i)]")
        added = [
            f"({{ vf o; for (int i = 0; i < VL; i++) o[i] = {one.format(c=c)}; o; }})"
            for c in range(_VECTORS)
        ]
    result = low.forms.result(out)
    y = result
    if result.dtype != np.float32:
        y = low.recorder.new(f"{out.name} wide", FLOAT32, result.shape)
    rows = product(x.shape[:-1])
    reads |= _rows(low, node, x, rows, sizes, as_bytes=as_bytes)
    heights = (6, 4, 2, 1) if as_bytes else (4, 3, 2, 1)
    tiles = _lines(
        f"while (r1 - row >= {height}) {_tile(sizes, points, height, as_bytes=as_bytes)}"
        for height in heights
    )
    many = "" if as_bytes else f"if (rows > {_FEW}) {{ {_panels(sizes, points)} return; }}"
    mask = sum(((1 << sizes.bits) - 1) << shift for shift in (0, 8, 16, 24))
    text = f"""
const int64_t group = q % {sizes.groups}, c0 = group * {sizes.wide};
const int64_t r0 = q / {sizes.groups} * {_STRETCH}, r1 = hg_min(rows, r0 + {_STRETCH});
const int32_t M = (int32_t){mask}u; (void)M;
const uint8_t *words = packed + group * {sizes.words * sizes.wide * 4};
const float *scales = scale + group * {sizes.blocks * sizes.wide};
{f"const {'uint8_t' if points.dtype == np.uint8 else 'float'} *zeros = points + group * {sizes.blocks * sizes.wide};" if points else ""}
const vf {", ".join(f"o{c} = {text}" for c, text in enumerate(added))};
{many}
int64_t row = r0;
{tiles}"""
    a_number = 0.003 if as_bytes else 0.01
    emit_written(
        low.recorder, node, text, reads=reads, writes={"y": y}, sizes={"rows": rows},
        tasks=ceildiv(rows, _STRETCH) * sizes.groups,
        work=work_of(rows + 5, sizes.n * sizes.k * a_number),
        scratch=0 if as_bytes else (_DEPTH * sizes.wide + 64) * 4, name="few_bits_bytes" if as_bytes else "few_bits",
    )  # fmt: skip
    if y is not result:
        rounded = Apply(f"v_round_{HALVES[result.dtype]}({{0}})", (Leaf(y),), result.dtype)
        emit_elementwise(low.recorder, f"round '{out.name}'", rounded, result)
    low.forms[out] = result


RULES: dict[tuple[str, str], Rule] = {("com.microsoft", "MatMulNBits"): lower_matmul_nbits}
