/* Calls of oneDNN 3 from kernels; the declarations follow its documented C interface.
 *
 * The library is loaded by Python; its functions, a primitive and the descriptors of the values that the
 * primitive reads and writes come as tables of addresses. All state that a call changes is made
 * for the call, so that any thread may make it.
 */
#ifndef HAGANE_ONEDNN_H
#define HAGANE_ONEDNN_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
  int argument;
  void *memory;
} hg_onednn_argument;

typedef struct {
  int (*execute)(const void *primitive, void *stream, int count, const hg_onednn_argument *);
  int (*create_memory)(void **memory, const void *description, void *engine, void *data);
  int (*destroy_memory)(void *memory);
  int (*create_stream)(void **stream, void *engine, unsigned flags);
  int (*destroy_stream)(void *stream);
  int (*threads)(void); /* of OpenMP, on the calling thread */
  void (*set_threads)(int);
  void *engine;
} hg_onednn;

/* A primitive, and the descriptors of its source, weights, bias, result and scratchpad. */
typedef struct {
  void *primitive;
  void *described[5];
} hg_onednn_primitive;

/* Run a primitive on the calling thread alone; data of no bytes are null. Returns a status. */
static __attribute__((unused)) int hg_onednn_run(const hg_onednn *library,
                                                 const hg_onednn_primitive *primitive,
                                                 const void *source, const void *weights,
                                                 const void *bias, void *result,
                                                 void *scratchpad) {
  static const int names[5] = {1, 33, 41, 17, 80}; /* DNNL_ARG_SRC, _WEIGHTS, _BIAS, _DST, … */
  const void *data[5] = {source, weights, bias, result, scratchpad};
  hg_onednn_argument arguments[5];
  void *stream = NULL;
  int count = 0, status = library->create_stream(&stream, library->engine, 1);
  if (status != 0) return status;
  for (int i = 0; i < 5 && status == 0; i++) {
    if (data[i] == NULL) continue;
    arguments[count].argument = names[i];
    status = library->create_memory(&arguments[count].memory, primitive->described[i],
                                    library->engine, (void *)data[i]);
    if (status == 0) count++;
  }
  if (status == 0) {
    /* Threads are those of our own pool. The caller's setting is not ours to change. */
    int before = library->threads();
    if (before != 1) library->set_threads(1);
    status = library->execute(primitive->primitive, stream, count, arguments);
    if (before != 1) library->set_threads(before);
  }
  for (int i = 0; i < count; i++) library->destroy_memory(arguments[i].memory);
  library->destroy_stream(stream);
  return status;
}

#endif
