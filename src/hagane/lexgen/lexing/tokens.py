"""Tokens, and where they stand in the bytes of a text; a part of generated modules."""

from __future__ import annotations

from typing import Any, NamedTuple

ERROR = "ERROR"


class Token(NamedTuple):
    """One token: ``text`` is ``source[start:end]``; ``line`` and ``column`` count from 1."""

    kind: str
    text: str
    start: int
    end: int
    line: int
    column: int

    @property
    def byte_start(self) -> int:
        """Where the token starts in the UTF-8 form of the text."""
        return self.start

    @property
    def byte_end(self) -> int:
        """Where the token ends in the UTF-8 form of the text."""
        return self.end


class ByteIndex:
    """Where the characters of a text stand in its UTF-8 form; made when it is first asked."""

    def __init__(self, text: str, base: int = 0, base_bytes: int = 0):
        self.text = text
        self.base = base
        self.base_bytes = base_bytes
        self.marks: list[int] = []

    def byte_of(self, position: int) -> int:
        """Return the byte offset of a character."""
        if not self.marks:
            self.marks.append(self.base_bytes)
            for at in range(0, len(self.text), 1024):
                block = self.text[at : at + 1024].encode("utf-8", "surrogatepass")
                self.marks.append(self.marks[-1] + len(block))
        position -= self.base
        start = position & ~1023
        rest = self.text[start:position].encode("utf-8", "surrogatepass")
        return self.marks[start >> 10] + len(rest)


def token_class(index: ByteIndex) -> type[Token]:
    """Return the class of the tokens of a text that is not all ASCII.

    The text is known to the class, so a token costs no more than others.
    """

    class Wide(Token):
        __slots__ = ()

        @property
        def byte_start(self) -> int:
            return index.byte_of(self.start)

        @property
        def byte_end(self) -> int:
            return index.byte_of(self.end)

        def __reduce__(self) -> Any:
            return Token, tuple(self)

    Wide.__name__ = Wide.__qualname__ = "Token"
    return Wide
