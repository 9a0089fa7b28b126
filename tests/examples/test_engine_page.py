"""What ``docs/engine.md`` shows runs as it stands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from hagane.machine import best_level
from tests.cli.test_commands import call

PAGE = Path(__file__).parents[2] / "docs" / "engine.md"
SOURCE = Path(__file__).parents[2] / "src" / "hagane"


def test_the_commands_of_the_page_run_and_show_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    level = best_level()
    if level.tiles:
        # The page shows the vectors; with matrix tiles the same layer is another kernel.
        monkeypatch.setenv("HAGANE_INSTRUCTIONS", "avx512")
    blocks = re.findall(r"```(python|sh)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    shown: dict[str, str] = {}
    for kind, block in blocks:
        if kind == "python":
            exec(block, names)  # the page's own text
            shown["python"] = capsys.readouterr().out
            continue
        for line in block.splitlines():
            program, *words = shlex.split(line)
            assert program == "hagane"
            status, shown[" ".join(words)], _ = call(capsys, *words)
            assert status == 0
    assert len(blocks) == 5
    listed, dumped = shown["inspect conv.onnx --c conv"], shown["inspect conv.onnx --asm conv"]
    assert "conv_3x3_stride2_28x28x128_relu_" in listed
    assert "conv_3x3_stride2_28x28x128_relu_" in dumped
    assert "Conv+Relu" in shown["python"]
    if level.lanes == 16:
        _check_excerpts(listed, dumped)


def _check_excerpts(listed: str, dumped: str) -> None:
    """Each line of code that the page prints is one that the commands print."""

    def plain(text: str) -> list[str]:
        text = re.sub(r"relu_[0-9a-f]{8}", "relu_", text)
        lines = re.sub(r"%r\w+", "%r", text).splitlines()  # of the compiler's choice
        return [re.sub(r"^\s+([0-9a-f]+  )?\s*", "", line) for line in lines]

    excerpts = re.findall(r"```(?:c)?\n([/v ].*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(excerpts) == 3
    have = {*plain(listed), *plain(dumped)}
    assert [line for text in excerpts for line in plain(text) if line not in have] == []


def test_the_files_that_the_page_names_are_there() -> None:
    named = re.findall(r"`(native/[\w/]+\.(?:py|c|h))`", PAGE.read_text(encoding="utf-8"))
    assert len(named) > 12
    assert [name for name in named if not (SOURCE / name).exists()] == []
