"""Memories that a file fills at the start: without its words, much would count as dead."""

from __future__ import annotations

from pathlib import Path

import pytest

from hagane.tools.rtl import Budget, cover
from hagane.tools.rtl.circuit.cycle import CycleModel
from hagane.tools.rtl.circuit.drivers import PREVIOUS
from hagane.tools.rtl.circuit.elaborate import read_sources
from hagane.tools.rtl.cover import load
from hagane.tools.rtl.errors import UnsupportedDesign

ROM = """\
module rom #(parameter FILE = "words/rom.hex") (
  input clk, input [1:0] a, output reg [7:0] q, output reg big);
  reg [7:0] m [0:3];
  initial if (FILE != "") $readmemh(FILE, m);
  always @(posedge clk) q <= m[a];
  always @* if (q > 8'h80) big = 1; else big = 0;
endmodule
"""
WORDS = "// words\n11 2_2 /* none\nhere */ @3 f?\n"


def started(folder: Path, memory: str, reading: str, words: str) -> CycleModel:
    (folder / "words").write_text(words)
    body = f"reg [7:0] m {memory}; initial {reading}; always @(posedge clk) q <= m[a];"
    text = f"module t(input clk, input [2:0] a, output reg [7:0] q); {body} endmodule\n"
    (folder / "t.sv").write_text(text)
    return load(read_sources([folder / "t.sv"], "t"))[1]


@pytest.mark.parametrize(
    ("memory", "reading", "words", "expected"),
    [
        ("[0:3]", '$readmemh("words", m)', WORDS, {"0": 0x11, "1": 0x22, "2": 0, "3": 0xF0}),
        ("[3:0]", '$readmemb("words", m)', "1 @2 10 11", {"0": 1, "1": 0, "2": 2, "3": 3}),
        ("[1:4]", '$readmemh("words", m, 3)', "a b", {"1": 0, "2": 0, "3": 10, "4": 11}),
        ("[1:4]", '$readmemh("words", m, 4, 2)', "a b c", {"1": 0, "2": 12, "3": 11, "4": 10}),
    ],
)
def test_words_lie_where_the_standard_has_them(
    tmp_path: Path, memory: str, reading: str, words: str, expected: dict[str, int]
) -> None:
    model = started(tmp_path, memory, reading, words)
    assert {at: model.initial[f"{PREVIOUS}m[{at}]"] for at in expected} == expected
    assert ("digits x and z are 0" in str(model.notices)) == ("?" in words)


@pytest.mark.parametrize(
    ("reading", "words", "told"),
    [
        ('$readmemh("words", m)', "1 2 3 4 5", r"has a word for 4, beyond the memory \[0:3\]"),
        ('$readmemb("words", m)', "2", r"\$readmemb: '.*words' has '2', which is no number there"),
        ('$readmemh("other", m)', "1", r"\$readmemh of 'other', of which there is no such file"),
        ("m[0] = $rtoi(1.5 * 2)", "", r"an initial block that gives values, and has .* a real"),
        ("m[0] = $random", "", r"an initial block that gives values, and has .* function \$random"),
    ],
)
def test_what_cannot_be_read_is_refused(
    tmp_path: Path, reading: str, words: str, told: str
) -> None:
    with pytest.raises(UnsupportedDesign, match=rf"t\.sv:1:\d+: .*{told}"):
        started(tmp_path, "[0:3]", reading, words)


@pytest.mark.usefixtures("verilator")
def test_what_a_file_reaches_is_covered_in_the_simulator(tmp_path: Path) -> None:
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "rom.hex").write_text(WORDS.replace("?", "1"))
    (tmp_path / "rom.sv").write_text(ROM)
    found = cover(read_sources([tmp_path / "rom.sv"], "rom"), Budget(seconds=20))
    assert not found.differences
    branches = [item.status for item in found.statuses if (item.kind, item.line) == ("branch", 6)]
    assert branches == ["covered", "covered"]


def test_no_file_is_read_where_a_parameter_names_none(tmp_path: Path) -> None:
    (tmp_path / "rom.sv").write_text(ROM.replace("words/rom.hex", ""))
    _, model = load(read_sources([tmp_path / "rom.sv"], "rom"))
    assert model.files == {}
    assert not any(model.initial.values())
