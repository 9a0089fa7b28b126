"""The ready lexers of SystemVerilog and C against lexers of other makers, on files in use.

The small texts here are always compared where the other lexer is installed. The variable
``HAGANE_LEX_CORPUS`` names a folder whose ``.sv``, ``.svh``, ``.v``, ``.h`` and ``.c`` files are
compared as well.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hagane.lexgen import ready_lexer

DESIGNS = sorted((Path(__file__).parents[1] / "tools" / "rtl" / "designs").glob("*.sv"))
VERILOG = r"""
`timescale 1ns/1ps
`define JOIN(a, b) a``_``b \
    + `"b`" `\`" "text \" more"
(* keep = "yes" *) module \odd+name #(parameter int W = 8, localparam type T = logic[W-1:0])
  (input wire clk, output T q);
  always_ff @(posedge clk) q <= 8'hFF_x + 4 'b1z + 'd 3 + 12'o7?_1 - 16 'sh1e3 + 'h 7F;
  always @(*) if (a ==? b && c !=? d <-> e) #1.5ns x'(3) <<<= 2; else y >>>= 3e4 * 1.2E+3;
  initial begin $display("%d", $unit::q, 1step, '0, 'x, '{default: '1}); end // the end
  property p; @(posedge clk) a |-> ##[1:$] b |=> c #-# d #=# e; endproperty
  assign {a, b} = c ? d -: 4 : d[3 +: 2] ~^ e ^~ f ~| g ~& h; /* a * / ** */
  import p::*; a.*; f inside {[0:3]}; (a *> b) = 1; x ->> y; z := 3; w :/ 4; l: m ://n
  o :/* p */; 5ms; a &&& b;
endmodule
"""
C = r"""
int x = 0x1fUL, y = 017, z = 0; float f = .5e-3f, g = 1.e4, h = 0x1.8p3, i = 12e3L;
#define TWO(a) \
  a /* over
  lines */ + "x // y" // end
  # include <a/b.h>
static inline char *s = "a\"b\\" , c = '\'', d = '\x41', e[] = {L'a', '\0'};
/* a * / ** */ struct t { unsigned long long a : 3; } *p; // the end
void f(int n, ...) { for (;n-- > 0;) p->a <<= x++ ? a ^= b : (c |= ~d, a && b || !c);
  a >>= 1; a %= b; a *= 2; a /= 3; a &= b >= c <= d != e == g; q[3].r = sizeof(int) * 2 % 3; }
"""


def corpus(*suffixes: str) -> list[Path]:
    folder = os.environ.get("HAGANE_LEX_CORPUS")
    if folder is None:
        return []
    files = sorted(Path(folder).rglob("*"))
    # Templates of other tools (x.tpl.sv) are not yet in the language.
    return [p for p in files if p.suffix in suffixes and p.is_file() and ".tpl." not in p.name]


def texts(paths: list[Path]) -> Iterator[tuple[str, str]]:
    for path in paths:
        try:
            yield str(path), path.read_bytes().decode()
        except UnicodeDecodeError:
            continue


_DIGITS = {"Identifier", "IntegerLiteral", "Question", "RealLiteral", "TimeLiteral"}
_SLANG = {
    "StringLiteral": "STRING", "IntegerLiteral": "NUMBER", "UnbasedUnsizedLiteral": "NUMBER",
    "RealLiteral": "REAL", "TimeLiteral": "TIME", "OneStep": "TIME", "Directive": "DIRECTIVE",
    "MacroUsage": "DIRECTIVE", "SystemIdentifier": "SYSTEM_NAME", "UnitSystemName": "SYSTEM_NAME",
    "RootSystemName": "SYSTEM_NAME",
}  # fmt: skip


def _is_digits(kind: str, raw: str) -> bool:
    """Return whether a token after a base may be its digits; the name in 'DbgEn is none."""
    names = kind != "Identifier" or re.fullmatch("[0-9a-fA-FxXzZ?_]+", raw)
    return kind in _DIGITS and bool(names)


def by_slang(text: str) -> list[tuple[str, str, int]]:
    """Return kind, text and start of slang's tokens; it leaves numbers with a base in parts."""
    pyslang = pytest.importorskip("pyslang", reason="needs pyslang (the extra 'rtl')")
    from pyslang.parsing import Lexer, TokenKind

    sources = pyslang.SourceManager()
    memory, messages = pyslang.BumpAllocator(), pyslang.Diagnostics()
    lexer = Lexer(sources.assignText(text), memory, messages, sources)
    parts: list[tuple[str, str, int]] = []
    while (token := lexer.lex()).kind != TokenKind.EndOfFile:
        # Offsets are in bytes; the texts compared here are found again by their characters.
        parts.append((token.kind.name, token.rawText, token.location.offset))
    found: list[tuple[str, str, int]] = []
    data = text.encode()
    at = 0
    while at < len(parts):
        kind, _, start = parts[at]
        sized = kind == "IntegerLiteral" and parts[at + 1 : at + 2]
        if sized and parts[at + 1][0] == "IntegerBase":
            at += 1
            kind = "IntegerBase"
        end = parts[at][2] + len(parts[at][1].encode())
        at += 1
        if kind == "IntegerBase":
            first = True
            while at < len(parts) and _is_digits(*parts[at][:2]) and (first or parts[at][2] == end):
                end = parts[at][2] + len(parts[at][1].encode())
                at += 1
                first = False
            kind = "IntegerLiteral"
        if kind == "LineContinuation":
            continue
        raw = data[start:end].decode()
        if kind == "Identifier":
            name = "ESCAPED_NAME" if raw.startswith("\\") else "NAME"
        elif kind.endswith("Keyword"):
            name = "KEYWORD"
        else:
            name = _SLANG.get(kind, "OPERATOR")
        found.append((name, raw, start))
    return found


def of_ready(name: str, text: str) -> list[tuple[str, str, int]]:
    return [(t.kind, t.text, t.byte_start) for t in ready_lexer(name).tokenize(text)]


def assert_same(found: list[Any], expected: list[Any], where: str) -> None:
    for ours, theirs in zip(found, expected, strict=False):
        assert ours == theirs, f"{where}: {ours} != {theirs}"
    assert len(found) == len(expected), where


@pytest.mark.parametrize("path", [None, *DESIGNS], ids=lambda path: path.name if path else "text")
def test_systemverilog_tokens_are_those_of_slang(path: Path | None) -> None:
    text = VERILOG if path is None else path.read_text()
    assert_same(of_ready("systemverilog", text), by_slang(text), str(path))


@pytest.mark.long
def test_systemverilog_files_of_a_corpus_have_the_tokens_of_slang() -> None:
    paths = corpus(".sv", ".svh", ".v")
    if not paths:
        pytest.skip("HAGANE_LEX_CORPUS names no folder with .sv, .svh or .v files")
    for name, text in texts(paths):
        assert_same(of_ready("systemverilog", text), by_slang(text), name)


_CLANG = {"IDENTIFIER": "NAME", "PUNCTUATION": "PUNCTUATOR", "KEYWORD": "KEYWORD"}


def by_clang(text: str, spans: list[tuple[int, int]]) -> list[tuple[str, str, int]]:
    """Return kind, text and start of clang's tokens outside of some spans of bytes."""
    reason = "needs libclang (pip install libclang)"
    cindex = pytest.importorskip("clang.cindex", reason=reason)
    options = cindex.TranslationUnit.PARSE_INCOMPLETE
    unit = cindex.Index.create().parse(
        "text.c", ["-std=c17"], [("text.c", text)], options=options | 0x200
    )
    found = []
    inside = iter([*spans, (len(text.encode()) + 1, 0)])
    low, high = next(inside)
    for token in unit.get_tokens(extent=unit.cursor.extent):
        name, start = token.kind.name, token.extent.start.offset
        if name == "COMMENT":
            continue
        while start >= low and start >= high:
            low, high = next(inside)
        if start < low:
            # Words of compilers are names for the standard; joined lines stand before a token.
            raw = token.spelling
            own = name == "KEYWORD" and raw.startswith(("__", "_Float16"))
            start += len(raw) - len(raw.lstrip("\\\n"))
            found.append(("NAME" if own else _CLANG.get(name, name), raw.lstrip("\\\n"), start))
    return found


def compare_c(text: str, where: str) -> None:
    tokens = list(ready_lexer("c").tokenize(text))
    spans = [(t.byte_start, t.byte_end) for t in tokens if t.kind == "DIRECTIVE"]
    for low, high in spans:
        line = text.encode()[low:high].decode()
        line = re.sub(r"/\*.*?\*/", " ", line.replace("\\\n", ""), flags=re.DOTALL)
        assert "\n" not in line, where  # a directive is one line
        assert line.lstrip().startswith("#"), where
    literals = ("INTEGER", "FLOAT", "STRING", "CHARACTER")
    found = [
        ("LITERAL" if t.kind in literals else t.kind, t.text, t.byte_start)
        for t in tokens
        if t.kind != "DIRECTIVE"
    ]
    assert_same(found, by_clang(text, spans), where)


def test_c_tokens_are_those_of_clang() -> None:
    compare_c(C, "text")


@pytest.mark.long
def test_c_files_of_a_corpus_have_the_tokens_of_clang() -> None:
    paths = corpus(".h", ".c")
    if not paths:
        pytest.skip("HAGANE_LEX_CORPUS names no folder with .h or .c files")
    for name, text in texts(paths):
        compare_c(text, name)
