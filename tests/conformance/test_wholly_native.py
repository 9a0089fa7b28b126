"""How many of ONNX's cases of single operators have a program without reference kernels."""

from __future__ import annotations

import warnings

import pytest

from tests.conformance.wholly_native import native_cases, share


@pytest.mark.long
def test_nearly_all_cases_run_wholly_native() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        native, meant = share(list(native_cases()))
    assert meant > 1750
    assert native >= 0.97 * meant, f"{native} of {meant}"
