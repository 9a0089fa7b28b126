"""The ready specifications that come with the package."""

from __future__ import annotations

from importlib.resources import files

from hagane.errors import InvalidArgument
from hagane.lexgen.lexer import Lexer
from hagane.lexgen.lexing.lex_file import parse_lex_file

NAMES = ("c", "calculator", "gpt2", "json", "python", "systemverilog")


def ready_source(name: str) -> str:
    """Return the text of a ready specification, one of ``NAMES``."""
    if name not in NAMES:
        raise InvalidArgument(f"there is no ready lexer '{name}'; there are: {', '.join(NAMES)}")
    return (files("hagane.lexgen") / "specs" / f"{name}.l").read_text(encoding="utf-8")


def ready_lexer(name: str) -> Lexer:
    """Return a ready lexer: C, a calculator, GPT-2's pre-tokenizer, JSON, Python, SystemVerilog."""
    return Lexer(parse_lex_file(ready_source(name), f"{name}.l"))
