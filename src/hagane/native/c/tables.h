/* A compiled part as tables of numbers: kernels, their reads and writes, formulas of their sizes.
 *
 * Sessions make the tables in memory, builds write them as C data; `native/run/tables.py` has the rows of both.
 * A size is the index of a number. The numbers of a part are sizes that the inputs tell, sizes that differ
 * between iterations, constants, and numbers that formulas compute of the others.
 */
#define HGT_NONE (-1)

enum { HGT_ARENA, HGT_BORDERED, HGT_WEIGHT, HGT_INPUT, HGT_OUTPUT, HGT_MOVING };
enum { HGT_ADD, HGT_MULTIPLY, HGT_FLOOR, HGT_MODULO, HGT_LEAST, HGT_MOST, HGT_TAKE };

/* A number of two others. */
typedef struct {
  int32_t operation, into, left, right;
} hgt_formula;

/* A place in a buffer, in bytes. */
typedef struct {
  int32_t buffer, offset;
} hgt_pointer;

typedef struct {
  int32_t pointer, pointers; /* the first, and how many */
  int32_t size, sizes;
  int32_t tasks, scratch;
  int32_t failure_size, failure_sizes;
  int32_t coded; /* not a loop, a branch, or the end of one */
  int32_t open;  /* its tasks differ between iterations */
  int32_t work;  /* estimated nanoseconds of one thread */
} hgt_kernel;

/* Memory that kernels read and write, from the first kernel to the last one that do. They are numbered
 * in the order in which kernels come to them. */
typedef struct {
  int32_t kind, bytes, first, last;
  int32_t at; /* of weights, inputs and outputs: which */
  int32_t border, borders;
} hgt_buffer;

/* Sizes: see hg_border. */
typedef struct {
  int32_t start, planes, step, plane, first, run, fill, axes;
  int32_t counts[BORDER_AXES], strides[BORDER_AXES];
} hgt_border;

typedef struct {
  int32_t before, after, start, first, second, size, grown, result, dims, rank;
} hgt_carried;

typedef struct {
  int32_t slice, base, start, step, result;
} hgt_scanned;

/* A size that differs between iterations: its number, and its value after an iteration. */
typedef struct {
  int32_t symbol, after;
} hgt_changing;

/* An output whose memory is there once its sizes are found: which of the moved values it is. */
typedef struct {
  int32_t result, moved, dims, rank;
} hgt_found;

typedef struct {
  int32_t begin, loops, otherwise, end; /* loops: see hg_control */
  int32_t likely; /* iterations, for estimates */
  int32_t iterations, limit, going, condition, count;
  int32_t carry, carried, scan, scanned; /* the first, and how many */
  int32_t changes;                       /* whether sizes differ between iterations, or are found */
  int32_t change, changing;
  int32_t dim, dims;         /* numbers that the kernel behind the loop's computes */
  int32_t numbers;           /* the buffer where it leaves them */
  int32_t moved_at, moved;   /* values of the body that have no fixed size */
  int32_t scratch;           /* which number, or none */
  int32_t find, found;
} hgt_control;

typedef struct {
  int32_t buffer, type, rank, dims; /* dims: the first of its sizes in `dims` */
  int32_t grows;
} hgt_port;

/* A named size, as a size of an input tells it, which is `factor` times it and `distance`; these are numbers. */
typedef struct {
  int32_t input, axis, symbol, factor, distance;
} hgt_named;

typedef struct {
  const hg_kernel *functions;    /* of kernels; null for a loop, a branch, or the end of one */
  const char *const *labels, *const *failures; /* of kernels, where messages are made in C */
  const hgt_kernel *kernels;
  const hgt_pointer *pointers;
  const hgt_buffer *buffers;
  const hgt_border *borders;
  const hgt_control *controls;
  const hgt_carried *carried;
  const hgt_scanned *scanned;
  const hgt_changing *changing;
  const hgt_found *found;
  const hgt_port *inputs, *outputs;
  const hgt_named *named;
  const int32_t *sizes, *failure_sizes, *dims, *control_dims, *moved, *equal;
  const hgt_formula *formulas; /* first values of changing sizes; the rest; estimates of time */
  const int64_t *constants;
  const int64_t *weights; /* bytes from the start of the weights, or addresses */
  int64_t n_kernels, n_pointers, n_buffers, n_controls, n_inputs, n_outputs, n_named, n_equal;
  int64_t n_numbers, n_symbols, n_sizes; /* n_symbols: the ones that inputs must tell */
  int64_t n_begin, n_exact, n_formulas;  /* where each kind of formulas ends */
} hgt_part;
