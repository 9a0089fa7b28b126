/* Places of texts: sets of threads, numbered as texts reach them. */

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
  if (!GROW(m->places, m->places_room, m->n_places + 1) ||
      !GROW(m->threads, m->threads_room, m->n_threads + count))
    return -2;
  int ends = 0;
  int32_t work = 0;
  for (int32_t k = 0; k < count; k++) work = add(m, work, pairs[k].state, pairs[k].node);
  close_over(m, work, NONE, &ends);
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
    int32_t made = read_byte(m, count, many, bytes[k], to);
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
