/* The shortest way from a Python call to a compiled program.
 *
 * An entry knows the names of a session's inputs and outputs, and has frames: contexts of parts that are ready for
 * inputs of certain types and shapes. It finds the frame that fits a feed, writes the arrays' addresses into
 * the context's tables, runs it and returns the outputs. Other shapes are a matter of other tables: one of
 * the frames of the program for all shapes gets them. If there is no frame that can, it asks for one (`fit`), which
 * checks everything. Frames that wait lend their memory for values to the one that runs. A feed beyond an entry's
 * means makes it return None: the caller then takes the long way, which converts or explains.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/arrayobject.h>
#if NPY_ABI_VERSION < 0x02000000 /* of NumPy 1 */
#define PyDataType_ELSIZE(descr) ((npy_intp)(descr)->elsize)
#endif

#define FRAMES 16
/* The program for all shapes has as many frames as there is room for while they take few bytes, else as many as
 * there are runs at a time: other tables take microseconds, and memory has to stay flat over many shapes. */
#define LITTLE_BYTES (256 << 10)
/* All frames together have so many bytes for values more than the one that needs most. */
#define SPARE_BYTES (4 << 20)
/* Runs shorter than this, in nanoseconds, keep other Python threads waiting; letting go would cost more. */
#define SHORT_NS 20000.0
/* After so many runs of one shape, one after the other, in memory that was saved, it gets what is fastest. */
#define SETTLED 8
/* Shapes whose runs are counted; of one that has a program of its own. */
#define COUNTED 1024
#define ITS_OWN (1 << 30)
/* Outputs of so many bytes come from a pool, whose pages are there already. */
#define POOLED_BYTES (64 << 10)

typedef int64_t (*runner)(void *program, int64_t (*ask)(void *), void *asker);
typedef int64_t (*fitter)(hg_context *context, const int64_t *shapes);
typedef char *(*finder)(const hg_context *context, int64_t which, int64_t *shape);
typedef void (*lender)(hg_context *from, hg_context *into);

typedef struct {
  PyArray_Descr *descr; /* of outputs */
  int type;
  int rank;
  npy_intp shape[NPY_MAXDIMS];
  npy_intp bytes;
  int64_t which; /* of the part's inputs or outputs, -1 if it has none; */
  int grows;     /* its sizes are known after a run alone */
} port;

/* A program that is ready for inputs of certain types and shapes, for one run at a time. */
typedef struct {
  PyObject *owner;  /* keeps the context alive; null: there is none */
  PyObject *failed; /* called with the index of the phase that failed; raises */
  PyObject *empty;  /* makes arrays of shape and type, for large outputs */
  runner run;
  fitter fit;
  finder grown;
  lender lend;
  hg_context *context;
  int endless; /* may take any time */
  int general; /* of the program for all shapes */
  int busy;
  uint64_t used; /* when it was last */
  uint64_t key; /* of its shapes */
  int64_t lease, runs; /* after so many runs it is asked for again, if not 0; how many there were */
  int64_t least; /* nanoseconds of the shortest of them, of a frame that is asked for again; 0 before */
  port *ports;   /* inputs, then outputs */
} frame;

typedef struct {
  uint64_t key;
  int64_t runs, least;
} count;

typedef struct {
  Py_ssize_t n_inputs, n_outputs;
  PyObject *names; /* of inputs, then outputs; a tuple */
  PyObject *fit;   /* from arrays, the owner of a frame that may be taken, whether it must be, the runs of these
                    * shapes, and the least time of one, in general and by their own program, to a frame or None */
  PyTypeObject *holder; /* of the holder of an array in its attribute `held` on `device` */
  PyObject *held, *device, *cpu;
  uint64_t calls;
  frame frames[FRAMES];
  count counts[COUNTED]; /* of shapes that have no frame now */
} entry;

static void clear_frame(const entry *self, frame *at) {
  for (Py_ssize_t i = 0; at->ports != NULL && i < self->n_inputs + self->n_outputs; i++)
    Py_XDECREF(at->ports[i].descr);
  PyObject *owner = at->owner, *failed = at->failed, *empty = at->empty;
  free(at->ports);
  memset(at, 0, sizeof *at);
  Py_XDECREF(owner);
  Py_XDECREF(failed);
  Py_XDECREF(empty);
}

static void release(PyObject *capsule) {
  entry *self = PyCapsule_GetPointer(capsule, NULL);
  if (self == NULL) return;
  for (int i = 0; i < FRAMES; i++) clear_frame(self, &self->frames[i]);
  Py_XDECREF(self->names);
  Py_XDECREF(self->fit);
  Py_XDECREF(self->holder);
  Py_XDECREF(self->held);
  Py_XDECREF(self->device);
  Py_XDECREF(self->cpu);
  free(self);
}

/* Whether a signal came whose handler raises, such as that of Ctrl-C. Python runs handlers in the
 * main thread alone, so that others need not ask; they would wait for the interpreter. */
static int64_t is_interrupted(void *at) {
  PyThreadState **state = at;
  if (syscall(SYS_gettid) != getpid()) return 0;
  PyEval_RestoreThread(*state);
  int raised = PyErr_CheckSignals();
  *state = PyEval_SaveThread();
  return raised;
}

/* Run a program while other Python threads go on; Python's error is set if a signal ended it. */
static int64_t run_aside(runner run, void *program) {
  PyThreadState *state = PyEval_SaveThread();
  int64_t failed = run(program, is_interrupted, &state);
  PyEval_RestoreThread(state);
  return failed;
}

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

/* ---- outputs ---- */

/* Whether an output may be written into an array of the caller's: no input and no other output lies there. */
static int may_write(const entry *self, const frame *at, const port *output, PyObject *target,
                     PyArrayObject *const *arrays, PyObject *const *outputs) {
  if (!PyArray_CheckExact(target)) return 0;
  PyArrayObject *array = (PyArrayObject *)target;
  if (!fits(output, array) || !PyArray_ISCARRAY(array)) return 0;
  char *start = PyArray_BYTES(array), *end = start + output->bytes;
  for (Py_ssize_t i = 0; i < self->n_inputs; i++) {
    char *other = PyArray_BYTES(arrays[i]);
    if (start < other + at->ports[i].bytes && other < end) return 0;
  }
  for (Py_ssize_t i = 0; i < self->n_outputs; i++) {
    if (outputs[i] == NULL || outputs[i] == Py_None) continue;
    char *other = PyArray_BYTES((PyArrayObject *)outputs[i]);
    if (start < other + at->ports[self->n_inputs + i].bytes && other < end) return 0;
  }
  return 1;
}

static PyObject *fresh(const frame *at, const port *output) {
  if (output->bytes < POOLED_BYTES) {
    Py_INCREF(output->descr);
    return PyArray_NewFromDescr(&PyArray_Type, output->descr, output->rank, output->shape, NULL, NULL, 0, NULL);
  }
  PyObject *shape = PyTuple_New(output->rank);
  for (int i = 0; shape != NULL && i < output->rank; i++)
    PyTuple_SET_ITEM(shape, i, PyLong_FromSsize_t(output->shape[i]));
  PyObject *made = NULL;
  if (shape != NULL) made = PyObject_CallFunctionObjArgs(at->empty, shape, output->descr, NULL);
  Py_XDECREF(shape);
  return made;
}

/* ---- results whose size was found ---- */

/* Memory of results that were let go, for the next ones. Python's lock guards it. */
#define SPARE 16
#define SPARE_BYTES ((int64_t)64 << 20)
static struct {
  char *memory;
  int64_t room;
} spare[SPARE];
static int64_t spare_bytes;

static void let_go(PyObject *capsule) {
  char *memory = PyCapsule_GetPointer(capsule, NULL);
  int64_t room = (int64_t)(intptr_t)PyCapsule_GetContext(capsule);
  for (int i = 0; i < SPARE && spare_bytes + room <= SPARE_BYTES; i++)
    if (spare[i].memory == NULL) {
      spare[i].memory = memory, spare[i].room = room;
      spare_bytes += room;
      return;
    }
  free(memory);
}

/* The memory of a result whose size a kernel has found, if nothing else lies there; null if it does. */
static hg_moved *own_memory(const hg_context *context, int64_t which) {
  const hgt_part *part = context->part;
  hg_moved *own = NULL;
  for (int32_t i = 0; i < part->n_controls; i++) {
    const hgt_found *found = part->found + part->controls[i].find;
    for (int32_t k = 0; k < part->controls[i].found; k++) {
      if (found[k].result != which) continue;
      if (own != NULL) return NULL;
      own = &context->controls[i].moved[found[k].moved];
      for (int32_t j = 0; j < part->controls[i].found; j++)
        if (j != k && found[j].moved == found[k].moved) return NULL;
    }
  }
  return own;
}

/* An array of the memory in which kernels left a result; the next run gets other memory. A new reference, or
 * null, perhaps with an error. */
static PyObject *taken(const port *output, hg_moved *from) {
  PyObject *capsule = PyCapsule_New(from->memory, NULL, let_go);
  if (capsule == NULL) return NULL;
  PyCapsule_SetContext(capsule, (void *)(intptr_t)from->room);
  int64_t bytes = output->bytes;
  from->memory = NULL, from->room = 0;
  for (int i = 0; i < SPARE; i++)
    if (spare[i].memory != NULL && spare[i].room >= bytes && spare[i].room / 4 <= bytes) {
      from->memory = spare[i].memory, from->room = spare[i].room;
      spare[i].memory = NULL;
      spare_bytes -= from->room;
      break;
    }
  PyObject *made = PyArray_New(&PyArray_Type, output->rank, (npy_intp *)output->shape, output->type, NULL,
                               PyCapsule_GetPointer(capsule, NULL), 0, NPY_ARRAY_CARRAY, NULL);
  if (made == NULL)
    Py_DECREF(capsule);
  else if (PyArray_SetBaseObject((PyArrayObject *)made, capsule) != 0)
    Py_CLEAR(made);
  return made;
}

/* Which output has a name, or -1. */
static Py_ssize_t output_of(const entry *self, PyObject *name) {
  PyObject *const *names = &PyTuple_GET_ITEM(self->names, self->n_inputs);
  for (Py_ssize_t i = 0; i < self->n_outputs; i++)
    if (names[i] == name) return i;
  if (!PyUnicode_Check(name)) return -1;
  for (Py_ssize_t i = 0; i < self->n_outputs; i++)
    if (PyUnicode_Compare(names[i], name) == 0) return i;
  return -1;
}

/* call(feed, names, targets): the outputs of some names, or all, in order.
 *
 * feed: a dict of all inputs by name, or a list of them in order.
 * targets: for each of them an array to write into, or None; unfit ones are passed over.
 */
static PyObject *call(PyObject *capsule, PyObject *const *arguments, Py_ssize_t n) {
  entry *self = PyCapsule_GetPointer(capsule, NULL);
  PyObject *feed = n > 0 ? arguments[0] : Py_None;
  PyObject *wanted = n > 1 ? arguments[1] : Py_None, *targets = n > 2 ? arguments[2] : Py_None;
  Py_ssize_t n_inputs = self->n_inputs, n_outputs = self->n_outputs;
  int listed = PyList_CheckExact(feed);
  if (listed ? PyList_GET_SIZE(feed) != n_inputs : !PyDict_CheckExact(feed) || PyDict_GET_SIZE(feed) != n_inputs)
    Py_RETURN_NONE;
  PyArrayObject *arrays[n_inputs + 1];
  PyObject *outputs[n_outputs + 1], *results = NULL;
  Py_ssize_t which[n_outputs + 1], n_arrays = 0, n_results = n_outputs;
  char *starts[n_inputs + n_outputs + 1], **ends = starts + n_inputs; /* of the part's inputs and outputs */
  int ran = 0;
  frame *at = NULL;
  memset(outputs, 0, sizeof outputs);
  Py_INCREF(capsule);
  for (; n_arrays < n_inputs; n_arrays++) {
    PyObject *value = listed ? PyList_GET_ITEM(feed, n_arrays)
                             : PyDict_GetItemWithError(feed, PyTuple_GET_ITEM(self->names, n_arrays));
    arrays[n_arrays] = value == NULL ? NULL : array_of(self, value);
    if (arrays[n_arrays] == NULL) goto end;
  }
  if (wanted != Py_None) {
    if (!PyList_CheckExact(wanted) && !PyTuple_CheckExact(wanted)) goto end;
    if (PySequence_Fast_GET_SIZE(wanted) > 0) n_results = PySequence_Fast_GET_SIZE(wanted);
    else wanted = Py_None;
  }
  if (n_results > n_outputs) goto end;
  if (targets != Py_None && (!PyList_CheckExact(targets) || PyList_GET_SIZE(targets) != n_results)) goto end;
  at = find_frame(self, arrays);
  int found = at != NULL && at->context->ready && !is_expired(at);
  if (at == NULL) at = refit_frame(self, arrays);
  if (at == NULL || is_expired(at)) at = make_frame(self, arrays, at, 1);
  if (at != NULL && at->context->saves && at->context->saves++ > SETTLED) at->context->ready = found = 0;
  if (!found && at != NULL) at = made_ready(self, at);
  if (at == NULL) goto end;
  at->busy = 1;
  at->used = ++self->calls;
  at->runs++;
  int all = wanted == Py_None && targets == Py_None; /* new arrays, in order */
  for (Py_ssize_t i = 0; i < n_results && !all; i++) {
    which[i] = wanted == Py_None ? i : output_of(self, PySequence_Fast_GET_ITEM(wanted, i));
    if (which[i] < 0 || outputs[which[i]] != NULL) goto end;
    const port *output = &at->ports[n_inputs + which[i]];
    PyObject *target = targets == Py_None ? Py_None : PyList_GET_ITEM(targets, i), *made;
    if (output->grows)
      made = Py_NewRef(Py_None); /* until it is known */
    else if (target != Py_None && may_write(self, at, output, target, arrays, outputs))
      made = Py_NewRef(target);
    else
      made = fresh(at, output);
    if (made == NULL) goto end;
    outputs[which[i]] = made;
  }
  hg_context *context = at->context;
  for (Py_ssize_t i = 0; i < n_inputs; i++)
    if (at->ports[i].which >= 0) starts[at->ports[i].which] = PyArray_BYTES(arrays[i]);
  for (Py_ssize_t i = 0; i < n_outputs; i++) {
    const port *output = &at->ports[n_inputs + i];
    if (all) which[i] = i;
    if (output->grows) continue;
    if (outputs[i] == NULL && (outputs[i] = fresh(at, output)) == NULL) goto end;
    ends[output->which] = PyArray_BYTES((PyArrayObject *)outputs[i]);
  }
  for (int64_t i = 0; i < context->n_inputs; i++)
    *context->inputs[i].slot = starts[context->inputs[i].index] + context->inputs[i].offset;
  for (int64_t i = 0; i < context->n_outputs; i++)
    *context->outputs[i].slot = ends[context->outputs[i].index] + context->outputs[i].offset;
  ran = 1;
  int64_t began = at->lease == 0 ? 0 : now_ns();
  int aside = at->endless || context->whole > SHORT_NS;
  int64_t failed = aside ? run_aside(at->run, context->program) : at->run(context->program, NULL, NULL);
  if (at->lease != 0) {
    int64_t took = now_ns() - began;
    if (at->least == 0 || took < at->least) at->least = took;
  }
  if (aside && PyErr_Occurred()) goto end;
  if (failed >= 0) {
    PyObject *raised = PyObject_CallFunction(at->failed, "L", (long long)failed);
    Py_XDECREF(raised);
    goto end;
  }
  for (Py_ssize_t i = 0; i < n_results; i++) {
    if (!at->ports[n_inputs + which[i]].grows) continue;
    port output = at->ports[n_inputs + which[i]];
    int64_t shape[NPY_MAXDIMS];
    const char *from = at->grown(context, output.which, shape);
    for (int axis = 0; axis < output.rank; axis++) output.shape[axis] = shape[axis];
    output.bytes = bytes_of(&output);
    if (output.bytes < 0 || output.bytes == NPY_MAX_INTP || (from == NULL && output.bytes > 0)) {
      PyErr_NoMemory();
      goto end;
    }
    hg_moved *own = output.bytes < POOLED_BYTES ? NULL : own_memory(context, output.which);
    PyObject *made = own == NULL ? fresh(at, &output) : taken(&output, own);
    if (made == NULL) goto end;
    if (own == NULL && output.bytes > 0)
      memcpy(PyArray_DATA((PyArrayObject *)made), from, (size_t)output.bytes);
    Py_XSETREF(outputs[which[i]], made);
  }
  results = PyList_New(n_results);
  for (Py_ssize_t i = 0; results != NULL && i < n_results; i++) {
    PyList_SET_ITEM(results, i, outputs[which[i]]);
    outputs[which[i]] = NULL;
  }
end:
  if (at != NULL) at->busy = 0;
  for (Py_ssize_t i = 0; i < n_arrays; i++) Py_XDECREF(arrays[i]);
  for (Py_ssize_t i = 0; i < n_outputs; i++) Py_XDECREF(outputs[i]);
  Py_DECREF(capsule);
  if (results != NULL) return results;
  if (PyErr_Occurred()) {
    /* For unfit or impossible arrays the long way has better words. */
    if (ran || !PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
    PyErr_Clear();
  }
  Py_RETURN_NONE;
}

static PyMethodDef call_definition = {"call", (PyCFunction)(void (*)(void))call, METH_FASTCALL,
                                      "Return the outputs, or None."};

/* make(inputs, outputs, fit, holder, held, device, cpu) */
static PyObject *make(PyObject *module, PyObject *arguments) {
  (void)module;
  PyObject *inputs, *outputs, *fit, *holder, *held, *device, *cpu;
  if (!PyArg_ParseTuple(arguments, "O!O!OO!UUO", &PyTuple_Type, &inputs, &PyTuple_Type, &outputs, &fit,
                        &PyType_Type, &holder, &held, &device, &cpu))
    return NULL;
  entry *self = calloc(1, sizeof *self);
  if (self == NULL) return PyErr_NoMemory();
  self->n_inputs = PyTuple_GET_SIZE(inputs);
  self->n_outputs = PyTuple_GET_SIZE(outputs);
  self->names = PySequence_Concat(inputs, outputs);
  self->fit = Py_NewRef(fit);
  self->holder = (PyTypeObject *)Py_NewRef(holder);
  self->held = Py_NewRef(held);
  self->device = Py_NewRef(device);
  self->cpu = Py_NewRef(cpu);
  PyObject *capsule = PyCapsule_New(self, NULL, release), *result = NULL;
  if (capsule != NULL && self->names != NULL) result = PyCFunction_NewEx(&call_definition, capsule, NULL);
  Py_XDECREF(capsule);
  return result;
}

/* prepare(caller, arrays): the frame for arrays of these types and shapes, or of the likeliest, is made before
 * the first run, which for others has it refitted. A fault is left to that run. */
static PyObject *prepare(PyObject *module, PyObject *arguments) {
  (void)module;
  PyObject *caller, *list;
  if (!PyArg_ParseTuple(arguments, "O!O!", &PyCFunction_Type, &caller, &PyList_Type, &list)) return NULL;
  entry *self = PyCapsule_GetPointer(PyCFunction_GET_SELF(caller), NULL);
  if (self == NULL) return NULL;
  PyArrayObject *arrays[self->n_inputs + 1];
  int are = PyList_GET_SIZE(list) == self->n_inputs;
  for (Py_ssize_t i = 0; are && i < self->n_inputs; i++) {
    arrays[i] = (PyArrayObject *)PyList_GET_ITEM(list, i);
    are = PyArray_Check(arrays[i]);
  }
  if (!are) {
    PyErr_SetString(PyExc_TypeError, "prepare: expected an array for each input");
    return NULL;
  }
  frame *at = make_frame(self, arrays, NULL, 0);
  if (at != NULL) {
    if (at->general && at->context->part->n_symbols > 0) {
      at->context->ahead = 1;
      if (at->fit(at->context, at->context->shapes) != HG_FITS) clear_frame(self, at);
    }
    at->busy = 0;
  }
  if (PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
    PyErr_Clear();
  }
  Py_RETURN_NONE;
}

/* run(run, program): the index of the phase that failed, or -1 */
static PyObject *run_program(PyObject *module, PyObject *arguments) {
  (void)module;
  unsigned long long run, program;
  if (!PyArg_ParseTuple(arguments, "KK", &run, &program)) return NULL;
  int64_t failed = run_aside((runner)(uintptr_t)run, (void *)(uintptr_t)program);
  return PyErr_Occurred() ? NULL : PyLong_FromLongLong(failed);
}

/* address(array): of its first element */
static PyObject *address(PyObject *module, PyObject *array) {
  (void)module;
  if (PyArray_Check(array)) return PyLong_FromVoidPtr(PyArray_DATA((PyArrayObject *)array));
  PyErr_SetString(PyExc_TypeError, "address: expected an array");
  return NULL;
}

static PyMethodDef methods[] = {
    {"address", address, METH_O, "The address of an array's first element."},
    {"run", run_program, METH_VARARGS, "Run a program; signals end it between iterations."},
    {"prepare", prepare, METH_VARARGS, "Make a caller ready for arrays of some types and shapes."},
    {"make", make, METH_VARARGS, "Return a function from a feed to the outputs."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "hagane_call", NULL, -1, methods,
                                        NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_hagane_call(void) {
  import_array();
  return PyModule_Create(&definition);
}
