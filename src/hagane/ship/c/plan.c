/* A build's plan: the bytes that `native/ready/plan_file.py` writes, for sessions of the cache too.
 *
 * Numbers are little-endian; positions count bytes from the start of the plan and are multiples of 8, but for
 * texts, which end with a zero byte. Tables are used where they lie.
 */
#define PLAN_MAGIC INT64_C(0x00004e414c504748) /* "HGPLAN" and two zero bytes */
#define PLAN_COUNTS 14
/* The tables of a part, in the order of hgt_part. */
#define PLAN_TABLES(_) \
  _(kernels) _(pointers) _(buffers) _(borders) _(controls) _(carried) _(scanned) _(changing) _(found) _(inputs) \
  _(outputs) _(named) _(sizes) _(failure_sizes) _(dims) _(control_dims) _(moved) _(equal) _(formulas) _(constants)
#define PLAN_COUNTED(_) \
  _(kernels) _(pointers) _(buffers) _(controls) _(inputs) _(outputs) _(named) _(equal) _(numbers) _(symbols) \
  _(sizes) _(begin) _(exact) _(formulas)

typedef struct {
  int64_t magic, format, bytes, weight_bytes;
  int64_t n_inputs, inputs, n_outputs, outputs, n_programs, programs, n_parts, parts, n_functions, functions;
} plan_header;

typedef struct {
  int64_t name, type, rank, least, most;
} plan_argument;

typedef struct {
  int64_t n_slots, n_steps, steps, n_constants, constants, n_outputs, outputs, n_bounds, least, most;
} plan_program;

typedef struct {
  int64_t part, n_inputs, inputs, n_outputs, outputs;
} plan_step;

typedef struct {
  int64_t slot, type, rank, at, shape;
} plan_constant;

typedef struct {
  int64_t at, count;
} plan_span;

#define PLAN_ONE(name) +1
typedef struct {
  int64_t counts[PLAN_COUNTS];
  plan_span tables[0 PLAN_TABLES(PLAN_ONE)], functions, labels, failures, weights;
} plan_part;
_Static_assert(PLAN_COUNTS == 0 PLAN_COUNTED(PLAN_ONE), "each count has a place");

/* A plan that is being read, and the rest of the memory for its tables of pointers. */
typedef struct {
  const char *plan;
  int64_t bytes;
  int bad; /* a position lies beyond the end */
  char *next;
} plan_reader;

/* What lies at a position: `count` items of `size` bytes each; NULL if it is beyond the end. */
static const void *plan_at(plan_reader *from, int64_t at, int64_t count, size_t size) {
  int holds = at >= 0 && at <= from->bytes && count >= 0 && count <= (from->bytes - at) / (int64_t)size;
  from->bad |= !holds || at % (size > 1 ? 8 : 1) != 0;
  return from->bad ? NULL : from->plan + at;
}

/* (A plan's last byte is zero, as `read_plan_header` saw.) */
static const char *plan_text(plan_reader *from, int64_t at) {
  const char *text = plan_at(from, at, 1, 1);
  return text == NULL ? "" : text;
}

static void *plan_room(plan_reader *from, int64_t count, size_t size) {
  void *room = from->next;
  from->next += (size_t)count * size;
  return room;
}

static const plan_header *read_plan_header(plan_reader *from, const hgb_built *built) {
  const plan_header *header = (const void *)built->plan;
  *from = (plan_reader){.plan = built->plan, .bytes = built->plan_bytes};
  from->bad = built->plan_bytes < (int64_t)sizeof *header || header->magic != PLAN_MAGIC ||
              header->format != PLAN_FORMAT || header->bytes != built->plan_bytes ||
              built->plan[built->plan_bytes - 1] != 0;
  return header;
}

/* The bytes of the tables of pointers of a plan. */
static size_t plan_room_bytes(plan_reader *from, const plan_header *header) {
  const plan_program *programs = plan_at(from, header->programs, header->n_programs, sizeof *programs);
  const int64_t *parts = plan_at(from, header->parts, header->n_parts, sizeof *parts);
  plan_at(from, header->inputs, header->n_inputs, sizeof(plan_argument));
  plan_at(from, header->outputs, header->n_outputs, sizeof(plan_argument));
  plan_at(from, header->functions, header->n_functions, sizeof(int64_t));
  if (from->bad) return 0;
  int64_t bytes = (int64_t)sizeof(hgb_model);
  bytes += (header->n_inputs + header->n_outputs) * (int64_t)sizeof(hgb_argument);
  bytes += header->n_programs * (int64_t)sizeof(hgb_program) + header->n_parts * (int64_t)sizeof(hgt_part);
  for (int64_t p = 0; p < header->n_programs; p++) {
    plan_at(from, programs[p].steps, programs[p].n_steps, sizeof(plan_step));
    plan_at(from, programs[p].constants, programs[p].n_constants, sizeof(plan_constant));
    if (from->bad) return 0;
    bytes += programs[p].n_steps * (int64_t)sizeof(hgb_step);
    bytes += programs[p].n_constants * (int64_t)sizeof(hgb_constant);
  }
  for (int64_t p = 0; p < header->n_parts; p++) {
    const plan_part *part = plan_at(from, parts[p], 1, sizeof *part);
    if (part != NULL) plan_at(from, part->functions.at, part->counts[0], sizeof(int32_t));
    if (from->bad) return 0;
    bytes += part->counts[0] * (int64_t)(sizeof(hg_kernel) + 2 * sizeof(char *));
  }
  return (size_t)bytes;
}

static const hgb_argument *read_arguments(plan_reader *from, int64_t at, int64_t count) {
  const plan_argument *found = plan_at(from, at, count, sizeof *found);
  hgb_argument *arguments = plan_room(from, count, sizeof *arguments);
  for (int64_t i = 0; i < count && !from->bad; i++) {
    arguments[i] = (hgb_argument){.name = plan_text(from, found[i].name),
                                  .type = (int32_t)found[i].type,
                                  .rank = (int32_t)found[i].rank,
                                  .least = plan_at(from, found[i].least, found[i].rank, sizeof(int64_t)),
                                  .most = plan_at(from, found[i].most, found[i].rank, sizeof(int64_t))};
    from->bad |= found[i].rank > MOST_AXES;
  }
  return arguments;
}

static const char *const *read_texts(plan_reader *from, const plan_span *span, int64_t count) {
  const int64_t *found = plan_at(from, span->at, count, sizeof *found);
  const char **texts = plan_room(from, count, sizeof *texts);
  for (int64_t i = 0; i < count && !from->bad; i++) texts[i] = plan_text(from, found[i]);
  return texts;
}

static void read_part(plan_reader *from, const plan_part *found, const hgb_built *built, int64_t n_functions,
                      hgt_part *part) {
  const int64_t *count = found->counts;
#define PLAN_COUNT(name) part->n_##name = *count++;
  PLAN_COUNTED(PLAN_COUNT)
  const plan_span *span = found->tables;
#define PLAN_TABLE(name) part->name = plan_at(from, span->at, span->count, sizeof(int32_t)), span++;
  PLAN_TABLES(PLAN_TABLE)
  part->weights = plan_at(from, found->weights.at, found->weights.count, sizeof(int64_t));
  int64_t n = part->n_kernels;
  part->labels = read_texts(from, &found->labels, n);
  part->failures = read_texts(from, &found->failures, n);
  const int32_t *which = plan_at(from, found->functions.at, n, sizeof *which);
  hg_kernel *functions = plan_room(from, n, sizeof *functions);
  part->functions = functions;
  for (int64_t i = 0; i < n && !from->bad; i++) {
    from->bad |= which[i] >= n_functions;
    functions[i] = which[i] < 0 || from->bad ? NULL : built->functions[which[i]];
  }
}

static void read_program(plan_reader *from, const plan_program *found, const hgt_part *parts, int64_t n_parts,
                         hgb_program *program) {
  const plan_step *step = plan_at(from, found->steps, found->n_steps, sizeof *step);
  const plan_constant *constant = plan_at(from, found->constants, found->n_constants, sizeof *constant);
  hgb_step *steps = plan_room(from, found->n_steps, sizeof *steps);
  hgb_constant *constants = plan_room(from, found->n_constants, sizeof *constants);
  *program = (hgb_program){.n_slots = (int32_t)found->n_slots,
                           .n_steps = (int32_t)found->n_steps,
                           .n_constants = (int32_t)found->n_constants,
                           .steps = steps,
                           .constants = constants,
                           .outputs = plan_at(from, found->outputs, found->n_outputs, sizeof(int32_t)),
                           .least = plan_at(from, found->least, found->n_bounds, sizeof(int64_t)),
                           .most = plan_at(from, found->most, found->n_bounds, sizeof(int64_t))};
  for (int64_t i = 0; i < found->n_steps && !from->bad; i++) {
    from->bad |= step[i].part < 0 || step[i].part >= n_parts;
    steps[i] = (hgb_step){.part = from->bad ? NULL : &parts[step[i].part],
                          .inputs = plan_at(from, step[i].inputs, step[i].n_inputs, sizeof(int32_t)),
                          .outputs = plan_at(from, step[i].outputs, step[i].n_outputs, sizeof(int32_t))};
  }
  for (int64_t i = 0; i < found->n_constants && !from->bad; i++)
    constants[i] = (hgb_constant){.slot = (int32_t)constant[i].slot,
                                  .type = (int32_t)constant[i].type,
                                  .rank = (int32_t)constant[i].rank,
                                  .at = constant[i].at,
                                  .shape = plan_at(from, constant[i].shape, constant[i].rank, sizeof(int64_t))};
}

/* Read a build's plan; the tables are given back with `free`. They are NULL if it is damaged, and `*none` tells
 * whether there is no memory. */
static hgb_model *read_plan(const hgb_built *built, int *none) {
  plan_reader from;
  const plan_header *header = read_plan_header(&from, built);
  size_t bytes = from.bad ? 0 : plan_room_bytes(&from, header);
  *none = 0;
  if (from.bad) return NULL;
  char *room = calloc(1, bytes);
  *none = room == NULL;
  if (room == NULL) return NULL;
  from.next = room;
  hgb_model *model = plan_room(&from, 1, sizeof *model);
  hgt_part *parts = plan_room(&from, header->n_parts, sizeof *parts);
  hgb_program *programs = plan_room(&from, header->n_programs, sizeof *programs);
  const int64_t *places = plan_at(&from, header->parts, header->n_parts, sizeof *places);
  for (int64_t p = 0; p < header->n_parts && !from.bad; p++)
    read_part(&from, (const void *)(built->plan + places[p]), built, header->n_functions, &parts[p]);
  const plan_program *found = plan_at(&from, header->programs, header->n_programs, sizeof *found);
  for (int64_t p = 0; p < header->n_programs && !from.bad; p++)
    read_program(&from, &found[p], parts, header->n_parts, &programs[p]);
  *model = (hgb_model){.n_inputs = (int32_t)header->n_inputs,
                       .n_outputs = (int32_t)header->n_outputs,
                       .n_programs = (int32_t)header->n_programs,
                       .inputs = read_arguments(&from, header->inputs, header->n_inputs),
                       .outputs = read_arguments(&from, header->outputs, header->n_outputs),
                       .programs = programs};
  if (!from.bad) return model;
  free(room);
  return NULL;
}
