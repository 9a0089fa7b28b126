/* One model in one process, by a build or by ONNX Runtime: start to first result, runs, peak memory.
 *
 *     ship hagane LIBRARY BUILD FEED RUNS THREADS
 *     ship onnxruntime LIBRARY MODEL FEED RUNS THREADS
 *
 * FEED holds inputs as `ship.py` writes them. Functions of ONNX Runtime are found by their place in its
 * table, which its interface keeps from version to version.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hagane.h"

enum { MOST = 64 };

static hagane_tensor inputs[MOST];
static size_t n_inputs;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

static void stop(const char *what, const char *why) {
  fprintf(stderr, "%s: %s\n", what, why);
  exit(1);
}

static void read_feed(const char *path) {
  FILE *file = fopen(path, "rb");
  int64_t count = 0, head[4];
  if (file == NULL || fread(&count, 8, 1, file) != 1 || count > MOST) stop(path, "no feed");
  for (int64_t i = 0; i < count; i++) {
    hagane_tensor *x = &inputs[n_inputs++];
    if (fread(head, 8, 4, file) != 4) stop(path, "cut off"); /* type, rank, bytes, length of the name */
    char *name = calloc(1, (size_t)head[3] + 1);
    x->type = (int32_t)head[0], x->rank = (int32_t)head[1], x->bytes = (size_t)head[2], x->name = name;
    x->data = aligned_alloc(64, (x->bytes + 64) / 64 * 64);
    if (fread(name, 1, (size_t)head[3], file) != (size_t)head[3] ||
        fread(x->shape, 8, (size_t)x->rank, file) != (size_t)x->rank ||
        fread(x->data, 1, x->bytes, file) != x->bytes)
      stop(path, "cut off");
  }
  fclose(file);
}

static void *need(void *library, const char *name) {
  void *found = library == NULL ? NULL : dlsym(library, name);
  if (found == NULL) stop(name, dlerror());
  return found;
}

/* ---- a build ---- */

static struct {
  hagane_model *model;
  int32_t (*run)(hagane_model *, const hagane_tensor *, size_t, hagane_tensor *, size_t);
  void (*release)(hagane_model *, hagane_tensor *, size_t);
  const char *(*message)(void);
  hagane_tensor outputs[MOST];
  size_t n;
} built;

static void open_build(const char *path, const char *folder, int threads) {
  void *library = dlopen(path, RTLD_NOW);
  int32_t (*open)(const char *, const hagane_options *, hagane_model **) = need(library, "hagane_open");
  size_t (*outputs)(const hagane_model *) = need(library, "hagane_outputs");
  int32_t (*output)(const hagane_model *, size_t, hagane_info *) = need(library, "hagane_output");
  built.run = need(library, "hagane_run");
  built.release = need(library, "hagane_release");
  built.message = need(library, "hagane_message");
  hagane_options options = {.size = sizeof options, .threads = threads};
  if (open(folder, &options, &built.model) != HAGANE_OK) stop(folder, built.message());
  built.n = outputs(built.model);
  for (size_t i = 0; i < built.n; i++) {
    hagane_info info;
    output(built.model, i, &info);
    built.outputs[i].name = info.name;
  }
}

static void run_build(void) {
  if (built.run(built.model, inputs, n_inputs, built.outputs, built.n) != HAGANE_OK)
    stop("run", built.message());
  built.release(built.model, built.outputs, built.n);
}

/* ---- ONNX Runtime ---- */

enum {
  MESSAGE = 2, CREATE_ENV = 3, CREATE_SESSION = 7, RUN = 9, CREATE_OPTIONS = 10, SET_THREADS = 24,
  OUTPUT_COUNT = 31, OUTPUT_NAME = 37, CREATE_TENSOR = 49, CREATE_MEMORY = 69, DEFAULT_ALLOCATOR = 78,
  RELEASE_VALUE = 96
};
typedef void *(*function)();

static struct {
  function *api;
  void *session;
  void *values[MOST], *results[MOST];
  const char *names[MOST], *wanted[MOST];
  size_t n;
} theirs;

static void check(void *status) {
  if (status != NULL) stop("onnxruntime", (const char *)theirs.api[MESSAGE](status));
}

static void open_onnxruntime(const char *path, const char *model, int threads) {
  void *library = dlopen(path, RTLD_NOW), *env, *options, *memory, *allocator;
  struct {
    void *(*api)(uint32_t);
  } *base = ((void *(*)(void))need(library, "OrtGetApiBase"))();
  theirs.api = base->api(16);
  check(theirs.api[CREATE_ENV](3, "ship", &env));
  check(theirs.api[CREATE_OPTIONS](&options));
  check(theirs.api[SET_THREADS](options, threads));
  check(theirs.api[CREATE_SESSION](env, model, options, &theirs.session));
  check(theirs.api[CREATE_MEMORY](1, 0, &memory));
  check(theirs.api[DEFAULT_ALLOCATOR](&allocator));
  for (size_t i = 0; i < n_inputs; i++) {
    hagane_tensor *x = &inputs[i];
    theirs.names[i] = x->name;
    check(theirs.api[CREATE_TENSOR](memory, x->data, x->bytes, x->shape, (size_t)x->rank, x->type,
                                    &theirs.values[i]));
  }
  check(theirs.api[OUTPUT_COUNT](theirs.session, &theirs.n));
  for (size_t i = 0; i < theirs.n; i++)
    check(theirs.api[OUTPUT_NAME](theirs.session, i, allocator, &theirs.wanted[i]));
}

static void run_onnxruntime(void) {
  memset(theirs.results, 0, sizeof theirs.results);
  check(theirs.api[RUN](theirs.session, NULL, theirs.names, theirs.values, n_inputs, theirs.wanted, theirs.n,
                        theirs.results));
  for (size_t i = 0; i < theirs.n; i++) theirs.api[RELEASE_VALUE](theirs.results[i]);
}

static int by_time(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static long peak_kib(void) {
  char line[256];
  long found = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "VmHWM: %ld", &found) == 1) break;
  fclose(file);
  return found;
}

int main(int argc, char **argv) {
  if (argc != 7) stop(argv[0], "expected: hagane|onnxruntime LIBRARY MODEL FEED RUNS THREADS");
  int ours = strcmp(argv[1], "hagane") == 0, runs = atoi(argv[5]), threads = atoi(argv[6]);
  read_feed(argv[4]);
  double begun = now();
  (ours ? open_build : open_onnxruntime)(argv[2], argv[3], threads);
  double opened = now();
  void (*run)(void) = ours ? run_build : run_onnxruntime;
  run();
  double first = now();
  double *times = calloc((size_t)runs + 1, sizeof *times);
  for (int i = 0; i < runs; i++) {
    double start = now();
    run();
    times[i] = now() - start;
  }
  qsort(times, (size_t)runs, sizeof *times, by_time);
  printf("{\"open\": %.4f, \"start\": %.4f, \"run\": %.4f, \"peak\": %ld}\n", opened - begun, first - begun,
         times[runs / 2], peak_kib());
  return 0;
}
