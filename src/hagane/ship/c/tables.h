/* The contents of a model's build, beside the tables of its parts (`native/c/tables.h`), as
 * `tables.py` and `program.py` write it as C data. Texts are UTF-8.
 */
#define HGB_FORMAT 2

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

/* Of each archive that is linked into a program: the first one's functions serve the others' tables too. */
typedef struct hgb_archive {
  const hgb_model *tables;
  struct hgb_archive *next;
} hgb_archive;
void hgb_register(hgb_archive *archive);
