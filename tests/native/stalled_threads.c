/* The engine with threads that stop where a test says. This file takes the place of `engine.h` in the
 * text that is compiled: see test_threads.py. */
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* A worker stops when it comes to a step for the first time after `arm`, until `let_go`. */
static const char *_Atomic armed;
static _Atomic int64_t wanted, stopped, held, released, caller_waits, tasks_done, out_of_order;
static __thread int calls;

static void stop(void) {
  atomic_store(&held, 1);
  atomic_store(&stopped, 1);
  while (!atomic_load(&released)) usleep(50);
  atomic_store(&held, 0);
}

static void at_step(const char *step, int64_t worker) {
  const char *name = atomic_load(&armed);
  if (worker == 0 || calls || name == NULL || strcmp(step, name) != 0) return;
  if (atomic_compare_exchange_strong(&armed, &name, (const char *)NULL)) stop();
}
#define AT_STEP(step, worker) at_step(step, worker)

void arm(const char *step) {
  while (atomic_load(&held)) usleep(50); /* whoever was let go of may not know yet */
  atomic_store(&stopped, 0);
  atomic_store(&released, 0);
  atomic_store(&caller_waits, 0);
  atomic_store(&tasks_done, 0);
  atomic_store(&out_of_order, 0);
  atomic_store(&armed, step);
  atomic_store(&wanted, step != NULL);
}
void let_go(void) {
  atomic_store(&wanted, 0);
  atomic_store(&armed, NULL);
  atomic_store(&released, 1);
}
int64_t has_stopped(void) { return atomic_load(&stopped); }
int64_t count_done(void) { return atomic_load(&tasks_done); }
int64_t count_out_of_order(void) { return atomic_load(&out_of_order); }

/* The cores that the engine last let a thread run on, one bit each: at first and then. */
static uint64_t first_cores, last_cores;
static int note_affinity(pid_t thread, size_t bytes, const cpu_set_t *set) {
  first_cores = last_cores, last_cores = 0;
  for (int i = 0; i < 64; i++) last_cores |= (uint64_t)(CPU_ISSET(i, set) != 0) << i;
  return sched_setaffinity(thread, bytes, set);
}
#define sched_setaffinity note_affinity
uint64_t cores_at_first(void) { return first_cores; }
uint64_t cores_then(void) { return last_cores; }

/* A kernel whose task adds to its own counter, and looks whether all tasks of the phase before have
 * done so. If a worker is to stop, the caller's tasks wait until it has, and workers' tasks until the
 * caller does.
 *
 * P: counters of this phase, counters of the phase before. D: tasks of the phase before, runs so far.
 */
void count_task(char *const *P, const int64_t *D, int64_t q, const void *thread) {
  (void)thread;
  if (calls) atomic_store(&caller_waits, 1);
  while (atomic_load(&wanted) && !atomic_load(&stopped) && (calls || !atomic_load(&caller_waits)))
    usleep(20);
  _Atomic int64_t *own = (_Atomic int64_t *)P[0];
  const _Atomic int64_t *before = (const _Atomic int64_t *)P[1];
  for (int64_t i = 0; i < D[0]; i++)
    if (atomic_load(&before[i]) != D[1]) atomic_fetch_add(&out_of_order, 1);
  if (atomic_fetch_add(&own[q], 1) != D[1] - 1) atomic_fetch_add(&out_of_order, 1);
  atomic_fetch_add(&tasks_done, 1);
}

typedef int64_t (*runner)(void *, int64_t (*)(void *), void *);
int64_t call(runner run, void *program) {
  calls = 1;
  int64_t failed = run(program, NULL, NULL);
  calls = 0;
  return failed;
}
