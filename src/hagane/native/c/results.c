/* Arrays for the outputs of a run: new ones, those of the caller, and memory that a run has found. */

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
#define LEFT_BYTES ((int64_t)64 << 20)
static struct {
  char *memory;
  int64_t room;
} spare[SPARE];
static int64_t spare_bytes;

static void let_go(PyObject *capsule) {
  char *memory = PyCapsule_GetPointer(capsule, NULL);
  int64_t room = (int64_t)(intptr_t)PyCapsule_GetContext(capsule);
  for (int i = 0; i < SPARE && spare_bytes + room <= LEFT_BYTES; i++)
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
