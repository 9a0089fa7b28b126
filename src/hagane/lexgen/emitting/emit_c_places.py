r"""C code about places in a text: the text before one, and the start of a trailing context.

A place is found as the Python form finds it: a start state depends on the character before it
(``^``, ``\b``), and where both parts of a trailing context vary in length, the longest body is
taken whose rest the context matches to the end of the match.
"""

from __future__ import annotations

from collections.abc import Sequence

from hagane.lexgen.automata.dfa import Dfa
from hagane.lexgen.automata.utf8 import END_BYTE, byte_dfa
from hagane.lexgen.expressions.unicode_sets import word_characters

_PLACE = """\
/* What stands before a place: 0 nothing, 1 a newline, 2 another character, 3 one of a word,
   4 one of ASCII. */
static int place(const uint8_t *data, const uint8_t *p) {
  static const uint32_t borders[] = {BORDERS};  /* words from one to before the next, and so on */
  if (p == data) return 0;
  if (p[-1] == 10) return 1;
  const uint8_t *q = p - 1;
  while (q > data && p - q < 4 && (*q & 0xC0) == 0x80) q--;
  const int length = (int)(p - q);
  uint32_t code = *q;
  if (length > 1) {
    if (code >> (7 - length) != (2u << length) - 2) return 2;  /* no UTF-8 */
    code &= (1u << (7 - length)) - 1;
    for (q++; q < p; q++) code = code << 6 | (*q & 0x3F);
  }
  int low = 0, high = sizeof borders / sizeof *borders;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (borders[middle] <= code) low = middle + 1; else high = middle;
  }
  return !(low & 1) ? 2 : code < 128 ? 4 : 3;
}
"""
_CUT = """\
typedef struct {
  const uint16_t *classes; const int32_t *rows; const uint8_t *codes; const int32_t *starts;
  int32_t n_classes, n_starts;
} part;

static int32_t enter(const part *m, const uint8_t *data, const uint8_t *p) {
  const int before = m->n_starts == 1 ? 0 : place(data, p);
  return m->starts[before < m->n_starts ? before : m->n_starts - 1];
}

/* Returns where the trailing context of a match token..stop starts; stop is end + 1 where the match
   has taken the end of the input. 0: there is no memory. */
static const uint8_t *cut(const part *body, const part *following, const uint8_t *data,
                          const uint8_t *token, const uint8_t *stop, const uint8_t *end) {
  uint8_t *ends = calloc((size_t)(stop - token) + 1, 1);
  if (!ends) return 0;
  int32_t s = enter(body, data, token);
  for (const uint8_t *p = token; s >= 0; p++) {
    int back = 0;
    for (unsigned code = body->codes[s]; code; code >>= 1, back++) {
      if (!(code & 1)) continue;
      const uint8_t *q = p;
      for (int left = back; left > 0; left--) {
        q--;
        if (q >= end) continue;
        while (q > token && (*q & 0xC0) == 0x80) q--;
      }
      ends[q - token] = 1;
    }
    if (p == stop) break;
    s = body->rows[s * body->n_classes + body->classes[p < end ? *p : 256]];
  }
  const uint8_t *at = stop < end ? stop : end;
  for (; at > token; at--) {
    if (!ends[at - token]) continue;
    s = enter(following, data, at);
    for (const uint8_t *p = at; s >= 0 && p < stop; p++)
      s = following->rows[s * following->n_classes + following->classes[p < end ? *p : 256]];
    if (s >= 0 && following->codes[s]) break;
  }
  free(ends);
  return at;
}
"""


def place_source(dfas: Sequence[Dfa], cuts: bool) -> str:
    """Return the code by which the lexer tells places apart, and cuts matches."""
    if not cuts and not any(needs_place(row) for dfa in dfas for row in dfa.starts):
        return ""
    borders = ",".join(f"{low},{high + 1}" for low, high in word_characters(False))
    return _PLACE.replace("BORDERS", borders) + ("\n" + _CUT if cuts else "")


def needs_place(starts: Sequence[int]) -> bool:
    """Return whether a word before a place leads to another start state than other characters."""
    return any(start != starts[2] for start in starts[3:])


def part_source(name: str, dfa: Dfa) -> str:
    """Return one part of a trailing context as tables."""
    dfa = byte_dfa(dfa)
    classes = [*dfa.alphabet.ids[:END_BYTE], dfa.alphabet.end_class]
    codes = [sum(1 << (accept.back or 0) for accept in accepts) for accepts in dfa.accepts]
    tables = {
        "uint16_t": ("classes", classes),
        "int32_t": ("rows", [to for row in dfa.delta for to in row]),
        "uint8_t": ("codes", codes),
    }
    lines = [
        f"static const {kind} {name}_{table}[] = {{{','.join(map(str, values))}}};"
        for kind, (table, values) in tables.items()
    ]
    starts = dfa.starts[0] if len(set(dfa.starts[0])) > 1 else dfa.starts[0][:1]
    lines.append(f"static const int32_t {name}_starts[] = {{{','.join(map(str, starts))}}};")
    fields = ", ".join(f"{name}_{table}" for table in ("classes", "rows", "codes", "starts"))
    lines.append(
        f"static const part {name} = {{{fields}, {dfa.alphabet.n_classes}, {len(starts)}}};"
    )
    return "\n".join(lines) + "\n"
