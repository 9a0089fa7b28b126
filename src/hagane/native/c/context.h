/* Memory and tables of one run at a time of a part. */

#define ARENA_SLACK 4096
#define SCRATCH_LEAST 256
/* Little memory that is to grow has pages for so many times as many bytes at first: a page takes the system as long as
 * a small kernel takes. */
#define AHEAD 4
/* Clearing borders in runs may take this share of a run's estimated time; the second one after a change of sizes that
 * would need new memory: the system takes longer to provide a page than clearing takes, */
#define CLEARING 0.01
#define CLEARING_ONCE 0.06
/* in nanoseconds of one thread for each byte and each stretch of them. */
#define NS_OF_BYTE 0.04
#define NS_OF_STRETCH 4.0
/* Kernels of less work are not worth a barrier; a loop's body of less that could be shared is run by one thread. */
#define SERIAL_NS 1500.0
#define SHARED_NS 8000.0
/* Programs of less work run on one thread; of less than the other, only while others are awake. */
#define TINY_NS 4000.0
#define SMALL_NS 40000.0

/* Whether tables fit: they do; shapes do not go together; sizes are beyond any memory; there is none. */
enum { HG_FITS, HG_MISMATCH, HG_BEYOND, HG_NO_MEMORY };
/* The border of a value: it has none; it is set once; it is set in every run. */
enum { HG_NO_BORDER, HG_SET_ONCE, HG_SET_IN_RUNS };

typedef struct hg_context hg_context;

/* A caller's own ways in place of the engine's; all may be null. */
typedef struct {
  void *owner;
  void *(*take)(void *owner, size_t bytes); /* zeroed memory for values */
  void (*give)(void *owner, void *memory, size_t bytes);
  /* In the place of hg_set_phase. There is a word before the pointers. */
  void (*set)(void *owner, hg_program *program, int64_t index, hg_kernel run, char **pointers, int64_t *sizes,
              int64_t tasks, int64_t serial);
  int64_t *(*tasks)(void *owner, int64_t index); /* where tasks of a phase lie, if not there; or null */
  int64_t single; /* the engine has one thread */
} hg_host;

typedef struct hg_block {
  struct hg_block *next;
  char pad[8];
} hg_block;

/* A pointer of a kernel to an input or output of the part. */
typedef struct {
  char **slot;
  int64_t index, offset;
} hg_outer;

/* A number that may differ between iterations, and where it is read. */
typedef struct {
  int64_t *place;
  int64_t number;
} hg_changing;

struct hg_context {
  const hgt_part *part;
  const char *weights;
  int64_t threads;
  double clearing; /* the share of time that clearing borders may take */
  int64_t once;    /* sizes are fitted that may be others in the next run */
  int64_t ahead;   /* these sizes are the least that are likely: memory is ready for larger ones */
  int64_t saves;   /* if values were placed in less memory for that: 1, and the runs since then */
  hg_host host;
  int64_t *numbers, *offsets, *shapes; /* shapes: those of all inputs, one after the other */
  char *borders;                       /* of each buffer */
  int64_t ready, wrong[3];
  char **table;
  int64_t *sizes;
  char *arena;
  size_t arena_bytes, used; /* used: bytes from its start that values have had, whose pages are there */
  hg_program *program;
  double *often; /* how often each kernel is likely to run */
  char *alone, *lonely; /* loops and branches that one thread runs by itself, and the kernels in them */
  double whole, shared; /* estimated nanoseconds in all, and of shared phases */
  hg_block *blocks;
  hg_outer *inputs, *outputs;
  int64_t n_inputs, n_outputs;
  hg_control *controls;
  void *plan; /* room for planning */
};
