"""Views that numbers among the tensors take, and other changes of arrays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import hagane
from hagane.errors import CaptureError


def written_through(x, place):
    y = 1 * x
    y[place][0] = 5
    return y


def written_twice(x, place):
    y = 1 * x
    row = y[place]
    y[place] = 7
    return row * 1


def largest_emptied(x, place):
    y = 1 * x
    row = y[y[:, 0].argmax()]
    row[:] = 0
    return y, row * 1


def in_a_loop(x, place):
    y = 1 * x
    for _ in range(x.shape[0]):
        y[y[:, 0].argmin()][0] += 10
    return y


def of_an_array(x, place):
    y = 1 * x
    row = y[np.array(place)]  # an array without axes, which takes a copy
    row[0] = 5
    return y


PROGRAMS = (written_through, written_twice, largest_emptied, in_a_loop)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_numbers_take_views(program: Callable[..., Any], library: str) -> None:
    compared(program, library)


def test_arrays_without_axes_take_copies() -> None:
    compared(of_an_array, "numpy")


@pytest.mark.filterwarnings("ignore::hagane.CompileNotice")
def compared(program: Callable[..., Any], library: str) -> None:
    x = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    compiled = hagane.compile(program, fullgraph=True)
    for place in (1, 2):
        given: tuple[Any, Any] = x, np.int64(place)
        if library == "torch":
            given = torch.from_numpy(x), torch.tensor(place)
        got, want = compiled(*given), program(*given)
        for a, b in zip(got if isinstance(got, tuple) else (got,),
                        want if isinstance(want, tuple) else (want,), strict=True):  # fmt: skip
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)


def rest_of_rows(x, place):
    first = x[:, 0].argmax()
    rest, before = x[first:], x[:first]
    empty = 1 if before.shape[0] == 0 else 2
    return rest.sum(0) / rest.shape[0], len(before) * 2, empty, x[first : first + 2].shape[0]


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_sizes_of_slices_that_begin_where_the_data_say(library: str) -> None:
    compared(rest_of_rows, library)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("y.shape = (2, 2)", "'shape' of numpy.ndarray"),
        ("y.flat = 3", "'flat' of numpy.ndarray"),
        ("y.dtype = np.int32", "'dtype' of numpy.ndarray"),
        ("y.put([0], 5)", "'numpy.ndarray.put' cannot be captured: it changes an array in place"),
        ("np.save('x.npy', y)", "'numpy.save' cannot be captured"),
    ],
)
def test_other_changes_are_refused(line: str, reason: str, tmp_path: Path) -> None:
    """They did nothing, without a word."""
    path = tmp_path / "changing.py"
    path.write_text(
        f"import numpy as np\n\n\ndef f(x):\n    y = x.copy()\n    {line}\n    return y\n"
    )
    space: dict[str, Any] = {"__name__": "changing"}
    exec(compile(path.read_text(), str(path), "exec"), space)
    with pytest.raises(CaptureError) as found:
        hagane.capture(space["f"], "float32[4]")
    assert reason in str(found.value)


def test_attributes_that_a_program_gives_a_tensor_are_known_to_the_checker() -> None:
    def tagged(x):
        y = 2 * x
        y.mask = torch.ones(3, 4)
        return y.mask

    report = hagane.check(tagged, "float32[b, 3]")
    assert not report.errors
    assert report.tensors[""].shape == (3, 4)
