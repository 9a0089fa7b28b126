"""What NumPy returns as a scalar is one to isinstance, type and np.isscalar; arrays are none."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hagane

# v: three float32; a: an array without axes; s: a scalar.
EXPRESSIONS = [
    "s", "a", "s.astype('f8')", "a.astype('f8')", "s.copy()", "a.copy()", "np.copy(s)",
    "s.squeeze()", "a.squeeze()", "np.squeeze(s)", "s.reshape(())", "np.zeros_like(s)",
    "np.asarray(s)", "v.max()", "v.sum().astype(np.float64)", "(v > 0).sum()", "v.argmax()",
    "np.mean(v)", "a + 1", "s > 0", "float(s)", "s.item()", "round(s)", "np.allclose(s, s)",
    "v[1]", "v[1, ...]", "v.tolist()[0]", "v",
]  # fmt: skip
QUESTIONS = [
    "isinstance(r, np.ndarray)", "isinstance(r, np.generic)", "isinstance(r, float)",
    "isinstance(r, (int, np.integer))", "np.isscalar(r)", "type(r) is np.ndarray",
    "isinstance(r, np.float64)", "isinstance(r, np.floating)", "isinstance(r, bool)",
    "isinstance(r, np.bool_)",
]  # fmt: skip


@pytest.mark.parametrize("half", [0, 1])
def test_questions_about_results_of_numpy_are_answered_as_python_does(
    half: int, tmp_path: Path
) -> None:
    chosen = EXPRESSIONS[half::2]
    lines = [f"    r = {text}\n    found.append(({', '.join(QUESTIONS)}))\n" for text in chosen]
    source = "import numpy as np\n\n\ndef asked(v, a):\n    s, found = v[0], []\n"
    file = tmp_path / f"asked_{half}.py"
    file.write_text(source + "".join(lines) + "    return found\n")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    v, a = np.array([1.5, 2, 3], np.float32), np.array(1.5, np.float32)
    expected = module.asked(v, a)
    found = hagane.compile(module.asked, fullgraph=True)(v, a)
    told = {
        text: ([bool(x) for x in ours], list(theirs))
        for text, ours, theirs in zip(chosen, found, expected, strict=True)
    }
    assert {text: pair for text, pair in told.items() if pair[0] != pair[1]} == {}
