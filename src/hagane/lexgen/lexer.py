"""``Lexer``: a lexer made from rules, ready to use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hagane.lexgen.automata.dfa import Dfa
from hagane.lexgen.emitting.emit_python import code_source, python_module
from hagane.lexgen.errors import SpecificationError
from hagane.lexgen.expressions.characters import Dialect, Flags
from hagane.lexgen.expressions.parse import parse
from hagane.lexgen.lexing.compile import Compiled, compile_specification, machine
from hagane.lexgen.lexing.runtime import Machine
from hagane.lexgen.lexing.specification import Action, Rule, Specification
from hagane.lexgen.lexing.tokens import Token

if TYPE_CHECKING:
    from hagane.lexgen.emitting.native_lexer import Arrays, NativeLexer


class Lexer:
    """Splits text into tokens: the longest match, and of those the first rule.

    Subclasses may give their rules as decorated methods, see ``rule``.
    """

    def __init__(self, specification: Specification | None = None):
        if specification is None:
            specification = _from_methods(self)
        self.specification = specification
        if not specification.rules:
            raise SpecificationError(
                f"{specification.source}: expected at least one rule, got none"
            )
        _refuse_lazy(specification)

    @classmethod
    def from_rules(
        cls, rules: Iterable[tuple[str | None, str] | Rule], dialect: Dialect = "python"
    ) -> Lexer:
        """Make a lexer from pairs (kind, regular expression); the kind None skips the match.

        Raises:
            RegexSyntaxError: An expression is malformed.
            SpecificationError: There is no rule, or one is no pair.
        """
        made: list[Rule] = []
        for number, each in enumerate(rules, 1):
            if isinstance(each, Rule):
                made.append(each)
                continue
            if (
                not isinstance(each, Sequence)
                or len(each) != 2
                or not isinstance(each[0], str | None)
                or not isinstance(each[1], str)
            ):
                raise SpecificationError(
                    f"rule {number}: expected a pair (kind, regular expression), got {each!r}"
                )
            kind, source = each
            tree = parse(source, dialect, Flags(multi_line=True))
            made.append(Rule(tree, Action(kind), where=f"rule {number}"))
        conditions = {"INITIAL": False}
        for each in made:
            for name in (*each.conditions, each.action.push, each.action.begin):
                if name and name != "*":
                    conditions.setdefault(name, True)
        return Lexer(Specification(tuple(made), conditions))

    @classmethod
    def from_file(cls, path: str | Path) -> Lexer:
        """Make a lexer from a ``.l`` file."""
        from hagane.lexgen.lexing.lex_file import read_lex_file

        return Lexer(read_lex_file(Path(path)))

    @cached_property
    def compiled(self) -> Compiled:
        """The lexer's automata."""
        return compile_specification(self.specification)

    @property
    def dfa(self) -> Dfa:
        """The minimal automaton over classes of characters."""
        return self.compiled.dfa

    @property
    def kinds(self) -> tuple[str, ...]:
        """All kinds of tokens; the numbers in ``tokenize_arrays`` count in this order."""
        return self.specification.kinds()

    @cached_property
    def machine(self) -> Machine:
        """The running form."""
        source, names = code_source(self.compiled)
        space: dict[str, Any] = {}
        if source or self.specification.header:
            exec(compile(self.specification.header, self.specification.source, "exec"), space)
            exec(compile(source, f"{self.specification.source} (actions)", "exec"), space)
        codes: dict[int, Callable[..., Any]] = {
            number: step.action.function
            for number, step in enumerate(self.compiled.steps)
            if step.action.function is not None
        }
        codes |= {number: space[name] for number, name in names.items()}
        return machine(self.compiled, codes)

    def tokenize(self, text: str | Iterable[str]) -> Iterator[Token]:
        """Yield the tokens of a text, or of its pieces.

        Text that no rule matches comes as a token of kind ``ERROR`` that reaches to the next place
        where a rule matches.
        """
        return self.machine.tokenize(text)

    @cached_property
    def native(self) -> NativeLexer:
        """The compiled C form."""
        from hagane.lexgen.emitting.emit_c import c_source
        from hagane.lexgen.emitting.native_lexer import NativeLexer

        return NativeLexer(c_source(self.compiled))

    def tokenize_arrays(self, data: bytes) -> Arrays:
        """Return the tokens of UTF-8 text as NumPy arrays (kinds, starts, ends), by compiled code.

        ``kinds`` index the property ``kinds``; starts and ends are byte offsets. Bytes that are not
        UTF-8 are errors. User code does not run here.

        Raises:
            NoCompiler: There is no C compiler.
        """
        return self.native.tokenize(data)

    def python_source(self, native: bool = False) -> str:
        """Return the lexer as the source of a Python module; with ``native`` also with C inside."""
        if not native:
            return python_module(self.compiled)
        from hagane.lexgen.emitting.emit_c import c_source

        return python_module(self.compiled, c_source(self.compiled))

    def rust_source(self) -> str:
        """Return the lexer as the source of a Rust module that needs no crate.

        It has ``Kind``, ``Token`` (``kind``, ``start``, ``end``; offsets of bytes) and the iterator
        ``Lexer``.

        Raises:
            SpecificationError: The specification has Python code.
        """
        from hagane.lexgen.emitting.emit_rust import rust_module

        return rust_module(self.compiled)


def rule(
    pattern: str,
    kind: str | None = None,
    *,
    conditions: Sequence[str] = (),
    push: str | None = None,
    begin: str | None = None,
    pop: bool = False,
    dialect: Dialect = "python",
) -> Callable[[Callable[..., str | None]], Callable[..., str | None]]:
    """Decorate a method of a ``Lexer`` subclass as the action of a rule.

    The method gets the match's scanner and text and returns the kind of the token, or None to skip.
    Rules stand in the order in which they are written; several decorators make several rules.
    """

    def add(function: Callable[..., str | None]) -> Callable[..., str | None]:
        rules: list[Any] = getattr(function, "lexer_rules", [])
        tree = parse(pattern, dialect, Flags(multi_line=True))
        function.lexer_rules = [  # type: ignore[attr-defined]
            (tree, Action(kind, begin, push, pop), tuple(conditions)),
            *rules,
        ]
        return function

    return add


def _from_methods(lexer: Lexer) -> Specification:
    """Return the specification that the decorated methods of a subclass make."""
    made: list[Rule] = []
    conditions = {"INITIAL": False}
    for owner in reversed(type(lexer).__mro__):
        for name, method in vars(owner).items():
            for tree, action, active in getattr(method, "lexer_rules", ()):
                bound = replace(action, function=getattr(lexer, name))
                made.append(Rule(tree, bound, active, f"{owner.__name__}.{name}"))
                for condition in (*active, action.push, action.begin):
                    if condition and condition != "*":
                        conditions.setdefault(condition, True)
    if not made:
        raise SpecificationError(
            f"{type(lexer).__name__}: expected methods decorated with @rule(…), got none; or use "
            "Lexer.from_rules or Lexer.from_file"
        )
    return Specification(tuple(made), conditions, source=type(lexer).__name__)


def _refuse_lazy(specification: Specification) -> None:
    for each in specification.rules:
        if each.pattern.lazy:
            raise SpecificationError(
                f"rule {each.label}: a lazy repetition (*?, +?, ??) has no meaning where the "
                'longest match counts; exclude what ends it instead, as in "[^"]*"'
            )
