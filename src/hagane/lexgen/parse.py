r"""Regular expressions: text to syntax tree.

Two dialects share one parser:

- ``python``: the syntax of ``re``. Quotes and ``/`` stand for themselves, look-ahead is
  ``(?=s)`` or ``(?!s)`` at the end of a branch, spaces count.
- ``flex``: ``"quoted strings"``, ``r/s`` for trailing context, ``{name}`` for definitions,
  ``[a-z]{-}[aeiou]`` and ``{+}`` for differences and unions of classes; ``^`` and ``$`` are about
  lines.

Both know ``\d \w \s \b \A \Z \xHH \x{H…} \u{H…} \uHHHH \p{Lu} [[:alpha:]] (?i:…) (?s:…) (?m:…)
(?a:…) (?x:…)``. What cannot be decided by a finite automaton (back references, look-behind) is
refused by name.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, NoReturn, TypeAlias

from hagane.lexgen import charset, unicode_sets
from hagane.lexgen.charset import Ranges
from hagane.lexgen.errors import RegexSyntaxError
from hagane.lexgen.syntax import (
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
    literal,
)

Dialect: TypeAlias = Literal["python", "flex"]

MAX_REPEAT = 5000
_CONTROLS = {"n": 10, "t": 9, "r": 13, "f": 12, "v": 11, "a": 7, "e": 27}
_FLAG_NAMES = {"i": "ignore_case", "s": "dot_all", "m": "multi_line", "a": "ascii", "x": "verbose"}


@dataclass(frozen=True, slots=True)
class Flags:
    """What ``(?imsxa)`` switches."""

    ignore_case: bool = False
    dot_all: bool = False
    multi_line: bool = False
    ascii: bool = False
    verbose: bool = False


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
        flags: What holds from the start; ``(?i)`` and the like change it.
        definitions: Named expressions that ``{name}`` refers to.

    Raises:
        RegexSyntaxError: The expression is malformed or beyond finite automata.
    """
    if flags is None:
        flags = Flags(multi_line=dialect == "flex")
    parser = _Parser(source, dialect, flags, dict(definitions or {}), ())
    branches = parser.pattern()
    return Pattern(source, branches, parser.lazy)


class _Parser:
    def __init__(
        self,
        source: str,
        dialect: Dialect,
        flags: Flags,
        definitions: Mapping[str, str],
        inside: tuple[str, ...],
    ):
        self.source = source
        self.at = 0
        self.dialect = dialect
        self.flags = flags
        self.definitions = definitions
        self.inside = inside
        self.depth = 0
        self.lazy = False

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
                return Chars(
                    charset.ANY if self.flags.dot_all else charset.complement(charset.NEWLINE)
                )
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

    def _chars(self, symbols: Ranges, folded: bool = False) -> Node:
        if self.flags.ignore_case and not folded:
            symbols = unicode_sets.fold(symbols, self.flags.ascii)
        return Chars(symbols)

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

    # Escapes.

    def _escape(self, start: int) -> Node:
        char = self._peek()
        if not char:
            self._fail(start, "expected a character after '\\', got the end; write '\\\\' for one")
        looks = {
            "A": Look.TEXT_START,
            "Z": Look.TEXT_END,
            "z": Look.TEXT_END,
            "b": Look.WORD_BOUNDARY,
            "B": Look.NO_WORD_BOUNDARY,
        }
        if char in looks and not (self.dialect == "flex" and char == "b"):
            self.at += 1
            return Assertion(looks[char])
        named = self._named_set(start)
        if named is not None:
            return self._chars(named)
        if char.isdigit() and char != "0" and self.dialect == "python" and not self._octal():
            self._fail(start, f"a back reference (\\{char}) is not possible in a finite automaton")
        if char == "N" and self.source.startswith("{", self.at + 1):
            return literal(chr(self._unicode_name(start)))
        return self._chars(self._character(start))

    def _named_set(self, start: int) -> Ranges | None:
        """Read ``d w s D W S p P`` after a backslash."""
        char = self._peek()
        ascii_only = self.flags.ascii
        sets = {
            "d": unicode_sets.digits,
            "w": unicode_sets.word_characters,
            "s": unicode_sets.spaces,
        }
        if char and char.lower() in sets:
            self.at += 1
            symbols = sets[char.lower()](ascii_only)
            return charset.complement(symbols) if char.isupper() else symbols
        if char not in ("p", "P") or not char:
            return None
        self.at += 1
        if self._peek() == "{":
            close = self._find("}", start)
            name = self.source[self.at + 1 : close]
            self.at = close + 1
        else:
            name = self._take()
        negative = char == "P"
        if name.startswith("^"):
            negative, name = not negative, name[1:]
        symbols_or_none = unicode_sets.category(name)
        if symbols_or_none is None:
            self._fail(
                start,
                f"expected a Unicode category (L, Lu, Nd, …) or a property (XID_Start, "
                f"XID_Continue, White_Space, Alphabetic, ASCII, Any), got '{name}'",
            )
        return charset.complement(symbols_or_none) if negative else symbols_or_none

    def _octal(self) -> bool:
        digits = self.source[self.at : self.at + 3]
        return len(digits) == 3 and all(digit in "01234567" for digit in digits)

    def _character(self, start: int) -> Ranges:
        """Read what follows a backslash as one character."""
        char = self._take()
        if char == "x":
            code = self._hexadecimal(start, 2)
        elif char == "u":
            code = self._hexadecimal(start, 4)
        elif char == "U":
            code = self._hexadecimal(start, 8)
        elif char in "01234567" and (char == "0" or self.dialect == "flex" or self._octal_here()):
            digits = char
            while len(digits) < 3 and (digit := self._peek()) and digit in "01234567":
                digits += self._take()
            code = int(digits, 8)
        elif char in _CONTROLS:
            code = _CONTROLS[char]
        elif char == "b":
            code = 8
        elif char.isascii() and char.isalnum():
            self._fail(
                start, f"'\\{char}' has no meaning; known are \\d \\w \\s \\n \\t \\xHH \\p{{L}} …"
            )
        else:
            code = ord(char)
        if code > charset.MAX:
            self._fail(start, f"expected a code point of at most 10FFFF, got {code:X}")
        return ((code, code),)

    def _octal_here(self) -> bool:
        self.at -= 1
        found = self._octal()
        self.at += 1
        return found

    def _hexadecimal(self, start: int, count: int) -> int:
        if self._peek() == "{":
            close = self._find("}", start)
            digits = self.source[self.at + 1 : close]
            self.at = close + 1
            expected = "hexadecimal digits between the braces"
        else:
            digits = self.source[self.at : self.at + count]
            if self.dialect == "flex":
                while digits and digits[-1] not in "0123456789abcdefABCDEF":
                    digits = digits[:-1]
            self.at += len(digits)
            expected = f"{count} hexadecimal digits"
            if len(digits) < count and self.dialect == "python":
                self._fail(start, f"expected {expected}, got '{digits}'")
        if not digits or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
            self._fail(start, f"expected {expected}, got '{digits}'")
        return int(digits, 16)

    def _unicode_name(self, start: int) -> int:
        close = self._find("}", start)
        name = self.source[self.at + 2 : close]
        self.at = close + 1
        try:
            return ord(unicodedata.lookup(name))
        except KeyError:
            self._fail(start, f"there is no character named '{name}' in Unicode")

    # Classes.

    def _class_expression(self, start: int) -> Ranges:
        symbols = self._class(start)
        while self.dialect == "flex" and self.source.startswith(("{-}[", "{+}["), self.at):
            minus = self.source[self.at + 1] == "-"
            self.at += 4
            other = self._class(self.at - 1)
            symbols = charset.difference(symbols, other) if minus else charset.union(symbols, other)
        return symbols

    def _class(self, start: int) -> Ranges:
        negative = self._peek() == "^"
        self.at += negative
        pieces: list[Ranges] = []
        first = True
        while True:
            if self.at >= len(self.source):
                self._fail(start, "expected ']' to close the class, got the end")
            if self._peek() == "]" and not first:
                self.at += 1
                break
            first = False
            pieces.append(self._class_item(start))
        symbols = charset.union(*pieces)
        if self.flags.ignore_case:
            symbols = unicode_sets.fold(symbols, self.flags.ascii)
        return charset.complement(symbols) if negative else symbols

    def _class_item(self, start: int) -> Ranges:
        at = self.at
        low = self._class_atom(start)
        if self._peek() != "-" or self.source[self.at + 1 : self.at + 2] in ("]", ""):
            return low
        if charset.size(low) != 1 or self.source[at : at + 2] == "[:":
            self._fail(at, "a class cannot be the end of a range; put the '-' last: [\\w-]")
        self.at += 1
        high = self._class_atom(start)
        if charset.size(high) != 1:
            self._fail(at, "a class cannot be the end of a range; put the '-' last: [\\w-]")
        if high[0][0] < low[0][0]:
            self._fail(at, f"the range {self.source[at : self.at]} runs backwards")
        return ((low[0][0], high[0][0]),)

    def _class_atom(self, start: int) -> Ranges:
        at = self.at
        if self.source.startswith("[:", at) and ":]" in self.source[at:]:
            close = self.source.index(":]", at)
            name = self.source[at + 2 : close]
            if name.lstrip("^") in unicode_sets.POSIX:
                self.at = close + 2
                symbols = unicode_sets.POSIX[name.lstrip("^")]
                return charset.complement(symbols) if name.startswith("^") else symbols
            if name.lstrip("^").isalpha():
                known = ", ".join(sorted(unicode_sets.POSIX))
                self._fail(at, f"there is no POSIX class '{name}'; known are: {known}")
        char = self._take()
        if char != "\\":
            return charset.of(char)
        if not self._peek():
            self._fail(start, "expected ']' to close the class, got the end")
        named = self._named_set(at)
        if named is not None:
            return named
        if self._peek() == "N" and self.source.startswith("{", self.at + 1):
            code = self._unicode_name(at)
            return ((code, code),)
        return self._character(at)

    # Reading.

    def _peek(self) -> str:
        return self.source[self.at : self.at + 1]

    def _take(self) -> str:
        char = self.source[self.at]
        self.at += 1
        return char

    def _find(self, sign: str, start: int) -> int:
        index = self.source.find(sign, self.at)
        if index < 0:
            self._fail(start, f"expected '{sign}', got the end")
        return index

    def _close(self, start: int) -> None:
        if self._peek() != ")":
            got = f"'{self._peek()}'" if self._peek() else "the end"
            self._fail(
                start,
                f"expected ')' to close the group, got {got}; write '\\(' for the sign itself",
            )
        self.at += 1

    def _skip_verbose(self) -> bool:
        """Skip spaces and comments under ``(?x)``; return whether nothing else is left here."""
        if not self.flags.verbose:
            return False
        while (char := self._peek()) and (char.isspace() or char == "#"):
            if char == "#":
                end = self.source.find("\n", self.at)
                self.at = len(self.source) if end < 0 else end
            else:
                self.at += 1
        return not char or char in "|)"

    def _fail(self, index: int, problem: str) -> NoReturn:
        raise RegexSyntaxError(self.source, index + 1, problem)
