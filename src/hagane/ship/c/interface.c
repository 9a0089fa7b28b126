/* Opening, describing and running a model: the functions of hagane.h that are left. */

/* ---- opening ---- */

static int32_t read_options(const hagane_options *from, hagane_options *into) {
  memset(into, 0, sizeof *into);
  if (from == NULL) return HAGANE_OK;
  size_t size = from->size == 0 ? sizeof *into : from->size;
  for (size_t i = sizeof *into; i < size; i++)
    if (((const char *)from)[i] != 0)
      return fail(NULL, HAGANE_VERSION, "options: a field is set that interface " HAGANE_VERSION_TEXT " lacks");
  memcpy(into, from, size < sizeof *into ? size : sizeof *into);
  if ((into->allocate == NULL) != (into->release == NULL))
    return fail(NULL, HAGANE_INVALID_ARGUMENT, "options: allocate and release are set together, or neither");
  if (into->threads < 0)
    return fail(NULL, HAGANE_INVALID_ARGUMENT, "options: expected threads of 0 or more, got %d", (int)into->threads);
  return HAGANE_OK;
}

static int32_t usable_cores(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n < 1 ? 1 : (int32_t)n;
}

/* Everything that a manifest tells of the files beside it. */
typedef struct {
  char build[65], target[128], library[256], weights[256], library_sum[17], weights_sum[17];
} described;

static int is_file_name(const char *name) { return strchr(name, '/') == NULL && name[0] != 0 && name[0] != '.'; }

static int32_t read_manifest(span text, const char *where, described *found) {
  char kind[32], version[32];
  span sums;
  if (!find_text(text, "kind", kind, sizeof kind) || strcmp(kind, "hagane build") != 0)
    return fail(NULL, HAGANE_DAMAGED, "%s: manifest.json is no manifest of a build, or is damaged", where);
  if (!find_text(text, "version", version, sizeof version) || strcmp(version, HAGANE_VERSION_TEXT) != 0)
    return fail(NULL, HAGANE_VERSION, "%s: expected a build of interface " HAGANE_VERSION_TEXT
                                      ", got another; build the model with this version of hagane", where);
  int32_t code = check_processor(text, where);
  if (code != HAGANE_OK) return code;
  if (!checks(text)) return fail(NULL, HAGANE_DAMAGED, "%s: manifest.json is damaged", where);
  memset(found, 0, sizeof *found);
  if (!find_text(text, "build", found->build, sizeof found->build) ||
      !find_text(text, "target", found->target, sizeof found->target) ||
      !find_text(text, "library", found->library, sizeof found->library) || !is_file_name(found->library) ||
      !find_key(text, "sums", &sums))
    return fail(NULL, HAGANE_DAMAGED, "%s: manifest.json lacks a key", where);
  find_text(sums, "library", found->library_sum, sizeof found->library_sum);
  find_text(sums, "weights", found->weights_sum, sizeof found->weights_sum);
  if (find_text(text, "weights", found->weights, sizeof found->weights) && !is_file_name(found->weights))
    return fail(NULL, HAGANE_DAMAGED, "%s: manifest.json names no weights", where);
  return HAGANE_OK;
}

static int has_sum(const void *data, size_t bytes, const char *want) {
  char sum[17];
  snprintf(sum, sizeof sum, "%016llx", (unsigned long long)sum_of(data, bytes));
  return strcmp(sum, want) == 0;
}

/* Map a file of a folder, read-only, its pages shared with others. */
static int32_t map_file(const char *folder, const char *name, void **data, size_t *bytes) {
  char path[4096];
  struct stat found;
  *data = NULL, *bytes = 0;
  if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path)
    return fail(NULL, HAGANE_INVALID_ARGUMENT, "the folder's path is too long");
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return fail(NULL, HAGANE_NOT_FOUND, "'%s' cannot be read: %s; expected a folder that hagane build wrote", path,
                strerror(errno));
  if (fstat(file, &found) != 0 || !S_ISREG(found.st_mode) || found.st_size == 0) {
    close(file);
    return fail(NULL, HAGANE_DAMAGED, "'%s' is empty, or no file", path);
  }
  void *mapped = mmap(NULL, (size_t)found.st_size, PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (mapped == MAP_FAILED)
    return fail(NULL, HAGANE_MEMORY, "'%s' cannot be mapped: %s", path, strerror(errno));
#ifdef MADV_HUGEPAGE
  /* Files that are not in memory yet come on pages of 2 MiB, where the system has these for files. */
  if (found.st_size >= 2 << 20) madvise(mapped, (size_t)found.st_size, MADV_HUGEPAGE);
#endif
  *data = mapped, *bytes = (size_t)found.st_size;
  return HAGANE_OK;
}

static hgb_archive *archives;

/* Before `main`, by each archive of a program; a shared library has itself alone here. */
void hgb_register(hgb_archive *archive) {
  archive->next = archives;
  archives = archive;
}

/* A build that is linked into the program; null if it is not. */
static const hgb_built *linked(const described *found) {
  if (strcmp(found->build, hagane_built.build) == 0) return &hagane_built;
  for (const hgb_archive *at = archives; at != NULL; at = at->next)
    if (at->built->format == PLAN_FORMAT && strcmp(found->build, at->built->build) == 0) return at->built;
  return NULL;
}

/* Whether a library has the build of a manifest, weights in it included. */
static int is_of(const hgb_built *built, const described *found) {
  return built != NULL && built->format == PLAN_FORMAT && strcmp(built->build, found->build) == 0 &&
         (built->weights == NULL || has_sum(built->weights, (size_t)built->weight_bytes, found->weights_sum));
}

/* How many builds of one folder a process may have had open. */
#define MOST_FORMER 64

/* Load a library, whose content was checked. */
static int32_t load_built(const char *folder, const described *found, const hgb_built **built) {
  char path[4096];
  void *last = NULL;
  int before = snprintf(path, sizeof path, "%s%s/", folder[0] == '/' ? "" : "./", folder);
  for (int former = 0; former < MOST_FORMER; former++, before += 2) {
    /* The dynamic linker knows libraries by the text of their path: that of a build which was here before comes
     * again, unless the path is written in another way. */
    if (before < 0 || (size_t)before + strlen(found->library) + 3 >= sizeof path)
      return fail(NULL, HAGANE_INVALID_ARGUMENT, "the folder's path is too long");
    strcpy(path + before, found->library);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return fail(NULL, HAGANE_DAMAGED, "'%s' cannot be loaded: %s", path, dlerror());
    *built = dlsym(library, "hagane_built");
    if (is_of(*built, found)) return HAGANE_OK; /* the library stays: threads may be in its kernels until the end */
    dlclose(library);
    if (library == last) break; /* by two paths: this is the file that lies there now */
    last = library;
    strcpy(path + before, "./");
  }
  return fail(NULL, HAGANE_DAMAGED, "'%s': %s is of another build", folder, found->library);
}

/* Find a build: this program's own, or that of the library in its folder. */
static int32_t find_built(const char *folder, const described *found, const hgb_built **built) {
  *built = linked(found);
  if (is_of(*built, found)) return HAGANE_OK;
  size_t length = strlen(found->library);
  if (length > 2 && strcmp(found->library + length - 2, ".a") == 0) {
    if (*built != NULL)
      return fail(NULL, HAGANE_DAMAGED, "'%s': %s has other weights in this program: link it again", folder,
                  found->library);
    return fail(NULL, HAGANE_NOT_FOUND, "'%s' is a static build of another model: link the program with its %s, of "
                                        "several all between -Wl,--whole-archive and -Wl,--no-whole-archive, or build "
                                        "it with --shared", folder, found->library);
  }
  void *data;
  size_t bytes;
  int32_t code = map_file(folder, found->library, &data, &bytes);
  if (code != HAGANE_OK) return code;
  int whole = has_sum(data, bytes, found->library_sum);
  munmap(data, bytes);
  if (!whole)
    return fail(NULL, HAGANE_DAMAGED, "'%s': %s is damaged, or of another build", folder, found->library);
  return load_built(folder, found, built);
}

static int32_t make_model(const hgb_built *built, const hagane_options *options, const char *weights,
                          hagane_model **model) {
  if (built->format != PLAN_FORMAT) return fail(NULL, HAGANE_VERSION, "the library is of another version");
  const hagane_options *before = hgb_enter(options);
  hagane_model *made = calloc(1, sizeof *made);
  int none = 1;
  hgb_model *tables = made == NULL ? NULL : read_plan(built, &none);
  if (tables == NULL) free(made);
  hgb_enter(before);
  if (tables == NULL && !none) return fail(NULL, HAGANE_DAMAGED, "the plan in the library is damaged");
  if (tables == NULL) return fail(NULL, HAGANE_MEMORY, "there is no memory for a model");
  made->tables = tables;
  made->options = *options;
  made->threads = options->threads > 0 ? options->threads : usable_cores();
  if (made->threads > MAX_THREADS) made->threads = MAX_THREADS;
  made->weights = weights;
  pthread_mutex_init(&made->lock, NULL);
  *model = made;
  return HAGANE_OK;
}

/* Open the first of the builds for more capable processors beside one; HAGANE_CPU if this processor is none. */
static int32_t open_level(const char *folder, span levels, const hagane_options *options, hagane_model **model) {
  for (const char *at = levels.at; at < levels.end; at++) {
    if (*at != '"') continue;
    const char *from = ++at;
    while (at < levels.end && *at != '"') at++;
    char name[64], path[4096];
    size_t length = (size_t)(at - from);
    if (length >= sizeof name) return fail(NULL, HAGANE_DAMAGED, "%s: manifest.json is damaged", folder);
    memcpy(name, from, length);
    name[length] = 0;
    if (!is_file_name(name)) return fail(NULL, HAGANE_DAMAGED, "%s: manifest.json is damaged", folder);
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path)
      return fail(NULL, HAGANE_INVALID_ARGUMENT, "the folder's path is too long");
    int32_t code = hagane_open(path, options, model);
    if (code != HAGANE_CPU) return code;
  }
  return HAGANE_CPU;
}

HAGANE_API int32_t hagane_open(const char *folder, const hagane_options *options, hagane_model **model) {
  hagane_options own;
  described found;
  const hgb_built *built;
  void *text, *mapped = NULL;
  size_t bytes;
  if (model == NULL) return fail(NULL, HAGANE_INVALID_ARGUMENT, "hagane_open: model is NULL");
  *model = NULL;
  if (folder == NULL) return fail(NULL, HAGANE_INVALID_ARGUMENT, "hagane_open: folder is NULL");
  int32_t code = read_options(options, &own);
  if (code == HAGANE_OK) code = map_file(folder, "manifest.json", &text, &bytes);
  if (code != HAGANE_OK) return code;
  span manifest = {text, (const char *)text + bytes}, levels;
  code = read_manifest(manifest, folder, &found);
  if (code == HAGANE_OK && find_key(manifest, "levels", &levels) && *levels.at == '[') {
    int32_t better = open_level(folder, levels, options, model);
    if (better != HAGANE_CPU) {
      munmap(text, bytes);
      return better;
    }
  }
  munmap(text, bytes);
  if (code == HAGANE_OK) code = find_built(folder, &found, &built);
  if (code != HAGANE_OK) return code;
  const char *weights = built->weights;
  bytes = 0;
  if (weights == NULL) {
    code = map_file(folder, found.weights, &mapped, &bytes);
    if (code != HAGANE_OK) return code;
    weights = mapped;
    if (bytes != (size_t)built->weight_bytes || !has_sum(weights, bytes, found.weights_sum))
      code = fail(NULL, HAGANE_DAMAGED, "'%s': %s is damaged, or of another build", folder, found.weights);
  }
  if (code == HAGANE_OK) code = make_model(built, &own, weights, model);
  if (code != HAGANE_OK) {
    if (mapped != NULL) munmap(mapped, bytes);
    return code;
  }
  (*model)->mapped = mapped, (*model)->mapped_bytes = bytes;
  char opened[256];
  snprintf(opened, sizeof opened, "hagane: a model is open, built for %s", found.target);
  tell(*model, 1, opened);
  return HAGANE_OK;
}

HAGANE_API int32_t hagane_open_memory(const void *manifest, size_t manifest_bytes, const void *weights,
                                      size_t weight_bytes, const hagane_options *options, hagane_model **model) {
  hagane_options own;
  described found;
  if (model == NULL) return fail(NULL, HAGANE_INVALID_ARGUMENT, "hagane_open_memory: model is NULL");
  *model = NULL;
  if (manifest == NULL) return fail(NULL, HAGANE_INVALID_ARGUMENT, "hagane_open_memory: manifest is NULL");
  int32_t code = read_options(options, &own);
  if (code != HAGANE_OK) return code;
  code = read_manifest((span){manifest, (const char *)manifest + manifest_bytes}, "memory", &found);
  if (code != HAGANE_OK) return code;
  const hgb_built *built = linked(&found);
  if (built == NULL)
    return fail(NULL, HAGANE_DAMAGED, "memory: the manifest is of another build than this library; hagane_open "
                                      "opens folders of any");
  const char *content = built->weights;
  void *copied = NULL;
  if (content == NULL) {
    if (weights == NULL) return fail(NULL, HAGANE_INVALID_ARGUMENT, "hagane_open_memory: weights is NULL");
    if (weight_bytes != (size_t)built->weight_bytes || !has_sum(weights, weight_bytes, found.weights_sum))
      return fail(NULL, HAGANE_DAMAGED, "memory: the weights are damaged, or of another build");
    content = weights;
    if ((uintptr_t)weights % 64 != 0) {
      const hagane_options *before = hgb_enter(&own);
      int none = posix_memalign(&copied, 64, weight_bytes);
      hgb_enter(before);
      if (none)
        return fail(NULL, HAGANE_MEMORY, "there is no memory for %zu bytes of weights", weight_bytes);
      content = memcpy(copied, weights, weight_bytes);
    }
  }
  code = make_model(built, &own, content, model);
  if (code == HAGANE_OK)
    (*model)->copied = copied;
  else
    free(copied);
  return code;
}

HAGANE_API void hagane_close(hagane_model *model) {
  if (model == NULL) return;
  hagane_options own = model->options;
  const hagane_options *before = hgb_enter(&own);
  for (run_context *next; model->idle != NULL; model->idle = next) {
    next = model->idle->next;
    close_run(model, model->idle);
  }
  for (given *next; model->given != NULL; model->given = next) {
    next = model->given->next;
    give_back(model, model->given);
  }
  for (given *next; model->kept != NULL; model->kept = next) {
    next = model->kept->next;
    give_back(model, model->kept);
  }
  if (model->mapped != NULL) munmap(model->mapped, model->mapped_bytes);
  free(model->copied);
  pthread_mutex_destroy(&model->lock);
  free(model->tables);
  free(model);
  hgb_enter(before);
}

/* ---- describing ---- */

static int32_t describe(const hgb_argument *arguments, int32_t n, size_t index, const char *kind, hagane_info *info) {
  if (info == NULL) return fail(NULL, HAGANE_INVALID_ARGUMENT, "hagane_%s: info is NULL", kind);
  if (index >= (size_t)n)
    return fail(NULL, HAGANE_INVALID_ARGUMENT, "hagane_%s: expected an index below %d, got %zu", kind, (int)n, index);
  const hgb_argument *from = &arguments[index];
  memset(info, 0, sizeof *info);
  info->name = from->name, info->type = from->type, info->rank = from->rank;
  memcpy(info->least, from->least, sizeof(int64_t) * (size_t)from->rank);
  memcpy(info->most, from->most, sizeof(int64_t) * (size_t)from->rank);
  return HAGANE_OK;
}

HAGANE_API size_t hagane_inputs(const hagane_model *model) {
  return model == NULL ? 0 : (size_t)model->tables->n_inputs;
}

HAGANE_API size_t hagane_outputs(const hagane_model *model) {
  return model == NULL ? 0 : (size_t)model->tables->n_outputs;
}

HAGANE_API int32_t hagane_input(const hagane_model *model, size_t index, hagane_info *info) {
  if (model == NULL) return fail(NULL, HAGANE_INVALID_ARGUMENT, "hagane_input: model is NULL");
  return describe(model->tables->inputs, model->tables->n_inputs, index, "input", info);
}

HAGANE_API int32_t hagane_output(const hagane_model *model, size_t index, hagane_info *info) {
  if (model == NULL) return fail(NULL, HAGANE_INVALID_ARGUMENT, "hagane_output: model is NULL");
  return describe(model->tables->outputs, model->tables->n_outputs, index, "output", info);
}

/* ---- running ---- */

static int32_t index_of(const hgb_argument *arguments, int32_t n, const char *name) {
  for (int32_t i = 0; i < n; i++)
    if (strcmp(arguments[i].name, name) == 0) return i;
  return -1;
}

/* Say that there is no such name, and which there are. */
static int32_t fail_name(const hagane_model *model, const char *kind, const char *name,
                         const hgb_argument *arguments, int32_t n) {
  char known[512] = "";
  size_t length = 0;
  for (int32_t i = 0; i < n && length + 4 < sizeof known; i++)
    length += (size_t)snprintf(known + length, sizeof known - length, "%s%s", i == 0 ? "" : ", ", arguments[i].name);
  if (length >= sizeof known) cut_text(known, sizeof known - 1);
  return fail(model, HAGANE_INVALID_ARGUMENT, "there is no %s '%s'; the model has: %s", kind,
              name == NULL ? "(NULL)" : name, known);
}

static int32_t check_input(const hagane_model *model, const hgb_argument *want, const hagane_tensor *given_input,
                           slot_value *value) {
  if (given_input->type != want->type)
    return fail(model, HAGANE_TYPE, "input '%s': expected %s, got %s (%d)", want->name, type_name(want->type),
                type_name(given_input->type), (int)given_input->type);
  if (given_input->rank != want->rank)
    return fail(model, HAGANE_SHAPE, "input '%s': expected %d axes, got %d", want->name, (int)want->rank,
                (int)given_input->rank);
  value->rank = want->rank;
  for (int32_t axis = 0; axis < want->rank; axis++) {
    int64_t size = value->shape[axis] = given_input->shape[axis];
    if (size >= want->least[axis] && size <= want->most[axis]) continue;
    if (want->least[axis] == want->most[axis])
      return fail(model, HAGANE_SHAPE, "input '%s': axis %d is %lld, expected %lld", want->name, (int)axis,
                  (long long)size, (long long)want->least[axis]);
    return fail(model, HAGANE_SHAPE, "input '%s': axis %d is %lld, expected %lld to %lld; build the model with "
                                     "another --shape", want->name, (int)axis, (long long)size,
                (long long)want->least[axis], (long long)want->most[axis]);
  }
  value->bytes = bytes_of_shape(want->type, want->rank, value->shape);
  value->data = given_input->data;
  if (value->bytes < 0 || given_input->bytes < (size_t)value->bytes)
    return fail(model, HAGANE_MEMORY, "input '%s': expected memory of %lld bytes, got %zu", want->name,
                (long long)value->bytes, given_input->bytes);
  if (value->data == NULL && value->bytes > 0)
    return fail(model, HAGANE_INVALID_ARGUMENT, "input '%s': data is NULL", want->name);
  return HAGANE_OK;
}

/* Find the program for the shapes of the inputs. */
static const hgb_program *program_for(const hgb_model *tables, const slot_value *values) {
  for (int32_t p = 0; p < tables->n_programs; p++) {
    const hgb_program *program = &tables->programs[p];
    int fits = 1;
    for (int32_t i = 0, at = 0; fits && i < tables->n_inputs; at += values[i++].rank)
      for (int32_t axis = 0; fits && axis < values[i].rank; axis++)
        fits = values[i].shape[axis] >= program->least[at + axis] && values[i].shape[axis] <= program->most[at + axis];
    if (fits) return program;
  }
  return NULL;
}

static int32_t check_outputs(const hagane_model *model, const hgb_program *program, hagane_tensor *outputs,
                             size_t count, wanted *wants) {
  const hgb_model *tables = model->tables;
  for (size_t i = 0; i < count; i++) {
    const char *name = outputs[i].name;
    int32_t which = name == NULL ? -1 : index_of(tables->outputs, tables->n_outputs, name);
    if (which < 0) return fail_name(model, "output", name, tables->outputs, tables->n_outputs);
    int32_t type = tables->outputs[which].type;
    if (outputs[i].data != NULL && outputs[i].type != 0 && outputs[i].type != type)
      return fail(model, HAGANE_TYPE, "output '%s': expected memory for %s, got %s (%d)", name, type_name(type),
                  type_name(outputs[i].type), (int)outputs[i].type);
    wants[i] = (wanted){&outputs[i], program->outputs[which], 0, 0};
    outputs[i].type = type;
  }
  return HAGANE_OK;
}

static int32_t run_model(hagane_model *model, const hagane_tensor *inputs, size_t input_count,
                         hagane_tensor *outputs, size_t output_count) {
  const hgb_model *tables = model->tables;
  size_t n_inputs = (size_t)tables->n_inputs;
  if (output_count > 65536) return fail(model, HAGANE_INVALID_ARGUMENT, "hagane_run: too many outputs");
  /* Few inputs and outputs lie on the stack: memory would take longer than a small model's run. */
  size_t n = n_inputs + 1, n_wants = output_count + 1;
  size_t bytes = n * (sizeof(slot_value) + sizeof(char *) + 1) + n_wants * sizeof(wanted);
  _Alignas(64) char few[4096];
  char *room = bytes <= sizeof few ? memset(few, 0, bytes) : calloc(1, bytes);
  if (room == NULL) return fail(model, HAGANE_MEMORY, "there is no memory left");
  slot_value *values = (void *)room;
  wanted *wants = (void *)(values + n);
  char **copies = (void *)(wants + n_wants), *found = (char *)(copies + n);
  int32_t code = HAGANE_OK;
  run_context *run = NULL;
  for (size_t i = 0; i < input_count && code == HAGANE_OK; i++) {
    const char *name = inputs[i].name;
    int32_t which = name == NULL ? -1 : index_of(tables->inputs, tables->n_inputs, name);
    if (which < 0)
      code = fail_name(model, "input", name, tables->inputs, tables->n_inputs);
    else if (found[which]++)
      code = fail(model, HAGANE_INVALID_ARGUMENT, "input '%s' is given twice", name);
    else
      code = check_input(model, &tables->inputs[which], &inputs[i], &values[which]);
  }
  for (size_t i = 0; i < n_inputs && code == HAGANE_OK; i++) {
    if (!found[i]) code = fail(model, HAGANE_INVALID_ARGUMENT, "input '%s' is missing", tables->inputs[i].name);
    if (code != HAGANE_OK || (uintptr_t)values[i].data % (size_t)bytes_of_type(tables->inputs[i].type) == 0) continue;
    /* Kernels read elements at multiples of their size. */
    copies[i] = take(model, (size_t)values[i].bytes);
    if (copies[i] == NULL)
      code = fail(model, HAGANE_MEMORY, "there is no memory for input '%s'", tables->inputs[i].name);
    else
      values[i].data = memcpy(copies[i], values[i].data, (size_t)values[i].bytes);
  }
  const hgb_program *program = code == HAGANE_OK ? program_for(tables, values) : NULL;
  if (code == HAGANE_OK && program == NULL)
    code = fail(model, HAGANE_SHAPE, "the model was not built for these sizes of its inputs together");
  if (code == HAGANE_OK) code = check_outputs(model, program, outputs, output_count, wants);
  if (code == HAGANE_OK && (run = take_run(model, program, values)) == NULL)
    code = fail(model, HAGANE_MEMORY, "there is no memory for a run");
  if (run != NULL) {
    memcpy(run->slots, values, sizeof *values * n_inputs);
    code = run_program(model, run, wants, output_count);
    leave_run(model, run);
  }
  for (size_t i = 0; i < n_inputs; i++) give_back(model, copies[i]);
  if (room != few) free(room);
  return code;
}

HAGANE_API int32_t hagane_run(hagane_model *model, const hagane_tensor *inputs, size_t input_count,
                              hagane_tensor *outputs, size_t output_count) {
  if (model == NULL || (inputs == NULL && input_count > 0) || (outputs == NULL && output_count > 0))
    return fail(model, HAGANE_INVALID_ARGUMENT, "hagane_run: model, inputs or outputs is NULL");
  const hagane_options *before = hgb_enter(&model->options);
  int32_t code = run_model(model, inputs, input_count, outputs, output_count);
  hgb_enter(before);
  return code;
}

/* The rest uses the C library's memory. */
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef posix_memalign
