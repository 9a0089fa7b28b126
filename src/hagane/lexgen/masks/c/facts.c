/* Which rules match a text, which the empty one, and with which bytes their texts begin; states that lead
   to no end are left out. */

/* Note of each state of a unit whether it leads to an end; `ends` says of which rules calls end. Returns
   whether the first one does. */
static int find_alive(const block_t *b, int32_t unit, const uint8_t *ends, uint8_t *alive)
{
  int32_t low = b->first_state[unit], high = b->first_state[unit + 1];
  memcpy(alive + low, b->accepts + low, (size_t)(high - low));
  for (int changed = 1; changed;) { /* most edges lead to later states, so that two rounds are usual */
    changed = 0;
    for (int32_t state = high - 1; state >= low; state--) {
      if (alive[state]) continue;
      int leads = 0;
      for (int32_t k = b->first_span[state]; k < b->first_span[state + 1] && !leads; k++)
        leads = alive[b->spans[k].to];
      for (int32_t c = b->first_call[state]; c < b->first_call[state + 1] && !leads; c++)
        leads = alive[b->calls[c].to] && (b->calls[c].low == 0 || ends[b->calls[c].rule]);
      if (leads) alive[state] = 1, changed = 1;
    }
  }
  return low < high && alive[low];
}

/* Leave out the states that are not alive, and calls of rules that match no text. */
static int keep_alive(block_t *b, const uint8_t *ends, const uint8_t *alive)
{
  int32_t *names = malloc(((size_t)b->states + 1) * sizeof *names);
  if (!names) return 0;
  int32_t kept = 0;
  for (int32_t unit = 0; unit < b->units; unit++) {
    int32_t low = b->first_state[unit], high = b->first_state[unit + 1];
    for (int32_t state = low; state < high; state++) names[state] = alive[low] && alive[state] ? kept++ : -1;
  }
  int32_t n_spans = 0, n_calls = 0;
  for (int32_t state = 0; state < b->states; state++) {
    int32_t name = names[state];
    int32_t span = b->first_span[state], span_end = b->first_span[state + 1];
    int32_t call = b->first_call[state], call_end = b->first_call[state + 1];
    if (name < 0) continue;
    b->accepts[name] = b->accepts[state]; /* a name is never greater than its state */
    b->first_span[name] = n_spans, b->first_call[name] = n_calls;
    for (; span < span_end; span++) {
      span_t one = b->spans[span];
      if ((one.to = names[one.to]) >= 0) b->spans[n_spans++] = one;
    }
    for (; call < call_end; call++) {
      call_t one = b->calls[call];
      if ((one.to = names[one.to]) < 0 || (one.low && !ends[one.rule])) continue;
      if (!ends[one.rule]) one.high = 0;
      b->calls[n_calls++] = one;
    }
  }
  b->first_span[kept] = n_spans, b->first_call[kept] = n_calls;
  b->n_spans = n_spans, b->n_calls = n_calls;
  for (int32_t unit = 0; unit < b->units; unit++) {
    int32_t first = b->first_state[unit];
    b->first_state[unit] = first < b->first_state[unit + 1] ? names[first] : -1;
  }
  b->states = kept;
  free(names);
  return 1;
}

/* The states that the first one of a unit becomes without text, in b->stack. */
static int32_t leading(block_t *b, int32_t unit)
{
  if (b->first_state[unit] < 0) return 0;
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

static int find_ends(block_t *b, const int32_t *rules, uint8_t *ends)
{
  uint8_t *alive = malloc((size_t)b->states + 1);
  if (!alive) return 0;
  for (int changed = 1; changed;) {
    changed = 0;
    for (int32_t u = b->units - 1; u >= 0; u--)
      if (!ends[rules[u]] && find_alive(b, u, ends, alive)) ends[rules[u]] = 1, changed = 1;
  }
  int whole = 1, fine = 1;
  for (int32_t u = 0; u < b->units; u++) find_alive(b, u, ends, alive), whole &= ends[rules[u]];
  for (int32_t state = 0; state < b->states; state++) whole &= alive[state];
  for (int64_t c = 0; c < b->n_calls; c++) whole &= ends[b->calls[c].rule];
  if (!whole) fine = keep_alive(b, ends, alive);
  free(alive);
  return fine;
}

static void find_nullable(block_t *b, const int32_t *rules)
{
  for (int changed = 1; changed;) {
    changed = 0;
    for (int32_t u = b->units - 1; u >= 0; u--) {
      if (b->nullable[rules[u]]) continue;
      int32_t count = leading(b, u);
      for (int32_t k = 0; k < count; k++)
        if (b->accepts[b->stack[k]]) { b->nullable[rules[u]] = changed = 1; break; }
    }
  }
}

/* Rules whose callees are done, again and again. Returns how many are left: they call themselves first. */
static int32_t find_begins(block_t *b, const int32_t *rules, uint8_t *waits)
{
  int32_t left = b->units;
  for (int32_t u = 0; u < b->units; u++) waits[rules[u]] = 1;
  for (int changed = 1; changed;) {
    changed = 0;
    for (int32_t u = b->units - 1; u >= 0; u--) {
      uint8_t *mine = b->begins + (int64_t)rules[u] * 256;
      if (!waits[rules[u]]) continue;
      int32_t count = leading(b, u), ready = 1;
      for (int32_t k = 0; k < count && ready; k++)
        for (int32_t c = b->first_call[b->stack[k]]; c < b->first_call[b->stack[k] + 1]; c++)
          if (b->calls[c].high && waits[b->calls[c].rule]) ready = 0;
      if (!ready) continue;
      for (int32_t k = 0; k < count; k++) {
        int32_t state = b->stack[k];
        for (int32_t s = b->first_span[state]; s < b->first_span[state + 1]; s++)
          memset(mine + b->spans[s].low, 1, (size_t)(b->spans[s].high - b->spans[s].low + 1));
        for (int32_t c = b->first_call[state]; c < b->first_call[state + 1]; c++)
          if (b->calls[c].high)
            for (int byte = 0; byte < 256; byte++) mine[byte] |= b->begins[(int64_t)b->calls[c].rule * 256 + byte];
      }
      waits[rules[u]] = 0, left--, changed = 1;
    }
  }
  return left;
}

/* Automata of some rules. `known` has the facts of all rules, so far those of modules: whether a text
   matches, whether the empty one does, and the first bytes, 258 numbers a rule. Returns null where a rule
   calls itself before any text, with too many states, or without memory. */
block_t *hagane_block(int32_t states, const edge_t *edges, int32_t n_edges, const free_t *moves,
                      int32_t n_moves, const emitted_t *calls, int32_t n_calls, const int32_t *units,
                      int32_t n_units, const uint8_t *known, int32_t rules, const uint8_t *usable,
                      int32_t most)
{
  block_t *b = calloc(1, sizeof *b);
  source_t from = {.edges = edges, .moves = moves, .calls = calls};
  uint8_t *ends = calloc((size_t)rules + 1, 1);
  int32_t *numbers = malloc(((size_t)n_units + 1) * sizeof *numbers);
  int64_t most_set = (int64_t)states + n_edges + n_calls + 64;
  int fine = 0;
  from.matters = calloc((size_t)states + 1, 1);
  if (!b || !from.matters || !ends || !numbers) goto out;
  if (!sort_edges(&from.edge, states, &edges->from, 4, n_edges) ||
      !sort_edges(&from.move, states, &moves->from, 2, n_moves) ||
      !sort_edges(&from.call, states, &calls->from, 5, n_calls))
    goto out;
  b->units = n_units, b->table_size = 256;
  b->stack = malloc((size_t)most_set * sizeof *b->stack), b->set = malloc((size_t)most_set * sizeof *b->set);
  b->stamp = calloc((size_t)states + 1, sizeof *b->stamp);
  b->nullable = calloc((size_t)rules + 1, 1), b->begins = calloc((size_t)rules * 256 + 1, 1);
  b->first_state = malloc(((size_t)n_units + 1) * sizeof *b->first_state);
  b->table = malloc((size_t)b->table_size * sizeof *b->table);
  if (!b->stack || !b->set || !b->stamp || !b->nullable || !b->begins || !b->first_state || !b->table ||
      !GROW(b->first, b->first_room, 64) || !GROW(b->first_span, b->first_span_room, 64) ||
      !GROW(b->first_call, b->first_call_room, 64))
    goto out;
  memset(b->table, -1, (size_t)b->table_size * sizeof *b->table);
  b->first[0] = b->first_span[0] = b->first_call[0] = 0;
  for (int32_t s = 0; s < states; s++)
    from.matters[s] = from.edge.first[s] < from.edge.first[s + 1] || from.call.first[s] < from.call.first[s + 1];
  for (int32_t u = 0; u < n_units; u++) from.matters[units[3 * u + 2]] = 1, numbers[u] = units[3 * u];
  for (int32_t r = 0; r < rules; r++) {
    ends[r] = known[258 * r], b->nullable[r] = known[258 * r + 1];
    memcpy(b->begins + 256 * r, known + 258 * r + 2, 256);
  }
  for (int32_t u = 0; u < n_units; u++) {
    b->first_state[u] = b->states;
    if (!subsets_of(b, units[3 * u + 1], units[3 * u + 2], &from, usable, most)) goto out;
  }
  b->first_state[n_units] = b->states;
  int32_t *wider = realloc(b->stack, ((size_t)b->states + 64) * sizeof *wider);
  if (!wider) goto out;
  b->stack = wider;
  if (!find_ends(b, numbers, ends)) goto out;
  find_nullable(b, numbers);
  memset(ends, 0, (size_t)rules);
  fine = !find_begins(b, numbers, ends);
out:
  free(from.edge.first), free(from.edge.order), free(from.move.first), free(from.move.order);
  free(from.call.first), free(from.call.order), free(from.matters), free(ends), free(numbers);
  if (fine) return b;
  if (b) hagane_block_end(b);
  return 0;
}

/* Sizes and addresses: states, spans, calls, then first_span, spans, accepts, first_call, calls, first_state,
   nullable, begins. */
void hagane_block_parts(const block_t *b, int64_t *parts)
{
  const void *lists[] = {b->first_span, b->spans, b->accepts, b->first_call, b->calls, b->first_state, b->nullable,
                         b->begins};
  parts[0] = b->states, parts[1] = b->n_spans, parts[2] = b->n_calls;
  for (int k = 0; k < 8; k++) parts[3 + k] = (int64_t)(intptr_t)lists[k];
}
