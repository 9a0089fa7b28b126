/* Where values of a part lie, for the sizes of a run: as `native/run/memory.py` places them.
 *
 * Largest first, each at the lowest offset that is free in its time. A value whose border must hold one
 * byte has a place to itself and others of the same border, unless the border is set in every run.
 */

#define PLACE_ALIGNMENT 64
#define PLACE_SLACK 64

typedef struct {
  int32_t buffer;
  int64_t size;
} planned;

static int by_size(const void *left, const void *right, const hgb_buffer *buffers) {
  const planned *a = left, *b = right;
  if (a->size != b->size) return a->size > b->size ? -1 : 1;
  int32_t first = buffers[a->buffer].first - buffers[b->buffer].first;
  return first != 0 ? first : a->buffer - b->buffer;
}

static void sort_planned(planned *items, planned *spare, int32_t n, const hgb_buffer *buffers) {
  if (n < 2) return;
  int32_t half = n / 2, i = 0, j = half, k = 0;
  sort_planned(items, spare, half, buffers);
  sort_planned(items + half, spare, n - half, buffers);
  while (i < half || j < n)
    spare[k++] = j >= n || (i < half && by_size(&items[i], &items[j], buffers) <= 0) ? items[i++] : items[j++];
  memcpy(items, spare, sizeof *items * (size_t)n);
}

static int lives_with(const hgb_buffer *a, const hgb_buffer *b) {
  return a->last >= b->first && a->first <= b->last;
}

/* Sizes in bytes, filled up; below 0 if one is. */
static int64_t place_bytes(int64_t bytes) {
  if (bytes < 0 || bytes > INT64_MAX / 4) return -1;
  return (bytes + PLACE_SLACK + PLACE_ALIGNMENT - 1) / PLACE_ALIGNMENT * PLACE_ALIGNMENT;
}

/* Find the offset of each buffer, -1 of those that lie elsewhere, and return the bytes of all; -1 if
 * sizes make no sense, -2 if there is no memory for the plan. */
static int64_t plan_places(const hgb_part *part, const int64_t *numbers, int64_t *offsets) {
  const hgb_buffer *buffers = part->buffers;
  int32_t n = 0, n_placed = 0;
  planned *items = malloc(sizeof *items * 3 * (size_t)(part->n_buffers + 1));
  if (items == NULL) return -2;
  planned *spare = items + part->n_buffers + 1, *placed = spare + part->n_buffers + 1;
  int64_t top = 0;
  for (int32_t i = 0; i < part->n_buffers; i++) {
    offsets[i] = -1;
    if (buffers[i].kind != HGB_ARENA && buffers[i].kind != HGB_BORDERED) continue;
    int64_t size = place_bytes(numbers[buffers[i].bytes]);
    if (size < 0) return free(items), -1;
    if (buffers[i].borders == 0 || buffers[i].cleared) items[n++] = (planned){i, size};
  }
  sort_planned(items, spare, n, buffers);
  for (int32_t i = 0; i < n; i++) {
    const hgb_buffer *buffer = &buffers[items[i].buffer];
    int64_t at = 0;
    for (int32_t k = 0; k < n_placed; k++) {
      if (!lives_with(&buffers[placed[k].buffer], buffer)) continue;
      int64_t other = offsets[placed[k].buffer];
      if (other - at >= items[i].size) break;
      if (at < other + placed[k].size) at = other + placed[k].size;
    }
    offsets[items[i].buffer] = at;
    int32_t k = n_placed++;
    for (; k > 0 && offsets[placed[k - 1].buffer] > at; k--) placed[k] = placed[k - 1];
    placed[k] = items[i];
    if (top < at + items[i].size) top = at + items[i].size;
    if (top > INT64_MAX / 4) return free(items), -1;
  }
  /* Those of borders that are not cleared follow: `last` of the ones that have their place now. */
  int32_t n_own = 0;
  for (int32_t first = 0; first < part->n_kernels; first++) {
    for (int32_t i = 0; i < part->n_buffers; i++) {
      const hgb_buffer *buffer = &buffers[i];
      if (buffer->kind != HGB_BORDERED || buffer->borders == 0 || buffer->cleared || buffer->first != first)
        continue;
      int64_t size = place_bytes(numbers[buffer->bytes]);
      int32_t k = 0;
      for (; k < n_own; k++) {
        const hgb_buffer *other = &buffers[items[k].buffer];
        if (other->border == buffer->border && items[k].size == size && other->last < buffer->first) break;
      }
      offsets[i] = k < n_own ? offsets[items[k].buffer] : top;
      if (k == n_own) top += size, n_own++;
      items[k] = (planned){i, size};
      if (top > INT64_MAX / 4) return free(items), -1;
    }
  }
  free(items);
  return top;
}

/* Whether a value's border stays as it is set once: others at its place have the same one. */
static int border_stays(const hgb_part *part, const int64_t *numbers, const int64_t *offsets, int32_t which) {
  const hgb_buffer *own = &part->buffers[which];
  if (!own->cleared) return 1;
  int64_t end = offsets[which] + place_bytes(numbers[own->bytes]);
  for (int32_t i = 0; i < part->n_buffers; i++) {
    const hgb_buffer *other = &part->buffers[i];
    if (offsets[i] < 0 || (other->borders != 0 && !other->cleared)) continue;
    if (offsets[i] >= end || offsets[which] >= offsets[i] + place_bytes(numbers[other->bytes])) continue;
    if (other->borders == 0 || other->border != own->border || offsets[i] != offsets[which]) return 0;
  }
  return 1;
}
