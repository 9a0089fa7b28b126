"""What the checker says of Chainer's functions and links is what Chainer computes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hagane.frontends.python.check import Request, check_source
from hagane.frontends.python.findings import Report
from hagane.frontends.python.heap import Heap
from hagane.frontends.python.printing import show_type
from hagane.frontends.python.values import Tensor
from hagane.graph.types import dtype_name
from hagane.symbolic.questions import Knowledge

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


def printed(value: Any) -> str:
    """Return Chainer's answer as the checker prints types: without the class."""
    if isinstance(value, str):
        return value
    if value and isinstance(value[0], list) and isinstance(value[1], str):
        shape = tuple(value[0])
        return f"{value[1]}{shape}"
    return f"[{', '.join(printed(item) for item in value)}]"


def described(value: Any, returned: str) -> str:
    """Return the checker's answer in the same form."""
    if isinstance(value, Tensor):
        return f"{dtype_name(value.dtype)}{value.shape}"
    if isinstance(value, tuple) and not all(isinstance(item, int) for item in value):
        return f"[{', '.join(described(item, '') for item in value)}]"
    if isinstance(value, int | bool | tuple):
        return repr(value)
    text = returned or show_type(value, Heap(), Knowledge())
    for kind in ("chainer.Variable", "numpy.ndarray"):
        text = text.replace(f"{kind}(dtype=", "")
    return text.replace(", shape=", "").replace("))", ")")


@pytest.mark.long
def test_the_types_are_those_that_chainer_computes(tmp_path: Path) -> None:
    wrong = []
    expressions = calls(RIGHT)
    for expression, answer in zip(expressions, answers(expressions), strict=True):
        assert "error" not in answer, (expression, answer)
        report = checked(expression, tmp_path)
        lists = "NStep" in expression  # a list of sequences is printed only as a whole
        found = described(report.result, report.returned or "")
        if not lists and found != printed(answer["value"]):
            wrong.append((expression, found, printed(answer["value"])))
    assert wrong == []


@pytest.mark.long
def test_what_is_refused_is_what_chainer_refuses() -> None:
    expressions = calls(WRONG)
    taken = [e for e, a in zip(expressions, answers(expressions), strict=True) if "error" not in a]
    assert taken == []
