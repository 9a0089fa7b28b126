"""Whole specifications against flex, where it is installed."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from hagane.lexgen import Lexer
from hagane.lexgen.expressions.parse import parse
from hagane.lexgen.expressions.syntax import matches_empty
from hagane.lexgen.lexing.lex_file import parse_lex_file

pytestmark = pytest.mark.skipif(
    shutil.which("flex") is None or shutil.which("gcc") is None,
    reason="needs flex and gcc (apt-get install flex gcc)",
)

ATOMS = [
    "a", "b", "c", "[ab]", "[^a\\n]", ".", '"ab"', "[[:digit:]]", "\\n", "[a-c]{2}", "(ab|c)",
    "(?i:B)", "[a-z]{-}[bc]", '"a*"', "\\x61",
]  # fmt: skip
MAIN = """
int main(void) {{
  static unsigned char size[4];
  static char data[1 << 16];
  while (fread(size, 1, 4, stdin) == 4) {{
    size_t n = size[0] | size[1] << 8 | size[2] << 16;
    if (fread(data, 1, n, stdin) != n) return 1;
    YY_BUFFER_STATE buffer = yy_scan_bytes(data, n);
    yy_set_bol(1);
    BEGIN(INITIAL);
    while (1) {{
      int kind = yylex();
      if (!kind) break;
      printf("%d %d ", kind, (int)yyleng);
    }}
    yy_delete_buffer(buffer);
    printf("\\n");
  }}
  return 0;
}}
"""


def expression(depth: int) -> str:
    kind = random.randrange(5) if depth else 0
    if kind == 0:
        return random.choice(ATOMS)
    if kind == 1:
        return f"({expression(depth - 1)}|{expression(depth - 1)})"
    if kind == 2:
        return f"({expression(depth - 1)}){random.choice(['*', '+', '?', '{1,2}', '{2}'])}"
    return expression(depth - 1) + expression(depth - 1)


def rules(count: int) -> list[str]:
    """Return random rules.

    Left out is what flex warns to be dangerous (both parts vary), and empty texts before a trailing
    context: flex runs their actions at the same place for ever, here they are no matches.
    """
    made = []
    for _ in range(count):
        body = expression(random.randrange(4))
        kind = random.randrange(8)
        while kind == 1 and matches_empty(parse(body, "flex").branches[0].body):
            body = expression(random.randrange(4))
        if kind == 0:
            body = f"^({body})"
        elif kind == 1:
            body = f"({body})/{random.choice(['b', 'ab', '[ab]c'])}"
        elif kind == 2:
            body = f"<X>{body}"
        elif kind == 3:
            body = f"<*>{body}"
        made.append(body)
    return made


def flex_lexer(folder: Path, patterns: list[str]) -> Path:
    """Compile flex's lexer: kind k for rule k, kind 1000 for characters that nothing matches."""
    lines = ["%option noyywrap noinput nounput nodefault", "%x X", "%%"]
    for number, pattern in enumerate(patterns, 1):
        move = " BEGIN(X);" if number % 4 == 1 else " BEGIN(INITIAL);" if number % 4 == 2 else ""
        lines.append(f"{pattern} {{{move} return {number}; }}")
    lines += ["<*>.|\\n return 1000;", "%%", MAIN.format()]
    source = folder / "f.l"
    source.write_text("\n".join(lines))
    for command in (
        ["flex", "-o", "f.c", "f.l"],
        ["gcc", "-O0", "-w", "-o", "f", "f.c"],
    ):
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "f"


def our_lexer(patterns: list[str]) -> Lexer:
    lines = ["%x X", "%%"]
    for number, pattern in enumerate(patterns, 1):
        move = "; begin(X)" if number % 4 == 1 else "; begin(INITIAL)" if number % 4 == 2 else ""
        lines.append(f"{pattern} return K{number}{move}")
    lines.append("<*>.|\\n return K1000")
    return Lexer(parse_lex_file("\n".join(lines), "f.l"))


def disagreements(folder: Path, specifications: int, inputs: int, seed: int) -> tuple[int, int]:
    """Return how many different inputs were compared, and how many gave different tokens."""
    random.seed(seed)
    compared = different = 0
    while compared < specifications * inputs:
        patterns = rules(random.randint(1, 6))
        lexer = our_lexer(patterns)
        drawn: dict[str, None] = {}
        while len(drawn) < inputs:
            drawn["".join(random.choices("abcA0\n *", k=random.randrange(12)))] = None
        texts = list(drawn)
        program = flex_lexer(folder, patterns)
        data = b"".join(len(text).to_bytes(4, "little") + text.encode() for text in texts)
        done = subprocess.run([str(program)], input=data, capture_output=True, check=True)
        for text, line in zip(texts, done.stdout.decode().split("\n")[:-1], strict=True):
            numbers = [int(word) for word in line.split()]
            theirs = list(zip(numbers[::2], numbers[1::2], strict=True))
            ours = [
                (int(t.kind[1:]) if t.kind != "ERROR" else -1, t.end - t.start)
                for t in lexer.tokenize(text)
            ]
            assert ours == theirs, (patterns, text)
            compared += 1
            different += ours != theirs
    return compared, different


def test_tokens_are_those_of_flex(tmp_path: Path) -> None:
    assert disagreements(tmp_path, 8, 625, seed=1) == (5000, 0)


@pytest.mark.long
def test_tokens_are_those_of_flex_in_100_000_cases(tmp_path: Path) -> None:
    assert disagreements(tmp_path, 100, 1000, seed=2) == (100_000, 0)
