/* A part with its tables, and the layer between the engine and kernels where the caller cancels or has
 * threads of its own. */

/* The stand-in of a phase. */
typedef struct {
  part_context *context;
  hg_kernel run;
  int64_t tasks;
  int serial;
} guarded;

struct part_context {
  hagane_model *model;
  hg_context *tables;
  guarded *guards;
  char *own_scratch; /* of the caller's threads */
  int64_t own_scratch_bytes;
  _Atomic int cancelled;
};

static int is_guarded(const hagane_model *model) {
  return model->options.cancel != NULL || model->options.parallel != NULL;
}

/* ---- guards ---- */

static int is_cancelled(part_context *context) {
  const volatile int32_t *cancel = context->model->options.cancel;
  if (cancel == NULL) return 0;
  if (*cancel != 0) atomic_store_explicit(&context->cancelled, 1, memory_order_relaxed);
  return atomic_load_explicit(&context->cancelled, memory_order_relaxed);
}

/* A task, unless the run is cancelled: then loops end too, as after a failure. */
static void run_guarded(char *const *pointers, const int64_t *sizes, int64_t q, const hg_thread *thread) {
  guarded *own = (guarded *)(void *)pointers[-1];
  if (!is_cancelled(own->context))
    own->run(pointers, sizes, q, thread);
  else if (thread->failure[0] == 0)
    thread->failure[0] = thread->phase + 1;
}

typedef struct {
  char *const *pointers;
  const int64_t *sizes;
  const hg_thread *thread;
  char *scratch;
  int64_t scratch_bytes, tasks;
  _Atomic int64_t next;
} spread;

static void run_some(void *argument, int32_t which) {
  spread *all = argument;
  hg_thread thread = *all->thread;
  thread.scratch = all->scratch + which * all->scratch_bytes;
  for (;;) {
    int64_t q = atomic_fetch_add_explicit(&all->next, 1, memory_order_relaxed);
    if (q >= all->tasks) break;
    run_guarded(all->pointers, all->sizes, q, &thread);
  }
}

/* All tasks of a phase, on the caller's threads. */
static void run_spread(char *const *pointers, const int64_t *sizes, int64_t q, const hg_thread *thread) {
  (void)q;
  guarded *own = (guarded *)(void *)pointers[-1];
  part_context *context = own->context;
  const hagane_options *options = &context->model->options;
  int64_t threads = own->serial ? 1 : context->model->threads;
  if (threads > own->tasks) threads = own->tasks;
  int64_t each = (context->tables->program->scratch_bytes + 4096 + 127) / 128 * 128;
  if (threads > 1 && context->own_scratch_bytes < each * threads) {
    char *fresh = take_values(context->model, (size_t)(each * threads));
    if (fresh != NULL) {
      give_back_values(context->model, context->own_scratch, (size_t)context->own_scratch_bytes);
      context->own_scratch = fresh, context->own_scratch_bytes = each * threads;
    } else {
      threads = 1;
    }
  }
  spread all = {pointers, sizes, thread, thread->scratch, 0, own->tasks, 0};
  if (threads > 1) {
    all.scratch = context->own_scratch, all.scratch_bytes = each;
    options->parallel(options->context, run_some, &all, (int32_t)threads);
  } else {
    run_some(&all, 0);
  }
}

/* ---- as the engine asks ---- */

static void *take_for(void *owner, size_t bytes) { return take_values(((part_context *)owner)->model, bytes); }

static void give_for(void *owner, void *memory, size_t bytes) {
  give_back_values(((part_context *)owner)->model, memory, bytes);
}

static void set_guarded(void *owner, hg_program *program, int64_t index, hg_kernel run, char **pointers,
                        int64_t *sizes, int64_t tasks, int64_t serial) {
  part_context *context = owner;
  context->guards[index] = (guarded){context, run, tasks, (int)serial};
  pointers[-1] = (char *)&context->guards[index];
  if (run != NULL) run = run_guarded;
  if (run != NULL && context->model->options.parallel != NULL) run = run_spread, tasks = 1;
  hg_set_phase(program, index, (void *)run, pointers, sizes, tasks, serial);
}

static int64_t *guarded_tasks(void *owner, int64_t index) {
  part_context *context = owner;
  return context->guards[index].run == NULL ? NULL : &context->guards[index].tasks;
}

static void close_part(part_context *context) {
  hagane_model *model = context->model;
  hg_close(context->tables);
  give_back_values(model, context->own_scratch, (size_t)context->own_scratch_bytes);
  free(context->guards);
}

static int open_part(part_context *context, hagane_model *model, const hgt_part *part) {
  *context = (part_context){.model = model};
  hg_host host = {.owner = context, .take = take_for, .give = give_for};
  if (is_guarded(model)) host.set = set_guarded;
  if (model->options.parallel != NULL) host.tasks = guarded_tasks, host.single = 1;
  context->guards = calloc((size_t)part->n_kernels + 1, sizeof(guarded));
  context->tables = hg_open(part, model->weights, model->threads, &host);
  return context->guards != NULL && context->tables != NULL;
}

/* Make the tables those for the shapes in the context. */
static int32_t fit_part(part_context *context) {
  hg_context *tables = context->tables;
  const int64_t *wrong = tables->wrong;
  switch (hg_fit(tables, tables->shapes)) {
    case HG_FITS: return HAGANE_OK;
    case HG_BEYOND: return fail(context->model, HAGANE_MEMORY, "the values of the model are beyond any memory");
    case HG_NO_MEMORY:
      return fail(context->model, HAGANE_MEMORY, "there is no memory for %lld bytes of values", (long long)wrong[1]);
    default: break;
  }
  if (wrong[0] >= 0)
    return fail(context->model, HAGANE_SHAPE,
                "the sizes of the inputs do not fit each other: axis %lld of one is %lld, expected %lld",
                (long long)wrong[0], (long long)wrong[1], (long long)wrong[2]);
  if (wrong[0] == -1)
    return fail(context->model, HAGANE_SHAPE,
                "the sizes of the inputs do not fit each other: %lld and %lld must be equal", (long long)wrong[1],
                (long long)wrong[2]);
  return fail(context->model, HAGANE_SHAPE, "the sizes of the inputs do not fit each other");
}

/* Report a note of a kernel: {value} and {0}, {1} ... of the text are numbers. */
static int32_t fail_kernel(const part_context *context, int64_t index) {
  const hgt_part *part = context->tables->part;
  const hgt_kernel *kernel = &part->kernels[index];
  int64_t sizes[kernel->failure_sizes + 1];
  if (!hg_failed(context->tables, index, sizes)) return fail(context->model, HAGANE_MEMORY, "there is no memory left");
  char text[512];
  size_t n = 0;
  for (const char *at = part->failures[index]; *at != 0 && n + 24 < sizeof text; at++) {
    const char *close = *at == '{' ? strchr(at, '}') : NULL;
    if (close == NULL) {
      text[n++] = *at;
      continue;
    }
    int64_t number = hg_failure_value(context->tables->program);
    int which = at[1] - '0';
    if (at[1] != 'v' && which >= 0 && which < kernel->failure_sizes) number = sizes[which];
    n += (size_t)snprintf(text + n, sizeof text - n, "%lld", (long long)number);
    at = close;
  }
  text[n] = 0;
  /* Loops say so of values that grow. */
  int32_t code = strncmp(text, "no memory", 9) == 0 ? HAGANE_MEMORY : HAGANE_INVALID_ARGUMENT;
  return fail(context->model, code, "%s failed: %s", part->labels[index], text);
}
