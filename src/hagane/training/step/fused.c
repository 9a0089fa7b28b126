/* Updates of parameters, each in one pass; fused.py puts the loops of an optimizer's rules in.
 *
 * Threads share the elements of all parameters of a call.
 */
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#define MAX_THREADS 64
/* A thread is worth starting for so many elements; parts begin at multiples of so many. */
#define WORTH (1 << 16)
#define GRAIN 64

typedef struct {
  int64_t kind;
  int64_t n, size;    /* elements, and the bytes of one */
  void *arrays[6];    /* the parameter, its states, its gradient */
  double numbers[16]; /* of the step, then hyperparameters */
} job;

/* UPDATES */

static void (*const update[])(int64_t, int64_t, const job *) = {/* TABLE */};

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

static int by_address(const void *a, const void *b) {
  const job *one = *(const job *const *)a, *other = *(const job *const *)b;
  return (one->arrays[0] > other->arrays[0]) - (one->arrays[0] < other->arrays[0]);
}

/* Whether two parameters share memory, as those tied by their data: the one is then updated behind
 * the other, and threads must not part them. (Nor if there is no memory to find it out.) */
static int tied(int64_t count, const job *jobs) {
  const job **order = malloc((size_t)count * sizeof *order);
  if (!order) return 1;
  int found = 0;
  for (int64_t j = 0; j < count; j++) order[j] = &jobs[j];
  qsort(order, (size_t)count, sizeof *order, by_address);
  for (int64_t j = 1; j < count; j++) {
    const char *end = (const char *)order[j - 1]->arrays[0] + order[j - 1]->n * order[j - 1]->size;
    if ((const char *)order[j]->arrays[0] < end) found = 1;
  }
  free(order);
  return found;
}

/* Update all parameters, one behind the other where they share memory. No parameter shares it with
 * its states or its gradient. */
void hg_follow(int64_t count, const job *jobs, int64_t threads) {
  share shares[MAX_THREADS];
  int64_t all = 0, begun = 0;
  for (int64_t j = 0; j < count; j++) all += jobs[j].n;
  if (threads > all / WORTH) threads = all / WORTH;
  if (threads > MAX_THREADS) threads = MAX_THREADS;
  if (threads < 1 || (threads > 1 && tied(count, jobs))) threads = 1;
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
