/* ---- control ---- */

static void point(const hg_patch *patches, int64_t n, char *start) {
  for (int64_t i = 0; i < n; i++) *patches[i].slot = start + patches[i].offset;
}

/* Begin a loop, or end one of its turns; 0 if there is no other. */
static int64_t next_turn(hg_program *program, int64_t index) {
  char *const *pointers = program->phases[index].pointers;
  hg_control *control = program->phases[index].control;
  int64_t read; /* which pointer tells whether to go on */
  if (control->turn < 0) {
    control->turn = 0;
    read = control->going;
    for (int64_t i = 0; i < control->n_carried; i++) {
      hg_carried *value = &control->carried[i];
      value->now = pointers[value->start], value->next = pointers[value->first];
    }
  } else {
    control->turn++;
    read = control->condition;
    for (int64_t i = 0; i < control->n_carried; i++) {
      hg_carried *value = &control->carried[i];
      char *old = value->now;
      value->now = value->next;
      value->next = control->turn == 1 ? pointers[value->second] : old;
    }
  }
  int64_t turn = control->turn, limit = INT64_MAX;
  if (control->turns >= 0) limit = control->turns;
  if (control->limit >= 0) limit = *(const int64_t *)pointers[control->limit];
  int stopped = program->failure[0] != 0 || (program->stop != NULL && *program->stop != 0);
  int going = !stopped && turn < limit && (read < 0 || *pointers[read]);
  for (int64_t i = 0; going && i < control->n_scanned; i++) {
    hg_scanned *value = &control->scanned[i];
    char *base = value->base < 0 ? value->memory : pointers[value->base];
    if (value->base < 0 && turn >= value->room) {
      int64_t room = value->room < 8 ? 16 : 2 * value->room;
      base = realloc(value->memory, (size_t)(room * value->step) + 64);
      if (base == NULL) {
        program->failure[0] = index + 1, program->failure[1] = room;
        going = 0;
        break;
      }
      value->memory = base, value->room = room;
    }
    point(value->patches, value->n_patches, base + value->start + turn * value->step);
  }
  if (!going) {
    for (int64_t i = 0; i < control->n_carried; i++) {
      hg_carried *value = &control->carried[i];
      char *result = pointers[value->first];
      if (value->now != result) memcpy(result, value->now, (size_t)value->bytes);
    }
    control->made = turn;
    control->turn = -1;
    return 0;
  }
  if (control->count >= 0) *(int64_t *)pointers[control->count] = turn;
  for (int64_t i = 0; i < control->n_carried; i++) {
    hg_carried *value = &control->carried[i];
    point(value->before, value->n_before, value->now);
    point(value->after, value->n_after, value->next);
  }
  return 1;
}

static int64_t judge(hg_program *program, int64_t index) {
  const hg_phase *phase = &program->phases[index];
  int64_t verdict = phase->control->loops ? next_turn(program, index)
                                          : *phase->pointers[phase->control->condition] != 0;
  charge(program, index, verdict);
  return verdict;
}

/* Whether to run the body: the first thread judges, and moves the pointers, while the others wait. */
static int64_t decide(hg_program *program, int64_t index, int64_t self, int64_t threads) {
  hg_control *control = program->phases[index].control;
  if (threads == 1) return judge(program, index);
  _Atomic int64_t *come = &program->claims[index * threads].value;
  _Atomic int64_t *open = &program->done[index].value;
  int64_t epoch = ++program->epochs[self * program->epochs_stride + index];
  if (self == 0) {
    wait_for(come, (threads - 1) * epoch);
    control->verdict = judge(program, index);
    atomic_store_explicit(open, epoch, memory_order_release);
  } else {
    atomic_fetch_add_explicit(come, 1, memory_order_acq_rel);
    wait_for(open, epoch);
  }
  return control->verdict;
}

static void run_range(hg_program *program, int64_t from, int64_t to, int64_t self, int64_t threads);

static void run_control(hg_program *program, int64_t index, int64_t self, int64_t threads) {
  const hg_control *control = program->phases[index].control;
  if (control->loops) {
    while (decide(program, index, self, threads))
      run_range(program, index + 1, control->end, self, threads);
  } else if (decide(program, index, self, threads)) {
    run_range(program, index + 1, control->otherwise, self, threads);
  } else {
    run_range(program, control->otherwise, control->end, self, threads);
  }
}
