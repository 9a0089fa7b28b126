/* The caller's allocator in the place of the C library's: for the engine too, whose code follows.
 *
 * Each block begins with a head, which names the function that takes it back. A thread allocates by the options that
 * it has entered; threads of the engine enter those of the program that they go on with.
 */
#define _GNU_SOURCE
#include "hagane.h"
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  void (*release)(void *context, void *memory); /* null: the C library's */
  void *context;
  size_t bytes;
  char pad[40];
} hgb_head;
_Static_assert(sizeof(hgb_head) == 64, "blocks begin at a multiple of 64");

/* Thread-local variables would need the dynamic linker by name. */
static pthread_key_t hgb_entered;
static pthread_once_t hgb_once = PTHREAD_ONCE_INIT;
static int hgb_has_key;
static void hgb_make_key(void) { hgb_has_key = pthread_key_create(&hgb_entered, NULL) == 0; }

/* The options whose allocator this thread uses; null if it is the C library's. */
static const hagane_options *hgb_options(void) {
  pthread_once(&hgb_once, hgb_make_key);
  return hgb_has_key ? pthread_getspecific(hgb_entered) : NULL;
}

/* Have this thread allocate by some options, and return those before. */
static const hagane_options *hgb_enter(const hagane_options *options) {
  const hagane_options *before = hgb_options(), *own = options;
  if (own != NULL && own->allocate == NULL) own = NULL;
  if (own != before && hgb_has_key) pthread_setspecific(hgb_entered, own);
  return before;
}

static void *hgb_malloc(size_t bytes) {
  const hagane_options *own = hgb_options();
  void *memory = NULL;
  if (bytes > (size_t)PTRDIFF_MAX - 128) return NULL;
  if (own != NULL)
    memory = own->allocate(own->context, bytes + sizeof(hgb_head), 64);
  else if (posix_memalign(&memory, 64, bytes + sizeof(hgb_head)) != 0)
    memory = NULL;
  if (memory == NULL) return NULL;
  hgb_head *head = memory;
  head->release = own == NULL ? NULL : own->release;
  head->context = own == NULL ? NULL : own->context;
  head->bytes = bytes;
  return head + 1;
}

static void hgb_free(void *memory) {
  if (memory == NULL) return;
  hgb_head *head = (hgb_head *)memory - 1;
  if (head->release != NULL)
    head->release(head->context, head);
  else
    free(head);
}

static void *hgb_calloc(size_t count, size_t each) {
  size_t bytes;
  if (__builtin_mul_overflow(count, each, &bytes)) return NULL;
  void *memory = hgb_malloc(bytes);
  return memory == NULL ? NULL : memset(memory, 0, bytes);
}

static void *hgb_realloc(void *memory, size_t bytes) {
  void *fresh = hgb_malloc(bytes);
  if (fresh == NULL || memory == NULL) return fresh;
  size_t had = ((hgb_head *)memory - 1)->bytes;
  memcpy(fresh, memory, had < bytes ? had : bytes);
  hgb_free(memory);
  return fresh;
}

/* Blocks lie at multiples of 64, which is all that anything here asks for. */
static int hgb_memalign(void **memory, size_t alignment, size_t bytes) {
  *memory = alignment <= 64 ? hgb_malloc(bytes) : NULL;
  return *memory == NULL;
}

#define malloc(bytes) hgb_malloc(bytes)
#define calloc(count, each) hgb_calloc(count, each)
#define realloc(memory, bytes) hgb_realloc(memory, bytes)
#define free(memory) hgb_free(memory)
#define posix_memalign(memory, alignment, bytes) hgb_memalign(memory, alignment, bytes)
/* As the engine asks: the options that this thread has entered, entering, and whether all blocks are plain ones. */
#define HG_MEMORY() hgb_options()
#define HG_ENTER(memory) ((void)hgb_enter(memory))
#define HG_PLAIN() (hgb_options() != NULL)
