/* The interface of builds: models that are open, messages, memory of the caller's. */
#include "hagane.h"
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#define MESSAGE 1024
/* Each thread's last message. Thread-local variables would need the dynamic linker by name. */
static pthread_key_t message_key;
static pthread_once_t message_once = PTHREAD_ONCE_INIT;
static int has_message_key;

static void make_message_key(void) { has_message_key = pthread_key_create(&message_key, free) == 0; }

/* This thread's memory for a message, which outlives models; null if there is none. */
static char *message_room(int wanted) {
  pthread_once(&message_once, make_message_key);
  if (!has_message_key) return NULL;
  char *room = pthread_getspecific(message_key);
  if (room == NULL && wanted && (room = (calloc)(1, MESSAGE)) != NULL) pthread_setspecific(message_key, room);
  return room;
}

typedef struct part_context part_context;
typedef struct run_context run_context;
typedef struct given given;

struct hagane_model {
  hgb_model *tables;
  hagane_options options;
  int32_t threads;
  const char *weights;
  void *mapped, *copied; /* the memory around `weights`, if it is ours */
  size_t mapped_bytes;
  pthread_mutex_t lock;
  run_context *idle;
  int32_t n_idle;
  given *given; /* outputs that the caller has not released */
  given *kept;  /* memory of large ones that it has */
  size_t kept_bytes;
};

static void tell(const hagane_model *model, int32_t level, const char *text) {
  if (model != NULL && model->options.log != NULL)
    model->options.log(model->options.context, level, text);
}

/* Cut a text of UTF-8 that did not fit before the character that is not whole. */
static void cut_text(char *text, size_t length) {
  size_t at = length;
  while (at > 0 && length - at < 4 && ((unsigned char)text[at - 1] & 0xc0) == 0x80) at--;
  if (at == 0 || (unsigned char)text[at - 1] < 0xc0) return;
  unsigned char first = (unsigned char)text[at - 1];
  size_t whole = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (length - (at - 1) < whole) text[at - 1] = 0;
}

/* Note the message, and return the code. */
__attribute__((format(printf, 3, 4))) static int32_t fail(const hagane_model *model, int32_t code,
                                                          const char *format, ...) {
  char text[MESSAGE], *room = message_room(1);
  va_list arguments;
  va_start(arguments, format);
  if (vsnprintf(text, sizeof text, format, arguments) >= (int)sizeof text) cut_text(text, sizeof text - 1);
  va_end(arguments);
  if (room != NULL) memcpy(room, text, sizeof text);
  tell(model, 3, text);
  return code;
}

HAGANE_API const char *hagane_message(void) {
  const char *room = message_room(0);
  return room == NULL ? "" : room;
}
HAGANE_API const char *hagane_version(void) { return HAGANE_VERSION_TEXT; }

/* ---- memory ---- */

/* Memory at a multiple of 64, which may be of no bytes; null if there is none. */
static void *take(const hagane_model *model, size_t bytes) {
  void *memory = NULL;
  bytes = bytes == 0 ? 1 : bytes;
  if (model->options.allocate != NULL)
    memory = model->options.allocate(model->options.context, bytes, 64);
  else if (posix_memalign(&memory, 64, bytes) != 0)
    memory = NULL;
  return memory;
}

static void give_back(const hagane_model *model, void *memory) {
  if (memory == NULL) return;
  if (model->options.release != NULL)
    model->options.release(model->options.context, memory);
  else
    free(memory);
}

/* Zeroed memory for values of a run: on large pages, unless the caller allocates. */
static void *take_values(const hagane_model *model, size_t bytes) {
  if (model->options.allocate == NULL) return hg_allocate(bytes);
  void *memory = take(model, bytes);
  return memory == NULL ? NULL : memset(memory, 0, bytes);
}

static void give_back_values(const hagane_model *model, void *memory, size_t bytes) {
  if (model->options.allocate == NULL)
    hg_release(memory, bytes);
  else
    give_back(model, memory);
}

/* An output that was allocated; its elements follow. */
struct given {
  given *next, *before;
  size_t room; /* bytes of elements, those of large outputs in few sizes */
  char pad[40];
};
_Static_assert(sizeof(given) == 64, "elements begin at a multiple of 64");

/* Fresh memory costs a page fault every 4 KiB: that of outputs from LEAST_KEPT bytes on is used again once they
 * are released, unless the caller allocates. */
#define LEAST_KEPT ((size_t)64 << 10)
#define MOST_KEPT ((size_t)64 << 20)

static size_t room_for(const hagane_model *model, size_t bytes) {
  if (bytes < LEAST_KEPT || model->options.allocate != NULL) return bytes;
  size_t step = (size_t)1 << (59 - __builtin_clzll(bytes)); /* at most a sixteenth of it */
  step = step < LEAST_KEPT ? LEAST_KEPT : step;
  return (bytes + step - 1) / step * step;
}

/* Memory of this size that was an output's; null if there is none. Under the lock. */
static given *take_kept(hagane_model *model, size_t room) {
  for (given **at = &model->kept; *at != NULL; at = &(*at)->next)
    if ((*at)->room == room) {
      given *head = *at;
      *at = head->next;
      model->kept_bytes -= room;
      return head;
    }
  return NULL;
}

static void *give(hagane_model *model, size_t bytes) {
  if (bytes > (size_t)PTRDIFF_MAX / 2) return NULL;
  size_t room = room_for(model, bytes);
  pthread_mutex_lock(&model->lock);
  given *head = take_kept(model, room);
  pthread_mutex_unlock(&model->lock);
  if (head == NULL) head = take(model, room + sizeof *head);
  if (head == NULL) return NULL;
  head->room = room;
  pthread_mutex_lock(&model->lock);
  head->before = NULL, head->next = model->given;
  if (head->next != NULL) head->next->before = head;
  model->given = head;
  pthread_mutex_unlock(&model->lock);
  return head + 1;
}

/* Release an output if it is one that was allocated; other memory is not looked at. */
static int take_back(hagane_model *model, void *data) {
  pthread_mutex_lock(&model->lock);
  given *head = model->given;
  while (head != NULL && (void *)(head + 1) != data) head = head->next;
  if (head != NULL) {
    if (head->next != NULL) head->next->before = head->before;
    *(head->before != NULL ? &head->before->next : &model->given) = head->next;
  }
  int found = head != NULL;
  if (found && model->options.allocate == NULL && head->room >= LEAST_KEPT &&
      model->kept_bytes + head->room <= MOST_KEPT) {
    head->next = model->kept;
    model->kept = head;
    model->kept_bytes += head->room;
    head = NULL;
  }
  pthread_mutex_unlock(&model->lock);
  give_back(model, head);
  return found;
}

HAGANE_API void hagane_release(hagane_model *model, hagane_tensor *outputs, size_t count) {
  if (model == NULL || outputs == NULL) return;
  for (size_t i = 0; i < count; i++)
    if (outputs[i].data != NULL && take_back(model, outputs[i].data)) outputs[i].data = NULL;
}

/* ---- element types ---- */

/* Of ONNX's TensorProto.DataType; null for types that no tensor here has. */
static const struct {
  const char *name;
  int32_t bytes;
} element_types[] = {{NULL, 0},      {"float32", 4}, {"uint8", 1},  {"int8", 1},   {"uint16", 2}, {"int16", 2},
                     {"int32", 4},   {"int64", 8},   {NULL, 0},     {"bool", 1},   {"float16", 2}, {"float64", 8},
                     {"uint32", 4},  {"uint64", 8},  {NULL, 0},     {NULL, 0},     {"bfloat16", 2}};

static const char *type_name(int32_t type) {
  int known = type > 0 && type < (int32_t)(sizeof element_types / sizeof *element_types);
  return known && element_types[type].name != NULL ? element_types[type].name : "unknown";
}

static int64_t bytes_of_type(int32_t type) { return element_types[type].bytes; }
