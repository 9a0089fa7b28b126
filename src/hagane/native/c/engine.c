/* The part of the engine that every model shares: threads, phases, control, memory.
 *
 * A program is a list of phases. A phase is one kernel and a number of tasks, which the threads
 * share out: each takes from its own part, then from the others'. Tasks may also clear borders.
 * Phases follow one another through a barrier. Counters only grow: each thread counts how often it came to a phase, and so
 * knows where the counters stood before and where they will stand when all are through.
 *
 * A phase may be a loop or a branch instead; the phases of its bodies follow it, and it runs them.
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

/* Pointers of kernels to a value that lies elsewhere in each turn of a loop. */
typedef struct {
  char **slot;
  int64_t offset;
} hg_patch;

/* A value that a turn reads as the one before left it. Two places take turns: the result's, and a
 * spare one; the first turn reads the initial value where it is. */
typedef struct {
  const hg_patch *before; /* who reads what was left */
  int64_t n_before;
  const hg_patch *after; /* who writes what is left */
  int64_t n_after;
  int64_t start, first, second; /* which of the phase's pointers: initial value, result, spare */
  int64_t bytes;
  char *now, *next;
} hg_carried;

/* A value of which each turn reads or writes one slice. */
typedef struct {
  const hg_patch *patches;
  int64_t n_patches;
  int64_t base;        /* which of the phase's pointers; below 0: `memory`, which grows */
  int64_t start, step; /* bytes from there to the first slice, and from one to the next */
  char *memory;
  int64_t room; /* slices for which there is memory */
} hg_scanned;

/* What makes a phase a loop or a branch. Indices are of the phase's pointers, -1 for none. The
 * phases of the body lie between the phase and `end`; of a branch with a true condition between it
 * and `otherwise`, of one with a false one between that and `end`. */
typedef struct {
  int64_t loops;
  int64_t otherwise, end;
  int64_t turns, limit; /* the most turns: a number, or -1 and perhaps where it lies */
  int64_t going;        /* whether to begin */
  int64_t condition;    /* whether to go on, or which body to run */
  int64_t count;        /* where the body reads the number of the turn */
  int64_t n_carried;
  hg_carried *carried;
  int64_t n_scanned;
  hg_scanned *scanned;
  int64_t turn; /* the number of the turn; below 0 while none is being made */
  int64_t made; /* turns of the last time */
  int64_t verdict;
} hg_control;

/* Planes of pixels whose surroundings are set to one byte while a kernel writes the pixels. */
#define BORDER_AXES 4
#define BORDER_TASK_BYTES 16384
typedef struct hg_border {
  struct hg_border *next;
  char *start;
  int64_t planes, step, plane; /* bytes from one plane to the next, and of one */
  int64_t first, run, fill;    /* bytes before the first pixel, of pixels in a row; the byte */
  int64_t axes, counts[BORDER_AXES], strides[BORDER_AXES]; /* loops over the runs of a plane */
  int64_t planes_of_task, tasks;
} hg_border;

typedef struct {
  hg_kernel kernel;
  char *const *pointers;
  const int64_t *sizes;
  int64_t tasks;
  int64_t serial; /* run by the first thread alone, without a barrier before the next serial one */
  hg_control *control;
  hg_border *borders;
  int64_t all_tasks; /* with those of the borders */
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
  int64_t *epochs; /* [thread][phase]: how often the thread has come to the phase with others */
  int64_t epochs_stride;
  char *scratch[MAX_THREADS];
  int64_t scratch_bytes;
  volatile int64_t failure[2];
  int64_t *times; /* [2][phase]: nanoseconds, and how often it ran; or null */
  int64_t mark;   /* when the last phase ended */
  const volatile int64_t *stop; /* once it is not 0, loops make no other turn; or null */
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

static void forget_grown(hg_control *control) {
  for (int64_t i = 0; control != NULL && i < control->n_scanned; i++) {
    free(control->scanned[i].memory);
    control->scanned[i].memory = NULL, control->scanned[i].room = 0;
  }
}

static void forget_borders(hg_phase *phase) {
  for (hg_border *border = phase->borders, *next; border != NULL; border = next) {
    next = border->next;
    free(border);
  }
  phase->borders = NULL;
}

void hg_destroy(hg_program *program) {
  if (program == NULL) return;
  for (int64_t i = 0; i < program->threads; i++)
    hg_release(program->scratch[i], (size_t)program->scratch_bytes + 4096);
  for (int64_t i = 0; program->phases != NULL && i < program->n_phases; i++) {
    forget_grown(program->phases[i].control);
    forget_borders(&program->phases[i]);
  }
  free(program->phases);
  free(program->claims);
  free(program->done);
  free(program->epochs);
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
  program->epochs_stride = (n_phases + 15) / 16 * 16 + 16; /* no two threads in one cache line */
  program->epochs = calloc((size_t)(program->epochs_stride * threads), sizeof(int64_t));
  if (!program->phases || !program->claims || !program->done || !program->epochs) {
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

/* Say what a phase is, also in the place of what it was; not while the program runs. */
void hg_set_phase(hg_program *program, int64_t index, void *kernel, char *const *pointers,
                  const int64_t *sizes, int64_t tasks, int64_t serial) {
  /* What was counted of it depends on the number of tasks. */
  for (int64_t i = 0; i < program->threads; i++) {
    atomic_store(&program->claims[index * program->threads + i].value, 0);
    program->epochs[i * program->epochs_stride + index] = 0;
  }
  atomic_store(&program->done[index].value, 0);
  forget_grown(program->phases[index].control);
  forget_borders(&program->phases[index]);
  program->phases[index] =
      (hg_phase){(hg_kernel)kernel, pointers, sizes, tasks, serial, NULL, NULL, tasks};
}

/* Make a phase a loop or a branch. The tables are the caller's, but for memory that grew. */
void hg_set_control(hg_program *program, int64_t index, hg_control *control) {
  program->phases[index].control = control;
}

/* Let a phase that is no loop or branch also clear a border; -1 if there is no memory for it.
 *
 * numbers: planes, step, plane, first, run, fill, then the count and stride of each loop.
 */
int64_t hg_add_border(hg_program *program, int64_t index, char *start, const int64_t *numbers,
                      int64_t axes) {
  hg_border *border = calloc(1, sizeof *border);
  if (border == NULL || axes > BORDER_AXES) {
    free(border);
    return -1;
  }
  *border = (hg_border){.start = start, .planes = numbers[0], .step = numbers[1],
                        .plane = numbers[2], .first = numbers[3], .run = numbers[4],
                        .fill = numbers[5], .axes = axes};
  int64_t runs = 1;
  for (int64_t k = 0; k < axes; k++) {
    border->counts[k] = numbers[6 + 2 * k];
    border->strides[k] = numbers[7 + 2 * k];
    runs *= border->counts[k];
  }
  int64_t bytes = border->plane - runs * border->run; /* of one plane's border */
  border->planes_of_task = 1 + BORDER_TASK_BYTES / (bytes + 1);
  border->tasks = (border->planes + border->planes_of_task - 1) / border->planes_of_task;
  hg_phase *phase = &program->phases[index];
  border->next = phase->borders;
  phase->borders = border;
  phase->all_tasks += border->tasks;
  return 0;
}

static void clear_border(const hg_border *border, int64_t task) {
  int64_t from = task * border->planes_of_task, to = from + border->planes_of_task;
  if (to > border->planes) to = border->planes;
  int64_t runs = 1;
  for (int64_t k = 0; k < border->axes; k++) runs *= border->counts[k];
  for (int64_t p = from; p < to; p++) {
    char *at = border->start + p * border->step, *end = at + border->plane;
    char *pixels = at + border->first;
    int64_t index[BORDER_AXES] = {0};
    for (int64_t r = 0; r < runs; r++) {
      memset(at, (int)border->fill, (size_t)(pixels - at));
      at = pixels + border->run;
      for (int64_t k = border->axes - 1; k >= 0; k--) {
        pixels += border->strides[k];
        if (++index[k] < border->counts[k]) break;
        pixels -= border->strides[k] * border->counts[k];
        index[k] = 0;
      }
    }
    memset(at, (int)border->fill, (size_t)(end - at));
  }
}

static void run_task(const hg_phase *phase, int64_t q, const hg_thread *thread) {
  if (q < phase->tasks) {
    phase->kernel(phase->pointers, phase->sizes, q, thread);
    return;
  }
  q -= phase->tasks;
  const hg_border *border = phase->borders;
  for (; q >= border->tasks; border = border->next) q -= border->tasks;
  clear_border(border, q);
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

/* Note the time since the last phase ended; the first thread does. */
static void charge(hg_program *program, int64_t index, int64_t runs) {
  if (program->times == NULL) return;
  int64_t t = now();
  program->times[index] += t - program->mark;
  program->times[program->n_phases + index] += runs;
  program->mark = t;
}

/* ---- control ---- */

static void point(const hg_patch *patches, int64_t n, char *start) {
  for (int64_t i = 0; i < n; i++) *patches[i].slot = start + patches[i].offset;
}

/* Begin a loop, or end one of its turns; 0 if there is no other. */
static int64_t next_turn(hg_program *program, int64_t index) {
  char *const *pointers = program->phases[index].pointers;
  hg_control *control = program->phases[index].control;
  int64_t read; /* which pointer tells whether to go on */
  if (control->turn < 0) {
    control->turn = 0;
    read = control->going;
    for (int64_t i = 0; i < control->n_carried; i++) {
      hg_carried *value = &control->carried[i];
      value->now = pointers[value->start], value->next = pointers[value->first];
    }
  } else {
    control->turn++;
    read = control->condition;
    for (int64_t i = 0; i < control->n_carried; i++) {
      hg_carried *value = &control->carried[i];
      char *old = value->now;
      value->now = value->next;
      value->next = control->turn == 1 ? pointers[value->second] : old;
    }
  }
  int64_t turn = control->turn, limit = INT64_MAX;
  if (control->turns >= 0) limit = control->turns;
  if (control->limit >= 0) limit = *(const int64_t *)pointers[control->limit];
  int stopped = program->failure[0] != 0 || (program->stop != NULL && *program->stop != 0);
  int going = !stopped && turn < limit && (read < 0 || *pointers[read]);
  for (int64_t i = 0; going && i < control->n_scanned; i++) {
    hg_scanned *value = &control->scanned[i];
    char *base = value->base < 0 ? value->memory : pointers[value->base];
    if (value->base < 0 && turn >= value->room) {
      int64_t room = value->room < 8 ? 16 : 2 * value->room;
      base = realloc(value->memory, (size_t)(room * value->step) + 64);
      if (base == NULL) {
        program->failure[0] = index + 1, program->failure[1] = room;
        going = 0;
        break;
      }
      value->memory = base, value->room = room;
    }
    point(value->patches, value->n_patches, base + value->start + turn * value->step);
  }
  if (!going) {
    for (int64_t i = 0; i < control->n_carried; i++) {
      hg_carried *value = &control->carried[i];
      char *result = pointers[value->first];
      if (value->now != result) memcpy(result, value->now, (size_t)value->bytes);
    }
    control->made = turn;
    control->turn = -1;
    return 0;
  }
  if (control->count >= 0) *(int64_t *)pointers[control->count] = turn;
  for (int64_t i = 0; i < control->n_carried; i++) {
    hg_carried *value = &control->carried[i];
    point(value->before, value->n_before, value->now);
    point(value->after, value->n_after, value->next);
  }
  return 1;
}

static int64_t judge(hg_program *program, int64_t index) {
  const hg_phase *phase = &program->phases[index];
  int64_t verdict = phase->control->loops ? next_turn(program, index)
                                          : *phase->pointers[phase->control->condition] != 0;
  charge(program, index, verdict);
  return verdict;
}

/* Whether to run the body: the first thread judges, and moves the pointers, while the others wait. */
static int64_t decide(hg_program *program, int64_t index, int64_t self, int64_t threads) {
  hg_control *control = program->phases[index].control;
  if (threads == 1) return judge(program, index);
  _Atomic int64_t *come = &program->claims[index * threads].value;
  _Atomic int64_t *open = &program->done[index].value;
  int64_t epoch = ++program->epochs[self * program->epochs_stride + index];
  if (self == 0) {
    wait_for(come, (threads - 1) * epoch);
    control->verdict = judge(program, index);
    atomic_store_explicit(open, epoch, memory_order_release);
  } else {
    atomic_fetch_add_explicit(come, 1, memory_order_acq_rel);
    wait_for(open, epoch);
  }
  return control->verdict;
}

static void run_range(hg_program *program, int64_t from, int64_t to, int64_t self, int64_t threads);

static void run_control(hg_program *program, int64_t index, int64_t self, int64_t threads) {
  const hg_control *control = program->phases[index].control;
  if (control->loops) {
    while (decide(program, index, self, threads))
      run_range(program, index + 1, control->end, self, threads);
  } else if (decide(program, index, self, threads)) {
    run_range(program, index + 1, control->otherwise, self, threads);
  } else {
    run_range(program, control->otherwise, control->end, self, threads);
  }
}

/* ---- phases ---- */

static void run_alone(hg_program *program, int64_t index, hg_thread *thread) {
  const hg_phase *phase = &program->phases[index];
  if (phase->control != NULL) {
    run_control(program, index, 0, 1);
    return;
  }
  thread->phase = index;
  for (int64_t q = 0; q < phase->all_tasks; q++) run_task(phase, q, thread);
  charge(program, index, 1);
}

static void run_shared(hg_program *program, int64_t index, int64_t self, int64_t threads,
                       hg_thread *thread) {
  const hg_phase *phase = &program->phases[index];
  counter *claims = program->claims + index * threads;
  int64_t epoch = ++program->epochs[self * program->epochs_stride + index];
  thread->phase = index;
  for (int64_t turn = 0; turn < threads; turn++) {
    int64_t owner = self + turn < threads ? self + turn : self + turn - threads;
    int64_t low = phase->all_tasks * owner / threads;
    int64_t high = phase->all_tasks * (owner + 1) / threads;
    /* Each time, the threads claim the owner's tasks and then one each that is not there. */
    int64_t before = (epoch - 1) * (high - low + threads);
    for (;;) {
      int64_t q =
          low - before + atomic_fetch_add_explicit(&claims[owner].value, 1, memory_order_relaxed);
      if (q >= high) break;
      run_task(phase, q, thread);
    }
  }
  atomic_fetch_add_explicit(&program->done[index].value, 1, memory_order_acq_rel);
  wait_for(&program->done[index].value, threads * epoch);
  if (self == 0) charge(program, index, 1);
}

static void run_range(hg_program *program, int64_t from, int64_t to, int64_t self, int64_t threads) {
  hg_thread thread = {program->scratch[self], program->failure, 0};
  int64_t next;
  for (int64_t i = from; i < to; i = next) {
    const hg_phase *phase = &program->phases[i];
    next = phase->control == NULL ? i + 1 : phase->control->end;
    if (threads == 1) {
      run_alone(program, i, &thread);
    } else if (phase->serial) {
      if (self == 0) run_alone(program, i, &thread);
      /* Others go on to the next parallel phase, and wait there for all serial ones before it. */
      if (next < to && program->phases[next].serial) continue;
      int64_t epoch = ++program->epochs[self * program->epochs_stride + i];
      _Atomic int64_t *done = &program->done[i].value;
      /* Of a serial loop, which the first thread runs alone, nobody else uses the counter. */
      if (self == 0) atomic_fetch_add_explicit(done, threads, memory_order_acq_rel);
      else wait_for(done, threads * epoch);
    } else if (phase->control != NULL) {
      run_control(program, i, self, threads);
    } else {
      run_shared(program, i, self, threads, &thread);
    }
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
    if (self < pool.program->threads)
      run_range(pool.program, 0, pool.program->n_phases, self, pool.program->threads);
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
  program->mark = program->times == NULL ? 0 : now();
  int shared = program->threads > 1 && pthread_mutex_trylock(&pool.lock) == 0;
  if (shared && pool.n_workers < program->threads - 1 && start_workers(program->threads - 1) != 0) {
    pthread_mutex_unlock(&pool.lock);
    shared = 0;
  }
  if (!shared) {
    run_range(program, 0, program->n_phases, 0, 1);
  } else {
    pool.program = program;
    atomic_store(&pool.active, pool.n_workers);
    atomic_fetch_add_explicit(&pool.generation, 1, memory_order_seq_cst);
    if (atomic_load(&pool.sleeping) > 0)
      syscall(SYS_futex, &pool.generation, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
    run_range(program, 0, program->n_phases, 0, program->threads);
    /* No worker may look at this program once its caller is free to change or destroy it. */
    for (int spins = 0; atomic_load_explicit(&pool.active, memory_order_acquire) > 0; spins++) {
      PAUSE();
      if (spins > SPIN_BEFORE_YIELD) sched_yield();
    }
    pthread_mutex_unlock(&pool.lock);
  }
  return program->failure[0] - 1;
}

int64_t hg_failure_value(const hg_program *program) { return program->failure[1]; }

/* Where to add up what each phase takes, and how often it runs: twice n_phases numbers, or null.
 * And what ends loops once it is not 0, or null. */
void hg_watch(hg_program *program, int64_t *times, const int64_t *stop) {
  program->times = times;
  program->stop = stop;
}
