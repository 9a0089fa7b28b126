"""Regular expressions to minimal automata, and from those lexers and masks for language models.

Names load their modules when they are first used: a lexer needs no masks.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_MODULES = {
    "hagane.lexgen.automata.regex": ("Regex",),
    "hagane.lexgen.errors": ("RegexSyntaxError", "SpecificationError"),
    "hagane.lexgen.lexer": ("Lexer", "rule"),
    "hagane.lexgen.lexing.diagnose": ("Diagnostic", "diagnose"),
    "hagane.lexgen.lexing.runtime": ("Scanner",),
    "hagane.lexgen.lexing.specification": ("Action", "Rule", "Specification"),
    "hagane.lexgen.lexing.tokens": ("Token",),
    "hagane.lexgen.masks.grammars.grammar": ("Grammar",),
    "hagane.lexgen.masks.token_mask": ("Bitmask", "TokenMask"),
    "hagane.lexgen.masks.vocabularies.vocabulary": ("Vocabulary",),
    "hagane.lexgen.ready": ("NAMES", "ready_lexer", "ready_source"),
    "hagane.machine": ("NoCompiler",),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}

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


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'hagane.lexgen' has no attribute '{name}'")
    value = getattr(import_module(_PLACES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
