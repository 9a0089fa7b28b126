/* Runs of a circuit whose cycle is the function `evaluate` below the marked place.
 *
 * A row is ROW words of inputs, a state STATE words, the observations of a cycle OBSERVED words, of
 * which the first FLAGS hold truth values. `ones` and `zeros` say which observed bits were 1 or 0.
 * An asynchronous reset that is active in a row acts before the clock does: the function `strike`.
 */
#include <string.h>
typedef unsigned long long u64;

static u64 extended(u64 a, int width) {
  return width >= 64 ? a : (u64)((long long)(a << (64 - width)) >> (64 - width));
}
static u64 sdiv(u64 a, u64 b) {
  u64 x = a >> 63 ? 0 - a : a, y = b >> 63 ? 0 - b : b;
  if (!b) return 0;
  return (a ^ b) >> 63 ? 0 - x / y : x / y;
}
static u64 srem(u64 a, u64 b) {
  u64 x = a >> 63 ? 0 - a : a, y = b >> 63 ? 0 - b : b;
  if (!b) return 0;
  return a >> 63 ? 0 - x % y : x % y;
}

/* Numbers of several words, the lowest first. */
static int w_count(int width) { return (width + 63) / 64; }
static void w_zero(u64 *a, int n) { memset(a, 0, (size_t)n * 8); }
static void w_trim(u64 *a, int width) {
  if (width % 64) a[w_count(width) - 1] &= (1ULL << width % 64) - 1;
}
static u64 w_less(const u64 *a, const u64 *b, int n) {
  while (n--)
    if (a[n] != b[n]) return a[n] < b[n];
  return 0;
}
static u64 w_bit(const u64 *a, int at) { return a[at / 64] >> at % 64 & 1; }
static u64 w_signed_less(const u64 *a, const u64 *b, int width) {
  u64 x = w_bit(a, width - 1), y = w_bit(b, width - 1);
  return x != y ? x : w_less(a, b, w_count(width));
}
static void w_put(u64 *to, int at, const u64 *from, int width) {
  for (int k = 0; k < w_count(width); k++) {
    int left = width - 64 * k, place = at + 64 * k;
    u64 part = left < 64 ? from[k] & ((1ULL << left) - 1) : from[k];
    to[place / 64] |= part << place % 64;
    if (place % 64 && place % 64 + (left < 64 ? left : 64) > 64)
      to[place / 64 + 1] |= part >> (64 - place % 64);
  }
}
static void w_get(u64 *to, const u64 *from, int low, int width) {
  for (int k = 0; k < w_count(width); k++) {
    int place = low + 64 * k, left = width - 64 * k;
    u64 part = from[place / 64] >> place % 64;
    if (place % 64 && place % 64 + (left < 64 ? left : 64) > 64)
      part |= from[place / 64 + 1] << (64 - place % 64);
    to[k] = part;
  }
  w_trim(to, width);
}
static void w_extend(u64 *to, int width, const u64 *from, int inner) {
  int n = w_count(width), m = w_count(inner);
  u64 fill = w_bit(from, inner - 1) ? ~0ULL : 0;
  for (int k = 0; k < n; k++) to[k] = k < m ? from[k] : fill;
  if (fill && inner % 64) to[m - 1] |= ~0ULL << inner % 64;
  w_trim(to, width);
}
static void w_add(u64 *to, const u64 *a, const u64 *b, int width) {
  u64 carry = 0;
  for (int k = 0; k < w_count(width); k++) {
    u64 sum = a[k] + carry;
    carry = sum < carry;
    sum += b[k];
    carry += sum < b[k];
    to[k] = sum;
  }
  w_trim(to, width);
}
static void w_sub(u64 *to, const u64 *a, const u64 *b, int width) {
  u64 borrow = 0;
  for (int k = 0; k < w_count(width); k++) {
    u64 x = a[k], y = b[k], less = x < y || (x == y && borrow);
    to[k] = x - y - borrow;
    borrow = less;
  }
  w_trim(to, width);
}
#define MOST 4096
static void w_mul(u64 *to, const u64 *a, const u64 *b, int width) {
  int n = 2 * w_count(width);
  unsigned x[MOST], y[MOST], r[MOST];
  memset(r, 0, sizeof(unsigned) * (size_t)n);
  for (int k = 0; k < n; k++) {
    x[k] = (unsigned)(a[k / 2] >> (k % 2 * 32));
    y[k] = (unsigned)(b[k / 2] >> (k % 2 * 32));
  }
  for (int i = 0; i < n; i++) {
    u64 carry = 0;
    for (int j = 0; i + j < n; j++) {
      u64 sum = (u64)x[i] * y[j] + r[i + j] + carry;
      r[i + j] = (unsigned)sum;
      carry = sum >> 32;
    }
  }
  for (int k = 0; k < n / 2; k++) to[k] = r[2 * k] | (u64)r[2 * k + 1] << 32;
  w_trim(to, width);
}
static void w_divide(u64 *quotient, u64 *rest, const u64 *a, const u64 *b, int width) {
  int n = w_count(width), any = 0;
  w_zero(quotient, n);
  w_zero(rest, n);
  for (int k = 0; k < n; k++) any |= b[k] != 0;
  if (!any) return;
  for (int at = width - 1; at >= 0; at--) {
    u64 out = rest[n - 1] >> 63;
    for (int k = n - 1; k > 0; k--) rest[k] = rest[k] << 1 | rest[k - 1] >> 63;
    rest[0] = rest[0] << 1 | w_bit(a, at);
    if (out || !w_less(rest, b, n)) {
      u64 lent[MOST / 2];
      memcpy(lent, rest, (size_t)n * 8);
      w_sub(rest, lent, b, n * 64);
      quotient[at / 64] |= 1ULL << at % 64;
    }
  }
}
static void w_udiv(u64 *to, const u64 *a, const u64 *b, int width) {
  u64 rest[MOST / 2];
  w_divide(to, rest, a, b, width);
}
static void w_urem(u64 *to, const u64 *a, const u64 *b, int width) {
  u64 quotient[MOST / 2];
  w_divide(quotient, to, a, b, width);
}
static void w_size(u64 *to, const u64 *a, int width) {
  static const u64 none[MOST / 2];
  if (w_bit(a, width - 1)) w_sub(to, none, a, width);
  else memcpy(to, a, (size_t)w_count(width) * 8);
}
static void w_signed(u64 *to, const u64 *a, const u64 *b, int width, int want_rest) {
  u64 x[MOST / 2], y[MOST / 2], quotient[MOST / 2], rest[MOST / 2];
  static const u64 none[MOST / 2];
  u64 p = w_bit(a, width - 1), q = w_bit(b, width - 1);
  w_size(x, a, width);
  w_size(y, b, width);
  w_divide(quotient, rest, x, y, width);
  if (want_rest ? p : p ^ q) w_sub(to, none, want_rest ? rest : quotient, width);
  else memcpy(to, want_rest ? rest : quotient, (size_t)w_count(width) * 8);
}
static void w_sdiv(u64 *to, const u64 *a, const u64 *b, int width) { w_signed(to, a, b, width, 0); }
static void w_srem(u64 *to, const u64 *a, const u64 *b, int width) { w_signed(to, a, b, width, 1); }
static u64 w_small(const u64 *a, int n) {
  while (--n)
    if (a[n]) return ~0ULL;
  return a[0];
}
static void w_shl(u64 *to, const u64 *a, int width, u64 amount) {
  w_zero(to, w_count(width));
  if (amount >= (u64)width) return;
  u64 kept[MOST / 2];
  w_get(kept, a, 0, width - (int)amount);
  w_put(to, (int)amount, kept, width - (int)amount);
}
static void w_lshr(u64 *to, const u64 *a, int width, u64 amount) {
  w_zero(to, w_count(width));
  if (amount < (u64)width) w_get(to, a, (int)amount, width - (int)amount);
}
static void w_ashr(u64 *to, const u64 *a, int width, u64 amount) {
  u64 kept[MOST / 2];
  if (amount > (u64)width - 1) amount = (u64)width - 1;
  w_get(kept, a, (int)amount, width - (int)amount);
  w_extend(to, width, kept, width - (int)amount);
}

/*EVALUATE*/

typedef struct {
  int at, width;             /* the first word in a row, and the bits */
  int reset;                 /* the level that resets, -1 where it is none */
  int asynchronous;
  int patterns, count;       /* values that the circuit compares with: the first, how many */
} Input;

static u64 mixed(u64 *state) {
  u64 z = *state += 0x9e3779b97f4a7c15ULL;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
  return z ^ z >> 31;
}

static int resets(const Input *inputs, int count, const u64 *row) {
  for (int i = 0; i < count; i++)
    if (inputs[i].asynchronous && (int)row[inputs[i].at] == inputs[i].reset) return 1;
  return 0;
}
/* One row: the state moves on, and the observations lie in `seen`. */
static void cycle(const Input *inputs, int count, const u64 *row, u64 *state, u64 *seen) {
  u64 next[STATE];
  if (resets(inputs, count, row)) {
    strike(row, state, next, seen);
    memcpy(state, next, sizeof next);
  }
  evaluate(row, state, next, seen);
  memcpy(state, next, sizeof next);
}

void hagane_advance(const u64 *row, u64 *state) {
  u64 next[STATE], seen[OBSERVED];
  evaluate(row, state, next, seen);
  memcpy(state, next, sizeof next);
}
void hagane_run(const Input *inputs, int count, const u64 *rows, u64 n, u64 *state, u64 *ones,
                u64 *zeros) {
  u64 seen[OBSERVED];
  for (u64 r = 0; r < n; r++) {
    cycle(inputs, count, rows + r * ROW, state, seen);
    for (int k = 0; k < OBSERVED; k++) ones[k] |= seen[k], zeros[k] |= ~seen[k];
  }
}
/* Returns after how many rows all wanted bits were seen, 0 where they are not. */
u64 hagane_until(const Input *inputs, int count, const u64 *rows, u64 n, u64 *state,
                 const u64 *ones, const u64 *zeros) {
  static u64 left1[OBSERVED], left0[OBSERVED];
  u64 seen[OBSERVED];
  memcpy(left1, ones, sizeof left1);
  memcpy(left0, zeros, sizeof left0);
  for (u64 r = 0; r < n; r++) {
    u64 left = 0;
    cycle(inputs, count, rows + r * ROW, state, seen);
    for (int k = 0; k < OBSERVED; k++) left |= (left1[k] &= ~seen[k]) | (left0[k] &= seen[k]);
    if (!left) return r + 1;
  }
  return 0;
}
void hagane_trace(const Input *inputs, int count, const u64 *rows, u64 n, u64 *state, u64 *seen,
                  u64 *after) {
  for (u64 r = 0; r < n; r++) {
    cycle(inputs, count, rows + r * ROW, state, seen + r * OBSERVED);
    memcpy(after + r * STATE, state, STATE * 8);
  }
}

/* Random rows. A run chooses a way of drawing for each input and keeps to it. */
#define MOST_INPUTS 4096
typedef struct {
  u64 random;
  int way[MOST_INPUTS];
  u64 row[ROW];
  int resetting, held;
} Stream;

enum { EVEN, RARE, SELDOM, FEW, MANY, CORNER, PATTERN, STEP, ZERO, FULL, WAYS };

static void open_stream(Stream *s, const Input *inputs, int count, u64 seed) {
  s->random = seed;
  u64 plain = mixed(&s->random) % 4;
  s->resetting = mixed(&s->random) % 8 == 0;
  s->held = mixed(&s->random) % 4 == 0;
  memset(s->row, 0, sizeof s->row);
  for (int i = 0; i < count; i++) {
    u64 draw = mixed(&s->random);
    s->way[i] = plain == 0 ? EVEN : (int)(draw % WAYS);
    if (plain == 1 && inputs[i].count) s->way[i] = PATTERN;
    for (int k = 0; k < (inputs[i].width + 63) / 64; k++)
      s->row[inputs[i].at + k] = mixed(&s->random);
    w_trim(s->row + inputs[i].at, inputs[i].width);
  }
}
static void draw(Stream *s, const Input *in, int way, const u64 *patterns) {
  u64 *at = s->row + in->at, choice = mixed(&s->random);
  int n = (in->width + 63) / 64;
  switch (way) {
    case RARE: if (choice % 8) return; break;
    case SELDOM: if (choice % 64) return; break;
    case FEW: if (choice % 16) { w_zero(at, n); return; } break;
    case MANY: if (choice % 16) { memset(at, 255, (size_t)n * 8); w_trim(at, in->width); return; } break;
    case ZERO: w_zero(at, n); return;
    case FULL: memset(at, 255, (size_t)n * 8); w_trim(at, in->width); return;
    case STEP:
      if (choice % 2) at[0] += 1;
      else at[choice / 2 % (u64)in->width / 64] ^= 1ULL << choice / 2 % (u64)in->width % 64;
      w_trim(at, in->width);
      return;
    case CORNER:
      if (choice % 2) break;
      w_zero(at, n);
      if (choice % 8 < 4) at[choice / 8 % (u64)in->width / 64] |= 1ULL << choice / 8 % (u64)in->width % 64;
      else if (choice % 8 == 4) at[0] = choice / 8 % 16;
      else memset(at, 255, (size_t)n * 8);
      w_trim(at, in->width);
      return;
  }
  for (int k = 0; k < n; k++) at[k] = mixed(&s->random);
  if (way == PATTERN && in->count)
    for (u64 more = 1 + choice % 3; more--;) {
      const u64 *mask = patterns + (in->patterns + (int)(mixed(&s->random) % (u64)in->count)) * 2 * WIDEST;
      for (int k = 0; k < n; k++) at[k] = (at[k] & ~mask[k]) | mask[WIDEST + k];
    }
  w_trim(at, in->width);
}
/* `whole` has rows of inputs that a solver chose; a run may take some of them as they are. */
static void next_row(Stream *s, const Input *inputs, int count, const u64 *patterns,
                     const u64 *whole, u64 wholes) {
  if (s->held && wholes && mixed(&s->random) % 4 == 0) {
    memcpy(s->row, whole + mixed(&s->random) % wholes * ROW, sizeof s->row);
  } else {
    for (int i = 0; i < count; i++) draw(s, inputs + i, s->way[i], patterns);
  }
  for (int i = 0; i < count; i++)
    if (inputs[i].reset >= 0) {
      int again = s->resetting && mixed(&s->random) % 64 == 0;
      s->row[inputs[i].at] = (u64)(again ? inputs[i].reset : 1 - inputs[i].reset);
    }
}

void hagane_rows(const Input *inputs, int count, const u64 *patterns, const u64 *whole, u64 wholes,
                 u64 seed, u64 n, u64 *rows) {
  static Stream s;
  open_stream(&s, inputs, count, seed);
  for (u64 r = 0; r < n; r++) {
    next_row(&s, inputs, count, patterns, whole, wholes);
    memcpy(rows + r * ROW, s.row, sizeof s.row);
  }
}
/* Runs of random rows from given states, until so many cycles have passed or the records are full.
 * A record is written where a cycle shows something new; returns the cycles. */
u64 hagane_burst(const Input *inputs, int count, const u64 *patterns, const u64 *whole, u64 wholes,
                 const u64 *starts, u64 start_count, u64 seed, u64 cycles, u64 length, u64 *ones,
                 u64 *zeros, u64 most, u64 *found, u64 *record_start, u64 *record_seed,
                 u64 *record_cycle, u64 *record_state) {
  static Stream s;
  u64 state[STATE], seen[OBSERVED], done = 0, choice = seed;
  *found = 0;
  while (done < cycles && *found < most) {
    u64 pick = mixed(&choice), run_seed = mixed(&choice), last = length;
    u64 from = pick % 8 == 0 ? 0 : pick / 8 % start_count;
    memcpy(state, starts + from * STATE, sizeof state);
    open_stream(&s, inputs, count, run_seed);
    for (u64 r = 0; r < last && *found < most; r++) {
      u64 fresh = 0;
      next_row(&s, inputs, count, patterns, whole, wholes);
      cycle(inputs, count, s.row, state, seen);
      done++;
      for (int k = 0; k < OBSERVED; k++) fresh |= (seen[k] & ~ones[k]) | (~seen[k] & ~zeros[k]);
      if (!fresh) continue;
      for (int k = 0; k < OBSERVED; k++) ones[k] |= seen[k], zeros[k] |= ~seen[k];
      record_start[*found] = from;
      record_seed[*found] = run_seed;
      record_cycle[*found] = r + 1;
      memcpy(record_state + *found * STATE, state, sizeof state);
      ++*found;
      if (last < r + length / 2) last = r + length / 2;
    }
  }
  return done;
}
