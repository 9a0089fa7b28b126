"""Regular expressions to minimal automata, and from those lexers and masks for language models."""

from hagane.lexgen.errors import NoCompiler, RegexSyntaxError, SpecificationError
from hagane.lexgen.lexer import Lexer, Token
from hagane.lexgen.regex import Regex
from hagane.lexgen.specification import Action, Rule, Specification

__all__ = [
    "Action",
    "Lexer",
    "NoCompiler",
    "Regex",
    "RegexSyntaxError",
    "Rule",
    "Specification",
    "SpecificationError",
    "Token",
]
