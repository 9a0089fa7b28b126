/* The contents of a model's build: its plan, as `plan.c` reads it. Texts are UTF-8.
 *
 * The tables of parts are described in `native/c/tables.h`.
 */
#define PLAN_FORMAT 7 /* that of `native/ready/plan_file.py` */
#define MOST_AXES 16

/* Parts in order, over slots. The first slots are the inputs. */
typedef struct {
  const hgt_part *part;
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
  int32_t n_inputs, n_outputs, n_programs;
  const hgb_argument *inputs, *outputs;
  const hgb_program *programs;
} hgb_model;

/* The content of a library. */
typedef struct {
  int64_t format;
  const char *build; /* names the build */
  const char *plan;
  int64_t plan_bytes;
  const hg_kernel *functions; /* those that the plan names, in order */
  const char *weights;        /* where they are embedded, else null */
  int64_t weight_bytes;
} hgb_built;

/* Of this library. */
extern const hgb_built hagane_built;

/* Of each archive that is linked into a program: the first one's functions serve the others' plans too. */
typedef struct hgb_archive {
  const hgb_built *built;
  struct hgb_archive *next;
} hgb_archive;
void hgb_register(hgb_archive *archive);
