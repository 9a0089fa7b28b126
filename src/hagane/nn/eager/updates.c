/* Updates of parameters, each in one pass: every element is read and written once.
 *
 * Every operation rounds as NumPy's does, one after the other (no contraction), so that the results
 * are equal to the bit. Threads share the elements of all parameters of a call.
 */
#include <math.h>
#include <pthread.h>
#include <stdint.h>

enum { DESCEND, MOMENTUM, ADAM, KINDS };
#define MAX_THREADS 64
/* A thread is worth starting for so many elements; parts begin at multiples of so many. */
#define WORTH (1 << 16)
#define GRAIN 64

typedef struct {
  int64_t kind; /* one of the above, + KINDS for float64 */
  int64_t n;
  void *arrays[4];   /* the parameter, its states, its gradient */
  double numbers[6]; /* hyperparameters */
} job;

#define UPDATES(real, suffix, root)                                                                   \
  static void descend_##suffix(int64_t n, int64_t at, const job *one) {                               \
    real *restrict x = (real *)one->arrays[0] + at;                                                   \
    const real *restrict g = (const real *)one->arrays[1] + at;                                       \
    real lr = (real)one->numbers[0];                                                                  \
    for (int64_t i = 0; i < n; i++) x[i] -= lr * g[i];                                                \
  }                                                                                                   \
  static void momentum_##suffix(int64_t n, int64_t at, const job *one) {                              \
    real *restrict x = (real *)one->arrays[0] + at, *restrict v = (real *)one->arrays[1] + at;        \
    const real *restrict g = (const real *)one->arrays[2] + at;                                       \
    real lr = (real)one->numbers[0], momentum = (real)one->numbers[1];                                \
    for (int64_t i = 0; i < n; i++) {                                                                 \
      real step = v[i] * momentum - lr * g[i];                                                        \
      v[i] = step;                                                                                    \
      x[i] += step;                                                                                   \
    }                                                                                                 \
  }                                                                                                   \
  static void adam_##suffix(int64_t n, int64_t at, const job *one) {                                  \
    real *restrict x = (real *)one->arrays[0] + at, *restrict m = (real *)one->arrays[1] + at;        \
    real *restrict v = (real *)one->arrays[2] + at;                                                   \
    const real *restrict g = (const real *)one->arrays[3] + at;                                       \
    const double *numbers = one->numbers;                                                             \
    real alpha = (real)numbers[0], rest1 = (real)numbers[1], rest2 = (real)numbers[2];                \
    real eps = (real)numbers[3], eta = (real)numbers[4], kept = (real)numbers[5];                     \
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

static void (*const update[])(int64_t, int64_t, const job *) = {
    descend_float32, momentum_float32, adam_float32, descend_float64, momentum_float64, adam_float64,
};

typedef struct {
  const job *jobs;
  int64_t count, first, end; /* the elements of all jobs that are this thread's */
  pthread_t thread;
} share;

static void *work(void *given) {
  const share *own = given;
  int64_t before = 0;
  for (int64_t j = 0; j < own->count; j++) {
    const job *one = &own->jobs[j];
    int64_t first = own->first - before, end = own->end - before;
    if (first < 0) first = 0;
    if (end > one->n) end = one->n;
    if (first < end) update[one->kind](end - first, first, one);
    before += one->n;
  }
  return 0;
}

/* Update all parameters; none shares memory with another array. */
void hg_updates(int64_t count, const job *jobs, int64_t threads) {
  share shares[MAX_THREADS];
  int64_t all = 0, begun = 0;
  for (int64_t j = 0; j < count; j++) all += jobs[j].n;
  if (threads > all / WORTH) threads = all / WORTH;
  if (threads > MAX_THREADS) threads = MAX_THREADS;
  if (threads < 1) threads = 1;
  for (int64_t t = 0; t < threads; t++) {
    int64_t end = t + 1 == threads ? all : all * (t + 1) / threads / GRAIN * GRAIN;
    shares[t] = (share){jobs, count, begun, end, 0};
    begun = end;
  }
  int64_t started = 1;
  while (started < threads && pthread_create(&shares[started].thread, 0, work, &shares[started]) == 0) started++;
  work(&shares[0]);
  for (int64_t t = started; t < threads; t++) work(&shares[t]);
  for (int64_t t = 1; t < started; t++) pthread_join(shares[t].thread, 0);
}
