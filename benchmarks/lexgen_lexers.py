"""Lexers against SLY, flex and re2c on one JSON text and on Python sources, in one run.

python benchmarks/lexgen_lexers.py [--megabytes 4] [--rounds 5]

Needs ``sly`` (0.5) for the Python forms, ``flex``, ``re2c`` and ``gcc`` for the C forms; what is
missing is left out. SLY's lexers have the same rules and must find the same tokens (kind, start and
end) before the clock starts; both count lines, hagane columns too. All C forms fill arrays of
kinds, starts and ends and are compiled with -O2. Rounds alternate between the contestants; medians
and ratios of the time and of the processor's time are printed, one JSON line a text.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import random
import shutil
import statistics
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from hagane.lexgen import Lexer, ready_lexer

FLEX = r"""
%option noyywrap noinput nounput nodefault
%{
#include <stdint.h>
static uint8_t *kinds; static int32_t *starts, *ends; static int64_t n; static int32_t at;
#define ADD(k) kinds[n] = k; starts[n] = at; at += yyleng; ends[n++] = at;
%}
%%
\"([^"\\\x00-\x1f]|\\(["\\/bfnrt]|u[0-9A-Fa-f]{4}))*\"  { ADD(1) }
-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?         { ADD(2) }
"true"  { ADD(3) }
"false" { ADD(4) }
"null"  { ADD(5) }
"{"     { ADD(6) }
"}"     { ADD(7) }
"["     { ADD(8) }
"]"     { ADD(9) }
":"     { ADD(10) }
","     { ADD(11) }
[ \t\r\n]+ { at += yyleng; }
.|\n    { ADD(0) }
%%
int64_t run(char *data, int64_t size, uint8_t *k, int32_t *s, int32_t *e) {
  kinds = k; starts = s; ends = e; n = 0; at = 0;
  YY_BUFFER_STATE buffer = yy_scan_buffer(data, size + 2);
  yylex();
  yy_delete_buffer(buffer);
  return n;
}
"""
RE2C = r"""
#include <stdint.h>
int64_t run(char *data, int64_t size, uint8_t *kinds, int32_t *starts, int32_t *ends) {
  const unsigned char *base = (unsigned char *)data, *p = base, *mark, *end = base + size;
  int64_t n = 0;
#define ADD(k) kinds[n] = k; starts[n] = token - base; ends[n++] = p - base; continue;
  for (;;) {
    const unsigned char *token = p;
    /*!re2c
      re2c:define:YYCTYPE = "unsigned char";
      re2c:define:YYCURSOR = p;
      re2c:define:YYMARKER = mark;
      re2c:yyfill:enable = 0;
      ["] ([^"\\\x00-\x1f] | [\\] (["\\/bfnrt] | "u" [0-9A-Fa-f]{4}))* ["] { ADD(1) }
      "-"? ("0" | [1-9][0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)?  { ADD(2) }
      "true"  { ADD(3) }
      "false" { ADD(4) }
      "null"  { ADD(5) }
      "{" { ADD(6) }
      "}" { ADD(7) }
      "[" { ADD(8) }
      "]" { ADD(9) }
      ":" { ADD(10) }
      "," { ADD(11) }
      [ \t\r\n]+ { continue; }
      [\x00] { if (token == end) return n; ADD(0) }
      * { ADD(0) }
    */
  }
}
"""


def json_text(size: int) -> str:
    """Return about ``size`` bytes of JSON: nested records of texts, numbers and flags."""
    random.seed(1)
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota"]

    def value(depth: int) -> Any:
        kind = random.random()
        if depth == 0 or kind < 0.2:
            return random.choice(
                [random.randint(0, 10**6), random.random() * 1000, True, None]
                + [" ".join(random.choices(words, k=random.randint(1, 8))) for _ in range(3)]
            )
        if kind < 0.5:
            return [value(depth - 1) for _ in range(random.randint(1, 6))]
        return {random.choice(words): value(depth - 1) for _ in range(random.randint(1, 8))}

    parts, total = [], 0
    while total < size:
        parts.append(json.dumps(value(5), indent=1))
        total += len(parts[-1]) + 2
    return "[" + ",\n".join(parts) + "]"


def python_text(size: int) -> str:
    """Return about ``size`` bytes of sources of the standard library."""
    parts, total = [], 0
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        parts.append(path.read_text(encoding="utf-8"))
        total += len(parts[-1])
        if total >= size:
            break
    return "\n".join(parts)


def sly_json() -> Callable[[str], Iterator[Any]] | None:
    try:
        import sly
    except ImportError:
        return None
    names = "STRING NUMBER TRUE FALSE NULL LBRACE RBRACE LBRACKET RBRACKET COLON COMMA"

    class Json(sly.Lexer):  # type: ignore[misc]
        tokens = set(names.split())  # noqa: RUF012
        ignore = " \t\r"
        STRING = r'"([^"\\\x00-\x1f]|\\(["\\/bfnrt]|u[0-9A-Fa-f]{4}))*"'
        NUMBER = r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?"
        TRUE, FALSE, NULL = "true", "false", "null"
        LBRACE, RBRACE, LBRACKET, RBRACKET, COLON, COMMA = r"\{", r"\}", r"\[", r"\]", ":", ","

        @_(r"\n+")  # noqa: F821 - SLY puts it into the class
        def ignore_newline(self, found: Any) -> None:
            self.lineno += len(found.value)

    return lambda text: iter(Json().tokenize(text))


def sly_python() -> Callable[[str], Iterator[Any]] | None:
    try:
        import keyword

        import sly
    except ImportError:
        return None
    prefix = "(?:[rRuUbBfF]|[bB][rR]|[rR][bB]|[fF][rR]|[rR][fF])?"
    triple = r'(?:"{3}(?:[^"\\]|\\[\s\S]|"{1,2}(?!"))*"{3}'
    triple += r"|'{3}(?:[^'\\]|\\[\s\S]|'{1,2}(?!'))*'{3})"

    class Python(sly.Lexer):  # type: ignore[misc]
        tokens = {"STRING", "NUMBER", "NAME", "COMMENT", "OP", "KEYWORD", "NEWLINE"}  # noqa: RUF012
        ignore = " \t\f"

        @_(r"\\\r?\n")  # noqa: F821 - SLY puts it into the class
        def ignore_joined(self, found: Any) -> None:
            self.lineno += 1

        @_(prefix + triple)  # noqa: F821
        def LONG(self, found: Any) -> Any:  # noqa: N802
            self.lineno += found.value.count("\n")
            found.type = "STRING"
            return found

        STRING = prefix + r"""(?:"(?:[^"\\\n]|\\[\s\S])*"|'(?:[^'\\\n]|\\[\s\S])*')"""
        COMMENT = r"\#[^\r\n]*"
        NUMBER = (
            r"0[xX](?:_?[0-9a-fA-F])+|0[bB](?:_?[01])+|0[oO](?:_?[0-7])+"
            r"|(?:[0-9](?:_?[0-9])*\.?(?:[0-9](?:_?[0-9])*)?|\.[0-9](?:_?[0-9])*)"
            r"(?:[eE][-+]?[0-9](?:_?[0-9])*)?[jJ]?"
        )
        NAME = r"[^\W\d]\w*"
        OP = (
            r"\*\*=|//=|>>=|<<=|\.\.\.|!=|->|:=|==|<=|>=|\+=|-=|\*=|/=|%=|&=|\|=|\^=|@="
            r"|\*\*|//|<<|>>|[-+*/%@&|^~<>()\[\]{},:.;=]"
        )
        list(map(NAME.__setitem__, keyword.kwlist, ["KEYWORD"] * len(keyword.kwlist)))

        @_(r"\r?\n")  # noqa: F821
        def NEWLINE(self, found: Any) -> Any:  # noqa: N802
            self.lineno += 1
            return found

    return lambda text: iter(Python().tokenize(text))


def compiled(source: str, suffix: str, command: list[str]) -> Callable[[bytes], int] | None:
    """Build a C lexer with a tool and return a function that fills arrays with it."""
    if shutil.which(command[0]) is None or shutil.which("gcc") is None:
        return None
    folder = Path(tempfile.mkdtemp(prefix="lexgen-bench-"))
    (folder / f"lexer.{suffix}").write_text(source)
    subprocess.run([*command, "-o", "lexer.c", f"lexer.{suffix}"], cwd=folder, check=True)
    flags = ["gcc", "-O2", "-w", "-fPIC", "-shared", "-o", "lexer.so", "lexer.c"]
    subprocess.run(flags, cwd=folder, check=True)
    function = ctypes.CDLL(str(folder / "lexer.so")).run
    shutil.rmtree(folder)
    function.restype = ctypes.c_int64
    function.argtypes = [ctypes.c_char_p, ctypes.c_int64, *[ctypes.c_void_p] * 3]

    def tokenize(data: bytes) -> int:
        kinds = np.empty(len(data), np.uint8)
        starts, ends = np.empty(len(data), np.int32), np.empty(len(data), np.int32)
        pointers = [array.ctypes.data for array in (kinds, starts, ends)]
        return int(function(data + b"\0\0", len(data), *pointers))

    return tokenize


def check_same(lexer: Lexer, peer: Callable[[str], Iterator[Any]], text: str) -> None:
    """Stop unless SLY finds the tokens that hagane finds."""
    pairs = zip_longest(lexer.tokenize(text), peer(text))
    for ours, theirs in pairs:
        found = theirs and (theirs.type, theirs.index, theirs.end)
        if found != (ours and (ours.kind, ours.start, ours.end)):
            raise SystemExit(f"the tokens differ: hagane {ours}, SLY {theirs}")


def race(name: str, size: int, runs: dict[str, Callable[[], int]], rounds: int) -> None:
    times: dict[str, list[float]] = {key: [] for key in runs}
    processor: dict[str, list[float]] = {key: [] for key in runs}
    counts = {}
    for _ in range(rounds):
        for key, run in runs.items():
            started, at = time.perf_counter(), time.process_time()
            counts[key] = run()
            times[key].append(time.perf_counter() - started)
            processor[key].append(time.process_time() - at)
    medians = {key: statistics.median(each) for key, each in times.items()}
    spent = {key: statistics.median(each) for key, each in processor.items()}
    first = next(iter(medians))
    row = {
        "text": name,
        "bytes": size,
        "tokens": counts,
        "megabytes_per_second": {k: round(size / m / 1e6, 1) for k, m in medians.items()},
        f"ratio_of_{first}": {k: round(m / medians[first], 2) for k, m in medians.items()},
        "ratio_of_processor_time": {k: round(m / spent[first], 2) for k, m in spent.items()},
    }
    print(json.dumps(row))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    size = int(arguments.megabytes * 1e6)
    text = json_text(size)
    data = text.encode()
    lexer = ready_lexer("json")
    runs: dict[str, Callable[[], int]] = {
        "hagane, Python": lambda: sum(1 for _ in lexer.tokenize(text))
    }
    sly = sly_json()
    if sly is not None:
        check_same(lexer, sly, text)
        runs["SLY"] = lambda: sum(1 for _ in sly(text))
    race("JSON, Python forms", len(data), runs, arguments.rounds)
    lexer.native  # noqa: B018 - compiled before the clock starts
    native: dict[str, Callable[[], int]] = {
        "hagane, C": lambda: len(lexer.tokenize_arrays(data)[0])
    }
    flex = compiled(FLEX, "l", ["flex", "-Cf"])
    re2c = compiled(RE2C, "re", ["re2c", "-W"])
    if flex is not None:
        native["flex -Cf"] = lambda: flex(data)
    if re2c is not None:
        native["re2c"] = lambda: re2c(data)
    race("JSON, C forms", len(data), native, arguments.rounds)
    source = python_text(size)
    python = ready_lexer("python")
    python.native  # noqa: B018
    raw = source.encode()
    peer = sly_python()
    sources: dict[str, Callable[[], int]] = {
        "hagane, Python": lambda: sum(1 for _ in python.tokenize(source)),
        "hagane, C": lambda: len(python.tokenize_arrays(raw)[0]),
    }
    if peer is not None:
        check_same(python, peer, source)
        sources["SLY"] = lambda: sum(1 for _ in peer(source))
    race("Python sources", len(raw), sources, arguments.rounds)


if __name__ == "__main__":
    main()
