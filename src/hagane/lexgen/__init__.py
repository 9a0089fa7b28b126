"""Regular expressions to minimal automata, and from those lexers and masks for language models."""

from hagane.lexgen.automata.regex import Regex
from hagane.lexgen.errors import RegexSyntaxError, SpecificationError
from hagane.lexgen.lexer import Lexer, rule
from hagane.lexgen.lexing.diagnose import Diagnostic, diagnose
from hagane.lexgen.lexing.runtime import Scanner
from hagane.lexgen.lexing.specification import Action, Rule, Specification
from hagane.lexgen.lexing.tokens import Token
from hagane.lexgen.masks.grammars.grammar import Grammar
from hagane.lexgen.masks.token_mask import Bitmask, TokenMask
from hagane.lexgen.masks.vocabularies.vocabulary import Vocabulary
from hagane.lexgen.ready import NAMES, ready_lexer, ready_source
from hagane.machine import NoCompiler

__all__ = [
    "NAMES",
    "Action",
    "Bitmask",
    "Diagnostic",
    "Grammar",
    "Lexer",
    "NoCompiler",
    "Regex",
    "RegexSyntaxError",
    "Rule",
    "Scanner",
    "Specification",
    "SpecificationError",
    "Token",
    "TokenMask",
    "Vocabulary",
    "diagnose",
    "ready_lexer",
    "ready_source",
    "rule",
]
