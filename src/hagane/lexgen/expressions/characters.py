r"""The characters of regular expressions: escapes, classes, and reading on."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NoReturn, TypeAlias

from hagane.lexgen.errors import RegexSyntaxError
from hagane.lexgen.expressions import charset, unicode_sets
from hagane.lexgen.expressions.charset import Ranges
from hagane.lexgen.expressions.syntax import Assertion, Chars, Look, Node, literal

Dialect: TypeAlias = Literal["python", "flex"]

_CONTROLS = {"n": 10, "t": 9, "r": 13, "f": 12, "v": 11, "a": 7, "e": 27}
_VERBOSE = " \t\n\r\v\f"  # what (?x) skips, as re has it: other spaces are characters


@dataclass(frozen=True, slots=True)
class Flags:
    """The switches of ``(?imsxa)``, and whether signs mean what they do in ECMA-262."""

    ignore_case: bool = False
    dot_all: bool = False
    multi_line: bool = False
    ascii: bool = False
    verbose: bool = False
    ecma: bool = False


class CharacterReader:
    """A place in an expression, and how to read one character or class from there."""

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

    def _chars(self, symbols: Ranges, folded: bool = False) -> Node:
        if self.flags.ignore_case and not folded:
            symbols = unicode_sets.fold(symbols, self.flags.ascii)
        return Chars(symbols)

    # Escapes.

    def _escape(self, start: int) -> Node:
        char = self._peek()
        if not char:
            self._fail(start, "expected a character after '\\', got the end; write '\\\\' for one")
        looks = {
            "A": Look.TEXT_START,
            "Z": Look.TEXT_END,
            "z": Look.TEXT_END,
            "b": Look.ASCII_BOUNDARY if self.flags.ascii else Look.WORD_BOUNDARY,
            "B": Look.NO_ASCII_BOUNDARY if self.flags.ascii else Look.NO_WORD_BOUNDARY,
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
            if self.flags.ecma and char in "sS":
                symbols = unicode_sets.ECMA_SPACE
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
        """Read the text after a backslash as one character."""
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
        elif char == "c" and self.flags.ecma and self._peek().isascii() and self._peek().isalpha():
            code = ord(self._take()) % 32
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
        first = not self.flags.ecma  # there "[]" is the empty class
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
        while (char := self._peek()) and (char in _VERBOSE or char == "#"):
            if char == "#":
                end = self.source.find("\n", self.at)
                self.at = len(self.source) if end < 0 else end
            else:
                self.at += 1
        return not char or char in "|)"

    def _fail(self, index: int, problem: str) -> NoReturn:
        raise RegexSyntaxError(self.source, index + 1, problem)
