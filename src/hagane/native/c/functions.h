/* Trigonometric and hyperbolic functions of vectors, powers and remainders. Accuracy is stated as in vector.h.
 * Coefficients of polynomials without another source are those of Cephes (S. Moshier, netlib). */

/* Functions that have no vector form are called lane by lane. */
#define LANES_OF(name, call)                        \
  INLINE vf v_##name(vf x) {                        \
    for (int i = 0; i < VL; i++) x[i] = call(x[i]); \
    return x;                                       \
  }

/* Within 3 ulp: the arc tangent of a fraction, whose numerator and denominator follow from the third of
 * the range that x lies in. */
INLINE vf v_atan(vf x) {
  vf a = v_abs(x), one = v_set1(1.f);
  vm large = a > 2.414213562f, small = a <= 0.4142135624f;
  vf over = v_sel(large, -one, v_sel(small, a, a - one));
  vf under = v_sel(large, a, v_sel(small, one, a + one));
  vf base = v_sel(large, v_set1(1.570796371f), v_sel(small, v_set1(0.f), v_set1(0.7853981853f)));
  /* (the rest of the halves and quarters of pi) */
  vf rest = v_sel(large, v_set1(-4.371139e-8f), v_sel(small, v_set1(0.f), v_set1(-2.1855695e-8f)));
  vf t = over / under, z = t * t;
  vf p = v_set1(8.05374449538e-2f);
  p = v_fma(p, z, v_set1(-1.38776856032e-1f));
  p = v_fma(p, z, v_set1(1.99777106478e-1f));
  p = v_fma(p, z, v_set1(-3.33329491539e-1f));
  vf y = base + (v_fma(p * z, t, t) + rest);
  return v_sel(x != x, x, v_copysign(y, x));
}
/* The arc sine of the root of z, at most 1/4, over that root. */
INLINE vf v_asin_part(vf z) {
  vf p = v_set1(4.2163199048e-2f);
  p = v_fma(p, z, v_set1(2.4181311049e-2f));
  p = v_fma(p, z, v_set1(4.5470025998e-2f));
  p = v_fma(p, z, v_set1(7.4953002686e-2f));
  return v_fma(p, z, v_set1(1.6666752422e-1f)) * z;
}
/* Within 2.5 ulp. */
INLINE vf v_asin(vf x) {
  vf a = v_abs(x);
  vm far = a > 0.5f;
  vf z = v_sel(far, 0.5f - 0.5f * a, a * a), s = v_sel(far, v_sqrt(z), a);
  vf part = v_fma(v_asin_part(z), s, s);
  vf y = v_sel(far, 1.570796371f - (2.f * part + 4.371139e-8f), part);
  return v_sel(x != x, x, v_copysign(y, x));
}
/* Within 2.5 ulp. */
INLINE vf v_acos(vf x) {
  vf a = v_abs(x);
  vm far = a > 0.5f, below = x < 0.f;
  vf z = v_sel(far, 0.5f - 0.5f * a, a * a), s = v_sel(far, v_sqrt(z), a);
  vf part = v_fma(v_asin_part(z), s, s);
  vf near = 1.570796371f - (v_copysign(part, x) + 4.371139e-8f);
  vf end = v_sel(below, 3.141592741f - (2.f * part + 8.742278e-8f), 2.f * part);
  return v_sel(x != x, x, v_sel(far, end, near));
}

#if defined(__AVX2__) || defined(__AVX512F__)
/* x less n halves of pi, |x| below 32768; the products are exact for a fused addition. */
INLINE vf v_quadrant(vf x, vi *n) {
  vf k = v_round(x * 0.6366197724f);
  *n = __builtin_convertvector(v_sel(x == x, k, v_set1(0.f)), vi);
  vf r = v_fma(k, v_set1(-1.570796371f), x);
  r = v_fma(k, v_set1(4.371139e-8f), r);
  return v_fma(k, v_set1(1.7151245e-15f), r);
}
INLINE vf v_sin_near(vf r) {
  vf z = r * r, p = v_fma(v_set1(-1.9515295891e-4f), z, v_set1(8.3321608736e-3f));
  p = v_fma(p, z, v_set1(-1.6666654611e-1f));
  return v_fma(p * z, r, r);
}
INLINE vf v_cos_near(vf r) {
  vf z = r * r, p = v_fma(v_set1(2.443315711809948e-5f), z, v_set1(-1.388731625493765e-3f));
  p = v_fma(p, z, v_set1(4.166664568298827e-2f));
  return v_fma(z * z, p, v_fma(z, v_set1(-0.5f), v_set1(1.f)));
}
#define FAR(call)                                                        \
  if (v_any(v_abs(x) >= 32768.f)) {                                      \
    vf y = x;                                                            \
    for (int i = 0; i < VL; i++) y[i] = call(x[i]);                      \
    return y;                                                            \
  }
/* The three within 2 ulp, the tangent within 3.5. */
INLINE vf v_sin(vf x) {
  FAR(sinf)
  vi n;
  vf r = v_quadrant(x, &n), y = v_sel((n & 1) != 0, v_cos_near(r), v_sin_near(r));
  return (vf)((vi)y ^ (n & 2) << 30);
}
INLINE vf v_cos(vf x) {
  FAR(cosf)
  vi n;
  vf r = v_quadrant(x, &n), y = v_sel((n & 1) != 0, v_sin_near(r), v_cos_near(r));
  return (vf)((vi)y ^ ((n + 1) & 2) << 30);
}
INLINE vf v_tan(vf x) {
  FAR(tanf)
  vi n;
  vf r = v_quadrant(x, &n), s = v_sin_near(r), c = v_cos_near(r);
  vm odd = (n & 1) != 0;
  return v_sel(odd, -c, s) / v_sel(odd, s, c);
}
#undef FAR
#else
LANES_OF(sin, sinf)
LANES_OF(cos, cosf)
LANES_OF(tan, tanf)
#endif

/* e^|x| / 2 */
INLINE vf v_half_exp(vf x) {
  vf n, second, r = v_exp_reduce(v_abs(x), &n);
  vf first = v_exp_parts(n, r, &second);
  return first * 0.5f * second;
}
/* Within 3 ulp. */
INLINE vf v_cosh(vf x) {
  vf e = v_half_exp(x);
  return v_sel(x != x, x, e + 0.25f / e);
}
/* Within 3 ulp. */
INLINE vf v_sinh(vf x) {
  vf e = v_half_exp(x), z = x * x;
  vf p = v_fma(v_set1(2.03721912945e-4f), z, v_set1(8.33028376239e-3f));
  p = v_fma(p, z, v_set1(1.66667160211e-1f));
  vf near = v_fma(p * z, x, x);
  return v_sel((v_abs(x) < 1.f) | (x != x), near, v_copysign(e - 0.25f / e, x));
}
/* e^x - 1: a polynomial without its one, times 2^n. Within 1.5 ulp. */
INLINE vf v_expm1(vf x) {
  vf n, r = v_exp_reduce(v_min2(v_set1(88.f), x), &n);
  vf p = v_set1(1.984126984e-04f);
  p = v_fma(p, r, v_set1(1.388888889e-03f));
  p = v_fma(p, r, v_set1(8.333333333e-03f));
  p = v_fma(p, r, v_set1(4.166666667e-02f));
  p = v_fma(p, r, v_set1(1.666666667e-01f));
  p = v_fma(p, r, v_set1(5.000000000e-01f));
  p = v_fma(p, r * r, r);
  vm below = n < -30.f;
  vf scale = v_pow2(v_max2(v_set1(-30.f), n)), y = v_fma(scale, p, scale - 1.f);
  y = v_sel(below, v_set1(-1.f), y);
  y = v_sel(x > 88.f, v_exp(x), y);
  return v_sel((x != x) | (x == 0.f), x, y);
}
/* ln(1 + x), with the rest that the sum has lost. Within 2 ulp. */
INLINE vf v_log1p(vf x) {
  vf u = 1.f + x, lost = (x - (u - 1.f)) / u;
  vf y = v_log(u) + v_sel((u == 0.f) | (u == v_bits(0x7f800000)), v_set1(0.f), lost);
  return v_sel((x != x) | (x == 0.f), x, y);
}
/* Within 3.5 ulp. */
INLINE vf v_asinh(vf x) {
  vf a = v_abs(x);
  vm large = a > 1e9f;
  vf b = v_sel(large, v_set1(1.f), a), z = b * b;
  vf y = v_log1p(b + z / (1.f + v_sqrt(z + 1.f)));
  y = v_sel(large, v_log(a) + 0.6931471806f, y);
  return v_sel(x != x, x, v_copysign(y, x));
}
/* Within 3 ulp, like the next. */
INLINE vf v_acosh(vf x) {
  vm large = x > 1e9f;
  vf t = v_sel(large, v_set1(0.f), x - 1.f);
  vf y = v_sel(large, v_log(x) + 0.6931471806f, v_log1p(t + v_sqrt(t * (t + 2.f))));
  return v_sel(x < 1.f, v_bits(0x7fc00000), y);
}
INLINE vf v_atanh(vf x) {
  vf a = v_abs(x);
  vf y = 0.5f * v_log1p(2.f * a / (1.f - a));
  return v_sel((x != x) | (a < 1e-4f), x, v_copysign(y, x));
}
/* Half a vector as doubles, and two halves back. */
typedef double vd __attribute__((vector_size(VL * 4), aligned(8), may_alias));
#if defined(__AVX512F__)
INLINE vd v_doubles(vf x, int upper) {
  __m512d all = (__m512d)x;
  return (vd)_mm512_cvtps_pd(_mm256_castpd_ps(upper ? _mm512_extractf64x4_pd(all, 1) : _mm512_castpd512_pd256(all)));
}
INLINE vf v_of_doubles(vd low, vd high) {
  __m512d y = _mm512_castpd256_pd512(_mm256_castps_pd(_mm512_cvtpd_ps((__m512d)low)));
  return (vf)_mm512_insertf64x4(y, _mm256_castps_pd(_mm512_cvtpd_ps((__m512d)high)), 1);
}
#elif defined(__AVX2__)
INLINE vd v_doubles(vf x, int upper) {
  __m256 all = (__m256)x;
  return (vd)_mm256_cvtps_pd(upper ? _mm256_extractf128_ps(all, 1) : _mm256_castps256_ps128(all));
}
INLINE vf v_of_doubles(vd low, vd high) {
  return (vf)_mm256_set_m128(_mm256_cvtpd_ps((__m256d)high), _mm256_cvtpd_ps((__m256d)low));
}
#else
INLINE vd v_doubles(vf x, int upper) {
  vd y;
  for (int i = 0; i < VL / 2; i++) y[i] = x[i + upper * (VL / 2)];
  return y;
}
INLINE vf v_of_doubles(vd low, vd high) {
  vf y;
  for (int i = 0; i < VL / 2; i++) y[i] = (float)low[i], y[i + VL / 2] = (float)high[i];
  return y;
}
#endif
INLINE vd vd_load(const double *p) { return *(const vd *)p; }
INLINE void vd_store(double *p, vd x) { *(vd *)p = x; }
/* The first n lanes of memory, of which the others read as zero. */
#if defined(__AVX512F__)
INLINE vd vd_load_n(const double *p, int64_t n) { return (vd)_mm512_maskz_loadu_pd((__mmask8)hg_lanes(hg_min(n, 8)), p); }
INLINE void vd_store_n(double *p, vd x, int64_t n) { _mm512_mask_storeu_pd(p, (__mmask8)hg_lanes(hg_min(n, 8)), (__m512d)x); }
#else
INLINE vd vd_load_n(const double *p, int64_t n) {
  vd x = {0};
  for (int64_t i = 0; i < hg_min(n, VL / 2); i++) x[i] = p[i];
  return x;
}
INLINE void vd_store_n(double *p, vd x, int64_t n) {
  for (int64_t i = 0; i < hg_min(n, VL / 2); i++) p[i] = x[i];
}
#endif
INLINE double vd_sum(vd x) {
  double y = 0;
  for (int i = 0; i < VL / 2; i++) y += x[i];
  return y;
}
/* x^y within 1.2 ulp, by the logarithm to base two in doubles; signs, zeros and infinities as in C. */
INLINE vf v_pow(vf x, vf y) {
  vf a = v_abs(x);
  vm tiny = a < 1.17549435e-38f;
  vi shifted = (vi)v_sel(tiny, a * 16777216.f, a) - 0x3f3504f3; /* sqrt(1/2) */
  vf m = (vf)((shifted & 0x007fffff) + 0x3f3504f3);
  vf e = __builtin_convertvector(shifted >> 23, vf) - v_sel(tiny, v_set1(24.f), v_set1(0.f));
  vd power[2];
  for (int i = 0; i < 2; i++) {
    vd half = v_doubles(m, i), s = (half - 1.0) / (half + 1.0), z = s * s;
    vd p = z * 0.26230818925253 + 0.32059889797532;
    p = p * z + 0.41219858311113;
    p = p * z + 0.57707801635559;
    p = p * z + 0.96179669392598;
    p = p * z + 2.88539008177793;
    power[i] = (p * s + v_doubles(e, i)) * v_doubles(y, i);
  }
  vf n = v_round(v_min2(v_set1(160.f), v_max2(v_set1(-160.f), v_of_doubles(power[0], power[1]))));
  vf f = v_of_doubles(power[0] - v_doubles(n, 0), power[1] - v_doubles(n, 1));
  /* (what is larger stands for a result out of range) */
  f = v_min2(v_set1(0.5f), v_max2(v_set1(-0.5f), f));
  vf r = v_exp_times(n, f * 0.693147181f, v_set1(1.f));
  /* zero and infinity have a logarithm that the above does not see */
  vf endless = v_set1(INFINITY), rising = v_abs(y);
  vm grows = (a > 1.f) == (y > 0.f), end = (a == 0.f) | (a == endless) | (rising == endless);
  r = v_sel(end, v_sel(grows, endless, v_set1(0.f)), r);
  vm whole = v_round(y) == y, odd = whole & (v_round(y * 0.5f) != y * 0.5f) & (rising < 16777216.f);
  vm below = (vi)x < 0;
  r = v_sel(below & odd, -r, r);
  r = v_sel(below & ~whole & (a < endless) & (a > 0.f), v_bits(0x7fc00000), r);
  r = v_sel((x != x) | (y != y), x + y, r);
  return v_sel((y == 0.f) | (x == 1.f) | ((a == 1.f) & (rising == endless)), v_set1(1.f), r);
}
#if defined(__AVX2__) || defined(__AVX512F__)
/* x less a whole number of y, exact: quotients of less than 2^22 are wrong by one at most. */
INLINE vf v_fmod(vf x, vf y) {
  vf a = v_abs(x), b = v_abs(y), q = a / b;
  if (v_any(~((q < 4194304.f) & (b < 1.7e38f) & (b > 1e-30f)))) {
    for (int i = 0; i < VL; i++) x[i] = fmodf(x[i], y[i]);
    return x;
  }
  vf r = v_fma(-v_floor(q), b, a);
  r = v_sel(r < 0.f, r + b, r);
  return v_copysign(v_sel(r >= b, r - b, r), x);
}
#else
INLINE vf v_fmod(vf x, vf y) {
  for (int i = 0; i < VL; i++) x[i] = fmodf(x[i], y[i]);
  return x;
}
#endif
#undef LANES_OF

/* Sums and the largest of n numbers in a row, in four parts side by side; NaN may be passed over by the last. */
INLINE float hg_sum_of(const float *x, int64_t n) {
  vf s[4] = {{0}};
  int64_t i = 0;
  for (; i + 4 * VL <= n; i += 4 * VL)
    for (int j = 0; j < 4; j++) s[j] += v_load(x + i + j * VL);
  for (; i + VL <= n; i += VL) s[0] += v_load(x + i);
  if (i < n) s[1] += v_load_n(x + i, n - i);
  return v_sum((s[0] + s[1]) + (s[2] + s[3]));
}
INLINE float hg_squares_of(const float *x, int64_t n, float mean) {
  vf s[4] = {{0}}, centre = v_set1(mean);
  int64_t i = 0;
  for (; i + 4 * VL <= n; i += 4 * VL)
    for (int j = 0; j < 4; j++) {
      vf v = v_load(x + i + j * VL) - centre;
      s[j] = v_fma(v, v, s[j]);
    }
  for (; i + VL <= n; i += VL) {
    vf v = v_load(x + i) - centre;
    s[0] = v_fma(v, v, s[0]);
  }
  if (i < n) {
    vf v = v_sel(v_first(n - i), v_load_n(x + i, n - i) - centre, v_set1(0.f));
    s[1] = v_fma(v, v, s[1]);
  }
  return v_sum((s[0] + s[1]) + (s[2] + s[3]));
}
INLINE float hg_top_of(const float *x, int64_t n) {
  vf none = v_set1(-INFINITY), s[4] = {none, none, none, none};
  int64_t i = 0;
  for (; i + 4 * VL <= n; i += 4 * VL)
    for (int j = 0; j < 4; j++) s[j] = v_max2(s[j], v_load(x + i + j * VL));
  for (; i + VL <= n; i += VL) s[0] = v_max2(s[0], v_load(x + i));
  if (i < n) s[1] = v_max2(s[1], v_sel(v_first(n - i), v_load_n(x + i, n - i), none));
  return v_top(v_max2(v_max2(s[0], s[1]), v_max2(s[2], s[3])));
}
/* The largest of n numbers in a row, or the least; what is not a number comes through. */
INLINE float hg_extreme_of(const float *x, int64_t n, const int largest) {
#define BOTH(a, b) (largest ? v_max2(a, b) : v_min2(a, b))
  vf none = v_set1(largest ? -INFINITY : INFINITY), s[4] = {none, none, none, none};
  vm bad = {0};
  int64_t i = 0, odd = 0;
  for (; i + 4 * VL <= n; i += 4 * VL) {
    vf a = v_load(x + i), b = v_load(x + i + VL), c = v_load(x + i + 2 * VL), d = v_load(x + i + 3 * VL);
    s[0] = BOTH(s[0], a), s[1] = BOTH(s[1], b), s[2] = BOTH(s[2], c), s[3] = BOTH(s[3], d);
#if defined(__AVX512F__)
    odd |= _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_UNORD_Q) | _mm512_cmp_ps_mask((__m512)c, (__m512)d, _CMP_UNORD_Q);
#else
    bad |= (a != a) | (b != b) | (c != c) | (d != d);
#endif
  }
  for (; i < n; i += VL) {
    vf v = i + VL <= n ? v_load(x + i) : v_sel(v_first(n - i), v_load_n(x + i, n - i), none);
    s[0] = BOTH(s[0], v), bad |= v != v;
  }
  if (odd || v_any(bad)) return NAN;
  vf y = BOTH(BOTH(s[0], s[1]), BOTH(s[2], s[3]));
  return largest ? v_top(y) : -v_top(-y);
#undef BOTH
}
