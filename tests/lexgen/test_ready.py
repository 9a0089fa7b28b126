"""The ready lexers against what others make of the same texts."""

from __future__ import annotations

import io
import json
import random
import re
import sysconfig
import time
import token
import tokenize
from pathlib import Path

import pytest

from hagane.errors import InvalidArgument
from hagane.lexgen import NAMES, Lexer, diagnose, ready_lexer
from hagane.lexgen.expressions.unicode_sets import category
from tests.lexgen.test_lexer import needs_compiler


def kinds(name: str, text: str) -> list[str]:
    return [found.kind for found in ready_lexer(name).tokenize(text)]


@pytest.mark.parametrize("name", NAMES)
def test_ready_lexers_have_no_findings(name: str) -> None:
    assert diagnose(ready_lexer(name).compiled) == []


@pytest.mark.parametrize("name", ["json", "python", "systemverilog"])
def test_ready_lexers_of_languages_run_as_one_expression_of_re(name: str) -> None:
    assert None not in ready_lexer(name).machine.fast


def sources() -> list[Path]:
    folder = Path(sysconfig.get_path("stdlib"))
    return [path for path in sorted(folder.glob("*.py")) if path.stat().st_size < 40_000][:40]


@pytest.mark.long
@needs_compiler
def test_python_sources_have_the_tokens_of_the_standard_library() -> None:
    lexer = ready_lexer("python")
    types = (token.NAME, token.NUMBER, token.STRING, token.OP, token.COMMENT)
    compared = 0
    for path in sources():
        source = path.read_text(encoding="utf-8")
        expected = [
            (found.string, found.start)
            for found in tokenize.generate_tokens(io.StringIO(source).readline)
            if found.type in types
        ]
        tokens = list(lexer.tokenize(source))
        found = [(t.text, (t.line, t.column - 1)) for t in tokens if t.kind != "NEWLINE"]
        if token.tok_name.get(61) != "FSTRING_START" or not re.search(r"\b[fF][rR]?[\"']", source):
            assert found == expected, path.name
            compared += 1
        arrays = lexer.tokenize_arrays(source.encode())
        in_c = zip(*(array.tolist() for array in arrays), strict=True)
        assert [(lexer.kinds[k], s, e) for k, s, e in in_c] == [
            (t.kind, t.byte_start, t.byte_end) for t in tokens
        ]
    assert compared >= 10


def test_the_python_lexer_is_generated_in_under_two_seconds() -> None:
    started = time.process_time()
    Lexer(ready_lexer("python").specification).machine.tokenize("")
    assert time.process_time() - started < 2


def gpt2_words() -> re.Pattern[str]:
    """The original expression, its Unicode categories written out for ``re``."""
    letters, numbers = category("L"), category("N")
    assert letters is not None
    assert numbers is not None
    letter, number = (
        "".join(rf"\U{low:08x}-\U{high:08x}" for low, high in symbols)
        for symbols in (letters, numbers)
    )
    return re.compile(
        rf"'s|'t|'re|'ve|'m|'ll|'d| ?[{letter}]+| ?[{number}]+| ?[^\s{letter}{number}]+"
        r"|\s+(?!\S)|\s+"
    )


def test_gpt2_words_are_those_of_the_original_expression() -> None:
    lexer, original = ready_lexer("gpt2"), gpt2_words()
    random.seed(5)
    for _ in range(2000):
        text = "".join(random.choices("ab'strelvd 12  \n\té日²!.?_", k=random.randrange(30)))
        assert [t.text for t in lexer.tokenize(text)] == original.findall(text), text


def test_json_texts_have_their_tokens() -> None:
    random.seed(6)
    value = [{"a": [1, -2.5e-3, True, None, 'q"\\\u1234é']}, [], {"b": {}}] * 3
    text = json.dumps(value, indent=2)
    tokens = list(ready_lexer("json").tokenize(text))
    assert "ERROR" not in {t.kind for t in tokens}
    joined = "".join(t.text for t in tokens)
    assert json.loads(joined) == value
    assert kinds("json", "01 truer") == ["NUMBER", "NUMBER", "TRUE", "ERROR"]


def test_c_tokens() -> None:
    text = (
        '#define A(x) \\\n  (x)\nint x = 0x1fUL + .5e-3f; /* a * / */ char *s = L"a\\"b"; x >>= 1;'
    )
    assert kinds("c", text) == [
        "DIRECTIVE", "KEYWORD", "NAME", "PUNCTUATOR", "INTEGER", "PUNCTUATOR", "FLOAT",
        "PUNCTUATOR", "KEYWORD", "PUNCTUATOR", "NAME", "PUNCTUATOR", "STRING", "PUNCTUATOR", "NAME",
        "PUNCTUATOR", "INTEGER", "PUNCTUATOR",
    ]  # fmt: skip


def test_systemverilog_tokens() -> None:
    text = "always_ff @(posedge clk) q <= 8'hFF_x + 4 'b1z; `W \\a+b $display(\"x\", 1.5ns); // c"
    assert kinds("systemverilog", text) == [
        "KEYWORD", "OPERATOR", "OPERATOR", "KEYWORD", "NAME", "OPERATOR", "NAME", "OPERATOR",
        "NUMBER", "OPERATOR", "NUMBER", "OPERATOR", "DIRECTIVE", "ESCAPED_NAME", "SYSTEM_NAME",
        "OPERATOR", "STRING", "OPERATOR", "TIME", "OPERATOR", "OPERATOR",
    ]  # fmt: skip


def test_calculator_comments_nest_and_strings_have_parts() -> None:
    assert kinds("calculator", '1 #( a #(b) ( ) ) + "x\\n" #( ') == [
        "NUMBER", "OPERATOR", "QUOTE", "TEXT", "ESCAPE", "QUOTE", "UNTERMINATED",
    ]  # fmt: skip


def test_an_unknown_ready_lexer_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="there is no ready lexer 'ada'; there are: c, calc"):
        ready_lexer("ada")
