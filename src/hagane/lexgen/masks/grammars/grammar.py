"""Context-free grammars in the notations of llama.cpp (GBNF) and Lark, for token masks.

Rules may call themselves; a rule that calls itself before any text (``sum: sum "+" term``) is
turned round, which keeps its texts. Source: the notations' own documents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from hagane.errors import InvalidArgument
from hagane.lexgen.expressions.characters import Flags
from hagane.lexgen.expressions.files import text_of
from hagane.lexgen.masks.grammars.lark_terminals import TERMINALS
from hagane.lexgen.masks.grammars.left_recursion import turned_round
from hagane.lexgen.masks.grammars.templates import Named, renamed, written_out
from hagane.lexgen.masks.rules.parts import Alt, Bytes, Call, OneOf, Part, Rep, Seq, alt, seq
from hagane.lexgen.masks.rules.rules import Rules
from hagane.lexgen.masks.texts import matching


class Grammar:
    """A context-free grammar.

    Args:
        text: The rules, in GBNF (``root ::= "yes" | "no"``) or Lark's notation
            (``start: "yes" | "no"``).
        start: The first rule; ``root`` or ``start`` if None.
        folder: Where the grammars lie that ``%import .name.rule`` brings.

    Raises:
        InvalidArgument: The text is malformed; the message has the line.
    """

    def __init__(self, text: str, start: str | None = None, folder: str | Path | None = None):
        self.name = "the grammar"
        try:
            self.rules = self._read(text, start, folder)
        except RecursionError:
            raise InvalidArgument(
                "grammar: its groups lie in each other too deeply; make rules of some"
            ) from None

    @staticmethod
    def _read(text: str, start: str | None, folder: str | Path | None) -> Rules:
        reader = _Reader(text, folder)
        rules = reader.rules()
        first = start or ("start" if reader.lark else "root")
        if first not in rules:
            known = ", ".join(sorted(rules)) or "none"
            raise InvalidArgument(
                f"grammar: there is no rule '{first}' to start with; there are: {known}"
            )
        rules[first] = reader.surrounded(first, rules[first])
        return _numbered(rules, first)

    @classmethod
    def read(cls, path: str | Path, start: str | None = None) -> Grammar:
        """Return the grammar of a file.

        Raises:
            NoSuchFile: There is no such file.
            InvalidArgument: It is no text, or the text is malformed.
        """
        return cls(text_of(Path(path), "grammar"), start, Path(path).parent)


_TOKEN = re.compile(
    r"""
    (?P<space>(?:[ \t\r]|\\[ ]*\n|(?:\#|//)[^\n]*)+)
  | (?P<newline>\n)
  | (?P<string>"(?:[^"\\\n]|\\.)*"i?)
  | (?P<class>\[(?:[^\]\\]|\\.)*\])
  | (?P<regex>/(?![*+?/])(?:[^/\\]|\\[\s\S])+/[imsux]*)
  | (?P<define>::=)
  | (?P<range>\.\.)
  | (?P<directive>%\w+)
  | (?P<name>(?:!\??|\?!?)?[A-Za-z_][A-Za-z0-9_-]*)
  | (?P<alias>->[ \t]*\w+)
  | (?P<counts>\{[ \t]*\d*[ \t]*(?:,[ \t]*\d*[ \t]*)?\})
  | (?P<sign>[()|*+?:.,~\[\]{}])
  | (?P<number>-?\d+)
    """,
    re.VERBOSE,
)


class _Reader:
    """Reads the rules of a text."""

    def __init__(self, text: str, folder: str | Path | None = None, importing: int = 0):
        self.folder, self.importing = folder, importing
        # In Lark's notation the sign of GBNF is a text of strings and comments alone.
        self.lark = not re.search(r"^[ \t]*[A-Za-z_][\w-]*[ \t]*::=", text, re.MULTILINE)
        self.tokens = list(self._split(text))
        self.at = 0
        self.depth = 0  # of parentheses, in which lines may end anywhere
        self.ignored: list[Part] = []

    def _split(self, text: str) -> Iterator[tuple[str, str, int]]:
        at, line = 0, 1
        while at < len(text):
            found = _TOKEN.match(text, at)
            # "[" begins a set of characters in GBNF, and an optional part in Lark.
            if self.lark and text[at] in "[]":
                yield "sign", text[at], line
                at += 1
                continue
            if found is None or (not self.lark and found.lastgroup in ("regex", "alias")):
                raise InvalidArgument(f"grammar, line {line}: {_unexpected(text[at:])}")
            if found.lastgroup != "space":
                yield str(found.lastgroup), found[0], line
            line += found[0].count("\n")
            at = found.end()
        yield "newline", "\n", line
        yield "end", "", line

    def rules(self) -> dict[str, Part | Named]:
        """Return the body of each rule, by name."""
        rules = self.plain_rules()
        for name, body in list(rules.items()):
            if self.ignored and not name.isupper():
                rules[name] = _between(body, Rep(alt(self.ignored), 0, None))
        return rules

    def plain_rules(self) -> dict[str, Part | Named]:
        """Return the body of each rule, by name, without texts to ignore."""
        rules: dict[str, Part | Named] = {}
        parameters: dict[str, tuple[str, ...]] = {}
        while True:
            self._skip_lines()
            kind, text, line = self._next()
            if kind == "end":
                break
            if kind == "directive" and text == "%ignore" and self.lark:
                self.ignored.append(self._choice())
                continue
            if kind == "directive" and text == "%import" and self.lark:
                self._import(rules, line)
                continue
            more = text if kind == "directive" else ""
            if more in ("%extend", "%override") and self.lark:
                kind, text, line = self._next()
            elif kind == "directive":
                self._fail(line, f"'{text}' is not covered; {_DIRECTIVES.get(text, _WRITE)}")
            if kind != "name":
                self._fail(line, f"expected the name of a rule, got {text!r}")
            name = text.lstrip("?!")
            if self.lark and self._peek()[1] == "{":
                parameters[name] = self._parameters()
            if self.lark and self._peek()[1] == ".":
                self._next()
                self._next()
            kind, sign, line = self._next()
            wanted = ":" if self.lark else "::="
            if sign != wanted:
                remedy = _EXTENSIONS["["] if sign.startswith("[") else ""
                self._fail(line, f"expected '{wanted}' after '{name}', got {sign!r}{remedy}")
            if (name in rules) != bool(more):
                there = "is not there yet" if more else "is there already"
                self._fail(line, f"the rule '{name}' {there}")
            self._skip_to_body()
            body = self._choice()
            rules[name] = alt([rules[name], body]) if more == "%extend" else body  # type: ignore[list-item]
            if self._peek()[0] not in ("newline", "end"):
                _, text, line = self._peek()
                self._fail(line, _unexpected(text))
        return written_out(rules, parameters)

    def _parameters(self) -> tuple[str, ...]:
        """Take the names of a rule's parameters."""
        self._next()
        found: list[str] = []
        while True:
            kind, text, line = self._next()
            if kind != "name":
                self._fail(line, f"expected the name of a parameter, got {text!r}")
            found.append(text)
            _, text, line = self._next()
            if text == "}":
                return tuple(found)
            if text != ",":
                self._fail(line, f"expected ',' or '}}' behind a parameter, got {text!r}")

    def _arguments(self) -> tuple[Part, ...]:
        self._next()
        self.depth += 1
        found: list[Part] = []
        while True:
            found.append(self._choice())
            self._skip_lines()
            _, text, line = self._next()
            if text == "}":
                self.depth -= 1
                return tuple(found)
            if text != ",":
                self._fail(line, f"expected ',' or '}}' behind an argument, got {text!r}")

    def surrounded(self, name: str, body: Part | Named) -> Part | Named:
        """Return the body of the first rule with the text to ignore around it."""
        if not self.ignored:
            return body
        ignored = Rep(alt(self.ignored), 0, None)
        # Behind the terminals of a rule it stands already.
        parts = (ignored, body, ignored) if name.isupper() else (ignored, body)
        return Seq(parts)  # type: ignore[arg-type]

    def _import(self, rules: dict[str, Part | Named], line: int) -> None:
        """Take terminals of Lark's library, ``common.WS`` or ``common (A, B)``, or of files."""
        words = []
        while self._peek()[0] not in ("newline", "end"):
            words.append(self._next()[1])
        listed = words.index("(") if "(" in words else len(words)
        path = [word for word in words[:listed] if word not in (".", "..") and word[:2] != "->"]
        alias = words[-1][2:].strip() if words and words[-1].startswith("->") else ""
        if listed < len(words):
            named = {name: name for name in words[listed:] if name not in "(,)"}
        else:
            last = path.pop() if len(path) > 1 else ""
            named = {alias or last: last}
        if not path or "" in named:
            self._fail(line, f"expected '%import file.NAME', got '%import {''.join(words)}'")
        if path != ["common"]:
            self._import_file(rules, path, named, line, beside=words[0] == ".")
            return
        for name, source in named.items():
            if source not in TERMINALS:
                known = ", ".join(TERMINALS)
                self._fail(line, f"there is no terminal '{source}' in 'common'; there are: {known}")
            if name in rules:
                self._fail(line, f"the rule '{name}' is there already")
            rules[name] = self._matching(TERMINALS[source], line)

    def _import_file(
        self,
        rules: dict[str, Part | Named],
        path: list[str],
        named: dict[str, str],
        line: int,
        *,
        beside: bool,
    ) -> None:
        """Take rules of another file, and what these call under names of their own."""
        told = ".".join(path)
        if self.folder is None or not beside:
            self._fail(
                line,
                f"'%import {told}' is not covered: files are found beside a grammar that "
                f"Grammar.read reads (%import .{told}); of Lark's library there is 'common'",
            )
        file = Path(self.folder, *path).with_suffix(".lark")
        if not file.is_file():
            self._fail(line, f"there is no grammar '{file}' to import")
        if self.importing > _DEEPEST_IMPORT:
            self._fail(line, f"'{file}' is imported more than {_DEEPEST_IMPORT} deep")
        try:
            text = text_of(file, "grammar")
            found = _Reader(text, file.parent, self.importing + 1).plain_rules()
        except InvalidArgument as error:
            self._fail(line, f"'{file.name}': {error}")
        before = "__".join((*path, ""))
        # (A name says by its letters whether it is a terminal.)
        names = {one: (before.upper() if one.isupper() else before) + one for one in found}
        names |= {inner: outer for outer, inner in named.items()}
        for outer, inner in named.items():
            if inner not in found:
                known = ", ".join(found)
                self._fail(line, f"there is no rule '{inner}' in '{file}'; there are: {known}")
            if outer in rules:
                self._fail(line, f"the rule '{outer}' is there already")
        for inner, body in found.items():
            rules[names[inner]] = renamed(body, names)

    def _choice(self) -> Part:
        ways = [self._sequence()]
        while True:
            self._skip_before("|")
            if self._peek()[1] != "|" or self._peek()[0] != "sign":
                return alt(ways)
            self._next()
            self._skip_lines()
            ways.append(self._sequence())

    def _sequence(self) -> Part:
        parts: list[Part] = []
        while True:
            if self.depth:
                self._skip_lines()
            kind, text, _ = self._peek()
            if kind == "alias":
                self._next()
                continue
            begins = kind in ("string", "class", "regex", "name") or text in ("(", "[", ".")
            if not begins or kind == "end":
                return Seq(tuple(parts)) if len(parts) != 1 else parts[0]
            parts.append(self._repeated(self._atom()))

    def _atom(self) -> Part:
        kind, text, line = self._next()
        if kind == "string":
            return self._string(text, line)
        if kind == "class":
            return self._matching(text, line)
        if kind == "regex":
            body, _, flags = text[1:].rpartition("/")
            return self._matching(body, line, flags)
        if kind == "name":
            given = self._arguments() if self.lark and self._peek()[1] == "{" else None
            return Named(text.lstrip("?!"), line, given)  # type: ignore[return-value]
        if text == ".":
            return self._matching("[^\\n]", line)
        self.depth += 1
        inside = self._choice()
        self._skip_lines()
        self.depth -= 1
        closing = ")" if text == "(" else "]"
        kind, found, line = self._next()
        if found != closing:
            self._fail(line, f"expected '{closing}', got {found!r}")
        return inside if text == "(" else Rep(inside, 0, 1)

    def _repeated(self, part: Part) -> Part:
        while True:
            kind, text, line = self._peek()
            if kind == "sign" and text in "*+?":
                low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[text]
                self._next()
            elif kind == "counts":
                numbers = [number.strip() for number in text[1:-1].split(",")]
                low = int(numbers[0] or 0)
                high = int(numbers[-1]) if numbers[-1] else None
                self._next()
            elif text == "~" and self.lark:
                self._next()
                low = high = int(self._number())
                if self._peek()[0] == "range":
                    self._next()
                    high = int(self._number())
            else:
                return part
            if high is not None and high < low:
                self._fail(line, f"expected at least {low} repetitions, got {high}")
            part = Rep(part, low, high)

    def _number(self) -> str:
        kind, text, line = self._next()
        if kind != "number":
            self._fail(line, f"expected a number, got {text!r}")
        return text

    def _string(self, text: str, line: int) -> Part:
        folded = text.endswith("i")
        body = text[1 : -2 if folded else -1]
        if self.lark and self._peek()[0] == "range":
            self._next()
            _, text, _ = self._next()
            low, high = self._unescaped(body), self._unescaped(text[1:-1])
            if len(low) != 1 or len(high) != 1 or low > high:
                self._fail(line, f'expected two characters in order, got "{body}"..{text}')
            return self._matching(rf"[\x{{{ord(low):x}}}-\x{{{ord(high):x}}}]", line)
        plain = self._unescaped(body)
        if folded:
            return self._matching(re.escape(plain), line, "i")
        return Bytes(plain.encode("utf-8"))

    def _unescaped(self, text: str) -> str:
        # Lark leaves a "\\" before any other sign in the text, as Python does.
        codes, other = (_LARK_ESCAPES, "\\") if self.lark else (_ESCAPES, "")

        def one(found: re.Match[str]) -> str:
            code = found[1]
            if code[0] in "xuU" and code[1:]:
                return chr(int(code[1:], 16))
            return codes.get(code, other + code)

        return _ESCAPE.sub(one, text)

    def _matching(self, source: str, line: int, flags: str = "") -> Part:
        try:
            marked = f"(?{flags.replace('u', '')}:{source})" if flags.strip("u") else source
            return OneOf(matching(marked, whole=True, flags=Flags()))
        except InvalidArgument as error:
            remedy = "; write the texts without looking around" if "look-" in str(error) else ""
            self._fail(line, f"{error}{remedy}")

    def _skip_lines(self) -> None:
        while self._peek()[0] == "newline":
            self._next()

    def _skip_to_body(self) -> None:
        """Pass line breaks between a rule's sign and its body, unless the body is empty."""
        at = self.at
        while self.tokens[at][0] == "newline":
            at += 1
        signs = (":", "::=", ".", "{")
        another = self.tokens[at][0] == "name" and self.tokens[at + 1][1] in signs
        if not another and self.tokens[at][0] != "end":
            self.at = at

    def _skip_before(self, sign: str) -> None:
        """Pass line breaks that a sign follows."""
        at = self.at
        while self.tokens[at][0] == "newline":
            at += 1
        if self.tokens[at][1] == sign:
            self.at = at

    def _peek(self) -> tuple[str, str, int]:
        return self.tokens[self.at]

    def _next(self) -> tuple[str, str, int]:
        token = self.tokens[self.at]
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def _fail(self, line: int, problem: str) -> NoReturn:
        raise InvalidArgument(f"grammar, line {line}: {problem}")


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0"}
_LARK_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "\\": "\\", '"': '"'}
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)")

_DEEPEST_IMPORT = 32
_WRITE = "write the rules that it brings"
_DIRECTIVES = {
    "%declare": "a terminal that a program makes has no text: write the texts that stand for it"
}

# What llguidance and xgrammar add to the notations, by its first signs, and the remedy.
_EXTENSIONS = {
    "%json": "; give TokenMask the schema",
    "%regex": "; write an expression between slashes",
    "%lark": "; write the rules of the inner grammar beside the others",
    "%if": "; write a rule for each value of the parameter",
    "[": "; attributes of rules are not covered: leave them out where they change no texts",
    "@": "; grammars within others are not covered: write the rules of the other one here",
    "&": "; write one expression that matches what both do",
    "~": "; write an expression of the other texts",
    "<": "; tokens by name are not covered: write their texts",
    ":": "; parameters of rules are not covered: write a rule for each value",
    "=": "; look-ahead is not covered: put what follows into the rule",
}


def _unexpected(text: str) -> str:
    """Return what to say of a text where none of its kind may stand."""
    word = re.match(r"%\w+|.", text, re.DOTALL)
    sign = word[0] if word is not None else text
    return f"unexpected {sign!r}{_EXTENSIONS.get(sign, '')}"


def _between(part: Part | Named, ignored: Part) -> Part:
    """Return a part with text to ignore around each terminal."""

    def wrapped(inner: Part | Named) -> Part:
        match inner:
            case Seq(parts):
                return Seq(tuple(map(wrapped, parts)))
            case Alt(parts):
                return Alt(tuple(map(wrapped, parts)))
            case Rep(body, low, high):
                return Rep(wrapped(body), low, high)
            case Bytes() | OneOf():
                return seq(inner, ignored)
            case Named(name=name) if name.isupper():
                return seq(inner, ignored)  # type: ignore[arg-type]
        return inner  # type: ignore[return-value]

    return wrapped(part)


def _numbered(bodies: dict[str, Part | Named], first: str) -> Rules:
    """Return the rules by number, the first one in front, without calls of itself before text."""
    names = [first, *(name for name in bodies if name != first)]
    numbers = {name: number for number, name in enumerate(names)}

    def resolved(part: Part | Named) -> Part:
        match part:
            case Named(name, line):
                if name not in numbers:
                    known = ", ".join(sorted(numbers))
                    raise InvalidArgument(
                        f"grammar, line {line}: there is no rule '{name}'; there are: {known}"
                    )
                return Call(numbers[name])
            case Seq(parts):
                return Seq(tuple(map(resolved, parts)))
            case Alt(parts):
                return Alt(tuple(map(resolved, parts)))
            case Rep(body, low, high):
                return Rep(resolved(body), low, high)
        return part

    found = [resolved(bodies[name]) for name in names]
    rules = Rules()
    for body in turned_round(found):
        rules.define(rules.reserve(), body)
    rules.compile()
    return rules
