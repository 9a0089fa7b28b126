r"""Recursive descent over the words of a program.

Loosest first::

    sequence     e ; e                     let, letfun, if extend as far right as they can
    implication  a => b                    to the right
    disjunction  a \/ b
    conjunction  a /\ b
    annotated    a : type                  so an annotation takes the last conjunct only
    negation     not a
    comparison   = == != <> < <= > >=      a < b <= c means a < b /\ b <= c
    sum          + -
    product      * / %
    unary        -a
    power        a^3
    postfix      t.0
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from hagane.tools.prob.language.parameter_parser import ParameterParser
from hagane.tools.prob.language.recursion import deep_recursion
from hagane.tools.prob.language.source import ProgramSyntaxError, Source
from hagane.tools.prob.language.syntax import (
    Annotated,
    Binary,
    Call,
    Choose,
    Expectation,
    Expression,
    Flip,
    If,
    Let,
    LetFun,
    Literal,
    Notice,
    Observe,
    Parsed,
    Probability,
    Project,
    Rand,
    Tuple,
    Type,
    Unary,
    Variable,
    children,
)
from hagane.tools.prob.language.tokens import Word, read_words

_Rule: TypeAlias = Callable[[], Expression]

_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
# Python reads no more at once.
_MOST_DIGITS = 4_000
_MOST_POWER = 1_000
_ORDERINGS = ("<", "<=", ">", ">=")
_ATOMS = frozenset({"NUMBER", "DECIMAL", "true", "false", "NAME"})
_CLOSING_WORDS = frozenset({")", "}", "]", ",", ";", "END", "then", "else", "in"})
# After one of these, an atom before is a whole operand of a conjunction.
_LOOSE_WORDS = _CLOSING_WORDS | {"/\\", "\\/", "=>"}
_CLOSING = (")", "}", "]", ",", ":", "|", ";", "END")
_NAMES = {"/\\": "conjunct", "\\/": "disjunct", "=>": "consequence"}


def parse(source: Source) -> Parsed:
    """Return the tree of a program and the notices that its layout deserves.

    Raises:
        ProgramSyntaxError: It does not parse.
    """
    with deep_recursion():
        parser = _Parser(source, read_words(source))
        if parser.peek().kind == "END":
            raise parser.unexpected(
                "a program, such as rand(0, 5) : {x:int | Prob(x % 2 = 0) = 1/2}"
            )
        unknowns = parser.unknowns()
        expression = parser.sequence()
        parser.expect("END", "the end of the program or an operator")
        return Parsed(expression, tuple(parser.notices), tuple(unknowns))


def parse_type(source: Source) -> Type:
    """Return the tree of a type that stands alone."""
    with deep_recursion():
        parser = _Parser(source, read_words(source))
        result = parser.type()
        parser.expect("END", "the end of the type")
        return result


class _Parser(ParameterParser):
    def __init__(self, source: Source, words: list[Word]):
        super().__init__(source, words)
        self.notices: list[Notice] = []
        # Annotations without parentheses around them, by identity.
        self._bare: set[Annotated] = set()
        # Whether an `in` ahead belongs to a `let` further out.
        self._in_belongs_outside = False
        self._fresh = 0

    # Operators, loosest first.

    def sequence(self) -> Expression:
        first = self.expression()
        if not self.accept(";"):
            return first
        if self.peek().kind in ("END", ")", "}", "in"):
            raise self.unexpected("an expression after ';'")
        rest = self.sequence()
        return Let(first.span.to(rest.span), "_", first, rest)

    def expression(self) -> Expression:
        # Most expressions have no operator, and the body of a 'let' takes all that follow.
        kind = self.peek().kind
        if kind == "let" or (kind in _ATOMS and self.peek(1).kind in _CLOSING_WORDS):
            return self._primary()
        left = self._annotated()
        if self.peek().kind in _CLOSING_WORDS:
            return left
        left = self._chain("\\/", self._conjunction, self._conjunction(left))
        if not self.accept("=>"):
            return left
        right = self.expression()
        whole = Binary(left.span.to(right.span), "=>", left, right)
        self._warn_of_trap("=>", right, whole)
        return whole

    def _conjunction(self, first: Expression | None = None) -> Expression:
        return self._chain("/\\", self._annotated, self._annotated() if first is None else first)

    def _chain(self, operator: str, operand: _Rule, left: Expression) -> Expression:
        chained = False
        while self.accept(operator):
            right = operand()
            left = Binary(left.span.to(right.span), operator, left, right)
            chained = True
        if chained and isinstance(left, Binary):
            self._warn_of_trap(operator, left.right, left)
        return left

    def _warn_of_trap(self, operator: str, last: Expression, whole: Expression) -> None:
        if isinstance(last, Annotated) and last in self._bare:
            inner = self.source.slice(last.expression.span)
            self.notices.append(
                Notice(
                    last.type.span,
                    f"the annotation binds only to the last {_NAMES[operator]} '{inner}'; if "
                    f"the whole of '{self.source.slice(whole.span.to(last.expression.span))}' is "
                    "meant, put it in parentheses",
                )
            )

    def _annotated(self) -> Expression:
        if self.peek().kind in _ATOMS and self.peek(1).kind in _LOOSE_WORDS:
            return self._primary()
        left = self._negation()
        while self.accept(":"):
            claimed = self.type()
            left = Annotated(left.span.to(claimed.span), left, claimed)
            self._bare.add(left)
        return left

    def _negation(self) -> Expression:
        word = self.accept("not")
        if word is None:
            return self._comparison()
        operand = self._negation()
        return Unary(word.span.to(operand.span), "not", operand)

    def _comparison(self) -> Expression:
        operands = [self._sum()]
        operators = []
        while self.peek().kind in _COMPARISONS:
            operators.append(self.next().kind)
            operands.append(self._sum())
        if len(operators) > 1 and all(op in _ORDERINGS for op in operators):
            return self._ordering_chain(operands, operators)
        left = operands[0]
        for operator, right in zip(operators, operands[1:], strict=True):
            left = Binary(left.span.to(right.span), operator, left, right)
        return left

    def _ordering_chain(self, operands: list[Expression], operators: list[str]) -> Expression:
        """Return ``a < b <= c`` as a conjunction in which each operand is evaluated once."""
        span = operands[0].span.to(operands[-1].span)
        bound: list[tuple[str, Expression]] = []
        if not all(_is_plain(operand) for operand in operands):
            for index, operand in enumerate(operands):
                self._fresh += 1
                name = f"(operand {self._fresh})"
                bound.append((name, operand))
                operands[index] = Variable(operand.span, name)
        result: Expression | None = None
        for left, operator, right in zip(operands[:-1], operators, operands[1:], strict=True):
            link = Binary(left.span.to(right.span), operator, left, right)
            result = link if result is None else Binary(span, "/\\", result, link)
        assert result is not None
        for name, operand in reversed(bound):
            result = Let(span, name, operand, result)
        return result

    def _sum(self) -> Expression:
        left = self._product()
        while (word := self.accept("+", "-")) is not None:
            right = self._product()
            left = Binary(left.span.to(right.span), word.kind, left, right)
        return left

    def _product(self) -> Expression:
        left = self._unary()
        while (word := self.accept("*", "/", "%")) is not None:
            if word.kind == "%" and self.peek().kind in _CLOSING:
                raise self.unexpected(
                    "the divisor of '%', which is the remainder here (a percentage is written "
                    "5/100 or 0.05)"
                )
            right = self._unary()
            left = Binary(left.span.to(right.span), word.kind, left, right)
        return left

    def _unary(self) -> Expression:
        word = self.accept("-", "not")
        if word is None:
            return self._power()
        operand = self._unary()
        return Unary(word.span.to(operand.span), word.kind, operand)

    def _power(self) -> Expression:
        """Read ``a^3``, which is ``a * a * a``."""
        if self.peek().kind in _ATOMS and self.peek(1).kind in _LOOSE_WORDS:
            return self._primary()
        base = self._postfix()
        while self.accept("^"):
            word = self.accept("NUMBER")
            if word is None or not 1 <= int(self._digits(word, word.text)) <= _MOST_POWER:
                raise self.unexpected(f"a number from 1 to {_MOST_POWER} after '^'")
            if not _is_plain(base):
                raise ProgramSyntaxError(
                    "a power is a product of equal factors, and this would be drawn anew for each; "
                    "name it by 'let' before",
                    self.source,
                    base.span,
                )
            factor, span = base, base.span.to(word.span)
            base = replace(factor, span=span)
            for _ in range(int(word.text) - 1):
                base = Binary(span, "*", base, factor)
        return base

    def _postfix(self) -> Expression:
        left = self._primary()
        while self.accept("."):
            word = self.accept("NUMBER", "DECIMAL")
            if word is None:
                raise self.unexpected("the number of an item after '.', as in t.0")
            for part in word.text.split("."):  # t.0.1 reads as the decimal 0.1
                left = Project(left.span.to(word.span), left, int(self._digits(word, part)))
        return left

    # Expressions that begin with a word of their own.

    def _primary(self) -> Expression:
        word = self.peek()
        match word.kind:
            case "NUMBER":
                return Literal(self.next().span, int(self._digits(word, word.text)))
            case "DECIMAL":
                return Literal(self.next().span, Fraction(self._digits(word, word.text)))
            case "true" | "false":
                return Literal(self.next().span, word.kind == "true")
            case "(":
                return self._parentheses()
            case "let":
                return self._let()
            case "letfun":
                return self._letfun()
            case "if":
                return self._if()
            case "rand":
                low, high = self._call_of(2, "rand(lo, hi)")
                return Rand(word.span.to(self.last.span), low, high)
            case "flip":
                (probability,) = self._call_of(1, "flip(p)")
                return Flip(word.span.to(self.last.span), probability)
            case "choose":
                return self._choose()
            case "observe":
                return self._observe()
            case "Prob":
                return self._probability()
            case "NAME":
                return self._name()
        raise self.unexpected("an expression")

    def _digits(self, word: Word, text: str) -> str:
        if len(text) > _MOST_DIGITS:
            raise ProgramSyntaxError(
                f"a number is written with at most {_MOST_DIGITS} digits, got {len(text)}; "
                "calculate it, as in 10 * 10",
                self.source,
                word.span,
            )
        return text

    def _name(self) -> Expression:
        word = self.next()
        if word.text == "E" and self.accept("["):
            term, condition = self._event("]")
            return Expectation(word.span.to(self.last.span), term, condition)
        if self.accept("("):
            arguments = self._items(")")
            return Call(word.span.to(self.last.span), word.text, tuple(arguments))
        return Variable(word.span, word.text)

    def _parentheses(self) -> Expression:
        opening = self.expect("(", "'('")
        items = self._items(")")
        if len(items) == 1 and not self._had_trailing_comma:
            # A new node, so the annotation, if it is one, is no longer bare.
            return replace(items[0], span=opening.span.to(self.last.span))
        return Tuple(opening.span.to(self.last.span), tuple(items))

    def _items(self, closing: str) -> list[Expression]:
        outside, self._in_belongs_outside = self._in_belongs_outside, False
        items: list[Expression] = []
        self._had_trailing_comma = trailing = False
        while self.accept(closing) is None:
            items.append(self.sequence())
            trailing = self.accept(",") is not None
            if not trailing:
                self.expect(closing, f"',' or '{closing}'")
                break
        self._in_belongs_outside = outside
        self._had_trailing_comma = trailing
        return items

    def _call_of(self, count: int, form: str) -> list[Expression]:
        word = self.next()
        self.expect("(", f"'(', as in {form}")
        items = self._items(")")
        if len(items) != count:
            raise ProgramSyntaxError(
                f"expected {form}, got {len(items)} argument{'' if len(items) == 1 else 's'}",
                self.source,
                word.span.to(self.last.span),
            )
        return items

    def _let(self) -> Expression:
        word = self.next()
        names, span = self.names("a name or names in parentheses after 'let'")
        claimed = self.type() if self.accept(":") else None
        self.expect("=", "'='")
        bound = self._inside_let(self.sequence)
        if claimed is not None:
            bound = Annotated(bound.span, bound, claimed)
        self.expect("in", "'in'")
        body = self.sequence()
        whole = word.span.to(body.span)
        if len(names) == 1:
            return Let(whole, names[0], bound, body)
        tuple_name = f"({', '.join(names)})"
        for index, name in reversed(list(enumerate(names))):
            if name != "_":
                item = Project(span, Variable(span, tuple_name), index)
                body = Let(whole, name, item, body)
        return Let(whole, tuple_name, bound, body)

    def _inside_let(self, rule: _Rule) -> Expression:
        outside, self._in_belongs_outside = self._in_belongs_outside, True
        result = rule()
        self._in_belongs_outside = outside
        return result

    def _letfun(self) -> Expression:
        word = self.next()
        name = self.expect("NAME", "the name of the function")
        parameters = self.parameters()
        if not self.accept("->"):
            self.expect(":", "':' and the type of the result")
        result = self.type()
        measure: Expression | None = None
        depth: int | None = None
        while self.peek().text in ("measure", "depth"):
            if self.next().text == "measure":
                measure = self._sum()
            else:
                count = self.expect("NUMBER", "a number of calls after 'depth'")
                depth = int(self._digits(count, count.text))
        self.expect("=", "'='")
        definition = self._inside_let(self.sequence)
        self.expect("in", "'in'")
        body = self.sequence()
        span = word.span.to(name.span)
        return LetFun(span, name.text, parameters, result, measure, depth, definition, body)

    def _if(self) -> Expression:
        word = self.next()
        condition = self._inside_let(self.sequence)
        self.expect("then", "'then'")
        then = self._inside_let(self.sequence)
        self.expect("else", "'else'")
        otherwise = self.expression()
        whole = If(word.span.to(otherwise.span), condition, then, otherwise)
        if isinstance(otherwise, Annotated) and otherwise in self._bare:
            self.notices.append(
                Notice(
                    otherwise.type.span,
                    "the annotation binds only to the last branch "
                    f"'{self.source.slice(otherwise.expression.span)}'; if the whole of 'if … "
                    "else …' is meant, put it in parentheses",
                )
            )
        return whole

    def _choose(self) -> Expression:
        word = self.next()
        self.expect("{", "'{', as in choose {1/2: a, 1/2: b}")
        outside, self._in_belongs_outside = self._in_belongs_outside, False
        branches = []
        while True:
            weight = self._sum()
            self.expect(":", "':' and what is chosen with this probability")
            branches.append((weight, self.expression()))
            if self.accept(",") is None or self.peek().kind == "}":
                break
        self.expect("}", "',' or '}'")
        self._in_belongs_outside = outside
        return Choose(word.span.to(self.last.span), tuple(branches))

    def _observe(self) -> Expression:
        """Read ``observe c in e``, ``observe c; e``, or ``observe(c)`` as a value."""
        word = self.next()
        mark = self.mark()
        closers = (";",) if self._in_belongs_outside else (";", "in")
        condition = self.expression()
        if self.peek().kind in closers:
            observed = Observe(word.span.to(condition.span), condition)
            if self.peek().kind == ";":
                return observed
            self.next()
            rest = self.sequence()
            return Let(word.span.to(rest.span), "_", observed, rest)
        self.reset(mark)
        (condition,) = self._observed_value()
        return Observe(word.span.to(self.last.span), condition)

    def _observed_value(self) -> list[Expression]:
        if self.peek().kind != "(":
            return [self._unary()]
        self.next()
        return self._items(")")[:1] or [Literal(self.last.span, True)]

    def _probability(self) -> Expression:
        word = self.next()
        self.expect("(", "'(', as in Prob(x > 0)")
        event, condition = self._event(")")
        return Probability(word.span.to(self.last.span), event, condition)

    def _event(self, closing: str) -> tuple[Expression, Expression | None]:
        event = self.expression()
        condition = self.expression() if self.accept("|") else None
        self.expect(closing, f"'{closing}'" if condition else f"'|' or '{closing}'")
        return event, condition


def _is_plain(node: Expression) -> bool:
    """Tell whether evaluating an expression twice is evaluating it once."""
    if isinstance(node, Probability | Expectation):
        return True
    if not isinstance(node, Literal | Variable | Tuple | Project | Unary | Binary | If):
        return False
    return all(_is_plain(child) for child in children(node))
