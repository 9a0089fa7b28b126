"""Types given as texts are of the library that the program uses: by annotations, or in methods."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import hagane

Array = np.ndarray


def by_alias(x: Array) -> Any:
    return x.copy()


class InMethods:
    """An object whose call leaves the work to a method, which uses NumPy."""

    def scaled(self, x: Any) -> Any:
        return np.abs(x)

    def __call__(self, x: Any) -> Any:
        return self.scaled(x).copy().astype("float64")


class InTorch:
    """The same with PyTorch."""

    def scaled(self, x: Any) -> Any:
        return torch.abs(x)

    def __call__(self, x: Any) -> Any:
        return self.scaled(x).double()


def without_a_name(x: Any) -> Any:
    return x.double()


@pytest.mark.parametrize("program", [by_alias, InMethods(), InTorch(), without_a_name])
def test_an_argument_is_of_the_library_that_the_program_uses(program: Any) -> None:
    model = hagane.capture(program, "float32[n]")
    x = np.array([1, -2, 3], np.float32)
    (found,) = hagane.InferenceSession(model).run(None, {"x": x})
    in_torch = program is without_a_name or isinstance(program, InTorch)
    expected = np.asarray(program(torch.from_numpy(x) if in_torch else x))
    np.testing.assert_array_equal(found, expected, strict=True)
