/* The machine: rules, stacks, what was found of states, places.

   A thread is a pair: a state of a rule, and a node, the stack below it (-1: none). Equal stacks are
   one node. A node is a state to return to, or, where count >= 0, a call under way that repeats: the
   call's number, and how many repetitions have begun. A place is a set of threads, numbered. */

typedef struct { int32_t what, count, parent; } node_t;
typedef struct { int32_t state, node; } pair_t;
typedef struct { int64_t from; int32_t count, ends; } place_t;

typedef struct {
  const int32_t *first_span, *starts, *first_call, *shared;
  const span_t *spans;
  const call_t *calls;
  const uint8_t *accepts, *begins, *nullable;
  int32_t states;
  store_t *store;
  node_t *nodes;
  int32_t *table, used, table_size;
  int64_t room;
  pair_t *work;     /* threads of one step, each looked at once */
  int64_t work_room;
  pair_t *out;      /* of all depths of a walk */
  int64_t out_room;
  int32_t bottom;   /* the node below a state whose tokens are looked ahead at */
  int32_t popped;   /* whether it was returned to */
  uint32_t *found;  /* tokens of a state that is looked ahead at, each once */
  int32_t n_found;
  int64_t found_room;
  uint32_t *bits;   /* all clear between uses */
  int32_t *exits;   /* nodes of the main trie at which it was */
  int32_t n_exits;
  int64_t exits_room;
  int32_t failed;   /* no memory */
  ahead_t **ahead;  /* by state; those that are not shared are the machine's own */
  place_t *places;
  int32_t n_places, *place_table, place_table_size;
  int64_t places_room;
  pair_t *threads;  /* of all places */
  int64_t n_threads, threads_room;
} machine_t;

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
  if (!GROW(m->nodes, m->room, m->used + 1)) { m->failed = 1; return 0; }
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
machine_t *hagane_machine(store_t *store, int32_t states, const int32_t *first_span, const span_t *spans,
                          const int32_t *starts, const int32_t *first_call, const call_t *calls, const int32_t *shared,
                          const uint8_t *accepts, const uint8_t *begins, const uint8_t *nullable)
{
  machine_t *m = calloc(1, sizeof *m);
  if (!m) return 0;
  m->store = store, m->states = states, m->first_span = first_span, m->spans = spans;
  m->starts = starts, m->first_call = first_call;
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
