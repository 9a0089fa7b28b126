/* ---- where values of a part lie, for the sizes of a run ----
 *
 * Largest first, each at the lowest offset that is free in its time: the greedy scheme by size of "Efficient
 * Memory Management for Deep Neural Net Inference" (Pisarchyk and Lee, 2020). A value whose border must hold
 * one byte either has a place to itself and others of the same border, or shares it with any and is set in every
 * run, as long as all of that together takes little time.
 */

#define PLACE_ALIGNMENT 64
#define PLACE_SLACK 64

typedef struct {
  int32_t buffer, like; /* like: the first value of the same border, or none */
  int64_t size;
} hg_planned;

/* Room for a plan: lists of values; the price of each border; the places of another plan. */
typedef struct {
  hg_planned *all, *items, *spare, *placed;
  double *price;
  char *set; /* of values: whether their borders are set in every run */
  int64_t *offsets;
} hg_plan;

static int is_before(const hg_planned *a, const hg_planned *b, const hgt_buffer *buffers) {
  if (a->size != b->size) return a->size > b->size;
  int32_t first = buffers[a->buffer].first - buffers[b->buffer].first;
  return first != 0 ? first < 0 : a->buffer < b->buffer;
}

static void sort_planned(hg_planned *items, hg_planned *spare, int64_t n, const hgt_buffer *buffers) {
  if (n < 2) return;
  int64_t half = n / 2, i = 0, j = half, k = 0;
  sort_planned(items, spare, half, buffers);
  sort_planned(items + half, spare, n - half, buffers);
  while (i < half || j < n)
    spare[k++] = j >= n || (i < half && !is_before(&items[j], &items[i], buffers)) ? items[i++] : items[j++];
  memcpy(items, spare, sizeof *items * (size_t)n);
}

static int lives_with(const hgt_buffer *a, const hgt_buffer *b) {
  return a->last >= b->first && a->first <= b->last;
}

/* Sizes in bytes, filled up; below 0 if one is. */
static int64_t place_bytes(int64_t bytes) {
  if (bytes < 0 || bytes > INT64_MAX / 4) return -1;
  return (bytes + PLACE_SLACK + PLACE_ALIGNMENT - 1) / PLACE_ALIGNMENT * PLACE_ALIGNMENT;
}

/* A border in numbers. */
static hg_border border_of(const int64_t *numbers, const hgt_border *from) {
  hg_border made = {.planes = numbers[from->planes], .step = numbers[from->step], .plane = numbers[from->plane],
                    .first = numbers[from->first],   .run = numbers[from->run],   .fill = numbers[from->fill],
                    .axes = from->axes};
  for (int32_t axis = 0; axis < from->axes; axis++)
    made.counts[axis] = numbers[from->counts[axis]], made.strides[axis] = numbers[from->strides[axis]];
  return made;
}

static int64_t runs_of(const hg_border *border) {
  int64_t runs = border->planes;
  for (int64_t axis = 0; axis < border->axes; axis++) runs *= border->counts[axis];
  return runs;
}

static int64_t border_bytes(const hg_border *border) {
  return border->planes * border->plane - runs_of(border) * border->run;
}

/* Whether all runs of pixels lie in their plane, one behind the other: where nobody knew the sizes, the order
 * of axes may be another than it was taken for. */
static int is_regular(const hg_border *border) {
  int64_t span = border->run;
  for (int64_t axis = border->axes - 1; axis >= 0; axis--) {
    if (border->counts[axis] <= 0) continue;
    if (border->counts[axis] > 1 && border->strides[axis] < span) return 0;
    span += (border->counts[axis] - 1) * border->strides[axis];
  }
  return border->first >= 0 && border->run >= 0 && border->first + span <= border->plane;
}

/* Whether the borders of two values are equal in number. */
static int same_borders(const hg_context *context, const hgt_buffer *a, const hgt_buffer *b) {
  const int64_t *numbers = context->numbers;
  if (a->borders != b->borders) return 0;
  if (a->border == b->border) return 1;
  for (int32_t i = 0; i < a->borders; i++) {
    const hgt_border *one = &context->part->borders[a->border + i], *two = &context->part->borders[b->border + i];
    if (numbers[one->start] != numbers[two->start] || one->axes != two->axes) return 0;
    hg_border left = border_of(numbers, one), right = border_of(numbers, two);
    if (memcmp(&left, &right, sizeof left) != 0) return 0;
  }
  return 1;
}

static int has_border(const hg_context *context, const hgt_buffer *buffer) {
  for (int32_t i = 0; i < buffer->borders; i++) {
    hg_border border = border_of(context->numbers, &context->part->borders[buffer->border + i]);
    if (border.planes != 0 && border_bytes(&border) != 0) return 1;
  }
  return 0;
}

/* Place all values; those of borders that are not set in every run after the rest. Returns the bytes of
 * all, -1 if they are beyond any memory. */
static int64_t place_values(const hgt_buffer *buffers, const hg_plan *plan, int64_t n, int64_t *offsets,
                            const char *set) {
  int64_t n_shared = 0, n_placed = 0, n_own = 0, top = 0;
  hg_planned *items = plan->items, *placed = plan->placed;
  for (int64_t i = 0; i < n; i++)
    if (plan->all[i].like == HGT_NONE || set[plan->all[i].like]) items[n_shared++] = plan->all[i];
  sort_planned(items, plan->spare, n_shared, buffers);
  for (int64_t i = 0; i < n_shared; i++) {
    const hgt_buffer *buffer = &buffers[items[i].buffer];
    int64_t at = 0;
    for (int64_t k = 0; k < n_placed; k++) {
      if (!lives_with(&buffers[placed[k].buffer], buffer)) continue;
      int64_t other = offsets[placed[k].buffer];
      if (other - at >= items[i].size) break;
      if (at < other + placed[k].size) at = other + placed[k].size;
    }
    offsets[items[i].buffer] = at;
    int64_t k = n_placed++;
    for (; k > 0 && offsets[placed[k - 1].buffer] > at; k--) placed[k] = placed[k - 1];
    placed[k] = items[i];
    if (top < at + items[i].size) top = at + items[i].size;
    if (top > INT64_MAX / 4) return -1;
  }
  for (int64_t i = 0; i < n; i++) {
    const hg_planned *own = &plan->all[i];
    if (own->like == HGT_NONE || set[own->like]) continue;
    int64_t k = 0;
    for (; k < n_own; k++)
      if (items[k].like == own->like && items[k].size == own->size &&
          buffers[items[k].buffer].last < buffers[own->buffer].first)
        break;
    offsets[own->buffer] = k < n_own ? offsets[items[k].buffer] : top;
    if (k == n_own) top += own->size, n_own++;
    items[k] = *own;
    if (top > INT64_MAX / 4) return -1;
  }
  return top;
}

/* Choose borders that are set in every run for the memory that this frees, as far as time allows. */
static int choose_borders(const hg_context *context, const hg_plan *plan, int64_t n, double clearing) {
  const hgt_part *part = context->part;
  double budget = clearing * context->whole;
  int chosen = 0;
  for (int64_t i = 0; i < n; i++) {
    int32_t like = plan->all[i].like;
    if (like == HGT_NONE) continue;
    if (like == plan->all[i].buffer) plan->price[like] = 0;
    const hgt_buffer *buffer = &part->buffers[plan->all[i].buffer];
    double often = context->often[buffer->first], once = 0;
    /* Loops and branches have no tasks that could set anything. */
    if (!part->kernels[buffer->first].coded) often = 1e300;
    for (int32_t k = 0; k < buffer->borders; k++) {
      hg_border border = border_of(context->numbers, &part->borders[buffer->border + k]);
      if (border.planes > 0 && !is_regular(&border)) {
        often = 1e300, once += 1;
        continue;
      }
      once += NS_OF_BYTE * (double)border_bytes(&border);
      once += NS_OF_STRETCH * (double)(runs_of(&border) + border.planes);
    }
    plan->price[like] += once * often;
  }
  for (;;) { /* cheapest first, for their size */
    const hg_planned *best = NULL;
    for (int64_t i = 0; i < n; i++) {
      const hg_planned *at = &plan->all[i];
      if (at->like != at->buffer || plan->set[at->like] != 0) continue;
      if (best == NULL || plan->price[at->like] / (double)at->size < plan->price[best->like] / (double)best->size)
        best = at;
    }
    if (best == NULL) break;
    plan->set[best->like] = 2; /* seen */
    if (plan->price[best->like] > budget) continue;
    budget -= plan->price[best->like];
    plan->set[best->like] = 1, chosen = 1;
  }
  for (int64_t i = 0; i < n; i++)
    if (plan->all[i].like == plan->all[i].buffer && plan->set[plan->all[i].like] == 2)
      plan->set[plan->all[i].like] = 0;
  return chosen;
}

/* Whether a border that is to be set in every run stays as it is set once: all at its place have the same. */
static int border_stays(const hg_plan *plan, int64_t n, const int64_t *offsets, const hg_planned *own) {
  int64_t start = offsets[own->buffer], end = start + own->size;
  for (int64_t i = 0; i < n; i++) {
    const hg_planned *other = &plan->all[i];
    if (offsets[other->buffer] >= end || start >= offsets[other->buffer] + other->size) continue;
    if (other->like != own->like || offsets[other->buffer] != start) return 0;
  }
  return 1;
}

static int64_t plan_bytes(const hgt_part *part) {
  return (int64_t)(4 * sizeof(hg_planned) + sizeof(double) + sizeof(int64_t) + 8) * (part->n_buffers + 1);
}

/* Find the offset of each buffer, -1 of one that lies elsewhere, the fate of its border, and the bytes
 * of all; -1 if sizes make no sense. `clearing`: the share of time that clearing borders may take. */
static int64_t place_all(hg_context *context, double clearing) {
  const hgt_part *part = context->part;
  const hgt_buffer *buffers = part->buffers;
  int64_t n = 0, room = part->n_buffers + 1;
  hg_plan plan = {.all = context->plan};
  plan.items = plan.all + room, plan.spare = plan.items + room, plan.placed = plan.spare + room;
  plan.price = (double *)(plan.placed + room);
  plan.offsets = (int64_t *)(plan.price + room);
  plan.set = (char *)(plan.offsets + room);
  int bordered = 0;
  for (int32_t i = 0; i < part->n_buffers; i++) {
    context->offsets[i] = -1, context->borders[i] = HG_NO_BORDER, plan.set[i] = 0;
    if (buffers[i].kind != HGT_ARENA && buffers[i].kind != HGT_BORDERED) continue;
    int64_t size = place_bytes(context->numbers[buffers[i].bytes]);
    if (size < 0) return -1;
    plan.all[n] = (hg_planned){i, HGT_NONE, size};
    if (buffers[i].kind == HGT_BORDERED && has_border(context, &buffers[i])) {
      plan.all[n].like = i, bordered = 1;
      for (int64_t k = 0; k < n; k++)
        if (plan.all[k].like == plan.all[k].buffer && same_borders(context, &buffers[plan.all[k].buffer], &buffers[i])) {
          plan.all[n].like = plan.all[k].like;
          break;
        }
    }
    n++;
  }
  int64_t bytes = place_values(buffers, &plan, n, context->offsets, plan.set);
  if (bytes < 0 || !bordered) return bytes;
  for (int64_t i = 0; i < n; i++)
    if (plan.all[i].like != HGT_NONE) context->borders[plan.all[i].buffer] = HG_SET_ONCE;
  if (!choose_borders(context, &plan, n, clearing)) return bytes;
  int64_t other = place_values(buffers, &plan, n, plan.offsets, plan.set);
  if (other < 0 || other >= bytes) return bytes;
  for (int64_t i = 0; i < n; i++) context->offsets[plan.all[i].buffer] = plan.offsets[plan.all[i].buffer];
  for (int64_t i = 0; i < n; i++)
    if (plan.all[i].like != HGT_NONE && plan.set[plan.all[i].like] &&
        !border_stays(&plan, n, context->offsets, &plan.all[i]))
      context->borders[plan.all[i].buffer] = HG_SET_IN_RUNS;
  return other;
}
