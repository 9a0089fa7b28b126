/* Memory and tables of one run at a time of a part: what `native/run/context.py` makes of the same. */

#define ARENA_SLACK 4096
#define SCRATCH_LEAST 256

typedef struct block {
  struct block *next;
  char pad[8];
} block;

/* A pointer of a kernel to an input or output of the part. */
typedef struct {
  int64_t slot, index, offset;
} outer;

/* A number that may differ between iterations, and where it is read. */
typedef struct {
  int64_t *place;
  int64_t number;
} changing_place;

/* What stands in a phase's place where the caller cancels or has threads of its own. */
typedef struct {
  part_context *context;
  hg_kernel run;
  int64_t tasks;
  int serial;
} guarded;

struct part_context {
  hagane_model *model;
  const hgb_part *part;
  int64_t *numbers, *offsets, *shapes; /* shapes: those of all inputs, one after the other */
  int ready;
  char **table;  /* [0] belongs to guards, kernels' pointers follow */
  int64_t *sizes;
  char *arena;
  size_t arena_bytes;
  hg_program *program;
  int64_t scratch, threads;
  int small;
  char *alone; /* of each kernel: a loop or branch that one thread runs by itself */
  block *blocks;
  outer *inputs, *outputs;
  int64_t n_inputs, n_outputs;
  hg_control *controls;
  guarded *guards;
  char *own_scratch; /* of the caller's threads */
  int64_t own_scratch_bytes;
  _Atomic int cancelled;
};

static void *keep(part_context *context, size_t bytes) {
  block *made = calloc(1, sizeof *made + bytes);
  if (made == NULL) return NULL;
  made->next = context->blocks;
  context->blocks = made;
  return made + 1;
}

static void let_go(part_context *context) {
  for (block *next; context->blocks != NULL; context->blocks = next) {
    next = context->blocks->next;
    free(context->blocks);
  }
}

static void close_part(part_context *context) {
  hagane_model *model = context->model;
  if (context->program != NULL) hg_destroy(context->program);
  let_go(context);
  give_back_values(model, context->arena, context->arena_bytes);
  give_back_values(model, context->own_scratch, (size_t)context->own_scratch_bytes);
  free(context->numbers), free(context->offsets), free(context->shapes);
  free(context->table), free(context->sizes), free(context->guards);
  free(context->inputs), free(context->outputs), free(context->alone);
}

static int is_guarded(const hagane_model *model) {
  return model->options.cancel != NULL || model->options.parallel != NULL;
}

static int open_part(part_context *context, hagane_model *model, const hgb_part *part) {
  *context = (part_context){.model = model, .part = part, .scratch = -1};
  size_t n = 0;
  for (int32_t i = 0; i < part->n_inputs; i++) n += (size_t)part->inputs[i].rank;
  size_t pointers = (size_t)part->n_pointers + 1, kernels = (size_t)part->n_kernels + 1;
  context->numbers = calloc((size_t)part->n_numbers + 1, sizeof(int64_t));
  context->offsets = calloc((size_t)part->n_buffers + 1, sizeof(int64_t));
  context->shapes = calloc(n + 1, sizeof(int64_t));
  /* Before each kernel's pointers lies what guards it. */
  context->table = calloc(pointers + kernels, sizeof(char *));
  context->sizes = calloc((size_t)part->n_sizes + 1, sizeof(int64_t));
  context->guards = calloc(kernels, sizeof(guarded));
  context->alone = calloc(kernels, 1);
  context->inputs = calloc(pointers, sizeof(outer));
  context->outputs = calloc(pointers, sizeof(outer));
  return context->numbers && context->offsets && context->shapes && context->table && context->sizes &&
         context->guards && context->alone && context->inputs && context->outputs;
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
  int64_t each = (context->program->scratch_bytes + 4096 + 127) / 128 * 128;
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

/* ---- sizes ---- */

static int32_t bind_sizes(part_context *context) {
  const hgb_part *part = context->part;
  int64_t *numbers = context->numbers;
  memcpy(numbers, part->constants, sizeof *numbers * (size_t)part->n_numbers);
  for (int32_t i = 0; i < part->n_symbols; i++) numbers[i] = -1;
  const int64_t *shape = context->shapes;
  for (int32_t i = 0, named = 0; i < part->n_inputs; shape += part->inputs[i++].rank)
    for (; named < part->n_named && part->named[named].input == i; named++) {
      const hgb_named *item = &part->named[named];
      if (numbers[item->symbol] < 0) numbers[item->symbol] = shape[item->axis] - item->distance;
    }
  for (int32_t i = 0; i < part->n_symbols; i++)
    if (numbers[i] < 0)
      return fail(context->model, HAGANE_SHAPE, "the sizes of the inputs do not fit each other");
  part->begin(numbers);
  part->compute(numbers);
  shape = context->shapes;
  for (int32_t i = 0; i < part->n_inputs; shape += part->inputs[i++].rank)
    for (int32_t axis = 0; axis < part->inputs[i].rank; axis++) {
      int64_t want = numbers[part->dims[part->inputs[i].dims + axis]];
      if (shape[axis] != want)
        return fail(context->model, HAGANE_SHAPE,
                    "the sizes of the inputs do not fit each other: axis %d of one is %lld, expected %lld", axis,
                    (long long)shape[axis], (long long)want);
    }
  for (int32_t i = 0; i < part->n_equal; i++) {
    int64_t left = numbers[part->equal[2 * i]], right = numbers[part->equal[2 * i + 1]];
    if (left != right)
      return fail(context->model, HAGANE_SHAPE,
                  "the sizes of the inputs do not fit each other: %lld and %lld must be equal",
                  (long long)left, (long long)right);
  }
  return HAGANE_OK;
}

/* ---- loops ---- */

/* Where a pointer of a kernel lies. */
typedef char **slot_place;

typedef struct {
  slot_place **places; /* for each buffer that moves, its pointers */
  int64_t **offsets;
  int32_t *counts;
  changing_place *changing;
  int64_t n_changing;
} moving;

static void note_changing(moving *found, int64_t *place, int32_t number) {
  found->changing[found->n_changing++] = (changing_place){place, number};
}

static int patch_of(part_context *context, moving *found, int32_t buffer, const hg_patch **patches, int64_t *n) {
  int32_t count = found->counts[buffer];
  hg_patch *made = keep(context, sizeof *made * (size_t)(count + 1));
  if (made == NULL) return 0;
  for (int32_t i = 0; i < count; i++) {
    made[i] = (hg_patch){found->places[buffer][i], context->numbers[found->offsets[buffer][i]]};
    note_changing(found, &made[i].offset, (int32_t)found->offsets[buffer][i]);
  }
  *patches = made, *n = count;
  return 1;
}

static int fill_loop(part_context *context, const hgb_control *from, hg_control *into, moving *found) {
  const hgb_part *part = context->part;
  const int64_t *numbers = context->numbers;
  if (from->iterations != HGB_NONE) {
    into->iterations = numbers[from->iterations];
    if (into->iterations < 0) into->iterations = 0;
  }
  into->limit = from->limit, into->going = from->going;
  into->count = from->count;
  into->n_carried = from->carried, into->n_scanned = from->scanned;
  into->carried = keep(context, sizeof(hg_carried) * (size_t)(from->carried + 1));
  into->scanned = keep(context, sizeof(hg_scanned) * (size_t)(from->scanned + 1));
  if (into->carried == NULL || into->scanned == NULL) return 0;
  for (int32_t i = 0; i < from->carried; i++) {
    const hgb_carried *value = &part->carried[from->carry + i];
    hg_carried *made = &into->carried[i];
    if (!patch_of(context, found, value->before, &made->before, &made->n_before)) return 0;
    if (!patch_of(context, found, value->after, &made->after, &made->n_after)) return 0;
    made->start = value->start, made->first = value->first, made->second = value->second;
    made->bytes = made->begun = numbers[value->size];
    made->grows = value->grown != HGB_NONE;
    if (made->grows) note_changing(found, &made->bytes, value->grown);
  }
  for (int32_t i = 0; i < from->scanned; i++) {
    const hgb_scanned *value = &part->scanned[from->scan + i];
    hg_scanned *made = &into->scanned[i];
    if (!patch_of(context, found, value->slice, &made->patches, &made->n_patches)) return 0;
    made->base = value->base, made->start = numbers[value->start], made->step = numbers[value->step];
  }
  if (!from->changes) return 1;
  hg_moved *moved = keep(context, sizeof *moved * (size_t)(from->moved + 1));
  int64_t *computed = keep(context, sizeof *computed * (size_t)(from->dims + from->changing + 1));
  if (moved == NULL || computed == NULL) return 0;
  for (int32_t i = 0; i < from->moved; i++) {
    int32_t buffer = part->moved[from->moved_at + i];
    if (!patch_of(context, found, buffer, &moved[i].patches, &moved[i].n_patches)) return 0;
    note_changing(found, &moved[i].bytes, part->buffers[buffer].bytes);
  }
  into->sizer = from->begin + 1;
  into->computed = computed;
  for (int32_t i = 0; i < found->counts[from->numbers]; i++)
    *found->places[from->numbers][i] = (char *)computed;
  into->n_moved = from->moved, into->moved = moved;
  return 1;
}

/* Have the engine bring numbers that differ between iterations to where they are read. */
static int follow(part_context *context, const hgb_control *from, hg_control *into, const moving *found) {
  const hgb_part *part = context->part;
  if (!from->changes) return 1;
  int32_t *which = malloc(sizeof *which * (size_t)(part->n_numbers + 1));
  hg_number *numbers = keep(context, sizeof *numbers * (size_t)(found->n_changing + part->n_kernels + 1));
  hg_number *tasks = keep(context, sizeof *tasks * (size_t)(part->n_kernels + 1));
  if (which == NULL || numbers == NULL || tasks == NULL) return free(which), 0;
  for (int32_t i = 0; i < part->n_numbers; i++) which[i] = HGB_NONE;
  for (int32_t i = from->dims; i-- > 0;) which[part->control_dims[from->dim + i]] = i;
  into->numbers = numbers, into->tasks = tasks;
  for (int64_t i = 0; i < found->n_changing; i++) {
    int32_t at = which[found->changing[i].number];
    if (at != HGB_NONE)
      numbers[into->n_numbers++] = (hg_number){(int64_t)(intptr_t)found->changing[i].place, at};
  }
  for (int32_t i = 0; i < part->n_kernels; i++) {
    int32_t at = which[part->kernels[i].tasks];
    if (at == HGB_NONE) continue;
    if (context->model->options.parallel != NULL && part->kernels[i].run != NULL)
      numbers[into->n_numbers++] = (hg_number){(int64_t)(intptr_t)&context->guards[i].tasks, at};
    else
      tasks[into->n_tasks++] = (hg_number){i, at};
  }
  into->scratch = from->scratch == HGB_NONE ? -1 : which[from->scratch];
  free(which);
  return 1;
}

static int fill_controls(part_context *context, moving *found) {
  const hgb_part *part = context->part;
  if (part->n_controls == 0) return 1;
  context->controls = keep(context, sizeof(hg_control) * (size_t)part->n_controls);
  if (context->controls == NULL) return 0;
  for (int32_t i = 0; i < part->n_controls; i++) {
    const hgb_control *from = &part->controls[i];
    hg_control *into = &context->controls[i];
    into->loops = from->loops, into->otherwise = from->otherwise, into->end = from->end;
    into->iterations = into->limit = into->going = into->count = -1;
    into->condition = from->condition;
    into->iteration = into->made = into->sizer = into->scratch = -1;
    into->left = into->stride = 1;
    if (from->loops && !fill_loop(context, from, into, found)) return 0;
  }
  for (int32_t i = 0; i < part->n_controls; i++) {
    if (!follow(context, &part->controls[i], &context->controls[i], found)) return 0;
    hg_set_control(context->program, part->controls[i].begin, &context->controls[i]);
  }
  return 1;
}
