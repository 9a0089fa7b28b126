"""Programs are cut down to the statements of which a failure needs each."""

from __future__ import annotations

import time
from typing import Any

import pytest

from .reducing import Endless, limited, reduced

PROGRAM = """
def helper():
    return 1

def program(x):
    a = 1
    for i in range(3):
        if i > 1:
            b = helper()
            c = a / 0
        else:
            d = 2
    while a:
        a = 0
    return a
"""


def fails(text: str) -> bool:
    scope: dict[str, Any] = {}
    try:
        exec(text, scope)
        scope["program"](1)
    except ZeroDivisionError:
        return True
    except Exception:
        return False
    return False


def test_statements_that_a_failure_needs_are_left() -> None:
    assert reduced(PROGRAM, fails) == "def program(x):\n    a = 1\n    c = a / 0\n"


def test_a_program_that_needs_all_of_its_statements_stays() -> None:
    text = "def program(x):\n    return x / 0\n"
    assert reduced(text, fails) == text


def test_a_block_that_does_not_end_is_left() -> None:
    with pytest.raises(Endless, match=r"longer than 0.05 s"), limited(0.05):
        time.sleep(60)
