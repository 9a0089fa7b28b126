/* Squares of eight by eight elements of 1, 2, 4 and 8 bytes: eight rows, `s` elements apart, become eight
 * columns, `t` apart. Compilers take elements one by one, if left to themselves. */
#if defined(__AVX2__)
INLINE void hg_square_1(const uint8_t *a, int64_t s, uint8_t *b, int64_t t) {
#define ROW(i) _mm_loadl_epi64((const __m128i *)(a + (i) * s))
#define PUT(j, x) _mm_storel_epi64((__m128i *)(b + (j) * t), x); \
_mm_storel_epi64((__m128i *)(b + ((j) + 1) * t), _mm_unpackhi_epi64(x, x));
const __m128i u0 = _mm_unpacklo_epi8(ROW(0), ROW(1)), u1 = _mm_unpacklo_epi8(ROW(2), ROW(3));
const __m128i u2 = _mm_unpacklo_epi8(ROW(4), ROW(5)), u3 = _mm_unpacklo_epi8(ROW(6), ROW(7));
const __m128i v0 = _mm_unpacklo_epi16(u0, u1), v1 = _mm_unpackhi_epi16(u0, u1);
const __m128i v2 = _mm_unpacklo_epi16(u2, u3), v3 = _mm_unpackhi_epi16(u2, u3);
const __m128i w0 = _mm_unpacklo_epi32(v0, v2), w1 = _mm_unpackhi_epi32(v0, v2);
const __m128i w2 = _mm_unpacklo_epi32(v1, v3), w3 = _mm_unpackhi_epi32(v1, v3);
PUT(0, w0) PUT(2, w1) PUT(4, w2) PUT(6, w3)
#undef ROW
#undef PUT
}
INLINE void hg_square_2(const uint16_t *a, int64_t s, uint16_t *b, int64_t t) {
#define ROW(i) _mm_loadu_si128((const __m128i *)(a + (i) * s))
#define PUT(j, x, y) _mm_storeu_si128((__m128i *)(b + (j) * t), _mm_unpacklo_epi64(x, y)); \
_mm_storeu_si128((__m128i *)(b + ((j) + 1) * t), _mm_unpackhi_epi64(x, y));
__m128i low[4], high[4];
for (int i = 0; i < 4; i++) {
const __m128i x = ROW(2 * i), y = ROW(2 * i + 1);
low[i] = _mm_unpacklo_epi16(x, y); high[i] = _mm_unpackhi_epi16(x, y); }
PUT(0, _mm_unpacklo_epi32(low[0], low[1]), _mm_unpacklo_epi32(low[2], low[3]))
PUT(2, _mm_unpackhi_epi32(low[0], low[1]), _mm_unpackhi_epi32(low[2], low[3]))
PUT(4, _mm_unpacklo_epi32(high[0], high[1]), _mm_unpacklo_epi32(high[2], high[3]))
PUT(6, _mm_unpackhi_epi32(high[0], high[1]), _mm_unpackhi_epi32(high[2], high[3]))
#undef ROW
#undef PUT
}
INLINE void hg_square_4(const uint32_t *a, int64_t s, uint32_t *b, int64_t t) {
#define ROWS(i, j) _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps((const float *)a + (i) * s + (j))), \
_mm_loadu_ps((const float *)a + ((i) + 4) * s + (j)), 1)
for (int j = 0; j < 8; j += 4) {
const __m256 x0 = ROWS(0, j), x1 = ROWS(1, j), x2 = ROWS(2, j), x3 = ROWS(3, j);
const __m256 t0 = _mm256_unpacklo_ps(x0, x1), t1 = _mm256_unpackhi_ps(x0, x1);
const __m256 t2 = _mm256_unpacklo_ps(x2, x3), t3 = _mm256_unpackhi_ps(x2, x3);
_mm256_storeu_ps((float *)b + j * t, _mm256_shuffle_ps(t0, t2, 0x44));
_mm256_storeu_ps((float *)b + (j + 1) * t, _mm256_shuffle_ps(t0, t2, 0xee));
_mm256_storeu_ps((float *)b + (j + 2) * t, _mm256_shuffle_ps(t1, t3, 0x44));
_mm256_storeu_ps((float *)b + (j + 3) * t, _mm256_shuffle_ps(t1, t3, 0xee)); }
#undef ROWS
}
INLINE void hg_square_8(const uint64_t *a, int64_t s, uint64_t *b, int64_t t) {
#define ROWS(i, j) _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd((const double *)a + (i) * s + (j))), \
_mm_loadu_pd((const double *)a + ((i) + 2) * s + (j)), 1)
for (int i = 0; i < 8; i += 4) for (int j = 0; j < 8; j += 2) {
const __m256d x0 = ROWS(i, j), x1 = ROWS(i + 1, j);
_mm256_storeu_pd((double *)b + j * t + i, _mm256_unpacklo_pd(x0, x1));
_mm256_storeu_pd((double *)b + (j + 1) * t + i, _mm256_unpackhi_pd(x0, x1)); }
#undef ROWS
}
#else
#define SQUARE(N, T)                                                                       \
  INLINE void hg_square_##N(const T *a, int64_t s, T *b, int64_t t) {                      \
    T own[8][8];                                                                           \
    for (int i = 0; i < 8; i++) memcpy(own[i], a + i * s, sizeof own[i]);                  \
    for (int j = 0; j < 8; j++) for (int i = 0; i < 8; i++) b[j * t + i] = own[i][j];      \
  }
SQUARE(1, uint8_t)
SQUARE(2, uint16_t)
SQUARE(4, uint32_t)
SQUARE(8, uint64_t)
#undef SQUARE
#endif
