/* The shortest way from a Python call to a compiled program.
 *
 * A caller knows the names, types and shapes of a program's inputs. It checks a feed against
 * them, writes the arrays' addresses into the program's tables, runs it and returns fresh arrays.
 * Whatever does not fit makes it return None: the caller's caller then takes the long way, which
 * converts or explains.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/arrayobject.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef int64_t (*runner)(void *program, int64_t (*ask)(void *), void *asker);

typedef struct {
  char **slot;
  int64_t offset;
} patch;

typedef struct {
  PyObject *name; /* of an input */
  int type;
  int rank;
  npy_intp shape[NPY_MAXDIMS];
  Py_ssize_t n_patches;
  patch *patches;
} port;

typedef struct {
  runner run;
  void *program;
  int long_running; /* let other Python threads go on meanwhile */
  int busy;
  PyObject *failed; /* called with the index of the phase that failed; raises */
  PyObject *owner;  /* keeps the program alive */
  Py_ssize_t n_inputs, n_outputs;
  port *ports; /* inputs, then outputs */
} caller;

static void release(PyObject *capsule) {
  caller *self = PyCapsule_GetPointer(capsule, NULL);
  if (self == NULL) return;
  for (Py_ssize_t i = 0; self->ports != NULL && i < self->n_inputs + self->n_outputs; i++) {
    Py_XDECREF(self->ports[i].name);
    free(self->ports[i].patches);
  }
  free(self->ports);
  Py_XDECREF(self->failed);
  Py_XDECREF(self->owner);
  free(self);
}

static void point(const port *at, char *start) {
  for (Py_ssize_t i = 0; i < at->n_patches; i++) *at->patches[i].slot = start + at->patches[i].offset;
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

static PyObject *call(PyObject *capsule, PyObject *feed) {
  caller *self = PyCapsule_GetPointer(capsule, NULL);
  if (self->busy || !PyDict_CheckExact(feed) || PyDict_GET_SIZE(feed) != self->n_inputs)
    Py_RETURN_NONE;
  /* To allocate may collect garbage, and so run Python code that calls us or lets go of the
   * interpreter: the tables are written afterwards. */
  PyObject *held = NULL, *results = PyList_New(self->n_outputs);
  if (results == NULL) return NULL;
  for (Py_ssize_t i = 0; i < self->n_outputs; i++) {
    port *output = &self->ports[self->n_inputs + i];
    PyObject *array = PyArray_EMPTY(output->rank, output->shape, output->type, 0);
    if (array == NULL) goto error;
    PyList_SET_ITEM(results, i, array);
  }
  /* The arrays are held by the feed; it must not lose them while this thread lets go. */
  if (self->long_running && (held = PyDict_Copy(feed)) == NULL) goto error;
  if (self->busy) goto unfit;
  for (Py_ssize_t i = 0; i < self->n_inputs; i++) {
    const port *input = &self->ports[i];
    PyObject *value = PyDict_GetItemWithError(held == NULL ? feed : held, input->name);
    if (value == NULL) {
      if (PyErr_Occurred()) goto error;
      goto unfit;
    }
    if (!PyArray_CheckExact(value)) goto unfit;
    PyArrayObject *array = (PyArrayObject *)value;
    if (PyArray_TYPE(array) != input->type || PyArray_NDIM(array) != input->rank ||
        !PyArray_ISCARRAY_RO(array) ||
        memcmp(PyArray_DIMS(array), input->shape, sizeof(npy_intp) * (size_t)input->rank) != 0)
      goto unfit;
    point(input, PyArray_BYTES(array));
  }
  for (Py_ssize_t i = 0; i < self->n_outputs; i++)
    point(&self->ports[self->n_inputs + i],
          PyArray_BYTES((PyArrayObject *)PyList_GET_ITEM(results, i)));
  int64_t failed;
  Py_INCREF(capsule);
  if (self->long_running) {
    self->busy = 1;
    failed = run_aside(self->run, self->program);
    self->busy = 0;
  } else {
    failed = self->run(self->program, NULL, NULL);
  }
  if (PyErr_Occurred()) {
    Py_CLEAR(results);
  } else if (failed >= 0) {
    PyObject *raised = PyObject_CallFunction(self->failed, "L", (long long)failed);
    Py_XDECREF(raised);
    Py_CLEAR(results);
  }
  Py_XDECREF(held);
  Py_DECREF(capsule);
  return results;
unfit:
  Py_XDECREF(held);
  Py_DECREF(results);
  Py_RETURN_NONE;
error:
  Py_XDECREF(held);
  Py_DECREF(results);
  return NULL;
}

/* (name or None, type number, shape, [(slot address, offset), ...]) */
static int read_port(PyObject *item, port *into) {
  PyObject *name, *shape, *patches;
  if (!PyArg_ParseTuple(item, "OiO!O!", &name, &into->type, &PyTuple_Type, &shape, &PyList_Type,
                        &patches))
    return -1;
  into->rank = (int)PyTuple_GET_SIZE(shape);
  if (into->rank > NPY_MAXDIMS) {
    PyErr_SetString(PyExc_ValueError, "too many axes");
    return -1;
  }
  for (int i = 0; i < into->rank; i++) {
    into->shape[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
    if (into->shape[i] == -1 && PyErr_Occurred()) return -1;
  }
  into->n_patches = PyList_GET_SIZE(patches);
  into->patches = calloc((size_t)into->n_patches + 1, sizeof(patch));
  if (into->patches == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  for (Py_ssize_t i = 0; i < into->n_patches; i++) {
    unsigned long long slot;
    long long offset;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(patches, i), "KL", &slot, &offset)) return -1;
    into->patches[i] = (patch){(char **)(uintptr_t)slot, offset};
  }
  Py_INCREF(name);
  into->name = name;
  return 0;
}

static PyMethodDef call_definition = {"call", call, METH_O, "Return the outputs, or None."};

/* make(run, program, inputs, outputs, failed, owner, long_running) */
static PyObject *make(PyObject *module, PyObject *arguments) {
  (void)module;
  unsigned long long run, program;
  PyObject *inputs, *outputs, *failed, *owner;
  int long_running;
  if (!PyArg_ParseTuple(arguments, "KKO!O!OOp", &run, &program, &PyList_Type, &inputs, &PyList_Type,
                        &outputs, &failed, &owner, &long_running))
    return NULL;
  caller *self = calloc(1, sizeof *self);
  if (self == NULL) return PyErr_NoMemory();
  self->run = (runner)(uintptr_t)run;
  self->program = (void *)(uintptr_t)program;
  self->long_running = long_running;
  self->n_inputs = PyList_GET_SIZE(inputs);
  self->n_outputs = PyList_GET_SIZE(outputs);
  self->ports = calloc((size_t)(self->n_inputs + self->n_outputs) + 1, sizeof(port));
  Py_INCREF(failed);
  self->failed = failed;
  Py_INCREF(owner);
  self->owner = owner;
  PyObject *capsule = PyCapsule_New(self, NULL, release);
  if (capsule == NULL) return NULL;
  for (Py_ssize_t i = 0; i < self->n_inputs + self->n_outputs; i++) {
    PyObject *item = i < self->n_inputs ? PyList_GET_ITEM(inputs, i)
                                        : PyList_GET_ITEM(outputs, i - self->n_inputs);
    if (self->ports == NULL || read_port(item, &self->ports[i]) != 0) {
      Py_DECREF(capsule);
      return NULL;
    }
  }
  PyObject *result = PyCFunction_NewEx(&call_definition, capsule, NULL);
  Py_DECREF(capsule);
  return result;
}

/* run(run, program): the index of the phase that failed, or -1 */
static PyObject *run_program(PyObject *module, PyObject *arguments) {
  (void)module;
  unsigned long long run, program;
  if (!PyArg_ParseTuple(arguments, "KK", &run, &program)) return NULL;
  int64_t failed = run_aside((runner)(uintptr_t)run, (void *)(uintptr_t)program);
  return PyErr_Occurred() ? NULL : PyLong_FromLongLong(failed);
}

static PyMethodDef methods[] = {
    {"run", run_program, METH_VARARGS, "Run a program; signals end it between iterations."},
    {"make", make, METH_VARARGS, "Return a function from a feed to the outputs."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "hagane_call", NULL, -1, methods,
                                        NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_hagane_call(void) {
  import_array();
  return PyModule_Create(&definition);
}
