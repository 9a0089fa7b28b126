/* Updates of a parameter in one pass: each element is read and written once.
 *
 * Every operation rounds as NumPy's does, one after the other (no contraction), so that the results
 * are equal to the bit.
 */
#include <math.h>
#include <stdint.h>

#define UPDATES(real, suffix, root)                                                                   \
  void hg_descend_##suffix(int64_t n, real *restrict x, const real *restrict g, double lr_) {         \
    real lr = (real)lr_;                                                                              \
    for (int64_t i = 0; i < n; i++) x[i] -= lr * g[i];                                                \
  }                                                                                                   \
  void hg_momentum_##suffix(int64_t n, real *restrict x, real *restrict v, const real *restrict g,    \
                            double lr_, double momentum_) {                                           \
    real lr = (real)lr_, momentum = (real)momentum_;                                                  \
    for (int64_t i = 0; i < n; i++) {                                                                 \
      real step = v[i] * momentum - lr * g[i];                                                        \
      v[i] = step;                                                                                    \
      x[i] += step;                                                                                   \
    }                                                                                                 \
  }                                                                                                   \
  void hg_adam_##suffix(int64_t n, real *restrict x, real *restrict m, real *restrict v,              \
                        const real *restrict g, double alpha_, double rest1_, double rest2_,          \
                        double eps_, double eta_, double kept_) {                                     \
    real alpha = (real)alpha_, rest1 = (real)rest1_, rest2 = (real)rest2_, eps = (real)eps_;          \
    real eta = (real)eta_, kept = (real)kept_;                                                        \
    for (int64_t i = 0; i < n; i++) {                                                                 \
      real mean = m[i] + rest1 * (g[i] - m[i]);                                                       \
      real square = v[i] + rest2 * (g[i] * g[i] - v[i]);                                              \
      m[i] = mean;                                                                                    \
      v[i] = square;                                                                                  \
      x[i] = kept * x[i] - eta * (alpha / (root(square) + eps) * mean);                               \
    }                                                                                                 \
  }

UPDATES(float, float32, sqrtf)
UPDATES(double, float64, sqrt)
