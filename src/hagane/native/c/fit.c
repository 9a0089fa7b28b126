/* ---- a part's tables for the sizes of a run ---- */

/* Estimate the time of a run of these sizes, as `native/kernels/control.py` does. */
static void estimate_work(hg_context *context) {
  const hgt_part *part = context->part;
  size_t n = (size_t)part->n_kernels;
  double *often = context->often;
  char *lonely = context->lonely;
  memset(context->alone, 0, n), memset(lonely, 0, n);
  for (size_t i = 0; i < n; i++) often[i] = 1;
  for (int32_t k = 0; k < part->n_controls; k++) {
    const hgt_control *control = &part->controls[k];
    double scale = 0, once = 0;
    if (control->loops == 2) continue;
    for (int32_t i = control->begin + 1; i < control->end; i++) {
      if (control->loops) often[i] *= control->likely;
      if (scale == 0 || often[i] < scale) scale = often[i];
    }
    for (int32_t i = control->begin + 1; i < control->end; i++) {
      double work = (double)context->numbers[part->kernels[i].work];
      if (work >= SERIAL_NS) once += work * often[i] / scale;
    }
    if (!lonely[control->begin] && once >= SHARED_NS) continue;
    context->alone[control->begin] = 1;
    for (int32_t i = control->begin + 1; i < control->end; i++) lonely[i] = 1;
  }
  context->whole = context->shared = 0;
  for (size_t i = 0; i < n; i++) {
    double all = (double)context->numbers[part->kernels[i].work] * often[i];
    context->whole += all;
    if (!lonely[i]) context->shared += all;
  }
}

static void set_phase(hg_context *context, int64_t index, char **pointers, int64_t *sizes) {
  const hgt_kernel *kernel = &context->part->kernels[index];
  hg_kernel run = kernel->coded ? context->part->functions[index] : NULL;
  int64_t tasks = context->numbers[kernel->tasks];
  int64_t serial = (double)context->numbers[kernel->work] < SERIAL_NS || (tasks <= 1 && !kernel->open);
  for (int64_t i = 0; !kernel->coded && i < context->part->n_controls; i++)
    if (context->part->controls[i].begin == index)
      serial = context->part->controls[i].loops != 2 && context->alone[index];
  if (context->host.set != NULL)
    context->host.set(context->host.owner, context->program, index, run, pointers, sizes, tasks, serial);
  else
    hg_set_phase(context->program, index, (void *)run, pointers, sizes, tasks, serial);
}

static int fill_tables(hg_context *context) {
  const hgt_part *part = context->part;
  const int64_t *numbers = context->numbers;
  hg_moving found = {0};
  size_t n = (size_t)part->n_buffers + 1, pointers = (size_t)part->n_pointers + 1;
  int moves = part->n_controls > 0, done = 0;
  char ***places = NULL;
  int32_t *offsets = NULL;
  if (moves) {
    found.places = calloc(n, sizeof *found.places), found.offsets = calloc(n, sizeof *found.offsets);
    found.counts = calloc(n, sizeof *found.counts);
    places = calloc(pointers, sizeof *places), offsets = calloc(pointers, sizeof *offsets);
    if (!found.places || !found.offsets || !found.counts || !places || !offsets) goto end;
    for (int64_t i = 0; i < part->n_pointers; i++) found.counts[part->pointers[i].buffer]++;
    for (int64_t i = 0, at = 0; i < part->n_buffers; at += found.counts[i++])
      found.places[i] = places + at, found.offsets[i] = offsets + at;
    memset(found.counts, 0, n * sizeof *found.counts);
  }
  context->n_inputs = context->n_outputs = 0;
  for (int64_t k = 0; k < part->n_kernels; k++) {
    const hgt_kernel *kernel = &part->kernels[k];
    char **table = context->table + kernel->pointer + k + 1; /* a word before belongs to the host */
    int64_t *sizes = context->sizes + kernel->size;
    for (int32_t i = 0; i < kernel->pointers; i++) {
      hgt_pointer pointer = part->pointers[kernel->pointer + i];
      const hgt_buffer *buffer = &part->buffers[pointer.buffer];
      int64_t offset = numbers[pointer.offset];
      table[i] = NULL;
      switch (buffer->kind) {
        case HGT_MOVING: {
          int32_t at = found.counts[pointer.buffer]++;
          found.places[pointer.buffer][at] = &table[i];
          found.offsets[pointer.buffer][at] = pointer.offset;
          break;
        }
        case HGT_INPUT: context->inputs[context->n_inputs++] = (hg_outer){&table[i], buffer->at, offset}; break;
        case HGT_OUTPUT:
          if (!part->outputs[buffer->at].grows)
            context->outputs[context->n_outputs++] = (hg_outer){&table[i], buffer->at, offset};
          break;
        case HGT_WEIGHT:
          table[i] = (char *)((uintptr_t)context->weights + (uintptr_t)(part->weights[buffer->at] + offset));
          break;
        default: table[i] = context->arena + context->offsets[pointer.buffer] + offset;
      }
    }
    for (int32_t i = 0; i < kernel->sizes; i++) {
      sizes[i] = numbers[part->sizes[kernel->size + i]];
      if (moves) note_changing(&found, &sizes[i], part->sizes[kernel->size + i]);
    }
    set_phase(context, k, table, sizes);
  }
  done = fill_controls(context, &found);
end:
  free(found.places), free(found.offsets), free(found.counts), free(found.changing);
  free(places), free(offsets);
  return done;
}

/* Whether each run comes to a kernel, once. */
static int is_met(const hgt_part *part, int64_t kernel) {
  for (int32_t i = 0; i < part->n_controls; i++) {
    const hgt_control *control = &part->controls[i];
    if (control->begin == kernel || (control->loops != 2 && control->begin < kernel && kernel < control->end)) return 0;
  }
  return 1;
}

/* Have phases set the borders, the first run the constant ones; borders that no phase can set are set here.
 *
 * fresh: the memory is all zero.
 */
static int fill_borders(hg_context *context, int fresh) {
  const hgt_part *part = context->part;
  for (int64_t i = 0; i < part->n_buffers; i++) {
    if (context->borders[i] == HG_NO_BORDER) continue;
    const hgt_buffer *buffer = &part->buffers[i];
    for (int32_t k = 0; k < buffer->borders; k++) {
      const hgt_border *from = &part->borders[buffer->border + k];
      hg_border border = border_of(context->numbers, from);
      border.start = context->arena + context->offsets[i] + context->numbers[from->start];
      border.stays = context->borders[i] == HG_SET_ONCE;
      if (border.stays && (border.planes <= 0 || (fresh && border.fill == 0))) continue;
      if (!border.stays || (is_regular(&border) && is_met(part, buffer->first))) {
        if (hg_add_border(context->program, buffer->first, &border) != 0) return 0;
        continue;
      }
      border.planes_of_task = border.planes;
      if (is_regular(&border)) clear_border(&border, 0);
      else memset(border.start, (int)border.fill, (size_t)(context->numbers[buffer->bytes] - context->numbers[from->start]));
    }
  }
  return 1;
}

static void give_arena(hg_context *context, char *memory, size_t bytes) {
  if (context->host.give == NULL) hg_release(memory, bytes);
  else context->host.give(context->host.owner, memory, bytes);
}

/* Have an arena of so many bytes; the content of the one before is lost. Returns whether there is memory.
 *
 * Pages of 2 MiB are for sizes that stay: for sizes that grow, they would be filled for a few bytes of the last one.
 * Where larger sizes are likely, memory is mapped by itself, and gets pages as they grow.
 */
static int enlarge_arena(hg_context *context, size_t bytes) {
  if (context->host.take == NULL) {
    size_t touched = bytes;
    if (context->ahead && bytes < MAPPED) touched = AHEAD * bytes, bytes = MAPPED;
    context->arena = enlarge(context->arena, context->arena_bytes, bytes, context->part->n_symbols == 0, touched);
  } else {
    give_arena(context, context->arena, context->arena_bytes); /* not both at once */
    context->arena = context->host.take(context->host.owner, bytes);
  }
  context->arena_bytes = context->arena == NULL ? 0 : bytes;
  if (context->arena == NULL) context->used = 0;
  return context->arena != NULL;
}

static int64_t scratch_bytes(const hg_context *context) {
  int64_t scratch = 0;
  for (int64_t i = 0; i < context->part->n_kernels; i++) {
    int64_t own = context->numbers[context->part->kernels[i].scratch];
    if (own > scratch) scratch = own;
  }
  return scratch + SCRATCH_LEAST;
}

/* How many threads a run uses: tiny programs do with one. */
static int64_t threads_of(const hg_context *context) {
  return context->shared > TINY_NS && !context->host.single ? context->threads : 1;
}

/* Make the tables those for the numbers in the context; memory is kept where it suffices. */
static int64_t fit_numbers(hg_context *context) {
  const hgt_part *part = context->part;
  estimate_work(context);
  int64_t bytes = place_all(context, context->clearing);
  context->saves = 0;
  if (context->once && bytes >= 0 && context->used < (size_t)bytes) {
    int64_t most = bytes;
    bytes = place_all(context, context->clearing > CLEARING_ONCE ? context->clearing : CLEARING_ONCE);
    context->saves = bytes < most;
  }
  if (bytes < 0) return HG_BEYOND;
  int fresh = 0;
  context->wrong[1] = bytes;
  int small = context->arena == NULL || (context->ahead && context->arena_bytes < MAPPED);
  if (small || context->arena_bytes < (size_t)bytes + ARENA_SLACK) {
    fresh = small;
    size_t room = (size_t)(bytes + (small ? 0 : bytes / 2)) + ARENA_SLACK;
    if (!enlarge_arena(context, room)) return HG_NO_MEMORY;
  }
  if (context->used < (size_t)bytes) context->used = (size_t)bytes;
  if (context->program != NULL) forget_controls(context->program);
  forget_tables(context);
  int64_t threads = threads_of(context), scratch = scratch_bytes(context);
  if (context->program == NULL) context->program = hg_create(part->n_kernels, threads, scratch);
  else if (!hg_widen(context->program, threads, scratch)) return HG_NO_MEMORY;
  if (context->program == NULL) return HG_NO_MEMORY;
  hg_small(context->program, context->shared <= SMALL_NS);
  if (!fill_tables(context) || !fill_borders(context, fresh)) return HG_NO_MEMORY;
  context->ready = 1;
  return HG_FITS;
}

/* ---- the interface ---- */

/* Take the memory for values from a context, which is ready for nothing then; another one without any gets it, if
 * that is not null. */
void hg_lend(hg_context *from, hg_context *into) {
  if (into != NULL && into->arena == NULL)
    into->arena = from->arena, into->arena_bytes = from->arena_bytes, into->used = from->used;
  else give_arena(from, from->arena, from->arena_bytes);
  from->arena = NULL, from->arena_bytes = 0, from->used = 0, from->ready = 0;
}

void hg_close(hg_context *context) {
  if (context == NULL) return;
  hg_destroy(context->program);
  forget_tables(context);
  give_arena(context, context->arena, context->arena_bytes);
  free(context->numbers), free(context->offsets), free(context->shapes), free(context->borders);
  free(context->table), free(context->sizes), free(context->often), free(context->alone);
  free(context->lonely), free(context->inputs), free(context->outputs), free(context->plan);
  free(context);
}

/* Make a context for a part; null if there is no memory.
 *
 * weights: the base of their places.
 * host: null if there is none.
 */
hg_context *hg_open(const hgt_part *part, const char *weights, int64_t threads, const hg_host *host) {
  hg_context *context = calloc(1, sizeof *context);
  if (context == NULL) return NULL;
  context->part = part, context->weights = weights, context->threads = threads, context->clearing = CLEARING;
  if (host != NULL) context->host = *host;
  size_t n = 0, pointers = (size_t)part->n_pointers + 1, kernels = (size_t)part->n_kernels + 1;
  size_t buffers = (size_t)part->n_buffers + 1;
  for (int64_t i = 0; i < part->n_inputs; i++) n += (size_t)part->inputs[i].rank;
  context->numbers = calloc((size_t)part->n_numbers + 1, sizeof(int64_t));
  context->offsets = calloc(buffers, sizeof(int64_t));
  context->shapes = calloc(n + 1, sizeof(int64_t));
  context->borders = calloc(buffers, 1);
  context->table = calloc(pointers + kernels, sizeof(char *));
  context->sizes = calloc((size_t)part->n_sizes + 1, sizeof(int64_t));
  context->often = calloc(kernels, sizeof(double));
  context->alone = calloc(kernels, 1);
  context->lonely = calloc(kernels, 1);
  context->inputs = calloc(pointers, sizeof(hg_outer));
  context->outputs = calloc(pointers, sizeof(hg_outer));
  context->plan = malloc((size_t)plan_bytes(part));
  if (context->numbers && context->offsets && context->shapes && context->borders && context->table &&
      context->sizes && context->often && context->alone && context->lonely && context->inputs &&
      context->outputs && context->plan) {
    memcpy(context->numbers, part->constants, sizeof(int64_t) * (size_t)part->n_numbers);
    return context;
  }
  hg_close(context);
  return NULL;
}

/* Make the tables those for the shapes of inputs, one after the other; returns whether they fit. */
int64_t hg_fit(hg_context *context, const int64_t *shapes) {
  size_t n = 0;
  for (int64_t i = 0; i < context->part->n_inputs; i++) n += (size_t)context->part->inputs[i].rank;
  if (shapes != context->shapes) memcpy(context->shapes, shapes, n * sizeof *shapes);
  context->ready = 0;
  int64_t code = bind_shapes(context);
  return code == HG_FITS ? fit_numbers(context) : code;
}

/* Plan for named sizes, in the order of the tables; no run is possible then. `found` is told the bytes of values,
 * the scratch memory of each thread, and the number of threads; estimated nanoseconds, and those of them that
 * threads share. Returns whether they make sense; sizes that follow from others that only a run tells may not be
 * known. */
int64_t hg_measure(hg_context *context, const int64_t *sizes, int64_t *found) {
  context->ready = 0;
  memcpy(context->numbers, sizes, sizeof *sizes * (size_t)context->part->n_symbols);
  int code = begin_numbers(context->part, context->numbers);
  estimate_work(context);
  found[0] = place_all(context, context->clearing);
  found[1] = scratch_bytes(context), found[2] = threads_of(context);
  found[3] = (int64_t)context->whole, found[4] = (int64_t)context->shared;
  return code == HG_BEYOND || found[0] < 0 ? HG_BEYOND : HG_FITS;
}

/* Let pointers of kernels point to inputs and outputs, of which the growing ones are left out. */
void hg_point(hg_context *context, char *const *inputs, char *const *outputs) {
  for (int64_t i = 0; i < context->n_inputs; i++)
    *context->inputs[i].slot = inputs[context->inputs[i].index] + context->inputs[i].offset;
  for (int64_t i = 0; i < context->n_outputs; i++)
    *context->outputs[i].slot = outputs[context->outputs[i].index] + context->outputs[i].offset;
}

/* The facts of a context: program, memory for values and its bytes, estimated nanoseconds in all and
 * of shared phases, and the fault if there is one. */
void hg_tell(const hg_context *context, int64_t *into) {
  into[0] = (int64_t)(intptr_t)context->program;
  into[1] = (int64_t)(intptr_t)context->arena, into[2] = (int64_t)context->arena_bytes;
  into[3] = (int64_t)context->whole, into[4] = (int64_t)context->shared;
  memcpy(into + 5, context->wrong, sizeof context->wrong);
}

/* Copy the first numbers; the offset of each buffer, and the fate of its border; of each kernel, whether one
 * thread runs all in it. Null for results not wanted. */
void hg_list(const hg_context *context, int64_t *numbers, int64_t n, int64_t *offsets, char *borders, char *alone) {
  const hgt_part *part = context->part;
  if (numbers != NULL) memcpy(numbers, context->numbers, sizeof *numbers * (size_t)n);
  if (offsets != NULL) memcpy(offsets, context->offsets, sizeof *offsets * (size_t)part->n_buffers);
  if (borders != NULL) memcpy(borders, context->borders, (size_t)part->n_buffers);
  if (alone != NULL) memcpy(alone, context->alone, (size_t)part->n_kernels);
}

/* The shapes of inputs that the tables are for, one after the other; -1 if they are for none. */
void hg_shapes(const hg_context *context, int64_t *shapes) {
  int64_t at = 0;
  for (int64_t i = 0; i < context->part->n_inputs; i++)
    for (int32_t axis = 0; axis < context->part->inputs[i].rank; axis++, at++)
      shapes[at] = context->ready ? context->shapes[at] : -1;
}

/* Let clearing borders in runs take another share of their time. */
void hg_clear_more(hg_context *context, double share) { context->clearing = share; }
