/* Lists that grow, and edges of automata over bytes. */
#ifndef HAGANE_LISTS_H
#define HAGANE_LISTS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Make room for so many elements. Returns 0 without memory. */
static int grow(void **data, int64_t *room, int64_t needed, size_t size)
{
  if (needed <= *room) return 1;
  int64_t more = *room * 2 > needed ? *room * 2 : needed + 16;
  void *made = realloc(*data, (size_t)more * size);
  if (!made) return 0;
  *data = made, *room = more;
  return 1;
}
#define GROW(list, room, needed) grow((void **)&(list), &(room), needed, sizeof *(list))

/* The bytes from `low` to `high` lead to a state. A state has its spans in order, none of them twice. */
typedef struct { int32_t low, high, to; } span_t;

/* A call of a rule: the state after it, the least number of repetitions and the most (-1: no bound). */
typedef struct { int32_t rule, to, low, high; } call_t;

/* The state behind a byte; -1 for none. */
static inline int32_t after_byte(const span_t *spans, int32_t count, int byte)
{
  const span_t *low = spans, *end = spans + count;
  while (end - low > 8) { /* the span is in [low, end) */
    const span_t *middle = low + (end - low) / 2;
    if (middle->low <= byte) low = middle;
    else end = middle;
  }
  for (; low < end; low++)
    if (byte <= low->high) return byte >= low->low ? low->to : -1;
  return -1;
}

#endif
