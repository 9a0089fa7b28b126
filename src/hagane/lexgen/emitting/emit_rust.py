"""The lexer as a module in Rust, without dependencies and without unsafe code.

The automaton over bytes is a table; what a match leads to is code. Offsets in the table are
multiplied by the number of classes, so that a step is two loads and an addition.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from hagane.lexgen.automata.dfa import Dfa
from hagane.lexgen.automata.utf8 import END_BYTE, byte_dfa
from hagane.lexgen.emitting.emit_c import refuse_code
from hagane.lexgen.emitting.emit_c_places import needs_place
from hagane.lexgen.emitting.emit_rust_text import (
    CUT,
    FINISH,
    GIVE_BACK,
    HEAD,
    KEEP,
    LEXER,
    NO_FINISH,
    PART,
    PLACE,
)
from hagane.lexgen.errors import SpecificationError
from hagane.lexgen.expressions.unicode_sets import word_characters
from hagane.lexgen.lexing.compile import Compiled, CompiledStep
from hagane.lexgen.lexing.specification import Action

_KEYWORDS = frozenset(
    [
        "abstract",
        "as",
        "async",
        "await",
        "become",
        "box",
        "break",
        "const",
        "continue",
        "do",
        "dyn",
        "else",
        "enum",
        "extern",
        "false",
        "final",
        "fn",
        "for",
        "gen",
        "if",
        "impl",
        "in",
        "let",
        "loop",
        "macro",
        "match",
        "mod",
        "move",
        "mut",
        "override",
        "priv",
        "pub",
        "ref",
        "return",
        "static",
        "struct",
        "trait",
        "true",
        "try",
        "type",
        "typeof",
        "unsafe",
        "unsized",
        "use",
        "virtual",
        "where",
        "while",
        "yield",
    ]
)
_NO_RAW = frozenset(("Self", "self", "super", "crate", "_"))


def rust_module(compiled: Compiled) -> str:
    """Return the source of a Rust module with ``Kind``, ``Token`` and the iterator ``Lexer``.

    Raises:
        SpecificationError: The specification has Python code.
    """
    refuse_code(compiled, "Rust")
    specification = compiled.specification
    for name, code in (("header", specification.header), ("footer", specification.footer)):
        if code.strip():
            raise SpecificationError(
                f"{specification.source}: its {name} is Python code, which the Rust form cannot "
                "hold; drop it, or use the Python form"
            )
    return _Emitter(compiled).source()


class _Emitter:
    def __init__(self, compiled: Compiled):
        self.compiled = compiled
        kinds = compiled.specification.kinds()
        self.kinds = dict(zip(kinds, kind_names(kinds), strict=True))
        self.conditions = list(compiled.specification.conditions)
        self.dfa: Dfa = byte_dfa(compiled.dfa)
        self.steps = compiled.step_of

    def source(self) -> str:
        steps = self.compiled.steps
        source = Path(self.compiled.specification.source).name.replace("\n", " ")
        names = list(self.kinds.items())
        parts = [
            HEAD.format(
                source=source,
                variants="\n".join(f"    {name}," for _, name in names),
                count=len(names),
                all=", ".join(f"Kind::{name}" for _, name in names),
                names="\n".join(f"            Kind::{n} => {_quoted(k)}," for k, n in names),
            ),
            LEXER.format(
                start=self._start(),
                steps="\n".join(self._step(n, step) for n, step in enumerate(steps, 1)),
                # (Rules may match nothing but the empty text: each byte is an error.)
                otherwise="unreachable!()" if steps else "None",
                finish=self._finish(),
            ),
            self._tables(),
        ]
        if any(step.split is None and step.accept.back for step in steps):
            parts.append(GIVE_BACK)
        if any(step.split is None and step.accept.back is None for step in steps):
            parts.append(KEEP)
        splits = {n: step.split for n, step in enumerate(steps, 1) if step.split is not None}
        dfas = [self.compiled.dfa, *(dfa for split in splits.values() for dfa in split)]
        if splits or any(len(set(row)) > 1 for dfa in dfas for row in dfa.starts):
            parts.append(self._place(dfas))
        if splits:
            parts.append(CUT)
            for number, split in splits.items():
                parts += [
                    part_source(f"{name}_{number}", dfa)
                    for name, dfa in zip(("BODY", "FOLLOWING"), split, strict=True)
                ]
        return "\n".join(part.rstrip("\n") + "\n" for part in parts)

    def _tables(self) -> str:
        """Return the automaton; state 0 is the dead one, accepts are numbers of steps from 1."""
        width = self.dfa.alphabet.n_classes
        classes = [*self.dfa.alphabet.ids[:END_BYTE], self.dfa.alphabet.end_class]
        rows = [0] * width
        for row in self.dfa.delta:
            rows += [(to + 1) * width for to in row]
        accepts = [0] + [self.steps[a[0]] + 1 if a else 0 for a in self.dfa.accepts]
        return "\n".join(
            [
                f"const WIDTH: usize = {width};",
                table("CLASSES", classes),
                table("NEXT", rows),
                table("ACCEPTS", accepts),
            ]
        )

    def _start(self) -> str:
        """Return the expression of the start state, which depends on the text before the token."""
        width = self.dfa.alphabet.n_classes
        rows = [[(s + 1) * width for s in row] for row in self.dfa.starts]
        arms = []
        for number, row in enumerate(rows):
            chosen = f"{row[0]}"
            if len(set(row)) > 1:
                chosen = f"{by_place(row)}[place(self.source, token)]"
            arms.append(f"{number} => {chosen}," if number < len(rows) - 1 else f"_ => {chosen},")
        if len(arms) == 1:
            return arms[0][len("_ => ") : -1]
        inner = "\n".join("                " + arm for arm in arms)
        return f"match self.condition {{\n{inner}\n            }}"

    def _place(self, dfas: Sequence[Dfa]) -> str:
        words = any(needs_place(row) for dfa in dfas for row in dfa.starts)
        borders = [border for low, high in word_characters(False) for border in (low, high + 1)]
        return PLACE.format(borders=", ".join(map(str, borders)) if words else "")

    def _step(self, number: int, step: CompiledStep) -> str:
        """Return the arm of one step."""
        rule = self.compiled.specification.rules[step.accept.rule]
        lines = []
        if step.split is not None:
            lines.append(
                f"end = cut(&BODY_{number}, &FOLLOWING_{number}, self.source, token, end);"
            )
        elif step.accept.back is None:
            lines.append(f"end = keep(self.source, token, {step.accept.head or 0});")
        elif step.accept.back:
            lines.append(f"end = give_back(self.source, token, end, {step.accept.back});")
        lines += self._moves(step.action)
        kind = step.action.kind
        lines.append("None" if kind is None else f"Some(Kind::{self.kinds[kind]})")
        comment = f"            // {' '.join(rule.pattern.source.split())}"
        body = "\n".join("                " + line for line in lines)
        return f"{comment}\n            {number} => {{\n{body}\n            }}"

    def _moves(self, action: Action) -> list[str]:
        lines = []
        if action.begin:
            lines.append(f"self.condition = {self.conditions.index(action.begin)};")
        if action.push:
            lines.append("self.stack.push(self.condition);")
            lines.append(f"self.condition = {self.conditions.index(action.push)};")
        if action.pop:
            lines.append("self.condition = self.stack.pop().unwrap_or(0);")
        return lines

    def _finish(self) -> str:
        """Return the function of the end of the input, with an arm for each start condition."""
        arms = []
        for name, action in self.compiled.specification.at_end.items():
            number = self.conditions.index(name)
            kind = "None" if action.kind is None else f"Some(Kind::{self.kinds[action.kind]})"
            lines = [*self._moves(action), kind]
            body = "\n".join("                    " + line for line in lines)
            pad = " " * 16
            arms.append(f"{pad}// {name}\n{pad}{number} => {{\n{body}\n{pad}}}")
        return FINISH.replace("ARMS", "\n".join(arms)) if arms else NO_FINISH


def part_source(name: str, dfa: Dfa) -> str:
    """Return one part of a trailing context as tables."""
    dfa = byte_dfa(dfa)
    width = dfa.alphabet.n_classes
    classes = [*dfa.alphabet.ids[:END_BYTE], dfa.alphabet.end_class]
    rows = [0] * width + [(to + 1) * width for row in dfa.delta for to in row]
    codes = [0] + [sum(1 << (accept.back or 0) for accept in accepts) for accepts in dfa.accepts]
    row = dfa.starts[0]
    starts = [(state + 1) * width for state in by_place(row)]
    return PART.format(
        name=name,
        width=width,
        classes=_values(classes),
        rows=_values(rows),
        codes=_values(codes),
        starts=", ".join(map(str, starts)),
    )


def by_place(row: Sequence[int]) -> list[int]:
    """Return the start states after each kind of place that the lexer tells apart."""
    return [row[min(place, len(row) - 1)] for place in range(5)]


def table(name: str, values: Sequence[int]) -> str:
    """Return a table of the smallest type that holds its values."""
    most = max(values)
    kind = "u8" if most < 1 << 8 else "u16" if most < 1 << 16 else "u32"
    return f"#[rustfmt::skip]\nstatic {name}: [{kind}; {len(values)}] = [\n{_values(values)}\n];"


def _values(values: Sequence[int]) -> str:
    rows = (values[at : at + 24] for at in range(0, len(values), 24))
    return "\n".join("    " + ", ".join(map(str, row)) + "," for row in rows)


def kind_names(kinds: Sequence[str]) -> list[str]:
    """Return a name in Rust for each kind, all different: its own where that is a name."""
    taken: set[str] = set()
    names = []
    for kind in kinds:
        name = re.sub(r"\W", "_", kind, flags=re.ASCII)
        name = name if re.match(r"[A-Za-z_]", name) else f"_{name}"
        while name in _NO_RAW or name in taken:
            name += "_"
        taken.add(name)
        names.append(f"r#{name}" if name in _KEYWORDS else name)
    return names


def _quoted(text: str) -> str:
    inner = "".join(
        c if c.isascii() and c.isprintable() and c not in '"\\' else f"\\u{{{ord(c):x}}}"
        for c in text
    )
    return f'"{inner}"'
