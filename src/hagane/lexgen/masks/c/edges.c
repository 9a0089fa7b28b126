/* The edges of a grammar's rules (units.py has the same in Python), written from its trees of parts. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

enum { TEXT, CALL, SEQUENCE, CHOICE, NET, KINDS };

typedef struct { int32_t *of; int64_t count, room; } numbers_t;

/* Edges so far, the classes of parts, and the names of their attributes. */
typedef struct {
  int32_t states;
  numbers_t bytes, free, calls;
  PyObject *kinds[KINDS], *names[KINDS];
  PyObject *other; /* other(part, start, end, states): writes a part of another class; the states after it */
} edges_t;

static const char *const ATTRIBUTES[KINDS] = {"text", "rule", "parts", "parts", "edges"};

static int add_numbers(numbers_t *list, const int32_t *given, int count)
{
  if (!GROW(list->of, list->room, list->count + count)) {
    PyErr_NoMemory();
    return 0;
  }
  memcpy(list->of + list->count, given, (size_t)count * sizeof *given);
  list->count += count;
  return 1;
}

static int add_free(edges_t *e, int32_t from, int32_t to) { return add_numbers(&e->free, (int32_t[]){from, to}, 2); }

static int write_text(edges_t *e, PyObject *text, int32_t start, int32_t end)
{
  char *bytes;
  Py_ssize_t size;
  if (PyBytes_AsStringAndSize(text, &bytes, &size) < 0) return 0;
  if (!size) return add_free(e, start, end);
  for (Py_ssize_t i = 0; i < size; i++) {
    int32_t byte = (unsigned char)bytes[i], to = i == size - 1 ? end : e->states++;
    if (!add_numbers(&e->bytes, (int32_t[]){start, byte, byte, to}, 4)) return 0;
    start = to;
  }
  return 1;
}

static int write_part(edges_t *e, PyObject *part, int32_t start, int32_t end);

static int write_sequence(edges_t *e, PyObject *parts, int32_t start, int32_t end)
{
  Py_ssize_t size = PyTuple_GET_SIZE(parts);
  if (!size) return add_free(e, start, end);
  for (Py_ssize_t i = 0; i < size; i++) {
    int32_t to = i == size - 1 ? end : e->states++;
    if (!write_part(e, PyTuple_GET_ITEM(parts, i), start, to)) return 0;
    start = to;
  }
  return 1;
}

/* The number of an attribute of a part; -1 with an error. */
static long number_of(PyObject *part, const char *name)
{
  PyObject *found = PyObject_GetAttrString(part, name);
  long number = found ? PyLong_AsLong(found) : -1;
  Py_XDECREF(found);
  return number;
}

/* Make the list as long as a place needs. */
static int has_place(numbers_t *places, long place)
{
  while (places->count <= place)
    if (!add_numbers(places, (int32_t[]){-1}, 1)) return 0;
  return 1;
}

/* The state of a place of a net, a new one at its first mention; -1 without memory. */
static int32_t state_of(edges_t *e, numbers_t *places, long place)
{
  if (!has_place(places, place)) return -1;
  if (places->of[place] < 0) places->of[place] = e->states++;
  return places->of[place];
}

static int write_net(edges_t *e, PyObject *net, PyObject *edges, int32_t start, int32_t end)
{
  long first = number_of(net, "start"), last = number_of(net, "end");
  if (PyErr_Occurred()) return 0;
  numbers_t places = {0};
  int good = has_place(&places, first) && has_place(&places, last);
  if (good) places.of[first] = start, places.of[last] = end;
  for (Py_ssize_t i = 0; good && i < PyTuple_GET_SIZE(edges); i++) {
    PyObject *edge = PyTuple_GET_ITEM(edges, i);
    long from = PyLong_AsLong(PyTuple_GET_ITEM(edge, 0)), to = PyLong_AsLong(PyTuple_GET_ITEM(edge, 2));
    int32_t before = state_of(e, &places, from), after = before < 0 ? -1 : state_of(e, &places, to);
    good = after >= 0 && write_part(e, PyTuple_GET_ITEM(edge, 1), before, after);
  }
  free(places.of);
  return good;
}

static int write_other(edges_t *e, PyObject *part, int32_t start, int32_t end)
{
  PyObject *states = PyObject_CallFunction(e->other, "Oiii", part, start, end, e->states);
  long number = states ? PyLong_AsLong(states) : -1;
  Py_XDECREF(states);
  if (number < 0) return 0;
  e->states = (int32_t)number;
  return 1;
}

static int write_part(edges_t *e, PyObject *part, int32_t start, int32_t end)
{
  int kind = 0;
  while (kind < KINDS && (PyObject *)Py_TYPE(part) != e->kinds[kind]) kind++;
  if (kind == KINDS) return write_other(e, part, start, end);
  PyObject *inside = PyObject_GetAttr(part, e->names[kind]);
  if (!inside) return 0;
  int good = 0;
  if (Py_EnterRecursiveCall(" in the parts of a grammar")) {
    Py_DECREF(inside);
    return 0;
  }
  if (kind >= SEQUENCE && !PyTuple_Check(inside)) PyErr_SetString(PyExc_TypeError, "expected a tuple of parts");
  else if (kind == TEXT) good = write_text(e, inside, start, end);
  else if (kind == CALL) {
    int32_t rule = (int32_t)PyLong_AsLong(inside);
    good = !PyErr_Occurred() && add_numbers(&e->calls, (int32_t[]){start, rule, 1, 1, end}, 5);
  } else if (kind == SEQUENCE) good = write_sequence(e, inside, start, end);
  else if (kind == NET) good = write_net(e, part, inside, start, end);
  else
    for (Py_ssize_t i = 0; (good = i == PyTuple_GET_SIZE(inside)) == 0; i++)
      if (!write_part(e, PyTuple_GET_ITEM(inside, i), start, end)) break;
  Py_LeaveRecursiveCall();
  Py_DECREF(inside);
  return good;
}

#define EDGES "hagane.edges"

static void end_edges(PyObject *capsule)
{
  edges_t *e = PyCapsule_GetPointer(capsule, EDGES);
  for (int kind = 0; kind < KINDS; kind++) {
    Py_XDECREF(e->kinds[kind]);
    Py_XDECREF(e->names[kind]);
  }
  Py_XDECREF(e->other);
  free(e->bytes.of), free(e->free.of), free(e->calls.of), free(e);
}

/* edges((Bytes, Call, Seq, Alt, Net), other): no edges yet. */
static PyObject *py_edges(PyObject *self, PyObject *arguments)
{
  (void)self;
  PyObject *kinds, *other;
  if (!PyArg_ParseTuple(arguments, "O!O", &PyTuple_Type, &kinds, &other)) return 0;
  if (PyTuple_GET_SIZE(kinds) != KINDS) return PyErr_Format(PyExc_ValueError, "expected %d classes", KINDS);
  edges_t *e = calloc(1, sizeof *e);
  if (!e) return PyErr_NoMemory();
  PyObject *made = PyCapsule_New(e, EDGES, end_edges);
  if (!made) {
    free(e);
    return 0;
  }
  e->other = Py_NewRef(other);
  for (int kind = 0; kind < KINDS; kind++) {
    e->kinds[kind] = Py_NewRef(PyTuple_GET_ITEM(kinds, kind));
    e->names[kind] = PyUnicode_InternFromString(ATTRIBUTES[kind]);
    if (!e->names[kind]) {
      Py_DECREF(made);
      return 0;
    }
  }
  return made;
}

/* rule(edges, part): write the edges of a rule; the first and the last state. */
static PyObject *py_rule(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
  (void)self;
  if (count != 2) return PyErr_Format(PyExc_TypeError, "rule: expected 2 arguments, got %zd", count);
  edges_t *e = PyCapsule_GetPointer(given[0], EDGES);
  if (!e) return 0;
  int32_t start = e->states++, end = e->states++;
  return write_part(e, given[1], start, end) ? Py_BuildValue("ii", start, end) : 0;
}

static PyObject *as_bytes(const numbers_t *list)
{
  return PyBytes_FromStringAndSize((const char *)list->of, (Py_ssize_t)(list->count * (int64_t)sizeof *list->of));
}

/* written(edges): the number of states, and the edges as int32: of bytes, without text, of calls. */
static PyObject *py_written(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
  (void)self;
  if (count != 1) return PyErr_Format(PyExc_TypeError, "written: expected 1 argument, got %zd", count);
  edges_t *e = PyCapsule_GetPointer(given[0], EDGES);
  if (!e) return 0;
  return Py_BuildValue("iNNN", e->states, as_bytes(&e->bytes), as_bytes(&e->free), as_bytes(&e->calls));
}
