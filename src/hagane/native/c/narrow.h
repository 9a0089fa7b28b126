/* Numbers of 8 and 16 bits: how they are loaded, stored and rounded; matrix tiles of them. */

/* ---- bytes: whole numbers in floats ---- */

typedef uint8_t vb __attribute__((vector_size(VL), aligned(1), may_alias));
typedef int8_t vc __attribute__((vector_size(VL), aligned(1), may_alias));
/* Compilers widen vectors of bytes and of 16 bits one by one, if left to themselves. */
#if defined(__AVX512F__)
#define WIDE_u8(p) ((vi)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(p))))
#define WIDE_i8(p) ((vi)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(p))))
#define WIDE_u16(x) ((vu)_mm512_cvtepu16_epi32((__m256i)(x)))
#elif defined(__AVX2__)
#define WIDE_u8(p) ((vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(p))))
#define WIDE_i8(p) ((vi)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(p))))
#define WIDE_u16(x) ((vu)_mm256_cvtepu16_epi32((__m128i)(x)))
#else
#define WIDE_u8(p) __builtin_convertvector(*(const vb *)(p), vi)
#define WIDE_i8(p) __builtin_convertvector(*(const vc *)(p), vi)
#define WIDE_u16(x) __builtin_convertvector(x, vu)
#endif
#define BYTES(N, T, V)                                                                   \
  INLINE vf v_load_##N(const T *p) { return __builtin_convertvector(WIDE_##N(p), vf); }  \
  INLINE void v_store_##N(T *p, vf x) {                                                  \
    *(V *)p = __builtin_convertvector(__builtin_convertvector(x, vi), V);                \
  }                                                                                      \
  INLINE vf v_load_##N##_n(const T *p, int64_t n) {                                      \
    V x = {0};                                                                           \
    __builtin_memcpy(&x, p, (size_t)n);                                                  \
    return v_load_##N((const T *)&x);                                                    \
  }                                                                                      \
  INLINE void v_store_##N##_n(T *p, vf x, int64_t n) {                                   \
    V y = __builtin_convertvector(__builtin_convertvector(x, vi), V);                    \
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
/* Rounded to even, the zero point added, kept within the type; not a number is zero. */
INLINE vf v_quantize(vf x, vf zero, float low, float high) {
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
/* To the nearest, ties to even; what is not a number stays so. */
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
  INLINE float s_load_##T(uint16_t x) { return of(x + (vh){0})[0]; }                       \
  INLINE uint16_t s_store_##T(float x) { return to(v_set1(x))[0]; }                        \
  INLINE float s_round_##T(float x) { return v_round_##T(v_set1(x))[0]; }
HALVES(f16, v_of_f16, v_to_f16)
HALVES(bf16, v_of_bf16, v_to_bf16)
#undef HALVES
