/* The C interface, on the model of `any_batch` in models.py, built for n = 1 to 8. */
#define _POSIX_C_SOURCE 200809L
#include <hagane.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(what)                                                                              \
  do {                                                                                            \
    if (!(what)) {                                                                                \
      fprintf(stderr, "line %d: %s; the last message is: %s\n", __LINE__, #what, hagane_message()); \
      exit(1);                                                                                    \
    }                                                                                             \
  } while (0)
#define SAYS(text) EXPECT(strstr(hagane_message(), text) != NULL)

static float data[8 * 33];

static hagane_tensor input(int64_t n) {
  hagane_tensor tensor = {"x", 1, 2, {n, 33}, data, sizeof data};
  return tensor;
}

static void ordinary(hagane_model *model, float *expected) {
  hagane_info info;
  EXPECT(hagane_inputs(model) == 1 && hagane_outputs(model) == 1);
  EXPECT(hagane_input(model, 0, &info) == HAGANE_OK);
  EXPECT(strcmp(info.name, "x") == 0 && info.type == 1 && info.rank == 2);
  EXPECT(info.least[0] == 1 && info.most[0] == 8 && info.least[1] == 33 && info.most[1] == 33);
  EXPECT(hagane_output(model, 0, &info) == HAGANE_OK);
  EXPECT(strcmp(info.name, "y") == 0 && info.rank == 2);
  EXPECT(info.least[0] == 2 && info.most[0] == 16 && info.most[1] == 17);
  EXPECT(hagane_input(model, 1, &info) == HAGANE_INVALID_ARGUMENT);
  hagane_tensor x = input(8), y = {.name = "y"};
  EXPECT(hagane_run(model, &x, 1, &y, 1) == HAGANE_OK);
  EXPECT(y.type == 1 && y.rank == 2 && y.shape[0] == 16 && y.shape[1] == 17 && y.bytes == 16 * 17 * 4);
  memcpy(expected, y.data, y.bytes);
  hagane_release(model, &y, 1);
  EXPECT(y.data == NULL);
  float own[16 * 17 + 1];
  own[16 * 17] = 7;
  y.data = own, y.bytes = sizeof own;
  EXPECT(hagane_run(model, &x, 1, &y, 1) == HAGANE_OK);
  EXPECT(y.data == own && y.bytes == 16 * 17 * 4 && memcmp(own, expected, y.bytes) == 0 && own[16 * 17] == 7);
  hagane_release(model, &y, 1); /* is the caller's */
  EXPECT(y.data == own);
  /* An output at an address that is no multiple of its elements' size, and one that overlaps the input. */
  char *bytes = malloc(16 * 17 * 4 + 1);
  y.data = bytes + 1, y.bytes = 16 * 17 * 4;
  EXPECT(hagane_run(model, &x, 1, &y, 1) == HAGANE_OK && memcmp(bytes + 1, expected, y.bytes) == 0);
  free(bytes);
  float *both = malloc(sizeof own + sizeof data);
  memcpy(both, data, sizeof data);
  x.data = both, y.data = both, y.bytes = sizeof own;
  EXPECT(hagane_run(model, &x, 1, &y, 1) == HAGANE_OK && memcmp(both, expected, y.bytes) == 0);
  free(both);
}

/* A message that is too long ends with a whole character. */
static void cut_off(hagane_model *model) {
  char name[2000];
  for (size_t lead = 0; lead < 7; lead++) {
    size_t at = lead;
    memset(name, 'x', lead);
    for (; at + 8 < sizeof name; at += 7) memcpy(name + at, "\xe6\x95\xb0\xf0\x9f\x98\x80", 8);
    hagane_tensor x = input(1);
    x.name = name;
    EXPECT(hagane_run(model, &x, 1, NULL, 0) == HAGANE_INVALID_ARGUMENT);
    const char *end = hagane_message() + strlen(hagane_message());
    EXPECT(end - hagane_message() > 1000);
    EXPECT(memcmp(end - 3, "\xe6\x95\xb0", 3) == 0 || memcmp(end - 4, "\xf0\x9f\x98\x80", 4) == 0);
  }
}

static void mistakes(hagane_model *model) {
  cut_off(model);
  hagane_tensor x = input(9), y = {.name = "y"}, both[2];
  EXPECT(hagane_run(model, &x, 1, &y, 1) == HAGANE_SHAPE);
  SAYS("input 'x': axis 0 is 9, expected 1 to 8");
  EXPECT(y.data == NULL);
  x = input(0);
  EXPECT(hagane_run(model, &x, 1, &y, 1) == HAGANE_SHAPE);
  x = input(2), x.shape[1] = 32;
  EXPECT(hagane_run(model, &x, 1, &y, 1) == HAGANE_SHAPE);
  SAYS("axis 1 is 32, expected 33");
  x = input(2), x.rank = 3;
  EXPECT(hagane_run(model, &x, 1, &y, 1) == HAGANE_SHAPE);
  x = input(2), x.type = 11;
  EXPECT(hagane_run(model, &x, 1, &y, 1) == HAGANE_TYPE);
  SAYS("input 'x': expected float32, got float64");
  x = input(2), x.bytes = 2 * 33 * 4 - 1;
  EXPECT(hagane_run(model, &x, 1, &y, 1) == HAGANE_MEMORY);
  x = input(2), x.name = "z";
  EXPECT(hagane_run(model, &x, 1, &y, 1) == HAGANE_INVALID_ARGUMENT);
  SAYS("no input 'z'; the model has: x");
  EXPECT(hagane_run(model, NULL, 0, &y, 1) == HAGANE_INVALID_ARGUMENT);
  SAYS("input 'x' is missing");
  both[0] = both[1] = input(2);
  EXPECT(hagane_run(model, both, 2, &y, 1) == HAGANE_INVALID_ARGUMENT);
  SAYS("twice");
  x = input(2), y.name = "w";
  EXPECT(hagane_run(model, &x, 1, &y, 1) == HAGANE_INVALID_ARGUMENT);
  SAYS("no output 'w'");
  float small[4 * 17] = {3};
  y.name = "y", y.data = small, y.bytes = sizeof small - 4, y.type = 1;
  EXPECT(hagane_run(model, &x, 1, &y, 1) == HAGANE_MEMORY);
  SAYS("output 'y': expected memory of 272 bytes, got 268");
  EXPECT(small[0] == 3);
  y.bytes = sizeof small, y.type = 7;
  EXPECT(hagane_run(model, &x, 1, &y, 1) == HAGANE_TYPE);
  EXPECT(hagane_run(NULL, &x, 1, &y, 1) == HAGANE_INVALID_ARGUMENT);
  EXPECT(hagane_run(model, &x, 1, NULL, 0) == HAGANE_OK);
  hagane_model *none = model;
  EXPECT(hagane_open("/nowhere", NULL, &none) == HAGANE_NOT_FOUND && none == NULL);
  SAYS("/nowhere/manifest.json");
  EXPECT(hagane_open(NULL, NULL, &none) == HAGANE_INVALID_ARGUMENT);
  hagane_close(NULL);
  hagane_release(NULL, NULL, 0);
}

typedef struct {
  int64_t allocated, released, logged, spread;
  pthread_mutex_t lock;
} seen;

static void *allocate(void *context, size_t bytes, size_t alignment) {
  seen *all = context;
  void *memory = NULL;
  pthread_mutex_lock(&all->lock);
  all->allocated++;
  pthread_mutex_unlock(&all->lock);
  return posix_memalign(&memory, alignment, bytes) == 0 ? memory : NULL;
}

static void release(void *context, void *memory) {
  seen *all = context;
  pthread_mutex_lock(&all->lock);
  all->released++;
  pthread_mutex_unlock(&all->lock);
  free(memory);
}

static void log_text(void *context, int32_t level, const char *text) {
  if (level >= 0 && text != NULL) ((seen *)context)->logged++;
}

static void one_by_one(void *context, void (*task)(void *, int32_t), void *argument, int32_t tasks) {
  ((seen *)context)->spread++;
  for (int32_t i = tasks; i-- > 0;) task(argument, i);
}

static void options(const char *folder, const float *expected) {
  seen all = {0, 0, 0, 0, PTHREAD_MUTEX_INITIALIZER};
  volatile int32_t cancel = 0;
  hagane_options chosen = {sizeof chosen, 4, &all, allocate, release, log_text, one_by_one, &cancel};
  hagane_model *model;
  EXPECT(hagane_open(folder, &chosen, &model) == HAGANE_OK);
  EXPECT(all.logged > 0);
  hagane_tensor x = input(8), y = {.name = "y"};
  EXPECT(hagane_run(model, &x, 1, &y, 1) == HAGANE_OK);
  EXPECT(memcmp(y.data, expected, y.bytes) == 0);
  EXPECT(all.allocated > 0);
  cancel = 1;
  hagane_tensor other = {.name = "y"};
  EXPECT(hagane_run(model, &x, 1, &other, 1) == HAGANE_CANCELLED && other.data == NULL);
  cancel = 0;
  EXPECT(hagane_run(model, &x, 1, &other, 1) == HAGANE_OK);
  EXPECT(memcmp(other.data, expected, other.bytes) == 0);
  hagane_close(model); /* releases the outputs too */
  EXPECT(all.allocated == all.released);
  chosen.release = NULL;
  EXPECT(hagane_open(folder, &chosen, &model) == HAGANE_INVALID_ARGUMENT);
}

typedef struct {
  hagane_model *model;
  const float *expected;
  int64_t n;
} job;

static void *work(void *argument) {
  const job *own = argument;
  for (int i = 0; i < 200; i++) {
    hagane_tensor x = input(own->n), y = {.name = "y"};
    EXPECT(hagane_run(own->model, &x, 1, &y, 1) == HAGANE_OK);
    if (own->n == 8) EXPECT(memcmp(y.data, own->expected, y.bytes) == 0);
    hagane_release(own->model, &y, 1);
    x.shape[0] = 100;
    EXPECT(hagane_run(own->model, &x, 1, &y, 1) == HAGANE_SHAPE);
    SAYS("100");
  }
  return NULL;
}

int main(int count, char **arguments) {
  EXPECT(count == 2 && strcmp(hagane_version(), HAGANE_VERSION_TEXT) == 0);
  for (size_t i = 0; i < sizeof data / sizeof *data; i++) data[i] = (float)(i * 37 % 101) / 50 - 1;
  hagane_model *model;
  float expected[16 * 17];
  EXPECT(hagane_open(arguments[1], NULL, &model) == HAGANE_OK);
  ordinary(model, expected);
  mistakes(model);
  options(arguments[1], expected);
  pthread_t threads[6];
  job jobs[6];
  for (int i = 0; i < 6; i++) {
    jobs[i] = (job){model, expected, i < 3 ? 8 : i};
    EXPECT(pthread_create(&threads[i], NULL, work, &jobs[i]) == 0);
  }
  for (int i = 0; i < 6; i++) pthread_join(threads[i], NULL);
  hagane_close(model);
  puts("fine");
  return 0;
}
