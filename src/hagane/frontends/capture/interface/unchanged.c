/* Comparisons of what a graph was made of with its present state, before each run: names, items,
 * and the memory of tensors. A large model reads thousands of them. */
#include <Python.h>
#include <stdint.h>
#include <string.h>

/* -- The running Python: every object has to be the very one that it was. -- */

static int items_are(PyObject *found, PyObject *content) {
  Py_ssize_t n = PyTuple_GET_SIZE(content);
  if (PyList_CheckExact(found)) {
    if (PyList_GET_SIZE(found) != n) return 0;
    for (Py_ssize_t i = 0; i < n; i++)
      if (PyList_GET_ITEM(found, i) != PyTuple_GET_ITEM(content, i)) return 0;
    return 1;
  }
  if (2 * PyDict_GET_SIZE(found) != n) return 0; /* a dict: keys and values in turn */
  PyObject *key, *value;
  Py_ssize_t at = 0, i = 0;
  while (PyDict_Next(found, &at, &key, &value)) {
    if (key != PyTuple_GET_ITEM(content, i) || value != PyTuple_GET_ITEM(content, i + 1)) return 0;
    i += 2;
  }
  return 1;
}

/* holds(missing, names, classes, items, empty): flat tuples of (dict, name, value), of (object,
 * class), of (list or dict, content), and dicts. */
static PyObject *holds(PyObject *self, PyObject *const *given, Py_ssize_t count) {
  (void)self;
  if (count != 5) {
    PyErr_SetString(PyExc_TypeError, "holds: five arguments are expected");
    return NULL;
  }
  PyObject *missing = given[0], *names = given[1], *classes = given[2];
  for (Py_ssize_t i = 0; i + 2 < PyTuple_GET_SIZE(names); i += 3) {
    PyObject *now = PyDict_GetItemWithError(PyTuple_GET_ITEM(names, i), PyTuple_GET_ITEM(names, i + 1));
    if (!now && PyErr_Occurred()) return NULL;
    if ((now ? now : missing) != PyTuple_GET_ITEM(names, i + 2)) Py_RETURN_FALSE;
  }
  for (Py_ssize_t i = 0; i + 1 < PyTuple_GET_SIZE(classes); i += 2)
    if ((PyObject *)Py_TYPE(PyTuple_GET_ITEM(classes, i)) != PyTuple_GET_ITEM(classes, i + 1))
      Py_RETURN_FALSE;
  for (Py_ssize_t i = 0; i + 1 < PyTuple_GET_SIZE(given[3]); i += 2)
    if (!items_are(PyTuple_GET_ITEM(given[3], i), PyTuple_GET_ITEM(given[3], i + 1))) Py_RETURN_FALSE;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given[4]); i++)
    if (PyDict_GET_SIZE(PyTuple_GET_ITEM(given[4], i))) Py_RETURN_FALSE;
  Py_RETURN_TRUE;
}

/* -- Tensors: DLPack's C exchange interface (dmlc.github.io/dlpack, version 1) describes one
 * without taking it. -- */

typedef struct {
  void *data;
  struct { int32_t kind, id; } device;
  int32_t ndim;
  struct { uint8_t code, bits; uint16_t lanes; } dtype;
  int64_t *shape, *strides; /* in elements */
  uint64_t byte_offset;
} view;

typedef struct {
  uint32_t major, minor;
  void *earlier;
  void *allocate, *take, *give;
  int (*describe)(void *tensor, view *out);
  void *stream;
} exchange;

enum { CPU = 1, WHOLE = 4096, SAMPLES = 16 };

typedef struct {
  view seen;        /* its sizes lie behind */
  long long version;
  int64_t *sizes;   /* shape, then strides */
  int64_t *places;  /* bytes from the first element to the samples; NULL if it is compared whole */
  int64_t count, width;
  char *content;
} kept;

typedef struct {
  PyObject_HEAD
  PyObject *tensors, *version;
  PyGetSetDef *counter; /* of versions, called without a look at the type, which is known */
  const exchange *api;
  int content;
  kept *all;
} Tensors;

static char *first_of(const view *one) { return (char *)one->data + one->byte_offset; }

/* Tensors of inference mode count no versions. */
static int version_of(Tensors *self, PyObject *tensor, long long *version) {
  PyObject *found = self->counter->get(tensor, self->counter->closure);
  if (!found) {
    if (!PyErr_ExceptionMatches(PyExc_RuntimeError)) return -1;
    PyErr_Clear();
    *version = -1;
    return 0;
  }
  *version = PyLong_AsLongLong(found);
  Py_DECREF(found);
  return *version == -1 && PyErr_Occurred() ? -1 : 0;
}

static void forget(kept *one) {
  PyMem_Free(one->sizes);
  PyMem_Free(one->places);
  PyMem_Free(one->content);
  memset(one, 0, sizeof *one);
}

/* The distance in bytes from the first element to another, in the order of the shape. */
static int64_t place_of(const view *one, int64_t element, int64_t width) {
  int64_t place = 0;
  for (int axis = one->ndim - 1; axis >= 0; axis--) {
    place += element % one->shape[axis] * one->strides[axis] * width;
    element /= one->shape[axis];
  }
  return place;
}

static int keep(Tensors *self, Py_ssize_t i) {
  PyObject *tensor = PyTuple_GET_ITEM(self->tensors, i);
  kept *one = &self->all[i];
  view now;
  forget(one);
  if (self->api->describe(tensor, &now)) return -1;
  if (version_of(self, tensor, &one->version)) return -1;
  if (now.device.kind != CPU) {
    PyErr_SetString(PyExc_BufferError, "a tensor does not lie in this machine's memory");
    return -1;
  }
  size_t bytes = (size_t)now.ndim * sizeof(int64_t);
  one->seen = now;
  one->sizes = PyMem_Malloc(2 * bytes + 1);
  if (!one->sizes) goto full;
  if (bytes) {
    memcpy(one->sizes, now.shape, bytes);
    memcpy(one->sizes + now.ndim, now.strides, bytes);
  }
  if (!self->content) return 0;
  int64_t size = 1, plain = 1;
  for (int axis = now.ndim - 1; axis >= 0; axis--) {
    plain &= now.shape[axis] == 1 || now.strides[axis] == size;
    size *= now.shape[axis];
  }
  int64_t width = ((int64_t)now.dtype.bits * now.dtype.lanes + 7) / 8;
  if (!size || (plain && size * width <= WHOLE)) {
    one->count = 1, one->width = size * width;
  } else {
    one->count = size < SAMPLES ? size : SAMPLES, one->width = width;
    one->places = PyMem_Malloc((size_t)one->count * sizeof(int64_t));
    if (!one->places) goto full;
    for (int64_t k = 0; k < one->count; k++)
      one->places[k] = place_of(&now, one->count > 1 ? (size - 1) / (one->count - 1) * k : 0, width);
    one->places[one->count - 1] = place_of(&now, size - 1, width);
  }
  one->content = PyMem_Malloc((size_t)(one->count * one->width) + 1);
  if (!one->content) goto full;
  for (int64_t k = 0; k < one->count && one->width; k++)
    memcpy(one->content + k * one->width, first_of(&now) + (one->places ? one->places[k] : 0), (size_t)one->width);
  return 0;
full:
  PyErr_NoMemory();
  return -1;
}

/* Whether a tensor is as it was kept; -1 for an error. */
static int is_kept(Tensors *self, Py_ssize_t i) {
  PyObject *tensor = PyTuple_GET_ITEM(self->tensors, i);
  const kept *one = &self->all[i];
  view now;
  if (!one->sizes) return 0; /* it could not be kept */
  if (self->api->describe(tensor, &now)) {
    PyErr_Clear(); /* it has become one that DLPack cannot describe */
    return 0;
  }
  size_t bytes = (size_t)now.ndim * sizeof(int64_t);
  if (now.ndim != one->seen.ndim || now.device.kind != CPU || now.dtype.code != one->seen.dtype.code ||
      now.dtype.bits != one->seen.dtype.bits || now.dtype.lanes != one->seen.dtype.lanes ||
      (bytes && memcmp(now.shape, one->sizes, bytes)))
    return 0;
  if (!self->content) return 1;
  long long version;
  if (first_of(&now) != first_of(&one->seen) ||
      (bytes && memcmp(now.strides, one->sizes + now.ndim, bytes)))
    return 0;
  if (version_of(self, tensor, &version)) return -1;
  if (version != one->version) return 0;
  for (int64_t k = 0; k < one->count && one->width; k++)
    if (memcmp(one->content + k * one->width, first_of(&now) + (one->places ? one->places[k] : 0), (size_t)one->width))
      return 0;
  return 1;
}

/* other(start): the first tensor from there on that is not as it was kept; -1 if all are. */
static PyObject *other(Tensors *self, PyObject *start) {
  Py_ssize_t i = PyLong_AsSsize_t(start);
  if (i == -1 && PyErr_Occurred()) return NULL;
  for (; i < PyTuple_GET_SIZE(self->tensors); i++) {
    int found = is_kept(self, i);
    if (found < 0) return NULL;
    if (!found) return PyLong_FromSsize_t(i);
  }
  return PyLong_FromLong(-1);
}

/* keep(i): that tensor from now on as it is now. */
static PyObject *keep_again(Tensors *self, PyObject *place) {
  Py_ssize_t i = PyLong_AsSsize_t(place);
  if (i == -1 && PyErr_Occurred()) return NULL;
  if (i < 0 || i >= PyTuple_GET_SIZE(self->tensors)) {
    PyErr_SetString(PyExc_IndexError, "keep: there is no such tensor");
    return NULL;
  }
  if (keep(self, i)) return NULL;
  Py_RETURN_NONE;
}

static void end(Tensors *self) {
  for (Py_ssize_t i = 0; self->all && i < PyTuple_GET_SIZE(self->tensors); i++) forget(&self->all[i]);
  PyMem_Free(self->all);
  Py_XDECREF(self->tensors);
  Py_XDECREF(self->version);
  PyTypeObject *type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

/* Tensors(tensors, exchange, version, content) */
static PyObject *begin(PyTypeObject *type, PyObject *given, PyObject *named) {
  (void)named;
  PyObject *tensors, *capsule, *version;
  int content;
  if (!PyArg_ParseTuple(given, "O!OOp", &PyTuple_Type, &tensors, &capsule, &version, &content)) return NULL;
  const exchange *api = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
  if (!api) return NULL;
  if (api->major != 1 || !api->describe || !Py_IS_TYPE(version, &PyGetSetDescr_Type)) {
    PyErr_SetString(PyExc_BufferError, "DLPack's exchange interface is of another version");
    return NULL;
  }
  PyGetSetDescrObject *descriptor = (PyGetSetDescrObject *)version;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tensors); i++)
    if (!PyObject_TypeCheck(PyTuple_GET_ITEM(tensors, i), descriptor->d_common.d_type)) {
      PyErr_SetString(PyExc_TypeError, "Tensors: an object is no tensor");
      return NULL;
    }
  Tensors *self = PyObject_New(Tensors, type);
  if (!self) return NULL;
  self->tensors = Py_NewRef(tensors);
  self->version = Py_NewRef(version);
  self->counter = descriptor->d_getset;
  self->api = api;
  self->content = content;
  self->all = PyMem_Calloc((size_t)PyTuple_GET_SIZE(tensors) + 1, sizeof(kept));
  if (!self->all) {
    Py_DECREF(self);
    return PyErr_NoMemory();
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tensors); i++)
    if (keep(self, i)) {
      Py_DECREF(self);
      return NULL;
    }
  return (PyObject *)self;
}

static PyMethodDef of_tensors[] = {
    {"other", (PyCFunction)other, METH_O, "Return the first tensor that is not as it was kept, or -1."},
    {"keep", (PyCFunction)keep_again, METH_O, "Keep a tensor as it is now."},
    {NULL, NULL, 0, NULL}};
static PyType_Slot slots[] = {{Py_tp_new, begin}, {Py_tp_dealloc, end}, {Py_tp_methods, of_tensors}, {0, NULL}};
static PyType_Spec tensors_type = {"hagane_unchanged.Tensors", sizeof(Tensors), 0, Py_TPFLAGS_DEFAULT, slots};

static PyMethodDef functions[] = {
    {"holds", (PyCFunction)(void (*)(void))holds, METH_FASTCALL, "Whether names, classes and items are as they were."},
    {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "hagane_unchanged", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_hagane_unchanged(void) {
  PyObject *made = PyModule_Create(&module), *type = made ? PyType_FromSpec(&tensors_type) : NULL;
  if (!type || PyModule_AddObject(made, "Tensors", type)) {
    Py_XDECREF(type);
    Py_XDECREF(made);
    return NULL;
  }
  return made;
}
