/* Masks.

   The tokens that stay within a state's rule, and within the rules that it calls, are the same whatever
   lies below it. They are found once for a state, by one walk over a trie of the vocabulary (ahead_t); so
   is a small trie of the rests of those tokens that leave the rule. The mask of a place joins those of its
   threads, and walks the small tries along the real stacks. Rules that stand alike in many grammars share
   what was found (store_t). */

#define MOST_RESTS 60000

static void set(uint32_t *bits, const trie_t *t, int32_t n)
{
  for (int32_t k = t->low[n]; k < t->end[n]; k++)
    bits[(uint32_t)t->ids[k] >> 5] |= (uint32_t)1 << (t->ids[k] & 31);
}

static void list(machine_t *m, const trie_t *t, int32_t n)
{
  int32_t low = t->low[n], count = t->end[n] - low;
  if (!count) return;
  if (!GROW(m->found, m->found_room, (int64_t)m->n_found + count)) {
    m->failed = 1;
    return;
  }
  for (int32_t k = 0; k < count; k++) m->found[m->n_found++] = (uint32_t)t->ids[low + k];
}

static void walk(machine_t *m, const trie_t *t, int32_t n, int64_t from, int32_t count, uint32_t *bits);

static void walk_kid(machine_t *m, const trie_t *t, int32_t kid, int64_t from, int32_t count, uint32_t *bits)
{
  int64_t to = from + count;
  int32_t made = read_byte(m, from, count, t->byte[kid], to);
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
    int32_t state = m->out[from].state;
    for (int32_t s = m->first_span[state]; s < m->first_span[state + 1]; s++)
      for (int byte = m->spans[s].low; byte <= m->spans[s].high && !m->failed; byte++)
        if (m->store->by_byte[byte]) walk_kid(m, t, m->store->by_byte[byte], from, count, bits);
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
    if (!GROW(m->exits, m->exits_room, m->n_exits + 1)) m->failed = 1;
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
  int32_t room = 0, ids = 0;
  int64_t used = 0, sets_room = 256, ids_room = 64, first_room = 0;
  int32_t *sets = malloc((size_t)sets_room * 2 * sizeof *sets); /* (byte, node of the main trie) */
  int32_t *first = 0;
  if (!r || !sets || !trie_room(r, &room, 1)) goto failed;
  r->own = malloc((size_t)ids_room * sizeof *r->own);
  if (!r->own || !GROW(first, first_room, 64)) goto failed;
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
        if (!GROW(r->own, ids_room, ids + 1)) goto failed;
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
      if (!GROW(first, first_room, r->nodes + 2)) goto failed;
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
    work = close_over(m, work, ANY, 0);
    if (!room_for(m, top + work)) return -1;
    memcpy(m->out + top, m->work, (size_t)work * sizeof *m->work);
    walk_closed(m, a->rests, 0, top, work, bits);
  }
  if (!filled) memset(bits, 0, (size_t)words * sizeof *bits);
  return m->failed ? -1 : p.ends;
}
