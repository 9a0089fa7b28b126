/* The threads of a process: callers of programs, and workers that help them. */

#define SPIN_NS 100000 /* how long a thread that waits looks before it sleeps */
#define PAUSES 32      /* between looks at the clock */
/* A wait for tasks that is longer than this, and in which workers were kept from working, says that there
 * may be more threads than cores. Nothing is shared for twice as long, and for longer and longer, up to so many
 * times as long, if it happens again soon. A single one may be the doing of the host of a virtual machine. */
#ifndef STALL_NS
#define STALL_NS 300000
#endif
#define HOLD 20
#define LONGEST_HOLD_NS 1000000000
/* A worker that has not begun so long after it was woken waits for the core of the thread that woke it. */
#define LATE_NS 50000

typedef struct {
  _Atomic int32_t asleep;
  _Atomic int32_t tid; /* the system's number of the thread, 0 before it begins */
  _Atomic int64_t woken; /* when, and it has not begun since; else 0 */
  pthread_t thread;
  char pad[104];
} hg_worker;

static struct {
  pthread_mutex_t lock; /* held while workers are started */
  _Atomic int64_t n_workers;
  _Atomic int64_t runs; /* callers that share their work, or would if there were fewer of them */
  _Atomic uint32_t shared; /* jobs that may have an open phase, one bit each */
  _Atomic int64_t due; /* how many were woken and may not have begun */
  _Atomic int64_t crowded; /* until when threads get too little time to share anything */
  _Atomic int64_t held, times; /* until when that was last, and how many times as long as the wait */
  int64_t cores;
  hg_worker workers[MAX_THREADS];
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- workers ---- */

/* Whether there may be a task for a worker. */
static int sees_tasks(int64_t worker) {
  uint32_t shared = atomic_load(&pool.shared);
  for (int64_t j = 0; j < JOBS; j++) {
    if (!(shared >> j & 1)) continue;
    int64_t base = atomic_load(&jobs[j].base), threads = atomic_load(&jobs[j].threads);
    if (worker <= base || worker >= base + threads) continue;
    for (int64_t i = 0; i < threads; i++) {
      uint64_t word = atomic_load(&jobs[j].lanes[i].value);
      if ((word >> TASK_BITS & TASK_MASK) < (word & TASK_MASK)) return 1;
    }
  }
  return 0;
}

static int help_any(int64_t worker) {
  uint32_t shared = atomic_load_explicit(&pool.shared, memory_order_acquire);
  int did = 0;
  for (int64_t j = 0; shared >> j != 0; j++)
    if (shared >> j & 1) did |= help(&jobs[j], worker);
  return did;
}

/* Whoever sets this to 0 takes the worker off the count of the late. */
static int64_t settle_wake(hg_worker *worker) {
  int64_t woken = atomic_exchange(&worker->woken, 0);
  if (woken != 0) atomic_fetch_sub(&pool.due, 1);
  return woken;
}

static void *work(void *argument) {
  int64_t worker = (int64_t)(intptr_t)argument;
  _Atomic int32_t *asleep = &pool.workers[worker].asleep;
  atomic_store(&pool.workers[worker].tid, (int32_t)syscall(SYS_gettid));
  int64_t since = now();
  for (;;) {
    int did = 0;
    for (int i = 0; i < PAUSES && !did; i++) {
      PAUSE();
      did = help_any(worker);
    }
    int64_t t = now();
    if (did) since = t;
    int alone = atomic_load_explicit(&pool.runs, memory_order_relaxed) < pool.cores;
    if (t - since < SPIN_NS && alone && t > atomic_load_explicit(&pool.crowded, memory_order_relaxed))
      continue;
    AT_STEP("sleep", worker);
    atomic_store(asleep, 1);
    if (!sees_tasks(worker)) syscall(SYS_futex, asleep, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
    AT_STEP("woken", worker);
    atomic_store(asleep, 0);
    settle_wake(&pool.workers[worker]);
    since = now();
  }
  return NULL;
}

static void wake_workers(int64_t base, int64_t threads) {
  for (int64_t i = base + 1; i < base + threads; i++) {
    _Atomic int32_t *asleep = &pool.workers[i].asleep;
    if (!atomic_load(asleep)) continue;
    if (atomic_exchange(&pool.workers[i].woken, now()) == 0) atomic_fetch_add(&pool.due, 1);
    if (atomic_exchange(asleep, 0)) syscall(SYS_futex, asleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    else settle_wake(&pool.workers[i]); /* it woke by itself */
  }
}

/* Move a thread that waits for this core to another one; it may return later. */
static void send_away(int32_t tid) {
  cpu_set_t allowed, others;
  int core = sched_getcpu();
  if (core < 0 || sched_getaffinity(tid, sizeof allowed, &allowed) != 0) return;
  others = allowed;
  CPU_CLR(core, &others);
  if (CPU_COUNT(&others) == 0 || CPU_EQUAL(&others, &allowed)) return;
  if (sched_setaffinity(tid, sizeof others, &others) == 0) sched_setaffinity(tid, sizeof allowed, &allowed);
}

/* Systems take the core of an idle virtual machine for occupied, and let a worker wait for the core of the
 * caller, which does not give it up. The caller sends such workers to other cores. */
static void send_late(void) {
  if (atomic_load_explicit(&pool.due, memory_order_relaxed) == 0) return;
  int64_t time = now(), workers = atomic_load_explicit(&pool.n_workers, memory_order_acquire);
  for (int64_t i = 1; i <= workers; i++) {
    hg_worker *worker = &pool.workers[i];
    int64_t woken = atomic_load_explicit(&worker->woken, memory_order_relaxed);
    if (woken == 0 || time - woken < LATE_NS || settle_wake(worker) == 0) continue;
    int32_t tid = atomic_load(&worker->tid);
    if (tid != 0) send_away(tid);
  }
}

/* Have so many workers; 0 if there cannot be. */
static int have_workers(int64_t wanted) {
  if (atomic_load_explicit(&pool.n_workers, memory_order_acquire) >= wanted) return 1;
  pthread_mutex_lock(&pool.lock);
  if (pool.cores == 0) {
    cpu_set_t set;
    pool.cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  }
  int failed = 0;
  while (!failed && pool.n_workers < wanted) {
    int64_t number = pool.n_workers + 1;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    failed = pthread_create(&pool.workers[number].thread, &attributes, work,
                            (void *)(intptr_t)number);
    pthread_attr_destroy(&attributes);
    if (!failed) atomic_store_explicit(&pool.n_workers, number, memory_order_release);
  }
  pthread_mutex_unlock(&pool.lock);
  return !failed;
}

/* In a child process the workers are gone and the lock may be held by a thread that is not there. */
static void after_fork(void) {
  pthread_mutex_init(&pool.lock, NULL);
  atomic_store(&pool.n_workers, 0);
  int64_t runs = 0;
  atomic_store(&pool.shared, 0);
  atomic_store(&pool.due, 0);
  for (int64_t i = 0; i < MAX_THREADS; i++) {
    atomic_store(&pool.workers[i].asleep, 0);
    atomic_store(&pool.workers[i].woken, 0);
    atomic_store(&pool.workers[i].tid, 0);
  }
  for (int64_t j = 0; j < JOBS; j++) {
    for (int64_t i = 0; i < MAX_THREADS; i++) atomic_store(&jobs[j].lanes[i].value, 0);
    int own = atomic_load(&jobs[j].taken) && pthread_equal(jobs[j].caller, pthread_self());
    atomic_store(&jobs[j].taken, own);
    runs += own;
  }
  atomic_store(&pool.runs, runs);
}

__attribute__((constructor)) static void register_fork(void) {
  pthread_atfork(NULL, NULL, after_fork);
}

/* ---- runs ---- */

/* How many threads may share a phase now. Callers that are many enough keep the cores busy by themselves. */
static int64_t threads_now(const hg_program *program) {
  int64_t until = atomic_load_explicit(&pool.crowded, memory_order_relaxed);
  if (until != 0) {
    if (now() < until) return 1;
    atomic_store_explicit(&pool.crowded, 0, memory_order_relaxed);
  }
  int64_t runs = atomic_load_explicit(&pool.runs, memory_order_relaxed);
  if (runs <= 1) return program->threads;
  int64_t room = pool.cores > program->threads ? pool.cores : program->threads;
  int64_t threads = room / runs;
  return threads < 1 ? 1 : threads < program->threads ? threads : program->threads;
}

/* Whether to share a program with the workers. A small one is shared if it runs again and again, and
 * only while they are awake; else they are woken for the next time. */
static int finds_workers(hg_program *program) {
  int64_t wanted = program->threads - 1;
  if (!program->small) return have_workers(wanted);
  int64_t time = now();
  program->often = time - program->called < SOON_NS ? program->often + 1 : 0;
  program->called = time;
  if (program->often < OFTEN || threads_now(program) == 1) return 0;
  int awake = atomic_load_explicit(&pool.n_workers, memory_order_acquire) >= wanted;
  for (int64_t i = 1; awake && i <= wanted; i++) awake = !atomic_load(&pool.workers[i].asleep);
  if (awake) return 1;
  program->often = 0;
  if (have_workers(wanted)) wake_workers(0, program->threads);
  return 0;
}

/* The first of the workers that shall help: the ones with the fewest other runs. */
static int64_t choose_base(int64_t threads) {
  uint32_t shared = atomic_load(&pool.shared);
  int64_t best = 0, fewest = INT64_MAX, workers = atomic_load(&pool.n_workers);
  for (int64_t base = 0; shared != 0 && base + threads - 1 <= workers; base += threads - 1) {
    int64_t others = 0;
    for (int64_t j = 0; j < JOBS; j++) {
      int64_t start = atomic_load(&jobs[j].base), end = start + atomic_load(&jobs[j].threads) - 1;
      others += (shared >> j & 1) && start < base + threads - 1 && base < end;
    }
    if (others < fewest) fewest = others, best = base;
  }
  return best;
}

/* A place for a run to be shared; null if there is none. */
static hg_job *take_job(hg_program *program, int64_t runs) {
  if (!finds_workers(program)) return NULL;
  int64_t wanted = runs * (program->threads - 1);
  if (wanted > pool.cores - 1) wanted = pool.cores - 1;
  if (wanted > MAX_THREADS - 1) wanted = MAX_THREADS - 1;
  if (runs > 1) have_workers(wanted);
  for (int64_t j = 0; j < JOBS; j++) {
    int32_t free = 0;
    if (!atomic_compare_exchange_strong(&jobs[j].taken, &free, 1)) continue;
    jobs[j].program = program;
    jobs[j].caller = pthread_self();
    atomic_store(&jobs[j].base, (int32_t)choose_base(program->threads));
    atomic_store(&jobs[j].threads, 0);
    atomic_store(&jobs[j].state, GOES_ON);
    atomic_fetch_or(&pool.shared, (uint32_t)1 << j);
    return &jobs[j];
  }
  return NULL;
}

static void leave_job(hg_job *job) {
  atomic_fetch_and(&pool.shared, ~((uint32_t)1 << (job - jobs)));
  atomic_store(&job->taken, 0);
}

/* Nanoseconds that the workers of a job have had on a core. */
static int64_t worked(const hg_job *job) {
  int64_t base = atomic_load(&job->base), threads = atomic_load(&job->threads), sum = 0;
  for (int64_t i = base + 1; i < base + threads; i++) {
    clockid_t clock;
    struct timespec t;
    if (pthread_getcpuclockid(pool.workers[i].thread, &clock) != 0) continue;
    if (clock_gettime(clock, &t) == 0) sum += (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
  }
  return sum;
}

/* Wait until a phase is opened or the run is over. */
static void wait_for(hg_job *job, int32_t seen) {
  int64_t began = now(), spin = atomic_load(&pool.crowded) ? 0 : SPIN_NS;
  do {
    for (int i = 0; i < PAUSES; i++) {
      PAUSE();
      if (atomic_load_explicit(&job->moves, memory_order_acquire) != seen) return;
    }
  } while (now() - began < spin);
  int64_t before = worked(job);
  began = now();
  atomic_store(&job->waiting, 1);
  while (atomic_load(&job->moves) == seen &&
         syscall(SYS_futex, &job->moves, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0) == 0) {
  }
  atomic_store(&job->waiting, 0);
  int64_t t = now(), waited = t - began;
  if (waited < STALL_NS || worked(job) - before > waited / 2) return;
  int64_t again = began - atomic_load(&pool.held) < waited * HOLD;
  int64_t times = again ? 2 * atomic_load(&pool.times) : 2;
  if (times > HOLD) times = HOLD;
  int64_t hold = waited * times;
  if (hold > LONGEST_HOLD_NS) hold = LONGEST_HOLD_NS;
  atomic_store(&pool.times, times);
  atomic_store(&pool.held, t + hold);
  atomic_store(&pool.crowded, t + hold);
}

static void run_shared(hg_job *job) {
  advance(job, 0);
  for (;;) {
    int32_t seen = atomic_load(&job->moves), state = atomic_load(&job->state);
    if (state == OVER) return;
    if (state == ASKS) {
      atomic_store(&job->state, GOES_ON);
      advance(job, 0);
    } else if (!help(job, 0)) {
      wait_for(job, seen);
    }
  }
}

/* Run a program; -1 on success, else the index of the first phase that noted a failure.
 *
 * ask: called now and then between turns of loops by this thread; once it does not return 0, loops
 * make no other turn. Null if there is none.
 */
int64_t hg_run(hg_program *program, int64_t (*ask)(void *), void *asker) {
  program->failure[0] = 0;
  program->at = program->depth = program->alone = program->due = 0;
  program->ask = ask, program->asker = asker;
  program->ended = 0, program->run++;
  program->mark = program->times == NULL ? 0 : now();
  if (program->threads == 1) {
    proceed(program, NULL, 0);
  } else {
    hg_job *job = take_job(program, atomic_fetch_add(&pool.runs, 1) + 1);
    if (job == NULL) {
      proceed(program, NULL, 0);
    } else {
      run_shared(job);
      leave_job(job);
    }
    atomic_fetch_sub(&pool.runs, 1);
  }
  if (program->unsettled && program->failure[0] == 0 && !program->ended) settle(program);
  return program->failure[0] - 1;
}

/* Say whether a program takes less time than waking a worker. */
void hg_small(hg_program *program, int64_t small) { program->small = small; }

int64_t hg_failure_value(const hg_program *program) { return program->failure[1]; }

/* Where to add up the time of each phase, and the number of its runs: twice n_phases numbers, or null.
 * And a flag that ends loops once it is not 0, or null. */
void hg_watch(hg_program *program, int64_t *times, const int64_t *stop) {
  program->times = times;
  program->stop = stop;
}
