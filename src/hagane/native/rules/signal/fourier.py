"""DFT by the fast Fourier transform (Cooley and Tukey, 1965), for long prime factors as a convolution.

A transform of a length with a large prime factor is a product with a chirp, a convolution by transforms
of a power of two, and a product with the chirp again (Bluestein, 1970).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.kernel import c_type
from hagane.native.kernels.tensor import Tensor
from hagane.native.kernels.written import emit_written
from hagane.native.lowering.facts import NotNative, sizes_content
from hagane.native.lowering.found import new_size
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.indexing.axes import around, number_input, whole_numbers
from hagane.native.rules.shaping.numbers import found_numbers
from hagane.symbolic import Dim, Expr, symbol, symbols_of

# Decimation in time: parts of every p-th number are transformed, then joined. ``roots`` are those of
# unity, with the sign of the direction; ``spare`` holds as many numbers as a factor may have.
_TRANSFORM = """
typedef struct { REAL re, im; } KERNEL_number;
INLINE KERNEL_number KERNEL_times(KERNEL_number a, KERNEL_number b) {
return (KERNEL_number){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
/* The transform of four numbers; `turn` is the sign of the direction. */
INLINE void KERNEL_four(KERNEL_number *to, int64_t apart, KERNEL_number a, KERNEL_number b, KERNEL_number c, KERNEL_number d, REAL turn) {
const REAL s = turn < 0 ? -1 : 1;
const KERNEL_number e = {a.re + c.re, a.im + c.im}, f = {a.re - c.re, a.im - c.im};
const KERNEL_number g = {b.re + d.re, b.im + d.im}, h = {-s * (b.im - d.im), s * (b.re - d.re)};
to[0] = (KERNEL_number){e.re + g.re, e.im + g.im}; to[apart] = (KERNEL_number){f.re + h.re, f.im + h.im};
to[2 * apart] = (KERNEL_number){e.re - g.re, e.im - g.im}; to[3 * apart] = (KERNEL_number){f.re - h.re, f.im - h.im}; }
static void KERNEL_fft(KERNEL_number *to, const KERNEL_number *from, int64_t n, int64_t step,
                       const KERNEL_number *roots, KERNEL_number *spare) {
if (n == 1) { to[0] = from[0]; return; }
if (n == 2) {
const KERNEL_number a = from[0], b = from[step];
to[0].re = a.re + b.re, to[0].im = a.im + b.im, to[1].re = a.re - b.re, to[1].im = a.im - b.im;
return; }
if (n == 4) { KERNEL_four(to, 1, from[0], from[step], from[2 * step], from[3 * step], roots[step].im); return; }
int64_t p = n % 4 == 0 ? 4 : 2;
while (n % p) p = p > 2 && p * p > n ? n : p + (p == 2 ? 1 : 2);
const int64_t m = n / p;
for (int64_t r = 0; r < p; r++) KERNEL_fft(to + r * m, from + r * step, m, step * p, roots, spare);
if (p == 4) {
const REAL turn = roots[m * step].im;
for (int64_t k = 0; k < m; k++) {
const KERNEL_number b = KERNEL_times(to[m + k], roots[k * step]), c = KERNEL_times(to[2 * m + k], roots[2 * k * step]);
KERNEL_four(to + k, m, to[k], b, c, KERNEL_times(to[3 * m + k], roots[3 * k * step]), turn); }
return; }
for (int64_t k = 0; k < m; k++) {
for (int64_t r = 0; r < p; r++) {
const KERNEL_number b = to[r * m + k], w = roots[r * k * step];
spare[r].re = b.re * w.re - b.im * w.im, spare[r].im = b.re * w.im + b.im * w.re; }
if (p == 2) {
const KERNEL_number a = spare[0], b = spare[1];
to[k].re = a.re + b.re, to[k].im = a.im + b.im;
to[m + k].re = a.re - b.re, to[m + k].im = a.im - b.im;
continue; }
for (int64_t q = 0; q < p; q++) {
REAL re = spare[0].re, im = spare[0].im;
for (int64_t r = 1, turn = q; r < p; r++, turn += q) {
if (turn >= p) turn -= p;
const KERNEL_number w = roots[turn * m * step];
re += spare[r].re * w.re - spare[r].im * w.im, im += spare[r].re * w.im + spare[r].im * w.re; }
to[q * m + k].re = re, to[q * m + k].im = im; } } }
"""
# Primes up to this are factors of a transform; lengths with larger ones are convolutions.
_LARGEST_FACTOR = 31
# Tables of longer transforms are computed in each run.
_MOST_CONSTANT = 1 << 16
# The length of the transforms of such a convolution; 0 where factors do.
_PADDED = f"""
static int64_t KERNEL_padded(int64_t n) {{
int64_t left = n, m = 1;
for (int64_t p = 2; p <= {_LARGEST_FACTOR}; p++) while (left % p == 0) left /= p;
if (left == 1) return 0;
while (m < 2 * n - 1) m *= 2;
return m; }}
"""
# Roots of unity; of a convolution first the chirp, then roots for its own length, then room for the
# transform of the chirp.
_ROOTS = """
const int64_t m = KERNEL_padded(n);
const double turn = {sign}6.283185307179586 / (double)n;
for (int64_t i = first; i < hg_min(last, n + m); i++) {{
const double angle = i >= n ? -6.283185307179586 / (double)m * (double)(i - n)
: m ? turn / 2 * (double)((uint64_t)i * (uint64_t)i % (2 * (uint64_t)n)) : turn * (double)i;
roots[2 * i] = (REAL)cos(angle); roots[2 * i + 1] = (REAL)sin(angle); }}"""
_CHIRP = """
const int64_t m = KERNEL_padded(n);
KERNEL_number *chirp = (KERNEL_number *)roots, *own = chirp + n, *to = own + m, *in = (KERNEL_number *)thread->scratch;
for (int64_t i = 0; i < m; i++) in[i].re = 0, in[i].im = 0;
for (int64_t i = 0; i < n && m; i++) {
const KERNEL_number c = {chirp[i].re / (REAL)m, -chirp[i].im / (REAL)m};
in[i] = c; in[i ? m - i : 0] = c; }
if (m) KERNEL_fft(to, in, m, 1, own, in + m);"""
# A line of any length, from ``in`` to ``done``.
_LINE = """
if (m == 0) KERNEL_fft(done, in, n, 1, chirp, spare);
else {
for (int64_t i = 0; i < n; i++) in[i] = KERNEL_times(in[i], chirp[i]);
for (int64_t i = n; i < m; i++) in[i].re = 0, in[i].im = 0;
KERNEL_fft(done, in, m, 1, chirp + n, spare);
for (int64_t i = 0; i < m; i++) { done[i] = KERNEL_times(done[i], chirp[n + m + i]); done[i].im = -done[i].im; }
KERNEL_fft(in, done, m, 1, chirp + n, spare);
for (int64_t i = 0; i < hg_min(bins, n); i++) { in[i].im = -in[i].im; done[i] = KERNEL_times(in[i], chirp[i]); } }"""
# The numbers of a line; those behind its end are zero.
_READ = """
for (int64_t i = 0; i < n; i++) {
const REAL *at = line + i * inner * PARTS;
in[i].re = i < have ? at[0] : 0; in[i].im = i < have && PARTS == 2 ? at[PARTS - 1] : 0; }"""
# The same for one half of the bins of real numbers, which the others mirror.
_READ_HALF = """
for (int64_t i = 0; i < n; i++) {
const int64_t j = i <= n / 2 ? i : n - i;
const REAL *at = line + j * inner * PARTS;
const int own = i == 0 || 2 * i == n || j >= have || PARTS == 1;
in[i].re = j < have ? at[0] : 0; in[i].im = own ? 0 : j == i ? at[PARTS - 1] : -at[PARTS - 1]; }"""


def lower_dft(low: Lowering, node: ir.Node) -> None:
    """Lower DFT: each line along the axis is transformed by itself."""
    x, out = low.forms.contiguous(node.inputs[0]), node.outputs[0]
    if x.dtype.name not in ("float32", "float64"):
        raise NotNative(f"element type {x.dtype}")
    attributes, rank = low.facts.attributes(node), len(x.shape)
    axis_input, length_input = number_input(low, node, 2), number_input(low, node, 1)
    known = None if axis_input is None else low.facts.constant(axis_input)
    inverse, onesided = bool(attributes["inverse"]), bool(attributes["onesided"])
    real, parts = inverse and onesided, x.shape[-1]
    if not isinstance(parts, int):
        raise NotNative("numbers of which only the run knows whether they are complex")
    shape, kind = low.facts.shape(out), c_type(x.dtype)
    half = onesided and not inverse
    if axis_input is not None and known is None:
        outer, have, inner, size, bins = _find_axis(low, node, x, real=real, half=half)
    else:
        axis = (-2 if known is None else int(known.reshape(-1)[0])) % rank
        outer, have, inner = around(x.shape[:-1], axis)
        bins, size = shape[axis], 2 * (have - 1) if real else have
        if length_input is not None:
            size = _length(low, node, length_input, bins, half=half)
    roots = _roots(low, node, size, x.dtype, inverse=inverse)
    y = low.forms.result(out)
    write = "to[i * inner] = done[i].re * by;"
    if not real:
        write = "to[2 * i * inner] = done[i].re * by, to[2 * i * inner + 1] = done[i].im * by;"
    text = f"""
const KERNEL_number *chirp = (const KERNEL_number *)roots;
const int64_t m = KERNEL_padded(n), room = hg_max(n, m);
KERNEL_number *in = (KERNEL_number *)thread->scratch, *done = in + room, *spare = done + room;
const REAL by = {"(REAL)1 / (REAL)n" if inverse else "1"};
for (int64_t item = first; item < last; item++) {{
const REAL *line = x + (item / inner * have * inner + item % inner) * PARTS;
REAL *to = y + (item / inner * bins * inner + item % inner) * {1 if real else 2};
{_READ_HALF if real else _READ}
{_LINE}
for (int64_t i = 0; i < bins; i++) {{ {write} }}
}}"""
    emit_written(
        low.recorder, node, text.replace("PARTS", str(parts)).replace("REAL", kind),
        reads={"x": x, "roots": roots}, writes={"y": y},
        sizes={"n": size, "have": have, "inner": inner, "bins": bins},
        items=outer * inner, each=size * 20, scratch=_numbers(size, 2) * 2 * x.dtype.itemsize + 64,
        helper=(_PADDED + _TRANSFORM).replace("REAL", kind),
    )  # fmt: skip
    low.forms[out] = y


def _padded(size: int) -> int:
    """Return the length of the transforms of a convolution in place of one; 0 if factors do."""
    left = size
    for p in range(2, _LARGEST_FACTOR + 1):
        while left % p == 0:
            left //= p
    return 0 if left == 1 else 1 << (2 * size - 2).bit_length()


def _numbers(size: Dim, times: int) -> Dim:
    """Return the room for so many transforms, and for one factor's numbers."""
    if isinstance(size, int):
        return times * max(size, _padded(size)) + _LARGEST_FACTOR
    return times * 4 * size + _LARGEST_FACTOR


def _roots(
    low: Lowering, node: ir.Node, size: Dim, dtype: np.dtype[Any], *, inverse: bool
) -> Tensor:
    """Return roots of unity, with the sign of the direction, and what a convolution needs."""
    if isinstance(size, int) and size <= _MOST_CONSTANT:
        from hagane.native.rules.classical.scores import table

        return table(low, node, "roots", _constant_roots(size, dtype, inverse=inverse))
    room = 9 * size if not isinstance(size, int) else size + 2 * _padded(size)
    roots = low.recorder.new(f"{node.outputs[0].name} roots", dtype, (room, 2))
    kind = c_type(dtype)
    emit_written(
        low.recorder, node,
        _ROOTS.format(sign="" if inverse else "-").replace("REAL", kind),
        reads={}, writes={"roots": roots}, sizes={"n": size}, items=room, cost=20.0,
        helper=_PADDED,
    )  # fmt: skip
    if not isinstance(size, int) or _padded(size):
        emit_written(
            low.recorder, node, _CHIRP.replace("REAL", kind),
            reads={}, writes={"roots": roots}, sizes={"n": size}, tasks=1, work=40 * room,
            scratch=_numbers(size, 1) * 2 * dtype.itemsize + 64,
            helper=(_PADDED + _TRANSFORM).replace("REAL", kind),
        )  # fmt: skip
    return roots


def _constant_roots(size: int, dtype: np.dtype[Any], *, inverse: bool) -> np.ndarray:
    """Return what ``_roots`` computes, ``(numbers, 2)``."""
    turn, m = (2j if inverse else -2j) * np.pi / size, _padded(size)
    if m == 0:
        found = np.exp(turn * np.arange(size))
    else:
        i = np.arange(size)
        chirp = np.exp(turn / 2 * (i * i % (2 * size)))
        padded = np.zeros(m, complex)
        padded[:size] = chirp.conj() / m
        padded[m - size + 1 :] = padded[size - 1 : 0 : -1]
        found = np.concatenate([chirp, np.exp(-2j * np.pi / m * np.arange(m)), np.fft.fft(padded)])
    return np.ascontiguousarray(np.stack([found.real, found.imag], 1).astype(dtype))


def _find_axis(
    low: Lowering, node: ir.Node, x: Tensor, *, real: bool, half: bool
) -> tuple[Dim, Dim, Dim, Dim, Dim]:
    """Find the axes around one that the data name, and the lengths of signal and result."""
    out, rank = node.outputs[0], len(x.shape)
    names = ("outer", "have", "inner", "length", "bins")
    outer, have, inner, size, bins = (new_size(low, out, name) for name in names)
    reads = {"axes": whole_numbers(low, node.inputs[2])}
    length = "2 * (have - 1)" if real else "have"
    if number_input(low, node, 1) is not None:
        reads["given"] = whole_numbers(low, node.inputs[1])
        length = "given[0]"
    dims = ", ".join(f"X{i}" for i in range(rank - 1))
    text = f"""
const int64_t dims[] = {{{dims}}};
int64_t axis = axes[0] < 0 ? axes[0] + {rank} : axes[0], outer = 1, inner = 1;
if (axis < 0 || axis >= {rank - 1}) {{ hg_fail(thread, axes[0]); return; }}
for (int64_t i = 0; i < {rank - 1}; i++) {{
if (i < axis) outer *= dims[i]; else if (i > axis) inner *= dims[i];
found[5 + i] = dims[i]; }}
const int64_t have = dims[axis], length = {length}, bins = {"length / 2 + 1" if half else "length"};
if (length < 1 || length > (1LL << 40)) {{ hg_fail(thread, length); return; }}
found[0] = outer; found[1] = have; found[2] = inner; found[3] = length; found[4] = bins;
found[5 + axis] = bins;"""
    wanted: list[Dim] = [outer, have, inner, size, bins, *low.facts.shape(out)[:-1]]
    sizes: dict[str, Dim] = {f"X{i}": dim for i, dim in enumerate(x.shape[:-1])}
    found_numbers(low, node, text, wanted, reads=reads, sizes=sizes)
    return outer, have, inner, size, bins


def _length(low: Lowering, node: ir.Node, given: ir.Value, bins: Dim, *, half: bool) -> Dim:
    """Return the length of a transform that an input gives."""
    known = low.facts.constant(given)
    if known is not None:
        return int(known.reshape(-1)[0])
    size = bins
    if half:
        # (Of bins that are half of a number plus one, that number is the length.)
        names = sorted(symbols_of(bins) - low.facts.given)
        size = next((n for n in map(symbol, names) if n // 2 + 1 == bins), 0)
        content = sizes_content(low.facts.types, given)
        if content is not None:
            size = content.reshape(-1)[0]
        if not isinstance(size, Expr):
            raise NotNative("one half of a length that is known only at run time")
    text = "if (given[0] < 1) { hg_fail(thread, given[0]); return; }\nfound[0] = given[0];"
    found_numbers(low, node, text, [size], reads={"given": whole_numbers(low, given)})
    return size


def lower_mel_weight_matrix(low: Lowering, node: ir.Node) -> None:
    """Lower MelWeightMatrix."""
    from hagane.native.rules.signal import mel  # few models need it

    mel.lower_mel_weight_matrix(low, node)


RULES: dict[tuple[str, str], Rule] = {
    ("", "DFT"): lower_dft,
    ("", "MelWeightMatrix"): lower_mel_weight_matrix,
}
