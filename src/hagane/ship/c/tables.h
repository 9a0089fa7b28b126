/* What the build of a model consists of: tables that `tables.py` writes as C data.
 *
 * A size is the index of a number. The numbers of a part are sizes that the inputs tell, sizes that differ
 * between iterations, then constants and those that `compute` computes of the others. Texts are UTF-8.
 */
#define HGB_FORMAT 1
#define HGB_NONE (-1)

enum { HGB_ARENA, HGB_BORDERED, HGB_WEIGHT, HGB_INPUT, HGB_OUTPUT, HGB_MOVING };

/* A place in a buffer, in bytes. */
typedef struct {
  int32_t buffer, offset;
} hgb_pointer;

typedef struct {
  hg_kernel run; /* null for a loop, a branch, or the end of one */
  const char *label, *failure;
  int32_t pointer, pointers; /* the first, and how many */
  int32_t size, sizes;
  int32_t tasks, scratch;
  int32_t failure_size, failure_sizes;
  int32_t work; /* estimated nanoseconds of one thread */
} hgb_kernel;

/* Memory that kernels read and write, from the first kernel to the last one that do. */
typedef struct {
  int32_t kind, bytes, first, last;
  int64_t at;              /* of weights: bytes from their start; of inputs and outputs: which */
  int32_t border, borders; /* equal ones have one index */
  int32_t cleared;         /* the border is set in each run */
} hgb_buffer;

/* Sizes: see hg_border. */
typedef struct {
  int32_t start, planes, step, plane, first, run, fill, axes;
  int32_t counts[BORDER_AXES], strides[BORDER_AXES];
} hgb_border;

typedef struct {
  int32_t before, after, start, first, second, size, grown, result, dims, rank;
} hgb_carried;

typedef struct {
  int32_t slice, base, start, step, result;
} hgb_scanned;

/* A size that differs between iterations: which number it is, and what it is after an iteration. */
typedef struct {
  int32_t symbol, after;
} hgb_changing;

typedef struct {
  int32_t begin, loops, otherwise, end;
  int32_t likely; /* iterations, for estimates */
  int32_t iterations, limit, going, condition, count;
  int32_t carry, carried, scan, scanned; /* the first, and how many */
  int32_t changes;                       /* whether sizes differ between iterations */
  int32_t change, changing;
  int32_t dim, dims;         /* numbers that the kernel behind the loop's computes */
  int32_t numbers;           /* the buffer where it leaves them */
  int32_t moved_at, moved;   /* values of the body that have no fixed size */
  int32_t scratch;           /* which number, or none */
} hgb_control;

typedef struct {
  int32_t buffer, type, rank, dims; /* dims: the first of its sizes in `dims` */
  int32_t grows;
} hgb_port;

/* A named size, as a size of an input tells it. */
typedef struct {
  int32_t input, axis, symbol;
  int64_t distance;
} hgb_named;

typedef struct {
  const hgb_kernel *kernels;
  const hgb_pointer *pointers;
  const hgb_buffer *buffers;
  const hgb_border *borders;
  const hgb_control *controls;
  const hgb_carried *carried;
  const hgb_scanned *scanned;
  const hgb_changing *changing;
  const hgb_port *inputs, *outputs;
  const hgb_named *named;
  const int32_t *sizes, *failure_sizes, *dims, *control_dims, *moved, *equal;
  const int64_t *constants;
  void (*begin)(int64_t *);   /* sizes that differ between iterations, before the first */
  void (*compute)(int64_t *); /* what follows from named sizes */
  int32_t n_kernels, n_pointers, n_buffers, n_controls, n_inputs, n_outputs, n_named, n_equal;
  int32_t n_numbers, n_symbols, n_sizes; /* n_symbols: those that inputs must tell */
} hgb_part;

/* Parts in order, over slots. The first slots are the inputs. */
typedef struct {
  const hgb_part *part;
  const int32_t *inputs, *outputs;
} hgb_step;

typedef struct {
  int32_t slot, type, rank;
  int64_t at; /* bytes from the start of the weights */
  const int64_t *shape;
} hgb_constant;

/* The program for a range of shapes: least and most of each axis of each input, in order. */
typedef struct {
  int32_t n_slots, n_steps, n_constants;
  const hgb_step *steps;
  const hgb_constant *constants;
  const int32_t *outputs; /* slots */
  const int64_t *least, *most;
} hgb_program;

typedef struct {
  const char *name;
  int32_t type, rank;
  const int64_t *least, *most;
} hgb_argument;

typedef struct {
  int64_t format;
  const char *build; /* names the build */
  int32_t n_inputs, n_outputs, n_programs;
  const hgb_argument *inputs, *outputs;
  const hgb_program *programs;
  const char *weights; /* where they are embedded, else null */
  int64_t weight_bytes;
  const char *const *needs; /* features of the processor, ended by null */
} hgb_model;

/* Of this library. */
extern const hgb_model hagane_built;
