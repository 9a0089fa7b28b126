"""Random programs over arrays and scalars return from their graphs what NumPy returns, or none."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hagane
from hagane.errors import CaptureError

from .random_arrays import ARGUMENTS, Writer


def loaded(seed: int, folder: Path) -> tuple[Any, str]:
    text = Writer(seed).program()
    path = folder / f"drawn_{seed}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"drawn_{seed}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.program, text


def drawn(length: int, seed: int) -> dict[str, Any]:
    source = np.random.default_rng(seed)
    made = {}
    for name, dtype in ARGUMENTS.items():
        kind = np.dtype(dtype).kind
        numbers = source.integers(0 if kind == "u" else -4, 6, length)
        if kind == "f":
            numbers = np.round(source.standard_normal(length) * 2, 1)
        made[name] = source.random(length) < 0.5 if kind == "b" else numbers.astype(dtype)
    return made


def refused(seed: int, folder: Path) -> bool:
    """Compare a program with its graph; return whether it is refused."""
    program, text = loaded(seed, folder)
    try:
        model = hagane.capture(
            program, **drawn(3, 0), dynamic={name: {0: "n"} for name in ARGUMENTS}
        )
    except CaptureError:
        return True
    session = hagane.InferenceSession(model)
    taken = {value.name for value in session.get_inputs()}
    for seed in range(4):
        inputs = drawn(1 + seed, seed)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                expected = program(**{name: array.copy() for name, array in inputs.items()})
            except (IndexError, OverflowError, TypeError, ValueError):  # for these data
                continue
        found = session.run(None, {name: inputs[name] for name in taken})
        for ours, theirs in zip(found, map(np.asarray, expected), strict=True):
            assert theirs.ndim == 0 or np.asarray(ours).dtype == theirs.dtype, text
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6, err_msg=text)
    return False


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_random_programs_over_arrays_agree_with_numpy(tmp_path: Path) -> None:
    assert sum(refused(seed, tmp_path) for seed in range(6)) < 5


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_many_random_programs_over_arrays_agree_with_numpy(tmp_path: Path) -> None:
    assert sum(refused(seed, tmp_path) for seed in range(300)) < 180
