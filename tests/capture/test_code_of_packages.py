"""Forms of code that packages of models have: private names, plain sequences, lazy modules."""

from __future__ import annotations

import math
from abc import ABC, ABCMeta
from enum import Enum, EnumMeta, IntEnum
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import hagane

TYPE = "float32[n, 4]"


class Absent:
    """Stands for a package that is not there."""

    def __getattr__(self, name: str) -> Any:
        raise ImportError("no such package")


class Endless:
    """Has any attribute: a function that holds a further one."""

    def __getattr__(self, name: str) -> Any:
        def op(*arguments: Any) -> Any:
            return name, self

        op.__wrapped__ = None if name == "__wrapped__" else getattr(self, "__wrapped__", None)  # type: ignore[attr-defined]
        return op


absent, endless = Absent(), Endless()


def beside_strange_objects(x: Any) -> Any:
    if absent is None or endless is None:
        return x
    return torch.relu(x)


class Private(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.__scale = 2.0

    def __times(self, x: Any) -> Any:
        return x * self.__scale

    def forward(self, x: Any) -> Any:
        return torch.stack([self.__times(row) for row in (x, x + 1)])


class Derived(Private):
    def __times(self, x: Any) -> Any:
        return x - 1

    def forward(self, x: Any) -> Any:
        return super().forward(self.__times(x))


class Chain(nn.Sequential):
    def __init__(self) -> None:
        super().__init__()
        self.add_module("first", nn.Linear(4, 3))
        self.add_module("second", nn.Tanh())


class Reduction(str, Enum):  # noqa: UP042
    MEAN = "mean"
    SUM = "sum"

    @property
    def doubled(self) -> str:
        return self.value * 2

    def __str__(self) -> str:
        return f"<{self.value}>"


class Level(IntEnum):
    LOW = 2

    @property
    def next(self) -> int:
        return self + 1


def by_members(x: Any) -> Any:
    kind, level = Reduction("mean"), Level(2)
    if kind.value != "mean" or kind.name != "MEAN" or str(kind) != "<mean>":
        return x
    return x.mean(0) * level.next + len(kind.doubled) + level.value


class Base(ABC):  # noqa: B024
    pass


class Kinds(type):
    pass


class OfKinds(metaclass=Kinds):
    pass


def asked_about_classes(x: Any) -> Any:
    mean = Reduction.MEAN
    answers = [
        isinstance(Reduction, EnumMeta), isinstance(Reduction, type), isinstance(mean, Reduction),
        isinstance(mean, Enum), isinstance(mean, str), isinstance(mean, Level),
        mean in Reduction, "mean" in {member.value for member in Reduction},
        isinstance(Base, ABCMeta), isinstance(Base, EnumMeta), isinstance(Chain, type),
        isinstance(OfKinds, Kinds), isinstance(Base, Kinds), type(OfKinds) is Kinds,
        type(mean) is Reduction, type(Reduction) is EnumMeta, type(Chain) is type,
    ]  # fmt: skip
    return x.sum() + torch.tensor(answers).float()


def to_a_multiple(x: Any, multiple: int = 4) -> Any:
    parts = x.shape[0] / multiple
    if not parts.is_integer():
        x = nn.functional.pad(x, (0, 0, 0, math.ceil(parts) * multiple - x.shape[0]))
    windows = x.shape[0] // multiple
    places = torch.arange(x.shape[0]).reshape(windows, multiple)
    return x.reshape(windows, multiple, 4).masked_fill((places == 1)[..., None], 0.0)


def padded_by_open_numbers(x: Any) -> Any:
    places = torch.where(x[:, 0] > 0)[0]
    rows = nn.functional.pad(places, [0, 1], value=x.size(0) - 1)
    return rows, nn.functional.pad(x, [1, 0], value=x.size(0) / 4), torch.nan_to_num(x > 0)


MODELS = [
    beside_strange_objects, Private().eval(), Derived().eval(), Chain().eval(), by_members,
    padded_by_open_numbers, asked_about_classes, to_a_multiple,
]  # fmt: skip


@pytest.mark.parametrize("model", MODELS, ids=lambda m: getattr(m, "__name__", type(m).__name__))
def test_it_is_checked_and_computes_what_it_does(model: Any) -> None:
    report = hagane.check(model, TYPE)
    assert report.checked, report.notices
    assert not report.errors, report.errors
    session = hagane.InferenceSession(hagane.capture(model, TYPE))
    name = session.get_inputs()[0].name
    for n in (1, 5):
        x = torch.randn(n, 4, generator=torch.Generator().manual_seed(n))
        with torch.no_grad():
            expected = model(x)
        parts = expected if isinstance(expected, tuple) else (expected,)
        for one, other in zip(session.run(None, {name: x.numpy()}), parts, strict=True):
            assert one.dtype == other.numpy().dtype
            np.testing.assert_allclose(one, other.numpy(), rtol=1e-5, atol=1e-6)


def padded_to_a_power(x: Any) -> Any:
    rows = 2 ** math.ceil(math.log2(x.shape[0]))
    return nn.functional.pad(x, (0, 0, 0, rows - x.shape[0]))


def test_two_to_an_exponent_of_sizes_is_a_size() -> None:
    report = hagane.check(padded_to_a_power, TYPE)
    assert report.ok, report.errors
    assert str(report.returned) == "torch.Tensor(dtype=float32, shape=(None, 4))"


def one_or_other(x: Any, y: Any) -> Any:
    same = x.size() == y.size() and torch.equal(x, y)
    return x.sum() if same else torch.where(torch.tensor(torch.equal(y, x)), x.sum(), y.mean())


@pytest.mark.parametrize(("n", "m", "scale"), [(2, 2, 1), (2, 2, 2), (2, 3, 1), (5, 2, 1)])
def test_tensors_of_other_sizes_are_not_equal(n: int, m: int, scale: int) -> None:
    model = hagane.capture(one_or_other, "float32[n, 4]", "float32[m, 4]")
    x, y = torch.ones(n, 4), torch.ones(m, 4) * scale
    (found,) = hagane.InferenceSession(model).run(None, {"x": x.numpy(), "y": y.numpy()})
    np.testing.assert_allclose(found, one_or_other(x, y).numpy())


def neighbour(x: Any, y: Any) -> Any:
    return torch.nextafter(x, y)


def test_the_next_number_is_the_next_to_the_last_bit() -> None:
    edges = [0.0, -0.0, 1.0, -2.0, 3.4028235e38, -np.inf, np.inf, np.nan, 1.1754944e-38, 1e-45]
    bits = np.random.default_rng(0).integers(0, 2**32, 2000, dtype=np.uint32)
    x, y = np.meshgrid(np.array(edges, np.float32), np.array(edges, np.float32))
    x = np.concatenate([x.ravel(), bits.view(np.float32)])
    y = np.concatenate([y.ravel(), bits[::-1].view(np.float32)])
    session = hagane.InferenceSession(hagane.capture(neighbour, "float32[n]", "float32[n]"))
    (found,) = session.run(None, {"x": x, "y": y})
    expected = torch.nextafter(torch.tensor(x), torch.tensor(y))
    np.testing.assert_array_equal(found, expected.numpy())


def test_a_package_loops_over_what_a_program_may_loop_over(tmp_path: Path) -> None:
    source = """import torch

def placed(kinds, grids):
    sources, start, parts = {1: iter(grids), 2: None}, 0, []
    for kind in kinds.tolist():
        if kind == 0:
            parts.append(torch.arange(2) + start)
            start += 2
        else:
            grid = next(sources[kind])
            parts.append(torch.arange(grid[0].item()) + start)
            start += max(grid[0], grid[1])
    return torch.cat(parts)
"""
    file = tmp_path / "site-packages" / "placing.py"
    file.parent.mkdir()
    file.write_text(source)
    specification = spec_from_file_location("placing", file)
    assert specification is not None
    assert specification.loader is not None
    package = module_from_spec(specification)
    specification.loader.exec_module(package)

    def program(kinds: Any, grids: Any) -> Any:
        return package.placed(kinds, grids)

    session = hagane.InferenceSession(hagane.capture(program, "int64[n]", "int64[k, 2]"))
    grids = torch.tensor([[1, 3], [4, 2], [2, 2]])
    for kinds in ([0, 1, 1, 0], [1, 0, 0], [1, 1, 0, 1]):
        given = {"kinds": np.array(kinds), "grids": grids.numpy()}
        wanted = program(torch.tensor(kinds), grids)
        np.testing.assert_array_equal(session.run(None, given)[0], wanted)
