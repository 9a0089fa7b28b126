/* A push-down automaton over the bytes of rules that call each other, run along every stack at once.

   A thread is a pair: a state of a rule, and a node, the stack below it (-1: none). Equal stacks are
   one node. A node is a state to return to, or, where count >= 0, a call under way that repeats: the
   call's number, and how many repetitions have begun. A place is a set of threads, numbered.

   Masks. The tokens that stay within a state's rule, and within the rules that it calls, are the same
   whatever lies below it. They are found once for a state, by one walk over a trie of the vocabulary
   (ahead_t); so is a small trie of the rests of those tokens that leave the rule. The mask of a place
   joins those of its threads, and walks the small tries along the real stacks. Rules that stand alike
   in many grammars share what was found (store_t). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct { int32_t what, count, parent; } node_t;
typedef struct { int32_t rule, to, low, high; } call_t;
typedef struct { int32_t state, node; } pair_t;

/* Node 0 is the root; the children of n are kid[n] to kid[n + 1]. The tokens that end at n are ids[low[n]]
   to ids[end[n]]; up to ids[high[n]] in the main trie, those that go on. */
typedef struct {
  int32_t nodes, *kid, *low, *end, *high;
  const int32_t *ids;
  int32_t *own;     /* ids of a trie of rests, to be freed */
  uint8_t *byte;
} trie_t;

typedef struct {
  int32_t count;    /* of tokens in `tokens`; -1: they are words of bits */
  int32_t plain;    /* too many rests: walk the whole vocabulary */
  uint32_t *tokens;
  trie_t *rests;
} ahead_t;

typedef struct {
  trie_t trie;
  int32_t by_byte[256]; /* the children of the root; 0: none */
  const uint8_t *data;
  const int64_t *offsets;
  int32_t *rank, tokens; /* where a token stands in the sorted list; -1: it has no text */
  int64_t words, bytes;
  int32_t *keys, used, size;
  ahead_t **kept;
} store_t;

typedef struct { int64_t from; int32_t count, ends; } place_t;

typedef struct {
  const int32_t *delta, *starts, *first_call, *shared;
  const call_t *calls;
  const uint8_t *accepts, *begins, *nullable;
  int32_t states;
  store_t *store;
  node_t *nodes;
  int32_t *table, used, room, table_size;
  pair_t *work;     /* threads of one step, each looked at once */
  int32_t work_room;
  pair_t *out;      /* of all depths of a walk */
  int64_t out_room;
  int32_t bottom;   /* the node below a state whose tokens are looked ahead at */
  int32_t popped;   /* whether it was returned to */
  uint32_t *found;  /* tokens of a state that is looked ahead at, each once */
  int32_t n_found, found_room;
  uint32_t *bits;   /* all clear between uses */
  int32_t *exits;   /* nodes of the main trie at which it was */
  int32_t n_exits, exits_room;
  int32_t failed;   /* no memory */
  ahead_t **ahead;  /* by state; those that are not shared are the machine's own */
  place_t *places;
  int32_t n_places, places_room, *place_table, place_table_size;
  pair_t *threads;  /* of all places */
  int64_t n_threads, threads_room;
} machine_t;

#define ANY (-2)    /* close over every byte that may follow */
#define NONE (-1)   /* close over what reads nothing */
#define MOST_RESTS 60000
#define MOST_SHARED (64 << 20)

static int32_t grow(void **data, int64_t *room, int64_t needed, size_t size)
{
  if (needed <= *room) return 1;
  int64_t more = *room * 2 > needed ? *room * 2 : needed;
  void *made = realloc(*data, (size_t)more * size);
  if (!made) return 0;
  *data = made, *room = more;
  return 1;
}

static int32_t grow_32(void **data, int32_t *room, int64_t needed, size_t size)
{
  int64_t wide = *room;
  int32_t done = grow(data, &wide, needed, size);
  *room = (int32_t)wide;
  return done;
}

/* Tries. */

static void trie_free(trie_t *t)
{
  free(t->kid), free(t->low), free(t->end), free(t->high), free(t->byte), free(t->own);
}

static int32_t trie_room(trie_t *t, int32_t *room, int32_t needed)
{
  if (needed < *room) return 1;
  int32_t more = *room ? 2 * *room : 64;
  int32_t **lists[] = {&t->kid, &t->low, &t->end, &t->high};
  for (int k = 0; k < 4; k++) {
    int32_t *made = realloc(*lists[k], ((size_t)more + 1) * sizeof *made);
    if (!made) return 0;
    *lists[k] = made;
  }
  uint8_t *bytes = realloc(t->byte, (size_t)more + 1);
  if (!bytes) return 0;
  t->byte = bytes, *room = more;
  return 1;
}

void hagane_store_end(store_t *s);

/* A vocabulary: sorted tokens, joined, where each starts, and their numbers, which must outlive it; how
   many numbers there are. */
store_t *hagane_store(const uint8_t *data, const int64_t *offsets, int32_t count, const int32_t *ids,
                      int32_t tokens)
{
  store_t *s = calloc(1, sizeof *s);
  if (!s) return 0;
  s->data = data, s->offsets = offsets, s->tokens = tokens, s->words = (tokens + 31) / 32;
  trie_t *t = &s->trie;
  int32_t room = 0;
  int32_t *depth = malloc(((size_t)(offsets[count] + 2)) * sizeof *depth);
  s->rank = malloc(((size_t)tokens + 1) * sizeof *s->rank);
  if (!depth || !s->rank || !trie_room(t, &room, 1)) goto failed;
  memset(s->rank, -1, (size_t)tokens * sizeof *s->rank);
  for (int32_t k = 0; k < count; k++) s->rank[ids[k]] = k;
  t->ids = ids;
  t->nodes = 1, t->low[0] = 0, t->high[0] = count, depth[0] = 0, t->byte[0] = 0;
  for (int32_t n = 0; n < t->nodes; n++) { /* grows while it runs */
    int32_t at = t->low[n];
    while (at < t->high[n] && offsets[at + 1] - offsets[at] == depth[n]) at++;
    t->end[n] = at, t->kid[n] = t->nodes;
    while (at < t->high[n]) {
      uint8_t byte = data[offsets[at] + depth[n]];
      if (!trie_room(t, &room, t->nodes + 1)) goto failed;
      int32_t made = t->nodes++;
      t->byte[made] = byte, t->low[made] = at, depth[made] = depth[n] + 1;
      while (at < t->high[n] && data[offsets[at] + depth[n]] == byte) at++;
      t->high[made] = at;
    }
  }
  t->kid[t->nodes] = t->nodes;
  free(depth);
  for (int32_t k = t->kid[0]; k < t->kid[1]; k++) s->by_byte[t->byte[k]] = k;
  s->size = 1 << 10;
  s->keys = malloc((size_t)s->size * sizeof *s->keys);
  s->kept = malloc((size_t)s->size * sizeof *s->kept);
  if (!s->keys || !s->kept) goto failed_late;
  memset(s->keys, -1, (size_t)s->size * sizeof *s->keys);
  return s;
failed:
  free(depth);
failed_late:
  hagane_store_end(s);
  return 0;
}

static void ahead_free(ahead_t *a)
{
  if (a->rests) trie_free(a->rests), free(a->rests);
  free(a->tokens), free(a);
}

void hagane_store_end(store_t *s)
{
  for (int32_t k = 0; s->keys && s->kept && k < s->size; k++)
    if (s->keys[k] >= 0) ahead_free(s->kept[k]);
  trie_free(&s->trie);
  free(s->rank), free(s->keys), free(s->kept), free(s);
}

static int32_t store_place(const store_t *s, int32_t key)
{
  uint32_t at = (uint32_t)key * 0x9E3779B1u & (uint32_t)(s->size - 1);
  while (s->keys[at] >= 0 && s->keys[at] != key) at = (at + 1) & (uint32_t)(s->size - 1);
  return (int32_t)at;
}

static int32_t store_keep(store_t *s, int32_t key, ahead_t *a, int64_t bytes)
{
  if (s->bytes + bytes > MOST_SHARED) return 0;
  if (2 * (s->used + 1) > s->size) {
    store_t old = *s;
    int32_t *keys = malloc((size_t)s->size * 2 * sizeof *keys);
    ahead_t **kept = malloc((size_t)s->size * 2 * sizeof *kept);
    if (!keys || !kept) { free(keys), free(kept); return 0; }
    s->size *= 2, s->keys = keys, s->kept = kept;
    memset(keys, -1, (size_t)s->size * sizeof *keys);
    for (int32_t k = 0; k < old.size; k++)
      if (old.keys[k] >= 0) {
        int32_t at = store_place(s, old.keys[k]);
        keys[at] = old.keys[k], kept[at] = old.kept[k];
      }
    free(old.keys), free(old.kept);
  }
  int32_t at = store_place(s, key);
  s->keys[at] = key, s->kept[at] = a, s->used++, s->bytes += bytes;
  return 1;
}

/* Stacks. */

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
  if (!grow_32((void **)&m->nodes, &m->room, m->used + 1, sizeof *m->nodes)) { m->failed = 1; return 0; }
  int32_t made = m->used++;
  m->nodes[made] = (node_t){what, count, parent};
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

void hagane_machine_end(machine_t *m)
{
  for (int32_t k = 0; m->ahead && k < m->states; k++)
    if (m->ahead[k]) {
      int32_t key = m->shared[k];
      int32_t at = key < 0 ? 0 : store_place(m->store, key);
      if (key < 0 || m->store->keys[at] != key || m->store->kept[at] != m->ahead[k]) ahead_free(m->ahead[k]);
    }
  free(m->nodes), free(m->table), free(m->work), free(m->out), free(m->exits), free(m->ahead);
  free(m->found), free(m->bits);
  free(m->places), free(m->place_table), free(m->threads), free(m);
}

/* The tables must outlive the machine, and so must the store. */
machine_t *hagane_machine(store_t *store, int32_t states, const int32_t *delta, const int32_t *starts,
                          const int32_t *first_call, const call_t *calls, const int32_t *shared,
                          const uint8_t *accepts, const uint8_t *begins, const uint8_t *nullable)
{
  machine_t *m = calloc(1, sizeof *m);
  if (!m) return 0;
  m->store = store, m->states = states, m->delta = delta, m->starts = starts, m->first_call = first_call;
  m->calls = calls, m->shared = shared, m->accepts = accepts, m->begins = begins, m->nullable = nullable;
  m->room = 1 << 8, m->table_size = 1 << 9, m->work_room = 256, m->out_room = 1 << 10;
  m->exits_room = 64, m->places_room = 64, m->place_table_size = 256, m->threads_room = 256;
  m->nodes = malloc((size_t)m->room * sizeof *m->nodes);
  m->table = malloc((size_t)m->table_size * sizeof *m->table);
  m->work = malloc((size_t)m->work_room * sizeof *m->work);
  m->out = malloc((size_t)m->out_room * sizeof *m->out);
  m->exits = malloc((size_t)m->exits_room * sizeof *m->exits);
  m->found_room = 64, m->found = malloc((size_t)m->found_room * sizeof *m->found);
  m->bits = calloc((size_t)store->words + 1, sizeof *m->bits);
  m->ahead = calloc((size_t)states + 1, sizeof *m->ahead);
  m->places = malloc((size_t)m->places_room * sizeof *m->places);
  m->place_table = malloc((size_t)m->place_table_size * sizeof *m->place_table);
  m->threads = malloc((size_t)m->threads_room * sizeof *m->threads);
  if (!m->nodes || !m->table || !m->work || !m->out || !m->exits || !m->found || !m->bits || !m->ahead || !m->places ||
      !m->place_table || !m->threads) {
    hagane_machine_end(m);
    return 0;
  }
  memset(m->table, -1, (size_t)m->table_size * sizeof *m->table);
  memset(m->place_table, -1, (size_t)m->place_table_size * sizeof *m->place_table);
  m->bottom = node(m, -1, -1, -1);
  return m;
}

/* Threads. */

/* Append a thread to the work of this step unless it is there. */
static int32_t add(machine_t *m, int32_t count, int32_t state, int32_t below)
{
  for (int32_t k = 0; k < count; k++)
    if (m->work[k].state == state && m->work[k].node == below) return count;
  if (!grow_32((void **)&m->work, &m->work_room, count + 1, sizeof *m->work)) { m->failed = 1; return count; }
  m->work[count] = (pair_t){state, below};
  return count + 1;
}

static int begins(const machine_t *m, int32_t rule, int byte)
{
  if (m->starts[rule] < 0) return 0;
  return byte >= 0 ? m->begins[(int64_t)rule * 256 + byte] : byte == ANY;
}

/* Where a repeating call stands between two repetitions: it may end, or begin one more. */
static int32_t between(machine_t *m, int32_t work, int32_t call, int32_t count, int32_t parent,
                       int byte)
{
  int32_t low = m->calls[call].low, high = m->calls[call].high, rule = m->calls[call].rule;
  if (count >= low || m->nullable[rule]) work = add(m, work, m->calls[call].to, parent);
  if ((high < 0 || count < high) && begins(m, rule, byte)) {
    int32_t next = high < 0 && count >= low ? count : count + 1;
    work = add(m, work, m->starts[rule], node(m, call, next, parent));
  }
  return work;
}

/* What follows when the rule above a node ends. */
static int32_t returned(machine_t *m, int32_t work, int32_t below, int byte)
{
  node_t up = m->nodes[below];
  return up.count < 0 ? add(m, work, up.what, up.parent)
                      : between(m, work, up.what, up.count, up.parent, byte);
}

/* Add to the work every thread that one of them becomes without reading; with a byte, only those calls
   that may begin with it. Returns how many there are; with `ends`, whether the text may end. */
static int32_t close(machine_t *m, int32_t work, int byte, int *ends)
{
  for (int32_t k = 0; k < work; k++) {
    int32_t state = m->work[k].state, below = m->work[k].node;
    for (int32_t call = m->first_call[state]; call < m->first_call[state + 1]; call++) {
      call_t c = m->calls[call];
      if (c.low == 1 && c.high == 1) {
        if (m->nullable[c.rule]) work = add(m, work, c.to, below);
        if (begins(m, c.rule, byte)) work = add(m, work, m->starts[c.rule], node(m, c.to, -1, below));
      } else {
        work = between(m, work, call, 0, below, byte);
      }
    }
    if (!m->accepts[state]) continue;
    if (below < 0) {
      if (ends) *ends = 1;
    } else if (below == m->bottom) {
      m->popped = 1;
    } else {
      work = returned(m, work, below, byte);
    }
  }
  return work;
}

static int32_t room_for(machine_t *m, int64_t needed)
{
  if (grow((void **)&m->out, &m->out_room, needed, sizeof *m->out)) return 1;
  m->failed = 1;
  return 0;
}

/* Whether nothing happens at a state but reading. */
static int only_reads(const machine_t *m, int32_t state)
{
  return !m->accepts[state] && m->first_call[state] == m->first_call[state + 1];
}

/* Write the closed threads of some of `out` to another place there; return how many. */
static int32_t closed(machine_t *m, int64_t from, int32_t count, int byte, int64_t to)
{
  if (!room_for(m, to + count)) return 0;
  if (count == 1 && only_reads(m, m->out[from].state)) {
    m->out[to] = m->out[from];
    return 1;
  }
  int32_t work = 0;
  for (int32_t k = 0; k < count; k++) work = add(m, work, m->out[from + k].state, m->out[from + k].node);
  work = close(m, work, byte, 0);
  if (!room_for(m, to + work)) return 0;
  memcpy(m->out + to, m->work, (size_t)work * sizeof *m->work);
  return work;
}

/* Write the threads that closed ones become by a byte; return how many. */
static int32_t read(machine_t *m, int64_t from, int32_t count, int byte, int64_t to)
{
  if (!room_for(m, to + count)) return 0;
  int32_t made = 0;
  for (int32_t k = 0; k < count; k++) {
    pair_t found = m->out[from + k];
    found.state = m->delta[(int64_t)found.state * 256 + byte];
    if (found.state < 0) continue;
    int32_t at = 0;
    while (at < made && (m->out[to + at].state != found.state || m->out[to + at].node != found.node)) at++;
    if (at == made) m->out[to + made++] = found;
  }
  return made;
}

/* Masks. */

static void set(uint32_t *bits, const trie_t *t, int32_t n)
{
  for (int32_t k = t->low[n]; k < t->end[n]; k++)
    bits[(uint32_t)t->ids[k] >> 5] |= (uint32_t)1 << (t->ids[k] & 31);
}

static void list(machine_t *m, const trie_t *t, int32_t n)
{
  int32_t low = t->low[n], count = t->end[n] - low;
  if (!count) return;
  if (!grow_32((void **)&m->found, &m->found_room, (int64_t)m->n_found + count, sizeof *m->found)) {
    m->failed = 1;
    return;
  }
  for (int32_t k = 0; k < count; k++) m->found[m->n_found++] = (uint32_t)t->ids[low + k];
}

static void walk(machine_t *m, const trie_t *t, int32_t n, int64_t from, int32_t count, uint32_t *bits);

static void walk_kid(machine_t *m, const trie_t *t, int32_t kid, int64_t from, int32_t count, uint32_t *bits)
{
  int64_t to = from + count;
  int32_t made = read(m, from, count, t->byte[kid], to);
  if (!made) return;
  if (bits) set(bits, t, kid);
  else list(m, t, kid);
  if (t->kid[kid] < t->kid[kid + 1]) walk(m, t, kid, to, made, bits);
}

/* Walk on from a node of a trie along closed threads. Without `bits`, tokens and exits are listed. */
static void walk_closed(machine_t *m, const trie_t *t, int32_t n, int64_t from, int32_t count, uint32_t *bits)
{
  int32_t low = t->kid[n], high = t->kid[n + 1];
  if (count == 1 && high - low > 32 && t == &m->store->trie && !n) {
    /* the root: of 256 bytes, a state reads few most often */
    const int32_t *row = m->delta + (int64_t)m->out[from].state * 256;
    for (int byte = 0; byte < 256 && !m->failed; byte++)
      if (row[byte] >= 0 && m->store->by_byte[byte]) walk_kid(m, t, m->store->by_byte[byte], from, count, bits);
    return;
  }
  for (int32_t k = low; k < high && !m->failed; k++) walk_kid(m, t, k, from, count, bits);
}

static void walk(machine_t *m, const trie_t *t, int32_t n, int64_t from, int32_t count, uint32_t *bits)
{
  m->popped = 0;
  int64_t to = from + count;
  int32_t made = closed(m, from, count, ANY, to);
  if (!bits && m->popped) {
    if (!grow_32((void **)&m->exits, &m->exits_room, m->n_exits + 1, sizeof *m->exits)) m->failed = 1;
    else m->exits[m->n_exits++] = n;
  }
  if (!m->failed) walk_closed(m, t, n, to, made, bits);
}

/* Whether a token that begins as a node does is not among some. */
static int is_left(const trie_t *t, int32_t n, const uint32_t *bits)
{
  for (int32_t k = t->low[n]; k < t->high[n]; k++)
    if (!(bits[(uint32_t)t->ids[k] >> 5] >> (t->ids[k] & 31) & 1)) return 1;
  return 0;
}

static int by_byte(const void *a, const void *b)
{
  const int32_t *x = a, *y = b;
  return x[0] != y[0] ? x[0] - y[0] : x[1] - y[1];
}

/* The rests behind some nodes of the main trie of tokens that are not among `bits`, as a trie; null if
   there are none. `plain` is set if they are too many. */
static trie_t *rests_of(machine_t *m, const uint32_t *bits, int32_t *plain, int64_t *bytes)
{
  const trie_t *t = &m->store->trie;
  trie_t *r = calloc(1, sizeof *r);
  int32_t room = 0, ids = 0, ids_room = 64;
  int64_t used = 0, sets_room = 256;
  int32_t *sets = malloc((size_t)sets_room * 2 * sizeof *sets); /* (byte, node of the main trie) */
  int32_t *first = 0, first_room = 0;
  if (!r || !sets || !trie_room(r, &room, 1)) goto failed;
  r->own = malloc((size_t)ids_room * sizeof *r->own);
  if (!r->own || !grow_32((void **)&first, &first_room, 64, sizeof *first)) goto failed;
  if (!grow((void **)&sets, &sets_room, m->n_exits, 2 * sizeof *sets)) goto failed;
  for (int32_t k = 0; k < m->n_exits; k++) sets[2 * used] = 0, sets[2 * used++ + 1] = m->exits[k];
  first[0] = 0, first[1] = (int32_t)used;
  r->nodes = 1, r->byte[0] = 0;
  for (int32_t n = 0; n < r->nodes; n++) { /* grows while it runs */
    if (used > MOST_RESTS) { *plain = 1; break; }
    int32_t low = first[n], high = first[n + 1];
    r->low[n] = ids, r->kid[n] = r->nodes;
    int64_t begin = used;
    for (int32_t k = low; k < high; k++) {
      int32_t from = sets[2 * k + 1];
      for (int32_t id = t->low[from]; n && id < t->end[from]; id++) {
        if (bits[(uint32_t)t->ids[id] >> 5] >> (t->ids[id] & 31) & 1) continue;
        if (!grow_32((void **)&r->own, &ids_room, ids + 1, sizeof *r->own)) goto failed;
        r->own[ids++] = t->ids[id];
      }
      for (int32_t kid = t->kid[from]; kid < t->kid[from + 1]; kid++) {
        if (!is_left(t, kid, bits)) continue;
        if (!grow((void **)&sets, &sets_room, used + 1, 2 * sizeof *sets)) goto failed;
        sets[2 * used] = t->byte[kid], sets[2 * used++ + 1] = kid;
      }
    }
    r->end[n] = r->high[n] = ids;
    if (high - low > 1) qsort(sets + 2 * begin, (size_t)(used - begin), 2 * sizeof *sets, by_byte);
    for (int64_t k = begin; k < used; k++) {
      if (k > begin && sets[2 * k] == sets[2 * (k - 1)]) continue;
      if (!trie_room(r, &room, r->nodes + 1)) goto failed;
      if (!grow_32((void **)&first, &first_room, r->nodes + 2, sizeof *first)) goto failed;
      r->byte[r->nodes] = (uint8_t)sets[2 * k];
      first[r->nodes++] = (int32_t)k;
    }
    first[r->nodes] = (int32_t)used;
  }
  r->kid[r->nodes] = r->nodes;
  r->ids = r->own;
  free(sets), free(first);
  if (*plain || r->nodes == 1) {
    trie_free(r), free(r);
    return 0;
  }
  *bytes += (int64_t)r->nodes * 17 + (int64_t)ids * 4;
  return r;
failed:
  m->failed = 1;
  free(sets), free(first);
  if (r) trie_free(r), free(r);
  return 0;
}

/* What is known of the tokens that a state reads first. */
static ahead_t *ahead_of(machine_t *m, int32_t state, int64_t from)
{
  if (m->ahead[state]) return m->ahead[state];
  store_t *s = m->store;
  int32_t key = m->shared[state];
  if (key >= 0) {
    int32_t at = store_place(s, key);
    if (s->keys[at] == key) return m->ahead[state] = s->kept[at];
  }
  ahead_t *a = calloc(1, sizeof *a);
  if (!a || !room_for(m, from + 1)) goto failed;
  m->n_exits = m->n_found = 0;
  m->out[from] = (pair_t){state, m->bottom};
  walk_closed(m, &s->trie, 0, from, 1, 0);
  if (m->failed) goto failed;
  int64_t bytes = sizeof *a;
  if (m->n_exits) {
    for (int32_t k = 0; k < m->n_found; k++) m->bits[m->found[k] >> 5] |= (uint32_t)1 << (m->found[k] & 31);
    a->rests = rests_of(m, m->bits, &a->plain, &bytes);
    for (int32_t k = 0; k < m->n_found; k++) m->bits[m->found[k] >> 5] = 0;
    if (m->failed) goto failed;
  }
  int dense = m->n_found >= s->words / 4;
  int64_t size = dense ? s->words : m->n_found;
  a->count = dense ? -1 : m->n_found;
  a->tokens = calloc((size_t)size + 1, sizeof *a->tokens);
  if (!a->tokens) goto failed;
  if (dense)
    for (int32_t k = 0; k < m->n_found; k++)
      a->tokens[m->found[k] >> 5] |= (uint32_t)1 << (m->found[k] & 31);
  else if (size)
    memcpy(a->tokens, m->found, (size_t)size * sizeof *a->tokens);
  bytes += size * 4;
  if (key >= 0) store_keep(s, key, a, bytes);
  return m->ahead[state] = a;
failed:
  m->failed = 1;
  if (a) ahead_free(a);
  return 0;
}

/* Write the bits of the tokens that may follow a place. Returns whether the text may end there, -1
   without memory, -2 if there is no such place. */
int32_t hagane_mask(machine_t *m, int32_t place, uint32_t *bits)
{
  if (place < 0 || place >= m->n_places) return -2;
  int64_t words = m->store->words;
  place_t p = m->places[place];
  if (!room_for(m, p.count)) return -1;
  memcpy(m->out, m->threads + p.from, (size_t)p.count * sizeof *m->out);
  int32_t many = closed(m, 0, p.count, ANY, p.count);
  int64_t from = p.count, top = from + many;
  int filled = 0;
  for (int32_t k = 0; k < many && !m->failed; k++) {
    pair_t one = m->out[from + k];
    ahead_t *a = ahead_of(m, one.state, top);
    if (!a) return -1;
    if (a->count < 0) {
      if (!filled) memcpy(bits, a->tokens, (size_t)words * sizeof *bits);
      else for (int64_t w = 0; w < words; w++) bits[w] |= a->tokens[w];
      filled = 1;
    } else {
      if (!filled) memset(bits, 0, (size_t)words * sizeof *bits);
      filled = 1;
      for (int32_t t = 0; t < a->count; t++) bits[a->tokens[t] >> 5] |= (uint32_t)1 << (a->tokens[t] & 31);
    }
    if (one.node < 0 || !(a->rests || a->plain)) continue;
    if (!room_for(m, top + 1)) return -1;
    if (a->plain) {
      m->out[top] = one;
      walk_closed(m, &m->store->trie, 0, top, 1, bits);
      continue;
    }
    int32_t work = returned(m, 0, one.node, ANY);
    work = close(m, work, ANY, 0);
    if (!room_for(m, top + work)) return -1;
    memcpy(m->out + top, m->work, (size_t)work * sizeof *m->work);
    walk_closed(m, a->rests, 0, top, work, bits);
  }
  if (!filled) memset(bits, 0, (size_t)words * sizeof *bits);
  return m->failed ? -1 : p.ends;
}

/* Places. */

static int by_thread(const void *a, const void *b)
{
  const pair_t *x = a, *y = b;
  if (x->state != y->state) return x->state < y->state ? -1 : 1;
  return x->node < y->node ? -1 : x->node > y->node;
}

static uint32_t place_hash(const pair_t *pairs, int32_t count)
{
  uint32_t h = (uint32_t)count;
  for (int32_t k = 0; k < count; k++) h = hash((int32_t)h, pairs[k].state, pairs[k].node);
  return h;
}

/* The number of the place of some threads of `out`; -1 for none, -2 without memory. */
static int32_t place_of(machine_t *m, int64_t from, int32_t count)
{
  if (m->failed) return -2;
  if (!count) return -1;
  pair_t *pairs = m->out + from;
  if (count > 1) qsort(pairs, (size_t)count, sizeof *pairs, by_thread);
  uint32_t at = place_hash(pairs, count) & (uint32_t)(m->place_table_size - 1);
  for (; m->place_table[at] >= 0; at = (at + 1) & (uint32_t)(m->place_table_size - 1)) {
    const place_t *p = &m->places[m->place_table[at]];
    if (p->count == count && !memcmp(m->threads + p->from, pairs, (size_t)count * sizeof *pairs))
      return m->place_table[at];
  }
  if (!grow_32((void **)&m->places, &m->places_room, m->n_places + 1, sizeof *m->places) ||
      !grow((void **)&m->threads, &m->threads_room, m->n_threads + count, sizeof *m->threads))
    return -2;
  int ends = 0;
  int32_t work = 0;
  for (int32_t k = 0; k < count; k++) work = add(m, work, pairs[k].state, pairs[k].node);
  close(m, work, NONE, &ends);
  int32_t made = m->n_places++;
  m->places[made] = (place_t){m->n_threads, count, ends};
  memcpy(m->threads + m->n_threads, pairs, (size_t)count * sizeof *pairs);
  m->n_threads += count;
  m->place_table[at] = made;
  if (2 * m->n_places > m->place_table_size) {
    int32_t size = 2 * m->place_table_size, *table = malloc((size_t)size * sizeof *table);
    if (!table) return -2;
    memset(table, -1, (size_t)size * sizeof *table);
    for (int32_t k = 0; k < m->n_places; k++) {
      uint32_t to = place_hash(m->threads + m->places[k].from, m->places[k].count) & (uint32_t)(size - 1);
      while (table[to] >= 0) to = (to + 1) & (uint32_t)(size - 1);
      table[to] = k;
    }
    free(m->place_table);
    m->place_table = table, m->place_table_size = size;
  }
  return m->failed ? -2 : made;
}

/* The place before a text of a rule; -1 if there is none, -2 without memory. */
int32_t hagane_start(machine_t *m, int32_t rule)
{
  if (m->starts[rule] < 0) return -1;
  if (!room_for(m, 1)) return -2;
  m->out[0] = (pair_t){m->starts[rule], -1};
  return place_of(m, 0, 1);
}

/* The place after some bytes; -1 if no text goes on like that, -2 without memory. */
int32_t hagane_advance(machine_t *m, int32_t place, const uint8_t *bytes, int64_t length)
{
  place_t p = m->places[place];
  int32_t count = p.count;
  if (!room_for(m, count)) return -2;
  memcpy(m->out, m->threads + p.from, (size_t)count * sizeof *m->out);
  for (int64_t k = 0; k < length && count > 0 && !m->failed; k++) {
    int32_t many = closed(m, 0, count, bytes[k], count);
    int64_t to = count + many;
    int32_t made = read(m, count, many, bytes[k], to);
    memmove(m->out, m->out + to, (size_t)made * sizeof *m->out);
    count = made;
  }
  return place_of(m, 0, count);
}

/* The place after a token; -1 if it is not allowed or there is no such place, -2 without memory. */
int32_t hagane_take(machine_t *m, int32_t place, int32_t token)
{
  const store_t *s = m->store;
  if (place < 0 || place >= m->n_places || token < 0 || token >= s->tokens || s->rank[token] < 0) return -1;
  int32_t at = s->rank[token];
  return hagane_advance(m, place, s->data + s->offsets[at], s->offsets[at + 1] - s->offsets[at]);
}

int32_t hagane_ends(const machine_t *m, int32_t place) { return m->places[place].ends; }
int32_t hagane_places(const machine_t *m) { return m->n_places; }
