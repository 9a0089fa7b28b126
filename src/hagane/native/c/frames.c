/* Frames of an entry: the one that fits a feed, made ready or made anew. */

/* ---- arguments ---- */

/* The array of a feed's value, a new reference; null if it is something else, perhaps with an error. */
static PyArrayObject *array_of(const entry *self, PyObject *value) {
  PyObject *found = NULL;
  if (PyArray_CheckExact(value)) {
    found = Py_NewRef(value);
  } else if (Py_TYPE(value) == self->holder) {
    PyObject *device = PyObject_GetAttr(value, self->device);
    if (device == self->cpu) found = PyObject_GetAttr(value, self->held);
    Py_XDECREF(device);
    if (found != NULL && !PyArray_CheckExact(found)) Py_CLEAR(found);
  }
  PyArrayObject *array = (PyArrayObject *)found;
  if (array == NULL || PyArray_ISCARRAY_RO(array)) return array;
  PyObject *copy = NULL;
  if (PyArray_ISNUMBER(array) && PyArray_ISNOTSWAPPED(array))
    copy = PyArray_NewCopy(array, NPY_CORDER);
  Py_DECREF(found);
  return (PyArrayObject *)copy;
}

static int fits(const port *at, PyArrayObject *array) {
  if (PyArray_TYPE(array) != at->type || PyArray_NDIM(array) != at->rank) return 0;
  const npy_intp *dims = PyArray_DIMS(array);
  for (int axis = 0; axis < at->rank; axis++)
    if (dims[axis] != at->shape[axis]) return 0;
  return 1;
}

/* The frame for some arrays, if there is one that no run uses. */
static frame *find_frame(entry *self, PyArrayObject *const *arrays) {
  for (int i = 0; i < FRAMES; i++) {
    frame *at = &self->frames[i];
    if (at->owner == NULL || at->busy) continue;
    Py_ssize_t k = 0;
    while (k < self->n_inputs && fits(&at->ports[k], arrays[k])) k++;
    if (k == self->n_inputs) return at;
  }
  return NULL;
}

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int is_expired(const frame *at) { return at->lease != 0 && at->runs >= at->lease; }

/* ---- counts of runs ---- */

static uint64_t key_of(const entry *self, PyArrayObject *const *arrays) {
  uint64_t key = 0x9e3779b97f4a7c15u;
  for (Py_ssize_t i = 0; i < self->n_inputs; i++)
    for (int axis = 0; axis < PyArray_NDIM(arrays[i]); axis++) {
      key = (key ^ (uint64_t)PyArray_DIM(arrays[i], axis)) * 0xff51afd7ed558ccdu;
      key ^= key >> 32;
    }
  return key | 1;
}

/* How often shapes without a frame have run, and the least time of that. */
static count runs_of(const entry *self, uint64_t key) {
  const count *at = &self->counts[key / 2 % COUNTED];
  return at->key == key ? *at : (count){key, 0, 0};
}

/* Note how often the shapes of a frame have run, which gets others now. */
static void note_runs(entry *self, const frame *at) {
  if (at->owner == NULL || at->key == 0) return;
  self->counts[at->key / 2 % COUNTED] =
      (count){at->key, at->general ? at->runs : ITS_OWN, at->general ? at->least : 0};
}

/* ---- frames ---- */

/* (type number, which of the part's) */
static int read_port(PyObject *item, port *into, const hgt_port *ports, int64_t n) {
  long long which;
  if (!PyArg_ParseTuple(item, "iL", &into->type, &which)) return -1;
  into->which = which;
  if (which < n) {
    into->rank = which < 0 ? 0 : ports[which].rank;
    into->grows = which >= 0 && ports[which].grows;
    return 0;
  }
  PyErr_SetString(PyExc_ValueError, "a frame of other inputs or outputs");
  return -1;
}

static npy_intp bytes_of(const port *at) {
  npy_intp bytes = PyDataType_ELSIZE(at->descr);
  for (int i = 0; i < at->rank; i++)
    if (__builtin_mul_overflow(bytes, at->shape[i], &bytes)) return NPY_MAX_INTP;
  return bytes;
}

/* Take over the shapes that a frame's context is ready for now. */
static void take_shapes(const entry *self, frame *at, PyArrayObject *const *arrays) {
  const hg_context *context = at->context;
  for (Py_ssize_t i = 0; i < self->n_inputs; i++) {
    at->ports[i].rank = PyArray_NDIM(arrays[i]);
    if (at->ports[i].rank > 0) /* numbers without axes have none to point to */
      memcpy(at->ports[i].shape, PyArray_DIMS(arrays[i]), sizeof(npy_intp) * (size_t)at->ports[i].rank);
    at->ports[i].bytes = PyArray_NBYTES(arrays[i]);
  }
  for (Py_ssize_t i = self->n_inputs; i < self->n_inputs + self->n_outputs; i++) {
    port *output = &at->ports[i];
    const hgt_port *from = &context->part->outputs[output->which];
    for (int axis = 0; axis < output->rank; axis++)
      output->shape[axis] = context->numbers[context->part->dims[from->dims + axis]];
    output->bytes = bytes_of(output);
  }
  at->key = key_of(self, arrays);
}

/* (run, fit, grown, lend, context, endless, general, owner, failed, empty, inputs, outputs, lease) */
static int read_frame(const entry *self, PyObject *item, frame *into, PyArrayObject *const *arrays) {
  unsigned long long run, fit, grown, lend, context;
  long long lease;
  PyObject *inputs, *outputs;
  memset(into, 0, sizeof *into);
  if (!PyArg_ParseTuple(item, "KKKKKppOOOO!O!L", &run, &fit, &grown, &lend, &context, &into->endless,
                        &into->general, &into->owner, &into->failed, &into->empty, &PyList_Type, &inputs,
                        &PyList_Type, &outputs, &lease)) {
    memset(into, 0, sizeof *into);
    return -1;
  }
  Py_INCREF(into->owner);
  Py_INCREF(into->failed);
  Py_INCREF(into->empty);
  into->run = (runner)(uintptr_t)run;
  into->fit = (fitter)(uintptr_t)fit;
  into->grown = (finder)(uintptr_t)grown;
  into->lend = (lender)(uintptr_t)lend;
  into->context = (hg_context *)(uintptr_t)context;
  into->lease = lease;
  Py_ssize_t n = self->n_inputs + self->n_outputs;
  into->ports = calloc((size_t)n + 1, sizeof(port));
  if (into->ports == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  const hgt_part *part = into->context->part;
  if (PyList_GET_SIZE(inputs) != self->n_inputs || PyList_GET_SIZE(outputs) != self->n_outputs ||
      part->n_outputs != self->n_outputs || part->n_inputs > self->n_inputs) {
    PyErr_SetString(PyExc_ValueError, "a frame of other inputs or outputs");
    return -1;
  }
  for (Py_ssize_t i = 0; i < self->n_inputs; i++)
    if (read_port(PyList_GET_ITEM(inputs, i), &into->ports[i], part->inputs, part->n_inputs) != 0) return -1;
  for (Py_ssize_t i = 0; i < self->n_outputs; i++) {
    port *output = &into->ports[self->n_inputs + i];
    if (read_port(PyList_GET_ITEM(outputs, i), output, part->outputs, part->n_outputs) != 0) return -1;
    if (output->rank > NPY_MAXDIMS || output->which < 0) {
      PyErr_SetString(PyExc_ValueError, "an output that no frame can have");
      return -1;
    }
    output->descr = PyArray_DescrFromType(output->type);
    if (output->descr == NULL) return -1;
  }
  take_shapes(self, into, arrays);
  return 0;
}

/* The bytes for values that a context has, or will have when it runs again. */
static int64_t value_bytes(const hg_context *context) {
  return context->arena != NULL ? (int64_t)context->arena_bytes : context->wrong[1] + ARENA_SLACK;
}

/* Whether another context of the program for all shapes would take too much memory. */
static int is_much(const entry *self) {
  int64_t bytes = 0;
  for (int i = 0; i < FRAMES; i++) {
    const hg_context *context = self->frames[i].context;
    if (self->frames[i].owner == NULL || !self->frames[i].general) continue;
    int64_t values = value_bytes(context);
    bytes += context->ahead && values <= LITTLE_BYTES ? context->wrong[1] + ARENA_SLACK : values;
    bytes += context->program->threads * context->program->scratch_bytes;
  }
  return bytes > LITTLE_BYTES;
}

/* The frame used least lately among frames that no run uses; null if there is none. */
static frame *oldest_frame(entry *self, int general) {
  frame *oldest = NULL;
  for (int i = 0; i < FRAMES; i++) {
    frame *at = &self->frames[i];
    if (at->owner == NULL || at->busy || (general && !at->general)) continue;
    if (oldest == NULL || at->used < oldest->used) oldest = at;
  }
  return oldest;
}

/* The frame used least lately that has so many bytes for values and waits; null if there is none. */
static frame *oldest_holder(entry *self, const frame *but, int64_t bytes) {
  frame *oldest = NULL;
  for (int i = 0; i < FRAMES; i++) {
    frame *at = &self->frames[i];
    if (at->owner == NULL || at->busy || at == but || at->context->arena == NULL) continue;
    if ((int64_t)at->context->arena_bytes < bytes || (oldest != NULL && at->used >= oldest->used)) continue;
    oldest = at;
  }
  return oldest;
}

/* Have frames that wait give up memory for values which is more than all of them may have beside a frame that is
 * to run; it gets what it lacks from one of them. */
static void share_memory(entry *self, frame *at) {
  for (;;) {
    int64_t all = 0, most = value_bytes(at->context), lacks = at->context->arena == NULL ? most : 0;
    for (int i = 0; i < FRAMES; i++) {
      if (self->frames[i].owner == NULL || self->frames[i].context->arena == NULL) continue;
      int64_t bytes = value_bytes(self->frames[i].context);
      all += bytes;
      if (bytes > most) most = bytes;
    }
    if (all + lacks <= most + SPARE_BYTES) return;
    frame *from = oldest_holder(self, at, lacks);
    if (from == NULL) from = oldest_holder(self, at, 0);
    if (from == NULL) return; /* other runs have the rest */
    int fits = lacks > 0 && from->lend == at->lend && (int64_t)from->context->arena_bytes >= lacks;
    from->lend(from->context, fits ? at->context : NULL);
  }
}

/* Have a frame that may have lent its memory, or been given some just now, ready to run; null if it cannot be. */
static frame *made_ready(entry *self, frame *at) {
  share_memory(self, at);
  if (at->context->ready) return at;
  at->busy = 1;
  int64_t code = at->fit(at->context, at->context->shapes);
  at->busy = 0;
  if (code == HG_FITS) return at;
  clear_frame(self, at);
  return NULL;
}

/* Whether a frame's context may be made ready for arrays, their sizes aside. */
static int could_fit(const entry *self, const frame *at, PyArrayObject *const *arrays) {
  for (Py_ssize_t i = 0; i < self->n_inputs; i++) {
    const port *input = &at->ports[i];
    if (input->which < 0 ? !fits(input, arrays[i])
                         : PyArray_TYPE(arrays[i]) != input->type || PyArray_NDIM(arrays[i]) != input->rank)
      return 0;
  }
  return 1;
}

/* Make a frame of the program for all shapes ready for others; null if there is none, or if another is to
 * be asked for. */
static frame *refit_frame(entry *self, PyArrayObject *const *arrays) {
  frame *at = oldest_frame(self, 1);
  if (at == NULL || !could_fit(self, at, arrays)) return NULL;
  count before = runs_of(self, key_of(self, arrays));
  int64_t runs = before.runs;
  if (at->lease != 0 && runs >= at->lease) return NULL;
  int free_one = 0;
  for (int i = 0; i < FRAMES; i++) free_one |= self->frames[i].owner == NULL;
  if (runs > 0 && free_one && !is_much(self)) return NULL; /* it comes again */
  hg_context *context = at->context;
  const hgt_part *part = context->part;
  int64_t *shape = context->shapes;
  note_runs(self, at);
  share_memory(self, at);
  for (int64_t p = 0; p < part->n_inputs; p++)
    for (Py_ssize_t i = 0; i < self->n_inputs; i++) {
      if (at->ports[i].which != p) continue;
      for (int axis = 0; axis < at->ports[i].rank; axis++) *shape++ = PyArray_DIM(arrays[i], axis);
    }
  at->busy = 1;
  context->once = 1;
  int64_t code = at->fit(context, context->shapes);
  context->once = 0;
  at->busy = 0;
  if (code != HG_FITS) {
    clear_frame(self, at); /* it is ready for nothing */
    return NULL;
  }
  take_shapes(self, at, arrays);
  at->runs = runs, at->least = before.least;
  return at;
}

/* Ask for a frame for some arrays; null without an error if there is none. It replaces `expired`, if that is
 * not null, else the one that was used least lately if that is its owner, or if there is no place. `coming` runs
 * of these shapes follow at once. */
static frame *make_frame(entry *self, PyArrayObject *const *arrays, frame *expired, int coming) {
  frame *free_one = NULL, *into = NULL;
  int much = is_much(self);
  for (int i = 0; i < FRAMES && expired == NULL; i++)
    if (self->frames[i].owner == NULL && !self->frames[i].busy) free_one = &self->frames[i];
  frame *oldest = expired != NULL ? expired : oldest_frame(self, much);
  if (oldest == NULL) oldest = oldest_frame(self, 0);
  if (oldest == NULL && free_one == NULL) return NULL;
  count before = runs_of(self, key_of(self, arrays));
  if (expired != NULL) before.runs = expired->runs, before.least = expired->least;
  if (before.runs == ITS_OWN) before.runs = 0;
  int general = expired == NULL || expired->general;
  PyObject *list = PyList_New(self->n_inputs);
  if (list == NULL) return NULL;
  for (Py_ssize_t i = 0; i < self->n_inputs; i++)
    PyList_SET_ITEM(list, i, Py_NewRef((PyObject *)arrays[i]));
  /* Python code runs now, and others may call: both are spoken for. */
  if (oldest != NULL) oldest->busy = 1;
  if (free_one != NULL) free_one->busy = 1;
  PyObject *owner = oldest == NULL ? Py_None : oldest->owner;
  /* Other sizes may come in the next run, as in `refit_frame`. */
  hg_context *taken = oldest != NULL && coming ? oldest->context : NULL;
  if (taken != NULL) taken->once = 1;
  PyObject *found = PyObject_CallFunction(self->fit, "OOOLLL", list, owner,
                                          (free_one == NULL && expired == NULL) || much ? Py_True : Py_False,
                                          (long long)before.runs + coming, (long long)(general ? before.least : 0),
                                          (long long)(general ? 0 : before.least));
  if (taken != NULL) taken->once = 0;
  Py_DECREF(list);
  if (found != NULL && found != Py_None) {
    frame made;
    if (read_frame(self, found, &made, arrays) != 0) {
      clear_frame(self, &made);
    } else {
      into = free_one == NULL || (oldest != NULL && made.owner == oldest->owner) ? oldest : free_one;
      if (into != expired) note_runs(self, into);
      frame old = *into;
      *into = made;
      clear_frame(self, &old);
    }
  } else if (oldest != NULL && found == NULL) {
    clear_frame(self, oldest); /* its program may have been changed */
  }
  Py_XDECREF(found);
  if (oldest != NULL && oldest != into) oldest->busy = 0;
  if (free_one != NULL && free_one != into) free_one->busy = 0;
  return into;
}
