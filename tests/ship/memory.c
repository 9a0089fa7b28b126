/* All memory comes from the caller, and a call that gets none says so: each allocation fails once.
 *
 *     memory BUILD THREADS
 */
#define _POSIX_C_SOURCE 200809L
#include <hagane.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  long allocated, released, fails_at;
  pthread_mutex_t lock;
} seen;

static void *allocate(void *context, size_t bytes, size_t alignment) {
  seen *all = context;
  void *memory = NULL;
  pthread_mutex_lock(&all->lock);
  int fails = all->fails_at > 0 && --all->fails_at == 0;
  if (!fails && posix_memalign(&memory, alignment, bytes) == 0) all->allocated++;
  pthread_mutex_unlock(&all->lock);
  return memory == NULL ? NULL : memset(memory, 0x5a, bytes); /* nobody may count on zeros */
}

static void release(void *context, void *memory) {
  seen *all = context;
  pthread_mutex_lock(&all->lock);
  all->released++;
  pthread_mutex_unlock(&all->lock);
  free(memory);
}

#define STOP(what) return fprintf(stderr, "%s, allocation %ld: %s\n", what, n, hagane_message()), 1

int main(int count, char **arguments) {
  if (count != 3) return 2;
  hagane_tensor in[8], out[8];
  float expected = 0;
  int32_t code = HAGANE_MEMORY;
  long n = 0, refused = 0;
  for (; code != HAGANE_OK; n++) { /* 0: none fails */
    seen all = {0, 0, n, PTHREAD_MUTEX_INITIALIZER};
    hagane_options options = {.size = sizeof options, .threads = atoi(arguments[2]), .context = &all};
    options.allocate = allocate, options.release = release;
    hagane_model *model;
    memset(in, 0, sizeof in), memset(out, 0, sizeof out);
    code = hagane_open(arguments[1], &options, &model);
    if (code == HAGANE_OK) {
      size_t n_in = hagane_inputs(model), n_out = hagane_outputs(model);
      for (size_t i = 0; i < n_in; i++) {
        hagane_info info;
        if (hagane_input(model, i, &info) != HAGANE_OK) STOP("input");
        in[i].name = info.name, in[i].type = info.type, in[i].rank = info.rank;
        in[i].bytes = info.type == 7 ? 8 : 4;
        for (int32_t axis = 0; axis < info.rank; axis++) in[i].bytes *= (size_t)(in[i].shape[axis] = info.most[axis]);
        in[i].data = calloc(1, in[i].bytes);
        for (size_t k = 0; info.type == 1 && k < in[i].bytes / 4; k++) ((float *)in[i].data)[k] = (float)(k % 7) / 8;
        for (size_t k = 0; info.type == 7 && k < in[i].bytes / 8; k++) ((int64_t *)in[i].data)[k] = 9;
      }
      for (size_t i = 0; i < n_out; i++) {
        hagane_info info;
        if (hagane_output(model, i, &info) != HAGANE_OK) STOP("output");
        out[i].name = info.name;
      }
      code = hagane_run(model, in, n_in, out, n_out);
      if (code == HAGANE_OK) {
        float found = ((float *)out[0].data)[0];
        if (n == 0) expected = found;
        else if (found != expected) STOP("another result");
      } else { /* the same handle serves the next run */
        if (out[0].data != NULL) STOP("an output after an error");
        if (hagane_run(model, in, n_in, out, n_out) != HAGANE_OK) STOP("the next run");
        if (((float *)out[0].data)[0] != expected) STOP("another result of the next run");
      }
      for (size_t i = 0; i < n_in; i++) free(in[i].data);
    }
    if (code != HAGANE_OK && code != HAGANE_MEMORY) STOP("another code");
    refused += code == HAGANE_MEMORY;
    hagane_close(model);
    if (all.allocated != all.released) STOP("memory that nobody released");
    if (n == 0) code = HAGANE_MEMORY;
    else if (all.fails_at == 0) code = HAGANE_MEMORY; /* it did fail, and may have done without */
  }
  printf("%ld\n", refused);
  return 0;
}
