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
