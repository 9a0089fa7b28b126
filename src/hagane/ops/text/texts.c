/* Texts in arrays of objects: loops that take Python several times as long. All arrays are in C order. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <float.h>
#include <math.h>
#include <numpy/arrayobject.h>
#include <stdint.h>
#include <string.h>

/* An array of objects in C order, a new reference; null with an error if it is none. */
static PyArrayObject *objects_of(PyObject *value) {
  if (!PyArray_Check(value) || PyArray_TYPE((PyArrayObject *)value) != NPY_OBJECT) {
    PyErr_SetString(PyExc_TypeError, "expected an array of texts");
    return NULL;
  }
  return (PyArrayObject *)PyArray_FROM_OF(value, NPY_ARRAY_C_CONTIGUOUS);
}

static PyArrayObject *like(PyArrayObject *array, int type) {
  return (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(array), PyArray_DIMS(array), type);
}

/* An element of an array of objects; one that nobody wrote is None. */
static PyObject *at(PyObject *const *items, npy_intp i) { return items[i] == NULL ? Py_None : items[i]; }

static void put(PyObject **items, npy_intp i, PyObject *item) {
  PyObject *old = items[i];
  items[i] = item;
  Py_XDECREF(old);
}

/* are_texts(array): whether all elements are str */
static PyObject *are_texts(PyObject *module, PyObject *value) {
  PyArrayObject *array = objects_of(value);
  if (array == NULL) return NULL;
  PyObject *const *items = PyArray_DATA(array);
  npy_intp n = PyArray_SIZE(array), i = 0;
  while (i < n && PyUnicode_Check(at(items, i))) i++;
  Py_DECREF(array);
  return PyBool_FromLong(i == n);
}

/* concat(left, right): of one shape */
static PyObject *concat(PyObject *module, PyObject *arguments) {
  PyObject *one, *two;
  if (!PyArg_ParseTuple(arguments, "OO", &one, &two)) return NULL;
  PyArrayObject *left = objects_of(one), *right = left == NULL ? NULL : objects_of(two), *made = NULL;
  if (right != NULL) {
    if (PyArray_SAMESHAPE(left, right)) made = like(left, NPY_OBJECT);
    else PyErr_SetString(PyExc_ValueError, "expected arrays of one shape");
  }
  if (made != NULL) {
    PyObject *const *a = PyArray_DATA(left), *const *b = PyArray_DATA(right);
    PyObject **items = PyArray_DATA(made);
    for (npy_intp i = 0, n = PyArray_SIZE(left); i < n; i++) {
      PyObject *joined = PyUnicode_Concat(at(a, i), at(b, i));
      if (joined == NULL) {
        Py_CLEAR(made);
        break;
      }
      put(items, i, joined);
    }
  }
  Py_XDECREF(left);
  Py_XDECREF(right);
  return (PyObject *)made;
}

/* split(array, delimiter or None, limit): parts, with empty texts behind the last one, and how many there are */
static PyObject *split(PyObject *module, PyObject *arguments) {
  PyObject *value, *delimiter;
  Py_ssize_t limit;
  if (!PyArg_ParseTuple(arguments, "OOn", &value, &delimiter, &limit)) return NULL;
  PyArrayObject *array = objects_of(value), *counts = NULL, *parts = NULL;
  if (array == NULL) return NULL;
  npy_intp n = PyArray_SIZE(array), width = 0, shape[NPY_MAXDIMS + 1];
  int rank = PyArray_NDIM(array);
  PyObject *const *items = PyArray_DATA(array), *empty = PyUnicode_New(0, 127);
  PyObject **lists = calloc((size_t)n + 1, sizeof *lists);
  if (lists == NULL || empty == NULL || rank >= NPY_MAXDIMS) {
    PyErr_NoMemory();
    goto end;
  }
  if ((counts = like(array, NPY_INT64)) == NULL) goto end;
  int64_t *found = PyArray_DATA(counts);
  for (npy_intp i = 0; i < n; i++) {
    if (!PyUnicode_Check(at(items, i))) {
      PyErr_SetString(PyExc_TypeError, "expected texts");
      goto end;
    }
    lists[i] = PyUnicode_Split(items[i], delimiter == Py_None ? NULL : delimiter, limit);
    if (lists[i] == NULL) goto end;
    found[i] = PyList_GET_SIZE(lists[i]);
    if (found[i] > width) width = found[i];
  }
  if (rank > 0) memcpy(shape, PyArray_DIMS(array), sizeof(npy_intp) * (size_t)rank);
  shape[rank] = width;
  parts = (PyArrayObject *)PyArray_SimpleNew(rank + 1, shape, NPY_OBJECT);
  if (parts == NULL) goto end;
  PyObject **into = PyArray_DATA(parts);
  for (npy_intp i = 0; i < n; i++)
    for (npy_intp k = 0; k < width; k++)
      put(into, i * width + k, Py_NewRef(k < found[i] ? PyList_GET_ITEM(lists[i], k) : empty));
end:
  for (npy_intp i = 0; lists != NULL && i < n; i++) Py_XDECREF(lists[i]);
  free(lists);
  Py_XDECREF(empty);
  Py_DECREF(array);
  if (PyErr_Occurred()) {
    Py_XDECREF(parts);
    Py_XDECREF(counts);
    return NULL;
  }
  return Py_BuildValue("NN", parts, counts);
}

/* places(array, table, missing): what a dict has for each text or int64, as int64 */
static PyObject *places(PyObject *module, PyObject *arguments) {
  PyObject *value, *table;
  long long missing;
  if (!PyArg_ParseTuple(arguments, "OO!L", &value, &PyDict_Type, &table, &missing)) return NULL;
  int whole = PyArray_Check(value) && PyArray_TYPE((PyArrayObject *)value) == NPY_INT64;
  PyArrayObject *array =
      whole ? (PyArrayObject *)PyArray_FROM_OF(value, NPY_ARRAY_CARRAY_RO) : objects_of(value);
  if (array == NULL) return NULL;
  PyArrayObject *made = like(array, NPY_INT64);
  npy_intp n = made == NULL ? 0 : PyArray_SIZE(array);
  int64_t *found = made == NULL ? NULL : PyArray_DATA(made);
  for (npy_intp i = 0; i < n; i++) {
    PyObject *key = whole ? PyLong_FromLongLong(((int64_t *)PyArray_DATA(array))[i])
                          : Py_NewRef(at(PyArray_DATA(array), i));
    PyObject *place = key == NULL ? NULL : PyDict_GetItemWithError(table, key);
    found[i] = place == NULL ? missing : PyLong_AsLongLong(place);
    Py_XDECREF(key);
    if ((place == NULL || found[i] == -1) && PyErr_Occurred()) {
      Py_CLEAR(made);
      break;
    }
  }
  Py_DECREF(array);
  return (PyObject *)made;
}

/* matches(array, match): whether a function returns something for each text */
static PyObject *matches(PyObject *module, PyObject *arguments) {
  PyObject *value, *match;
  if (!PyArg_ParseTuple(arguments, "OO", &value, &match)) return NULL;
  PyArrayObject *array = objects_of(value);
  if (array == NULL) return NULL;
  PyArrayObject *made = like(array, NPY_BOOL);
  for (npy_intp i = 0, n = PyArray_SIZE(array); made != NULL && i < n; i++) {
    PyObject *found = PyObject_CallOneArg(match, at(PyArray_DATA(array), i));
    if (found == NULL) Py_CLEAR(made);
    else ((npy_bool *)PyArray_DATA(made))[i] = found != Py_None;
    Py_XDECREF(found);
  }
  Py_DECREF(array);
  return (PyObject *)made;
}

/* marked(places, width): float32 rows that are 1 at a place and 0 elsewhere, all 0 for one below zero */
static PyObject *marked(PyObject *module, PyObject *arguments) {
  PyObject *value;
  Py_ssize_t width;
  if (!PyArg_ParseTuple(arguments, "O!n", &PyArray_Type, &value, &width)) return NULL;
  PyArrayObject *array = (PyArrayObject *)PyArray_FROM_OTF(value, NPY_INT64, NPY_ARRAY_CARRAY_RO), *made;
  if (array == NULL) return NULL;
  npy_intp shape[NPY_MAXDIMS + 1], rank = PyArray_NDIM(array);
  if (rank > 0) memcpy(shape, PyArray_DIMS(array), sizeof(npy_intp) * (size_t)rank);
  shape[rank] = width;
  made = rank < NPY_MAXDIMS ? (PyArrayObject *)PyArray_ZEROS((int)rank + 1, shape, NPY_FLOAT32, 0) : NULL;
  const int64_t *places = PyArray_DATA(array);
  for (npy_intp i = 0, n = made == NULL ? 0 : PyArray_SIZE(array); i < n; i++)
    if (places[i] >= 0 && places[i] < width) ((float *)PyArray_DATA(made))[i * width + places[i]] = 1;
  Py_DECREF(array);
  if (made == NULL && !PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "too many axes");
  return (PyObject *)made;
}

/* ---- numbers ---- */

static const double TENS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                              1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* Read a plain number, [sign] digits [. digits], whose result is exact; 0 for any other text. */
static int read_plain(PyObject *text, int whole, int64_t *number, double *real) {
  if (!PyUnicode_CheckExact(text) || !PyUnicode_IS_COMPACT_ASCII(text)) return 0;
  const char *from = PyUnicode_DATA(text), *end = from + PyUnicode_GET_LENGTH(text);
  int negative = from < end && *from == '-', digits = 0, behind = 0;
  if (from < end && (*from == '-' || *from == '+')) from++;
  if (end - from > 18) return 0; /* before the sum could leave its type */
  int64_t sum = 0;
  for (; from < end && *from >= '0' && *from <= '9'; from++) sum = sum * 10 + (*from - '0'), digits++;
  if (digits == 0) return 0;
  if (!whole && from < end && *from == '.')
    for (from++; from < end && *from >= '0' && *from <= '9'; from++) sum = sum * 10 + (*from - '0'), behind++;
  if (from != end) return 0;
  *number = negative ? -sum : sum;
  if (whole) return 1;
  if (sum > (1LL << 53)) return 0;
  *real = (double)sum / TENS[behind]; /* both are exact, so the quotient is rounded once */
  if (negative) *real = -*real;
  return 1;
}

/* to_numbers(array, whole): int64 or float64; None if some text is another whole number than a plain one */
static PyObject *to_numbers(PyObject *module, PyObject *arguments) {
  PyObject *value;
  int whole;
  if (!PyArg_ParseTuple(arguments, "Op", &value, &whole)) return NULL;
  PyArrayObject *array = objects_of(value);
  if (array == NULL) return NULL;
  PyObject *made = (PyObject *)like(array, whole ? NPY_INT64 : NPY_FLOAT64);
  PyObject *const *items = PyArray_DATA(array);
  int64_t ignored;
  for (npy_intp i = 0, n = PyArray_SIZE(array); made != NULL && i < n; i++) {
    void *into = (char *)PyArray_DATA((PyArrayObject *)made) + 8 * i;
    if (read_plain(at(items, i), whole, whole ? into : &ignored, into)) continue;
    if (whole) {
      Py_SETREF(made, Py_NewRef(Py_None));
      break;
    }
    PyObject *real = PyFloat_FromString(at(items, i));
    if (real == NULL) Py_CLEAR(made);
    else *(double *)into = PyFloat_AS_DOUBLE(real);
    Py_XDECREF(real);
  }
  Py_DECREF(array);
  return made;
}

static PyObject *ascii(const char *text, Py_ssize_t length) {
  PyObject *made = PyUnicode_New(length, 127);
  if (made != NULL) memcpy(PyUnicode_DATA(made), text, (size_t)length);
  return made;
}

static PyObject *of_whole(int64_t number) {
  char text[24], *from = text + sizeof text;
  uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
  do *--from = (char)('0' + rest % 10);
  while ((rest /= 10) != 0);
  if (number < 0) *--from = '-';
  return ascii(from, text + sizeof text - from);
}

/* Digits with a point behind so many of them, without zeros at the end of a fraction. */
static PyObject *of_digits(int negative, const char *digits, int n, int point) {
  char text[400];
  int length = 0;
  while (n > 1 && digits[n - 1] == '0') n--;
  if (negative) text[length++] = '-';
  if (point <= 0) text[length++] = '0';
  for (int i = 0; i < point; i++) text[length++] = i < n ? digits[i] : '0';
  if (point < n) text[length++] = '.';
  for (int i = point; i < 0 && point < n; i++) text[length++] = '0';
  for (int i = point < 0 ? 0 : point; i < n; i++) text[length++] = digits[i];
  return ascii(text, length);
}

/* The shortest text that stands for a double and no other one. */
static PyObject *of_double(double number) {
  char *shown = PyOS_double_to_string(number, 'r', 0, 0, NULL), digits[32];
  if (shown == NULL) return NULL;
  int n = 0, point = 0, behind = 0, exponent = 0, leading = 1;
  for (const char *from = shown; *from != 0; from++) {
    if (*from == 'e') {
      exponent = atoi(from + 1);
      break;
    }
    if (*from == '.') behind = 1;
    if (*from < '0' || *from > '9') continue;
    if (leading && *from == '0') {
      point -= behind;
      continue;
    }
    leading = 0;
    digits[n++] = *from;
    point += !behind;
  }
  PyMem_Free(shown);
  if (n == 0) return ascii(signbit(number) ? "-0" : "0", 1 + (signbit(number) != 0));
  return of_digits(signbit(number) != 0, digits, n, point + exponent);
}

/* The same of a float; null without an error where double precision does not tell it for sure. */
static PyObject *of_float(float number) {
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  double size = fabs((double)number);
  if (size == 0) return ascii(signbit(number) ? "-0" : "0", 1 + (signbit(number) != 0));
  /* Neighbours of powers of two are not equally far away. */
  if (size < 1e-9 || size > 1e9 || (bits & 0x7fffff) == 0) return NULL;
  int point = (int)floor(log10(size)) + 1; /* may be one too large or small, for which digits are counted */
  for (int n = 6; n <= 9; n++) {
    int shift = n - point;
    double scaled = shift >= 0 ? size * TENS[shift] : size / TENS[-shift];
    double whole = rint(scaled);
    if (fabs(fabs(scaled - whole) - 0.5) < 1e-4) return NULL;
    double back = shift >= 0 ? whole / TENS[shift] : whole * TENS[-shift];
    uint64_t wide;
    memcpy(&wide, &back, sizeof wide);
    if ((wide & 0x1fffffff) == 0x10000000) return NULL; /* between two floats */
    if ((float)back != (float)size) continue;
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)whole);
    return of_digits(signbit(number) != 0, digits, length, point + length - n);
  }
  return NULL;
}

/* from_numbers(array, other): texts of int64, float32 or float64; `other` makes those of numbers that are no
 * matter of a few digits */
static PyObject *from_numbers(PyObject *module, PyObject *arguments) {
  PyObject *value, *other;
  if (!PyArg_ParseTuple(arguments, "O!O", &PyArray_Type, &value, &other)) return NULL;
  int type = PyArray_TYPE((PyArrayObject *)value);
  if (type != NPY_INT64 && type != NPY_FLOAT32 && type != NPY_FLOAT64) {
    PyErr_SetString(PyExc_TypeError, "expected int64, float32 or float64");
    return NULL;
  }
  PyArrayObject *array = (PyArrayObject *)PyArray_FROM_OF(value, NPY_ARRAY_CARRAY_RO);
  if (array == NULL) return NULL;
  PyArrayObject *made = like(array, NPY_OBJECT);
  for (npy_intp i = 0, n = PyArray_SIZE(array); made != NULL && i < n; i++) {
    const char *from = (const char *)PyArray_DATA(array) + i * PyArray_ITEMSIZE(array);
    PyObject *text = NULL;
    if (type == NPY_INT64) text = of_whole(*(const int64_t *)from);
    else if (type == NPY_FLOAT32 && isfinite(*(const float *)from)) text = of_float(*(const float *)from);
    else if (type == NPY_FLOAT64 && isfinite(*(const double *)from)) text = of_double(*(const double *)from);
    if (text == NULL && !PyErr_Occurred()) {
      PyObject *scalar = PyArray_Scalar((void *)from, PyArray_DESCR(array), NULL);
      if (scalar != NULL) text = PyObject_CallOneArg(other, scalar);
      Py_XDECREF(scalar);
    }
    if (text == NULL) Py_CLEAR(made);
    else put(PyArray_DATA(made), i, text);
  }
  Py_DECREF(array);
  return (PyObject *)made;
}

static PyMethodDef methods[] = {
    {"are_texts", are_texts, METH_O, "Return whether all elements are str."},
    {"concat", concat, METH_VARARGS, "Return the texts of two arrays, joined one by one."},
    {"split", split, METH_VARARGS, "Return the parts of texts, and how many there are of each."},
    {"places", places, METH_VARARGS, "Return what a dict has for each element."},
    {"matches", matches, METH_VARARGS, "Return whether a function finds something in each text."},
    {"marked", marked, METH_VARARGS, "Return rows that are 1 at one place."},
    {"to_numbers", to_numbers, METH_VARARGS, "Return texts as numbers."},
    {"from_numbers", from_numbers, METH_VARARGS, "Return numbers as texts."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "hagane_texts", NULL, -1, methods,
                                        NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_hagane_texts(void) {
  import_array();
  return PyModule_Create(&definition);
}
