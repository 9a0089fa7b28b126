"""What a compiled function sets outside of it: variables around it, classes, objects of Python."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
import torch

import hagane

pytestmark = pytest.mark.filterwarnings("ignore::hagane.CompileNotice")


def test_what_a_call_sets_is_set() -> None:
    count, out = 1, None

    @hagane.compile
    def step(x: Any) -> Any:
        nonlocal count, out
        count += 1
        out = x * 2
        return x * count

    assert [step(torch.ones(1)).item() for _ in range(3)] == [2, 3, 4]
    assert count == 4
    assert out is not None
    assert out.item() == 2


def test_functions_share_their_variables() -> None:
    count = 1

    def add() -> None:
        nonlocal count
        count += 1

    def read() -> int:
        return count

    def used(x: Any) -> Any:
        before = read()
        add()
        return x * read() + before

    compiled = hagane.compile(used)
    assert [compiled(torch.ones(1)).item() for _ in range(2)] == [3, 5]
    with pytest.warns(hagane.CompileNotice, match="sets 'count' of an enclosing function"):
        hagane.compile(used)(torch.ones(1))


def test_a_variable_that_only_the_call_uses_is_none_that_lasts() -> None:
    def outer(x: Any) -> Any:
        total = x

        def add() -> None:
            nonlocal total
            total = total + 1

        add()
        add()
        return total

    compiled = hagane.compile(outer, fullgraph=True)
    assert compiled(torch.zeros(1)).item() == 2


def test_names_in_expressions_are_those_that_a_function_declares() -> None:
    last = 0

    def f(x: Any) -> Any:
        nonlocal last
        return x + 1 if (last := 3) > 2 else x

    assert hagane.compile(f)(torch.ones(1)).item() == 2
    assert last == 3


def test_tensors_of_defaults_are_written() -> None:
    def add(kept: Any = torch.zeros(2)) -> Any:  # noqa: B008
        kept += 1
        return kept.clone()

    compiled = hagane.compile(lambda: add())
    assert [compiled()[0].item(), compiled()[0].item(), add()[0].item()] == [1, 2, 3]


class Counted:
    count = 0

    @classmethod
    def add(cls) -> int:
        cls.count += 1
        return cls.count


BYTES, LAST = bytearray(b"a"), deque([5, 6], maxlen=3)


def test_what_outlives_a_call_is_changed_in_each() -> None:
    def of_class(x: Any) -> Any:
        return x + Counted.add()

    def of_bytes(x: Any) -> Any:
        BYTES.append(1)
        return x + len(BYTES)

    def of_deque(x: Any) -> Any:
        LAST.rotate(1)
        return x + LAST[0]

    x = torch.zeros(1)
    for program, expected in ((of_class, [1, 2, 3]), (of_bytes, [2, 3, 4]), (of_deque, [6, 5, 6])):
        compiled = hagane.compile(program)
        assert [compiled(x).item() for _ in range(3)] == expected
    assert Counted.count == 3
    assert len(BYTES) == 4


def test_results_are_sets_of_their_own() -> None:
    compiled = hagane.compile(lambda x: ({1, x.shape[0]}, frozenset("a"), x), fullgraph=True)
    found = compiled(torch.ones(2))[:2]
    assert found == ({1, 2}, frozenset("a"))
    found[0].add(3)
    assert compiled(torch.ones(2))[0] == {1, 2}


def _adds(kept: Any = torch.zeros(2)) -> Any:  # noqa: B008
    kept += 1
    return kept.clone()


def _turns_off(x: Any) -> Any:
    torch.set_grad_enabled(False)
    return x + 1


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (lambda x: x + Counted.add(), "the call sets 'count' of the class Counted"),
        (lambda x: x + _adds(), "the call writes into a Tensor that is no attribute"),
        (_turns_off, "the call leaves gradients on or off"),
    ],
)
def test_what_no_graph_sets_is_named(program: Any, told: str) -> None:
    with pytest.raises(hagane.errors.CaptureError, match=told):
        hagane.compile(program, fullgraph=True)(torch.zeros(2))


def test_an_argument_with_attributes_is_named() -> None:
    compiled = hagane.compile(lambda x: x + 2 if hasattr(x, "marked") else x + 1)
    compiled(torch.zeros(1))
    marked = torch.zeros(1)
    marked.marked = True  # type: ignore[attr-defined]
    with pytest.warns(hagane.CompileNotice, match="attributes that the program gave it"):
        assert compiled(marked).item() == 2
