"""Questions to objects and libraries: special attributes, identity, settings, imports."""

from __future__ import annotations

import functools
import logging
from collections import OrderedDict
from typing import Any

import pytest
import torch
from torch import nn

import hagane

pytestmark = pytest.mark.filterwarnings("ignore::hagane.CompileNotice")
SPECIAL = ("__call__", "__name__", "__doc__", "__dict__", "__eq__", "__len__", "__iter__", "none")


def test_special_attributes_are_those_of_the_classes() -> None:
    def added(x: Any, y: Any) -> Any:
        return x + y

    def asked(x: Any) -> Any:
        values = (functools.partial(added, x), added, [], {}, x, 3, "s", torch.relu, nn.ReLU, None)
        return [hasattr(value, name) for value in values for name in SPECIAL], x

    x = torch.ones(2)
    assert hagane.compile(asked, fullgraph=True)(x)[0] == asked(x)[0]


class Equal:
    def __init__(self, value: int):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal) and self.value == other.value

    __hash__ = None  # type: ignore[assignment]


def test_objects_differ_where_they_are_not_equal() -> None:
    def f(x: Any) -> Any:
        return Equal(1) != Equal(1), Equal(1) != Equal(2), Equal(1) != 1, x

    assert hagane.compile(f, fullgraph=True)(torch.ones(1))[:3] == (False, True, True)


def test_containers_of_tensors_are_compared() -> None:
    def f(x: Any) -> Any:
        one, two = OrderedDict(a=1, b=2), OrderedDict(b=2, a=1)
        return [x] == [x + 0], [x] != [x + 1], {"a": x} == {"a": x + 1}, one == two, one == {**two}

    assert hagane.compile(f, fullgraph=True)(torch.ones(1)) == (True, True, False, False, True)


def test_identity_is_that_of_the_objects() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.held = torch.ones(1)

        def forward(self, x: Any, wanted: int) -> Any:
            made = [x]
            same = id(made) == id(made) and id(made) != id([x])
            return x * (2 if wanted == id(self.held) else 3 if wanted == id(self) else 5) + same

    net = Net().eval()
    compiled, x = hagane.compile(net), torch.ones(1)
    wanted = [id(net.held), id(net), 7, id(net.held)]
    assert [compiled(x, one).item() for one in wanted] == [3, 4, 6, 3]


def test_attributes_of_tensors_are_asked_for() -> None:
    compiled = hagane.compile(lambda x: x + 2 if hasattr(x, "marked") else x + 1)
    plain, marked = torch.zeros(1), torch.zeros(1)
    marked.marked = True  # type: ignore[attr-defined]
    assert [compiled(x).item() for x in (plain, marked, plain)] == [1, 2, 1]


def test_settings_of_a_library_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        if torch.backends.cuda.matmul.allow_tf32:
            return x - 1
        return x + 1 if torch.backends.cudnn.enabled else x

    compiled = hagane.compile(f, fullgraph=True)
    assert compiled(torch.zeros(1)).item() == f(torch.zeros(1)).item()
    monkeypatch.setattr(torch.backends.cudnn, "enabled", not torch.backends.cudnn.enabled)
    assert compiled(torch.zeros(1)).item() == f(torch.zeros(1)).item()


def test_modules_that_are_not_there_are_no_modules() -> None:
    def f(x: Any) -> Any:
        try:
            import a_module_that_is_not_there  # noqa: F401

            return x
        except ImportError:
            x = x + 1
        try:
            from os import a_name_that_is_not_there  # type: ignore[attr-defined]  # noqa: F401
        except ImportError:
            x = x * 3
        return x

    assert hagane.compile(f, fullgraph=True)(torch.ones(1)).item() == 6


def test_assertions_about_sizes_hold_in_each_call() -> None:
    def f(x: Any) -> Any:
        assert x.shape[0] > 3
        return x.sum()

    compiled = hagane.compile(f)
    assert [compiled(torch.ones(n)).item() for n in (5, 6, 7)] == [5, 6, 7]
    with pytest.raises(AssertionError):
        compiled(torch.ones(3))
    assert compiled(torch.ones(4)).item() == 4


class Scaled(nn.Module):
    def __call__(self, x: Any) -> Any:
        return 5 * super().__call__(x)

    def forward(self, x: Any) -> Any:
        return x * 3


def test_modules_mean_by_a_call_what_their_class_says() -> None:
    net = nn.Sequential(Scaled(), nn.Identity()).eval()
    net[1].register_forward_hook(lambda *found: found[2] + 1)
    assert hagane.compile(net, fullgraph=True)(torch.ones(1)).item() == 16
    assert hagane.compile(net[0], fullgraph=True)(torch.ones(1)).item() == 15


def test_objects_of_another_class_are_not_initialised() -> None:
    class Foo:
        value = 1

        def __init__(self) -> None:
            self.value = 2

    class Bar:
        def __new__(cls) -> Any:
            return object.__new__(Foo)

        def __init__(self) -> None:
            self.value = 3

    def f(x: Any) -> Any:
        return x * Bar().value

    assert hagane.compile(f, fullgraph=True)(torch.ones(1)).item() == 1


def test_sums_and_parts_have_the_types_of_python() -> None:
    def f(x: Any) -> Any:
        return sum([True]), sum([1], 0.0), sum([[1], [2]], []), range(9)[1:5], x  # noqa: RUF017

    found = hagane.compile(f, fullgraph=True)(torch.ones(1))
    assert repr(found[:4]) == "(1, 1.0, [1, 2], range(1, 5))"


def test_types_of_items_are_asked_for() -> None:
    def f(x: Any) -> Any:
        ask = torch.jit.isinstance
        return (
            ask([x], list[torch.Tensor]), ask([x], list[int]), ask((1, "a"), tuple[int, str]),
            ask({"a": x}, dict[str, torch.Tensor]), ask(None, int | None), x,
        )  # fmt: skip

    assert hagane.compile(f, fullgraph=True)(torch.ones(1))[:5] == (True, False, True, True, True)


def test_levels_of_loggers_are_asked_for() -> None:
    log = logging.getLogger("hagane.of_a_test")

    def f(x: Any) -> Any:
        log.debug("seen")
        return x + 1 if log.isEnabledFor(logging.DEBUG) else x

    compiled = hagane.compile(f, fullgraph=True)
    found = [compiled(torch.zeros(1)).item()]
    log.setLevel(logging.DEBUG)
    assert [*found, compiled(torch.zeros(1)).item()] == [0, 1]


def test_functions_hide_modules_of_their_name() -> None:
    def f(x: Any) -> Any:
        from torch._higher_order_ops.associative_scan import associative_scan

        return x + (associative_scan is None)

    import torch._higher_order_ops.associative_scan

    assert hagane.compile(f, fullgraph=True)(torch.ones(1)).item() == 1
