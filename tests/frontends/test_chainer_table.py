"""What the checker says of Chainer's functions and links is what Chainer computes."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hagane.checking import Request, check_source
from hagane.frontends.python.report.findings import Report

from .chainer_calls import RIGHT, WRONG
from .numpy_calls import calls

ORACLE = Path(__file__).parents[1] / "outside" / "chainer_calls.py"
PYTHON = os.environ.get("HAGANE_CHAINER_PYTHON", "")
HEAD = """import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import Variable as V


def f2(*shape):
    return np.ones(shape, "e")


def f4(*shape):
    return np.ones(shape, "f")


def f8(*shape):
    return np.ones(shape, "d")


def i4(*shape):
    return np.ones(shape, "i")


def i8(*shape):
    return np.ones(shape, "l")


def called():
    return """


def checked(expression: str, folder: Path) -> Report:
    """Return the report on a function that returns the expression."""
    file = folder / "called.py"
    file.write_text(f"{HEAD}{expression}\n")
    return check_source(Request(file, "called"))


@pytest.mark.parametrize("expression", calls(RIGHT))
def test_an_expression_that_chainer_takes_has_a_type(expression: str, tmp_path: Path) -> None:
    report = checked(expression, tmp_path)
    assert report.errors == []
    assert report.unknown == []


@pytest.mark.parametrize("expression", calls(WRONG))
def test_an_expression_that_chainer_refuses_is_an_error(expression: str, tmp_path: Path) -> None:
    report = checked(expression, tmp_path)
    assert report.errors != []


def answers(expressions: list[str]) -> list[dict[str, Any]]:
    """Return what Chainer says of the expressions."""
    if not PYTHON:
        pytest.skip(
            "HAGANE_CHAINER_PYTHON names no Python with Chainer: tests/outside/chainer_oracle.py "
            "says how to make one"
        )
    done = subprocess.run(
        [PYTHON, str(ORACLE)], input="\n".join(expressions), capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return [json.loads(line) for line in done.stdout.splitlines()]


def arrays(value: Any) -> list[tuple[str, tuple[int, ...]]]:
    """Return element types and shapes of the arrays in Chainer's answer, in order."""
    if isinstance(value, str):
        return []
    if len(value) == 2 and isinstance(value[0], list) and isinstance(value[1], str):
        return [(value[1], tuple(value[0]))]
    return [array for item in value for array in arrays(item)]


def inferred(returned: str) -> list[tuple[str, tuple[int, ...]]]:
    """Return the same of a printed type."""
    found = re.findall(r"(?:Variable|ndarray)\(dtype=(\w+), shape=(\([^()]*\))\)", returned)
    return [(dtype, ast.literal_eval(shape)) for dtype, shape in found]


@pytest.mark.long
def test_the_types_are_those_that_chainer_computes(tmp_path: Path) -> None:
    wrong: list[tuple[str, str, Any]] = []
    expressions = calls(RIGHT)
    for expression, answer in zip(expressions, answers(expressions), strict=True):
        if "error" in answer:
            wrong.append((expression, "", answer["error"]))
            continue
        report = checked(expression, tmp_path)
        expected = arrays(answer["value"])
        if not expected and repr(report.result) != answer["value"]:
            wrong.append((expression, repr(report.result), answer["value"]))
        if inferred(report.returned or "") != expected:
            wrong.append((expression, report.returned or "", expected))
    assert wrong == []


@pytest.mark.long
def test_what_is_refused_is_what_chainer_refuses() -> None:
    expressions = calls(WRONG)
    taken = [e for e, a in zip(expressions, answers(expressions), strict=True) if "error" not in a]
    assert taken == []
