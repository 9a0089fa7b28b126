"""``.l`` files, findings about them, and the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hagane.cli import main
from hagane.lexgen import Lexer, SpecificationError, diagnose, ready
from hagane.lexgen.lexing.draw import draw_stages
from hagane.lexgen.lexing.lex_file import parse_lex_file, read_lex_file
from tests.lexgen.test_lexer import needs_compiler

STATES = """\
%x COMMENT
%s LOUD
word [a-z]+
%{
LIMIT = 4
%}
%%
"/*"            push(COMMENT)
<COMMENT>{
  "*/"          yy_pop_state();
  [^*]+|"*"     ;
  <<EOF>>       { return UNTERMINATED; }
}
"!"             BEGIN(LOUD);
<LOUD>{word}    SHOUT
<LOUD>"."       return DOT; BEGIN(INITIAL)
{word}          {
    if len(text) > LIMIT:
        return "LONG"
    return "WORD"
}
^"#"            |
"%"             MARK
[ \\n]+          skip
%%
EXTRA = 1
"""


def kinds(lexer: Lexer, text: str) -> list[str]:
    return [token.kind for token in lexer.tokenize(text)]


def test_start_conditions_code_and_shared_actions_work() -> None:
    lexer = Lexer(parse_lex_file(STATES))
    assert kinds(lexer, "ab /* x * y */ abcdef") == ["WORD", "LONG"]
    assert kinds(lexer, "! ab cd . ab") == ["SHOUT", "SHOUT", "DOT", "WORD"]
    assert kinds(lexer, "# a #\n#%") == ["MARK", "WORD", "ERROR", "MARK", "MARK"]
    assert kinds(lexer, "a /* b") == ["WORD", "UNTERMINATED"]


VALUES = """\
%x IN
%{
from enum import Enum
NUMBER = "number"
class Kind(str, Enum):
    WORD = "word"
%}
%%
[0-9]+  { return NUMBER }
[a-m]+  return NUMBER;
[n-z]+  NUMBER
"+"     { return "NUMBER" }
"-"     { return MINUS; }
"("     { begin(IN); return (NUMBER); }
"_"     { return Kind.WORD; }
<IN>")" { return Token.END; }
"""


def test_a_returned_name_that_the_header_defines_is_its_value(tmp_path: Path) -> None:
    expected = ["number", "number", "NUMBER", "NUMBER", "MINUS", "word", "number", "END"]
    lexer = Lexer(parse_lex_file(VALUES))
    assert kinds(lexer, "1az+-_()") == expected
    made: dict[str, Any] = {"__name__": "made"}
    exec(lexer.python_source(), made)
    assert [token.kind for token in made["tokenize"]("1az+-_()")] == expected
    with pytest.raises(SpecificationError, match="its action is Python code"):
        lexer.tokenize_arrays(b"1")


@needs_compiler
def test_the_command_writes_a_module_whose_c_form_gives_the_same_tokens(tmp_path: Path) -> None:
    folder = Path(ready.__file__).parent / "specs"
    text = '1 + (2.5 * x) #( a #(b) ( ) ) "q\\n é" ? 日\n' * 3 + "#( "
    (tmp_path / "text").write_text(text, encoding="utf-8")
    made = str(tmp_path / "made.py")
    main_ok(["lex", str(folder / "calculator.l"), "-o", made, "--c"])
    code = (
        "import json, made\ndata = open('text', 'rb').read()\n"
        "kinds, starts, ends = made.tokenize_arrays(data)\n"
        "text = data.decode()\nsize = lambda at: len(text[:at].encode())\n"
        "one = [(t.kind, size(t.start), size(t.end)) for t in made.tokenize(text)]\n"
        "two = [(made.KINDS[k], int(s), int(e)) for k, s, e in zip(kinds, starts, ends)]\n"
        "print(json.dumps([one, two]))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    one, two = json.loads(done.stdout)
    assert one == two
    assert len(one) > 30
    assert {"NUMBER", "ERROR", "UNTERMINATED"} <= {kind for kind, _, _ in one}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x y\n", r"s.l:2:1: expected a line '%%'"),
        ("%%\n", "expected at least one rule"),
        ("%%\na(b A\n", r"s.l:2:2: in the expression 'a\(b': expected '\)'"),
        ("%%\n<NO>a A\n", "s.l:2:1: there is no start condition 'NO'; declared are: INITIAL"),
        ("%%\na push(NO)\n", "s.l:2:2: there is no start condition 'NO'"),
        ("%%\n{d} A\n", "there is no definition 'd'"),
        ("d {d}\n%%\n{d} A\n", r"refers to itself \(d -> d\)"),
        ("%%\na { return (\n}\n", "s.l:2:2: the action is no Python"),
        ("%%\na { if\n", "expected '}' to close the action"),
        ("%foo\n%%\na A\n", "s.l:1:1: expected %s, %x, %option"),
        ("%%\n<A>\n", "there is no start condition 'A'"),
        ("%%\na |\n", "expected a rule after an action"),
        (
            "x [a]\n%{\nimport re\nint n;\n%}\n%%\na A\n",
            "s.l:4: the code of the header is no Python",
        ),
        (
            "%%\na A\n%%\nx = 1\nint f;\n",
            "s.l:5: the code after .* is no Python .*: int f;; code is",
        ),
        ("d x\nd y\n%%\n{d} A\n", "s.l:2:1: the definition 'd' stands twice; drop or rename"),
        ("%%\na b A\n", "s.l:2:2: the action .* a space ends the expression.* is no Python"),
        ('%%\na "A"\n', "s.l:2:2: the action '\"A\"' does nothing; for a kind write NUMBER"),
        ("%%\na { x = atoi(text); return N; }\n", "the action uses 'atoi', which is not defined"),
        (
            "%%\na { x = 1; return N; }\n",
            "s.l:2:2: the action uses 'N', .* header, or for a kind write return \"N\"",
        ),
        ("%%\n<<EOF> A\n", "s.l:2:1: expected <<EOF>>, got '<<'; quote the signs"),
        ("%%\n<b> A\n", "there is no start condition 'b'.* quote the sign '<' itself"),
    ],
)
def test_a_malformed_file_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(SpecificationError, match=message):
        parse_lex_file(text, "s.l")


def test_too_many_states_are_reported_with_the_rule_to_blame(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hagane.lexgen.automata.determinise.MAX_STATES", 1000)
    lexer = Lexer(parse_lex_file("%%\n[0-9]+ A\n(a|b)*a(a|b){20} B\n", "s.l"))
    message = r"s.l, largest is rule B '.*' \(s.l:3:1\): .* more than 1000 states: lower the counts"
    with pytest.raises(SpecificationError, match=message):
        lexer.compiled  # noqa: B018


def test_actions_see_what_header_footer_and_other_actions_define() -> None:
    text = """%{
import re as r
N = 1
%}
%%
[0-9]+ { global k; k = [r.sub("", "", x) for x in text if N]; return f(k) }
a { return str(k) }
%%
def f(k): return "F"
"""
    assert len(parse_lex_file(text).rules) == 2


def test_a_rule_that_never_matches_is_reported_with_shadow_and_witness() -> None:
    findings = diagnose(Lexer.from_rules([("ID", "[a-z]+"), ("IF", "if"), ("X", "x*")]).compiled)
    first, second, third = findings
    assert (first.kind, first.witness) == ("never-matches", "if")
    assert "IF 'if' (rule 2)" in first.message
    assert "ID '[a-z]+' (rule 1)" in first.message
    assert second.kind == "never-matches"
    assert third.kind == "matches-empty"


def test_states_that_cannot_be_left_are_reported() -> None:
    findings = diagnose(
        Lexer(parse_lex_file("%x IN OUT\n%%\na push(IN)\n<IN>b B\n<OUT>c C\n")).compiled
    )
    assert [(f.kind, f.rule) for f in findings] == [
        ("cannot-be-left", "IN"),
        ("cannot-be-left", "OUT"),
        ("never-entered", "OUT"),
    ]


def test_ambiguous_pairs_are_listed_on_request_with_a_common_text() -> None:
    compiled = Lexer.from_rules([("IF", "if"), ("ID", "[a-z]+"), ("N", "[0-9]+")]).compiled
    assert diagnose(compiled) == []
    (finding,) = diagnose(compiled, ambiguities=True)
    assert (finding.kind, finding.witness) == ("ambiguous", "if")


def test_each_stage_is_drawn() -> None:
    drawn = draw_stages(Lexer.from_rules([("A", "a+"), ("B", "<b|\\s$")]).compiled)
    assert sorted(drawn) == [
        f"{stage}.{suffix}" for stage in ("dfa", "min", "nfa") for suffix in ("dot", "svg")
    ]
    assert drawn["min.dot"].startswith("digraph")
    assert drawn["min.svg"].count("<circle") >= 4
    assert "&lt;" in drawn["nfa.svg"]


def test_the_command_writes_a_module_that_runs_alone(tmp_path: Path) -> None:
    specification = tmp_path / "s.l"
    specification.write_text(STATES)
    main_ok(["lex", str(specification), "-o", str(tmp_path / "made.py"), "--dot"])
    assert (tmp_path / "made.min.svg").exists()
    code = "import made; print([t.kind for t in made.tokenize('ab ! cd')], made.EXTRA)"
    command = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, '.'); {code}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "['WORD', 'SHOUT'] 1\n"


def test_a_byte_order_mark_is_no_part_of_a_specification(tmp_path: Path) -> None:
    file = tmp_path / "words.l"
    file.write_bytes(b"\xef\xbb\xbf%%\r\n[a-z]+ ID\r\n")
    assert [token.kind for token in Lexer(read_lex_file(file)).tokenize("ab")] == ["ID"]


def test_a_folder_is_no_specification(tmp_path: Path) -> None:
    with pytest.raises(SpecificationError) as caught:
        read_lex_file(tmp_path)
    assert str(caught.value) == f"{tmp_path}: expected a text file in UTF-8: Is a directory"


def main_ok(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code in (0, None)


def test_the_command_shows_tokens_and_findings_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    specification, text = tmp_path / "s.l", tmp_path / "t.txt"
    specification.write_text("%%\n[a-z]+ ID\nif IF\n[ ] skip\n")
    text.write_text("if x")
    main_ok(["lex", str(specification), "--test", str(text), "--json"])
    report = json.loads(capsys.readouterr().out)
    assert report["tokens"][1] == {
        "kind": "ID", "text": "x", "start": 3, "end": 4, "line": 1, "column": 4,
    }  # fmt: skip
    assert report["diagnostics"][0]["kind"] == "never-matches"
    assert report["states"] == 3


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        (None, [], "there is no specification"),
        ("%%\na(\n", [], "s.l:2:2"),
        ("%%\na A\n", ["--test", "none.txt"], "there is no file 'none.txt'"),
        ("%%\na A\n", ["--c"], "expected -o FILE"),
        ("%%\na { return text }\n", ["--c", "-o", "x.py"], "its action is Python code"),
    ],
)
def test_the_command_ends_with_a_message_and_status_2(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    text: str | None,
    more: list[str],
    message: str,
) -> None:
    specification = tmp_path / "s.l"
    if text is not None:
        specification.write_text(text)
    with pytest.raises(SystemExit) as caught:
        main(["lex", str(specification), *more])
    assert caught.value.code == 2
    assert message in capsys.readouterr().err
