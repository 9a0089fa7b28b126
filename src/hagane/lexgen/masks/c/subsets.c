/* Rules as edges of several kinds, made deterministic: sets of states, numbered as they are met. */

typedef struct { int32_t from, low, high, to; } edge_t;
typedef struct { int32_t from, to; } free_t;
typedef struct { int32_t from, rule, low, high, to; } emitted_t;

/* Edges of one kind by the state that they leave: `order` lists them, those of s from first[s] to first[s + 1]. */
typedef struct { int32_t *first, *order; } by_state_t;

typedef struct {
  uint8_t *accepts, *nullable, *begins; /* the latter two of all rules */
  int32_t *first_span, *first_call, *first_state; /* by state, by state, by unit: -1 if no text matches */
  span_t *spans;
  call_t *calls;
  int32_t states, units;
  int64_t n_spans, n_calls, spans_room, calls_room, accepts_room, first_span_room, first_call_room;
  /* sets of states */
  int32_t *pool, *first, *table;
  int64_t used, pool_room, first_room;
  int32_t table_size;
  int32_t *stack, *stamp, *set, clock;
} block_t;

void hagane_block_end(block_t *b)
{
  free(b->accepts), free(b->nullable), free(b->begins), free(b->first_span), free(b->first_call);
  free(b->first_state), free(b->spans), free(b->calls), free(b->pool), free(b->first), free(b->table);
  free(b->stack), free(b->stamp), free(b->set), free(b);
}

static int sort_edges(by_state_t *sorted, int32_t states, const int32_t *from, int32_t stride, int32_t count)
{
  int32_t *first = sorted->first = calloc((size_t)states + 2, sizeof *first);
  int32_t *order = sorted->order = malloc(((size_t)count + 1) * sizeof *order);
  if (!first || !order) return 0;
  for (int32_t k = 0; k < count; k++) first[from[(int64_t)k * stride] + 2]++;
  for (int32_t s = 0; s < states; s++) first[s + 2] += first[s + 1];
  for (int32_t k = 0; k < count; k++) order[first[from[(int64_t)k * stride] + 1]++] = k;
  return 1;
}

static int by_number(const void *a, const void *b)
{
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return x < y ? -1 : x > y;
}

static uint32_t hash_of(const int32_t *set, int32_t count)
{
  uint64_t h = (uint64_t)count;
  for (int32_t k = 0; k < count; k++) h = (h ^ (uint32_t)set[k]) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
  return (uint32_t)(h ^ (h >> 32));
}

static int widen_table(block_t *b)
{
  int32_t size = 2 * b->table_size, *table = malloc((size_t)size * sizeof *table);
  if (!table) return 0;
  memset(table, -1, (size_t)size * sizeof *table);
  for (int32_t k = 0; k < b->states; k++) {
    uint32_t to = hash_of(b->pool + b->first[k], b->first[k + 1] - b->first[k]) & (uint32_t)(size - 1);
    while (table[to] >= 0) to = (to + 1) & (uint32_t)(size - 1);
    table[to] = k;
  }
  free(b->table);
  b->table = table, b->table_size = size;
  return 1;
}

/* The number of the set of states behind some of b->set by moves without text; -1 without memory, -2 for
   none that matters. */
static int32_t number(block_t *b, int32_t count, by_state_t free_of, const free_t *moves, const uint8_t *matters)
{
  int32_t found = 0;
  if (count == 1 && matters[b->set[0]] && free_of.first[b->set[0]] == free_of.first[b->set[0] + 1]) {
    found = 1;
  } else {
    int32_t top = 0;
    b->clock++;
    for (int32_t k = 0; k < count; k++)
      if (b->stamp[b->set[k]] != b->clock) b->stamp[b->set[k]] = b->clock, b->stack[top++] = b->set[k];
    while (top) {
      int32_t state = b->stack[--top];
      if (matters[state]) b->set[found++] = state; /* never beyond what was read of it */
      for (int32_t k = free_of.first[state]; k < free_of.first[state + 1]; k++) {
        int32_t to = moves[free_of.order[k]].to;
        if (b->stamp[to] != b->clock) b->stamp[to] = b->clock, b->stack[top++] = to;
      }
    }
    if (found > 1) qsort(b->set, (size_t)found, sizeof *b->set, by_number);
  }
  if (!found) return -2;
  uint32_t at = hash_of(b->set, found) & (uint32_t)(b->table_size - 1);
  for (; b->table[at] >= 0; at = (at + 1) & (uint32_t)(b->table_size - 1)) {
    int32_t one = b->table[at], size = b->first[one + 1] - b->first[one];
    if (size == found && !memcmp(b->pool + b->first[one], b->set, (size_t)size * sizeof *b->set)) return one;
  }
  int32_t made = b->states;
  if (!GROW(b->pool, b->pool_room, b->used + found) || !GROW(b->first, b->first_room, made + 2) ||
      !GROW(b->accepts, b->accepts_room, made + 1) || !GROW(b->first_span, b->first_span_room, made + 2) ||
      !GROW(b->first_call, b->first_call_room, made + 2))
    return -1;
  memcpy(b->pool + b->used, b->set, (size_t)found * sizeof *b->set);
  b->used += found, b->first[made + 1] = (int32_t)b->used, b->states++;
  b->table[at] = made;
  return 2 * b->states > b->table_size && !widen_table(b) ? -1 : made;
}

/* Append a span of the last state, in pieces where a text may not have all of its bytes. */
static int add_span(block_t *b, int32_t state, int low, int high, int32_t to, const uint8_t *usable)
{
  for (int byte = low; byte <= high; byte++) {
    if (!usable[byte]) continue;
    span_t *last = b->n_spans > b->first_span[state] ? &b->spans[b->n_spans - 1] : 0;
    if (last && last->high + 1 == byte && last->to == to) {
      last->high = byte;
      continue;
    }
    if (!GROW(b->spans, b->spans_room, b->n_spans + 1)) return 0;
    b->spans[b->n_spans++] = (span_t){byte, byte, to};
  }
  return 1;
}

typedef struct {
  const edge_t *edges;
  const free_t *moves;
  const emitted_t *calls;
  by_state_t edge, move, call;
  uint8_t *matters; /* states of which something is read, called or accepted */
} source_t;

static int bytes_of(block_t *b, int32_t state, const source_t *from, const uint8_t *usable)
{
  int32_t low = b->first[state], high = b->first[state + 1];
  int cuts[258], n_cuts = 0;
  uint8_t cut[258] = {0};
  for (int32_t k = low; k < high; k++)
    for (int32_t s = b->pool[k], e = from->edge.first[s]; e < from->edge.first[s + 1]; e++) {
      edge_t edge = from->edges[from->edge.order[e]];
      cut[edge.low] = 1, cut[edge.high + 1] = 1, n_cuts = 1;
    }
  if (!n_cuts) return 1;
  n_cuts = 0;
  for (int byte = 0; byte <= 256; byte++)
    if (cut[byte]) cuts[n_cuts++] = byte;
  for (int k = 0; k + 1 < n_cuts; k++) {
    int32_t count = 0;
    for (int32_t at = low; at < high; at++)
      for (int32_t s = b->pool[at], e = from->edge.first[s]; e < from->edge.first[s + 1]; e++) {
        edge_t edge = from->edges[from->edge.order[e]];
        if (edge.low <= cuts[k] && cuts[k] <= edge.high) b->set[count++] = edge.to;
      }
    int used = 0;
    for (int byte = cuts[k]; count && byte < cuts[k + 1]; byte++) used |= usable[byte];
    if (!used) continue;
    int32_t to = number(b, count, from->move, from->moves, from->matters);
    if (to == -2) continue;
    if (to < 0 || !add_span(b, state, cuts[k], cuts[k + 1] - 1, to, usable)) return 0;
  }
  return 1;
}

static int is_same_call(emitted_t a, emitted_t b) { return a.rule == b.rule && a.low == b.low && a.high == b.high; }

static int calls_of(block_t *b, int32_t state, const source_t *from)
{
  int32_t low = b->first[state], high = b->first[state + 1];
  int64_t begin = b->n_calls;
  for (int32_t at = low; at < high; at++)
    for (int32_t s = b->pool[at], c = from->call.first[s]; c < from->call.first[s + 1]; c++) {
      emitted_t one = from->calls[from->call.order[c]];
      int64_t k = begin;
      while (k < b->n_calls && !is_same_call(one, (emitted_t){0, b->calls[k].rule, b->calls[k].low, b->calls[k].high, 0}))
        k++;
      if (k < b->n_calls) continue;
      int32_t count = 0;
      for (int32_t also = at; also < high; also++)
        for (int32_t t = b->pool[also], d = from->call.first[t]; d < from->call.first[t + 1]; d++) {
          emitted_t two = from->calls[from->call.order[d]];
          if (is_same_call(one, two)) b->set[count++] = two.to;
        }
      int32_t to = number(b, count, from->move, from->moves, from->matters);
      if (to == -2) continue;
      if (to < 0 || !GROW(b->calls, b->calls_room, b->n_calls + 1)) return 0;
      b->calls[b->n_calls++] = (call_t){one.rule, to, one.low, one.high};
    }
  return 1;
}

/* Make one rule deterministic. Returns 0 without memory, or with more states than there may be. */
static int subsets_of(block_t *b, int32_t start, int32_t end, const source_t *from, const uint8_t *usable, int32_t most)
{
  int32_t first = b->states;
  b->set[0] = start;
  int32_t made = number(b, 1, from->move, from->moves, from->matters);
  if (made < 0) return made == -2;
  for (int32_t state = first; state < b->states; state++) { /* grows while it runs */
    if (b->states - first > most) return 0;
    b->accepts[state] = 0;
    for (int32_t k = b->first[state]; k < b->first[state + 1]; k++) b->accepts[state] |= b->pool[k] == end;
    if (!bytes_of(b, state, from, usable) || !calls_of(b, state, from)) return 0;
    b->first_span[state + 1] = (int32_t)b->n_spans, b->first_call[state + 1] = (int32_t)b->n_calls;
  }
  return 1;
}
