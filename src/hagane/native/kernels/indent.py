"""Generated C as a person reads it: one statement a line, indented, lines of bounded length.

Rules write C in lines of any form, and that text is compiled. The text here has the same
tokens in the same order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_WIDTH = 100
_STEP = "  "
_CONTROL = re.compile(r"^(?:\} )?(?:else )?(?:if|for|while|switch)\b")
# A brace behind one of these begins a value: ``= {``, ``(vf){``, ``return (vf){``.
_VALUE = re.compile(r"(?:=|,|\{|(?:^|[=(,+*/?:&|-]|\breturn)\s*\(\s*\w+(?: \*)?\s*\))\s*$")
_TOKEN = re.compile(
    r"""(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|/\*.*?\*/)"""
    r"""|(?P<line>^[ \t]*\#[^\n]*|//[^\n]*)|(?P<mark>[{}();])|(?P<space>\s+)|(?P<other>[^\s{}();"'/]+|/)""",
    re.DOTALL | re.MULTILINE,
)


def indented(code: str) -> str:
    """Return C with one statement a line, indented by two spaces a block."""
    return _Printer().printed(code)


@dataclass
class _Printer:
    """Takes tokens and gives lines.

    Attributes:
        lines: The result.
        text: The statement so far.
        braces: For each open brace, whether it begins a block; if not, it begins a value.
        parentheses: How many are open.
    """

    lines: list[str] = field(default_factory=list)
    text: str = ""
    braces: list[bool] = field(default_factory=list)
    parentheses: int = 0

    def printed(self, code: str) -> str:
        for found in _TOKEN.finditer(code):
            kind, token = found.lastgroup, found.group()
            if kind == "line":
                self._end()
                self.lines.append(token.strip())
            elif kind == "space":
                # The instructions of an assembly block keep their lines.
                whole = "\n" in token and self.parentheses > 0 and "__asm__" in self.text
                if self.text != "}":
                    self.text += "\n" if whole else " "
            elif kind == "mark":
                self._mark(token)
            else:
                self._word(token)
        self._end()
        return "\n".join(self.lines) + "\n"

    def _word(self, token: str) -> None:
        if self.text == "}" and token not in ("else", ",", "="):
            self._end()
        elif self.text == "}":
            self.text += " "
        self.text += token

    def _mark(self, mark: str) -> None:
        if self.text == "}" and mark != ";":
            self._end()
        if mark in "()":
            self.parentheses += 1 if mark == "(" else -1
            self.text += mark
        elif mark == "{":
            self._open()
        elif mark == "}":
            self._close()
        else:
            self.text += mark
            if not self.parentheses and not self._in_value():
                self._end()

    def _in_value(self) -> bool:
        return bool(self.braces) and not self.braces[-1]

    def _open(self) -> None:
        value = self.parentheses > 0 or self._in_value() or bool(_VALUE.search(self.text))
        if value:
            self.text += "{"
        else:
            self.text = f"{self.text.rstrip()} {{".lstrip()
            self._end()
        self.braces.append(not value)

    def _close(self) -> None:
        if self._in_value():
            self.braces.pop()
            self.text += "}"
            return
        self._end()
        self.braces.pop()
        self.text = "}"

    def _end(self) -> None:
        """Put the statement on lines of its own."""
        text, self.text = self.text.strip(), ""
        if text.startswith("}"):
            text = "} " + text[1:].lstrip() if text[1:].strip() not in ("", ";") else text
        if not text:
            return
        depth = sum(self.braces)
        if "\n" in text:
            first, *others = (line.strip() for line in text.split("\n"))
            self.lines.append(_STEP * depth + first)
            self.lines += [_STEP * (depth + 2) + line for line in others]
            return
        text = re.sub(r" {2,}", " ", text) if '"' not in text else text
        self.lines += _wrapped(text, _STEP * depth)


def _wrapped(text: str, margin: str) -> list[str]:
    """Return a statement in lines of bounded length, where it can be broken."""
    if len(margin) + len(text) <= _WIDTH:
        return [margin + text]
    end = _end_of_header(text)
    if end and not text.endswith("{"):
        return [*_broken(text[:end], margin), *_wrapped(text[end:].strip(), margin + _STEP)]
    return _broken(text, margin)


def _end_of_header(text: str) -> int:
    """Return where the parentheses behind ``for`` or ``if`` end, or 0."""
    if not _CONTROL.match(text):
        return 0
    depth = 0
    for at, mark in enumerate(text):
        depth += (mark == "(") - (mark == ")")
        if mark == ")" and depth == 0:
            return at + 1
    return 0


def _broken(text: str, margin: str) -> list[str]:
    lines = []
    indent = margin
    while len(indent) + len(text) > _WIDTH:
        room = _WIDTH - len(indent)
        # Rows of a table stay whole.
        marks = ("}, ",) if text.rfind("}, ", 0, room) > 0 else (", ", " + ", "; ")
        at = max(text.rfind(mark, 0, room) + len(mark) - 2 for mark in marks)
        if at <= 0 or '"' in text:
            break
        lines.append(indent + text[: at + 1].rstrip())
        text, indent = text[at + 1 :].lstrip(), margin + 2 * _STEP
    return [*lines, indent + text]
