/* Updates of parameters, each in one pass: every element is read and written once.
 *
 * Every operation rounds as NumPy's does, one after the other (no contraction), so that the results
 * are equal to the bit. The engine's threads share the elements of all parameters of a call.
 */
#include <math.h>
#include <stdint.h>

enum { DESCEND, MOMENTUM, ADAM, KINDS };
/* Elements of a task: what a second level of caches holds of five arrays. */
#define PART (1 << 15)

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

/* A kernel of the engine (engine.h): the elements of one task, of all jobs one after the other. */
static void update_task(char *const *pointers, const int64_t *sizes, int64_t task, const void *thread) {
  const job *jobs = (const job *)pointers[0];
  int64_t first = task * sizes[1], end = first + sizes[1];
  for (int64_t j = 0; j < sizes[0] && end > 0; j++) {
    int64_t n = jobs[j].n, from = first < 0 ? 0 : first, to = end < n ? end : n;
    if (from < to) update[jobs[j].kind](to - from, from, &jobs[j]);
    first -= n, end -= n;
  }
}

typedef void (*setter)(void *, int64_t, void *, char *const *, const int64_t *, int64_t, int64_t);
typedef int64_t (*runner)(void *, void *, void *);

/* Update all parameters; none shares memory with another array.
 *
 * program: of the engine, with one phase; nobody else runs it meanwhile.
 * set, run: the engine's functions hg_set_phase and hg_run.
 */
void hg_updates(int64_t count, const job *jobs, void *program, setter set, runner run) {
  char *pointers[] = {(char *)jobs};
  int64_t sizes[] = {count, PART}, all = 0;
  for (int64_t j = 0; j < count; j++) all += jobs[j].n;
  set(program, 0, (void *)update_task, pointers, sizes, (all + PART - 1) / PART, 0);
  run(program, 0, 0);
}
