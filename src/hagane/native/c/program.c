/* Memory, and programs as they are made. */

/* ---- memory ---- */

#define HUGE ((size_t)2 << 20)
/* Memory of so many bytes is mapped by itself, so that its pages stay when it grows. */
#define MAPPED ((size_t)256 << 10)

static _Atomic int64_t allocated;

/* Bytes that hg_allocate has given and hg_release has not taken back. */
int64_t hg_allocated(void) { return atomic_load(&allocated); }

/* New pages at a multiple of 2 MiB; null if there are none. */
static char *map_aligned(size_t rounded, int access) {
  char *start = mmap(NULL, rounded + HUGE, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return NULL;
  char *aligned = (char *)(((uintptr_t)start + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
  if (aligned > start) munmap(start, (size_t)(aligned - start));
  char *end = start + rounded + HUGE;
  if (end > aligned + rounded) munmap(aligned + rounded, (size_t)(end - aligned - rounded));
  return aligned;
}

/* Zeroed memory; null if there is none. Without MAP_NORESERVE, the system refuses at once a size beyond all
 * its memory.
 *
 * huge: on pages of 2 MiB where the system grants them.
 * touched: of a small memory that is mapped by itself, so many bytes have their pages at once.
 */
static void *allocate(size_t bytes, int huge, size_t touched) {
  if (bytes < MAPPED || HG_PLAIN()) {
    void *small = NULL;
    if (posix_memalign(&small, 64, bytes + 64) != 0) return NULL;
    atomic_fetch_add(&allocated, (int64_t)bytes);
    return memset(small, 0, bytes + 64);
  }
  size_t rounded = (bytes + HUGE - 1) & ~(HUGE - 1);
  char *aligned = map_aligned(rounded, PROT_READ | PROT_WRITE);
  if (aligned == NULL) return NULL;
  if (bytes < HUGE) memset(aligned, 0, touched < bytes ? touched : bytes); /* pages that are there before the first run */
  else if (huge) madvise(aligned, rounded, MADV_HUGEPAGE);
  atomic_fetch_add(&allocated, (int64_t)bytes);
  return aligned;
}

void *hg_allocate(size_t bytes) { return allocate(bytes, 1, bytes); }

void hg_release(void *memory, size_t bytes) {
  if (memory == NULL) return;
  atomic_fetch_sub(&allocated, (int64_t)bytes);
  if (bytes < MAPPED || HG_PLAIN())
    free(memory);
  else
    munmap(memory, (bytes + HUGE - 1) & ~(HUGE - 1));
}

/* Have more bytes in the place of some, whose content is lost; those behind them are zero. Pages that are there
 * already stay: where a system has to ask another for memory, a new one takes longer than the computation of its
 * content. Null if there is no memory; then the memory before is gone too. */
static void *enlarge(void *memory, size_t before, size_t bytes, int huge, size_t touched) {
  size_t old = (before + HUGE - 1) & ~(HUGE - 1), rounded = (bytes + HUGE - 1) & ~(HUGE - 1);
  if (memory != NULL && before >= MAPPED && rounded >= old && !HG_PLAIN()) {
    const int there = MREMAP_MAYMOVE | MREMAP_FIXED;
    char *start = rounded == old ? memory : map_aligned(rounded, PROT_NONE);
    if (start != NULL && (start == memory || mremap(memory, old, rounded, there, start) == start)) {
      atomic_fetch_add(&allocated, (int64_t)bytes - (int64_t)before);
      return start;
    }
    if (start != NULL) munmap(start, rounded);
  }
  hg_release(memory, before); /* not both at once */
  return allocate(bytes, huge, touched);
}

/* ---- one program ---- */

static void forget_grown(hg_control *control) {
  for (int64_t i = 0; control != NULL && i < control->n_scanned; i++) {
    free(control->scanned[i].memory);
    control->scanned[i].memory = NULL, control->scanned[i].room = 0;
  }
  for (int64_t i = 0; control != NULL && i < control->n_moved; i++) {
    free(control->moved[i].memory);
    control->moved[i].memory = NULL, control->moved[i].room = 0;
  }
  for (int64_t i = 0; control != NULL && i < 2 * control->n_carried; i++) {
    hg_carried *value = &control->carried[i / 2];
    free(value->memory[i % 2]);
    value->memory[i % 2] = NULL, value->room[i % 2] = 0;
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
  for (int64_t i = 0; i < MAX_THREADS; i++)
    hg_release(program->scratch[i], (size_t)program->scratch_bytes + 4096);
  for (int64_t i = 0; program->phases != NULL && i < program->n_phases; i++) {
    forget_grown(program->phases[i].control);
    forget_borders(&program->phases[i]);
  }
  free(program->phases);
  free(program->bodies);
  free(program);
}

hg_program *hg_create(int64_t n_phases, int64_t threads, int64_t scratch_bytes) {
  hg_program *program = calloc(1, sizeof *program);
  if (program == NULL) return NULL;
  if (threads < 1) threads = 1;
  if (threads > MAX_THREADS) threads = MAX_THREADS;
  program->memory = HG_MEMORY();
  program->n_phases = n_phases;
  program->threads = threads;
  program->scratch_bytes = scratch_bytes;
  program->phases = calloc((size_t)n_phases + 1, sizeof(hg_phase));
  program->bodies = calloc((size_t)n_phases + 1, sizeof(hg_body));
  if (!program->phases || !program->bodies) {
    hg_destroy(program);
    return NULL;
  }
  for (int64_t i = 0; i < threads; i++) {
    program->scratch[i] = hg_allocate((size_t)scratch_bytes + 4096);
    if (program->scratch[i] == NULL) {
      hg_destroy(program);
      return NULL;
    }
  }
  return program;
}

/* Have a program use so many threads, each of which has at least so much scratch memory, whose content is
 * lost; 0 if there is none. Not while it runs. */
int hg_widen(hg_program *program, int64_t threads, int64_t scratch_bytes) {
  if (threads < 1) threads = 1;
  if (threads > MAX_THREADS) threads = MAX_THREADS;
  char *fresh[MAX_THREADS] = {NULL};
  int wider = scratch_bytes > program->scratch_bytes;
  size_t bytes = (size_t)(wider ? scratch_bytes + scratch_bytes / 2 : program->scratch_bytes) + 4096;
  for (int64_t i = 0; i < MAX_THREADS; i++) {
    if (program->scratch[i] != NULL ? !wider : i >= threads) continue;
    fresh[i] = allocate(bytes, 0, bytes);
    if (fresh[i] != NULL) continue;
    while (i-- > 0) hg_release(fresh[i], bytes);
    return 0;
  }
  for (int64_t i = 0; i < MAX_THREADS; i++) {
    if (fresh[i] == NULL) continue;
    hg_release(program->scratch[i], (size_t)program->scratch_bytes + 4096);
    program->scratch[i] = fresh[i];
  }
  program->scratch_bytes = (int64_t)bytes - 4096;
  program->threads = threads;
  return 1;
}

/* Define a phase, or define it anew; not while the program runs. */
void hg_set_phase(hg_program *program, int64_t index, void *kernel, char *const *pointers,
                  const int64_t *sizes, int64_t tasks, int64_t serial) {
  forget_grown(program->phases[index].control);
  forget_borders(&program->phases[index]);
  program->phases[index] =
      (hg_phase){(hg_kernel)kernel, pointers, sizes, tasks, serial, NULL, NULL, tasks};
}

/* Let no phase be a loop or a branch any more, before their tables go. */
static void forget_controls(hg_program *program) {
  for (int64_t i = 0; i < program->n_phases; i++) {
    forget_grown(program->phases[i].control);
    program->phases[i].control = NULL;
  }
}

/* Make a phase a loop or a branch. The tables are the caller's, but for memory that grew. */
void hg_set_control(hg_program *program, int64_t index, hg_control *control) {
  program->phases[index].control = control;
}

/* Let a phase that is no loop or branch also clear a border; -1 if there is no memory for it. */
int64_t hg_add_border(hg_program *program, int64_t index, const hg_border *from) {
  hg_border *border = malloc(sizeof *border);
  if (border == NULL) return -1;
  *border = *from;
  int64_t runs = 1;
  for (int64_t k = 0; k < border->axes; k++) runs *= border->counts[k];
  int64_t bytes = border->plane - runs * border->run; /* of one plane's border */
  border->planes_of_task = 1 + BORDER_TASK_BYTES / (bytes + 1);
  border->tasks = (border->planes + border->planes_of_task - 1) / border->planes_of_task;
  hg_phase *phase = &program->phases[index];
  border->next = phase->borders;
  phase->borders = border;
  phase->all_tasks += border->tasks;
  if (border->stays) program->unsettled = 1;
  return 0;
}

/* Forget the borders that stay, which a run has set. */
static void settle(hg_program *program) {
  program->unsettled = 0;
  for (int64_t i = 0; i < program->n_phases; i++) {
    hg_phase *phase = &program->phases[i];
    for (hg_border **at = &phase->borders, *border = *at; border != NULL; border = *at) {
      if (!border->stays) {
        at = &border->next;
        continue;
      }
      *at = border->next;
      phase->all_tasks -= border->tasks;
      free(border);
    }
  }
}

/* The surroundings of a row of pixels are a few of them: a call of memset takes longer than to set these. */
#define FEW_BYTES 512
typedef char hg_bytes __attribute__((vector_size(16), aligned(1), may_alias));

static void fill_bytes(char *at, hg_bytes fill, int64_t bytes) {
  if (bytes < (int64_t)sizeof fill || bytes > FEW_BYTES) {
    memset(at, fill[0], (size_t)bytes);
    return;
  }
  char *last = at + bytes - sizeof fill;
  for (; at < last; at += sizeof fill) {
    *(hg_bytes *)at = fill;
    __asm__("" : "+r"(at)); /* compilers would call memset */
  }
  *(hg_bytes *)last = fill;
}

static void clear_border(const hg_border *border, int64_t task) {
  int64_t from = task * border->planes_of_task, to = from + border->planes_of_task;
  if (to > border->planes) to = border->planes;
  int64_t runs = 1;
  hg_bytes fill = (hg_bytes){0} + (char)border->fill;
  for (int64_t k = 0; k < border->axes; k++) runs *= border->counts[k];
  for (int64_t p = from; p < to; p++) {
    char *at = border->start + p * border->step, *end = at + border->plane;
    char *pixels = at + border->first;
    int64_t index[BORDER_AXES] = {0};
    for (int64_t r = 0; r < runs; r++) {
      fill_bytes(at, fill, pixels - at);
      at = pixels + border->run;
      for (int64_t k = border->axes - 1; k >= 0; k--) {
        pixels += border->strides[k];
        if (++index[k] < border->counts[k]) break;
        pixels -= border->strides[k] * border->counts[k];
        index[k] = 0;
      }
    }
    fill_bytes(at, fill, end - at);
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

/* Note the time since the last phase ended. */
static void charge(hg_program *program, int64_t index, int64_t runs) {
  if (program->times == NULL) return;
  int64_t t = now();
  program->times[index] += t - program->mark;
  program->times[program->n_phases + index] += runs;
  program->mark = t;
}
