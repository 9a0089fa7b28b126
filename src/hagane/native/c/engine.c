/* The part of the engine that every model shares: threads, phases, memory.
 *
 * A program is a list of phases. A phase is one kernel and a number of tasks, which the threads
 * share out: each takes from its own part, then from the others'. Phases follow one another
 * through a barrier. Counters of a barrier only grow; a thread waits for `threads * epoch`, and so
 * cannot mistake the barrier of an earlier run for that of its own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#define PAUSE() __builtin_ia32_pause()
#else
#define PAUSE() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#endif
#define MAX_THREADS 64
#define SPIN_BEFORE_YIELD 4000
#define SPIN_BEFORE_SLEEP 20000

typedef struct {
  char *scratch;
  volatile int64_t *failure;
  int64_t phase;
} hg_thread;
typedef void (*hg_kernel)(char *const *pointers, const int64_t *sizes, int64_t task,
                          const hg_thread *thread);

typedef struct {
  hg_kernel kernel;
  char *const *pointers;
  const int64_t *sizes;
  int64_t tasks;
  int64_t serial; /* run by the first thread alone, without a barrier before the next serial one */
} hg_phase;

typedef struct {
  _Atomic int64_t value;
  char pad[120];
} counter;

typedef struct {
  int64_t n_phases;
  int64_t threads;
  hg_phase *phases;
  counter *claims; /* [phase][thread] */
  counter *done;   /* [phase] */
  char *scratch[MAX_THREADS];
  int64_t scratch_bytes;
  int64_t epoch;
  volatile int64_t failure[2];
  int64_t *stamps; /* [phase + 1] nanoseconds, or null */
} hg_program;

/* ---- memory ---- */

#define HUGE ((size_t)2 << 20)

static _Atomic int64_t allocated;

/* Bytes that hg_allocate has given and hg_release has not taken back. */
int64_t hg_allocated(void) { return atomic_load(&allocated); }

/* Zeroed memory on 2 MiB pages where the system grants them; null if there is none. */
void *hg_allocate(size_t bytes) {
  if (bytes < HUGE) {
    void *small = NULL;
    if (posix_memalign(&small, 64, bytes + 64) != 0) return NULL;
    atomic_fetch_add(&allocated, (int64_t)bytes);
    return memset(small, 0, bytes + 64);
  }
  size_t rounded = (bytes + HUGE - 1) & ~(HUGE - 1);
  char *start = mmap(NULL, rounded + HUGE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return NULL;
  char *aligned = (char *)(((uintptr_t)start + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
  if (aligned > start) munmap(start, (size_t)(aligned - start));
  char *end = start + rounded + HUGE;
  if (end > aligned + rounded) munmap(aligned + rounded, (size_t)(end - aligned - rounded));
  madvise(aligned, rounded, MADV_HUGEPAGE);
  atomic_fetch_add(&allocated, (int64_t)bytes);
  return aligned;
}

void hg_release(void *memory, size_t bytes) {
  if (memory == NULL) return;
  atomic_fetch_sub(&allocated, (int64_t)bytes);
  if (bytes < HUGE)
    free(memory);
  else
    munmap(memory, (bytes + HUGE - 1) & ~(HUGE - 1));
}

/* ---- one program ---- */

void hg_destroy(hg_program *program) {
  if (program == NULL) return;
  for (int64_t i = 0; i < program->threads; i++)
    hg_release(program->scratch[i], (size_t)program->scratch_bytes + 4096);
  free(program->phases);
  free(program->claims);
  free(program->done);
  free(program);
}

hg_program *hg_create(int64_t n_phases, int64_t threads, int64_t scratch_bytes) {
  hg_program *program = calloc(1, sizeof *program);
  if (program == NULL) return NULL;
  if (threads < 1) threads = 1;
  if (threads > MAX_THREADS) threads = MAX_THREADS;
  program->n_phases = n_phases;
  program->threads = threads;
  program->scratch_bytes = scratch_bytes;
  program->phases = calloc((size_t)n_phases + 1, sizeof(hg_phase));
  size_t n_claims = (size_t)((n_phases + 1) * threads);
  program->claims = aligned_alloc(128, n_claims * sizeof(counter));
  program->done = aligned_alloc(128, (size_t)(n_phases + 1) * sizeof(counter));
  if (!program->phases || !program->claims || !program->done) {
    hg_destroy(program);
    return NULL;
  }
  memset(program->claims, 0, n_claims * sizeof(counter));
  memset(program->done, 0, (size_t)(n_phases + 1) * sizeof(counter));
  for (int64_t i = 0; i < threads; i++) {
    program->scratch[i] = hg_allocate((size_t)scratch_bytes + 4096);
    if (program->scratch[i] == NULL) {
      hg_destroy(program);
      return NULL;
    }
  }
  return program;
}

void hg_set_phase(hg_program *program, int64_t index, void *kernel, char *const *pointers,
                  const int64_t *sizes, int64_t tasks, int64_t serial) {
  program->phases[index] = (hg_phase){(hg_kernel)kernel, pointers, sizes, tasks, serial};
}

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void wait_for(_Atomic int64_t *value, int64_t target) {
  for (int spins = 0; atomic_load_explicit(value, memory_order_acquire) < target; spins++) {
    PAUSE();
    if (spins > SPIN_BEFORE_YIELD) sched_yield();
  }
}

static void run_part(hg_program *program, int64_t self, int64_t threads, int64_t epoch) {
  hg_thread thread = {program->scratch[self], program->failure, 0};
  for (int64_t i = 0; i < program->n_phases; i++) {
    const hg_phase *phase = &program->phases[i];
    thread.phase = i;
    if (threads == 1) {
      for (int64_t q = 0; q < phase->tasks; q++)
        phase->kernel(phase->pointers, phase->sizes, q, &thread);
    } else if (phase->serial) {
      if (self == 0)
        for (int64_t q = 0; q < phase->tasks; q++)
          phase->kernel(phase->pointers, phase->sizes, q, &thread);
      /* Others go on to the next parallel phase, and wait there for all serial ones before it. */
      int64_t last = i + 1 == program->n_phases || !program->phases[i + 1].serial;
      if (last) {
        if (self == 0) atomic_fetch_add_explicit(&program->done[i].value, threads, memory_order_acq_rel);
        else wait_for(&program->done[i].value, threads * epoch);
      }
    } else {
      counter *claims = program->claims + i * threads;
      for (int64_t turn = 0; turn < threads; turn++) {
        int64_t owner = self + turn < threads ? self + turn : self + turn - threads;
        int64_t low = phase->tasks * owner / threads, high = phase->tasks * (owner + 1) / threads;
        for (;;) {
          int64_t q = low + atomic_fetch_add_explicit(&claims[owner].value, 1, memory_order_relaxed);
          if (q >= high) break;
          phase->kernel(phase->pointers, phase->sizes, q, &thread);
        }
      }
      atomic_fetch_add_explicit(&program->done[i].value, 1, memory_order_acq_rel);
      wait_for(&program->done[i].value, threads * epoch);
    }
    if (self == 0 && program->stamps != NULL) program->stamps[i + 1] = now();
  }
}

/* ---- the pool ---- */

static struct {
  pthread_mutex_t lock; /* held while a program uses the workers */
  int64_t n_workers;
  _Atomic int32_t generation;
  _Atomic int32_t sleeping;
  _Atomic int64_t active; /* workers that have not finished the current program */
  hg_program *program;
  int64_t epoch;
  int32_t first; /* generation that new workers have seen */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *work(void *argument) {
  int64_t self = (int64_t)(intptr_t)argument;
  int32_t seen = pool.first;
  for (;;) {
    int spins = 0;
    while (atomic_load_explicit(&pool.generation, memory_order_acquire) == seen) {
      if (++spins < SPIN_BEFORE_SLEEP) {
        PAUSE();
      } else {
        atomic_fetch_add(&pool.sleeping, 1);
        if (atomic_load(&pool.generation) == seen)
          syscall(SYS_futex, &pool.generation, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
        atomic_fetch_sub(&pool.sleeping, 1);
      }
    }
    seen = atomic_load(&pool.generation);
    if (self < pool.program->threads) run_part(pool.program, self, pool.program->threads, pool.epoch);
    atomic_fetch_sub_explicit(&pool.active, 1, memory_order_acq_rel);
  }
  return NULL;
}

/* In a child process the workers are gone and the lock may be held by a thread that is not there. */
static void after_fork(void) {
  pthread_mutex_init(&pool.lock, NULL);
  pool.n_workers = 0;
  atomic_store(&pool.sleeping, 0);
  atomic_store(&pool.active, 0);
}

__attribute__((constructor)) static void register_fork(void) {
  pthread_atfork(NULL, NULL, after_fork);
}

static int start_workers(int64_t wanted) {
  pool.first = atomic_load(&pool.generation);
  while (pool.n_workers < wanted) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int failed = pthread_create(&thread, &attributes, work, (void *)(intptr_t)(pool.n_workers + 1));
    pthread_attr_destroy(&attributes);
    if (failed) return -1;
    pool.n_workers++;
  }
  return 0;
}

/* Run a program; -1 on success, else the index of the first phase that noted a failure. */
int64_t hg_run(hg_program *program) {
  program->failure[0] = 0;
  if (program->stamps != NULL) program->stamps[0] = now();
  int shared = program->threads > 1 && pthread_mutex_trylock(&pool.lock) == 0;
  if (shared && pool.n_workers < program->threads - 1 && start_workers(program->threads - 1) != 0) {
    pthread_mutex_unlock(&pool.lock);
    shared = 0;
  }
  if (!shared) {
    run_part(program, 0, 1, 0);
  } else {
    pool.program = program;
    pool.epoch = ++program->epoch;
    atomic_store(&pool.active, pool.n_workers);
    atomic_fetch_add_explicit(&pool.generation, 1, memory_order_seq_cst);
    if (atomic_load(&pool.sleeping) > 0)
      syscall(SYS_futex, &pool.generation, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
    run_part(program, 0, program->threads, program->epoch);
    /* No worker may read this program's claims once they are set back. */
    for (int spins = 0; atomic_load_explicit(&pool.active, memory_order_acquire) > 0; spins++) {
      PAUSE();
      if (spins > SPIN_BEFORE_YIELD) sched_yield();
    }
    int64_t n = program->n_phases * program->threads;
    for (int64_t i = 0; i < n; i++)
      atomic_store_explicit(&program->claims[i].value, 0, memory_order_relaxed);
    pthread_mutex_unlock(&pool.lock);
  }
  return program->failure[0] - 1;
}

int64_t hg_failure_value(const hg_program *program) { return program->failure[1]; }

/* Where to note the time after each phase: n_phases + 1 numbers, or null. */
void hg_set_stamps(hg_program *program, int64_t *stamps) { program->stamps = stamps; }
