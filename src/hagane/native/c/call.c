/* The functions of the module: making an entry, and calling it. */

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
