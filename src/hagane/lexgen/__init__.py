"""Regular expressions to minimal automata, and from those lexers and masks for language models."""

from hagane.lexgen.diagnose import Diagnostic, diagnose
from hagane.lexgen.errors import RegexSyntaxError, SpecificationError
from hagane.lexgen.lexer import Lexer, rule
from hagane.lexgen.ready import NAMES, ready_lexer, ready_source
from hagane.lexgen.regex import Regex
from hagane.lexgen.runtime import Scanner, Token
from hagane.lexgen.specification import Action, Rule, Specification
from hagane.lexgen.token_mask import Bitmask, TokenMask
from hagane.lexgen.vocabulary import Vocabulary
from hagane.machine import NoCompiler

__all__ = [
    "NAMES",
    "Action",
    "Bitmask",
    "Diagnostic",
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
