"""Ways in which libraries write what programs of users seldom do."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch

import hagane


def agree(program: Any, *arguments: Any) -> None:
    types = [f"{str(a.dtype).partition('.')[2]}[{'b, ' * (a.ndim > 0)}"
             f"{', '.join(map(str, a.shape[1:]))}]" for a in arguments]  # fmt: skip
    model = hagane.capture(program, *[text.replace(", ]", "]") for text in types])
    made = hagane.InferenceSession(model).run(
        None, {v.name: a.numpy() for v, a in zip(model.graph.inputs, arguments, strict=True)}
    )
    expected = program(*arguments)
    for one, other in zip(made, expected if isinstance(expected, tuple) else [expected],
                          strict=True):  # fmt: skip
        np.testing.assert_allclose(one, other.detach().numpy(), rtol=1e-6)


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        return a * b + 1

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients


scaled = Scaled.apply


def test_apply_of_a_function_of_gradients_may_have_a_name() -> None:
    agree(lambda a, b: scaled(a, b) * 2, torch.randn(3, 2), torch.randn(3, 2))


class Base:
    __slots__ = ("factor", "kept")

    def __init__(self, factor: float):
        self.factor = factor
        self.kept = None


class Slotted(Base):
    __slots__ = "name"

    @property
    def value(self) -> float:
        return self.kept or self.factor


SLOTTED = Slotted(3.0)


def test_slots_of_a_base_class_are_attributes() -> None:
    agree(lambda x: x * SLOTTED.value, torch.randn(4))


def guarded(x: Any) -> Any:
    if x.ndim == 3:
        first, second = x, x
    if x.sum() == 0 and x.ndim == 3:
        return first
    if not (x.sum() != 0 or x.ndim < 3):
        return second
    return x * 2


def test_a_part_of_a_condition_that_is_known_decides_it() -> None:
    agree(guarded, torch.randn(4))
    agree(guarded, torch.zeros(4))


def masked(mask: Any, x: Any, y: Any) -> Any:
    return torch.where(mask, x, y)


def test_bytes_are_masks() -> None:
    mask = torch.tensor([0, 1, 2], dtype=torch.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        agree(masked, mask, torch.randn(3), torch.randn(3))


def asked(x: Any) -> Any:
    if x.is_mps or x.is_xla or x.is_meta or not x.is_cpu:
        return x
    return torch.functional.tensordot(x, x, dims=1)


def test_devices_and_names_of_inner_modules() -> None:
    agree(lambda x: asked(x) + 1, torch.randn(4))


def solved(a: Any, b: Any) -> Any:
    return torch.linalg.solve_ex(a, b)


def test_systems_without_a_check() -> None:
    agree(
        lambda a, b: solved(a, b)[0], torch.randn(2, 3, 3) + 3 * torch.eye(3), torch.randn(2, 3, 1)
    )


class Plain(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        kind = type(self.inner) if hasattr(self, "inner") else torch.nn.Linear
        return x * 2 if kind.__eq__ is object.__eq__ and kind.__hash__ is object.__hash__ else x


def test_classes_of_libraries_compare_as_objects() -> None:
    agree(Plain(), torch.randn(3))


class Containers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleDict({"a": torch.nn.Linear(3, 3), "b": torch.nn.ReLU()})
        self.weights = torch.nn.ParameterDict({"w": torch.ones(3), "v": 2 * torch.ones(3)})

    def forward(self, x: Any) -> Any:
        for name in self.layers:
            x = self.layers[name](x)
        for name in self.weights:
            x = x * self.weights[name]
        return x + len(self.layers) + 10 * len(self.weights)


def test_dictionaries_of_modules_and_parameters_are_counted_and_walked() -> None:
    module = Containers()
    assert hagane.check(module, x="float32[b, 3]").ok
    with torch.no_grad():
        agree(module, torch.randn(2, 3))
