/* A part's tables for the sizes of a run. */

/* Estimate what a run of these sizes takes, as `native/kernels/control.py` does: which loops and branches
 * one thread runs by itself, and the nanoseconds that threads share; below 0 if there is no memory. */
static double estimate_work(part_context *context) {
  const hgb_part *part = context->part;
  size_t n = (size_t)part->n_kernels + 1;
  double *often = malloc(sizeof *often * n), shared = 0;
  char *lonely = calloc(n, 1);
  if (often == NULL || lonely == NULL) return free(often), free(lonely), -1;
  memset(context->alone, 0, n);
  for (int32_t i = 0; i < part->n_kernels; i++) often[i] = 1;
  for (int32_t k = 0; k < part->n_controls; k++) {
    const hgb_control *control = &part->controls[k];
    double scale = 0, once = 0;
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
  for (int32_t i = 0; i < part->n_kernels; i++)
    if (!lonely[i]) shared += (double)context->numbers[part->kernels[i].work] * often[i];
  free(often), free(lonely);
  return shared;
}

static void set_phase(part_context *context, int32_t index, char **pointers, int64_t *sizes) {
  const hgb_kernel *kernel = &context->part->kernels[index];
  int64_t tasks = context->numbers[kernel->tasks];
  int serial = context->numbers[kernel->work] < SERIAL_NS || tasks <= 1;
  for (int32_t i = 0; kernel->run == NULL && i < context->part->n_controls; i++)
    if (context->part->controls[i].begin == index) serial = context->alone[index];
  hg_kernel run = kernel->run;
  if (is_guarded(context->model)) {
    context->guards[index] = (guarded){context, kernel->run, tasks, serial};
    pointers[-1] = (char *)&context->guards[index];
    if (run != NULL) run = run_guarded;
    if (run != NULL && context->model->options.parallel != NULL) run = run_spread, tasks = 1;
  }
  hg_set_phase(context->program, index, (void *)run, pointers, sizes, tasks, serial);
}

static int fill_tables(part_context *context) {
  const hgb_part *part = context->part;
  const int64_t *numbers = context->numbers;
  moving found = {0};
  int64_t most = part->n_sizes + 2 * (int64_t)part->n_pointers;
  for (int32_t i = 0; i < part->n_controls; i++)
    most += part->controls[i].carried + part->controls[i].moved;
  size_t n = (size_t)part->n_buffers + 1, pointers = (size_t)part->n_pointers + 1;
  found.places = calloc(n, sizeof *found.places);
  found.offsets = calloc(n, sizeof *found.offsets);
  found.counts = calloc(n, sizeof *found.counts);
  found.changing = calloc((size_t)(2 * most) + 1, sizeof *found.changing);
  slot_place *places = calloc(pointers, sizeof *places);
  int64_t *offsets = calloc(pointers, sizeof *offsets);
  int done = 0;
  if (!found.places || !found.offsets || !found.counts || !found.changing || !places || !offsets) goto end;
  for (int32_t i = 0; i < part->n_pointers; i++) found.counts[part->pointers[i].buffer]++;
  for (int64_t i = 0, at = 0; i < part->n_buffers; at += found.counts[i++])
    found.places[i] = places + at, found.offsets[i] = offsets + at;
  memset(found.counts, 0, n * sizeof *found.counts);
  context->n_inputs = context->n_outputs = 0;
  for (int32_t k = 0; k < part->n_kernels; k++) {
    const hgb_kernel *kernel = &part->kernels[k];
    char **table = context->table + kernel->pointer + k + 1;
    int64_t *sizes = context->sizes + kernel->size;
    for (int32_t i = 0; i < kernel->pointers; i++) {
      hgb_pointer pointer = part->pointers[kernel->pointer + i];
      const hgb_buffer *buffer = &part->buffers[pointer.buffer];
      int64_t offset = numbers[pointer.offset], slot = kernel->pointer + k + 1 + i;
      table[i] = NULL;
      if (buffer->kind == HGB_MOVING) {
        int32_t at = found.counts[pointer.buffer]++;
        found.places[pointer.buffer][at] = &table[i];
        found.offsets[pointer.buffer][at] = pointer.offset;
      } else if (buffer->kind == HGB_INPUT) {
        context->inputs[context->n_inputs++] = (outer){slot, buffer->at, offset};
      } else if (buffer->kind == HGB_OUTPUT) {
        if (!part->outputs[buffer->at].grows)
          context->outputs[context->n_outputs++] = (outer){slot, buffer->at, offset};
      } else if (buffer->kind == HGB_WEIGHT) {
        table[i] = (char *)context->model->weights + buffer->at + offset;
      } else {
        table[i] = context->arena + context->offsets[pointer.buffer] + offset;
      }
    }
    for (int32_t i = 0; i < kernel->sizes; i++) {
      sizes[i] = numbers[part->sizes[kernel->size + i]];
      note_changing(&found, &sizes[i], part->sizes[kernel->size + i]);
    }
    set_phase(context, k, table, sizes);
  }
  done = fill_controls(context, &found);
end:
  free(found.places), free(found.offsets), free(found.counts), free(found.changing);
  free(places), free(offsets);
  return done;
}

/* Set the borders that no run changes, and have phases set the others. */
static int fill_borders(part_context *context) {
  const hgb_part *part = context->part;
  const int64_t *numbers = context->numbers;
  for (int32_t i = 0; i < part->n_buffers; i++) {
    const hgb_buffer *buffer = &part->buffers[i];
    if (buffer->kind != HGB_BORDERED || buffer->borders == 0) continue;
    const hgb_border *borders = part->borders + buffer->border;
    char *start = context->arena + context->offsets[i];
    if (border_stays(part, numbers, context->offsets, i)) {
      memset(start, (int)numbers[borders->fill], (size_t)place_bytes(numbers[buffer->bytes]));
      continue;
    }
    for (int32_t k = 0; k < buffer->borders; k++) {
      const hgb_border *border = &borders[k];
      int64_t list[6 + 2 * BORDER_AXES] = {numbers[border->planes], numbers[border->step],  numbers[border->plane],
                                           numbers[border->first],  numbers[border->run],   numbers[border->fill]};
      for (int32_t axis = 0; axis < border->axes; axis++) {
        list[6 + 2 * axis] = numbers[border->counts[axis]];
        list[7 + 2 * axis] = numbers[border->strides[axis]];
      }
      if (hg_add_border(context->program, buffer->first, start + numbers[border->start], list, border->axes) != 0)
        return 0;
    }
  }
  return 1;
}

/* Make the tables those for the shapes in the context; memory is kept where it suffices. */
static int32_t fit_part(part_context *context) {
  const hgb_part *part = context->part;
  hagane_model *model = context->model;
  context->ready = 0;
  int32_t code = bind_sizes(context);
  if (code != HAGANE_OK) return code;
  int64_t bytes = plan_places(part, context->numbers, context->offsets);
  if (bytes == -1) return fail(model, HAGANE_MEMORY, "the values of the model are beyond any memory");
  if (bytes >= 0 && context->arena_bytes < (size_t)bytes + ARENA_SLACK) {
    size_t room = (size_t)(bytes + (context->arena != NULL ? bytes / 2 : 0)) + ARENA_SLACK;
    give_back_values(model, context->arena, context->arena_bytes);
    context->arena = take_values(model, room);
    context->arena_bytes = context->arena == NULL ? 0 : room;
  }
  if (bytes < 0 || context->arena == NULL)
    return fail(model, HAGANE_MEMORY, "there is no memory for %lld bytes of values", (long long)bytes);
  int64_t scratch = 0;
  for (int32_t i = 0; i < part->n_kernels; i++) {
    int64_t own = context->numbers[part->kernels[i].scratch];
    if (own > scratch) scratch = own;
  }
  scratch += SCRATCH_LEAST;
  let_go(context);
  double shared = estimate_work(context);
  if (shared < 0) return fail(model, HAGANE_MEMORY, "there is no memory for the tables of a run");
  int64_t threads = shared > TINY_NS && model->options.parallel == NULL ? model->threads : 1;
  int small = shared <= SMALL_NS;
  if (scratch > context->scratch || threads != context->threads || small != context->small) {
    if (context->program != NULL) hg_destroy(context->program);
    context->program = hg_create(part->n_kernels, threads, scratch);
    context->scratch = context->program == NULL ? -1 : scratch;
    context->threads = threads, context->small = small;
    if (context->program != NULL && small) hg_small(context->program);
  }
  if (context->program == NULL || !fill_tables(context) || !fill_borders(context))
    return fail(model, HAGANE_MEMORY, "there is no memory for the tables of a run");
  context->ready = 1;
  return HAGANE_OK;
}

/* ---- what is known after a run ---- */

/* Sizes after the last iteration of each loop, or in it. */
static void numbers_after(const part_context *context, int left, int64_t *numbers) {
  const hgb_part *part = context->part;
  memcpy(numbers, context->numbers, sizeof *numbers * (size_t)part->n_numbers);
  for (int32_t i = 0; i < part->n_controls; i++) {
    const hgb_control *from = &part->controls[i];
    const hg_control *made = &context->controls[i];
    if (!from->changes || made->made <= 0) continue;
    const hgb_changing *names = part->changing + from->change;
    for (int32_t k = 0; k < from->changing; k++)
      numbers[names[k].symbol] = made->computed[from->dims + k];
    part->compute(numbers);
    if (!left) continue;
    int64_t after[64];
    int32_t count = from->changing < 64 ? from->changing : 64;
    for (int32_t k = 0; k < count; k++) after[k] = numbers[names[k].after];
    for (int32_t k = 0; k < count; k++) numbers[names[k].symbol] = after[k];
  }
  part->compute(numbers);
}

/* Where an output lies that grew, and its shape; null if no loop made it. */
static char *grown_output(const part_context *context, int32_t which, int64_t *shape) {
  const hgb_part *part = context->part;
  const hgb_port *port = &part->outputs[which];
  for (int32_t axis = 0; axis < port->rank; axis++) shape[axis] = context->numbers[part->dims[port->dims + axis]];
  for (int32_t i = 0; i < part->n_controls; i++) {
    const hgb_control *from = &part->controls[i];
    const hg_control *made = &context->controls[i];
    for (int32_t k = 0; k < from->scanned; k++) {
      if (part->scanned[from->scan + k].result != which) continue;
      shape[0] = made->made < 0 ? 0 : made->made;
      return made->scanned[k].memory;
    }
    for (int32_t k = 0; k < from->carried; k++) {
      const hgb_carried *value = &part->carried[from->carry + k];
      if (value->result != which) continue;
      int64_t *numbers = malloc(sizeof *numbers * (size_t)(part->n_numbers + 1));
      if (numbers == NULL) return NULL;
      numbers_after(context, 1, numbers);
      for (int32_t axis = 0; axis < value->rank; axis++)
        shape[axis] = numbers[part->dims[value->dims + axis]];
      free(numbers);
      return made->carried[k].now;
    }
  }
  return NULL;
}

/* Say what a kernel noted: {value} and {0}, {1} ... of the text are numbers. */
static int32_t fail_kernel(const part_context *context, int64_t index) {
  const hgb_part *part = context->part;
  const hgb_kernel *kernel = &part->kernels[index];
  int64_t *numbers = malloc(sizeof *numbers * (size_t)(part->n_numbers + 1));
  if (numbers == NULL) return fail(context->model, HAGANE_MEMORY, "there is no memory left");
  numbers_after(context, 0, numbers);
  char text[512];
  size_t n = 0;
  for (const char *at = kernel->failure; *at != 0 && n + 24 < sizeof text; at++) {
    const char *close = *at == '{' ? strchr(at, '}') : NULL;
    if (close == NULL) {
      text[n++] = *at;
      continue;
    }
    int64_t number = hg_failure_value(context->program);
    int which = at[1] - '0';
    if (at[1] != 'v' && which >= 0 && which < kernel->failure_sizes)
      number = numbers[part->failure_sizes[kernel->failure_size + which]];
    n += (size_t)snprintf(text + n, sizeof text - n, "%lld", (long long)number);
    at = close;
  }
  text[n] = 0;
  free(numbers);
  return fail(context->model, HAGANE_INVALID_ARGUMENT, "%s failed: %s", kernel->label, text);
}
