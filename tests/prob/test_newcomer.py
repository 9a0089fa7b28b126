"""What someone gets who writes a wrong program, or asks for what cannot be."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from hagane.cli import main
from hagane.tools.prob import BrokenClaim, check, flip, load_program, typed
from hagane.tools.prob.engines.run import show_decimal
from hagane.tools.prob.language.recursion import TooDeep

RARE = Fraction(1, 2 * 10**5000)
COMMANDS = (["check"], ["run", "-n", "10", "--seed", "1"], ["export"])


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """Return the message with which a command ends; it is no traceback."""
    with pytest.raises(SystemExit) as caught:
        main(["prob", *map(str, words)])
    assert caught.value.code == 2
    message = capsys.readouterr().err
    assert message.startswith("hagane: error: ")
    assert "Traceback" not in message
    return message


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ":1:1: expected a program, such as rand(0, 5) : {x:int | Prob(x % 2 = 0) = 1/2}, got"),
        ("// only a comment", ":1:18: expected a program, such as rand(0, 5)"),
        ("let x = rand(0, 5 in x", ":1:19: expected ',' or ')', got 'in'"),
        (
            "flip(50%)",
            ":1:9: expected the divisor of '%', which is the remainder here (a",
        ),
        ("let speed = 3 in sped", "in scope: speed (did you mean 'speed'?)"),
        ("letfun toss() : int = 3 in tos()", "functions in scope: toss (did you mean 'toss'?)"),
        ("rand(0, 5) : bool", "the expression 'rand(0, 5)' is int; annotate it as int, or change"),
        ("true + 1", "'+': expected int, got bool; to count it, write (if true then 1 else 0)"),
        ("1 /\\ true", "'/\\': expected bool, got int; compare it, as in 1 > 0"),
        ("(1, 2) + 1", "'+': expected int, got (int, int); take an item of it, as in (1, 2).0"),
        ("flip(3/2)", ":1:1: flip(3/2): a probability lies between 0 and 1\n"),
        ("9" * 6000, "a number is written with at most 4000 digits, got 6000; calculate it"),
        (
            "letfun f(n:int) : int = if n < 0 then n else f(n * n + 1 - n * n + n) in f(0)",
            "it is 5000 calls deep, the limit, and calls f(5000); let an argument fall towards a "
            "case that does not recurse; if it does end, say after how many calls, as in 'depth",
        ),
    ],
    ids=lambda value: value[:20],
)
def test_a_wrong_program_is_refused_with_place_and_remedy(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
    text: str,
    message: str,
) -> None:
    path = tmp_path / "p.pml"
    path.write_text(text, encoding="utf-8")
    shown = refused(capsys, command[0], path, *command[1:])
    assert message in shown
    assert "p.pml:1:" in shown
    assert "^" in shown
    assert max(map(len, shown.splitlines())) < 500


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_what_is_no_program_at_all_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    binary = tmp_path / "photo.pml"
    binary.write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    message = refused(capsys, command[0], binary, *command[1:])
    assert "photo.pml' is not UTF-8 text: byte 0 is 0x89; expected a program, as text" in message
    message = refused(capsys, command[0], tmp_path, *command[1:])
    assert "cannot be read (Is a directory); expected a program, as text" in message
    message = refused(capsys, command[0], tmp_path / "none.pml", *command[1:])
    assert "there is no file" in message


def test_a_range_beyond_every_engine_is_refused_by_check_and_export(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.pml"
    path.write_text("rand(0, 1" + "0" * 20 + ") : {x:int | Prob(x = 0) <= 1/2}", encoding="utf-8")
    for command in ("check", "export"):
        message = refused(capsys, command, path)
        assert "needs more than 3,000,000" in message
        assert "shorten ranges, or keep fewer variables alive" in message


def test_a_place_that_cannot_be_written_is_named_with_its_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.pml"
    path.write_text("flip(1/2)", encoding="utf-8")
    message = refused(capsys, "export", path, "-o", tmp_path / "none" / "p.pm")
    assert "--output: cannot write" in message
    assert "No such file or directory" in message
    message = refused(capsys, "export", path, "--properties", tmp_path / "none" / "p.props")
    assert "--properties: cannot write" in message


def test_json_carries_errors_that_have_no_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["prob", "check", str(tmp_path / "none.pml"), "--json"])
    assert caught.value.code == 2
    shown = json.loads(capsys.readouterr().out)
    assert shown["verdicts"] == []
    assert shown["error"]["kind"] == "NoSuchFile"
    assert "there is no file" in shown["error"]["message"]


def test_files_of_other_systems_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.pml"
    path.write_bytes(b"\xef\xbb\xbfrand(0, 5) :\r\n {x:int | Prob(x = 1) = 1/5}\r\n")
    with pytest.raises(SystemExit) as caught:
        main(["prob", "check", str(path)])
    assert caught.value.code == 1
    assert "p.pml:2:2: FAILS" in capsys.readouterr().out


def test_a_program_without_types_is_told_how_to_claim(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.pml"
    path.write_text("rand(0, 5)", encoding="utf-8")
    with pytest.raises(SystemExit) as caught:
        main(["prob", "check", str(path)])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert "no types to check; claim something, as in (…) : {x:int | Prob(x > 0) <= 1/10}" in shown


@pytest.mark.parametrize("claim", ["Prob(x) <= 3/2", "-1/2 < Prob(x)", "Prob(x) != 2"])
def test_a_bound_outside_0_to_1_gets_a_notice(claim: str) -> None:
    (notice,) = load_program(f"flip(1/2) : {{x:bool | {claim}}}").notices
    assert notice.message == (
        f"a probability lies between 0 and 1, so '{claim}' says nothing of the program"
    )


def test_numbers_beyond_floats_are_shown_to_ten_digits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.pml"
    power = "1" + "0" * 400
    path.write_text(
        f"(if flip(1/{power}) then 3 * {power} else 0) : {{x:int | E[x] > 0 /\\ "
        f"E[x * {power}] > 0 /\\ Prob(x > 0) > 0}}",
        encoding="utf-8",
    )
    with pytest.raises(SystemExit):
        main(["prob", "check", str(path)])
    shown = capsys.readouterr().out
    assert "Prob(x > 0) = 1e-400 (exactly a fraction of 1 over 401 digits)" in shown
    assert "= 3e+400" in shown
    with pytest.raises(SystemExit):
        main(["prob", "check", str(path), "--json"])
    (verdict,) = json.loads(capsys.readouterr().out)["verdicts"]
    assert [item["decimal"] for item in verdict["probabilities"]] == [3.0, None, 0.0]


def test_decimals_have_ten_digits() -> None:
    verdict = check(load_program("rand(1, 3) : {x:int | Prob(x = 1) <= 1/3}")).verdicts[0]
    assert show_decimal(verdict.probabilities[0].value) == "0.3333333333"


@pytest.mark.long
def test_recursion_deeper_than_python_allows_is_named() -> None:
    text = "letfun f(n:int) : int depth 300000 = if n = 0 then 0 else 1 + f(n - 1) in f(200000)"
    with pytest.raises(TooDeep, match="too deep for 400,000 nested calls in Python; let functions"):
        check(load_program(text), "enumerate")


def test_a_long_line_is_shown_around_the_mistake() -> None:
    text = " + ".join(["1"] * 500) + " + true + " + " + ".join(["2"] * 500)
    with pytest.raises(ValueError, match="expected int, got bool") as caught:
        load_program(text)
    shown, carets = str(caught.value).split("\n")[1:]
    assert len(shown) < 200
    assert shown[carets.index("^") :].startswith("true")


def test_a_broken_claim_in_python_tells_numbers_of_any_length() -> None:
    with pytest.raises(BrokenClaim, match=r"Prob\(x\) = about 5e-5001"):

        @typed("{x:bool | Prob(x) >= 1/2}")
        def rare() -> bool:
            return flip(RARE)
