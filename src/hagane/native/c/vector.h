/* Vectors of floats, one source for every level: VL lanes, `vf` values, `vm` masks.
 *
 * Each generated kernel starts with this file, and those named after it in engine.py. A function whose name starts with v_ takes vectors,
 * its twin with s_ takes scalars, so that one expression serves both.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#ifdef __clang__
#define HG_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define HG_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (vi){__VA_ARGS__})
#endif
/* A function that kernels share: each has it in its text, and a machine compiles it once (run/objects.py). */
#ifndef SHARED
#define SHARED static __attribute__((noinline, unused))
#endif
#define INLINE static inline __attribute__((always_inline, unused))

/* The arguments of a kernel beside its pointers, sizes and task number. */
typedef struct {
  char *scratch;             /* memory of this thread alone */
  volatile int64_t *failure; /* [0] phase + 1 of the first kernel that failed, [1] a value */
  int64_t phase;
} hg_thread;

/* Note that input data are out of range; the first note wins, and the run goes on safely. */
INLINE void hg_fail(const hg_thread *thread, int64_t value) {
  int64_t none = 0;
  if (__atomic_compare_exchange_n(&thread->failure[0], &none, thread->phase + 1, 0,
                                  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    thread->failure[1] = value;
}

INLINE int64_t hg_min(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE int64_t hg_max(int64_t a, int64_t b) { return a > b ? a : b; }

#if defined(__AVX512F__)
#define VL 16
#else
#define VL 8
#endif

typedef float vf __attribute__((vector_size(VL * 4), aligned(4), may_alias));
typedef int32_t vi __attribute__((vector_size(VL * 4), aligned(4), may_alias));
typedef uint32_t vu __attribute__((vector_size(VL * 4), aligned(4), may_alias));
typedef uint16_t vh __attribute__((vector_size(VL * 2), aligned(2), may_alias));
typedef vi vm; /* each lane all ones or zero */

INLINE vf v_load(const float *p) { return *(const vf *)p; }
INLINE void v_store(float *p, vf x) { *(vf *)p = x; }
/* A number in every lane; the first n lanes of memory, of which the others read as zero. */
#if defined(__AVX512F__)
INLINE vf v_set1(float x) { return (vf)_mm512_set1_ps(x); }
INLINE __mmask16 hg_lanes(int64_t n) { return (__mmask16)(n < 16 ? n < 0 ? 0 : (1 << n) - 1 : 0xffff); }
INLINE vf v_load_n(const float *p, int64_t n) { return (vf)_mm512_maskz_loadu_ps(hg_lanes(n), p); }
INLINE void v_store_n(float *p, vf x, int64_t n) { _mm512_mask_storeu_ps(p, hg_lanes(n), (__m512)x); }
#else
#if defined(__AVX2__)
INLINE vf v_set1(float x) { return (vf)_mm256_set1_ps(x); }
#else
INLINE vf v_set1(float x) { return (vf){x, x, x, x, x, x, x, x}; }
#endif
INLINE vf v_load_n(const float *p, int64_t n) {
  vf x = {0};
  __builtin_memcpy(&x, p, (size_t)n * 4);
  return x;
}
INLINE void v_store_n(float *p, vf x, int64_t n) { __builtin_memcpy(p, &x, (size_t)n * 4); }
#endif

/* Every other number of two vectors, one after the other. */
#if defined(__AVX512F__)
INLINE vf hg_every_other(vf a, vf b, int first) {
  const __m512i at = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  __m512i from = _mm512_add_epi32(at, _mm512_set1_epi32(first));
  return (vf)_mm512_permutex2var_ps((__m512)a, from, (__m512)b);
}
#else
INLINE vf hg_every_other(vf a, vf b, int first) {
  vf x;
  for (int i = 0; i < VL / 2; i++) x[i] = a[2 * i + first], x[VL / 2 + i] = b[2 * i + first];
  return x;
}
#endif

/* The first n lanes. */
INLINE vm v_first(int64_t n) {
#if defined(__AVX512DQ__)
  return (vm)_mm512_movm_epi32(hg_lanes(n));
#else
  vm at;
  for (int i = 0; i < VL; i++) at[i] = -(int32_t)(i < n);
  return at;
#endif
}
INLINE vf v_sel(vm m, vf a, vf b) { return (vf)((m & (vi)a) | (~m & (vi)b)); }
INLINE vf v_bits(uint32_t bits) { return (vf)((int32_t)bits + (vi){0}); }
INLINE vf v_abs(vf x) { return (vf)((vi)x & 0x7fffffff); }
INLINE vf v_neg(vf x) { return -x; }
/* x with the sign of s, for x >= 0 */
INLINE vf v_copysign(vf x, vf s) { return (vf)(((vi)x & 0x7fffffff) | ((vi)s & (int32_t)0x80000000)); }

#if defined(__AVX512F__)
INLINE vf v_fma(vf a, vf b, vf c) { return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
/* The second operand where either is not a number: pass the data second to keep NaN. */
INLINE vf v_max2(vf a, vf b) { return (vf)_mm512_max_ps((__m512)a, (__m512)b); }
INLINE vf v_min2(vf a, vf b) { return (vf)_mm512_min_ps((__m512)a, (__m512)b); }
INLINE vf v_sqrt(vf x) { return (vf)_mm512_sqrt_ps((__m512)x); }
INLINE vf v_round(vf x) { return (vf)_mm512_roundscale_ps((__m512)x, 8); }
INLINE vf v_floor(vf x) { return (vf)_mm512_roundscale_ps((__m512)x, 9); }
INLINE vf v_ceil(vf x) { return (vf)_mm512_roundscale_ps((__m512)x, 10); }
#elif defined(__AVX2__)
INLINE vf v_fma(vf a, vf b, vf c) { return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
INLINE vf v_max2(vf a, vf b) { return (vf)_mm256_max_ps((__m256)a, (__m256)b); }
INLINE vf v_min2(vf a, vf b) { return (vf)_mm256_min_ps((__m256)a, (__m256)b); }
INLINE vf v_sqrt(vf x) { return (vf)_mm256_sqrt_ps((__m256)x); }
INLINE vf v_round(vf x) { return (vf)_mm256_round_ps((__m256)x, 8); }
INLINE vf v_floor(vf x) { return (vf)_mm256_round_ps((__m256)x, 9); }
INLINE vf v_ceil(vf x) { return (vf)_mm256_round_ps((__m256)x, 10); }
#else
#define EACH_LANE(name, call)       \
  INLINE vf name(vf x) {            \
    vf y;                           \
    for (int i = 0; i < VL; i++) y[i] = call(x[i]); \
    return y;                       \
  }
INLINE vf v_fma(vf a, vf b, vf c) { return a * b + c; }
INLINE vf v_max2(vf a, vf b) { return v_sel(a > b, a, b); }
INLINE vf v_min2(vf a, vf b) { return v_sel(a < b, a, b); }
EACH_LANE(v_sqrt, sqrtf)
EACH_LANE(v_round, rintf)
EACH_LANE(v_floor, floorf)
EACH_LANE(v_ceil, ceilf)
#undef EACH_LANE
#endif

/* x, rounded before it becomes a summand: a compiler would join a product and a sum to one step. */
INLINE vf v_alone(vf x) {
#if defined(__AVX512F__)
  __m512 y = (__m512)x;
  __asm__("" : "+v"(y));
  return (vf)y;
#elif defined(__AVX2__)
  __m256 y = (__m256)x;
  __asm__("" : "+x"(y));
  return (vf)y;
#elif !defined(__x86_64__) /* (which has no such step without AVX2) */
  __asm__("" : "+m"(x));
#endif
  return x;
}
INLINE float s_alone(float x) {
#if defined(__x86_64__)
  __asm__("" : "+x"(x));
#else
  __asm__("" : "+m"(x));
#endif
  return x;
}

/* NaN in either operand gives NaN, as NumPy and ONNX have it; a chain of them is shorter through the second. */
INLINE vf v_max(vf a, vf b) { return v_sel(a != a, a, v_max2(a, b)); }
INLINE vf v_min(vf a, vf b) { return v_sel(a != a, a, v_min2(a, b)); }
INLINE float s_max2(float a, float b) { return a > b ? a : b; }
INLINE vf v_relu(vf x) { return v_max2(v_set1(0.f), x); }

#if defined(__AVX512F__)
INLINE float v_sum(vf x) { return _mm512_reduce_add_ps((__m512)x); }
/* The largest lane; NaN lanes may be passed over. */
INLINE float v_top(vf x) { return _mm512_reduce_max_ps((__m512)x); }
INLINE int v_any(vm m) { return _mm512_test_epi32_mask((__m512i)m, (__m512i)m) != 0; }
#else
INLINE float v_sum(vf x) {
  float half[VL];
  v_store(half, x);
  for (int n = VL / 2; n >= 1; n /= 2)
    for (int i = 0; i < n; i++) half[i] += half[i + n];
  return half[0];
}
INLINE float v_top(vf x) {
  float y = x[0];
  for (int i = 1; i < VL; i++) y = x[i] > y ? x[i] : y;
  return y;
}
INLINE int v_any(vm m) {
  int32_t y = 0;
  for (int i = 0; i < VL; i++) y |= m[i];
  return y != 0;
}
#endif

/* 2^n for whole n in [-126, 127] */
INLINE vf v_pow2(vf n) { return (vf)((__builtin_convertvector(n, vi) + 127) << 23); }

/* The accuracy of the functions below is stated in units in the last place of the exact result (ulp), over
 * all floats, results below 2^-126 included; tests/native/test_accuracy.py measures it. */

/* x as n ln 2 + r; returns r. */
INLINE vf v_exp_reduce(vf x, vf *n) {
  vf bound = v_min2(v_set1(90.f), v_max2(v_set1(-110.f), x));
  *n = v_round(bound * 1.44269504088896341f);
  vf r = v_fma(*n, v_set1(-0.693359375f), bound);
  return v_fma(*n, v_set1(2.12194440e-4f), r);
}
/* e^r for a rest of v_exp_reduce. */
INLINE vf v_exp_near(vf r) {
  vf p = v_set1(1.394110957e-03f);
  p = v_fma(p, r, v_set1(8.363175256e-03f));
  p = v_fma(p, r, v_set1(4.166637530e-02f));
  p = v_fma(p, r, v_set1(1.666657701e-01f));
  p = v_fma(p, r, v_set1(5.000000027e-01f));
  p = v_fma(p, r, v_set1(1.f));
  return v_fma(p, r, v_set1(1.f));
}
/* 2^n e^r as a product of two factors, so that results near the ends of the range come out right:
 * a factor goes between them, where nothing is lost below 2^-126. */
INLINE vf v_exp_parts(vf n, vf r, vf *second) {
  vf low = v_floor(n * 0.5f);
  *second = v_pow2(n - low);
  return v_exp_near(r) * v_pow2(low);
}
/* f e^x for x = n ln 2 + r, rounded once more only where the result is below 2^-126. */
INLINE vf v_exp_times(vf n, vf r, vf f) {
#if defined(__AVX512F__)
  return (vf)_mm512_scalef_ps((__m512)(f * v_exp_near(r)), (__m512)n);
#else
  vf second, first = v_exp_parts(n, r, &second);
  return f * first * second;
#endif
}
/* a e^x / (1 + e^x) for x = n ln 2 + r not above zero. */
INLINE vf v_logistic_times(vf n, vf r, vf a) {
#if defined(__AVX512F__)
  vf e = v_exp_near(r);
  vf over = a * (e / ((vf)_mm512_scalef_ps((__m512)e, (__m512)n) + 1.f));
  return (vf)_mm512_scalef_ps((__m512)over, (__m512)n);
#else
  vf second, first = v_exp_parts(n, r, &second);
  return a * (first / v_fma(first, second, v_set1(1.f))) * second;
#endif
}
/* e^x within 1.1 ulp; underflows to zero, overflows to infinity. */
INLINE vf v_exp(vf x) {
#if defined(__AVX512F__)
  vf n, r = v_exp_reduce(x, &n);
  return (vf)_mm512_scalef_ps((__m512)v_exp_near(r), (__m512)n);
#else
  vf n, second, r = v_exp_reduce(x, &n);
  vf first = v_exp_parts(n, r, &second);
  return first * second;
#endif
}
/* The same of a number not above zero whose result is added to one or more: zero below e^-80, where it counts
 * no more. Numbers too small to be normal cost hundreds of cycles each on many processors. */
INLINE vf v_exp_share(vf x) {
  vf least = v_set1(-80.f);
#if defined(__AVX512F__)
  vf n = v_round(x * 1.44269504088896341f);
  vf r = v_fma(n, v_set1(2.12194440e-4f), v_fma(n, v_set1(-0.693359375f), x));
  return (vf)_mm512_maskz_scalef_ps(_mm512_cmp_ps_mask((__m512)x, (__m512)least, _CMP_NLT_UQ), (__m512)v_exp_near(r), (__m512)n);
#else
  vf n, r = v_exp_reduce(v_max2(least, x), &n);
  return v_sel(x < least, v_set1(0.f), v_exp_near(r) * v_pow2(n));
#endif
}

/* Natural logarithm within 0.9 ulp. */
INLINE vf v_log(vf x) {
  vm tiny = x < 1.17549435e-38f;
  vf y = v_sel(tiny, x * 8388608.f, x);
  vi bits = (vi)y;
  vi shifted = bits - 0x3f3504f3; /* sqrt(1/2) */
  vi e = shifted >> 23;
  vf m = (vf)((shifted & 0x007fffff) + 0x3f3504f3) - 1.f;
  vf n = __builtin_convertvector(e, vf) - v_sel(tiny, v_set1(23.f), v_set1(0.f));
  vf p = v_set1(6.917984049e-02f);
  p = v_fma(p, m, v_set1(-1.177966704e-01f));
  p = v_fma(p, m, v_set1(1.186603515e-01f));
  p = v_fma(p, m, v_set1(-1.238579852e-01f));
  p = v_fma(p, m, v_set1(1.421991860e-01f));
  p = v_fma(p, m, v_set1(-1.666919745e-01f));
  p = v_fma(p, m, v_set1(2.000215140e-01f));
  p = v_fma(p, m, v_set1(-2.499998688e-01f));
  p = v_fma(p, m, v_set1(3.333331183e-01f));
  vf square = m * m;
  vf result = v_fma(n, v_set1(-2.12194440e-4f), v_fma(square, m * p - 0.5f, m));
  result = v_fma(n, v_set1(0.693359375f), result);
  result = v_sel(x == v_bits(0x7f800000), x, result);
  result = v_sel(x == 0.f, v_bits(0xff800000), result);
  return v_sel((x < 0.f) | (x != x), v_bits(0x7fc00000), result);
}

/* ln(1 + x) for x in [0, 1]. */
INLINE vf v_log1p_unit(vf x) {
  vf p = v_set1(-3.243980824e-03f);
  p = v_fma(p, x, v_set1(1.985126246e-02f));
  p = v_fma(p, x, v_set1(-5.695915878e-02f));
  p = v_fma(p, x, v_set1(1.060361684e-01f));
  p = v_fma(p, x, v_set1(-1.530557010e-01f));
  p = v_fma(p, x, v_set1(1.967593146e-01f));
  p = v_fma(p, x, v_set1(-2.495413213e-01f));
  p = v_fma(p, x, v_set1(3.332996227e-01f));
  p = v_fma(p, x, v_set1(-4.999990242e-01f));
  return v_fma(p, x, v_set1(1.f)) * x;
}

#if defined(__AVX512F__)
/* Functions in sixteen intervals, whose polynomials lie in registers: the middles of the intervals, then the
 * coefficients of a distance from there, the lowest first. Middles are chosen where the function is nearly
 * a float; the first interval has odd powers of the number itself, and others that correct them. */
#define HG_INTERVAL(table, k) ((vf)_mm512_permutexvar_ps(at, _mm512_loadu_ps(table[k])))
static const float hg_erf_table[7][16] __attribute__((unused)) = {
    {0, 0.375044495f, 0.625120163f, 0.875069559f, 1.12465382f, 1.37513924f, 1.62487125f, 1.87466002f,
     2.12483692f, 2.3756485f, 2.62472153f, 2.87476826f, 3.12503648f, 3.37571526f, 3.62428474f, 3.87428474f},
    {0, 0.404160529f, 0.62333262f, 0.784111559f, 0.888278008f, 0.948193789f, 0.978433371f, 0.991978645f,
     0.997343957f, 0.999219656f, 0.999794304f, 0.999952078f, 0.999990106f, 0.999998212f, 0.999999702f,
     0.99999994f},
    {1.12837911f, 0.980320156f, 0.763384879f, 0.524681211f, 0.318521917f, 0.170294553f, 0.0805059299f,
     0.033588618f, 0.0123493755f, 0.00399415428f, 0.00114955474f, 0.000290615484f, 6.47440684e-05f,
     1.26903115e-05f, 2.22743938e-06f, 3.41705686e-07f},
    {7.03274327e-06f, -0.367658436f, -0.477202952f, -0.45913142f, -0.358228505f, -0.234181046f, -0.130813301f,
     -0.0629676804f, -0.026240224f, -0.00948838238f, -0.00301702204f, -0.00083533366f, -0.000202279727f,
     -5.18517554e-05f, -7.42030943e-06f, 7.10942641e-06f},
    {-0.37633276f, -0.234864771f, -0.0555990972f, 0.092948854f, 0.162411422f, 0.15792197f, 0.114867859f,
     0.0674997643f, 0.0330551155f, 0.0136962952f, 0.00489633717f, 0.00150416698f, 0.000399867306f,
     9.13371769e-05f, 1.87009919e-05f, 2.53466874e-06f},
    {0.00202678167f, 0.165509373f, 0.175547123f, 0.112147681f, 0.0284148902f, -0.0300414357f, -0.049403958f,
     -0.0421892665f, -0.026410019f, -0.0131734442f, -0.00546916621f, -0.00190848543f, -0.000567325507f,
     0.000430552318f, -7.35081267e-05f, -0.000543342321f},
    {0.105942778f, 0.0463497862f, -0.0265678093f, -0.0665982515f, -0.061080981f, -0.0306812879f,
     -0.00233041844f, 0.0113131292f, 0.0124392472f, 0.00836099125f, 0.00423833588f, 0.00172913854f,
     0.00058499712f, 0.000271068973f, 4.79656919e-05f, 0.00010664195f},
};
/* By the upper bits of 1 + |x|: four intervals between powers of two, from slot 12 on. */
static const float hg_tanh_table[8][16] __attribute__((unused)) = {
    {1.24971187f, 1.74976504f, 2.24957728f, 2.74952292f, 3.50058651f, 4.50029421f, 5.49858046f, 6.49897194f,
     7.99713898f, 10.002861f, 10, 10, 0, 0.375086069f, 0.625106633f, 0.875141978f},
    {0.848202825f, 0.941348791f, 0.978007734f, 0.991851985f, 0.998180032f, 0.999753356f, 0.999966502f,
     0.99999547f, 0.999999762f, 1, 1, 1, 0, 0.358432412f, 0.554673553f, 0.703977227f},
    {0.280551851f, 0.113862403f, 0.0435008705f, 0.0162296407f, 0.00363669218f, 0.000493237341f,
     6.69959336e-05f, 9.06007972e-06f, 4.52722674e-07f, 0, 0, 0, 1, 0.871526182f, 0.692337275f, 0.504416049f},
    {-0.237964988f, -0.107184209f, -0.0425441787f, -0.0160973985f, -0.00363005279f, -0.000493112835f,
     -6.69931396e-05f, -9.05997331e-06f, -2.41029142e-07f, 0, 0, 0, -1.56840395e-06f, -0.312383235f,
     -0.384021193f, -0.355097443f},
    {0.108340591f, 0.0629502088f, 0.0271085985f, 0.0105560049f, 0.00240895874f, 0.000328238093f,
     4.46117192e-05f, 6.0334969e-06f, 3.0067315e-07f, 0, 0, 0, -0.333259314f, -0.178543121f, -0.0177788325f,
     0.0818395242f},
    {-0.012557284f, -0.0235292893f, -0.0123316022f, -0.00510457391f, -0.00119590526f, -0.000163978722f,
     -2.23084589e-05f, -3.01734258e-06f, -7.11363327e-07f, 0, 0, 0, -0.00128511561f, 0.168118984f,
     0.137873068f, 0.0607561506f},
    {-0.0197166055f, 0.00348084187f, 0.00397889689f, 0.00191630051f, 0.000489706697f, 6.82412938e-05f,
     9.30404258e-06f, 1.25885344e-06f, 6.63878694e-08f, 0, 0, 0, 0.143494606f, 0.0189664531f, -0.0543593019f,
     -0.0585401431f},
    {0.0151021508f, 0.00210536132f, -0.000715902133f, -0.000545406423f, -0.000157666334f, -2.26060056e-05f,
     -3.08401764e-06f, -4.17816238e-07f, 3.50800889e-07f, 0, 0, 0, -0.0375788324f, -0.0690964982f,
     -0.0243370384f, 0.0128687732f},
};
/* Within 2.3 ulp. */
INLINE vf v_erf(vf x) {
  /* from here on the nearest float is one, which models that write 1 + erf(x) rely on */
  vf a = v_min2(v_set1(3.925f), v_abs(x));
  __m512i at = _mm512_cvttps_epi32((__m512)(a * 4.f));
  vf t = a - HG_INTERVAL(hg_erf_table, 0), p = HG_INTERVAL(hg_erf_table, 6);
  for (int k = 5; k > 0; k--) p = v_fma(p, t, HG_INTERVAL(hg_erf_table, k));
  return v_copysign(p, x);
}
/* Within 1.2 ulp. */
INLINE vf v_tanh(vf x) {
  vf a = v_min2(v_set1(12.f), v_abs(x));
  __m512i at = _mm512_srli_epi32((__m512i)(a + 1.f), 21);
  vf t = a - HG_INTERVAL(hg_tanh_table, 0), p = HG_INTERVAL(hg_tanh_table, 7);
  for (int k = 6; k > 0; k--) p = v_fma(p, t, HG_INTERVAL(hg_tanh_table, k));
  return v_copysign(p, x);
}
#undef HG_INTERVAL
#else
/* x times a polynomial in x^2, near zero and, centred, farther off. Within 3.2 ulp. */
INLINE vf v_erf(vf x) {
  vf bound = v_min2(v_set1(3.95f), v_max2(v_set1(-3.95f), x));
  vf t = v_fma(bound * bound, v_set1(2.f / (3.95f * 3.95f)), v_set1(-1.f));
  vf p = v_set1(3.872272932e-04f);
  p = v_fma(p, t, v_set1(-1.049068976e-03f));
  p = v_fma(p, t, v_set1(8.586213575e-04f));
  p = v_fma(p, t, v_set1(-1.194761259e-03f));
  p = v_fma(p, t, v_set1(4.376896257e-03f));
  p = v_fma(p, t, v_set1(-8.672379800e-03f));
  p = v_fma(p, t, v_set1(1.315533778e-02f));
  p = v_fma(p, t, v_set1(-2.051775685e-02f));
  p = v_fma(p, t, v_set1(3.145813116e-02f));
  p = v_fma(p, t, v_set1(-4.446938872e-02f));
  p = v_fma(p, t, v_set1(5.886844228e-02f));
  p = v_fma(p, t, v_set1(-7.429440144e-02f));
  p = v_fma(p, t, v_set1(9.048978059e-02f));
  p = v_fma(p, t, v_set1(-1.086400558e-01f));
  p = v_fma(p, t, v_set1(1.331766362e-01f));
  p = v_fma(p, t, v_set1(-1.787694768e-01f));
  p = v_fma(p, t, v_set1(3.580007690e-01f));
  /* from here on the nearest float is one, which models that write 1 + erf(x) rely on */
  vf far = v_sel(v_abs(x) > 3.91f, v_copysign(v_set1(1.f), x), bound * p);
  vf u = x * x;
  vf q = v_set1(7.853857598e-05f);
  q = v_fma(q, u, v_set1(-8.010192487e-04f));
  q = v_fma(q, u, v_set1(5.188327556e-03f));
  q = v_fma(q, u, v_set1(-2.685381187e-02f));
  q = v_fma(q, u, v_set1(1.128358515e-01f));
  q = v_fma(q, u, v_set1(-3.761262582e-01f));
  q = v_fma(q, u, v_set1(1.128379166e+00f));
  return v_sel(u < 1.f, q * x, far);
}
/* Within 1.3 ulp. */
INLINE vf v_tanh(vf x) {
  vf a = v_abs(x), u = x * x;
  vf p = v_set1(-6.113182565e-03f);
  p = v_fma(p, u, v_set1(2.101007393e-02f));
  p = v_fma(p, u, v_set1(-5.385406772e-02f));
  p = v_fma(p, u, v_set1(1.333279453e-01f));
  p = v_fma(p, u, v_set1(-3.333332925e-01f));
  vf near = v_fma(p * u, a, a), far = 1.f - 2.f / (v_exp(a * 2.f) + 1.f);
  return v_copysign(v_sel((u < 0.390625f) | (x != x), near, far), x);
}
#endif

/* Within 2.3 ulp. */
INLINE vf v_sigmoid(vf x) {
  vf e = v_exp(v_min2(v_set1(30.f), x)); /* from 17 on it is one */
  return e / (1.f + e);
}
INLINE vf v_reciprocal(vf x) { return 1.f / x; }

/* The first n of numbers that lie a stride apart; other lanes are zero. */
INLINE vf v_load_strided(const float *p, int64_t stride, int64_t n) {
#if defined(__AVX512F__)
  if (stride == 2) return hg_every_other(v_load_n(p, 2 * n - 1), v_load_n(p + VL, 2 * n - 1 - VL), 0);
#else
  if (stride == 2 && n == VL) return hg_every_other(v_load(p), v_load_n(p + VL, VL - 1), 0);
#endif
#if defined(__AVX512F__)
  if (stride > -(1 << 26) && stride < 1 << 26) {
    const __m512i first = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i at = _mm512_mullo_epi32(first, _mm512_set1_epi32((int)stride));
    return (vf)_mm512_mask_i32gather_ps(_mm512_setzero_ps(), hg_lanes(n), at, p, 4);
  }
#elif defined(__AVX2__)
  if (stride > -(1 << 26) && stride < 1 << 26) {
    const __m256i first = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
    const __m256i at = _mm256_mullo_epi32(first, _mm256_set1_epi32((int)stride));
    const __m256i lanes = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)hg_min(n, VL)), first);
    return (vf)_mm256_mask_i32gather_ps(_mm256_setzero_ps(), p, at, _mm256_castsi256_ps(lanes), 4);
  }
#endif
  vf x = {0};
  for (int64_t i = 0; i < n; i++) x[i] = p[i * stride];
  return x;
}
INLINE vm v_load_mask(const uint8_t *p, int64_t stride, int64_t n) {
#if defined(__AVX512BW__)
  if (stride == 1 || stride == 0) {
    __mmask16 lanes = stride ? hg_lanes(n) : *p ? 0xffff : 0;
    __m128i bytes = stride ? _mm_maskz_loadu_epi8(lanes, p) : _mm_set1_epi8(1);
    return (vm)_mm512_movm_epi32(_mm_mask_test_epi8_mask(lanes, bytes, bytes));
  }
#endif
  vm m = {0};
  for (int64_t i = 0; i < n; i++) m[i] = -(int32_t)(p[i * stride] != 0);
  return m;
}
INLINE void v_store_mask(uint8_t *p, vm m, int64_t n) {
#if defined(__AVX512BW__)
  __m128i ones = _mm_maskz_set1_epi8(_mm512_test_epi32_mask((__m512i)m, (__m512i)m), 1);
  _mm_mask_storeu_epi8(p, hg_lanes(n), ones);
#else
  for (int64_t i = 0; i < n; i++) p[i] = m[i] != 0;
#endif
}

INLINE vm v_lt(vf a, vf b) { return a < b; }
INLINE vm v_le(vf a, vf b) { return a <= b; }
INLINE vm v_gt(vf a, vf b) { return a > b; }
INLINE vm v_ge(vf a, vf b) { return a >= b; }
INLINE vm v_eq(vf a, vf b) { return a == b; }
INLINE vm v_and(vm a, vm b) { return a & b; }
INLINE vm v_or(vm a, vm b) { return a | b; }
INLINE vm v_xor(vm a, vm b) { return a ^ b; }
INLINE vm v_not(vm a) { return ~a; }
INLINE vm v_isnan(vf a) { return a != a; }
INLINE vm v_isinf(vf a) { return v_abs(a) == v_bits(0x7f800000); }
INLINE vf v_of_mask(vm m) { return (vf)(m & (vi)v_set1(1.f)); }
INLINE vm v_nonzero(vf x) { return x != 0.f; }
INLINE vf v_sign(vf x) {
  return v_sel(x != x, x, v_of_mask(x > 0.f) - v_of_mask(x < 0.f));
}
INLINE vf v_trunc(vf x) { return v_copysign(v_floor(v_abs(x)), x); }
INLINE vf v_div(vf a, vf b) { return a / b; }
/* Within 2.4 ulp. */
INLINE vf v_softplus(vf x) {
  return v_max2(v_set1(0.f), x) + v_log1p_unit(v_exp(-v_abs(x)));
}

/* The four below are max(x, 0) - |x| T(|x|), or the like, with a tail T that e^-|x| or e^(-x x / 2)
 * times a factor gives: 1 + erf, 1 + tanh and 1 / (1 + e^-x) have lost it where x is far below zero.
 * Where T is zero to any precision |x| is bounded; at -infinity the formulas multiply infinity by zero. */

/* y, and no number where x is -infinity. */
INLINE vf v_not_below(vf x, vf y) { return v_fma(v_min2(v_set1(0.f), x), v_set1(0.f), y); }
/* x where it is above zero, else -0, or no number. */
INLINE vf v_upper(vf x) { return v_not_below(x, v_max2(v_set1(-0.f), x)); }

/* x sigmoid(x) within 3 ulp. */
INLINE vf v_swish(vf x) {
  vf a = v_min2(v_set1(120.f), v_abs(x));
  vf n, r = v_exp_reduce(-a, &n);
  return v_upper(x) - v_logistic_times(n, r, a);
}
/* x tanh(ln(1 + e^x)) within 4.3 ulp. */
INLINE vf v_mish(vf x) {
  vf bound = v_max2(v_set1(-120.f), x);
  vf n, second, r = v_exp_reduce(-v_abs(bound), &n);
  vf first = v_exp_parts(n, r, &second);
  vf e = first * second;
  vm below = x < 0.f;
  /* tanh(ln(1 + w)) is w (w + 2) / (w (w + 2) + 2); above zero e is 1 / w */
  vf over = v_sel(below, first * (e + 2.f), v_fma(e, v_set1(2.f), v_set1(1.f)));
  vf part = v_fma(e, v_sel(below, e + 2.f, e * 2.f), v_sel(below, v_set1(2.f), over));
  return v_not_below(x, bound * (over / part) * v_sel(below, second, v_set1(1.f)));
}
/* x times the normal distribution's integral, within 5.3 ulp. */
INLINE vf v_gelu(vf x) {
  vf a = v_min2(v_set1(14.5f), v_abs(x));
  /* the square of the first half of its digits is exact; the rest is small enough to add to r */
  vf high = (vf)((vi)a & (int32_t)0xfffff000);
  vf n, r = v_exp_reduce(high * high * -0.5f, &n);
  r = v_fma((a + high) * (a - high), v_set1(-0.5f), r);
  /* e^(a a / 2) erfc(a / sqrt(2)) / 2 in terms of t */
  vf t = 1.f / v_fma(a, v_set1(0.45f), v_set1(1.f));
  vf p = v_set1(-3.779698668e-02f);
  p = v_fma(p, t, v_set1(2.285895090e-01f));
  p = v_fma(p, t, v_set1(-5.689430278e-01f));
  p = v_fma(p, t, v_set1(7.067478819e-01f));
  p = v_fma(p, t, v_set1(-3.789858413e-01f));
  p = v_fma(p, t, v_set1(-7.908598862e-03f));
  p = v_fma(p, t, v_set1(-7.159624326e-03f));
  p = v_fma(p, t, v_set1(6.093419059e-02f));
  p = v_fma(p, t, v_set1(1.458346535e-01f));
  p = v_fma(p, t, v_set1(1.791348647e-01f));
  p = v_fma(p, t, v_set1(1.795539310e-01f));
  p = v_fma(p, t, v_set1(-9.537576015e-07f));
  return v_upper(x) - v_exp_times(n, r, a * p);
}
/* x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 within 3.3 ulp, 120 at the portable level. */
INLINE vf v_gelu_tanh(vf x) {
  vf a = v_min2(v_set1(10.8f), v_abs(x));
  /* u = -a (b + c a a), and the rest that rounding leaves: it may be a hundred, and its error counts
   * as many times; without fused products, at the portable level, some of that is lost */
  vf square = a * a, cubed = square * 7.135481387e-02f;
  vf rest = v_fma(square, v_set1(7.135481387e-02f), -cubed);
  rest = v_fma(v_fma(a, a, -square), v_set1(7.135481387e-02f), rest);
  rest = v_fma(square, v_set1(2.398832466e-09f), rest);
  vf sum = cubed + 1.595769167e+00f, one = sum - cubed, two = sum - one;
  rest += (1.595769167e+00f - one) + (cubed - two) + -4.534068054e-08f;
  vf u = sum * -a;
  vf n, r = v_exp_reduce(u, &n);
  r += v_fma(sum, -a, -u) - rest * a;
  return v_upper(x) - v_logistic_times(n, r, a);
}
INLINE vf v_num(float x) { return v_set1(x); }
