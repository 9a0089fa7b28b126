"""C functions that choose and sort numbers by keys: upper halves of uint64 numbers, of the least first."""

from __future__ import annotations

import numpy as np

from hagane.native.kernels.written import is_real, number_type

# Sorts numbers by their upper halves, equal ones by their order; returns where the result lies.
SORT = """
static const uint64_t *KERNEL_sort(uint64_t *keys, uint64_t *spare, int64_t n) {
if (n < 32) {
for (int64_t i = 1; i < n; i++) {
uint64_t key = keys[i]; int64_t j = i;
for (; j > 0 && keys[j - 1] > key; j--) keys[j] = keys[j - 1];
keys[j] = key; }
return keys; }
int64_t counts[4][256] = {{0}};
for (int64_t i = 0; i < n; i++)
for (int pass = 0; pass < 4; pass++) counts[pass][keys[i] >> (32 + 8 * pass) & 255]++;
for (int pass = 0; pass < 4; pass++) {
int64_t *places = counts[pass], sum = 0; const int shift = 32 + 8 * pass;
if (places[keys[0] >> shift & 255] == n) continue;
for (int b = 0; b < 256; b++) { int64_t count = places[b]; places[b] = sum; sum += count; }
for (int64_t i = 0; i < n; i++) spare[places[keys[i] >> shift & 255]++] = keys[i];
uint64_t *swap = keys; keys = spare; spare = swap; }
return keys; }
"""
# Keeps the k least values in their order, of equal ones those in front, with what belongs to them; returns
# the greatest of them. Its bits are found from the first to the last, each by counting.
KEEP = """
static uint32_t KERNEL_keep(uint32_t *values, uint32_t *places, int64_t n, int64_t k) {
uint32_t bound = 0; int64_t below = 0, kept = 0;
for (int bit = 31; bit >= 0; bit--) {
const uint32_t trial = bound | 1u << bit; int32_t count = 0;
for (int64_t i = 0; i < n; i++) count += values[i] < trial;
if (count < k) bound = trial, below = count; }
for (int64_t i = 0, rest = k - below; i < n; i++) {
const uint32_t v = values[i]; const int same = v == bound;
values[kept] = v; places[kept] = places[i];
kept += (v < bound) | (same & (rest > 0));
rest -= same; }
return bound; }
/* Which of 32 values are below a bound. */
INLINE uint32_t KERNEL_below(const uint32_t *values, uint32_t bound) {
#if defined(__AVX512F__)
const __m512i b = _mm512_set1_epi32((int)bound);
return (uint32_t)_mm512_cmplt_epu32_mask(_mm512_loadu_si512(values), b) |
(uint32_t)_mm512_cmplt_epu32_mask(_mm512_loadu_si512(values + 16), b) << 16;
#elif defined(__AVX2__)
const __m256i top = _mm256_set1_epi32(INT32_MIN), b = _mm256_xor_si256(_mm256_set1_epi32((int)bound), top);
uint32_t made = 0;
for (int i = 0; i < 4; i++) {
const __m256i v = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(values + 8 * i)), top);
made |= (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(b, v))) << 8 * i; }
return made;
#else
uint32_t made = 0;
for (int i = 0; i < 32; i++) made |= (uint32_t)(values[i] < bound) << i;
return made;
#endif
}
"""


def key_function(dtype: np.dtype[np.generic], *, falling: bool) -> str:
    """Return a C function ``KERNEL_key`` of numbers of at most 32 bits, which orders them.

    NaN is greater than any number; zeros are equal.

    Args:
        dtype: The element type.
        falling: Whether the greatest number has the least key.
    """
    kind = number_type(dtype)
    if is_real(dtype):
        text = """
union { float number; uint32_t bits; } u = {v + 0.f};
const uint32_t key = u.bits ^ (uint32_t)((int32_t)u.bits >> 31 | (int32_t)0x80000000);
const uint32_t made = v != v ? 0xffffffff : key;"""
    else:
        flip = "" if dtype.kind in "ub" else " ^ 0x80000000"
        text = f"const uint32_t made = (uint32_t)v{flip};"
    return (
        f"INLINE uint32_t KERNEL_key({kind} v) {{ {text}\nreturn {'~' if falling else ''}made; }}"
    )
