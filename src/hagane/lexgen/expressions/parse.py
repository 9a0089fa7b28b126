r"""Regular expressions: text to syntax tree.

Two dialects share one parser:

- ``python``: the syntax of ``re``. Quotes and ``/`` stand for themselves, look-ahead is
  ``(?=s)`` or ``(?!s)`` at the end of a branch, spaces count.
- ``flex``: ``"quoted strings"``, ``r/s`` for trailing context, ``{name}`` for definitions,
  ``[a-z]{-}[aeiou]`` and ``{+}`` for differences and unions of classes; ``^`` and ``$`` are about
  lines.

Both know ``\d \w \s \b \A \Z \xHH \x{H…} \u{H…} \uHHHH \p{Lu} [[:alpha:]] (?i:…) (?s:…) (?m:…)
(?a:…) (?x:…)``. Patterns beyond finite automata (back references, look-behind) is
refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hagane.lexgen.errors import RegexSyntaxError
from hagane.lexgen.expressions import charset
from hagane.lexgen.expressions.characters import CharacterReader, Dialect, Flags
from hagane.lexgen.expressions.syntax import (
    EMPTY,
    Alternate,
    Assertion,
    Branch,
    Chars,
    Concat,
    Look,
    Node,
    Pattern,
    Repeat,
    alternate,
    concat,
)
from hagane.lexgen.expressions.unicode_sets import ECMA_LINE_END

MAX_REPEAT = 5000
_FLAG_NAMES = {"i": "ignore_case", "s": "dot_all", "m": "multi_line", "a": "ascii", "x": "verbose"}


@dataclass(frozen=True, slots=True)
class _Ahead:
    """A look-ahead met inside a branch: ``following`` must come next."""

    following: Node


def parse(
    source: str,
    dialect: Dialect = "python",
    flags: Flags | None = None,
    definitions: Mapping[str, str] | None = None,
) -> Pattern:
    """Return the syntax tree of a regular expression.

    Args:
        source: The expression.
        dialect: ``python`` or ``flex``, see the module.
        flags: The switches at the start; ``(?i)`` and the like change them.
        definitions: Named expressions that ``{name}`` refers to.

    Raises:
        RegexSyntaxError: The expression is malformed or beyond finite automata.
    """
    if flags is None:
        flags = Flags(multi_line=dialect == "flex")
    parser = _Parser(source, dialect, flags, dict(definitions or {}), ())
    try:
        branches = parser.pattern()
    except RecursionError:  # of a caller that is deep itself
        raise RegexSyntaxError(source, 1, "its groups lie in each other too deeply") from None
    return Pattern(source, branches, parser.lazy)


class _Parser(CharacterReader):
    # The pattern and its branches.

    def pattern(self) -> tuple[Branch, ...]:
        bodies = self.branches()
        if self.at < len(self.source) and self._peek() == "/" and self.dialect == "flex":
            slash = self.at
            self.at += 1
            if any(isinstance(branch.following, Node) for branch in bodies):
                self._fail(slash, "expected one trailing context, got a second one")
            following = self._no_look_ahead(self.branches(), slash)
            body = alternate(*(branch.body for branch in bodies))
            bodies = [Branch(body, following)]
        if self.at < len(self.source):
            if self._peek() == "/":
                self._fail(self.at, "expected one trailing context, got a second '/'")
            self._fail(self.at, "unbalanced ')': no group is open here; write '\\)' for the sign")
        return tuple(bodies)

    def branches(self) -> list[Branch]:
        found = [self.branch()]
        while self._peek() == "|":
            self.at += 1
            found.append(self.branch())
        return found

    def branch(self) -> Branch:
        parts: list[Node] = []
        following: Node | None = None
        while self.at < len(self.source):
            char = self._peek()
            if char in "|)" or (char == "/" and self.dialect == "flex"):
                break
            start = self.at
            part = self.repeated()
            if part is None:
                continue
            if isinstance(part, _Ahead):
                if following is not None:
                    self._fail(start, "expected one look-ahead at the end of a branch, got two")
                following = part.following
                continue
            if following is not None:
                self._fail(
                    start,
                    "look-ahead is possible at the end of a branch only; put what follows it into "
                    "the look-ahead, or make it a rule of its own",
                )
            parts.append(part)
        return Branch(concat(*parts) if parts else EMPTY, following)

    def _no_look_ahead(self, branches: list[Branch], start: int) -> Node:
        if any(branch.following is not None for branch in branches):
            self._fail(start, "look-ahead inside a group is not possible: move it to the end")
        return alternate(*(branch.body for branch in branches))

    # One item with its repetitions.

    def repeated(self) -> Node | _Ahead | None:
        start = self.at
        item = self.item()
        while self.at < len(self.source):
            self._skip_verbose()
            bounds = self._bounds()
            if bounds is None:
                break
            if not isinstance(item, Chars | Concat | Alternate | Repeat | Assertion):
                self._fail(start, "a look-ahead or a flag cannot be repeated")
            low, high = bounds
            item = Repeat(item, low, high)
        return item

    def _bounds(self) -> tuple[int, int | None] | None:
        char = self._peek()
        start = self.at
        bounds: tuple[int, int | None]
        if char in ("*", "+", "?"):
            self.at += 1
            bounds = {"*": (0, None), "+": (1, None), "?": (0, 1)}[char]
        elif char == "{":
            counted = self._counted()
            if counted is None:
                return None
            bounds = counted
        else:
            return None
        if self.dialect == "python":
            if self._peek() == "?":
                self.at += 1
                self.lazy = True
            elif self._peek() == "+":
                self._fail(
                    start,
                    "possessive repetition is about backtracking, which automata do not do: "
                    "leave out the '+'",
                )
            elif self._peek() == "*":
                self._fail(self.at, "nothing to repeat: '*' follows another repetition")
        return bounds

    def _counted(self) -> tuple[int, int | None] | None:
        close = self.source.find("}", self.at)
        inner = self.source[self.at + 1 : close] if close >= 0 else ""
        low_text, comma, high_text = inner.partition(",")
        digits = [text for text in (low_text, high_text) if text]
        if close < 0 or not digits or not all(text.isascii() and text.isdigit() for text in digits):
            if self.dialect == "flex" and close >= 0 and inner[:1].isdigit():
                self._fail(self.at, f"expected {{n}}, {{n,}} or {{n,m}}, got '{{{inner}}}'")
            return None
        low = int(low_text or 0)
        high = (int(high_text) if high_text else None) if comma else low
        if high is not None and high < low:
            self._fail(self.at, f"expected at least {low} as the upper bound, got {high}")
        if max(low, high or 0) > MAX_REPEAT:
            self._fail(
                self.at, f"expected at most {MAX_REPEAT} repetitions, got {max(low, high or 0)}"
            )
        self.at = close + 1
        return low, high

    # Items.

    def item(self) -> Node | _Ahead | None:
        if self._skip_verbose():
            return None
        start = self.at
        char = self._take()
        match char:
            case "(":
                return self._group(start)
            case "[":
                return self._chars(self._class_expression(start), folded=True)
            case ".":
                if self.flags.dot_all:
                    return Chars(charset.ANY)
                ends = ECMA_LINE_END if self.flags.ecma else charset.NEWLINE
                return Chars(charset.complement(ends))
            case "\\":
                return self._escape(start)
            case "^":
                multi = self.flags.multi_line
                return Assertion(Look.LINE_START if multi else Look.TEXT_START)
            case "$":
                multi = self.flags.multi_line
                return Assertion(Look.LINE_END if multi else Look.LAST_LINE_END)
            case "*" | "+" | "?":
                self._fail(
                    start,
                    f"nothing to repeat before '{char}'; write '\\{char}' for the sign itself",
                )
            case '"' if self.dialect == "flex":
                return self._quoted(start)
            case "{":
                return self._brace(start)
        return self._chars(charset.of(char))

    def _quoted(self, start: int) -> Node:
        parts: list[Node] = []
        while True:
            if self.at >= len(self.source):
                self._fail(start, "expected '\"' to close the string, got the end")
            char = self._take()
            if char == '"':
                return concat(*parts) if parts else EMPTY
            if char == "\\":
                parts.append(self._chars(self._character(self.at - 1)))
            else:
                parts.append(self._chars(charset.of(char)))

    def _brace(self, start: int) -> Node:  # noqa: RET503
        close = self.source.find("}", self.at)
        name = self.source[self.at : close] if close >= 0 else ""
        if name.isidentifier() and (self.dialect == "flex" or name in self.definitions):
            self.at = close + 1
            return self._defined(name, start)
        if self.dialect == "python":
            if close >= 0 and self.source[start] == "{":
                self.at = start
                bounds = self._counted()
                if bounds is not None:
                    self._fail(start, "nothing to repeat before '{'; write '\\{' for the sign")
                self.at = start + 1
            return self._chars(charset.of("{"))
        self._fail(
            start, "expected the name of a definition after '{'; write '\\{' for the sign itself"
        )

    def _defined(self, name: str, start: int) -> Node:
        if name in self.inside:
            chain = " -> ".join((*self.inside, name))
            self._fail(start, f"the definition '{name}' refers to itself ({chain})")
        if name not in self.definitions:
            known = ", ".join(sorted(self.definitions)) or "none"
            self._fail(start, f"there is no definition '{name}'; defined are: {known}")
        inner = _Parser(
            self.definitions[name],
            self.dialect,
            self.flags,
            self.definitions,
            (*self.inside, name),
        )
        try:
            branches = inner.pattern()
        except RegexSyntaxError as error:
            self._fail(start, f"in the definition '{name}': {error.problem}")
        self.lazy |= inner.lazy
        return self._no_look_ahead(list(branches), start)

    # Groups.

    def _group(self, start: int) -> Node | _Ahead | None:
        outer = self.flags
        if self._peek() == "?":
            self.at += 1
            special = self._special_group(start)
            if special is not None:
                return special
            if self.source[self.at - 1] == ")":  # (?#…) or (?i)
                return None
        self.depth += 1
        if self.depth > 200:
            self._fail(start, "expected at most 200 groups inside each other")
        body = self._no_look_ahead(self.branches(), start)
        self.depth -= 1
        self._close(start)
        self.flags = outer
        return body

    def _special_group(self, start: int) -> Node | _Ahead | None:
        rest = self.source[self.at :]
        if rest.startswith("#"):
            self.at = self._find(")", start) + 1
            return None
        if rest.startswith((":", "P<", "<")) and not rest.startswith(("<=", "<!")):
            if rest.startswith(":"):
                self.at += 1
            else:
                self.at = self._find(">", start) + 1
                name = self.source[start:].partition("<")[2].partition(">")[0]
                if not name.isidentifier():
                    self._fail(start, f"expected a name for the group, got '{name}'")
            self.depth += 1
            outer = self.flags
            body = self._no_look_ahead(self.branches(), start)
            self.flags = outer
            self.depth -= 1
            self._close(start)
            return body
        if rest.startswith(("=", "!")):
            return self._look_ahead(start, negative=rest[0] == "!")
        for prefix, name in (
            ("<=", "look-behind"),
            ("<!", "look-behind"),
            ("P=", "a back reference"),
            (">", "an atomic group"),
            ("(", "a conditional group"),
        ):
            if rest.startswith(prefix):
                self._fail(start, f"{name} is not possible in a finite automaton of this kind")
        return self._flag_group(start)

    def _flag_group(self, start: int) -> Node | None:
        switched: dict[str, bool] = {}
        on = True
        while (char := self._peek()) and char not in ":)":
            if char == "-" and on:
                on = False
            elif char in _FLAG_NAMES:
                switched[_FLAG_NAMES[char]] = on
            elif char != "u":
                self._fail(
                    self.at, f"expected one of the flags i, s, m, a, x, u after '(?', got '{char}'"
                )
            self.at += 1
        if not char:
            self._fail(start, "expected ')' to close the group, got the end")
        given = self.source[start + 2 : self.at]
        if given.endswith("-") or (not given and char == ")"):
            self._fail(self.at, f"expected a flag (i, s, m, a, x or u) before '{char}'")
        outer = self.flags
        inner = replace(outer, **switched)
        self.at += 1
        if char == ")":
            self.flags = inner
            return None
        self.flags = inner
        body = self._no_look_ahead(self.branches(), start)
        self._close(start)
        self.flags = outer
        return body

    def _look_ahead(self, start: int, negative: bool) -> _Ahead:
        self.at += 1
        outer = self.flags
        body = self._no_look_ahead(self.branches(), start)
        self.flags = outer
        self._close(start)
        if not negative:
            return _Ahead(body)
        if body == EMPTY:
            return _Ahead(Chars(charset.EMPTY))
        if not isinstance(body, Chars):
            self._fail(
                start,
                "a negative look-ahead is possible for one character or class only: (?![a-z])",
            )
        symbols = charset.union(charset.complement(body.symbols), charset.AT_END)
        return _Ahead(Chars(symbols))
