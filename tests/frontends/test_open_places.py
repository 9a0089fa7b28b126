"""Places and counts that some open sizes do not have: assumed where others do, else errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hagane
from tests.capture.test_random_programs import loaded

HEAD = "import numpy as np\nimport torch\nimport torch.nn.functional as F\n\n\n"


def checked(text: str, folder: Path, *types: str) -> Any:
    function = loaded(f"{HEAD}def program(x):\n    return {text}\n", str(folder))
    return hagane.check(function, *types)


@pytest.mark.parametrize(
    ("text", "assumed"),
    [
        ("x[[0, 2]]", "2 < n (index of axis 0)"),
        ("x.index_select(0, torch.tensor([-3, 0]))", "n >= 3 (index of axis 0)"),
        ("x.unbind(0)[1]", "1 < n (index of a list)"),
        ("x.split(4)[1]", "1 < (n + 3)//4 (index of a list)"),
        ("F.pad(x, (0, 0, -2, 5))", "n - 2 >= 0 (axis 0 cut by 2)"),
        ("x[:-2].max(0)[0]", "max(0, n - 2) >= 1 (number of elements to choose from)"),
        ("F.batch_norm(x, None, None, training=True)", "n >= 2 (values for each mean)"),
    ],
)
def test_sizes_without_them_are_assumed_away(text: str, assumed: str, tmp_path: Path) -> None:
    report = checked(text, tmp_path, "float32[n, 4]")
    assert report.errors == []
    assert [note.message for note in report.assumptions] == [assumed]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x[:2].split(1)[3]", "index 3 is out of range for min(2, n) items"),
        ("x[:2].max(0)[0][[0, 4]]", "index 4 is out of range for axis 0"),
        ("F.group_norm(x[:1, :2], 2)", "expected several values for each mean, got"),
    ],
)
def test_places_that_no_size_has_are_errors(text: str, message: str, tmp_path: Path) -> None:
    (error,) = checked(text, tmp_path, "float32[n, 4]").errors
    assert message in error.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("np.r_[0:1:3j]", "np.r_ and np.c_ with a complex step are not understood"),
        ("np.r_['0,2', x]", "np.r_ and np.c_ with directions as a text are not understood"),
        ("np.trapezoid(x, axis=2)", "axis 2 is out of bounds for the 2 axes"),
    ],
)
def test_concatenators_and_integrals_say_what_they_lack(
    text: str, message: str, tmp_path: Path
) -> None:
    import numpy as np

    function = loaded(f"{HEAD}def program(x):\n    return {text}\n", str(tmp_path))
    (error,) = hagane.check(function, np.zeros((3, 4), np.float32)).errors
    assert message in error.message


def test_a_setting_that_is_not_known_leaves_a_formula_open(tmp_path: Path) -> None:
    source = "F.group_norm(F.layer_norm(x, (4,), eps=x.mean().item()), 2, eps=x.sum().item())"
    report = checked(source, tmp_path, "float32[n, 4]")
    assert report.errors == []
    assert report.notices == []
    assert report.returned == "torch.Tensor(dtype=float32, shape=(n, 4))"
