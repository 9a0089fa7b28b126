"""Words one after another, and the grammar of types.

Types hold expressions and expressions hold types; ``parser`` adds the expressions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from hagane.tools.prob.language.source import ProgramSyntaxError, Source, Span
from hagane.tools.prob.language.syntax import (
    BaseType,
    Expression,
    FunctionType,
    Notice,
    Parameter,
    Refinement,
    TupleType,
    Type,
)
from hagane.tools.prob.language.tokens import Word


class TypeParser(ABC):
    """A position among the words of a source, and rules for types."""

    notices: list[Notice]

    def __init__(self, source: Source, words: list[Word]):
        self.source = source
        self.last = words[0]
        self._words = words
        self._next = 0

    @abstractmethod
    def expression(self) -> Expression:
        """Read an expression."""

    # Words.

    def peek(self, ahead: int = 0) -> Word:
        """Return a word without taking it."""
        at = self._next + ahead
        return self._words[at] if at < len(self._words) else self._words[-1]

    def next(self) -> Word:
        """Take a word."""
        self.last = self.peek()
        self._next += 1
        return self.last

    def accept(self, *kinds: str) -> Word | None:
        """Take the next word if it is of one of these kinds."""
        words, at = self._words, self._next
        word = words[at] if at < len(words) else words[-1]
        if word.kind not in kinds:
            return None
        self.last = word
        self._next = at + 1
        return word

    def expect(self, kind: str, described: str) -> Word:
        """Take the next word, which has to be of this kind."""
        if self.peek().kind != kind:
            raise self.unexpected(described)
        return self.next()

    def unexpected(self, described: str) -> ProgramSyntaxError:
        """Return the error that the next word is not the expected one."""
        word = self.peek()
        got = "the end of the text" if word.kind == "END" else f"'{word.text}'"
        return ProgramSyntaxError(f"expected {described}, got {got}", self.source, word.span)

    def mark(self) -> tuple[int, int]:
        """Return where we are, for ``reset``."""
        return self._next, len(self.notices)

    def reset(self, mark: tuple[int, int]) -> None:
        """Go back."""
        self._next, kept = mark
        self.last = self._words[max(0, self._next - 1)]
        del self.notices[kept:]

    # Types.

    def type(self) -> Type:
        """Read a type."""
        first = self._type_item()
        items = [first]
        while self.accept("*"):
            items.append(self._type_item())
        if len(items) == 1:
            return first
        return TupleType(first.span.to(self.last.span), tuple(items))

    def names(self, described: str) -> tuple[tuple[str, ...], Span]:
        """Read a name, or several in parentheses."""
        if (word := self.accept("NAME")) is not None:
            return (word.text,), word.span
        opening = self.peek()
        if opening.kind != "(":
            raise self.unexpected(described)
        self.next()
        names = [self.expect("NAME", "a name").text]
        while self.accept(","):
            names.append(self.expect("NAME", "a name").text)
        self.expect(")", "',' or ')'")
        for name in names:
            if name != "_" and names.count(name) > 1:
                raise ProgramSyntaxError(
                    f"'{name}' stands twice in one pattern", self.source, opening.span
                )
        return tuple(names), opening.span.to(self.last.span)

    def parameters(self) -> tuple[Parameter, ...]:
        """Read ``(x: type, …)``."""
        self.expect("(", "'(' and the parameters")
        parameters: list[Parameter] = []
        while self.accept(")") is None:
            name = self.expect("NAME", "the name of a parameter or ')'")
            self.expect(":", f"':' and the type of '{name.text}'")
            claimed = self.type()
            if any(known.name == name.text for known in parameters):
                raise ProgramSyntaxError(
                    f"the parameter '{name.text}' stands twice", self.source, name.span
                )
            parameters.append(Parameter(name.span.to(claimed.span), name.text, claimed))
            if self.accept(",") is None:
                self.expect(")", "',' or ')'")
                break
        return tuple(parameters)

    def _type_item(self) -> Type:
        word = self.peek()
        match word.kind:
            case "int" | "bool":
                return BaseType(self.next().span, word.kind)
            case "NAME" if word.text == "real":
                return BaseType(self.next().span, "real")
            case "{":
                return self._refinement()
            case "(":
                if self.peek(1).kind == ")" or self.peek(2).kind == ":":
                    return self._function()
                self.next()
                items = [self.type()]
                while self.accept(","):
                    items.append(self.type())
                self.expect(")", "',' or ')'")
                if len(items) == 1:
                    return items[0]
                return TupleType(word.span.to(self.last.span), tuple(items))
        raise self.unexpected("a type: int, bool, real, (type, type) or {x:int | claim}")

    def _refinement(self) -> Type:
        opening = self.next()
        names, _ = self.names("the name of the value, as in {x:int | claim}")
        self.expect(":", "':' and a type, as in {x:int | claim}")
        base = self.type()
        self.expect("|", "'|' and a claim, as in {x:int | claim}")
        claim = self.expression()
        self.expect("}", "an operator or '}'")
        return Refinement(opening.span.to(self.last.span), names, base, claim)

    def _function(self) -> Type:
        opening = self.peek()
        parameters = self.parameters()
        self.expect("->", "'->' and the type of the result")
        result = self.type()
        return FunctionType(opening.span.to(result.span), parameters, result)
