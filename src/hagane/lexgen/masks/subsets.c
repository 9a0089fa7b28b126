/* Rules as automata with edges of several kinds, made deterministic: the common case of what `units.py`
   and `rules.py` do, which do the rest (rules that match no text, states that lead nowhere). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct { int32_t from, low, high, to; } edge_t;
typedef struct { int32_t from, to; } free_t;
typedef struct { int32_t from, rule, low, high, to; } emitted_t;
typedef struct { int32_t rule, to, low, high; } call_t;

typedef struct {
  int32_t *delta;
  uint8_t *accepts, *nullable, *begins; /* the latter two of all rules */
  int32_t *first_call, *first_state, *first_step; /* by state, by unit, by unit */
  call_t *calls;
  int32_t states, n_calls;
  int32_t delta_room, accepts_room, first_call_room, calls_room;
  /* sets of states */
  int32_t *pool, *first, *table;
  int32_t used, pool_room, first_room, table_size;
  free_t *steps;    /* from a state to another, over a byte */
  int32_t n_steps, steps_room;
  int32_t *stack, *stamp, *set, clock;
} block_t;

static int room(void **data, int32_t *has, int64_t needed, size_t size)
{
  if (needed <= *has) return 1;
  int64_t more = 2 * (int64_t)*has > needed ? 2 * (int64_t)*has : needed + 64;
  void *made = more > INT32_MAX ? 0 : realloc(*data, (size_t)more * size);
  if (!made) return 0;
  *data = made, *has = (int32_t)more;
  return 1;
}
#define ROOM(list, has, needed) room((void **)&(list), &(has), needed, sizeof *(list))

void hagane_block_end(block_t *b)
{
  free(b->delta), free(b->accepts), free(b->nullable), free(b->begins), free(b->first_call);
  free(b->first_state), free(b->first_step), free(b->calls), free(b->pool), free(b->first), free(b->table), free(b->steps);
  free(b->stack), free(b->stamp), free(b->set), free(b);
}

static int32_t *starts_of(int32_t states, const int32_t *from, int32_t stride, int32_t count)
{
  int32_t *first = calloc((size_t)states + 2, sizeof *first);
  if (!first) return 0;
  for (int32_t k = 0; k < count; k++) first[from[(int64_t)k * stride] + 1]++;
  for (int32_t s = 0; s < states; s++) first[s + 1] += first[s];
  return first;
}

static int32_t *order_of(int32_t states, const int32_t *first, const int32_t *from, int32_t stride,
                         int32_t count)
{
  int32_t *order = malloc(((size_t)count + 1) * sizeof *order);
  int32_t *next = malloc(((size_t)states + 2) * sizeof *next);
  if (order && next) {
    memcpy(next, first, ((size_t)states + 1) * sizeof *next);
    for (int32_t k = 0; k < count; k++) order[next[from[(int64_t)k * stride]]++] = k;
  }
  free(next);
  return order;
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

/* The number of the set of states behind some of b->set by moves without text; -1 without memory. */
static int32_t number(block_t *b, int32_t count, const int32_t *first_free, const int32_t *free_order,
                      const free_t *moves, const uint8_t *matters)
{
  int32_t top = 0, found = 0;
  b->clock++;
  for (int32_t k = 0; k < count; k++)
    if (b->stamp[b->set[k]] != b->clock) b->stamp[b->set[k]] = b->clock, b->stack[top++] = b->set[k];
  while (top) {
    int32_t state = b->stack[--top];
    if (matters[state]) b->set[found++] = state; /* never beyond what was read of it */
    for (int32_t k = first_free[state]; k < first_free[state + 1]; k++) {
      int32_t to = moves[free_order[k]].to;
      if (b->stamp[to] != b->clock) b->stamp[to] = b->clock, b->stack[top++] = to;
    }
  }
  if (found > 1) qsort(b->set, (size_t)found, sizeof *b->set, by_number);
  uint32_t at = hash_of(b->set, found) & (uint32_t)(b->table_size - 1);
  for (; b->table[at] >= 0; at = (at + 1) & (uint32_t)(b->table_size - 1)) {
    int32_t one = b->table[at], size = b->first[one + 1] - b->first[one];
    if (size == found && !memcmp(b->pool + b->first[one], b->set, (size_t)size * sizeof *b->set)) return one;
  }
  int32_t made = b->states;
  if (!ROOM(b->pool, b->pool_room, (int64_t)b->used + found) || !ROOM(b->first, b->first_room, made + 2) ||
      !ROOM(b->accepts, b->accepts_room, made + 1) || !ROOM(b->first_call, b->first_call_room, made + 2))
    return -1;
  if (made >= b->delta_room) {
    int32_t more = made + made / 2 + 32;
    int32_t *wider = realloc(b->delta, (size_t)more * 256 * sizeof *wider);
    if (!wider) return -1;
    b->delta = wider, b->delta_room = more;
  }
  memset(b->delta + (int64_t)made * 256, -1, 256 * sizeof *b->delta);
  memcpy(b->pool + b->used, b->set, (size_t)found * sizeof *b->set);
  b->used += found, b->first[made + 1] = b->used, b->states++;
  b->table[at] = made;
  if (2 * b->states > b->table_size) {
    int32_t size = 2 * b->table_size, *table = malloc((size_t)size * sizeof *table);
    if (!table) return -1;
    memset(table, -1, (size_t)size * sizeof *table);
    for (int32_t k = 0; k < b->states; k++) {
      uint32_t to = hash_of(b->pool + b->first[k], b->first[k + 1] - b->first[k]) & (uint32_t)(size - 1);
      while (table[to] >= 0) to = (to + 1) & (uint32_t)(size - 1);
      table[to] = k;
    }
    free(b->table);
    b->table = table, b->table_size = size;
  }
  return made;
}

/* Whether a state leads to an end, for all of a unit's; `ends` says of which rules calls end. */
static int all_lead(const block_t *b, int32_t unit, const uint8_t *ends, uint8_t *alive, int sure)
{
  int32_t low = b->first_state[unit], high = b->first_state[unit + 1];
  memcpy(alive + low, b->accepts + low, (size_t)(high - low));
  for (int changed = 1; changed;) {
    changed = 0;
    for (int32_t k = b->first_step[unit + 1] - 1; k >= b->first_step[unit]; k--) {
      free_t step = b->steps[k];
      if (alive[step.to] && !alive[step.from]) alive[step.from] = 1, changed = 1;
    }
    for (int32_t state = high - 1; state >= low; state--)
      for (int32_t c = b->first_call[state]; c < b->first_call[state + 1] && !alive[state]; c++)
        if (alive[b->calls[c].to] && (sure || b->calls[c].low == 0 || ends[b->calls[c].rule]))
          alive[state] = 1, changed = 1;
  }
  if (!sure) return alive[low];
  for (int32_t state = low; state < high; state++)
    if (!alive[state]) return 0;
  return 1;
}

/* The states that the first one of a unit becomes without text, in b->stack. */
static int32_t leading(block_t *b, int32_t unit)
{
  int32_t count = 1;
  b->stack[0] = b->first_state[unit];
  for (int32_t k = 0; k < count; k++)
    for (int32_t c = b->first_call[b->stack[k]]; c < b->first_call[b->stack[k] + 1]; c++) {
      call_t call = b->calls[c];
      if (call.low && !b->nullable[call.rule]) continue;
      int32_t at = 0;
      while (at < count && b->stack[at] != call.to) at++;
      if (at == count) b->stack[count++] = call.to;
    }
  return count;
}

/* Facts of all rules from those of modules, which `ends`, b->nullable and b->begins have already.
   Returns 0 where the rest of the work is Python's: a rule that matches no text, or calls itself first. */
static int facts(block_t *b, const int32_t *rules, int32_t units, int32_t all, uint8_t *ends)
{
  uint8_t *alive = malloc((size_t)b->states + 1);
  int32_t *unit_of = malloc((size_t)all * sizeof *unit_of);
  uint8_t *done = calloc((size_t)all, 1);
  int fine = alive && unit_of && done;
  if (fine) memset(unit_of, -1, (size_t)all * sizeof *unit_of);
  for (int32_t u = 0; u < units && fine; u++) {
    unit_of[rules[u]] = u;
    if (!all_lead(b, u, ends, alive, 1)) fine = 0;
  }
  for (int changed = 1; changed && fine;) {
    changed = 0;
    for (int32_t u = units - 1; u >= 0; u--)
      if (!ends[rules[u]] && all_lead(b, u, ends, alive, 0)) ends[rules[u]] = 1, changed = 1;
  }
  for (int32_t r = 0; r < all && fine; r++) fine = ends[r];
  for (int changed = 1; changed && fine;) {
    changed = 0;
    for (int32_t u = units - 1; u >= 0; u--) {
      if (b->nullable[rules[u]]) continue;
      int32_t count = leading(b, u);
      for (int32_t k = 0; k < count; k++)
        if (b->accepts[b->stack[k]]) { b->nullable[rules[u]] = changed = 1; break; }
    }
  }
  /* Rules whose callees are done, again and again; what is left calls itself first. */
  for (int32_t r = 0; r < all && fine; r++) done[r] = unit_of[r] < 0;
  int32_t left = units;
  for (int changed = 1; changed && fine;) {
    changed = 0;
    for (int32_t u = units - 1; u >= 0; u--) {
      uint8_t *mine = b->begins + (int64_t)rules[u] * 256;
      if (done[rules[u]]) continue;
      int32_t count = leading(b, u), ready = 1;
      for (int32_t k = 0; k < count && ready; k++)
        for (int32_t c = b->first_call[b->stack[k]]; c < b->first_call[b->stack[k] + 1]; c++)
          if (b->calls[c].high && !done[b->calls[c].rule]) ready = 0;
      if (!ready) continue;
      for (int32_t k = 0; k < count; k++) {
        const int32_t *row = b->delta + (int64_t)b->stack[k] * 256;
        for (int byte = 0; byte < 256; byte++) mine[byte] |= row[byte] >= 0;
        for (int32_t c = b->first_call[b->stack[k]]; c < b->first_call[b->stack[k] + 1]; c++)
          if (b->calls[c].high)
            for (int byte = 0; byte < 256; byte++)
              mine[byte] |= b->begins[(int64_t)b->calls[c].rule * 256 + byte];
      }
      done[rules[u]] = 1, left--, changed = 1;
    }
  }
  free(alive), free(unit_of), free(done);
  return fine && !left;
}

/* Automata of some rules. `known` has the facts of all rules, so far those of modules: whether a text
   matches, whether the empty one does, and the first bytes, 258 numbers a rule. Returns null where the
   work is Python's, or without memory. */
block_t *hagane_block(int32_t states, const edge_t *edges, int32_t n_edges, const free_t *moves,
                      int32_t n_moves, const emitted_t *calls, int32_t n_calls, const int32_t *units,
                      int32_t n_units, const uint8_t *known, int32_t rules, const uint8_t *usable,
                      int32_t most)
{
  block_t *b = calloc(1, sizeof *b);
  if (!b) return 0;
  int32_t *first_edge = starts_of(states, &edges->from, 4, n_edges);
  int32_t *first_move = starts_of(states, &moves->from, 2, n_moves);
  int32_t *first_call = starts_of(states, &calls->from, 5, n_calls);
  int32_t *edge_order = 0, *move_order = 0, *call_order = 0;
  uint8_t *matters = calloc((size_t)states + 1, 1), *ends = calloc((size_t)rules + 1, 1);
  int32_t *numbers = malloc(((size_t)n_units + 1) * sizeof *numbers);
  int fine = 0;
  if (!first_edge || !first_move || !first_call || !matters || !ends || !numbers) goto out;
  edge_order = order_of(states, first_edge, &edges->from, 4, n_edges);
  move_order = order_of(states, first_move, &moves->from, 2, n_moves);
  call_order = order_of(states, first_call, &calls->from, 5, n_calls);
  b->stack = malloc(((size_t)states + n_edges + n_calls + 64) * sizeof *b->stack);
  b->set = malloc(((size_t)states + n_edges + n_calls + 64) * sizeof *b->set);
  b->stamp = calloc((size_t)states + 1, sizeof *b->stamp);
  b->nullable = calloc((size_t)rules + 1, 1), b->begins = calloc((size_t)rules * 256 + 1, 1);
  b->first_state = malloc(((size_t)n_units + 1) * sizeof *b->first_state);
  b->first_step = malloc(((size_t)n_units + 1) * sizeof *b->first_step);
  b->table_size = 256, b->table = malloc((size_t)b->table_size * sizeof *b->table);
  if (!edge_order || !move_order || !call_order || !b->stack || !b->set || !b->stamp || !b->nullable ||
      !b->begins || !b->first_state || !b->first_step || !b->table || !ROOM(b->first, b->first_room, 64) ||
      !ROOM(b->first_call, b->first_call_room, 64))
    goto out;
  memset(b->table, -1, (size_t)b->table_size * sizeof *b->table);
  b->first[0] = 0, b->first_call[0] = 0;
  for (int32_t s = 0; s < states; s++)
    matters[s] = first_edge[s] < first_edge[s + 1] || first_call[s] < first_call[s + 1];
  for (int32_t u = 0; u < n_units; u++) matters[units[3 * u + 2]] = 1;
  for (int32_t r = 0; r < rules; r++) {
    ends[r] = known[258 * r], b->nullable[r] = known[258 * r + 1];
    memcpy(b->begins + 256 * r, known + 258 * r + 2, 256);
  }
  for (int32_t u = 0; u < n_units; u++) {
    int32_t end = units[3 * u + 2];
    numbers[u] = units[3 * u], b->first_state[u] = b->states, b->first_step[u] = b->n_steps;
    b->set[0] = units[3 * u + 1];
    if (number(b, 1, first_move, move_order, moves, matters) < 0) goto out;
    for (int32_t state = b->first_state[u]; state < b->states; state++) { /* grows while it runs */
      if (b->states > most) goto out;
      int32_t low = b->first[state], high = b->first[state + 1];
      int cuts[258], n_cuts = 0;
      uint8_t cut[258] = {0};
      b->accepts[state] = 0;
      for (int32_t k = low; k < high; k++) {
        int32_t s = b->pool[k];
        if (s == end) b->accepts[state] = 1;
        for (int32_t e = first_edge[s]; e < first_edge[s + 1]; e++)
          cut[edges[edge_order[e]].low] = 1, cut[edges[edge_order[e]].high + 1] = 1;
      }
      for (int byte = 0; byte <= 256; byte++)
        if (cut[byte]) cuts[n_cuts++] = byte;
      for (int k = 0; k + 1 < n_cuts; k++) {
        int32_t count = 0;
        int used = 0;
        for (int byte = cuts[k]; byte < cuts[k + 1]; byte++) used |= usable[byte];
        if (!used) continue;
        for (int32_t at = low; at < high; at++) {
          int32_t s = b->pool[at];
          for (int32_t e = first_edge[s]; e < first_edge[s + 1]; e++) {
            edge_t edge = edges[edge_order[e]];
            if (edge.low <= cuts[k] && cuts[k] <= edge.high) b->set[count++] = edge.to;
          }
        }
        if (!count) continue;
        int32_t to = number(b, count, first_move, move_order, moves, matters);
        if (to < 0 || !ROOM(b->steps, b->steps_room, b->n_steps + 1)) goto out;
        b->steps[b->n_steps++] = (free_t){state, to};
        for (int byte = cuts[k]; byte < cuts[k + 1]; byte++)
          if (usable[byte]) b->delta[(int64_t)state * 256 + byte] = to;
      }
      int32_t begin = b->n_calls;
      for (int32_t at = low; at < high; at++) {
        int32_t s = b->pool[at];
        for (int32_t c = first_call[s]; c < first_call[s + 1]; c++) {
          emitted_t one = calls[call_order[c]];
          int32_t k = begin, count = 0;
          for (; k < b->n_calls; k++)
            if (b->calls[k].rule == one.rule && b->calls[k].low == one.low && b->calls[k].high == one.high) break;
          if (k < b->n_calls) continue;
          for (int32_t also = low; also < high; also++) {
            int32_t t = b->pool[also];
            for (int32_t d = first_call[t]; d < first_call[t + 1]; d++) {
              emitted_t two = calls[call_order[d]];
              if (two.rule == one.rule && two.low == one.low && two.high == one.high) b->set[count++] = two.to;
            }
          }
          int32_t to = number(b, count, first_move, move_order, moves, matters);
          if (to < 0 || !ROOM(b->calls, b->calls_room, b->n_calls + 1)) goto out;
          b->calls[b->n_calls++] = (call_t){one.rule, to, one.low, one.high};
        }
      }
      b->first_call[state + 1] = b->n_calls;
    }
  }
  b->first_state[n_units] = b->states, b->first_step[n_units] = b->n_steps;
  int32_t *wider = realloc(b->stack, ((size_t)b->states + 64) * sizeof *wider);
  if (!wider) goto out;
  b->stack = wider;
  fine = facts(b, numbers, n_units, rules, ends);
out:
  free(first_edge), free(first_move), free(first_call), free(edge_order), free(move_order);
  free(call_order), free(matters), free(ends), free(numbers);
  if (fine) return b;
  hagane_block_end(b);
  return 0;
}

/* Sizes and addresses: states, calls, then delta, accepts, first_call, calls, first_state, nullable, begins. */
void hagane_block_parts(const block_t *b, int64_t *parts)
{
  const void *lists[] = {b->delta, b->accepts, b->first_call, b->calls, b->first_state, b->nullable, b->begins};
  parts[0] = b->states, parts[1] = b->n_calls;
  for (int k = 0; k < 7; k++) parts[2 + k] = (int64_t)(intptr_t)lists[k];
}
