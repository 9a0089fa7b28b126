"""Variables that some paths alone have set: the others raise ``UnboundLocalError``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.frontends.checking import check_text

_ELSE = "else UnboundLocalError: the name 'y' is not set here yet"


@pytest.mark.parametrize(
    ("condition", "told"),
    [("x.shape[0] > 2", "x.shape[0] > 2"), ("flag", "flag"), ("x.sum() > 0", "x.sum() > 0"),
     ("not flag", "not flag")],
)  # fmt: skip
def test_the_condition_that_sets_a_variable_is_assumed(
    tmp_path: Path, condition: str, told: str
) -> None:
    source = f"""
        def f(x: Shaped["float32[n, 4]"], flag: bool):
            if {condition}:
                y = x + 1
            return y * y
    """
    report = check_text(tmp_path, source)
    assert [note.message for note in report.assumptions] == [f"{told}, {_ELSE}"]
    assert not report.errors


def test_a_variable_that_no_run_has_set_is_an_error(tmp_path: Path) -> None:
    source = """
        def f(x: Shaped["float32[n, 4]"]):
            if x.shape[0] < 1:
                y = x + 1
            return y
    """
    (error,) = check_text(tmp_path, source).errors
    assert error.message == "UnboundLocalError: the name 'y' is not set here yet"


@pytest.mark.parametrize(
    "body",
    [
        "if flag: y = x\n    if flag: x = y\n    return x",
        "if flag: y = x\n    if flag and k > 1: x = y\n    return x",
        "if k == 1: y = x\n    elif k == 2: y = x + 1\n    if k in (1, 2): x = y\n    return x",
        "if flag: y = x\n    y = x + 1\n    return y",
        "if flag: y = x\n    else: y = x + 1\n    return y",
        "if flag: y = x\n    else: return x\n    return y",
        "if flag: y = x\n    try: return y\n    except UnboundLocalError: return x",
        "for i in range(3):\n        if k > i: y = x + i\n        if k > i: x = x + y\n    return x",
    ],
)
def test_nothing_is_said_where_the_path_may_rule_it_out(tmp_path: Path, body: str) -> None:
    source = f'def f(x: Shaped["float32[n, 4]"], flag: bool, k: int):\n    {body}\n'
    report = check_text(tmp_path, source)
    assert (report.errors, report.assumptions) == ([], [])
