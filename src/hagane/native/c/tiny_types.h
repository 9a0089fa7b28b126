/* Numbers of 8, 4 and 2 bits, one in a byte: how they are read, rounded and written. */

typedef uint8_t hg_e4m3fn, hg_e4m3fnuz, hg_e5m2, hg_e5m2fnuz, hg_e8m0, hg_e2m1;
typedef uint8_t hg_i4, hg_u4, hg_i2, hg_u2;

INLINE int32_t s_load_i4(uint8_t x) { return (int8_t)(uint8_t)(x << 4) >> 4; }
INLINE int32_t s_load_u4(uint8_t x) { return x & 15; }
INLINE int32_t s_load_i2(uint8_t x) { return (int8_t)(uint8_t)(x << 6) >> 6; }
INLINE int32_t s_load_u2(uint8_t x) { return x & 3; }
INLINE uint8_t s_store_i4(int32_t x) { return (uint8_t)(x & 15); }
INLINE uint8_t s_store_u4(int32_t x) { return (uint8_t)(x & 15); }
INLINE uint8_t s_store_i2(int32_t x) { return (uint8_t)(x & 3); }
INLINE uint8_t s_store_u2(int32_t x) { return (uint8_t)(x & 3); }

/* A finite magnitude: its exponent, biased, above so many bits of the mantissa. */
INLINE float hg_of_tiny(uint32_t code, int mantissa, int bias) {
  uint32_t exponent = code >> mantissa, part = code & ((1u << mantissa) - 1);
  union { uint32_t bits; float value; } scale;
  scale.bits = (uint32_t)(128 - bias) << 23; /* of subnormal numbers */
  if (exponent == 0) return (float)part * scale.value / (float)(1 << mantissa);
  scale.bits = (exponent + 127 - (uint32_t)bias) << 23 | part << (23 - mantissa);
  return scale.value;
}
/* The code of a finite magnitude, to the nearest, ties to even; at most 256 for a larger one. */
INLINE uint32_t hg_to_tiny(double x, int mantissa, int bias) {
  if (x > 0x1p17) return 256;
  union { double value; uint64_t bits; } scale = {x};
  int exponent = (int)(scale.bits >> 52) - 1023;
  if (exponent < 1 - bias) exponent = 1 - bias;
  scale.bits = (uint64_t)(1023 + mantissa - exponent) << 52;
  return ((uint32_t)(exponent + bias - 1) << mantissa) + (uint32_t)__builtin_rint(x * scale.value);
}
/* Floats with a sign: the bit of it, the largest finite magnitude, the codes of larger ones and of
 * NaN. Where NaN has the code of zero below zero, so have larger magnitudes, and there is no such zero. */
INLINE uint8_t hg_code(double x, int mantissa, int bias, uint32_t sign, uint32_t most, uint32_t over,
                       uint32_t nan, int saturate) {
  uint32_t below = signbit(x) ? sign : 0, code = x == x ? hg_to_tiny(fabs(x), mantissa, bias) : nan;
  if (x == x && code > most) code = saturate ? most : over;
  if (code == sign) return (uint8_t)sign;
  return (uint8_t)(code == 0 && over == sign ? 0 : code | below);
}
INLINE float hg_value(uint32_t code, int mantissa, int bias, uint32_t sign, uint32_t most,
                      uint32_t over, uint32_t nan) {
  if (code == sign && over == sign) return NAN;
  uint32_t rest = code & (sign - 1);
  float x = rest <= most ? hg_of_tiny(rest, mantissa, bias)
          : rest == over && over != nan ? INFINITY : NAN;
  return code & sign ? -x : x;
}
#define TINY(T, mantissa, bias, sign, most, over, nan)                                          \
  INLINE uint8_t hg_code_##T(double x, int saturate) {                                          \
    return hg_code(x, mantissa, bias, sign, most, over, nan, saturate);                         \
  }                                                                                             \
  INLINE float s_load_##T(uint8_t x) { return hg_value(x, mantissa, bias, sign, most, over, nan); } \
  INLINE uint8_t s_store_##T(float x) { return hg_code_##T(x, 0); }                             \
  INLINE float hg_round_##T(double x, int saturate) { return s_load_##T(hg_code_##T(x, saturate)); }
TINY(e4m3fn, 3, 7, 0x80, 0x7e, 0x7f, 0x7f)
TINY(e4m3fnuz, 3, 8, 0x80, 0x7f, 0x80, 0x80)
TINY(e5m2, 2, 15, 0x80, 0x7b, 0x7c, 0x7e)
TINY(e5m2fnuz, 2, 16, 0x80, 0x7f, 0x80, 0x80)
TINY(e2m1, 1, 1, 8, 7, 7, 8)
#undef TINY

/* Powers of two (E8M0 of OCP Microscaling 1.0), without sign. */
INLINE float s_load_e8m0(uint8_t x) { return x == 255 ? NAN : ldexpf(1.f, x - 127); }
enum { HG_DOWN, HG_NEAREST, HG_UP };
INLINE uint8_t hg_code_e8m0(float x, int saturate, int rounding) {
  if (x != x) return 255;
  if (x == 0) return 0;
  if (isinf(x)) return saturate ? 254 : 255;
  int power;
  float part = 2 * frexpf(x, &power) - 1;
  power += 126 + (rounding == HG_UP ? part > 0 : rounding == HG_NEAREST ? part >= 0.5f : 0);
  if (power < 0 || power > 254) return saturate ? (power < 0 ? 0 : 254) : 255;
  return (uint8_t)power;
}
INLINE uint8_t s_store_e8m0(float x) { return hg_code_e8m0(x, 0, HG_DOWN); }
INLINE float hg_round_e8m0(float x, int saturate, int rounding) {
  return s_load_e8m0(hg_code_e8m0(x, saturate, rounding));
}
