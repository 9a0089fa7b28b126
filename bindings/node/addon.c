/* Builds for Node, under index.js. Libraries are found when a build is opened. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <node_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AXES 16
typedef struct {
  const char *name;
  int32_t type, rank;
  int64_t shape[AXES];
  void *data;
  size_t bytes;
} tensor;
typedef struct {
  const char *name;
  int32_t type, rank;
  int64_t least[AXES], most[AXES];
} info;

typedef struct {
  void *handle; /* NULL once it is closed */
  size_t running;
  bool closing;
  void (*close)(void *);
  size_t (*count[2])(const void *);
  int32_t (*describe[2])(const void *, size_t, info *);
  int32_t (*run)(void *, const tensor *, size_t, tensor *, size_t);
  void (*release)(void *, tensor *, size_t);
  const char *(*message)(void);
} model;

#define TRY(call)                                                                  \
  do {                                                                             \
    if ((call) != napi_ok) {                                                       \
      bool pending = false;                                                        \
      napi_is_exception_pending(env, &pending);                                    \
      if (!pending) napi_throw_type_error(env, NULL, "hagane: a wrong argument"); \
      return NULL;                                                                 \
    }                                                                              \
  } while (0)

static char *text_of(napi_env env, napi_value value) {
  size_t length;
  if (napi_get_value_string_utf8(env, value, NULL, 0, &length) != napi_ok) return NULL;
  char *text = malloc(length + 1);
  if (text != NULL) napi_get_value_string_utf8(env, value, text, length + 1, &length);
  return text;
}

/* Close a model that was asked to, once nothing runs it; all of this is on Node's own thread. */
static void close_idle(model *own) {
  if (!own->closing || own->running > 0 || own->handle == NULL) return;
  own->close(own->handle);
  own->handle = NULL;
}

static void finish(napi_env env, void *data, void *hint) {
  (void)env, (void)hint;
  model *own = data;
  own->closing = true;
  close_idle(own);
  free(own);
}

/* close(model) */
static napi_value close_build(napi_env env, napi_callback_info call) {
  napi_value arguments[1];
  size_t count = 1;
  model *own;
  TRY(napi_get_cb_info(env, call, &count, arguments, NULL, NULL));
  TRY(napi_get_value_external(env, arguments[0], (void **)&own));
  own->closing = true;
  close_idle(own);
  return NULL;
}

/* open(library, folder, threads): the model */
static napi_value open_build(napi_env env, napi_callback_info call) {
  napi_value arguments[3], result;
  size_t count = 3;
  struct {
    size_t size;
    int32_t threads;
    void *pointers[6];
  } options = {sizeof options, 0, {0}};
  TRY(napi_get_cb_info(env, call, &count, arguments, NULL, NULL));
  TRY(napi_get_value_int32(env, arguments[2], &options.threads));
  char *library = text_of(env, arguments[0]), *folder = text_of(env, arguments[1]);
  model *own = calloc(1, sizeof *own);
  void *code = library == NULL || folder == NULL || own == NULL ? NULL : dlopen(library, RTLD_NOW | RTLD_LOCAL);
  int32_t (*start)(const char *, const void *, void **) = NULL;
  if (code != NULL) {
    *(void **)&start = dlsym(code, "hagane_open");
    *(void **)&own->close = dlsym(code, "hagane_close");
    *(void **)&own->count[0] = dlsym(code, "hagane_inputs");
    *(void **)&own->count[1] = dlsym(code, "hagane_outputs");
    *(void **)&own->describe[0] = dlsym(code, "hagane_input");
    *(void **)&own->describe[1] = dlsym(code, "hagane_output");
    *(void **)&own->run = dlsym(code, "hagane_run");
    *(void **)&own->release = dlsym(code, "hagane_release");
    *(void **)&own->message = dlsym(code, "hagane_message");
  }
  if (start == NULL)
    napi_throw_error(env, "HAGANE", "hagane: the library of the build cannot be loaded");
  else if (start(folder, &options, &own->handle) != 0)
    napi_throw_error(env, "HAGANE", own->message());
  free(library), free(folder);
  if (start == NULL || own->handle == NULL) return free(own), NULL;
  TRY(napi_create_external(env, own, finish, NULL, &result));
  return result;
}

static napi_value numbers(napi_env env, const int64_t *from, int32_t count) {
  napi_value list, item;
  napi_create_array(env, &list);
  for (int32_t i = 0; i < count; i++) {
    napi_create_int64(env, from[i], &item);
    napi_set_element(env, list, (uint32_t)i, item);
  }
  return list;
}

static void set(napi_env env, napi_value object, const char *key, napi_value value) {
  napi_set_named_property(env, object, key, value);
}

/* describe(model, 0 for inputs or 1 for outputs): [{name, type, least, most}] */
static napi_value describe(napi_env env, napi_callback_info call) {
  napi_value arguments[2], list, item, value;
  size_t count = 2;
  model *own;
  uint32_t which;
  TRY(napi_get_cb_info(env, call, &count, arguments, NULL, NULL));
  TRY(napi_get_value_external(env, arguments[0], (void **)&own));
  TRY(napi_get_value_uint32(env, arguments[1], &which));
  TRY(napi_create_array(env, &list));
  for (size_t i = 0; own->handle != NULL && i < own->count[which & 1](own->handle); i++) {
    info found;
    own->describe[which & 1](own->handle, i, &found);
    napi_create_object(env, &item);
    napi_create_string_utf8(env, found.name, NAPI_AUTO_LENGTH, &value);
    set(env, item, "name", value);
    napi_create_int32(env, found.type, &value);
    set(env, item, "type", value);
    set(env, item, "least", numbers(env, found.least, found.rank));
    set(env, item, "most", numbers(env, found.most, found.rank));
    napi_set_element(env, list, (uint32_t)i, item);
  }
  return list;
}

typedef struct {
  model *own;
  napi_ref held; /* the model */
  napi_deferred promise;
  napi_async_work work;
  tensor *inputs, *outputs;
  size_t n_inputs, n_outputs;
  int32_t code;
  char message[1024];
} job;

static void run_job(napi_env env, void *data) {
  (void)env;
  job *own = data;
  own->code = own->own->run(own->own->handle, own->inputs, own->n_inputs, own->outputs, own->n_outputs);
  if (own->code != 0) snprintf(own->message, sizeof own->message, "%s", own->own->message());
}

static void reject(napi_env env, job *own, const char *message) {
  napi_value error, text, kind;
  napi_create_string_utf8(env, message, NAPI_AUTO_LENGTH, &text);
  napi_create_string_utf8(env, "HAGANE", NAPI_AUTO_LENGTH, &kind);
  napi_create_error(env, kind, text, &error);
  napi_reject_deferred(env, own->promise, error);
}

static void free_job(job *own) {
  for (size_t i = 0; own->inputs != NULL && i < own->n_inputs; i++) {
    free((char *)own->inputs[i].name);
    free(own->inputs[i].data);
  }
  free(own->inputs), free(own->outputs), free(own);
}

static void end_job(napi_env env, napi_status status, void *data) {
  job *own = data;
  model *of = own->own;
  napi_value result, item, value;
  bool whole = true;
  if (status != napi_ok || own->code != 0) {
    reject(env, own, own->code != 0 ? own->message : "the run was cancelled");
  } else {
    napi_create_array(env, &result);
    for (size_t i = 0; i < own->n_outputs; i++) {
      const tensor *from = &own->outputs[i];
      void *memory;
      napi_create_object(env, &item);
      napi_create_string_utf8(env, from->name, NAPI_AUTO_LENGTH, &value);
      set(env, item, "name", value);
      napi_create_int32(env, from->type, &value);
      set(env, item, "type", value);
      set(env, item, "shape", numbers(env, from->shape, from->rank));
      if (napi_create_arraybuffer(env, from->bytes, &memory, &value) != napi_ok) {
        napi_value ignored;
        napi_get_and_clear_last_exception(env, &ignored);
        whole = false;
        break;
      }
      if (from->bytes > 0) memcpy(memory, from->data, from->bytes);
      set(env, item, "buffer", value);
      napi_set_element(env, result, (uint32_t)i, item);
    }
    of->release(of->handle, own->outputs, own->n_outputs);
    if (whole)
      napi_resolve_deferred(env, own->promise, result);
    else
      reject(env, own, "there is no memory for an output");
  }
  of->running--;
  close_idle(of);
  napi_delete_reference(env, own->held);
  napi_delete_async_work(env, own->work);
  free_job(own);
}

/* Read {name, type, shape, data: TypedArray}; 0 if it is none. Elements are copied: a program may hand their
 * memory on while the run goes on. */
static int read_input(napi_env env, napi_value item, tensor *into) {
  napi_value value, size;
  uint32_t rank;
  napi_typedarray_type kind;
  size_t length, offset;
  void *data = NULL;
  static const size_t bytes[] = {1, 1, 1, 2, 2, 4, 4, 4, 8, 8, 8};
  if (napi_get_named_property(env, item, "type", &value) != napi_ok) return 0;
  if (napi_get_value_int32(env, value, &into->type) != napi_ok) return 0;
  if (napi_get_named_property(env, item, "shape", &value) != napi_ok) return 0;
  if (napi_get_array_length(env, value, &rank) != napi_ok || rank > AXES) return 0;
  into->rank = (int32_t)rank;
  for (uint32_t i = 0; i < rank; i++)
    if (napi_get_element(env, value, i, &size) != napi_ok ||
        napi_get_value_int64(env, size, &into->shape[i]) != napi_ok)
      return 0;
  if (napi_get_named_property(env, item, "data", &value) != napi_ok) return 0;
  if (napi_get_typedarray_info(env, value, &kind, &length, &data, NULL, &offset) != napi_ok) return 0;
  if ((size_t)kind >= sizeof bytes / sizeof *bytes) return 0;
  into->bytes = length * bytes[kind];
  if (napi_get_named_property(env, item, "name", &value) != napi_ok) return 0;
  if ((into->name = text_of(env, value)) == NULL) return 0;
  if (posix_memalign(&into->data, 64, into->bytes + 1) != 0) into->data = NULL;
  if (into->data != NULL && into->bytes > 0) memcpy(into->data, data, into->bytes);
  if (into->data == NULL) free((char *)into->name);
  return into->data != NULL;
}

/* run(model, [input]): a promise of [{name, type, shape, buffer}] */
static napi_value run(napi_env env, napi_callback_info call) {
  napi_value arguments[2], promise, item, name, both;
  size_t count = 2;
  uint32_t n_inputs;
  model *own;
  TRY(napi_get_cb_info(env, call, &count, arguments, NULL, NULL));
  TRY(napi_get_value_external(env, arguments[0], (void **)&own));
  TRY(napi_get_array_length(env, arguments[1], &n_inputs));
  if (own->closing) return napi_throw_error(env, "HAGANE", "the model is closed"), NULL;
  job *made = calloc(1, sizeof *made);
  if (made == NULL) return napi_throw_error(env, "HAGANE", "there is no memory for a run"), NULL;
  made->own = own;
  made->n_outputs = own->count[1](own->handle);
  made->inputs = calloc((size_t)n_inputs + 1, sizeof(tensor));
  made->outputs = calloc(made->n_outputs + 1, sizeof(tensor));
  if (made->inputs == NULL || made->outputs == NULL) {
    free_job(made);
    return napi_throw_error(env, "HAGANE", "there is no memory for a run"), NULL;
  }
  for (size_t i = 0; i < made->n_outputs; i++) {
    info found;
    own->describe[1](own->handle, i, &found);
    made->outputs[i].name = found.name;
  }
  for (uint32_t i = 0; i < n_inputs; i++) {
    if (napi_get_element(env, arguments[1], i, &item) == napi_ok && read_input(env, item, &made->inputs[i])) {
      made->n_inputs++;
      continue;
    }
    free_job(made);
    napi_throw_type_error(env, NULL, "hagane: an input is {type, shape, data: typed array}");
    return NULL;
  }
  napi_create_array(env, &both); /* lives until the run has ended */
  napi_set_element(env, both, 0, arguments[0]);
  napi_create_reference(env, both, 1, &made->held);
  napi_create_promise(env, &made->promise, &promise);
  napi_create_string_utf8(env, "hagane", NAPI_AUTO_LENGTH, &name);
  napi_create_async_work(env, NULL, name, run_job, end_job, made, &made->work);
  napi_queue_async_work(env, made->work);
  own->running++;
  return promise;
}

NAPI_MODULE_INIT() {
  napi_value function;
  static const struct {
    const char *name;
    napi_callback call;
  } all[] = {{"open", open_build}, {"describe", describe}, {"run", run}, {"close", close_build}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    napi_create_function(env, all[i].name, NAPI_AUTO_LENGTH, all[i].call, NULL, &function);
    napi_set_named_property(env, exports, all[i].name, function);
  }
  return exports;
}
