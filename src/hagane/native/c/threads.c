/* Running a program: its phases, and the threads that share them. */

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
    thread.scratch = program->scratch[self]; /* a loop may have made it larger */
    next = phase->control == NULL ? i + 1 : phase->control->end;
    if (phase->control != NULL && phase->control->loops == 2) {
      if (!decide(program, i, self, threads)) return; /* nothing behind it knows its sizes */
      continue;
    }
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
        spins = 0;
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

static void wake_workers(void) {
  syscall(SYS_futex, &pool.generation, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* Whether to share a program with the workers. A small one is shared if it runs again and again, and
 * only while they are awake; else they are woken for the next time. */
static int finds_workers(hg_program *program) {
  int64_t wanted = program->threads - 1;
  if (!program->small) return pool.n_workers >= wanted || start_workers(wanted) == 0;
  int64_t time = now();
  program->often = time - program->called < SOON_NS ? program->often + 1 : 0;
  program->called = time;
  if (program->often < OFTEN) return 0;
  if (pool.n_workers >= wanted && atomic_load(&pool.sleeping) == 0) return 1;
  program->often = 0;
  if (pool.n_workers >= wanted || start_workers(wanted) == 0) wake_workers();
  return 0;
}

/* Run a program; -1 on success, else the index of the first phase that noted a failure.
 *
 * ask: called now and then between turns of loops by this thread; once it does not return 0, loops
 * make no other turn. Null if there is none.
 */
int64_t hg_run(hg_program *program, int64_t (*ask)(void *), void *asker) {
  program->failure[0] = 0;
  program->ask = ask, program->asker = asker;
  program->ended = 0, program->run++;
  program->mark = program->times == NULL ? 0 : now();
  int shared = program->threads > 1 && pthread_mutex_trylock(&pool.lock) == 0;
  if (shared && !finds_workers(program)) {
    pthread_mutex_unlock(&pool.lock);
    shared = 0;
  }
  if (!shared) {
    run_range(program, 0, program->n_phases, 0, 1);
  } else {
    pool.program = program;
    atomic_store(&pool.active, pool.n_workers);
    atomic_fetch_add_explicit(&pool.generation, 1, memory_order_seq_cst);
    if (atomic_load(&pool.sleeping) > 0) wake_workers();
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

/* Say that a program takes less time than waking a worker. */
void hg_small(hg_program *program) { program->small = 1; }

int64_t hg_failure_value(const hg_program *program) { return program->failure[1]; }

/* Where to add up what each phase takes, and how often it runs: twice n_phases numbers, or null.
 * And what ends loops once it is not 0, or null. */
void hg_watch(hg_program *program, int64_t *times, const int64_t *stop) {
  program->times = times;
  program->stop = stop;
}
