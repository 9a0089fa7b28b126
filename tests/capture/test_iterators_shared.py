"""Iterators that several readers share, ranges of negative numbers, and what counts as empty."""

from __future__ import annotations

import itertools
import operator
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hagane
from hagane.errors import CaptureError

Nothing = namedtuple("Nothing", ())


def left_by_readers(a: Any) -> Any:
    made = [a]
    first, second, third = iter(range(7)), iter(range(7)), iter(range(7))
    made += [list(zip(range(3), first, strict=False)), list(first)]
    made += [list(zip(second, range(3), strict=False)), list(second)]
    made += [list(zip(third, third, strict=False)), list(third)]
    first, second, third = iter(range(7)), iter(range(7)), iter(range(7))
    made += [list(itertools.takewhile(lambda v: v < 3, first)), list(first)]
    made += [4 in second, list(second), any([0, *third]), list(third)]
    first, second = iter([0, 1, 2]), iter([1, 0, 2])
    return (
        *made,
        any(first),
        list(first),
        all(second),
        list(second),
        1.5 in (i * 0.5 for i in [3]),
    )


def of_numbers(n: Any) -> Any:
    k = int(n)
    return (
        len(range(k)), len(list(range(k))), bool(range(k)), len(range(k, -10, -3)),
        list(range(k, 0)), len([1 for _ in range(k)]), k in range(3), 2 in range(k),
        k in range(9, -9, -2), 1 if range(0, k, -2) else 0, sum(i for i in range(-k, k, -3)),
    )  # fmt: skip


def test_readers_leave_what_those_of_python_leave() -> None:
    given = np.ones(1)
    found = hagane.compile(left_by_readers, fullgraph=True)(given)
    assert found == left_by_readers(given)


def test_ranges_of_negative_numbers_are_empty() -> None:
    compiled = hagane.compile(of_numbers, fullgraph=True)
    for number in (-50, -1, 0, 4, 7):
        assert compiled(np.int64(number)) == of_numbers(np.int64(number))


def test_a_tuple_and_a_number_without_content_are_false() -> None:
    def told(a: Any, items: Any) -> Any:
        return a * bool(items), bool(0j), bool(range(0)), bool(frozenset())

    found = hagane.compile(told, fullgraph=True)(np.ones(1), Nothing())
    assert found == (0, False, False, False)


def test_a_program_without_tensors_has_results_and_no_graph() -> None:
    def named(x: Any) -> Any:
        return f"{x.ndim} axes", None, "a"

    compiled = hagane.compile(named, fullgraph=True)
    assert [compiled(np.ones(2)), compiled(np.zeros(2))] == [("1 axes", None, "a")] * 2


def mapped(a: Any) -> Any:
    source = iter(range(9))
    doubled = map(operator.neg, source)
    return a * next(doubled), list(source)


def broken_off(a: Any) -> Any:
    source = iter(range(9))
    for x, y in zip(range(4), source, strict=False):
        if x == 2:
            break
        a = a + y
    return a, list(source)


def of_generator(a: Any) -> Any:
    source = iter(range(9))
    return a, any(x > 2 for x in source), list(source)


@pytest.mark.parametrize("program", [mapped, broken_off, of_generator])
def test_an_iterator_beside_its_reader_is_refused(program: Callable[..., Any]) -> None:
    with pytest.raises(CaptureError, match="an iterator is read beside another one that reads it"):
        hagane.capture(program, "float64[1]")


class Paired:
    """What ``reversed`` gives is its own affair."""

    def __init__(self, items: Any) -> None:
        self.items = items

    def __reversed__(self) -> Any:
        return iter([self.items[1], self.items[1]])


def test_a_reversed_tensor_is_a_tensor_and_objects_reverse_as_they_say() -> None:
    torch = pytest.importorskip("torch")

    def function(x: Any) -> Any:
        turned = reversed(x)  # no iterator: it is not used up
        twice = torch.stack([*turned, *turned])
        return turned.shape[0] * twice, sum(reversed(Paired([x, x * 2])))

    x = torch.arange(6.0).reshape(3, 2)
    for found, wanted in zip(hagane.compile(function)(x), function(x), strict=True):
        assert torch.equal(found, wanted)
