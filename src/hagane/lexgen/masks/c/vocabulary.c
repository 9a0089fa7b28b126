/* A vocabulary as a trie, and what is known of states that many grammars have. */

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

#define MOST_SHARED (64 << 20)

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
