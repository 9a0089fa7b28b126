"""Lexers in Rust: the same tokens as the Python form, compiled without a warning."""

from __future__ import annotations

import random
import re
import shutil
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from hagane.cli import main
from hagane.lexgen import Lexer, SpecificationError, ready_lexer
from hagane.lexgen.emitting.emit_rust import kind_names
from tests.lexgen.test_languages import LANGUAGES, changed, lexer_of

needs_rust = pytest.mark.skipif(shutil.which("rustc") is None, reason="there is no Rust compiler")
MAIN = r"""
use std::io::{Read, Write};

macro_rules! run {
    ($lexer:ident, $texts:expr, $out:expr) => {
        for text in $texts {
            let mut lexer = $lexer::Lexer::from_bytes(text);
            while let Some(token) = lexer.next() {
                let (line, column) = lexer.line_and_column(token.start);
                writeln!($out, "{} {} {} {} {}", token.kind.name(), token.start, token.end, line,
                    column).unwrap();
            }
            writeln!($out).unwrap();
        }
    };
}

fn main() {
    let mut data = Vec::new();
    std::io::stdin().read_to_end(&mut data).unwrap();
    let mut texts: Vec<&[u8]> = Vec::new();
    let mut rest = &data[..];
    while !rest.is_empty() {
        let size = u32::from_le_bytes(rest[..4].try_into().unwrap()) as usize;
        texts.push(&rest[4..4 + size]);
        rest = &rest[4 + size..];
    }
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    match std::env::args().nth(1).unwrap().as_str() {
ARMS
        _ => panic!(),
    }
}
"""


def build(folder: Path, lexers: Mapping[str, Lexer]) -> Path:
    """Compile lexers to a program; a warning fails."""
    for name, lexer in lexers.items():
        (folder / f"{name}.rs").write_text(lexer.rust_source(), encoding="utf-8")
    arms = "\n".join(f'        "{name}" => run!({name}, texts, out),' for name in lexers)
    modules = "\n".join(f"mod {name};" for name in lexers)
    (folder / "main.rs").write_text(modules + MAIN.replace("ARMS", arms), encoding="utf-8")
    command = ["rustc", "--edition", "2021", "-D", "warnings", "-C", "opt-level=0", "main.rs"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    return folder / "main"


def tokens(program: Path, name: str, texts: Sequence[bytes]) -> list[list[str]]:
    data = b"".join(struct.pack("<I", len(text)) + text for text in texts)
    out = subprocess.run([program, name], input=data, capture_output=True, check=True).stdout
    return [block.splitlines() for block in re.split(r"(?m)^\n", out.decode())[:-1]]


def expected(lexer: Lexer, text: str) -> list[str]:
    return [
        f"{t.kind} {t.byte_start} {t.byte_end} {t.line} {t.column}" for t in lexer.tokenize(text)
    ]


SMALL = r"""
%x STRING
%%
^#.*             HEADING
[0-9]+/".."      INTEGER
[a-z]+/[a-z]*!   CRY
(?a:\Bq)         BORDER
\p{Lu}[\w]*      NAME
".."|"!"         SIGN
type             type
[ \n]+           skip
\"               push(STRING)
<STRING>{
  [^"]+          TEXT
  \"             pop
  <<EOF>>        UNTERMINATED
}
"""
TEXTS = [
    "éq qq éx",
    '# é\n12..3 ab! Ünder_1 x "täx\nt" type',
    '"a',
    "",
    "\0#a",
    "é#a\n#b",
    "3.",
    "ab",
    "ééé",
]


@needs_rust
def test_a_lexer_in_rust_finds_the_tokens_of_the_python_form(tmp_path: Path) -> None:
    path = tmp_path / "small.l"
    path.write_text(SMALL.lstrip("\n"))
    lexer = Lexer.from_file(path)
    empty = Lexer.from_rules([("BORDER", r"\b")])  # matches no character
    program = build(tmp_path, {"small": lexer, "empty": empty})
    assert tokens(program, "empty", [b"ab", b""]) == [expected(empty, "ab"), []]
    found = tokens(program, "small", [text.encode() for text in TEXTS])
    assert found == [expected(lexer, text) for text in TEXTS]
    assert tokens(program, "small", [b"\xff\xfe12..", b"..\xe2\x28"]) == [
        ["ERROR 0 2 1 1", "INTEGER 2 4 1 3", "SIGN 4 6 1 5"],
        ["SIGN 0 2 1 1", "ERROR 2 4 1 3"],
    ]


@needs_rust
@pytest.mark.long
def test_lexers_of_languages_in_rust_find_the_tokens_of_the_python_form(tmp_path: Path) -> None:
    lexers = {name.replace("-", "_"): lexer_of(name) for name in LANGUAGES}
    lexers |= {f"ready_{name}": ready_lexer(name) for name in ("json", "c", "python")}
    program = build(tmp_path, lexers)
    rng = random.Random(5)
    sources = [text for _, text, _ in LANGUAGES.values()]
    for name, lexer in lexers.items():
        texts = [changed(rng.choice(sources), rng) for _ in range(100)]
        texts += [changed(LANGUAGES[name][1], rng) for _ in range(200) if name in LANGUAGES]
        found = tokens(program, name, [text.encode() for text in texts])
        for text, lines in zip(texts, found, strict=True):
            assert lines == expected(lexer, text), (name, text)


def test_the_command_writes_rust_where_the_name_says_so(tmp_path: Path) -> None:
    path = tmp_path / "small.l"
    path.write_text("%%\n[a-z]+  NAME\n")
    with pytest.raises(SystemExit) as ended:
        main(["lex", str(path), "-o", str(tmp_path / "small.rs")])
    assert ended.value.code in (0, None)
    assert "pub enum Kind {\n    ERROR,\n    NAME,\n}" in (tmp_path / "small.rs").read_text()


def test_python_code_is_refused_in_rust_by_place(tmp_path: Path) -> None:
    path = tmp_path / "code.l"
    path.write_text("%%\n[a-z]+  { return 'LONG' if len(text) > 4 else 'NAME' }\n")
    with pytest.raises(SpecificationError, match=r"code\.l:2:1.*the Rust form cannot run"):
        Lexer.from_file(path).rust_source()
    path.write_text("%{\nLIMIT = 4\n%}\n%%\n[a-z]+  NAME\n")
    with pytest.raises(SpecificationError, match="its header is Python code"):
        Lexer.from_file(path).rust_source()


def test_kinds_become_names_that_rust_takes() -> None:
    kinds = ["ERROR", "type", "Self", "a-b", "a_b", "1", "é", "r#x"]
    expected = ["ERROR", "r#type", "Self_", "a_b", "a_b_", "_1", "_", "r_x"]
    expected[6] = "__"  # a name that may not stand alone
    assert kind_names(kinds) == expected
