"""Errors that the concolic search reports fail in the real framework with its inputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from hagane.checking import Request, explore

from .catalogue import TORCH
from .mistakes_torch import MISTAKES

pytest.importorskip("torch")
_CASES = {case.name: case for case in TORCH}


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", [n for n, m in enumerate(MISTAKES) if m.fails is not None])
def test_a_reported_error_fails_for_real_with_the_inputs_it_names(
    number: int, tmp_path: Path
) -> None:
    mistake = MISTAKES[number]
    case = _CASES[mistake.case]
    path = tmp_path / case.path.name
    path.write_text(mistake.apply(case.path.read_text()))
    report = explore(Request(path, case.target, case.inputs, case.make), seconds=5)
    assert report.errors
    assert all(problem.inputs for problem in report.errors)
    assert True in {problem.replayed for problem in report.errors}
