"""Graphs of random programs of views and writes in place compute what the programs do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import hagane

from .random_views import NUMPY, TORCH, Kind, program
from .test_random_programs import loaded


def agree(kind: Kind, seeds: range, folder: Path) -> int:
    """Compare the programs of some seeds; return how many became graphs."""
    captured = 0
    for seed in seeds:
        text = program(kind, seed)
        function = loaded(text, str(folder))
        x = np.random.default_rng(seed).random((4, 4), np.float32)
        given: Any = torch.from_numpy(x.copy()) if kind is TORCH else x.copy()
        try:
            expected = [
                value.numpy() if isinstance(value, torch.Tensor) else np.array(value)
                for value in function(given)
            ]
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
