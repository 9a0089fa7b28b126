/* The shortest way from a Python call to a run of a build: `again`, for inputs of types and shapes that have run. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/arrayobject.h>

#include "hagane.h"

/* Outputs of so many bytes come from a pool, whose pages are there already. */
#define POOLED_BYTES (64 << 10)

typedef int32_t (*runner)(hagane_model *, const hagane_tensor *, size_t, hagane_tensor *, size_t);

/* The tensors of a bytes object, copied; null with an error if they are none. */
static hagane_tensor *copied(PyObject *bytes, Py_ssize_t count) {
  if (!PyBytes_Check(bytes) || PyBytes_GET_SIZE(bytes) < count * (Py_ssize_t)sizeof(hagane_tensor)) {
    PyErr_SetString(PyExc_TypeError, "again: expected a tensor for each name");
    return NULL;
  }
  hagane_tensor *made = PyMem_Malloc(((size_t)count + 1) * sizeof *made);
  if (made == NULL) return (hagane_tensor *)PyErr_NoMemory();
  memcpy(made, PyBytes_AS_STRING(bytes), (size_t)count * sizeof *made);
  return made;
}

/* Whether an array is as a tensor was, row-major and aligned; its place is noted. */
static int fits(PyObject *value, hagane_tensor *tensor, PyObject *dtype) {
  if (value == NULL || !PyArray_CheckExact(value)) return 0;
  PyArrayObject *array = (PyArrayObject *)value;
  if (!PyArray_ISCARRAY_RO(array) || PyArray_NDIM(array) != tensor->rank) return 0;
  if ((PyObject *)PyArray_DESCR(array) != dtype && !PyArray_EquivTypes(PyArray_DESCR(array), (PyArray_Descr *)dtype))
    return 0;
  for (int i = 0; i < tensor->rank; i++)
    if (PyArray_DIM(array, i) != tensor->shape[i]) return 0;
  tensor->data = PyArray_DATA(array);
  return 1;
}

/* A new array for an output, whose place is noted. */
static PyObject *fresh(hagane_tensor *tensor, PyObject *kind, PyObject *empty) {
  PyObject *shape = PyTuple_GET_ITEM(kind, 0), *dtype = PyTuple_GET_ITEM(kind, 1), *made;
  npy_intp sizes[HAGANE_AXES], count = 1;
  for (int i = 0; i < tensor->rank; i++) count *= sizes[i] = (npy_intp)tensor->shape[i];
  if (tensor->bytes < POOLED_BYTES)
    made = PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)Py_NewRef(dtype), tensor->rank, sizes, NULL, NULL, 0,
                                NULL);
  else
    made = PyObject_CallFunctionObjArgs(empty, shape, dtype, NULL);
  if (made == NULL) return NULL;
  if (!PyArray_Check(made) || PyArray_SIZE((PyArrayObject *)made) != count) {
    Py_DECREF(made);
    PyErr_SetString(PyExc_TypeError, "again: expected an array of the output's shape");
    return NULL;
  }
  tensor->data = PyArray_DATA((PyArrayObject *)made);
  tensor->bytes = (size_t)PyArray_NBYTES((PyArrayObject *)made);
  return made;
}

/* again(run, model, names, dtypes, inputs, kinds, outputs, empty, feed): a list of outputs; None if the feed does not
 * fit, or outputs had other shapes; the code of a run that failed */
static PyObject *again(PyObject *module, PyObject *const *given, Py_ssize_t n) {
  (void)module;
  if (n != 9 || !PyTuple_Check(given[2]) || !PyTuple_Check(given[3]) || !PyTuple_Check(given[5]) ||
      PyTuple_GET_SIZE(given[2]) != PyTuple_GET_SIZE(given[3])) {
    PyErr_SetString(PyExc_TypeError, "again: expected nine arguments");
    return NULL;
  }
  runner run = (runner)(uintptr_t)PyLong_AsUnsignedLongLong(given[0]);
  hagane_model *model = (hagane_model *)(uintptr_t)PyLong_AsUnsignedLongLong(given[1]);
  PyObject *names = given[2], *dtypes = given[3], *kinds = given[5], *empty = given[7], *feed = given[8];
  if (PyErr_Occurred()) return NULL;
  Py_ssize_t n_inputs = PyTuple_GET_SIZE(names), n_outputs = PyTuple_GET_SIZE(kinds);
  if (!PyDict_CheckExact(feed) || PyDict_GET_SIZE(feed) != n_inputs) Py_RETURN_NONE;
  hagane_tensor *inputs = copied(given[4], n_inputs), *outputs = copied(given[6], n_outputs);
  PyObject *arrays = PyTuple_New(n_inputs), *results = PyList_New(n_outputs), *answer = NULL;
  if (inputs == NULL || outputs == NULL || arrays == NULL || results == NULL) goto end;
  for (Py_ssize_t i = 0; i < n_inputs; i++) {
    PyObject *value = PyDict_GetItemWithError(feed, PyTuple_GET_ITEM(names, i));
    if (PyErr_Occurred()) goto end;
    if (!fits(value, &inputs[i], PyTuple_GET_ITEM(dtypes, i))) {
      answer = Py_NewRef(Py_None);
      goto end;
    }
    PyTuple_SET_ITEM(arrays, i, Py_NewRef(value)); /* another thread may change the feed */
  }
  for (Py_ssize_t i = 0; i < n_outputs; i++) {
    PyObject *made = fresh(&outputs[i], PyTuple_GET_ITEM(kinds, i), empty);
    if (made == NULL) goto end;
    PyList_SET_ITEM(results, i, made);
  }
  int32_t code;
  Py_BEGIN_ALLOW_THREADS;
  code = run(model, inputs, (size_t)n_inputs, outputs, (size_t)n_outputs);
  Py_END_ALLOW_THREADS;
  const hagane_tensor *before = (const hagane_tensor *)(const void *)PyBytes_AS_STRING(given[6]);
  int same = 1;
  for (Py_ssize_t i = 0; i < n_outputs && code == HAGANE_OK; i++)
    same &= memcmp(outputs[i].shape, before[i].shape, sizeof(int64_t) * (size_t)before[i].rank) == 0;
  if (code != HAGANE_OK)
    answer = PyLong_FromLong(code);
  else
    answer = Py_NewRef(same ? results : Py_None);
end:
  PyMem_Free(inputs);
  PyMem_Free(outputs);
  Py_XDECREF(arrays);
  Py_XDECREF(results);
  return answer;
}

static PyMethodDef methods[] = {
    {"again", (PyCFunction)(void (*)(void))again, METH_FASTCALL, "Run a build for inputs as they were before."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "hagane_build_call", NULL, -1, methods,
                                        NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_hagane_build_call(void) {
  import_array();
  return PyModule_Create(&definition);
}
