/* One run: parts in order, over slots that hold inputs, constants and results. */

#define MOST_IDLE 5

typedef struct {
  char *data;
  int32_t rank;
  int64_t shape[HAGANE_AXES];
  int64_t bytes;
} slot_value;

struct run_context {
  run_context *next;
  const hgb_program *program;
  part_context *parts;
  slot_value *slots;
  char **own; /* memory of slots, where the caller has none */
  size_t *room;
};

static void close_run(hagane_model *model, run_context *run) {
  if (run == NULL) return;
  for (int32_t i = 0; run->parts != NULL && i < run->program->n_steps; i++)
    if (run->parts[i].model != NULL) close_part(&run->parts[i]);
  for (int32_t i = 0; run->own != NULL && i < run->program->n_slots; i++)
    give_back(model, run->own[i]);
  free(run->parts), free(run->slots), free(run->own), free(run->room), free(run);
}

static run_context *open_run(hagane_model *model, const hgb_program *program) {
  run_context *run = calloc(1, sizeof *run);
  if (run == NULL) return NULL;
  size_t slots = (size_t)program->n_slots + 1;
  run->program = program;
  run->parts = calloc((size_t)program->n_steps + 1, sizeof *run->parts);
  run->slots = calloc(slots, sizeof *run->slots);
  run->own = calloc(slots, sizeof *run->own);
  run->room = calloc(slots, sizeof *run->room);
  int done = run->parts != NULL && run->slots != NULL && run->own != NULL && run->room != NULL;
  for (int32_t i = 0; done && i < program->n_steps; i++)
    done = open_part(&run->parts[i], model, program->steps[i].part);
  if (!done) {
    close_run(model, run);
    return NULL;
  }
  return run;
}

/* Whether an idle context has last run inputs of these shapes. */
static int has_shapes(const hgb_model *tables, const run_context *run, const slot_value *values) {
  for (int32_t i = 0; i < tables->n_inputs; i++)
    if (memcmp(run->slots[i].shape, values[i].shape, sizeof(int64_t) * (size_t)values[i].rank) != 0) return 0;
  return 1;
}

/* Memory and tables for one run, those of the same shapes if they are idle. */
static run_context *take_run(hagane_model *model, const hgb_program *program, const slot_value *values) {
  pthread_mutex_lock(&model->lock);
  run_context **found = NULL, **oldest = NULL;
  for (run_context **at = &model->idle; *at != NULL; at = &(*at)->next) {
    if ((*at)->program != program) continue;
    oldest = at;
    if (has_shapes(model->tables, *at, values)) {
      found = at;
      break;
    }
  }
  if (found == NULL && model->n_idle >= MOST_IDLE) found = oldest;
  run_context *run = found == NULL ? NULL : *found;
  if (run != NULL) *found = run->next, model->n_idle--;
  pthread_mutex_unlock(&model->lock);
  return run != NULL ? run : open_run(model, program);
}

static void leave_run(hagane_model *model, run_context *run) {
  pthread_mutex_lock(&model->lock);
  run->next = model->idle;
  model->idle = run;
  model->n_idle++;
  run_context *last = NULL;
  if (model->n_idle > 2 * MOST_IDLE) { /* of other programs */
    run_context **at = &model->idle;
    while ((*at)->next != NULL) at = &(*at)->next;
    last = *at, *at = NULL, model->n_idle--;
  }
  pthread_mutex_unlock(&model->lock);
  close_run(model, last);
}

static int64_t bytes_of_shape(int32_t type, int32_t rank, const int64_t *shape) {
  int64_t bytes = bytes_of_type(type);
  for (int32_t i = 0; i < rank; i++)
    if (shape[i] < 0 || __builtin_mul_overflow(bytes, shape[i], &bytes)) return -1;
  return bytes;
}

/* Memory of a slot's own; its content may be lost. */
static char *slot_room(hagane_model *model, run_context *run, int32_t slot, int64_t bytes) {
  if (run->own[slot] == NULL || run->room[slot] < (size_t)bytes) {
    give_back(model, run->own[slot]);
    run->own[slot] = take(model, (size_t)bytes);
    run->room[slot] = run->own[slot] == NULL ? 0 : (size_t)bytes;
  }
  return run->own[slot];
}

/* The wishes of a caller for one output. */
typedef struct {
  hagane_tensor *tensor;
  int32_t slot;
  int allocated, done;
} wanted;

static int32_t too_small(const hagane_model *model, const wanted *want, int64_t bytes) {
  return fail(model, HAGANE_MEMORY, "output '%s': expected memory of %lld bytes, got %zu", want->tensor->name,
              (long long)bytes, want->tensor->bytes);
}

/* Memory for an output, of the caller's or allocated. */
static int32_t find_memory(hagane_model *model, wanted *want, int64_t bytes) {
  hagane_tensor *tensor = want->tensor;
  if (tensor->data != NULL)
    return tensor->bytes < (size_t)bytes ? too_small(model, want, bytes) : HAGANE_OK;
  tensor->data = give(model, (size_t)bytes);
  if (tensor->data == NULL)
    return fail(model, HAGANE_MEMORY, "output '%s': there is no memory for %lld bytes", tensor->name,
                (long long)bytes);
  want->allocated = 1;
  return HAGANE_OK;
}

static int is_apart(const char *data, int64_t bytes, const slot_value *inputs, int32_t n) {
  for (int32_t i = 0; i < n; i++)
    if (data < inputs[i].data + inputs[i].bytes && inputs[i].data < data + bytes) return 0;
  return 1;
}

/* Where a step shall write an output: at once to where the caller wants it, if that can be. */
static int32_t place_output(hagane_model *model, run_context *run, int32_t slot, int64_t bytes, int32_t type,
                            wanted *wants, size_t n_wants, char **place) {
  for (size_t i = 0; i < n_wants; i++) {
    wanted *want = &wants[i];
    if (want->slot != slot) continue;
    int32_t code = find_memory(model, want, bytes);
    if (code != HAGANE_OK) return code;
    char *data = want->tensor->data;
    if ((uintptr_t)data % (size_t)bytes_of_type(type) == 0 &&
        is_apart(data, bytes, run->slots, model->tables->n_inputs)) {
      want->done = 1;
      *place = data;
      return HAGANE_OK;
    }
  }
  *place = slot_room(model, run, slot, bytes);
  return *place == NULL ? fail(model, HAGANE_MEMORY, "there is no memory for %lld bytes", (long long)bytes)
                        : HAGANE_OK;
}

/* Make a part's tables those of its inputs, unless they are. */
static int32_t prepare(run_context *run, int32_t index) {
  const hgb_step *step = &run->program->steps[index];
  part_context *context = &run->parts[index];
  int64_t *shape = context->tables->shapes;
  int same = context->tables->ready != 0;
  for (int32_t i = 0; i < step->part->n_inputs; i++) {
    const slot_value *value = &run->slots[step->inputs[i]];
    for (int32_t axis = 0; axis < value->rank; axis++, shape++)
      if (*shape != value->shape[axis]) *shape = value->shape[axis], same = 0;
  }
  return same ? HAGANE_OK : fit_part(context);
}

static int32_t run_step(hagane_model *model, run_context *run, int32_t index, wanted *wants, size_t n_wants) {
  const hgb_step *step = &run->program->steps[index];
  const hgt_part *part = step->part;
  part_context *context = &run->parts[index];
  int32_t code = prepare(run, index);
  if (code != HAGANE_OK) return code;
  for (int32_t i = 0; i < part->n_outputs; i++) {
    const hgt_port *port = &part->outputs[i];
    slot_value *value = &run->slots[step->outputs[i]];
    value->rank = port->rank;
    hg_shape(context->tables, i, value->shape);
    if (port->grows) continue;
    value->bytes = bytes_of_shape(port->type, port->rank, value->shape);
    if (value->bytes < 0) return fail(model, HAGANE_MEMORY, "an output is beyond any memory");
    code = place_output(model, run, step->outputs[i], value->bytes, port->type, wants, n_wants, &value->data);
    if (code != HAGANE_OK) return code;
  }
  char *inputs[part->n_inputs + 1], *outputs[part->n_outputs + 1];
  for (int32_t i = 0; i < part->n_inputs; i++) inputs[i] = run->slots[step->inputs[i]].data;
  for (int32_t i = 0; i < part->n_outputs; i++) outputs[i] = run->slots[step->outputs[i]].data;
  hg_point(context->tables, inputs, outputs);
  atomic_store_explicit(&context->cancelled, 0, memory_order_relaxed);
  int64_t failed = hg_run(context->tables->program, NULL, NULL);
  if (is_cancelled(context)) return fail(model, HAGANE_CANCELLED, "the run was cancelled");
  if (failed >= 0) return fail_kernel(context, failed);
  for (int32_t i = 0; i < part->n_outputs; i++) {
    const hgt_port *port = &part->outputs[i];
    slot_value *value = &run->slots[step->outputs[i]];
    if (!port->grows) continue;
    char *from = hg_grown(context->tables, i, value->shape);
    value->bytes = bytes_of_shape(port->type, port->rank, value->shape);
    if (value->bytes < 0) return fail(model, HAGANE_MEMORY, "an output is beyond any memory");
    if (from == NULL && value->bytes > 0) return fail(model, HAGANE_INTERNAL, "an output is nowhere");
    code = place_output(model, run, step->outputs[i], value->bytes, port->type, wants, n_wants, &value->data);
    if (code != HAGANE_OK) return code;
    if (value->bytes > 0) memcpy(value->data, from, (size_t)value->bytes);
  }
  return HAGANE_OK;
}

static int32_t run_program(hagane_model *model, run_context *run, wanted *wants, size_t n_wants) {
  const hgb_program *program = run->program;
  for (int32_t i = 0; i < program->n_constants; i++) {
    const hgb_constant *constant = &program->constants[i];
    slot_value *value = &run->slots[constant->slot];
    value->data = (char *)model->weights + constant->at;
    value->rank = constant->rank;
    memcpy(value->shape, constant->shape, sizeof(int64_t) * (size_t)constant->rank);
    value->bytes = bytes_of_shape(constant->type, constant->rank, constant->shape);
  }
  int32_t code = HAGANE_OK;
  for (int32_t i = 0; i < program->n_steps && code == HAGANE_OK; i++) {
    if (model->options.cancel != NULL && *model->options.cancel != 0)
      code = fail(model, HAGANE_CANCELLED, "the run was cancelled");
    else
      code = run_step(model, run, i, wants, n_wants);
  }
  /* Memory that is too small is found before anything is copied to the rest. */
  for (size_t i = 0; i < n_wants && code == HAGANE_OK; i++)
    if (!wants[i].done && wants[i].tensor->data == NULL)
      code = find_memory(model, &wants[i], run->slots[wants[i].slot].bytes);
    else if (!wants[i].done && wants[i].tensor->bytes < (size_t)run->slots[wants[i].slot].bytes)
      code = too_small(model, &wants[i], run->slots[wants[i].slot].bytes);
  for (size_t i = 0; i < n_wants && code == HAGANE_OK; i++) {
    const slot_value *value = &run->slots[wants[i].slot];
    hagane_tensor *tensor = wants[i].tensor;
    if (!wants[i].done && value->bytes > 0) memmove(tensor->data, value->data, (size_t)value->bytes);
    tensor->rank = value->rank;
    memcpy(tensor->shape, value->shape, sizeof(int64_t) * (size_t)value->rank);
    tensor->bytes = (size_t)value->bytes;
  }
  for (size_t i = 0; i < n_wants && code != HAGANE_OK; i++)
    if (wants[i].allocated) {
      take_back(model, wants[i].tensor->data);
      wants[i].tensor->data = NULL;
    }
  return code;
}
