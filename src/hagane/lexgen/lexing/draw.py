"""Drawings of the stages, for Graphviz and as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from hagane.lexgen.automata.determinise import determinise
from hagane.lexgen.automata.dfa import Dfa
from hagane.lexgen.automata.nfa import Nfa, build_nfa
from hagane.lexgen.expressions.charset import END, Ranges
from hagane.lexgen.lexing.compile import Compiled

MAX_DRAWN = 2000


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture of an automaton: edges (from, to, label), starts, labels of accepting states."""

    title: str
    n_states: int
    edges: tuple[tuple[int, int, str], ...]
    starts: tuple[int, ...]
    accepting: dict[int, str]


def draw_nfa(nfa: Nfa, labels: Sequence[str]) -> Drawing:
    """Return the picture of a nondeterministic automaton; ``labels`` name the rules."""
    edges = []
    for state in range(nfa.n_states):
        edges += [(state, to, set_label(symbols)) for symbols, to in nfa.chars[state]]
        edges += [(state, to, "ε") for to in nfa.empty[state]]
        edges += [(state, to, look.value) for look, to in nfa.looks[state]]
    accepting = {state: labels[accept.rule] for state, accept in nfa.accepts.items()}
    return Drawing("NFA", nfa.n_states, tuple(edges), tuple(nfa.starts), accepting)


def draw_dfa(dfa: Dfa, labels: Sequence[str], title: str = "DFA") -> Drawing:
    """Return the picture of a deterministic automaton; ``labels`` name the rules."""
    members = dfa.alphabet.members()
    edges = []
    for state, row in enumerate(dfa.delta):
        sets: dict[int, list[tuple[int, int]]] = {}
        for id, to in enumerate(row):
            if to >= 0:
                sets.setdefault(to, []).extend(members[id])
        edges += [(state, to, set_label(tuple(sorted(pairs)))) for to, pairs in sets.items()]
    accepting = {
        state: ", ".join(dict.fromkeys(labels[accept.rule] for accept in accepts))
        for state, accepts in enumerate(dfa.accepts)
        if accepts
    }
    starts = tuple(dict.fromkeys(s for row in dfa.starts for s in row if s >= 0))
    return Drawing(title, dfa.n_states, tuple(edges), starts, accepting)


def draw_stages(compiled: Compiled) -> dict[str, str]:
    """Return the text of the files that draw a lexer's stages, by suffix.

    A stage of more than 2,000 states is written for Graphviz only.
    """
    specification = compiled.specification
    labels = [rule.action.kind or "skip" for rule in specification.rules]
    nfa = build_nfa([rule.pattern.branches for rule in specification.rules], specification.active())
    pictures = {
        "nfa": draw_nfa(nfa, labels),
        "dfa": draw_dfa(determinise(nfa).winners_only(), labels),
        "min": draw_dfa(compiled.dfa, labels, "minimal DFA"),
    }
    files = {f"{stage}.dot": to_dot(picture) for stage, picture in pictures.items()}
    for stage, picture in pictures.items():
        if picture.n_states <= MAX_DRAWN:
            files[f"{stage}.svg"] = to_svg(picture)
    return files


def to_dot(drawing: Drawing) -> str:
    """Return the drawing in the language of Graphviz."""
    lines = [f'digraph "{drawing.title}" {{', "  rankdir=LR;", "  node [shape=circle];"]
    for state, label in drawing.accepting.items():
        lines.append(f'  {state} [shape=doublecircle, label="{state}\\n{_quote(label)}"];')
    for number, state in enumerate(drawing.starts):
        lines.append(f"  start{number} [shape=point]; start{number} -> {state};")
    lines += [f'  {a} -> {b} [label="{_quote(label)}"];' for a, b, label in drawing.edges]
    return "\n".join([*lines, "}"]) + "\n"


def _quote(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def to_svg(drawing: Drawing) -> str:
    """Return the drawing as SVG: states in columns by their distance from the start."""
    place = _places(drawing)
    width = max((x for x, _ in place.values()), default=0) + 100
    height = max((y for _, y in place.values()), default=0) + 80
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="3" orient="auto">'
        '<path d="M0,0 L7,3 L0,6 z"/></marker></defs>',
        f"<title>{escape(drawing.title)}</title>",
    ]
    joined: dict[tuple[int, int], list[str]] = {}
    for a, b, label in drawing.edges:
        joined.setdefault((a, b), []).append(label)
    for (a, b), labels in joined.items():
        parts.append(_arrow(place[a], place[b], " ".join(labels)))
    for state, (x, y) in place.items():
        parts.append(f'<circle cx="{x}" cy="{y}" r="16" fill="white" stroke="black"/>')
        if state in drawing.accepting:
            parts.append(f'<circle cx="{x}" cy="{y}" r="13" fill="none" stroke="black"/>')
            label = escape(drawing.accepting[state])
            parts.append(f'<text x="{x}" y="{y + 29}" text-anchor="middle">{label}</text>')
        if state in drawing.starts:
            parts.append(
                f'<line x1="{x - 36}" y1="{y}" x2="{x - 17}" y2="{y}" stroke="black" '
                'marker-end="url(#tip)"/>'
            )
        parts.append(f'<text x="{x}" y="{y + 4}" text-anchor="middle">{state}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _places(drawing: Drawing) -> dict[int, tuple[int, int]]:
    after: dict[int, list[int]] = {}
    for a, b, _ in drawing.edges:
        after.setdefault(a, []).append(b)
    depth = dict.fromkeys(drawing.starts, 0)
    order = list(depth)
    for state in order:  # grows while it runs
        for to in after.get(state, ()):
            if to not in depth:
                depth[to] = depth[state] + 1
                order.append(to)
    for state in range(drawing.n_states):
        depth.setdefault(state, 0)
    rows: dict[int, int] = {}
    place = {}
    for state, column in depth.items():
        row = rows[column] = rows.get(column, 0) + 1
        place[state] = (60 + 130 * column, 90 * row - 20)
    return place


def _arrow(a: tuple[int, int], b: tuple[int, int], label: str) -> str:
    (x1, y1), (x2, y2) = a, b
    shown = escape(label if len(label) <= 24 else label[:23] + "…")
    if a == b:
        path = f"M{x1 - 8},{y1 - 14} C{x1 - 24},{y1 - 48} {x1 + 24},{y1 - 48} {x1 + 8},{y1 - 15}"
        at = (x1, y1 - 42)
    else:
        length = max(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, 1.0)
        dx, dy = (x2 - x1) / length, (y2 - y1) / length
        # Bending to one side keeps an edge and its reverse apart.
        bend = 18 if x2 > x1 else 36
        mx, my = (x1 + x2) / 2 + dy * bend, (y1 + y2) / 2 - dx * bend
        path = (
            f"M{x1 + dx * 16:.0f},{y1 + dy * 16:.0f} Q{mx:.0f},{my:.0f} "
            f"{x2 - dx * 17:.0f},{y2 - dy * 17:.0f}"
        )
        at = (round(mx), round(my))
    return (
        f'<path d="{path}" fill="none" stroke="gray" marker-end="url(#tip)"/>'
        f'<text x="{at[0]}" y="{at[1]}" text-anchor="middle" fill="navy">{shown}</text>'
    )


def set_label(symbols: Ranges) -> str:
    """Return a set of symbols in a few characters."""
    parts = []
    for low, high in symbols[:6]:
        parts.append(_name(low) if low == high else f"{_name(low)}-{_name(high)}")
    return " ".join(parts) + (" …" if len(symbols) > 6 else "")


def _name(code: int) -> str:
    if code == END:
        return "end"
    char = chr(code)
    return char if char.isprintable() and not char.isspace() else f"U+{code:02X}"
