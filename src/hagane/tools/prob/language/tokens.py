"""Words of the language."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from hagane.lexgen import Lexer
from hagane.tools.prob.language.source import ProgramSyntaxError, Source, Span

# fmt: off
KEYWORDS = frozenset({
    "let", "letfun", "in", "if", "then", "else", "not", "true", "false", "int", "bool", "rand",
    "flip", "choose", "observe", "Prob",
})
# fmt: on

# Words of which the text is the kind.
_BY_THEMSELVES = KEYWORDS | {"/\\", "\\/"}
# Two spellings of one operator.
_SPELLINGS = {"==": "=", "<>": "!=", "&&": "/\\", "||": "\\/", "and": "/\\", "or": "\\/"}

RULES: list[tuple[str | None, str]] = [
    (None, r"[ \t\r\n\f]+"),
    (None, r"//[^\n]*"),
    (None, r"#[^\n]*"),
    (None, r"\(\*([^*]|\*+[^*)])*\*+\)"),
    ("DECIMAL", r"[0-9]+\.[0-9]+"),
    ("NUMBER", r"[0-9]+"),
    ("NAME", r"[A-Za-z_][A-Za-z0-9_']*"),
    ("OPERATOR", r"/\\|\\/|=>|->|==|!=|<>|<=|>=|&&|\|\|"),
    ("OPERATOR", r"[-=<>+*/%^(){}\[\],:;|.]"),
]


class Word(NamedTuple):
    """A token: ``kind`` is DECIMAL, NUMBER, NAME, END, or the text of a keyword or operator."""

    kind: str
    text: str
    span: Span


@cache
def _lexer() -> Lexer:
    return Lexer.from_rules(RULES)


def read_words(source: Source) -> list[Word]:
    """Return the tokens of a program, the last of kind END.

    Raises:
        ProgramSyntaxError: A character that no token begins with, or an open comment.
    """
    words: list[Word] = []
    make = tuple.__new__  # this loop takes a third of the time of reading a program
    for kind, text, start, end, _, _ in _lexer().tokenize(source.text):
        # A closed comment is longer than its parenthesis and would have matched.
        if kind == "ERROR" or (text == "(" and source.text.startswith("(*", start)):
            raise _unreadable(source, start)
        text = _SPELLINGS.get(text, text)
        if kind == "OPERATOR" or text in _BY_THEMSELVES:
            kind = text
        words.append(make(Word, (kind, text, make(Span, (start, end)))))
    end = len(source.text)
    words.append(Word("END", "", Span(end, end)))
    return words


def _unreadable(source: Source, offset: int) -> ProgramSyntaxError:
    rest = source.text[offset:]
    if rest.startswith("(*"):
        message = "this comment is not closed by *)"
    elif rest.startswith("\\"):
        message = "'\\' begins no operator here; 'or' is written \\/ and 'and' is written /\\"
    else:
        message = f"no token begins with {rest[0]!r}"
    return ProgramSyntaxError(message, source, Span(offset, offset + 1))
