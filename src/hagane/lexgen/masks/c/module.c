/* The calls of each step as functions of a Python module, as ctypes takes longer for them than they do, and
 * those that walk Python's objects. */

/* take(machine, place, token): the place after a token; -1 if it is not allowed. */
static PyObject *py_take(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
  (void)self;
  if (count != 3) return PyErr_Format(PyExc_TypeError, "take: expected 3 arguments, got %zd", count);
  machine_t *m = PyLong_AsVoidPtr(given[0]);
  long place = PyLong_AsLong(given[1]), token = PyLong_AsLong(given[2]);
  if (PyErr_Occurred()) {
    if (!m || !PyErr_ExceptionMatches(PyExc_OverflowError)) return 0;
    PyErr_Clear(); /* no place, no token is such a number */
    return PyLong_FromLong(-1);
  }
  int fits = place >= 0 && place <= INT32_MAX && token >= 0 && token <= INT32_MAX;
  int32_t to = fits ? hagane_take(m, (int32_t)place, (int32_t)token) : -1;
  return to < -1 ? PyErr_NoMemory() : PyLong_FromLong(to);
}

/* mask(machine, place): the bits of the tokens that may follow, as a bytearray, and whether the text may end. */
static PyObject *py_mask(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
  (void)self;
  if (count != 2) return PyErr_Format(PyExc_TypeError, "mask: expected 2 arguments, got %zd", count);
  machine_t *m = PyLong_AsVoidPtr(given[0]);
  if (!m) return 0;
  long place = PyLong_AsLong(given[1]);
  if (place == -1 && PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return 0;
    PyErr_Clear();
  }
  if (place < 0 || place >= m->n_places) return PyErr_Format(PyExc_LookupError, "%ld", place);
  PyObject *bits = PyByteArray_FromStringAndSize(0, (Py_ssize_t)m->store->words * 4);
  if (!bits) return 0;
  int32_t ends = hagane_mask(m, (int32_t)place, (uint32_t *)(void *)PyByteArray_AS_STRING(bits));
  if (ends < 0) {
    Py_DECREF(bits);
    return PyErr_NoMemory();
  }
  PyObject *both = PyTuple_New(2);
  if (!both) {
    Py_DECREF(bits);
    return 0;
  }
  PyTuple_SET_ITEM(both, 0, bits);
  PyTuple_SET_ITEM(both, 1, PyBool_FromLong(ends));
  return both;
}

static PyMethodDef methods[] = {
  {"take", (PyCFunction)(void (*)(void))py_take, METH_FASTCALL, 0},
  {"mask", (PyCFunction)(void (*)(void))py_mask, METH_FASTCALL, 0},
  {"edges", py_edges, METH_VARARGS, 0},
  {"rule", (PyCFunction)(void (*)(void))py_rule, METH_FASTCALL, 0},
  {"written", (PyCFunction)(void (*)(void))py_written, METH_FASTCALL, 0},
  {0, 0, 0, 0},
};
static struct PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT, .m_name = "hagane_grammar", .m_size = -1,
                                        .m_methods = methods};

PyMODINIT_FUNC PyInit_hagane_grammar(void) { return PyModule_Create(&definition); }
