/* Threads: what they become by calls, by ends of rules, and by a byte. */

#define ANY (-2)    /* close over every byte that may follow */
#define NONE (-1)   /* close over what reads nothing */

/* Append a thread to the work of this step unless it is there. */
static int32_t add(machine_t *m, int32_t count, int32_t state, int32_t below)
{
  for (int32_t k = 0; k < count; k++)
    if (m->work[k].state == state && m->work[k].node == below) return count;
  if (!GROW(m->work, m->work_room, count + 1)) { m->failed = 1; return count; }
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
static int32_t close_over(machine_t *m, int32_t work, int byte, int *ends)
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
  if (GROW(m->out, m->out_room, needed)) return 1;
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
  work = close_over(m, work, byte, 0);
  if (!room_for(m, to + work)) return 0;
  memcpy(m->out + to, m->work, (size_t)work * sizeof *m->work);
  return work;
}

/* Write the threads that closed ones become by a byte; return how many. */
static int32_t read_byte(machine_t *m, int64_t from, int32_t count, int byte, int64_t to)
{
  if (!room_for(m, to + count)) return 0;
  int32_t made = 0;
  for (int32_t k = 0; k < count; k++) {
    pair_t found = m->out[from + k];
    int32_t span = m->first_span[found.state];
    found.state = after_byte(m->spans + span, m->first_span[found.state + 1] - span, byte);
    if (found.state < 0) continue;
    int32_t at = 0;
    while (at < made && (m->out[to + at].state != found.state || m->out[to + at].node != found.node)) at++;
    if (at == made) m->out[to + made++] = found;
  }
  return made;
}
