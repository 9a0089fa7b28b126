"""Integers of Python that may be beyond the 64 bits that a graph has for them."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

import hagane
from hagane.errors import CaptureError, KernelError
from hagane.graph import to_proto

BEYOND = "an integer beyond 64 bits, which Python has and a graph has not"


def squared(x: Any) -> Any:
    """Return the last digits of a square."""
    n = int(x.sum())
    return np.array(n * n % 1000)


def factorial(x: Any) -> Any:
    """Return the last digits of a product over a loop."""
    made = 1
    for i in range(1, int(x.sum()) + 1):
        made = made * i
    return np.array(made % 1000003)


def fibonacci(x: Any) -> Any:
    """Return the last digits of sums over a loop."""
    a, b = 0, 1
    for _ in range(int(x.sum())):
        a, b = b, a + b
    return np.array(a % 1000003)


def shifted(x: Any) -> Any:
    """Shift a bit to the left."""
    return np.array((1 << int(x.sum())) % 1000)


def fourth(x: Any) -> Any:
    """Return the last digits of a power."""
    return np.array(int(x.sum()) ** 4 % 1000)


def compared(x: Any) -> Any:
    """Compare a product."""
    n = int(x.sum())
    return np.array(n * n > 2**62)


def following(x: Any) -> Any:
    """Compare a sum whose number may be the greatest."""
    return np.array(int(x.max()) + 1 > 0)


def truncated(x: Any) -> Any:
    """Return the last digit of a large float."""
    return np.array(int(float(x.sum()) * 1e18) % 7)


@pytest.mark.parametrize(
    ("program", "fits", "beyond"),
    [
        (squared, 2**31, 2**40),
        (factorial, 20, 25),
        (fibonacci, 90, 100),
        (shifted, 62, 63),
        (fourth, 2**15, 2**20),
        (compared, 2**31, 2**40),
        (following, 2**63 - 2, 2**63 - 1),
        (truncated, 9, 50),
    ],
)
def test_a_run_fails_where_an_integer_of_python_does_not_fit(
    program: Callable[[Any], Any], fits: int, beyond: int
) -> None:
    session = hagane.InferenceSession(hagane.capture(program, "int64[1]"))
    given, far = (np.array([n], np.int64) for n in (fits, beyond))
    assert session.run(None, {"x": given})[0] == program(given)
    with pytest.raises(KernelError, match=BEYOND):
        session.run(None, {"x": far})
    compiled = hagane.compile(program)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert compiled(given) == program(given)
        assert compiled(far) == program(far)  # in Python


def large(x: Any) -> Any:
    """Add to a number that is known to be beyond."""
    return np.array(float(2**70 + int(x.sum())))


def test_a_known_integer_beyond_64_bits_is_refused() -> None:
    told = f"{2**70} is an integer beyond 64 bits"
    with pytest.raises(CaptureError, match=told):
        hagane.capture(large, "int64[1]")


def returning(x: Any) -> Any:
    """Come back from beyond."""
    n, m = int(x.sum()), 2**40
    return np.array((m * m * n) % 1000)


def chosen(x: Any) -> Any:
    """Square a number where that is small."""
    n = int(x.sum())
    m = n * n if n < 1000 else 7
    return np.array(m % 5)


@pytest.mark.parametrize("program", [returning, chosen])
@pytest.mark.parametrize("n", [3, 2**40])
def test_only_what_is_needed_has_to_fit(program: Callable[[Any], Any], n: int) -> None:
    x = np.array([n], np.int64)
    session = hagane.InferenceSession(hagane.capture(program, "int64[1]"))
    assert session.run(None, {"x": x})[0] == program(x)


def counted(x: Any) -> Any:
    """Count in loops within loops, with sizes and remainders."""
    n, count, place, state = int(x.argmax()), 0, 0, 1
    for i in range(n):
        j = 0
        while j * j < i:
            j += 1
            count = count + 1
        place += x.shape[0]
        state = (state * 1103515245 + 12345) % 2**31
    return np.array([count + 1, place - 1, state, n * n, n % 7])


def sought(x: Any) -> Any:
    """Search by halves."""
    low, high = 0, x.shape[0]
    while low < high:
        middle = (low + high) // 2
        if x[middle] < 5:
            low = middle + 1
        else:
            high = middle
    return np.array(low)


@pytest.mark.parametrize("program", [counted, sought])
def test_counters_sizes_places_and_remainders_are_not_compared(
    program: Callable[[Any], Any],
) -> None:
    model = to_proto(hagane.capture(program, "int64[n]"))
    assert not [name for name in _names(model.graph) if "beyond" in name]
    x = np.arange(9)
    assert np.array_equal(hagane.InferenceSession(model).run(None, {"x": x})[0], program(x))


def _names(graph: onnx.GraphProto) -> list[str]:
    found = [node.name for node in graph.node]
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                found += _names(attribute.g)
    return found
