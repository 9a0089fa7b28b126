/* Models that are made node by node: the fields of ONNX's messages (onnx.proto3), as they are added. */
#define MENOH_NO_WARNINGS
#include "menoh.h"
#include <spawn.h>
#include <sys/wait.h>

typedef struct {
  char *data;
  size_t size, room;
  int failed; /* there was no memory */
} bytes;

static void put(bytes *into, const void *data, size_t size) {
  if (into->size + size > into->room) {
    size_t room = 2 * (into->size + size) + 64;
    char *fresh = into->failed ? NULL : realloc(into->data, room);
    if (fresh == NULL) {
      into->failed = 1;
      return;
    }
    into->data = fresh, into->room = room;
  }
  if (size > 0) memcpy(into->data + into->size, data, size);
  into->size += size;
}

static void put_number(bytes *into, uint64_t number) {
  do {
    unsigned char byte = (unsigned char)((number & 127) | (number > 127 ? 128 : 0));
    put(into, &byte, 1);
    number >>= 7;
  } while (number != 0);
}

static void put_integer(bytes *into, int field, int64_t number) {
  put_number(into, (uint64_t)field << 3);
  put_number(into, (uint64_t)number);
}

static void put_bytes(bytes *into, int field, const void *data, size_t size) {
  put_number(into, (uint64_t)field << 3 | 2);
  put_number(into, size);
  put(into, data, size);
}

static void put_text(bytes *into, int field, const char *text) { put_bytes(into, field, text, strlen(text)); }

static void put_message(bytes *into, int field, bytes *message) {
  if (message->failed) into->failed = 1;
  put_bytes(into, field, message->data, message->size);
  free(message->data);
  memset(message, 0, sizeof *message);
}

/* Menoh's element types in ONNX's numbers, and their bytes. */
static const int32_t menoh_types[][2] = {{1, 4}, {10, 2}, {11, 8}, {3, 1}, {5, 2}, {6, 4}, {7, 8}};
#define MENOH_TYPES 7

static int is_menoh_type(menoh_dtype dtype) { return dtype >= 0 && dtype < MENOH_TYPES; }

static menoh_dtype menoh_type_of(int32_t type) {
  for (menoh_dtype i = 0; i < MENOH_TYPES; i++)
    if (menoh_types[i][0] == type) return i;
  return -1;
}

/* Names that may come once. */
typedef struct {
  char **names;
  size_t count;
} name_set;

static int has_name(const name_set *set, const char *name) {
  for (size_t i = 0; i < set->count; i++)
    if (strcmp(set->names[i], name) == 0) return 1;
  return 0;
}

static int add_name(name_set *set, const char *name) {
  char **names = realloc(set->names, sizeof *names * (set->count + 1));
  if (names == NULL) return 0;
  set->names = names;
  names[set->count] = strdup(name);
  return names[set->count] != NULL && ++set->count;
}

static void clear_names(name_set *set) {
  for (size_t i = 0; i < set->count; i++) free(set->names[i]);
  free(set->names);
  memset(set, 0, sizeof *set);
}

struct menoh_model_data {
  hagane_model *model; /* of a build that is open; null until one is */
  bytes onnx;          /* a model from memory */
  int made;            /* node by node */
  bytes nodes, node, parameters;
  int n_nodes, flattens; /* flattens: the first input of the last node may have any number of axes */
  name_set parameter_names, attribute_names, read, written;
  int32_t references;
  pthread_mutex_t lock;
};

/* A message with a type and sizes: ValueInfoProto. */
static void put_value(bytes *into, int field, const char *name, int32_t type, int32_t rank, const int64_t *dims) {
  bytes value = {0}, info = {0}, tensor = {0}, shape = {0}, dim = {0};
  put_text(&value, 1, name);
  if (type != 0) {
    put_integer(&tensor, 1, type);
    for (int32_t i = 0; i < rank; i++) {
      put_integer(&dim, 1, dims[i]);
      put_message(&shape, 1, &dim);
    }
    put_message(&tensor, 2, &shape);
    put_message(&info, 1, &tensor);
    put_message(&value, 2, &info);
  }
  put_message(into, field, &value);
}

/* Put a node before the last one: its input as a matrix, which Menoh's Gemm makes of it. */
static void put_flatten(menoh_model_data_handle data, const char *input, const char *output) {
  bytes node = {0};
  put_text(&node, 1, input);
  put_text(&node, 2, output);
  put_text(&node, 4, "Flatten");
  put_message(&data->nodes, 1, &node);
}

/* Finish the last node: NodeProto in GraphProto. */
static void end_node(menoh_model_data_handle data) {
  if (data->n_nodes > 0) put_message(&data->nodes, 1, &data->node);
  clear_names(&data->attribute_names);
}

/* The whole as ModelProto. */
static void put_model(menoh_model_data_handle data, const hagane_tensor *inputs, size_t n_inputs,
                      const name_set *outputs, bytes *model) {
  bytes graph = {0}, opset = {0}, last = {0};
  put(&graph, data->nodes.data, data->nodes.size);
  if (data->n_nodes > 0) {
    put(&last, data->node.data, data->node.size);
    put_message(&graph, 1, &last);
  }
  put_text(&graph, 2, "menoh");
  put(&graph, data->parameters.data, data->parameters.size);
  for (size_t i = 0; i < n_inputs; i++)
    if (!has_name(&data->parameter_names, inputs[i].name))
      put_value(&graph, 11, inputs[i].name, inputs[i].type, inputs[i].rank, inputs[i].shape);
  for (size_t i = 0; i < outputs->count; i++) put_value(&graph, 12, outputs->names[i], 0, 0, NULL);
  put_integer(model, 1, 4);
  put_message(model, 7, &graph);
  put_text(&opset, 1, "");
  put_integer(&opset, 2, MENOH_SUPPORTED_ONNX_OPSET_VERSION);
  put_message(model, 8, &opset);
  if (data->nodes.failed || data->node.failed || data->parameters.failed) model->failed = 1;
}

/* ---- compiling by the command ---- */

static void remove_folder(const char *path) {
  DIR *folder = opendir(path);
  char inner[4096 + 300];
  for (struct dirent *item; folder != NULL && (item = readdir(folder)) != NULL;) {
    if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0) continue;
    snprintf(inner, sizeof inner, "%s/%s", path, item->d_name);
    if (unlink(inner) != 0) remove_folder(inner);
  }
  if (folder != NULL) closedir(folder);
  rmdir(path);
}

static int write_file(const char *path, const bytes *content) {
  FILE *file = fopen(path, "wb");
  if (file == NULL) return 0;
  int whole = fwrite(content->data, 1, content->size, file) == content->size;
  return fclose(file) == 0 && whole;
}

extern char **environ;

/* Run `hagane build`; its last words become the message. */
static menoh_error_code call_hagane(const char *model, const char *build, char *const *shapes, size_t n_shapes,
                                    const char *log) {
  char *arguments[6 + 2 * 64] = {"hagane", "build", (char *)model, "-o", (char *)build};
  size_t n = 5;
  for (size_t i = 0; i < n_shapes && i < 60; i++) arguments[n++] = "--shape", arguments[n++] = shapes[i];
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child;
  int started = posix_spawnp(&child, "hagane", &actions, NULL, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = -1;
  if (started == 0)
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (started != 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 127)) {
    fail(NULL, HAGANE_INTERNAL, "menoh backend error: a graph that is made in memory is compiled by the command "
                                "hagane, which is not on PATH: install hagane, or open a build of a file");
    return menoh_error_code_backend_error;
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return menoh_error_code_success;
  char text[900] = "";
  FILE *file = fopen(log, "rb");
  size_t length = file == NULL ? 0 : fread(text, 1, sizeof text - 1, file);
  if (file != NULL) fclose(file);
  while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' ')) length--;
  text[length] = 0;
  fail(NULL, HAGANE_INTERNAL, "menoh backend error: %s", text);
  return strstr(text, "cannot be built") != NULL || strstr(text, "does not have") != NULL
             ? menoh_error_code_unsupported_operator
             : menoh_error_code_backend_error;
}

/* Compile a model of memory for the sizes of its inputs, and open it. */
static menoh_error_code compile_memory(menoh_model_data_handle data, const hagane_tensor *inputs, size_t n_inputs,
                                       const name_set *outputs) {
  char folder[4096], path[4200], build[4200], log[4200];
  const char *base = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/menoh-XXXXXX", base != NULL && strlen(base) < 3000 ? base : "/tmp");
  if (mkdtemp(folder) == NULL) {
    fail(NULL, HAGANE_INTERNAL, "menoh backend error: no folder for temporary files: %s", strerror(errno));
    return menoh_error_code_backend_error;
  }
  snprintf(path, sizeof path, "%s/model.onnx", folder);
  snprintf(build, sizeof build, "%s/model.hagane", folder);
  snprintf(log, sizeof log, "%s/log", folder);
  bytes model = {0};
  if (data->made)
    put_model(data, inputs, n_inputs, outputs, &model);
  else
    put(&model, data->onnx.data, data->onnx.size);
  char *shapes[60] = {0};
  size_t n_shapes = 0;
  menoh_error_code code = menoh_error_code_success;
  if (model.failed || !write_file(path, &model)) {
    fail(NULL, HAGANE_INTERNAL, "menoh backend error: '%s' cannot be written", path);
    code = menoh_error_code_backend_error;
  }
  free(model.data);
  for (size_t i = 0; i < n_inputs && n_shapes < 60 && code == menoh_error_code_success; i++) {
    if (has_name(&data->parameter_names, inputs[i].name)) continue; /* a given parameter is a constant */
    size_t room = strlen(inputs[i].name) + 2 + 24 * HAGANE_AXES, at;
    char *text = shapes[n_shapes] = malloc(room);
    if (text == NULL) break;
    n_shapes++;
    at = (size_t)snprintf(text, room, "%s=", inputs[i].name);
    for (int32_t axis = 0; axis < inputs[i].rank; axis++)
      at += (size_t)snprintf(text + at, room - at, "%s%lld", axis == 0 ? "" : ",",
                             (long long)inputs[i].shape[axis]);
  }
  if (code == menoh_error_code_success) code = call_hagane(path, build, shapes, n_shapes, log);
  for (size_t i = 0; i < n_shapes; i++) free(shapes[i]);
  hagane_model *opened = NULL;
  if (code == menoh_error_code_success && hagane_open(build, NULL, &opened) != HAGANE_OK)
    code = menoh_error_code_backend_error;
  remove_folder(folder); /* open builds stay mapped */
  if (code == menoh_error_code_success) {
    hagane_close(data->model);
    data->model = opened;
  }
  return code;
}
