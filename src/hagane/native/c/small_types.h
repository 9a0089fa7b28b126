/* Numbers of 8 and 16 bits: how they are loaded, stored and rounded; matrix tiles of them. */

/* ---- bytes: whole numbers in floats ---- */

typedef uint8_t vb __attribute__((vector_size(VL), aligned(1), may_alias));
typedef int8_t vc __attribute__((vector_size(VL), aligned(1), may_alias));
/* Compilers widen and narrow vectors of bytes and of 16 bits one by one, if left to themselves. */
#if defined(__AVX512F__)
#define WIDE_u8(p) ((vi)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(p))))
#define WIDE_i8(p) ((vi)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(p))))
#define WIDE_u16(x) ((vu)_mm512_cvtepu16_epi32((__m256i)(x)))
#define LOW_BYTES(x) ((vb)_mm512_cvtepi32_epi8((__m512i)(x)))
#elif defined(__AVX2__)
#define WIDE_u8(p) ((vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(p))))
#define WIDE_i8(p) ((vi)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(p))))
#define WIDE_u16(x) ((vu)_mm256_cvtepu16_epi32((__m128i)(x)))
INLINE vb hg_low_bytes(vi x) {
  __m256i y = _mm256_shuffle_epi8((__m256i)x, _mm256_set1_epi32(0x0c080400));
  __m128i low = _mm256_castsi256_si128(y), high = _mm256_extracti128_si256(y, 1);
  return (vb)_mm_cvtsi128_si64(_mm_unpacklo_epi32(low, high));
}
#define LOW_BYTES(x) hg_low_bytes(x)
#else
#define WIDE_u8(p) __builtin_convertvector(*(const vb *)(p), vi)
#define WIDE_i8(p) __builtin_convertvector(*(const vc *)(p), vi)
#define WIDE_u16(x) __builtin_convertvector(x, vu)
#define LOW_BYTES(x) __builtin_convertvector(x, vb)
#endif
#define BYTES(N, T, V)                                                                   \
  INLINE vf v_load_##N(const T *p) { return __builtin_convertvector(WIDE_##N(p), vf); }  \
  INLINE void v_store_##N(T *p, vf x) {                                                  \
    *(V *)p = (V)LOW_BYTES(__builtin_convertvector(x, vi));                              \
  }                                                                                      \
  INLINE vf v_load_##N##_n(const T *p, int64_t n) {                                      \
    V x = {0};                                                                           \
    __builtin_memcpy(&x, p, (size_t)n);                                                  \
    return v_load_##N((const T *)&x);                                                    \
  }                                                                                      \
  INLINE void v_store_##N##_n(T *p, vf x, int64_t n) {                                   \
    V y = (V)LOW_BYTES(__builtin_convertvector(x, vi));                                  \
    __builtin_memcpy(p, &y, (size_t)n);                                                  \
  }                                                                                      \
  INLINE vf v_load_##N##_strided(const T *p, int64_t stride, int64_t n) {                \
    vf x = {0};                                                                          \
    for (int64_t i = 0; i < n; i++) x[i] = p[i * stride];                                \
    return x;                                                                            \
  }
BYTES(u8, uint8_t, vb)
BYTES(i8, int8_t, vc)
#undef BYTES
/* The same of 16 bits. */
typedef int16_t vw __attribute__((vector_size(VL * 2), aligned(2), may_alias));
#if defined(__AVX512F__)
#define WIDE_i16(x) ((vi)_mm512_cvtepi16_epi32((__m256i)(x)))
#define LOW_SHORTS(x) ((vw)_mm512_cvtepi32_epi16((__m512i)(x)))
#elif defined(__AVX2__)
#define WIDE_i16(x) ((vi)_mm256_cvtepi16_epi32((__m128i)(x)))
INLINE vw hg_low_shorts(vi x) {
  __m128i low = _mm256_castsi256_si128((__m256i)x);
  return (vw)_mm_packs_epi32(low, _mm256_extracti128_si256((__m256i)x, 1));
}
#define LOW_SHORTS(x) hg_low_shorts(x)
#else
#define WIDE_i16(x) __builtin_convertvector(x, vi)
#define LOW_SHORTS(x) __builtin_convertvector(x, vw)
#endif
INLINE vf v_load_i16(const int16_t *p) { return __builtin_convertvector(WIDE_i16(*(const vw *)p), vf); }
INLINE void v_store_i16(int16_t *p, vf x) { *(vw *)p = LOW_SHORTS(__builtin_convertvector(x, vi)); }
INLINE vf v_load_i16_n(const int16_t *p, int64_t n) {
  vw x = {0};
  __builtin_memcpy(&x, p, (size_t)n * 2);
  return v_load_i16((const int16_t *)&x);
}
INLINE void v_store_i16_n(int16_t *p, vf x, int64_t n) {
  vw y = LOW_SHORTS(__builtin_convertvector(x, vi));
  __builtin_memcpy(p, &y, (size_t)n * 2);
}
INLINE vf v_load_i16_strided(const int16_t *p, int64_t stride, int64_t n) {
  vf x = {0};
  for (int64_t i = 0; i < n; i++) x[i] = p[i * stride];
  return x;
}
/* Integers of 32 and 64 bits, rounded to floats. */
#if defined(__AVX512DQ__)
INLINE vf v_load_i64(const int64_t *p) {
  __m256 low = _mm512_cvtepi64_ps(_mm512_loadu_si512(p));
  __m256 high = _mm512_cvtepi64_ps(_mm512_loadu_si512(p + VL / 2));
  return (vf)_mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}
#else
INLINE vf v_load_i64(const int64_t *p) {
  vf x;
  for (int i = 0; i < VL; i++) x[i] = (float)p[i];
  return x;
}
#endif
INLINE vf v_load_i32(const int32_t *p) {
  vi x;
  __builtin_memcpy(&x, p, sizeof x);
  return __builtin_convertvector(x, vf);
}
#define WHOLE(N, T)                                                      \
  INLINE vf v_load_##N##_n(const T *p, int64_t n) {                      \
    T x[VL] = {0};                                                       \
    __builtin_memcpy(x, p, (size_t)n * sizeof(T));                       \
    return v_load_##N(x);                                                \
  }                                                                      \
  INLINE vf v_load_##N##_strided(const T *p, int64_t stride, int64_t n) { \
    vf x = {0};                                                          \
    for (int64_t i = 0; i < n; i++) x[i] = (float)p[i * stride];         \
    return x;                                                            \
  }
WHOLE(i32, int32_t)
WHOLE(i64, int64_t)
#undef WHOLE
/* x / by where inverse is 1 / by, rounded, and neither is near the ends of its range: a product, and
 * the rest of x. Right but for a last digit once in millions; a number beyond a thousand million
 * may be less exact. */
INLINE vf v_over(vf x, vf by, vf inverse) {
#if defined(__AVX512F__) || defined(__AVX2__)
  vf y = v_min2(v_set1(1e9f), v_max2(v_set1(-1e9f), x * inverse));
  return v_fma(v_fma(-y, by, x), inverse, y);
#else
  (void)inverse;
  return x / by;
#endif
}
INLINE float s_over(float x, float by, float inverse) {
  (void)inverse;
  return x / by;
}
/* Rounded to even, the zero point added, kept within the type; not a number is zero. */
INLINE vf v_quantize(vf x, vf zero, float low, float high) {
#if defined(__AVX512F__)
  __mmask16 number = _mm512_cmp_ps_mask((__m512)x, (__m512)x, _CMP_ORD_Q);
  __m512 least = (__m512)v_max2(v_set1(low), v_round(x) + zero);
  return (vf)_mm512_maskz_min_ps(number, (__m512)v_set1(high), least);
#endif
  vf y = v_min2(v_set1(high), v_max2(v_set1(low), v_round(x) + zero));
  return v_sel(x != x, v_set1(0.f), y);
}
INLINE float s_quantize(float x, float zero, float low, float high) {
  float y = rintf(x) + zero;
  return x != x ? 0.f : y < low ? low : y > high ? high : y;
}

#if defined(__AVX512F__) && defined(__AVX512VL__)
/* On processors that have bfloat16 only. */
INLINE void v_store_pairs(uint16_t *p, vf x) {
  __m256i y;
  __asm__("vcvtneps2bf16 %1, %0" : "=v"(y) : "v"((__m512)x));
  __builtin_memcpy(p, &y, sizeof y);
}
INLINE void v_store_pairs_n(uint16_t *p, vf x, int64_t n) {
  uint16_t y[VL];
  v_store_pairs(y, x);
  __builtin_memcpy(p, y, (size_t)n * 2);
}
#endif

#if defined(__AVX512F__)
/* Numbers of some lanes, zero in the others. */
INLINE vf v_kept(vf x, __mmask16 lanes) { return (vf)_mm512_maskz_mov_ps(lanes, (__m512)x); }
INLINE vf v_load_kept(const float *p, __mmask16 lanes) { return (vf)_mm512_maskz_loadu_ps(lanes, p); }
INLINE void v_store_kept(float *p, vf x, __mmask16 lanes) {
  _mm512_mask_storeu_ps(p, lanes, (__m512)x);
}
/* Shapes the matrix tiles: six of some rows, for inputs and results, and two for weights, all of
 * 64 bytes a row. On processors that have them only. */
INLINE void hg_tiles_begin(int64_t rows) {
  struct {
    uint8_t palette, start, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
  } shapes __attribute__((aligned(64))) = {.palette = 1};
  for (int i = 0; i < 8; i++) {
    shapes.bytes[i] = 64;
    shapes.rows[i] = i < 6 ? (uint8_t)rows : 16;
  }
  __asm__ volatile("ldtilecfg %0" : : "m"(shapes) : "memory");
}
/* Without contents there is less to save when the system switches threads. */
INLINE void hg_tiles_end(void) { __asm__ volatile("tilerelease" : : : "memory"); }
/* Pixels of four bytes, n of them; the bytes come as floats, and some of their bits are flipped. */
INLINE void v_store_pixels_u8(uint8_t *p, vf a, vf b, vf c, vf d, int64_t n, uint32_t flipped) {
  vu y = (vu)__builtin_convertvector(a, vi) | (vu)__builtin_convertvector(b, vi) << 8 |
         (vu)__builtin_convertvector(c, vi) << 16 | (vu)__builtin_convertvector(d, vi) << 24;
  y ^= flipped * 0x01010101u;
  __builtin_memcpy(p, &y, n == VL ? sizeof y : (size_t)n * 4);
}
/* Adds four products of unsigned and signed bytes to each int32. On processors that have it only. */
INLINE __m512i hg_dot_quads(__m512i sums, __m512i x, __m512i w) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(x), "v"(w));
  return sums;
}
/* Four rows of bytes as words of one byte of each: y[k] has bytes 4k to 4k + 3 of each 128 bits. */
INLINE void hg_interleave(__m512i a, __m512i b, __m512i c, __m512i d, __m512i *y) {
  __m512i ab = _mm512_unpacklo_epi8(a, b), cd = _mm512_unpacklo_epi8(c, d);
  y[0] = _mm512_unpacklo_epi16(ab, cd), y[1] = _mm512_unpackhi_epi16(ab, cd);
  ab = _mm512_unpackhi_epi8(a, b), cd = _mm512_unpackhi_epi8(c, d);
  y[2] = _mm512_unpacklo_epi16(ab, cd), y[3] = _mm512_unpackhi_epi16(ab, cd);
}
/* Up to 16 rows of up to 16 bytes, `from` bytes apart, as columns: rows `to` bytes apart. Some bits are flipped.
 * Of 16 registers, the bytes of the first eight between those of the others, four times. */
INLINE void hg_turn_bytes(const uint8_t *s, int64_t from, int64_t rows, uint8_t *d, int64_t to, int64_t columns,
                          uint8_t flipped) {
  __mmask16 read = (__mmask16)((1u << columns) - 1), written = (__mmask16)((1u << rows) - 1);
  __m128i a[16], b[16], flips = _mm_set1_epi8((char)flipped);
  for (int i = 0; i < 16; i++)
    a[i] = i < rows ? _mm_maskz_loadu_epi8(read, s + i * from) : _mm_setzero_si128();
  for (int turn = 0; turn < 4; turn++) {
    for (int i = 0; i < 8; i++) {
      b[2 * i] = _mm_unpacklo_epi8(a[i], a[i + 8]);
      b[2 * i + 1] = _mm_unpackhi_epi8(a[i], a[i + 8]);
    }
    for (int i = 0; i < 16; i++) a[i] = b[i];
  }
  for (int i = 0; i < 16; i++)
    if (i < columns) _mm_mask_storeu_epi8(d + i * to, written, _mm_xor_si128(a[i], flips));
}
/* Two pixels of 32 bytes, or four of 16, that lie some bytes apart. */
INLINE __m512i hg_two_pixels(const uint8_t *p, int64_t step) {
  __m512i y = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)p));
  return _mm512_inserti64x4(y, _mm256_loadu_si256((const __m256i *)(p + step)), 1);
}
INLINE __m512i hg_four_pixels(const uint8_t *p, int64_t step) {
  __m512i y = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)p));
  y = _mm512_inserti32x4(y, _mm_loadu_si128((const __m128i *)(p + step)), 1);
  y = _mm512_inserti32x4(y, _mm_loadu_si128((const __m128i *)(p + 2 * step)), 2);
  return _mm512_inserti32x4(y, _mm_loadu_si128((const __m128i *)(p + 3 * step)), 3);
}
/* Sums times factors, at most a limit, as whole numbers. A sum too large for an int32 would become
 * the smallest one. */
INLINE __m512i hg_scaled(__m512i sums, __m512 factors, __m512 limit) {
  __m512 y = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), factors);
  return _mm512_cvtps_epi32(_mm512_min_ps(y, limit));
}
INLINE __m512i hg_scaled_freely(__m512i sums, __m512 factors) {
  return _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_cvtepi32_ps(sums), factors));
}
INLINE __m512i hg_rounded(vf x, __m512 limit) { return _mm512_cvtps_epi32(_mm512_min_ps((__m512)x, limit)); }
INLINE __m512i hg_rounded_freely(vf x) { return _mm512_cvtps_epi32((__m512)x); }
/* Whole numbers plus a zero point of 16 bits as unsigned bytes; interleaved numbers lie in their old
 * order. */
INLINE __m512i hg_bytes(__m512i a, __m512i b, __m512i c, __m512i d, __m512i zero) {
  __m512i ab = _mm512_adds_epi16(_mm512_packs_epi32(a, b), zero);
  return _mm512_packus_epi16(ab, _mm512_adds_epi16(_mm512_packs_epi32(c, d), zero));
}
/* The same as the bytes of a, then those of b, and so on. */
INLINE __m512i hg_bytes_in_rows(__m512i a, __m512i b, __m512i c, __m512i d, __m512i zero) {
  const __m512i at = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_permutexvar_epi32(at, hg_bytes(a, b, c, d, zero));
}
/* Two rows of floats, rounded to bfloat16: first the one, then the other. */
INLINE __m512i v_two_pairs(vf a, vf b) {
  __m512i y;
  __asm__("vcvtne2ps2bf16 %2, %1, %0" : "=v"(y) : "v"((__m512)b), "v"((__m512)a));
  return y;
}
/* Pixels of two or four channels, rounded to bfloat16, n of them. */
INLINE void v_store_pixels2(uint16_t *p, vf a, vf b, int64_t n) {
  uint16_t at[32];
  for (int i = 0; i < 16; i++) at[2 * i] = (uint16_t)i, at[2 * i + 1] = (uint16_t)(16 + i);
  __m512i y = _mm512_permutexvar_epi16(_mm512_loadu_si512(at), v_two_pairs(a, b));
  if (n == VL) _mm512_storeu_si512(p, y);
  else __builtin_memcpy(p, &y, (size_t)n * 4);
}
INLINE void v_store_pixels4(uint16_t *p, vf a, vf b, vf c, vf d, int64_t n) {
  uint16_t at[32];
  for (int i = 0; i < 32; i++) at[i] = (uint16_t)(i / 4 + i % 4 * 16);
  __m512i ab = v_two_pairs(a, b), cd = v_two_pairs(c, d), first = _mm512_loadu_si512(at), y[2];
  y[0] = _mm512_permutex2var_epi16(ab, first, cd);
  y[1] = _mm512_permutex2var_epi16(ab, _mm512_add_epi16(first, _mm512_set1_epi16(8)), cd);
  __builtin_memcpy(p, y, n == VL ? sizeof y : (size_t)n * 8);
}
#endif

/* ---- 16-bit floats: storage; arithmetic is that of float ---- */

typedef uint16_t hg_f16;
typedef uint16_t hg_bf16;

INLINE vf v_of_bf16(vh x) { return (vf)(WIDE_u16(x) << 16); }
/* To the nearest, ties to even; NaN stays NaN. */
INLINE vh v_to_bf16(vf x) {
  vu bits = (vu)x;
  vu rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  vu chosen = (vu)v_sel(x != x, (vf)(bits >> 16 | 0x40), (vf)rounded);
  return __builtin_convertvector(chosen, vh);
}
#if defined(__AVX512F__)
INLINE vf v_of_f16(vh x) { return (vf)_mm512_cvtph_ps((__m256i)x); }
INLINE vh v_to_f16(vf x) { return (vh)_mm512_cvtps_ph((__m512)x, 8); }
#elif defined(__F16C__)
INLINE vf v_of_f16(vh x) { return (vf)_mm256_cvtph_ps((__m128i)x); }
INLINE vh v_to_f16(vf x) { return (vh)_mm256_cvtps_ph((__m256)x, 8); }
#else
/* By exact products with powers of two ("Half-precision floating point", F. Giesen, 2016). */
INLINE vf v_of_f16(vh x) {
  vu bits = __builtin_convertvector(x, vu);
  vf y = (vf)((bits & 0x7fff) << 13) * v_bits(0x77800000);
  vu top = (vu)v_sel((vm)((bits & 0x7c00) == 0x7c00), (vf)((bits & 0x7fff) << 13 | 0x7f800000), y);
  return (vf)(top | (bits & 0x8000) << 16);
}
INLINE vh v_to_f16(vf x) {
  vu sign = (vu)x & 0x80000000, bits = (vu)x ^ sign;
  vf small = (vf)((vu)((vf)bits + 0.5f) - 0x3f000000);
  vf normal = (vf)((bits - 0x38000000 + 0xfff + (bits >> 13 & 1)) >> 13);
  vf y = v_sel((vm)(bits < 0x38800000), small, normal);
  y = v_sel((vm)(bits >= 0x47800000), v_bits(0x7c00), y);
  y = v_sel((vm)(bits > 0x7f800000), (vf)((bits >> 13 & 0x3ff) | 0x7e00), y);
  return __builtin_convertvector((vu)y | sign >> 16, vh);
}
#endif
#define HALVES(T, of, to)                                                                  \
  INLINE vf v_load_##T(const uint16_t *p) { return of(*(const vh *)p); }                   \
  INLINE void v_store_##T(uint16_t *p, vf x) { *(vh *)p = to(x); }                         \
  INLINE vf v_load_##T##_n(const uint16_t *p, int64_t n) {                                 \
    vh x = {0};                                                                            \
    __builtin_memcpy(&x, p, (size_t)n * 2);                                                \
    return of(x);                                                                          \
  }                                                                                        \
  INLINE void v_store_##T##_n(uint16_t *p, vf x, int64_t n) {                              \
    vh y = to(x);                                                                          \
    __builtin_memcpy(p, &y, (size_t)n * 2);                                                \
  }                                                                                        \
  INLINE vf v_load_##T##_strided(const uint16_t *p, int64_t stride, int64_t n) {           \
    vh x = {0};                                                                            \
    for (int64_t i = 0; i < n; i++) x[i] = p[i * stride];                                  \
    return of(x);                                                                          \
  }                                                                                        \
  INLINE vf v_round_##T(vf x) { return of(to(x)); }                                        \
  INLINE float s_round_##T(float x) { return s_load_##T(s_store_##T(x)); }
/* One number: by its bits, so that compilers make vectors of loops over these. */
INLINE float s_of_bits(uint32_t x) {
  float y;
  __builtin_memcpy(&y, &x, 4);
  return y;
}
INLINE uint32_t s_to_bits(float x) {
  uint32_t y;
  __builtin_memcpy(&y, &x, 4);
  return y;
}
INLINE float s_load_bf16(uint16_t x) { return s_of_bits((uint32_t)x << 16); }
INLINE uint16_t s_store_bf16(float x) {
  uint32_t bits = s_to_bits(x), rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return (uint16_t)(x != x ? (bits >> 16 | 0x40) : rounded);
}
INLINE float s_load_f16(uint16_t x) {
  uint32_t bits = (uint32_t)(x & 0x7fff) << 13;
  uint32_t small = s_to_bits(s_of_bits(bits + 0x38800000) - s_of_bits(0x38800000));
  uint32_t y = bits + (bits >= 0x0f800000 ? 0x70000000u : 0x38000000u);
  y = bits < 0x00800000 ? small : y;
  y |= bits > 0x0f800000 ? 0x400000 : 0;
  return s_of_bits(y | (uint32_t)(x & 0x8000) << 16);
}
INLINE uint16_t s_store_f16(float x) {
  uint32_t all = s_to_bits(x), sign = all & 0x80000000u, bits = all ^ sign;
  uint32_t small = s_to_bits(s_of_bits(bits) + 0.5f) - 0x3f000000u;
  uint32_t y = (bits - 0x38000000u + 0xfff + (bits >> 13 & 1)) >> 13;
  y = bits < 0x38800000u ? small : y;
  y = bits >= 0x47800000u ? 0x7c00u : y;
  y = bits > 0x7f800000u ? ((bits >> 13 & 0x3ff) | 0x7e00) : y;
  return (uint16_t)(y | sign >> 16);
}
HALVES(f16, v_of_f16, v_to_f16)
HALVES(bf16, v_of_bf16, v_to_bf16)
#undef HALVES

#if defined(__AVX512F__) && defined(__AVX512DQ__)
/* Float32 as the sum of three bfloat16, which lie 32 numbers apart. The sum is exact but for
 * numbers below 2^-102, whose last piece may be lost. Numbers above the largest bfloat16 begin with
 * their upper half, infinity with itself and nothing after it. The small pieces come first in a sum:
 * the other two may be more than there is. */
#define PIECE 32
INLINE vf v_put_piece(uint16_t *p, vf x) {
  __m256i y;
  __asm__("vcvtneps2bf16 %1, %0" : "=v"(y) : "v"((__m512)x));
  __builtin_memcpy(p, &y, sizeof y);
  return x - v_of_bf16((vh)y);
}
static __attribute__((noinline, unused)) void v_store_large(uint16_t *p, vf x) {
  vm infinite = v_abs(x) == v_set1(INFINITY);
  vf high = v_sel(v_abs(x) < v_set1(0x1p127f), x, (vf)((vu)x & 0xffff0000u));
  v_put_piece(p, v_sel(x != x, x, high));
  vf rest = v_sel(infinite, v_set1(0.f), x - v_load_bf16(p));
  v_put_piece(p + 2 * PIECE, v_put_piece(p + PIECE, rest));
}
INLINE void v_store_triples(uint16_t *p, vf x) {
  if (__builtin_expect(_mm512_cmp_ps_mask((__m512)v_abs(x), _mm512_set1_ps(0x1p127f), _CMP_NLT_UQ), 0))
    v_store_large(p, x);
  else v_put_piece(p + 2 * PIECE, v_put_piece(p + PIECE, v_put_piece(p, x)));
}
INLINE void v_store_triples_n(uint16_t *p, vf x, int64_t n) {
  uint16_t y[2 * PIECE + VL];
  v_store_triples(y, x);
  for (int i = 0; i < 3; i++) __builtin_memcpy(p + i * PIECE, y + i * PIECE, (size_t)n * 2);
}
INLINE vf v_load_triples(const uint16_t *p) {
  return v_load_bf16(p) + (v_load_bf16(p + PIECE) + v_load_bf16(p + 2 * PIECE));
}
INLINE float s_load_triple(const uint16_t *p) {
  return s_load_bf16(p[0]) + (s_load_bf16(p[PIECE]) + s_load_bf16(p[2 * PIECE]));
}
/* Weights of float32, [blocks][32][wide][16], cut into tiles of their pieces,
 * [blocks][3][wide][16][16], the first number of a word below the second one. There are rows of
 * inputs; the last block may be a part of one. */
INLINE void v_cut_tiles(const float *w, uint32_t *to, int64_t blocks, int64_t wide, int64_t rows) {
  const __m512i upper = _mm512_set1_epi32((int)0xffff0000), zero = _mm512_setzero_si512();
  for (; blocks > 0; blocks--, to += 3 * wide * 256)
    for (int64_t i = 0; i < 16; i++, rows -= 2, w += 2 * wide * VL)
      for (int64_t j = 0; j < wide; j++) {
        __m512i a = rows > 0 ? (__m512i)v_load(w + j * VL) : zero;
        __m512i b = rows > 1 ? (__m512i)v_load(w + (wide + j) * VL) : zero;
        for (int64_t piece = 0; piece < 3; piece++) {
          __m512i low = _mm512_srli_epi32(a, 16); /* low | (b & upper) */
          _mm512_store_si512(to + ((piece * wide + j) * 16 + i) * 16,
                             _mm512_ternarylogic_epi32(low, b, upper, 0xf8));
          a = (__m512i)((__m512)a - (__m512)_mm512_and_si512(a, upper));
          b = (__m512i)((__m512)b - (__m512)_mm512_and_si512(b, upper));
        }
      }
}
INLINE int v_not_finite(vf x) { return _mm512_fpclass_ps_mask((__m512)x, 0x99); }
#endif
