/* ---- control ---- */

static void point(const hg_patch *patches, int64_t n, char *start) {
  for (int64_t i = 0; i < n; i++) *patches[i].slot = start + patches[i].offset;
}

/* ---- sizes that differ between iterations ---- */

/* Memory of at least some bytes, whose content may be lost; null if there is none. */
static char *make_room(char **memory, int64_t *room, int64_t bytes) {
  if (bytes < 0) return NULL; /* more than a number of bytes can be */
  if (*memory == NULL || *room < bytes) {
    free(*memory);
    *room = bytes + bytes / 2 + 4096;
    *memory = malloc((size_t)*room + 64);
  }
  return *memory;
}

/* Make room behind what a state has, to which an iteration adds; null if there is none. Where it was stays until
 * it moves again: kernels may still read it there. */
static char *extend(hg_carried *value, int64_t bytes) {
  int64_t own = value->now == value->memory[0] ? 0 : value->now == value->memory[1] ? 1 : -1;
  if (own < 0 || value->room[own] < bytes) {
    int64_t other = own < 0 ? value->room[1] > value->room[0] : 1 - own;
    char *memory = make_room(&value->memory[other], &value->room[other], bytes);
    if (memory == NULL) return NULL;
    if (value->held > 0) memcpy(memory, value->now, (size_t)value->held);
    value->now = memory;
  }
  value->held = bytes;
  return value->next = value->now;
}

/* Make sizes and tasks those of the next iteration; 0 if something is wrong. */
static int compute_sizes(hg_program *program, const hg_control *control) {
  const hg_phase *sizer = &program->phases[control->sizer];
  hg_thread thread = {program->scratch[0], program->failure, control->sizer};
  sizer->kernel(sizer->pointers, sizer->sizes, 0, &thread);
  if (program->failure[0] != 0) return 0;
  const int64_t *computed = control->computed;
  for (int64_t i = 0; i < control->n_numbers; i++)
    *(int64_t *)control->numbers[i].place = computed[control->numbers[i].which];
  for (int64_t i = 0; i < control->n_tasks; i++) {
    hg_phase *phase = &program->phases[control->tasks[i].place];
    int64_t tasks = computed[control->tasks[i].which];
    if (tasks == phase->tasks) continue;
    phase->all_tasks += tasks - phase->tasks;
    phase->tasks = tasks;
  }
  return 1;
}

/* Take over states whose size the iteration before has found: from where its kernels left them, which others
 * may read until all are taken. 0 if there is no memory. */
static int take_states(hg_control *control, char *const *pointers) {
  int64_t which = control->iteration & 1;
  for (int64_t i = 0; i < control->n_carried; i++) {
    hg_carried *value = &control->carried[i];
    if (value->grows != HG_FOUND || value->appended) continue;
    value->now = make_room(&value->memory[which], &value->room[which], value->bytes);
    if (value->now == NULL) return 0;
    memcpy(value->now, pointers[value->second], (size_t)value->bytes);
  }
  return 1;
}

/* Give temporary values the memory that the next iteration needs; 0 if there is none. */
static int resize(hg_program *program, hg_control *control) {
  const int64_t *computed = control->computed;
  for (int64_t i = 0; i < control->n_moved; i++) {
    hg_moved *value = &control->moved[i];
    char *memory = value->state != NULL ? extend(value->state, value->bytes)
                                        : make_room(&value->memory, &value->room, value->bytes);
    if (memory == NULL) return 0;
    point(value->patches, value->n_patches, memory);
  }
  for (int64_t i = 0; i < control->n_carried; i++) {
    hg_carried *value = &control->carried[i];
    int64_t which = control->iteration & 1;
    if (value->grows != HG_GROWS) continue;
    value->next = value->appended ? extend(value, value->bytes)
                                  : make_room(&value->memory[which], &value->room[which], value->bytes);
    if (value->next == NULL) return 0;
  }
  return control->scratch < 0 || computed[control->scratch] <= program->scratch_bytes ||
         hg_widen(program, program->threads, computed[control->scratch]);
}

/* The bytes of the largest temporary value. */
static int64_t most_bytes(const hg_control *control) {
  int64_t most = 0;
  for (int64_t i = 0; i < control->n_moved; i++)
    if (control->moved[i].bytes > most) most = control->moved[i].bytes;
  return most;
}

/* ---- iterations ---- */

/* Give the values that an iteration left to the next one, or begin with the initial values. */
static void hand_on(hg_control *control, char *const *pointers) {
  int64_t iteration = ++control->iteration;
  for (int64_t i = 0; i < control->n_carried; i++) {
    hg_carried *value = &control->carried[i];
    char *old = value->now;
    if (iteration == 0) value->now = pointers[value->start], value->held = value->begun;
    else if (value->grows != HG_FOUND) value->now = value->next;
    if (value->grows == 0)
      value->next = pointers[iteration == 0 ? value->first : value->second];
    if (value->grows == 0 && iteration > 1) value->next = old;
  }
}

/* Bring the values that the last iteration left to the results; 0 if there is no memory. */
static int leave(hg_control *control, char *const *pointers) {
  int there = 1;
  for (int64_t i = 0; i < control->n_carried; i++) {
    hg_carried *value = &control->carried[i];
    if (value->grows != 0 && control->iteration == 0) {
      /* Kernels behind the loop may write over an initial value before the result is read. */
      char *own = make_room(&value->memory[0], &value->room[0], value->begun);
      if (own == NULL) there = 0;
      else value->now = memcpy(own, value->now, (size_t)value->begun);
    }
    /* Kernels behind the loop read it where it is. */
    if (value->grows == HG_FOUND) point(value->before, value->n_before, value->now);
    if (value->first < 0) continue;
    char *result = pointers[value->first];
    /* Of a loop that is ended before its first iteration, `bytes` may be those of another time. */
    int64_t bytes = control->iteration == 0 ? value->begun : value->bytes;
    if (value->now != result) memcpy(result, value->now, (size_t)bytes);
  }
  for (int64_t i = 0; i < control->n_scanned; i++) {
    hg_scanned *value = &control->scanned[i];
    if (value->base < 0) point(value->patches, value->n_patches, value->memory);
  }
  control->made = control->iteration;
  control->iteration = -1;
  return there;
}

/* Whether to ask the caller now whether to go on. Iterations are counted between looks at the clock,
 * which would take longer than a short iteration. */
static int is_due(hg_program *program, hg_control *control) {
  if (program->ask == NULL || program->ended != 0 || --control->left > 0) return 0;
  int64_t t = now(), since = t - control->looked;
  if (control->run == program->run) {
    if (since > ASK_NS / LOOKS) control->stride = control->stride / 2 + 1;
    else if (control->stride < 1024) control->stride *= 2;
  }
  control->run = program->run;
  control->looked = t;
  control->left = control->stride;
  if (program->asked_in == program->run) return t - program->asked > ASK_NS;
  program->asked_in = program->run, program->asked = t;
  return 0;
}

/* Ask the caller whether to go on; its own thread does. */
static void consult(hg_program *program) {
  program->due = 0;
  program->asked = now();
  program->ended = program->ask(program->asker) != 0;
}

/* Begin a loop, or end one of its iterations; 0 if there is no other. */
static int64_t next_iteration(hg_program *program, int64_t index) {
  char *const *pointers = program->phases[index].pointers;
  hg_control *control = program->phases[index].control;
  hand_on(control, pointers);
  int64_t iteration = control->iteration, limit = INT64_MAX;
  /* When the loop has ended, it is how many iterations there were. */
  if (control->count >= 0) *(int64_t *)pointers[control->count] = iteration;
  int64_t read = iteration == 0 ? control->going : control->condition; /* tells whether to go on */
  if (control->iterations >= 0) limit = control->iterations;
  if (control->limit >= 0) limit = *(const int64_t *)pointers[control->limit];
  int stopped = program->failure[0] != 0 || program->ended != 0 ||
                (program->stop != NULL && *program->stop != 0);
  int going = !stopped && iteration < limit && (read < 0 || *pointers[read]);
  /* Sizes that the body finds are known after it, the last ones too; not of a body that was left early. */
  int sized = control->finds && !stopped;
  if (sized && (!compute_sizes(program, control) || (iteration > 0 && !take_states(control, pointers)))) {
    program->failure[0] = index + 1, program->failure[1] = iteration + 1;
    going = 0;
  }
  for (int64_t i = 0; going && i < control->n_scanned; i++) {
    hg_scanned *value = &control->scanned[i];
    char *base = value->base < 0 ? value->memory : pointers[value->base];
    if (value->base < 0 && iteration >= value->room) {
      int64_t room = value->room < 8 ? 16 : 2 * value->room;
      base = realloc(value->memory, (size_t)(room * value->step) + 64);
      if (base == NULL) {
        program->failure[0] = index + 1, program->failure[1] = room;
        going = 0;
        break;
      }
      value->memory = base, value->room = room;
    }
    point(value->patches, value->n_patches, base + value->start + iteration * value->step);
  }
  if (going && control->sizer >= 0 &&
      !((sized || compute_sizes(program, control)) && resize(program, control))) {
    program->failure[0] = index + 1, program->failure[1] = iteration + 1;
    going = 0;
  }
  if (!going) {
    if (!leave(control, pointers))
      program->failure[0] = index + 1, program->failure[1] = iteration;
    return 0;
  }
  for (int64_t i = 0; i < control->n_carried; i++) {
    hg_carried *value = &control->carried[i];
    point(value->before, value->n_before, value->now);
    if (value->grows != HG_FOUND) point(value->after, value->n_after, value->next);
  }
  return 1;
}

/* Take over the sizes that kernels have found; 0 if there is no memory, or something is wrong. */
static int64_t take_sizes(hg_program *program, int64_t index) {
  char *const *pointers = program->phases[index].pointers;
  hg_control *control = program->phases[index].control;
  if (program->failure[0] != 0) return 0; /* they may be anything */
  int there = compute_sizes(program, control) && resize(program, control);
  if (program->failure[0] != 0) return 0;
  if (!there) {
    program->failure[0] = index + 1, program->failure[1] = most_bytes(control);
    return 0;
  }
  for (int64_t i = 0; i < control->n_scanned; i++) {
    hg_scanned *value = &control->scanned[i];
    point(value->patches, value->n_patches, pointers[value->base] + value->start);
  }
  return 1;
}

/* Whether to run the body of a loop again, or which body of a branch; no task is being done. */
static int64_t judge(hg_program *program, int64_t index) {
  const hg_phase *phase = &program->phases[index];
  int64_t loops = phase->control->loops;
  int64_t verdict = loops == 2 ? take_sizes(program, index)
                    : loops    ? next_iteration(program, index)
                               : *phase->pointers[phase->control->condition] != 0;
  charge(program, index, verdict);
  return verdict;
}

/* Leave the innermost body. */
static void leave_body(hg_program *program) {
  const hg_phase *phase = &program->phases[program->bodies[--program->depth].phase];
  program->alone -= phase->serial;
  program->at = phase->control->end;
}

/* Enter a loop, make its next iteration or leave it; enter a branch; take over sizes. 0 if the caller
 * must be asked first, in a thread that is not its own. */
static int turn(hg_program *program, int64_t index, int64_t self) {
  const hg_phase *phase = &program->phases[index];
  hg_control *control = phase->control;
  if (control->loops == 2) {
    int64_t depth = program->depth, end = program->n_phases;
    if (depth > 0) end = program->bodies[depth - 1].end;
    program->at = judge(program, index) ? control->end : end; /* nothing behind it knows its sizes */
    return 1;
  }
  int64_t depth = program->depth, begun = control->loops && control->iteration >= 0;
  if (control->loops) {
    program->due |= is_due(program, control);
    if (program->due && self != 0) return 0;
    if (program->due) consult(program);
  }
  int64_t verdict = judge(program, index);
  if (control->loops && !verdict) {
    if (begun) leave_body(program);
    else program->at = control->end;
    return 1;
  }
  if (!begun) {
    program->bodies[depth] = (hg_body){index, verdict ? control->otherwise : control->end};
    if (control->loops) program->bodies[depth].end = control->end;
    program->depth++;
    program->alone += phase->serial;
  }
  program->at = verdict ? index + 1 : control->otherwise;
  return 1;
}
