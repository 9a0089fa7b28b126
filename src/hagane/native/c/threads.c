/* Running a program: its phases one after the other, the tasks of each claimed by threads. */

/* A run that threads share. It is in one of a few places that are never freed, so that a thread that
 * was taken away in the middle of looking may go on looking whenever it comes back.
 *
 * The tasks of the open phase lie in lanes, one for each thread that shares it. A lane is one word: the
 * first and the last task that nobody has claimed, and which threads may claim. A claim is a
 * compare-and-swap of that word; its maker holds the phase open, and only then reads
 * the rest. */
#define JOBS 16
#define TASK_BITS 25
#define TASK_MASK (((uint64_t)1 << TASK_BITS) - 1)

typedef struct {
  _Atomic uint64_t value;
  char pad[120];
} hg_lane;

typedef struct {
  hg_lane lanes[MAX_THREADS];
  _Atomic int64_t unfinished; /* tasks of the open phase */
  char pad[120];
  _Atomic int32_t moves;   /* its caller waits for it: a phase was opened, or there is none left */
  _Atomic int32_t waiting; /* whether it sleeps until then */
  _Atomic int32_t state;
  _Atomic int32_t threads, base; /* that the open phase is for: the caller, and workers from base + 1 on */
  hg_program *program;
  int64_t phase; /* which is open */
  _Atomic int32_t taken;
  pthread_t caller; /* the thread that has taken it */
} hg_job;

enum { GOES_ON, ASKS, OVER }; /* states of a job */

static hg_job jobs[JOBS];

/* A hook by which tests stop threads at each step. */
#ifndef AT_STEP
#define AT_STEP(step, worker)
#endif

static uint64_t lane_of(int64_t threads, int64_t base, int64_t first, int64_t end) {
  return (uint64_t)(threads - 1) << 57 | (uint64_t)base << 50 | (uint64_t)first << TASK_BITS |
         (uint64_t)end;
}

/* Claim a task of a lane; -1 if there is none for this thread.
 *
 * worker: 0 for the caller of the job, else the number of the worker.
 * self: is told the thread's number within the job.
 * last: take the last one, not the first.
 */
static int64_t claim(hg_lane *lane, int64_t worker, int last, int64_t *self) {
  uint64_t old = atomic_load_explicit(&lane->value, memory_order_relaxed);
  for (;;) {
    int64_t first = (int64_t)(old >> TASK_BITS & TASK_MASK), end = (int64_t)(old & TASK_MASK);
    int64_t threads = (int64_t)(old >> 57) + 1, base = (int64_t)(old >> 50 & 127);
    if (first >= end) return -1;
    *self = worker == 0 ? 0 : worker - base;
    if (*self >= threads || (*self < 1 && worker != 0)) return -1;
    uint64_t fresh = last ? old - 1 : old + ((uint64_t)1 << TASK_BITS);
    if (atomic_compare_exchange_weak_explicit(&lane->value, &old, fresh, memory_order_acq_rel,
                                              memory_order_relaxed))
      return last ? end - 1 : first;
  }
}

static void wake_workers(int64_t base, int64_t threads);
static void send_late(void);

static void wake_caller(hg_job *job) {
  atomic_fetch_add(&job->moves, 1);
  if (atomic_load(&job->waiting))
    syscall(SYS_futex, &job->moves, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static void set_state(hg_job *job, int32_t state) {
  atomic_store(&job->state, state);
  wake_caller(job);
}

static int64_t threads_now(const hg_program *program);

/* Let threads claim the tasks of a phase; 0 if one thread has to do them all. Once it is open, others
 * may finish it, the run and the program before this function returns. */
static int open_phase(hg_job *job, int64_t index) {
  const hg_program *program = job->program;
  int64_t tasks = program->phases[index].all_tasks, threads = threads_now(program);
  if (threads > tasks) threads = tasks;
  if (threads < 2 || tasks > (int64_t)TASK_MASK) return 0;
  int64_t base = atomic_load_explicit(&job->base, memory_order_relaxed);
  job->phase = index;
  atomic_store_explicit(&job->threads, (int32_t)threads, memory_order_relaxed);
  atomic_store_explicit(&job->unfinished, tasks, memory_order_relaxed);
  for (int64_t i = 0; i < threads; i++)
    atomic_store_explicit(
        &job->lanes[i].value,
        lane_of(threads, base, tasks * i / threads, tasks * (i + 1) / threads),
        memory_order_release);
  wake_caller(job);
  wake_workers(base, threads);
  return 1;
}

/* Go through a program until a phase is open for others, or there is none left.
 *
 * job: of the threads that share it; null if there is one thread.
 */
static int32_t proceed(hg_program *program, hg_job *job, int64_t self) {
  hg_thread thread = {program->scratch[self], program->failure, 0};
  HG_ENTER(program->memory);
  for (;;) {
    int64_t at = program->at;
    const hg_body *body = program->depth > 0 ? &program->bodies[program->depth - 1] : NULL;
    if (body != NULL && at == body->end) {
      if (!program->phases[body->phase].control->loops) leave_body(program);
      else if (!turn(program, body->phase, self)) return ASKS;
      continue;
    }
    if (at >= program->n_phases) return OVER;
    const hg_phase *phase = &program->phases[at];
    if (phase->control != NULL) {
      if (!turn(program, at, self)) return ASKS;
      continue;
    }
    if (job != NULL && program->alone == 0 && !phase->serial) {
      if (open_phase(job, at)) return GOES_ON;
      if (self != 0) return ASKS; /* the caller shall not depend on a worker */
    }
    thread.phase = at;
    thread.scratch = program->scratch[self]; /* a loop may have made it larger */
    for (int64_t q = 0; q < phase->all_tasks; q++) run_task(phase, q, &thread);
    charge(program, at, 1);
    program->at = at + 1;
  }
}

/* Go on where nothing is being done: behind a phase of which the last task is finished, or at the start. */
static void advance(hg_job *job, int64_t self) {
  AT_STEP("advance", self);
  int32_t state = proceed(job->program, job, self);
  if (state != GOES_ON) set_state(job, state);
}

/* Do tasks of the open phase, and of phases that this opens; 0 if there were none. */
static int help(hg_job *job, int64_t worker) {
  int did = 0;
  for (;;) {
    hg_thread thread = {NULL, NULL, 0};
    const hg_phase *phase = NULL;
    int64_t self = 0, finished = 0;
    int64_t lanes = atomic_load_explicit(&job->threads, memory_order_relaxed);
    int64_t own = worker - (worker == 0 ? 0 : atomic_load_explicit(&job->base, memory_order_relaxed));
    if (own < 0 || own >= lanes) return did;
    for (int64_t i = 0; i < lanes; i++) {
      hg_lane *lane = &job->lanes[own + i < lanes ? own + i : own + i - lanes];
      for (;;) {
        AT_STEP("claim", worker);
        int64_t q = claim(lane, worker, i > 0, &self);
        if (q < 0) break;
        AT_STEP("task", worker);
        if (phase == NULL) {
          hg_program *program = job->program;
          phase = &program->phases[job->phase];
          thread = (hg_thread){program->scratch[self], program->failure, job->phase};
        }
        run_task(phase, q, &thread);
        finished++;
        if (worker == 0) send_late();
      }
    }
    if (finished == 0) return did;
    did = 1;
    AT_STEP("finish", worker);
    if (atomic_fetch_sub_explicit(&job->unfinished, finished, memory_order_acq_rel) != finished) {
      AT_STEP("look", worker);
      return did;
    }
    hg_program *program = job->program;
    charge(program, job->phase, 1);
    program->at++;
    advance(job, self);
  }
}
