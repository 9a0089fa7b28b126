"""Attributes that some paths set and others do not, where the data decide."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import hagane
from hagane.errors import CaptureError, HaganeError

INPUTS = ([1.0, -3.0, 0.5], [1.0, 2.0], [-1.0], [0.5, -0.25, 2.0])


class Box:
    scale: Any = 2.0
    held: Any = None

    def __init__(self) -> None:
        self.total = 3.0


class Sevens:
    def __getattr__(self, name: str) -> float:
        return 7.0


class Lazy:
    def __init__(self, x: Any) -> None:
        self.x, self.count = x, 0

    @functools.cached_property
    def total(self) -> Any:
        self.count += 1
        return self.x.sum()


class Owner:
    def __init__(self) -> None:
        self.log, self._value = 0.0, 1.0

    @property
    def value(self) -> float:
        return self._value

    @value.setter
    def value(self, value: float) -> None:
        self._value = value

    @value.deleter
    def value(self) -> None:
        self.log, self._value = self.log + 1, 10.0

    @property
    def fixed(self) -> float:
        return 4.0

    def __delattr__(self, name: str) -> None:
        if name == "nothing":
            self.log += 100
        else:
            object.__delattr__(self, name)


@dataclass(frozen=True)
class Frozen:
    k: float = 1.0


class Slotted:
    __slots__ = ("a",)


def default_of_the_class(x: Any) -> Any:
    box = Box()
    if x.sum() > 0:
        box.scale = 5.0
    return x * box.scale


def none_of_the_class(x: Any) -> Any:
    box = Box()
    if x[0] > 0.7:
        box.held = x.sum()
    return x if box.held is None else x * box.held


def deleted(x: Any) -> Any:
    box = Box()
    box.scale = 5.0
    if x.sum() > 0:
        del box.scale
    return x * box.scale


def of_a_class(x: Any) -> Any:
    class Base:
        k = 1.0

    class Derived(Base):
        pass

    if x.sum() > 0:
        Derived.k = 5.0
    return x * Derived().k + Base.k


def asked_for(x: Any) -> Any:
    box: Any = Box()
    if x.sum() > 0:
        box.more = 5.0
    if hasattr(box, "more"):
        x = x * box.more
    return x * getattr(box, "more", 3.0)


def missed(x: Any) -> Any:
    box: Any = Box()
    if x.sum() > 0:
        del box.total
    try:
        return x * box.total
    except AttributeError:
        return x + 100


def computed(x: Any) -> Any:
    box: Any = Sevens()
    if x.sum() > 0:
        box.k = 5.0
    return x * box.k


def of_a_function(x: Any) -> Any:
    def f() -> None: ...

    if x.sum() > 0:
        f.calls = 3.0  # type: ignore[attr-defined]
    return x * getattr(f, "calls", 2.0)


def left_early(x: Any) -> Any:
    box: Any = Box()

    def fill() -> None:
        if x.sum() > 0:
            return
        box.more = 4.0

    fill()
    return x * getattr(box, "more", 3.0)


def set_in_a_loop(x: Any) -> Any:
    box: Any = Box()
    total = x[0] * 0
    for v in x:
        total = total + getattr(box, "more", 2.0)
        if v > 0:
            box.more = v
    return total


def set_by_the_first_turn(x: Any) -> Any:
    box: Any = Box()
    total = x[0] * 0
    for v in x:
        if hasattr(box, "last"):
            total = total + box.last
        box.last = v
    return total


def kept_on_a_path(x: Any) -> Any:
    lazy = Lazy(x)
    if x[0] > 0.7:
        x = x + lazy.total
    lazy.x = x * 2
    return x + lazy.total + lazy.total + lazy.count


def kept_and_set(x: Any) -> Any:
    lazy = Lazy(x)
    first = lazy.total
    del lazy.total
    lazy.x = x * 3
    second = lazy.total
    lazy.total = x[0]
    return first + second * 2 + lazy.total * 4 + lazy.count


def by_methods(x: Any) -> Any:
    owner: Any = Owner()
    owner.value = 5.0
    x = x * owner.value
    del owner.value
    del owner.nothing
    return x + owner.value + owner.log


def that_cannot_be_set(x: Any) -> Any:
    places: Any = (Owner(), Frozen(), Slotted())
    for place, name in zip(places, ("fixed", "k", "b"), strict=True):
        try:
            setattr(place, name, 100.0)
        except AttributeError:
            x = x + 10
    return x + places[0].fixed + places[1].k


@pytest.mark.parametrize(
    "function",
    [
        default_of_the_class, none_of_the_class, deleted, of_a_class, asked_for, missed, computed,
        of_a_function, left_early, set_in_a_loop, set_by_the_first_turn, kept_on_a_path,
        kept_and_set, by_methods, that_cannot_be_set,
    ],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_other_paths_have_what_the_object_gives_without_it(function: Callable[[Any], Any]) -> None:
    session = hagane.InferenceSession(hagane.capture(function, "float64[n]"))
    for x in INPUTS:
        given = np.array(x)
        (got,) = session.run(["output"], {"x": given})
        np.testing.assert_allclose(got, function(given))


def shown_whole(x: Any) -> Any:
    box: Any = Box()
    if x.sum() > 0:
        box.more = 5.0
    return x * len(vars(box))


def named_by_the_data(x: Any) -> Any:
    box = Box()
    box.__dict__[f"a{int(x[0])}"] = 3.0
    return x * getattr(box, "a0", 2.0)


def class_set_later(x: Any) -> Any:
    class Count:
        n = 0.0

    count = Count()
    if x.sum() > 0:
        count.n += 5.0
    Count.n = 7.0
    return x * count.n


def named_partial(x: Any) -> Any:
    scaled: Any = functools.partial(lambda k: k, 1)
    scaled.tag = 3.0
    return x * getattr(scaled, "tag", 1.0)


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (class_set_later, "'n' of the class Count is set here, and some paths alone set it"),
        (named_partial, "'tag' of a functools.partial is set"),
    ],
)
def test_what_other_paths_would_see_is_refused(function: Callable[[Any], Any], told: str) -> None:
    with pytest.raises(CaptureError, match=told):
        hagane.capture(function, "float64[n]")


def test_all_attributes_at_once_are_refused_where_a_path_alone_set_one() -> None:
    told = "'more' was set on some paths alone, as the data decide; set it on all of them"
    with pytest.raises(CaptureError, match=told):
        hagane.capture(shown_whole, "float64[n]")


def test_attributes_whose_names_the_data_decide_are_refused() -> None:
    told = "attributes of an object whose names are not known are set"
    with pytest.raises(CaptureError, match=told):
        hagane.capture(named_by_the_data, "float64[n]")


class Scaled:
    factor = 1.0

    def __call__(self, x: Any) -> Any:
        if x.sum() > 0:
            self.factor = 2.0
        y = x * self.factor
        self.factor = 1.0
        return y


def test_an_object_of_the_running_python_has_what_its_class_gives() -> None:
    session = hagane.InferenceSession(hagane.capture(Scaled(), "float64[n]"))
    for x in INPUTS:
        (got,) = session.run(["output"], {"x": np.array(x)})
        np.testing.assert_allclose(got, Scaled()(np.array(x)))


def unguarded(x: Any) -> Any:
    box: Any = Box()
    if x.sum() > 0:
        box.more = 5.0
    return x * box.more


def test_a_read_without_a_guard_fails_where_the_attribute_is_not_set() -> None:
    session = hagane.InferenceSession(hagane.capture(unguarded, "float64[n]"))
    np.testing.assert_allclose(session.run(None, {"x": np.ones(2)})[0], np.full(2, 5.0))
    with pytest.raises(HaganeError, match="AttributeError: Box has no attribute 'more'"):
        session.run(None, {"x": -np.ones(2)})
