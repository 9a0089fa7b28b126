"""Everything that a compiled program reads may change between its calls, and is noticed."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import hagane


class Slots:
    __slots__ = ("scale",)

    def __init__(self) -> None:
        self.scale = 2.0


class Meta(type):
    scale = 2.0


class Marked(metaclass=Meta):
    pass


def scaled(x: Any, scale: float) -> Any:
    return x * scale


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.slots = Slots()
        self.partial = functools.partial(scaled, scale=2.0)
        self.linear = nn.Linear(3, 3)


class OfSlots(Model):
    def forward(self, x: Any) -> Any:
        return x * self.slots.scale


class OfPartial(Model):
    def forward(self, x: Any) -> Any:
        return self.partial(x)


class OfMeta(Model):
    def forward(self, x: Any) -> Any:
        return x * Marked.scale  # type: ignore[attr-defined]


class OfParameters(Model):
    def forward(self, x: Any) -> Any:
        return x * sum(p.sum() for p in self.parameters())


class OfChildren(Model):
    def forward(self, x: Any) -> Any:
        return x * len(list(self.children()))


class OfNames(Model):
    def forward(self, x: Any) -> Any:
        return x * len([name for name in vars(self) if name.startswith("mark")])


class OfEnvironment(Model):
    def forward(self, x: Any) -> Any:
        return x * float(os.environ.get("HAGANE_TEST_SCALE", "2"))


class OfGetenv(Model):
    def forward(self, x: Any) -> Any:
        return x * float(os.getenv("HAGANE_TEST_SCALE", "2"))


class OfKeys(Model):
    def forward(self, x: Any) -> Any:
        return x * 3 if "HAGANE_TEST_SCALE" in os.environ else x


def set_slot(model: Any) -> None:
    model.slots.scale = 5.0


def set_keyword(model: Any) -> None:
    model.partial.keywords["scale"] = 5.0


def set_meta(_: Any) -> None:
    Meta.scale = 5.0


def add_module(model: Any) -> None:
    model.more = nn.Linear(2, 2)


def add_name(model: Any) -> None:
    model.mark = 1


def set_variable(_: Any) -> None:
    os.environ["HAGANE_TEST_SCALE"] = "5"


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (OfSlots, set_slot),
        (OfPartial, set_keyword),
        (OfMeta, set_meta),
        (OfParameters, add_module),
        (OfChildren, add_module),
        (OfNames, add_name),
        (OfEnvironment, set_variable),
        (OfGetenv, set_variable),
        (OfKeys, set_variable),
    ],
)
@torch.no_grad()
def test_a_change_between_calls_is_noticed(
    kind: Any, change: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Meta, "scale", 2.0)
    monkeypatch.setenv("HAGANE_TEST_SCALE", "1")  # so that it is taken back
    monkeypatch.delenv("HAGANE_TEST_SCALE")
    model, x = kind(), torch.arange(3.0) + 1
    compiled = hagane.compile(model)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), model(x))
    before = compiled(x)
    change(model)
    with pytest.warns(UserWarning, match=r"is captured anew"):
        after = compiled(x)
    assert not torch.equal(before, after)
    torch.testing.assert_close(after, model(x))


def tripled(self: Any) -> Any:
    return self * 3


def without_bias(self: Any, x: Any) -> Any:
    return functional.linear(x, self.weight) * 2


class Calls(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        return self.linear(functional.relu(x)).abs()


@pytest.mark.parametrize(
    ("owner", "name", "other"),
    [
        (functional, "relu", torch.tanh),
        (functional, "relu", tripled),
        (nn.Linear, "forward", without_bias),
        (torch.Tensor, "abs", tripled),
    ],
)
@torch.no_grad()
def test_what_a_program_puts_in_a_librarys_place_runs(
    owner: Any, name: str, other: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, x = Calls(), torch.arange(3.0) - 1
    compiled = hagane.compile(model)
    plain = compiled(x)
    torch.testing.assert_close(plain, model(x))
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, other, raising=False)
        with pytest.warns(UserWarning, match=rf"captured anew: '\w+(\.\w+)*\.{name}'"):
            found = compiled(x)
        torch.testing.assert_close(found, model(x))
        session = hagane.InferenceSession(hagane.capture(model, x="float32[3]"))
        torch.testing.assert_close(torch.from_numpy(session.run(None, {"x": x})[0]), model(x))
        assert not torch.allclose(found, plain)
    torch.testing.assert_close(compiled(x), plain)


class Alike(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.held = torch.ones(3)

    def forward(self, x: Any) -> Any:
        return x * 2 if x is self.held else x * 3


class Writes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("held", torch.ones(3))

    def forward(self, x: Any) -> Any:
        self.held.mul_(2)
        return x + self.held


class WritesArguments(Writes):
    def forward(self, x: Any) -> Any:
        x.mul_(2)
        return self.held + x.sum()


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Alike, r"'x' is a tensor that the program reads elsewhere too"),
        (Writes, r"'x' shares memory with an attribute that the call writes"),
        (WritesArguments, r"shares memory with a tensor that the program reads elsewhere"),
    ],
)
@torch.no_grad()
def test_an_argument_that_the_program_has_already_runs_in_python(kind: Any, reason: str) -> None:
    model, original = kind(), kind()
    compiled, x = hagane.compile(model), torch.arange(3.0)
    torch.testing.assert_close(compiled(x.clone()), original(x.clone()))
    with pytest.warns(UserWarning, match=reason):
        found = compiled(model.held)
    torch.testing.assert_close(found, original(original.held))
    torch.testing.assert_close(model.held, original.held)


class Counter(nn.Module):
    count = 0

    def forward(self, x: Any) -> Any:
        self.count += 1
        return x * self.count


class Kept(nn.Module):
    first: Any = None

    def forward(self, x: Any) -> Any:
        if self.first is None:
            self.first = x.sum()
        return x * self.first


class Twice(nn.Module):
    is_known = False

    def forward(self, x: Any) -> Any:
        y = x if self.is_known else x * 5
        self.is_known = True
        return y


@pytest.mark.filterwarnings("ignore:.*is captured anew")
@pytest.mark.parametrize("kind", [Counter, Kept, Twice])
@torch.no_grad()
def test_attributes_that_a_class_gives_first_are_state(kind: Any) -> None:
    model, original = kind(), kind()
    compiled = hagane.compile(model)
    for i in range(4):
        x = torch.arange(3.0) + i
        torch.testing.assert_close(compiled(x), original(x))
        assert vars(model).keys() == vars(original).keys()
