"""Generators and iterators, whose code a program runs turn by turn."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import hagane


def broken_off(x: Any) -> Any:
    """Go on with an iterator that a loop has left."""
    rest = iter([x, x + 1, x + 2, x + 3])
    for _ in rest:
        break
    return sum(rest) * len([*rest, 1])


def two_loops(x: Any) -> Any:
    """Take some items in one loop and the others in the next one."""
    rest = iter(range(10))
    for i in rest:
        x = x + i
        if i == 3:
            break
    for i in rest:
        x = x * 0.5 + i
    return x


def delegated(x: Any) -> Any:
    """Use the value that a generator returns."""

    def inner() -> Any:
        yield x
        return x * 10

    def outer() -> Iterator[Any]:
        result = yield from inner()
        yield result

    return list(outer())[-1]


SAME = [broken_off, two_loops, delegated]


@pytest.mark.parametrize("program", SAME)
def test_the_turns_of_a_generator_are_those_of_python(program: Callable[[Any], Any]) -> None:
    session = hagane.InferenceSession(hagane.capture(program, "float32[n]"))
    for n in (1, 3):
        x = np.arange(n, dtype=np.float32) - 1
        np.testing.assert_allclose(session.run(None, {"x": x})[0], program(x), rtol=1e-6)
