"""Types of results, and programs over two libraries, as found in models and training scripts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import hagane
from tests.capture.test_random_programs import loaded
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


def test_an_axis_that_the_data_decide_is_followed_both_ways(tmp_path: Path) -> None:
    source = """
    def f(x, mask):
        y = x.reshape(-1)
        if int(mask.sum()) > 0:
            y = y.reshape(-1, 1)
        return torch.stack((y, y), dim=y.dim()), y.sum(y.dim() - 1)
    """
    report = check_text(tmp_path, source, {"x": "float32[n, 4]", "mask": "bool[n]"})
    assert report.errors == []
    assert report.returned == (
        "(torch.Tensor(dtype=float32, shape=(4*n, 1, 2)) | torch.Tensor(dtype=float32, shape="
        "(4*n, 2)), torch.Tensor(dtype=float32, shape=(4*n,)) | torch.Tensor(dtype=float32, shape=()))"
    )


def test_regions_of_pictures_have_the_size_asked_for(tmp_path: Path) -> None:
    source = """
    def f(x, boxes):
        return torch.ops.torchvision.roi_align(x, boxes, 0.25, 7, 5, 2, False)
    """
    types = {"x": "float32[n, c, h, w]", "boxes": "float32[k, 5]"}
    report = check_text(tmp_path, source, types)
    assert report.returned == "torch.Tensor(dtype=float32, shape=(k, c, 7, 5))"
    report = check_text(tmp_path, source, {**types, "boxes": "float32[k, 4]"})
    assert "expected regions (image, x1, y1, x2, y2)" in report.errors[0].message


def test_names_of_inner_modules_are_those_of_the_outer_ones(tmp_path: Path) -> None:
    source = """
    from torch.distributions.categorical import Categorical
    from torch.nn.functional import cat
    from torch.nn.modules.linear import Linear

    def f(x):
        return Categorical(logits=Linear(4, 3)(x)).sample(), isinstance(nn.Linear(1, 1), Linear)

    def g(x):
        return cat([x, x])
    """
    report = check_text(tmp_path, source, {"x": "float32[n, 4]"})
    assert report.exit_code == 0, report.unknown
    assert report.returned == "(torch.Tensor(dtype=int64, shape=(n,)), bool(True))"
    assert check_text(tmp_path, source, {"x": "float32[n, 4]"}, target="g").exit_code == 2


def test_turns_that_are_drawn_keep_squares_and_leave_the_rest_open(tmp_path: Path) -> None:
    source = """
    import random

    def f(x):
        return torch.rot90(x, random.randint(0, 3), (1, 2))
    """
    report = check_text(tmp_path, source, {"x": "float32[3, n, n]"})
    assert report.returned == "torch.Tensor(dtype=float32, shape=(3, n, n))"
    report = check_text(tmp_path, source, {"x": "float32[3, n, 4]"})
    assert report.exit_code == 2
    assert "by quarters that are not known" in report.unknown[0].message


def test_a_number_that_a_function_has_to_know_leaves_its_result_open(tmp_path: Path) -> None:
    source = """
    import random

    def f(x):
        return F.pixel_shuffle(x, random.randint(1, 2)), x.float().relu()
    """
    report = check_text(tmp_path, source, {"x": "float32[n, 4, 6, 6]"})
    assert report.exit_code in (0, 2)
    assert not any("itself failed" in note.message for note in report.notices)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x[0].masked_scatter(x > 0, x)", "float32[2, 3]"),
        ("torch.slice_scatter(x, x[:, :1], 1, 2)", "float32[2, 3]"),
        ("torch.slice_scatter(x, x[:, :1], 1)", "expected a source of the slice's shape (2, 3)"),
        ("torch.vander(x[0])", "float32[3, 3]"),
        ("torch.vander(x)", "expected 'x' to have 1 axes"),
        ("torch.cov(x.long())", "float32[2, 2]"),
        ("torch.corrcoef(x.long())", "float32[2, 2]"),
        ("F.embedding_bag(x.long(), torch.ones(9, 5))", "float32[2, 5]"),
        (
            "F.embedding_bag(x.long(), torch.ones(9, 5), torch.tensor([0, 1]))",
            "expected one axis of indices beside offsets",
        ),
    ],
)
def test_drawn_calls_have_the_types_that_running_gives(
    text: str, wanted: str, tmp_path: Path
) -> None:
    function = loaded(
        "import torch\nimport torch.nn.functional as F\n\n\ndef program(x):\n"
        f"    return {text}\n", str(tmp_path),
    )  # fmt: skip
    x = torch.arange(6.0).reshape(2, 3)
    report = hagane.check(function, "float32[2, 3]")
    if not wanted.startswith("float32"):
        with pytest.raises((RuntimeError, ValueError)):
            function(x)
        assert wanted in report.errors[0].message
        return
    made = function(x)
    assert wanted == f"{str(made.dtype).removeprefix('torch.')}{[*made.shape]}"
    assert report.tensors[""].dtype.name.lower().startswith("float")
    assert [*report.tensors[""].shape] == [*made.shape]
