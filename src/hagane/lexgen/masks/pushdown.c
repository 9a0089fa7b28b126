/* A push-down automaton over the bytes of rules that call each other, run along every stack at once.

   A thread is a pair: a state of a rule, and a node, the stack below it (-1: none). Equal stacks are
   one node. A node is a state to return to, or, where count >= 0, a call under way that repeats: the
   call's number, and how many repetitions have begun. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct { int32_t what, count, parent, height; } node_t;
typedef struct { int32_t state, node; } pair_t;

typedef struct {
  const int32_t *delta, *starts, *first_call, *call_rule, *call_to, *call_low, *call_high;
  const uint8_t *accepts, *begins, *nullable;
  node_t *nodes;
  int32_t *table, used, room, table_size;
  pair_t *work;     /* threads of one step, each looked at once */
  int32_t work_room;
  pair_t *out;      /* of all depths of a walk */
  int64_t out_room;
  int32_t lowest;   /* height of the lowest node that a walk returned to */
  int32_t failed;   /* no memory */
} machine_t;

machine_t *hagane_machine(const int32_t *delta, const int32_t *starts, const int32_t *first_call,
                          const int32_t *call_rule, const int32_t *call_to, const int32_t *call_low,
                          const int32_t *call_high, const uint8_t *accepts, const uint8_t *begins,
                          const uint8_t *nullable)
{
  machine_t *m = calloc(1, sizeof *m);
  if (!m) return 0;
  m->delta = delta, m->starts = starts, m->first_call = first_call, m->call_rule = call_rule;
  m->call_to = call_to, m->call_low = call_low, m->call_high = call_high;
  m->accepts = accepts, m->begins = begins, m->nullable = nullable;
  m->room = 1 << 10, m->table_size = 1 << 12, m->work_room = 256, m->out_room = 1 << 12;
  m->nodes = malloc((size_t)m->room * sizeof *m->nodes);
  m->table = malloc((size_t)m->table_size * sizeof *m->table);
  m->work = malloc((size_t)m->work_room * sizeof *m->work);
  m->out = malloc((size_t)m->out_room * sizeof *m->out);
  if (!m->nodes || !m->table || !m->work || !m->out) return 0;
  memset(m->table, -1, (size_t)m->table_size * sizeof *m->table);
  return m;
}

void hagane_machine_end(machine_t *m)
{
  free(m->nodes), free(m->table), free(m->work), free(m->out), free(m);
}

static uint32_t hash(int32_t a, int32_t b, int32_t c)
{
  uint64_t h = (uint32_t)a * 0x9E3779B97F4A7C15u;
  h = (h ^ (h >> 29) ^ (uint32_t)b) * 0xBF58476D1CE4E5B9u;
  h = (h ^ (h >> 32) ^ (uint32_t)c) * 0x94D049BB133111EBu;
  return (uint32_t)(h ^ (h >> 31));
}

static int32_t node(machine_t *m, int32_t what, int32_t count, int32_t parent)
{
  uint32_t at = hash(what, count, parent) & (uint32_t)(m->table_size - 1);
  for (; m->table[at] >= 0; at = (at + 1) & (uint32_t)(m->table_size - 1)) {
    const node_t *n = &m->nodes[m->table[at]];
    if (n->what == what && n->count == count && n->parent == parent) return m->table[at];
  }
  if (m->used == m->room) {
    node_t *more = realloc(m->nodes, (size_t)m->room * 2 * sizeof *more);
    if (!more) { m->failed = 1; return 0; }
    m->nodes = more, m->room *= 2;
  }
  int32_t made = m->used++;
  m->nodes[made] = (node_t){what, count, parent, parent < 0 ? 1 : m->nodes[parent].height + 1};
  m->table[at] = made;
  if (2 * m->used > m->table_size) {
    int32_t size = 2 * m->table_size, *table = malloc((size_t)size * sizeof *table);
    if (!table) { m->failed = 1; return made; }
    memset(table, -1, (size_t)size * sizeof *table);
    for (int32_t k = 0; k < m->used; k++) {
      const node_t *n = &m->nodes[k];
      uint32_t to = hash(n->what, n->count, n->parent) & (uint32_t)(size - 1);
      while (table[to] >= 0) to = (to + 1) & (uint32_t)(size - 1);
      table[to] = k;
    }
    free(m->table);
    m->table = table, m->table_size = size;
  }
  return made;
}

/* Append a thread to the work of this step unless it is there. */
static int32_t add(machine_t *m, int32_t count, int32_t state, int32_t below)
{
  for (int32_t k = 0; k < count; k++)
    if (m->work[k].state == state && m->work[k].node == below) return count;
  if (count == m->work_room) {
    pair_t *more = realloc(m->work, (size_t)m->work_room * 2 * sizeof *more);
    if (!more) { m->failed = 1; return count; }
    m->work = more, m->work_room *= 2;
  }
  m->work[count] = (pair_t){state, below};
  return count + 1;
}

/* Where a repeating call stands between two repetitions: it may end, or begin one more. */
static int32_t between(machine_t *m, int32_t work, int32_t call, int32_t count, int32_t parent,
                       int byte)
{
  int32_t low = m->call_low[call], high = m->call_high[call], rule = m->call_rule[call];
  if (count >= low || m->nullable[rule]) work = add(m, work, m->call_to[call], parent);
  if ((high < 0 || count < high) && m->starts[rule] >= 0 && byte >= 0 &&
      m->begins[(int64_t)rule * 256 + byte]) {
    int32_t next = high < 0 && count >= low ? count : count + 1;
    work = add(m, work, m->starts[rule], node(m, call, next, parent));
  }
  return work;
}

/* Add to the work every thread that one of them becomes without reading; with a byte, only those calls
   that may begin with it. Returns how many there are; with `ends`, whether the text may end. */
static int32_t close(machine_t *m, int32_t work, int byte, int *ends)
{
  for (int32_t k = 0; k < work; k++) {
    int32_t state = m->work[k].state, below = m->work[k].node;
    for (int32_t call = m->first_call[state]; call < m->first_call[state + 1]; call++) {
      int32_t rule = m->call_rule[call], low = m->call_low[call], high = m->call_high[call];
      if (low == 1 && high == 1) {
        if (m->nullable[rule]) work = add(m, work, m->call_to[call], below);
        if (byte >= 0 && m->begins[(int64_t)rule * 256 + byte])
          work = add(m, work, m->starts[rule], node(m, m->call_to[call], -1, below));
      } else {
        work = between(m, work, call, 0, below, byte);
      }
    }
    if (!m->accepts[state]) continue;
    if (below < 0) {
      if (ends) *ends = 1;
      continue;
    }
    node_t up = m->nodes[below];
    if (up.height < m->lowest) m->lowest = up.height;
    if (up.count < 0) work = add(m, work, up.what, up.parent);
    else work = between(m, work, up.what, up.count, up.parent, byte);
  }
  return work;
}

/* Write the threads after a byte behind those of `out`; return how many. */
static int32_t step(machine_t *m, int64_t from, int32_t count, int byte, int64_t to)
{
  if (to + count + 64 > m->out_room) {
    pair_t *more = realloc(m->out, (size_t)m->out_room * 2 * sizeof *more);
    if (!more) { m->failed = 1; return 0; }
    m->out = more, m->out_room *= 2;
  }
  if (count == 1) { /* most often: inside of a text, where a table is all it takes */
    pair_t one = m->out[from];
    if (!m->accepts[one.state] && m->first_call[one.state] == m->first_call[one.state + 1]) {
      int32_t next = m->delta[(int64_t)one.state * 256 + byte];
      m->out[to] = (pair_t){next, one.node};
      return next >= 0;
    }
  }
  int32_t work = 0;
  for (int32_t k = 0; k < count; k++) work = add(m, work, m->out[from + k].state, m->out[from + k].node);
  work = close(m, work, byte, 0);
  int32_t made = 0;
  for (int32_t k = 0; k < work; k++) {
    int32_t next = m->delta[(int64_t)m->work[k].state * 256 + byte];
    if (next < 0) continue;
    pair_t found = {next, m->work[k].node};
    int32_t at = 0;
    while (at < made && (m->out[to + at].state != found.state || m->out[to + at].node != found.node)) at++;
    if (at < made) continue;
    if (to + made + 2 > m->out_room) {
      pair_t *more = realloc(m->out, (size_t)m->out_room * 2 * sizeof *more);
      if (!more) { m->failed = 1; return made; }
      m->out = more, m->out_room *= 2;
    }
    m->out[to + made++] = found;
  }
  return made;
}

static void put(machine_t *m, const int32_t *pairs, int32_t count)
{
  while (count + 64 > m->out_room) {
    pair_t *more = realloc(m->out, (size_t)m->out_room * 2 * sizeof *more);
    if (!more) { m->failed = 1; return; }
    m->out = more, m->out_room *= 2;
  }
  memcpy(m->out, pairs, (size_t)count * sizeof(pair_t));
}

/* The threads after some bytes, as m->out from the address that is returned; -1 without memory. */
int32_t hagane_advance(machine_t *m, const int32_t *pairs, int32_t count, const uint8_t *bytes,
                       int64_t length, const int32_t **found)
{
  put(m, pairs, count);
  int64_t from = 0;
  for (int64_t k = 0; k < length && count > 0 && !m->failed; k++) {
    int64_t to = from + count;
    count = step(m, from, count, bytes[k], to);
    memmove(m->out, m->out + to, (size_t)count * sizeof(pair_t));
    from = 0;
  }
  *found = (const int32_t *)(m->out + from);
  return m->failed ? -1 : count;
}

int32_t hagane_ends(machine_t *m, const int32_t *pairs, int32_t count)
{
  int ends = 0;
  int32_t work = 0;
  for (int32_t k = 0; k < count; k++) work = add(m, work, pairs[2 * k], pairs[2 * k + 1]);
  close(m, work, -1, &ends);
  return ends;
}

/* Set the bits of the tokens that may follow; return the height of the lowest stack that was looked
   at, which is more than any height if none was, or -1 without memory. */
int32_t hagane_allowed(machine_t *m, const int32_t *pairs, int32_t count, const uint8_t *byte,
                       const uint16_t *depth, const int32_t *after, const int32_t *first,
                       const int32_t *ids, int64_t tries, int64_t *starts, uint32_t *bits)
{
  put(m, pairs, count);
  m->lowest = INT32_MAX;
  starts[0] = 0, starts[1] = count;
  for (int64_t k = 0; k < tries && !m->failed;) {
    int64_t at = depth[k];
    int32_t made = step(m, starts[at], (int32_t)(starts[at + 1] - starts[at]), byte[k], starts[at + 1]);
    if (!made) { k = after[k]; continue; }
    starts[at + 2] = starts[at + 1] + made;
    for (int32_t t = first[k]; t < first[k + 1]; t++)
      bits[(uint32_t)ids[t] >> 5] |= (uint32_t)1 << (ids[t] & 31);
    k++;
  }
  return m->failed ? -1 : m->lowest;
}

/* The frames of a stack from the top: symbol and count of each, at most so many. */
int32_t hagane_frames(machine_t *m, int32_t at, int32_t lowest, int32_t *frames, int32_t most)
{
  int32_t count = 0;
  for (; at >= 0 && m->nodes[at].height >= lowest && count < most; at = m->nodes[at].parent) {
    frames[2 * count] = m->nodes[at].what;
    frames[2 * count + 1] = m->nodes[at].count;
    count++;
  }
  return count;
}

int32_t hagane_height(machine_t *m, int32_t at) { return at < 0 ? 0 : m->nodes[at].height; }
int32_t hagane_node(machine_t *m, int32_t what, int32_t count, int32_t parent)
{
  return node(m, what, count, parent);
}
