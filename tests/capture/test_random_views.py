"""Graphs of random programs of views and writes in place compute what the programs do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import hagane

from .random_views import NUMPY, TORCH, Kind, looped, program
from .test_random_programs import loaded


def as_array(value: Any) -> np.ndarray:
    return value.numpy() if isinstance(value, torch.Tensor) else np.array(value)


def agree(kind: Kind, seeds: range, folder: Path) -> int:
    """Compare the programs of some seeds; return how many became graphs."""
    captured = 0
    for seed in seeds:
        text = program(kind, seed)
        function = loaded(text, str(folder))
        x = np.random.default_rng(seed).random((4, 4), np.float32)
        given: Any = torch.from_numpy(x.copy()) if kind is TORCH else x.copy()
        try:
            expected = [as_array(value) for value in function(given)]
        except (RuntimeError, ValueError, IndexError, TypeError, AttributeError, UserWarning):
            continue  # no program: of shapes that do not fit
        try:
            model = hagane.capture(function, "float32[4, 4]")
        except hagane.errors.CaptureError:
            continue
        captured += 1
        found = hagane.InferenceSession(model).run(None, {"x": x})
        for position, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
            message = f"result {position} of seed {seed}\n{text}"
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, err_msg=message, strict=True)
    return captured


@pytest.mark.parametrize("kind", [TORCH, NUMPY], ids=["torch", "numpy"])
def test_random_programs_of_views_agree(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAGANE_ENGINE", "reference")
    assert agree(kind, range(40), tmp_path) >= 10


@pytest.mark.long
@pytest.mark.parametrize("kind", [TORCH, NUMPY], ids=["torch", "numpy"])
def test_many_random_programs_of_views_agree(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAGANE_ENGINE", "reference")
    assert agree(kind, range(40, 2000), tmp_path) >= 500


def loops_agree(kind: Kind, seeds: range, folder: Path) -> int:
    """Compare the looping programs of some seeds; return how many became graphs."""
    captured = 0
    for seed in seeds:
        text = looped(kind, seed)
        function = loaded(text, str(folder))
        draw = np.random.default_rng(seed)
        cases = []
        for length in (1, 4, 2):
            x = draw.integers(-3, 4, (4, 4)).astype(np.float32)
            t = draw.standard_normal(length).astype(np.float32)
            given = [torch.from_numpy(v.copy()) if kind is TORCH else v.copy() for v in (x, t)]
            try:
                cases.append((x, t, [as_array(value) for value in function(*given)]))
            except (RuntimeError, ValueError, IndexError, TypeError, AttributeError, UserWarning):
                continue  # no program: of shapes that do not fit
        try:
            model = hagane.capture(function, "float32[4, 4]", "float32[n]") if cases else None
        except hagane.errors.CaptureError:
            continue
        if model is None:
            continue
        captured += 1
        session = hagane.InferenceSession(model)
        for x, t, expected in cases:
            found = session.run(None, {"x": x, "t": t})
            for position, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
                message = f"result {position} of seed {seed}, {len(t)} turns\n{text}"
                np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4, err_msg=message)
    return captured


@pytest.mark.parametrize("kind", [TORCH, NUMPY], ids=["torch", "numpy"])
def test_random_loops_over_views_agree(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAGANE_ENGINE", "reference")
    assert loops_agree(kind, range(15), tmp_path) >= 3


@pytest.mark.long
@pytest.mark.parametrize("kind", [TORCH, NUMPY], ids=["torch", "numpy"])
def test_many_random_loops_over_views_agree(kind: Kind, tmp_path: Path) -> None:
    assert loops_agree(kind, range(15, 500), tmp_path) >= 100
