"""Methods of ufuncs and indexable objects of NumPy: types, element types, and values of graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hagane

from .test_random_programs import loaded

EXPRESSIONS = [
    "np.r_[x, y]", "np.c_[x, y]", "np.c_[x[0], y[0]]", "np.r_[x[0], 0, 1:3]", "np.r_[x[0], 2.5]",
    "np.c_[x[:, 0], x]", "np.add.reduce(x)", "np.add.reduce(x, axis=1, keepdims=True)",
    "np.multiply.reduce(n)", "np.maximum.reduce(x, 1)", "np.logical_or.reduce(x > 0)",
    "np.add.accumulate(x, axis=1)", "np.multiply.accumulate(n)", "np.add.outer(x[0], n[0])",
    "np.subtract.outer(x, y[0])", "np.greater.outer(n[0], n[1])", "np.trapezoid(x)",
    "np.trapezoid(x, axis=0)", "np.trapezoid(x, dx=0.5)", "np.trapezoid(y, n[0].cumsum())",
    "np.trapezoid(y, x, axis=0)", "x[np.s_[1:, 0]]", "x[np.index_exp[..., 1]]",
    "(x > 0) ** 2", "np.cov(x[:1])", "n ** 2", "x ** 2",
]  # fmt: skip


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_graphs_compute_what_numpy_does(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAGANE_ENGINE", "reference")
    source = f"import numpy as np\n\n\ndef program(x, y, n):\n    return {text}\n"
    function: Any = loaded(source, str(tmp_path))
    draw = np.random.default_rng(1)
    x, y = draw.normal(size=(2, 3, 4)).astype(np.float32)
    n = draw.integers(1, 5, (3, 4)).astype(np.int32)
    expected = np.asarray(function(x, y, n))
    report = hagane.check(function, x, y, n)
    assert (report.errors, report.unknown) == ([], [])
    assert str(report.returned) == (
        f"numpy.ndarray(dtype={expected.dtype}, shape={expected.shape})"
    )
    session = hagane.InferenceSession(hagane.capture(function, x, y, n))
    found = session.run(None, {"x": x, "y": y, "n": n})
    np.testing.assert_allclose(found[0], expected, rtol=1e-5, strict=True)
