"""Types of results, and programs over two libraries, as found in models and training scripts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import hagane
from tests.frontends.checking import check_text

torch = pytest.importorskip("torch")


@dataclass
class Output:
    logits: torch.Tensor
    hidden: tuple[torch.Tensor, ...]
    loss: torch.Tensor | None = None


def outputs(x: torch.Tensor) -> Output:
    return Output(x[:, :2], (x, x.double()))


def test_tensors_of_a_result_are_called_by_their_paths() -> None:
    report = hagane.check(outputs, "float32[n, 4]")
    assert [*report.tensors] == ["logits", "hidden.0", "hidden.1"]
    assert report.tensors["hidden.1"].rank == 2
    assert report.returned == (
        "Output(logits=torch.Tensor(dtype=float32, shape=(n, 2)), hidden=(torch.Tensor(dtype="
        "float32, shape=(n, 4)), torch.Tensor(dtype=float64, shape=(n, 4))))"
    )


def test_a_choice_made_on_the_way_holds_in_functions_that_remember_it(tmp_path: Path) -> None:
    source = """
    def packed(p):
        found = (p.diff(dim=-1, prepend=p[:, :1] - 1) != 1).cumsum(-1)
        return None if (found[:, -1] == 0).all() else found

    def f(p):
        mask, rule = packed(p), lambda b, q: q >= 0
        if mask is not None:
            rule = lambda b, q: mask[b, q] == mask[b, q]
        return rule(torch.arange(p.shape[0])[:, None], torch.arange(p.shape[1])[None, :])
    """
    report = check_text(tmp_path, source, {"p": "int64[n, s]"})
    assert report.errors == []
    assert report.exit_code == 0


@pytest.mark.parametrize("number", [np.float64(2), np.float32(2), np.int64(2), np.bool_(True)])
@pytest.mark.parametrize("shape", [(), (3,)])
def test_scalars_of_numpy_are_numbers_beside_tensors(number: np.generic, shape: object) -> None:
    for dtype in (torch.float32, torch.int64):
        x = torch.ones(shape, dtype=dtype)

        def left(x: torch.Tensor) -> torch.Tensor:
            return number * x

        def right(x: torch.Tensor) -> torch.Tensor:
            return x + number

        for function in (left, right):
            wanted = function(x)
            report = hagane.check(function, x)
            name = str(wanted.dtype).removeprefix("torch.")
            size = str(tuple(wanted.shape))
            assert report.returned == f"torch.Tensor(dtype={name}, shape={size})"


def test_a_product_of_numpy_is_a_width_of_a_layer(tmp_path: Path) -> None:
    source = """
    import numpy as np

    def f(x):
        return nn.Linear(np.array((2, 3)).prod(), np.int64(4))(x)
    """
    report = check_text(tmp_path, source, {"x": "float32[n, 6]"})
    assert report.exit_code == 0, (report.errors, report.unknown, report.notices)
    assert report.returned == "torch.Tensor(dtype=float32, shape=(n, 4))"
    report = check_text(tmp_path, source, {"x": "float32[n, 5]"})
    assert report.exit_code == 1
