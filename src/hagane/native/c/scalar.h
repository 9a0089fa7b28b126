/* The functions of vectors, for single numbers; division and rounding of whole numbers. */

/* e^x of doubles, within 1.5 ulp: the series of the exponential to r^13, times powers of two. Loops
 * over it become loops over vectors. */
#define HG_REDUCED(a)                                                                 \
  const double n = rint(a * 1.4426950408889634074);                                   \
  const double r = (a - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10; \
  const int32_t whole = (int32_t)(n == n ? n : 0);
/* (e^r - 1 - r) / r^2. */
INLINE double hg_exp_series(double r) {
  double p = 1.6059043836821613e-10;
  p = p * r + 2.0876756987868099e-09;
  p = p * r + 2.5052108385441719e-08;
  p = p * r + 2.7557319223985891e-07;
  p = p * r + 2.7557319223985891e-06;
  p = p * r + 2.4801587301587302e-05;
  p = p * r + 1.9841269841269841e-04;
  p = p * r + 1.3888888888888889e-03;
  p = p * r + 8.3333333333333333e-03;
  p = p * r + 4.1666666666666667e-02;
  p = p * r + 1.6666666666666667e-01;
  return p * r + 0.5;
}
INLINE double hg_power_of_two(int32_t n) {
  union { int64_t bits; double number; } u = {(int64_t)(n + 1023) << 52};
  return u.number;
}
INLINE double hg_exp(double x) {
  const double a = x < -746 ? -746 : x > 710 ? 710 : x;
  HG_REDUCED(a)
  const int32_t low = whole >> 1;
  return (hg_exp_series(r) * (r * r) + r + 1) * hg_power_of_two(low) * hg_power_of_two(whole - low);
}
/* tanh x of doubles within 3 ulp: w / (w + 2), where w is e^2|x| - 1. */
INLINE double hg_tanh(double x) {
  const double a = fabs(x) > 22 ? 44 : 2 * fabs(x);
  HG_REDUCED(a)
  const double scale = hg_power_of_two(whole), w = (hg_exp_series(r) * (r * r) + r) * scale + (scale - 1);
  return copysign(w / (w + 2), x);
}
#undef HG_REDUCED
#define hg_tanhf tanhf
#define hg_expf expf
/* For scalars, in double. */
INLINE double hg_swish(double x) {
  double e = exp(-fabs(x));
  return x * ((x < 0 ? e : 1) / (1 + e));
}
INLINE double hg_mish(double x) {
  double e = exp(-fabs(x));
  return x * (x < 0 ? e * (e + 2) / (e * (e + 2) + 2) : (1 + 2 * e) / (1 + 2 * e + 2 * e * e));
}
INLINE double hg_gelu(double x) { return 0.5 * x * erfc(-0.70710678118654752440 * x); }
INLINE double hg_gelu_tanh(double x) {
  double u = 1.59576912160573071176 * (x + 0.044715 * x * x * x), e = exp(-fabs(u));
  return x * ((u < 0 ? e : 1) / (1 + e));
}

#define SCALARS(P, T, f)                                                              \
  INLINE T P##num(double x) { return (T)x; }                                          \
  INLINE T P##set1(T x) { return x; }                                                 \
  INLINE T P##abs(T x) { return fabs##f(x); }                                         \
  INLINE T P##neg(T x) { return -x; }                                                 \
  INLINE T P##sqrt(T x) { return sqrt##f(x); }                                        \
  INLINE T P##round(T x) { return rint##f(x); }                                       \
  INLINE T P##floor(T x) { return floor##f(x); }                                      \
  INLINE T P##ceil(T x) { return ceil##f(x); }                                        \
  INLINE T P##trunc(T x) { return trunc##f(x); }                                      \
  INLINE T P##exp(T x) { return hg_exp##f(x); }                                       \
  INLINE T P##expm1(T x) { return expm1##f(x); }                                      \
  INLINE T P##log(T x) { return log##f(x); }                                          \
  INLINE T P##log1p(T x) { return log1p##f(x); }                                      \
  INLINE T P##erf(T x) { return erf##f(x); }                                          \
  INLINE T P##tanh(T x) { return hg_tanh##f(x); }                                      \
  INLINE T P##sin(T x) { return sin##f(x); }                                          \
  INLINE T P##cos(T x) { return cos##f(x); }                                          \
  INLINE T P##tan(T x) { return tan##f(x); }                                          \
  INLINE T P##asin(T x) { return asin##f(x); }                                        \
  INLINE T P##acos(T x) { return acos##f(x); }                                        \
  INLINE T P##atan(T x) { return atan##f(x); }                                        \
  INLINE T P##sinh(T x) { return sinh##f(x); }                                        \
  INLINE T P##cosh(T x) { return cosh##f(x); }                                        \
  INLINE T P##asinh(T x) { return asinh##f(x); }                                      \
  INLINE T P##acosh(T x) { return acosh##f(x); }                                      \
  INLINE T P##atanh(T x) { return atanh##f(x); }                                      \
  INLINE T P##pow(T x, T y) { return pow##f(x, y); }                                  \
  INLINE T P##fmod(T x, T y) { return fmod##f(x, y); }                                \
  INLINE T P##modulus(T x, T y) {                                                     \
    T r = fmod##f(x, y);                                                              \
    return r == 0 ? copysign##f(0, y) : (r < 0) != (y < 0) ? r + y : r;               \
  }                                                                                   \
  INLINE T P##sigmoid(T x) { T e = hg_exp##f(-fabs##f(x)); return (x < 0 ? e : 1) / (1 + e); } \
  INLINE T P##swish(T x) { return (T)hg_swish(x); }                                   \
  INLINE T P##mish(T x) { return (T)hg_mish(x); }                                     \
  INLINE T P##gelu(T x) { return (T)hg_gelu(x); }                                     \
  INLINE T P##gelu_tanh(T x) { return (T)hg_gelu_tanh(x); }                           \
  INLINE T P##softplus(T x) { return (x > 0 ? x : 0) + log1p##f(exp##f(-fabs##f(x))); } \
  INLINE T P##relu(T x) { return x > 0 || x != x ? x : 0; }                           \
  INLINE T P##reciprocal(T x) { return 1 / x; }                                       \
  INLINE T P##sign(T x) { return x != x ? x : (T)((x > 0) - (x < 0)); }               \
  INLINE T P##max(T a, T b) { return a > b || a != a ? a : b; }                       \
  INLINE T P##min(T a, T b) { return a < b || a != a ? a : b; }                       \
  INLINE T P##fma(T a, T b, T c) { return a * b + c; }                                \
  INLINE T P##div(T a, T b) { return a / b; }                                         \
  INLINE T P##sel(uint8_t m, T a, T b) { return m ? a : b; }                          \
  INLINE T P##of_mask(uint8_t m) { return (T)m; }                                     \
  INLINE uint8_t P##nonzero(T x) { return x != 0; }                                   \
  INLINE uint8_t P##lt(T a, T b) { return a < b; }                                    \
  INLINE uint8_t P##le(T a, T b) { return a <= b; }                                   \
  INLINE uint8_t P##gt(T a, T b) { return a > b; }                                    \
  INLINE uint8_t P##ge(T a, T b) { return a >= b; }                                   \
  INLINE uint8_t P##eq(T a, T b) { return a == b; }                                   \
  INLINE uint8_t P##isnan(T a) { return a != a; }                                     \
  INLINE uint8_t P##isinf(T a) { return fabs##f(a) == (T)INFINITY; }                  \
  INLINE uint8_t P##and(uint8_t a, uint8_t b) { return a & b; }                       \
  INLINE uint8_t P##or(uint8_t a, uint8_t b) { return a | b; }                        \
  INLINE uint8_t P##xor(uint8_t a, uint8_t b) { return a ^ b; }                       \
  INLINE uint8_t P##not(uint8_t a) { return !a; }
SCALARS(s_, float, f)
SCALARS(d_, double, )
#undef SCALARS

// Round to even, add the zero point, keep within the type; not a number is zero.
static inline int32_t hg_saturate(float v, int32_t zero, int32_t low, int32_t high) {
  double r = __builtin_rint((double)v) + zero;
  return r != r ? 0 : r < low ? low : r > high ? high : (int32_t)r;
}
/* Division of whole numbers in a kernel: divisors of zero are noted in `hg_zeros`, overflow is no trap. A
 * remainder has the sign of the dividend, a modulus that of the divisor. Quotients of at most 32 bits are
 * those of doubles, which vectors have. */
#define hg_zero(b) (hg_zeros |= (b) == 0, (b) | ((b) == 0))
#define hg_short(a, b) (sizeof(a) <= 4 && sizeof(b) <= 4)
INLINE int64_t hg_divide(int64_t a, int64_t b) { return b == -1 ? 0 - a : a / b; }
#define hg_quotient(a, b)                                                      \
  (hg_short(a, b) ? (__typeof__(a))(int64_t)((double)(a) / (double)hg_zero(b)) \
                  : (__typeof__(a))hg_divide(a, hg_zero(b)))
#define hg_quotient_unsigned(a, b)                                             \
  (hg_short(a, b) ? (__typeof__(a))(int64_t)((double)(a) / (double)hg_zero(b)) \
                  : (__typeof__(a))((a) / hg_zero(b)))
#define hg_remainder(a, b) ((a) - hg_quotient(a, b) * (b))
#define hg_remainder_unsigned(a, b) ((a) - hg_quotient_unsigned(a, b) * (b))
#define hg_modulus(a, b)                                                      \
  ({                                                                           \
    const __typeof__(a) hg_rest = hg_remainder(a, b);                          \
    hg_rest + ((hg_rest < 0) != ((b) < 0) && hg_rest != 0 ? (b) : 0);          \
  })
/* A float as an integer: one out of range is the smallest integer, as processors have it, but 0 above the range
 * of uint64. */
INLINE int32_t hg_to_i32(double x) { return x > -0x1p31 - 1 && x < 0x1p31 ? (int32_t)x : INT32_MIN; }
INLINE int64_t hg_to_i64(double x) { return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN; }
INLINE uint64_t hg_to_u64(double x) {
  if (x >= 0x1p63) return x < 0x1p64 ? (uint64_t)(x - 0x1p63) ^ (1ULL << 63) : 0;
  return (uint64_t)hg_to_i64(x);
}
/* The float beside a double that is odd if it is not exact: a second rounding then does no harm. */
INLINE float hg_odd(double x) {
  float y = (float)x;
  if (x != x || isinf(y) || y == x) return isinf(y) && !isinf(x) ? copysignf(0x1.fffffep127f, y) : y;
  union { float value; uint32_t bits; } u = {y};
  u.bits -= fabs((double)y) > fabs(x);
  u.bits |= 1;
  return u.value;
}
/* Powers of whole numbers; those to negative exponents are cut, and zero's is the given one, for infinity. */
INLINE int64_t hg_power(int64_t x, uint64_t n, int negative, int64_t infinity) {
  if (negative) return x == 1 ? 1 : x == -1 ? (n % 2 ? -1 : 1) : x == 0 ? infinity : 0;
  uint64_t y = 1, z = (uint64_t)x;
  for (; n; n >>= 1, z *= z) if (n & 1) y *= z;
  return (int64_t)y;
}
