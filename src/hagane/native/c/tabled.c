/* ---- tables of loops, branches and sizes that are found, for the sizes of a run ---- */

/* Where pointers of kernels to buffers that move lie, and numbers that may differ between iterations. */
typedef struct {
  char ****places; /* for each buffer, its pointers */
  int32_t **offsets;
  int32_t *counts;
  hg_changing *changing;
  int64_t n_changing, room;
  int failed;
} hg_moving;

static void *keep(hg_context *context, size_t bytes) {
  hg_block *made = calloc(1, sizeof *made + bytes);
  if (made == NULL) return NULL;
  made->next = context->blocks;
  context->blocks = made;
  return made + 1;
}

static void forget_tables(hg_context *context) {
  for (hg_block *next; context->blocks != NULL; context->blocks = next) {
    next = context->blocks->next;
    free(context->blocks);
  }
}

static void note_changing(hg_moving *found, int64_t *place, int32_t number) {
  if (found->n_changing == found->room) {
    int64_t room = 2 * found->room + 64;
    hg_changing *grown = realloc(found->changing, sizeof *grown * (size_t)room);
    if (grown == NULL) {
      found->failed = 1;
      return;
    }
    found->changing = grown, found->room = room;
  }
  found->changing[found->n_changing++] = (hg_changing){place, number};
}

static int patch_of(hg_context *context, hg_moving *found, int32_t buffer, const hg_patch **patches, int64_t *n) {
  int32_t count = found->counts[buffer];
  hg_patch *made = keep(context, sizeof *made * (size_t)(count + 1));
  if (made == NULL) return 0;
  for (int32_t i = 0; i < count; i++) {
    made[i] = (hg_patch){found->places[buffer][i], context->numbers[found->offsets[buffer][i]]};
    note_changing(found, &made[i].offset, found->offsets[buffer][i]);
  }
  *patches = made, *n = count;
  return 1;
}

/* The state of a loop to whose end iterations add, by its buffer; null if it is another. Loops around others
 * come first. */
static hg_carried *appended_state(const hg_context *context, int32_t buffer) {
  const hgt_part *part = context->part;
  for (int32_t i = 0; i < part->n_controls; i++)
    for (int64_t k = 0; k < context->controls[i].n_carried; k++) {
      hg_carried *state = &context->controls[i].carried[k];
      if (state->appended && part->carried[part->controls[i].carry + k].before == buffer) return state;
    }
  return NULL;
}

static int fill_control(hg_context *context, const hgt_control *from, hg_control *into, hg_moving *found) {
  const hgt_part *part = context->part;
  const int64_t *numbers = context->numbers;
  if (from->iterations != HGT_NONE) {
    into->iterations = numbers[from->iterations];
    if (into->iterations < 0) into->iterations = 0;
    note_changing(found, &into->iterations, from->iterations);
  }
  into->limit = from->limit, into->going = from->going;
  into->count = from->count;
  into->n_carried = from->carried, into->n_scanned = from->scanned;
  into->carried = keep(context, sizeof(hg_carried) * (size_t)(from->carried + 1));
  into->scanned = keep(context, sizeof(hg_scanned) * (size_t)(from->scanned + 1));
  if (into->carried == NULL || into->scanned == NULL) return 0;
  for (int32_t i = 0; i < from->carried; i++) {
    const hgt_carried *value = &part->carried[from->carry + i];
    hg_carried *made = &into->carried[i];
    if (!patch_of(context, found, value->before, &made->before, &made->n_before)) return 0;
    if (!patch_of(context, found, value->after, &made->after, &made->n_after)) return 0;
    made->start = value->start, made->first = value->first, made->second = value->second;
    made->bytes = made->begun = numbers[value->size];
    if (value->grown != HGT_NONE) made->grows = value->second == HGT_NONE ? HG_GROWS : HG_FOUND;
    into->finds |= made->grows == HG_FOUND;
    const hgt_pointer *pointers = part->pointers + part->kernels[from->begin].pointer;
    int32_t left = made->grows == HG_FOUND ? pointers[value->second].buffer : value->after;
    made->appended = made->grows != 0 && left == value->before;
    note_changing(found, &made->begun, value->size);
    note_changing(found, &made->bytes, made->grows ? value->grown : value->size);
  }
  for (int32_t i = 0; i < from->scanned; i++) {
    const hgt_scanned *value = &part->scanned[from->scan + i];
    hg_scanned *made = &into->scanned[i];
    if (!patch_of(context, found, value->slice, &made->patches, &made->n_patches)) return 0;
    made->base = value->base, made->start = numbers[value->start], made->step = numbers[value->step];
    note_changing(found, &made->start, value->start);
    note_changing(found, &made->step, value->step);
  }
  if (!from->changes) return 1;
  hg_moved *moved = keep(context, sizeof *moved * (size_t)(from->moved + 1));
  int64_t *computed = keep(context, sizeof *computed * (size_t)(from->dims + from->changing + 1));
  if (moved == NULL || computed == NULL) return 0;
  for (int32_t i = 0; i < from->moved; i++) {
    int32_t buffer = part->moved[from->moved_at + i];
    if (!patch_of(context, found, buffer, &moved[i].patches, &moved[i].n_patches)) return 0;
    moved[i].state = appended_state(context, buffer);
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
static int follow(hg_context *context, const hgt_control *from, hg_control *into, const hg_moving *found) {
  const hgt_part *part = context->part;
  if (!from->changes) return 1;
  int32_t *which = malloc(sizeof *which * (size_t)(part->n_numbers + 1));
  hg_number *numbers = keep(context, sizeof *numbers * (size_t)(found->n_changing + part->n_kernels + 1));
  hg_number *tasks = keep(context, sizeof *tasks * (size_t)(part->n_kernels + 1));
  if (which == NULL || numbers == NULL || tasks == NULL) return free(which), 0;
  for (int64_t i = 0; i < part->n_numbers; i++) which[i] = HGT_NONE;
  for (int32_t i = from->dims; i-- > 0;) which[part->control_dims[from->dim + i]] = i;
  into->numbers = numbers, into->tasks = tasks;
  for (int64_t i = 0; i < found->n_changing; i++) {
    int32_t at = which[found->changing[i].number];
    if (at != HGT_NONE)
      numbers[into->n_numbers++] = (hg_number){(int64_t)(intptr_t)found->changing[i].place, at};
  }
  for (int32_t i = 0; i < part->n_kernels; i++) {
    int32_t at = which[part->kernels[i].tasks];
    if (at == HGT_NONE) continue;
    int64_t *own = context->host.tasks == NULL ? NULL : context->host.tasks(context->host.owner, i);
    if (own != NULL) numbers[into->n_numbers++] = (hg_number){(int64_t)(intptr_t)own, at};
    else tasks[into->n_tasks++] = (hg_number){i, at};
  }
  into->scratch = from->scratch == HGT_NONE ? -1 : which[from->scratch];
  free(which);
  return 1;
}

static int fill_controls(hg_context *context, hg_moving *found) {
  const hgt_part *part = context->part;
  if (part->n_controls == 0) return 1;
  context->controls = keep(context, sizeof(hg_control) * (size_t)part->n_controls);
  if (context->controls == NULL) return 0;
  for (int32_t i = 0; i < part->n_controls; i++) {
    const hgt_control *from = &part->controls[i];
    hg_control *into = &context->controls[i];
    into->loops = from->loops, into->otherwise = from->otherwise, into->end = from->end;
    into->iterations = into->limit = into->going = into->count = -1;
    into->condition = from->condition;
    into->iteration = into->made = into->sizer = into->scratch = -1;
    into->left = into->stride = 1;
    if (from->loops && !fill_control(context, from, into, found)) return 0;
  }
  for (int32_t i = 0; i < part->n_controls && !found->failed; i++) {
    if (!follow(context, &part->controls[i], &context->controls[i], found)) return 0;
    hg_set_control(context->program, part->controls[i].begin, &context->controls[i]);
  }
  return !found->failed;
}

/* ---- the facts after a run ---- */

/* The sizes with which a loop begins, of those that were found since the run began. */
static void begin_again(const hgt_part *part, const hgt_control *loop, int64_t *numbers) {
  const hgt_changing *names = part->changing + loop->change;
  for (int64_t i = 0; i < part->n_begin; i++) {
    const hgt_formula *at = &part->formulas[i];
    int own = at->operation != HGT_TAKE;
    for (int32_t k = 0; !own && k < loop->changing; k++) own = names[k].symbol == at->into;
    if (own) compute_numbers(at, 1, numbers);
  }
  follow_numbers(part, numbers);
}

/* Sizes after the last iteration of each loop, or in it. */
static void numbers_after(const hg_context *context, int left, int64_t *numbers) {
  const hgt_part *part = context->part;
  memcpy(numbers, context->numbers, sizeof *numbers * (size_t)part->n_numbers);
  for (int32_t i = 0; i < part->n_controls; i++) {
    const hgt_control *from = &part->controls[i];
    const hg_control *made = &context->controls[i];
    if (!from->changes) continue;
    if (from->loops == 1 && made->made <= 0) {
      begin_again(part, from, numbers);
      continue;
    }
    const hgt_changing *names = part->changing + from->change;
    for (int32_t k = 0; k < from->changing; k++)
      numbers[names[k].symbol] = made->computed[from->dims + k];
    follow_numbers(part, numbers);
    if (!left || from->loops != 1) continue;
    int64_t after[from->changing + 1];
    for (int32_t k = 0; k < from->changing; k++) after[k] = numbers[names[k].after];
    for (int32_t k = 0; k < from->changing; k++) numbers[names[k].symbol] = after[k];
  }
  follow_numbers(part, numbers);
}

/* Copy sizes after the run; 0 if there is no memory. */
static int shape_after(const hg_context *context, int32_t dims, int32_t rank, int64_t *shape) {
  int64_t *numbers = malloc(sizeof *numbers * (size_t)(context->part->n_numbers + 1));
  if (numbers == NULL) return 0;
  numbers_after(context, 1, numbers);
  for (int32_t axis = 0; axis < rank; axis++) shape[axis] = numbers[context->part->dims[dims + axis]];
  free(numbers);
  return 1;
}

/* The shape of an output as the sizes of inputs tell it. */
void hg_shape(const hg_context *context, int64_t which, int64_t *shape) {
  const hgt_port *port = &context->part->outputs[which];
  for (int32_t axis = 0; axis < port->rank; axis++)
    shape[axis] = context->numbers[context->part->dims[port->dims + axis]];
}

/* Where an output lies that grew or whose size was found, and its shape; null if there is none. */
char *hg_grown(const hg_context *context, int64_t which, int64_t *shape) {
  const hgt_part *part = context->part;
  hg_shape(context, which, shape);
  for (int32_t i = 0; i < part->n_controls; i++) {
    const hgt_control *from = &part->controls[i];
    const hg_control *made = &context->controls[i];
    for (int32_t k = 0; k < from->found; k++) {
      const hgt_found *value = &part->found[from->find + k];
      if (value->result != which) continue;
      return shape_after(context, value->dims, value->rank, shape) ? made->moved[value->moved].memory : NULL;
    }
    for (int32_t k = 0; k < from->scanned; k++) {
      if (part->scanned[from->scan + k].result != which) continue;
      shape[0] = made->made < 0 ? 0 : made->made;
      return made->scanned[k].memory;
    }
    for (int32_t k = 0; k < from->carried; k++) {
      const hgt_carried *value = &part->carried[from->carry + k];
      if (value->result != which) continue;
      return shape_after(context, value->dims, value->rank, shape) ? made->carried[k].now : NULL;
    }
  }
  return NULL;
}

/* The numbers that the message of a kernel's failure tells; 0 if there is no memory. */
int64_t hg_failed(const hg_context *context, int64_t index, int64_t *sizes) {
  const hgt_kernel *kernel = &context->part->kernels[index];
  int64_t *numbers = malloc(sizeof *numbers * (size_t)(context->part->n_numbers + 1));
  if (numbers == NULL) return 0;
  numbers_after(context, 0, numbers);
  for (int32_t i = 0; i < kernel->failure_sizes; i++)
    sizes[i] = numbers[context->part->failure_sizes[kernel->failure_size + i]];
  free(numbers);
  return 1;
}
