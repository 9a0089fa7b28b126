"""The run-time part of a lexer: its tables, and the scanner.

Generated modules begin with ``tokens.py`` and this file as they are, which therefore import nothing
but the standard library and each other.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from hagane.lexgen.lexing.tokens import ERROR, ByteIndex, Token, token_class

_DEAD = -1
_HOLD = -2


class Step(NamedTuple):
    """The effect of an accepted rule.

    ``back`` and ``head`` are as in trailing context.     ``code`` is called with the scanner and
    the text and returns the kind. ``split`` tells apart the two parts of a trailing context of
    variable length.
    """

    kind: str | None
    back: int | None = 0
    head: int | None = None
    begin: int = -1
    push: int = -1
    pop: bool = False
    code: Callable[[Any, str], str | None] | None = None
    split: tuple[Automaton, Automaton] | None = None

    @property
    def moves(self) -> bool:
        """Whether the start condition may change."""
        return self.begin >= 0 or self.push >= 0 or self.pop or self.code is not None


class Automaton:
    """A deterministic automaton as one flat table.

    A state is the index of its row. Column 0 holds the rule that the state accepts (0: nothing,
    else the number of a step plus 1), the next columns one class each, the last one says whether
    more input could matter. ``starts`` are the start states of an automaton of its own, by the
    character before.
    """

    def __init__(
        self,
        class_starts: tuple[int, ...],
        class_ids: tuple[int, ...],
        stride: int,
        delta: list[int],
        starts: tuple[int, ...] = (),
    ):
        self.starts = starts
        self.class_starts = class_starts
        self.class_ids = class_ids
        self.stride = stride
        self.delta = delta
        self.latin = bytes(self.class_of(code) for code in range(256)) if stride < 256 else None
        self.ascii_map = {code: chr(self.class_of(code)) for code in range(128)}

    def class_of(self, code: int) -> int:
        """Return the column of a code point."""
        return self.class_ids[bisect_right(self.class_starts, code) - 1]

    def classes(self, text: str, final: bool = True) -> list[int]:
        """Return the column of each character, then the columns of the end."""
        end = [self.class_ids[-1]] * 2 if final else [self.stride - 1]
        if self.latin is not None:
            try:
                return [*text.encode("latin-1").translate(self.latin), *end]
            except UnicodeEncodeError:
                pass
        known = {char: self.class_of(ord(char)) for char in set(text)}
        return [*map(known.__getitem__, text), *end]

    def codes(self, columns: list[int], state: int) -> Iterator[int]:
        """Yield the rules that accept each prefix of a row of columns, until none can be."""
        if state >= 0:
            yield self.delta[state]
        for column in columns:
            state = self.delta[state + column] if state >= 0 else _DEAD
            if state < 0:
                return
            yield self.delta[state]


class Machine:
    """Everything about one lexer; scans any number of texts at once.

    ``starts[condition][context]`` are start states (-1: nothing can match). ``fast[condition]`` is
    a regular expression with one group a step whose first match provably is the longest one, with
    the groups' meanings, or None.
    """

    def __init__(
        self,
        automaton: Automaton,
        steps: list[Step],
        conditions: tuple[str, ...],
        starts: list[list[int]],
        at_end: dict[int, Step],
        fast: list[tuple[str, list[Any]] | None],
    ):
        self.automaton = automaton
        self.steps = steps
        self.conditions = conditions
        self.starts = starts
        self.at_end = at_end
        self.fast = [
            (re.compile(pattern), _meanings(meanings)) if pattern else None
            for pattern, meanings in (entry or ("", []) for entry in fast)
        ]

    def tokenize(self, text: str | Iterable[str]) -> Iterator[Token]:
        """Yield the tokens of a text, or of its pieces; memory for pieces is bounded by a token."""
        scanner = Scanner(self)
        return scanner.scan(text) if isinstance(text, str) else scanner.pieces(text)


def _meanings(meanings: list[Any]) -> list[Any]:
    """Compile the expressions that tell apart the rules of a joint group."""
    return [
        [(re.compile(pattern).fullmatch, kind) for pattern, kind in meaning]
        if isinstance(meaning, list)
        else meaning
        for meaning in meanings
    ]


class Scanner:
    """One run over one text. User code sees it as ``lexer``.

    ``text``, ``start`` and ``end`` describe the match at hand; ``begin``, ``push`` and ``pop``
    change the start condition, ``condition`` names it.
    """

    def __init__(self, machine: Machine):
        self.machine = machine
        self.current = 0
        self.stack: list[int] = []
        self.text = ""
        self.start = self.end = 0
        self.line = 1
        # Index of the last newline before the match, so that column = start - line_start, and of
        # the next one, or the length of the text.
        self.line_start = -1
        self.newline = 0
        self.base = self.base_bytes = 0  # characters and bytes of earlier pieces
        self.token: type[Token] = Token
        self.context = 0
        # Where a piece ends within a match or an error: the condition, the characters of the error,
        # the state (_DEAD of none), the characters taken, the step and the characters accepted.
        self.held: tuple[int, int, int, int, int, int] | None = None
        self.values: dict[str, Any] = {}

    @property
    def condition(self) -> str:
        """The name of the start condition."""
        return self.machine.conditions[self.current]

    def begin(self, name: str) -> None:
        """Enter a start condition."""
        self.current = self.machine.conditions.index(name)

    def push(self, name: str) -> None:
        """Enter a start condition; ``pop`` comes back to this one."""
        self.stack.append(self.current)
        self.begin(name)

    def pop(self) -> None:
        """Go back to the start condition before the last ``push``; without one, to the first."""
        self.current = self.stack.pop() if self.stack else 0

    def scan(self, text: str) -> Iterator[Token]:
        """Return the tokens of a whole text."""
        if not text.isascii():
            self.token = token_class(ByteIndex(text))
        self.newline = _find_newline(text, 0)
        machine = self.machine
        if len(machine.conditions) == 1 and machine.fast[0] is not None and not machine.at_end:
            return self._scan_fast(text, 0)
        return self._scan(text)

    def _scan(self, text: str) -> Iterator[Token]:
        position = 0
        columns: list[int] | None = None
        while position < len(text):
            if self.machine.fast[self.current] is not None:
                position = yield from self._scan_fast(text, position)
            else:
                if columns is None:
                    columns = self.machine.automaton.classes(text)
                position = yield from self._scan_table(text, position, columns, True)
        yield from self._finish(text)

    def pieces(self, pieces: Iterable[str]) -> Iterator[Token]:
        """Yield the tokens of a text that comes in pieces, as soon as nothing can change them."""
        text, position = "", 0
        columns: list[int] = []
        for piece in chain(pieces, (None,)):
            final = piece is None
            text = self._next_piece(text, position, piece or "")
            del columns[:position], columns[-1:]
            columns += self.machine.automaton.classes(piece or "", final)
            position = 0
            while position < len(text):
                before = position, self.current
                position = yield from self._scan_table(text, position, columns, final)
                if not final and (position, self.current) == before:
                    break
        yield from self._finish(text)

    def _next_piece(self, text: str, position: int, piece: str) -> str:
        """Drop the finished part and append a piece."""
        self._reach(text, position)
        self.base += position
        self.base_bytes += len(text[:position].encode("utf-8", "surrogatepass"))
        self.line_start -= position
        text = text[position:] + piece
        self.newline = _find_newline(text, max(self.line_start + 1, 0))
        if self.base_bytes != self.base or not text.isascii():
            self.token = token_class(ByteIndex(text, self.base, self.base_bytes))
        return text

    def _reach(self, text: str, position: int) -> None:
        """Count the lines before a place."""
        while position > self.newline:
            self.line += 1
            self.line_start = self.newline
            self.newline = _find_newline(text, self.newline + 1)

    def _scan_fast(self, text: str, position: int) -> Generator[Token, None, int]:
        """Scan by the regular expression until the start condition changes; return the place.

        This loop decides the speed of a lexer in Python; ``_reach`` is written out in it.
        """
        found = self.machine.fast[self.current]
        assert found is not None
        pattern, meanings = found
        line, line_start, newline = self.line, self.line_start, self.newline
        new, cls, size, current = tuple.__new__, self.token, len(text), self.current
        while True:
            for match in pattern.finditer(text, position):
                start, end = match.start(1), match.end()
                while start > newline:
                    line += 1
                    line_start = newline
                    newline = text.find("\n", newline + 1)
                    if newline < 0:
                        newline = size
                meaning = meanings[match.lastindex]  # type: ignore[index]
                if meaning.__class__ is str:
                    word = text[start:end]
                    yield new(cls, (meaning, word, start, end, line, start - line_start))
                elif meaning.__class__ is dict:
                    word = text[start:end]
                    kind = meaning[word] if word in meaning else meaning[""]
                    yield new(cls, (kind, word, start, end, line, start - line_start))
                elif meaning is None:
                    pass
                elif meaning.__class__ is list:
                    word = text[start:end]
                    kind = next(kind for fullmatch, kind in meaning if fullmatch(word))
                    if kind is not None:
                        yield new(cls, (kind, word, start, end, line, start - line_start))
                elif meaning > 0:
                    self.line, self.line_start, self.newline = line, line_start, newline
                    kind = self._act(self.machine.steps[meaning - 1], text, start, end)
                    if kind is not None:
                        word = text[start:end]
                        yield new(cls, (kind, word, start, end, line, start - line_start))
                    if self.current != current:
                        return end
                else:
                    break
            if meaning < 0:
                self.line, self.line_start, self.newline = line, line_start, newline
                return size
            # Nothing matches here: an error up to the next place where something does.
            position = end
            while position < size:
                match = pattern.match(text, position)  # type: ignore[assignment]
                group: int = match.lastindex  # type: ignore[assignment]
                if meanings[group] != 0 or match.start(1) != position:
                    break
                position += 1
            lost = text[start:position]
            yield new(cls, (ERROR, lost, start, position, line, start - line_start))

    def _act(self, step: Step, text: str, start: int, end: int) -> str | None:
        """Run an action and return the kind of the token."""
        kind = step.kind
        if step.code is not None:
            self.text, self.start, self.end = text[start:end], self.base + start, self.base + end
            kind = step.code(self, self.text)
        if step.begin >= 0:
            self.current = step.begin
        if step.push >= 0:
            self.stack.append(self.current)
            self.current = step.push
        if step.pop:
            self.pop()
        return kind

    def _scan_table(
        self, text: str, position: int, columns: list[int], final: bool
    ) -> Generator[Token, None, int]:
        """Scan by the table until the start condition changes or input is short."""
        machine = self.machine
        delta, steps = machine.automaton.delta, machine.steps
        starts, current = machine.starts[self.current], self.current
        size = len(text)
        error = -1
        held, self.held = self.held, None  # where earlier pieces ended within a match
        if held is not None and held[0] == current:
            error, ahead = (position, held[1]) if held[1] else (-1, 0)
            position += ahead
        else:
            held = None
        while position < size:
            if held is not None and held[2] >= 0:
                first = state = held[2]
                at, accepted, stop = held[3] + position, held[4], held[5] + position
            else:
                state = starts[self._context(text, position, len(starts))]
                first, at, accepted, stop = state, position, 0, position
            held, before = None, state
            while state >= 0:
                before = state
                state = delta[state + columns[at]]
                at += 1
                if state >= 0 and delta[state]:
                    accepted, stop = delta[state], at
            if state == _HOLD and first >= 0:
                ahead = position - error if error >= 0 else 0
                self.held = current, ahead, before, at - 1 - position, accepted, stop - position
                break
            if not accepted:
                if error < 0:
                    error = position
                position += 1
                continue
            step = steps[accepted - 1]
            end = self._token_end(step, text, position, stop)
            if error >= 0:
                yield self._error(text, error, position)
                error = -1
            self._reach(text, position)
            kind = self._act(step, text, position, end) if step.moves else step.kind
            if kind is not None:
                yield self.token(
                    kind,
                    text[position:end],
                    self.base + position,
                    self.base + end,
                    self.line,
                    position - self.line_start,
                )
            position = end
            self.context = ord(text[end - 1])
            if self.current != current:
                return position
        if error >= 0:
            if not final:
                # The error may go on in the next piece.
                self.held = self.held or (current, position - error, _DEAD, 0, 0, 0)
                return error
            yield self._error(text, error, position)
        return position

    def _error(self, text: str, start: int, end: int) -> Token:
        self._reach(text, start)
        lost, column = text[start:end], start - self.line_start
        return self.token(ERROR, lost, self.base + start, self.base + end, self.line, column)

    def _context(self, text: str, position: int, n_contexts: int) -> int:
        """Return the kind of the place: text start, after a newline, after another character."""
        if n_contexts == 1:
            return 0
        if position:
            before = text[position - 1]
        elif self.base:
            before = chr(self.context)
        else:
            return 0
        if before == "\n":
            return 1
        if n_contexts == 3 or (before != "_" and not before.isalnum()):
            return 2
        return 4 if n_contexts == 5 and before.isascii() else 3

    def _token_end(self, step: Step, text: str, start: int, stop: int) -> int:
        """Return where the token ends within a match that includes its trailing context."""
        if step.back is not None:
            return stop - step.back
        if step.head is not None:
            return start + step.head
        assert step.split is not None
        body, following = step.split
        # ``stop`` is one beyond the text where the context has taken the end of the input.
        state = body.starts[self._context(text, start, len(body.starts))]
        columns = body.classes(text[start:stop])[: stop - start]
        ends = {
            length - back
            for length, code in enumerate(body.codes(columns, state))
            for back in range(code.bit_length())
            if code >> back & 1
        }
        columns = following.classes(text[start:stop])[: stop - start]
        for length in sorted(ends, reverse=True):
            state = following.starts[self._context(text, start + length, len(following.starts))]
            codes = list(following.codes(columns[length:], state))
            if len(codes) > stop - start - length and codes[-1]:
                return start + length
        raise AssertionError("a match has a body and a context")

    def _finish(self, text: str) -> Iterator[Token]:
        """Run the actions of the end of the input."""
        self._reach(text, len(text))
        seen = set()
        while self.current in self.machine.at_end and self.current not in seen:
            seen.add(self.current)
            step = self.machine.at_end[self.current]
            kind = self._act(step, "", 0, 0) if step.moves else step.kind
            if kind is not None:
                at = self.base + len(text)
                yield self.token(kind, "", at, at, self.line, len(text) - self.line_start)


def _find_newline(text: str, start: int) -> int:
    """Return where the next newline is, or the length of the text."""
    at = text.find("\n", start)
    return at if at >= 0 else len(text)


def unpack(order: list[int], rows: list[list[int]]) -> list[int]:
    """Return a table of which ``rows`` has each different row as runs (value, length, …)."""
    whole = [
        [value for at in range(0, len(runs), 2) for value in [runs[at]] * runs[at + 1]]
        for runs in rows
    ]
    return [value for number in order for value in whole[number]]
