"""Mistakes put into the models are reported at the line where PyTorch fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from hagane.checking import Request, check_source

from .catalogue import TORCH
from .mistakes_torch import MISTAKES

_CASES = {case.name: case for case in TORCH}
# moe-choice: affinity is not transposed; espnet: the padding of a convolution lies on the wrong
# axis. Both fail at the line before for most sizes, and that is where they are reported.
ELSEWHERE = frozenset(
    number
    for number, mistake in enumerate(MISTAKES)
    if (mistake.case, mistake.new) in {
        ("moe-choice", ".softmax(-1)"), ("espnet-packed", "padding=(filters, 0)"),
    }
)  # fmt: skip


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_a_mistake_is_reported_at_its_line(number: int, tmp_path: Path) -> None:
    mistake = MISTAKES[number]
    case = _CASES[mistake.case]
    source = mistake.apply(case.path.read_text())
    path = tmp_path / case.path.name
    path.write_text(source)
    report = check_source(Request(path, case.target, case.inputs, case.make))
    lines = {problem.place.line for problem in report.errors}
    assert lines, "no error is reported"
    if number not in ELSEWHERE:
        assert mistake.line_number(source) in lines


@pytest.mark.parametrize("case", TORCH, ids=lambda case: case.name)
def test_a_right_model_raises_no_alarm_and_leaves_nothing_open(case) -> None:  # type: ignore[no-untyped-def]
    report = check_source(Request(case.path, case.target, case.inputs, case.make))
    assert report.errors == []
    assert report.unknown == []
    assert all(item.type != "unknown" for item in report.types)
    assert report.exit_code == 0
