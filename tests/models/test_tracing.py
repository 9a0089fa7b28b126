"""What the tracer of models records, on NumPy."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.models.tracing import TracedValue, line_of_error, trace_values


def load(folder: Path, text: str) -> ModuleType:
    """Return the module of ``text``, from a file."""
    path = folder / "traced.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("traced", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_assignments_tuples_and_returns_are_recorded_with_their_first_line(tmp_path):
    module = load(
        tmp_path,
        "def f(x):\n"
        "    h = x.reshape(\n"
        "        -1,\n"
        "        2)\n"
        "    a, (b, *c) = h, (h[0], 1, h)\n"
        "    h += 1\n"
        "    n: int = 3\n"
        "    return (\n"
        "        a.astype('int32'), {'b': b})\n",
    )
    assert trace_values(module.__file__, module.f, np.zeros((2, 3, 2), np.float32)) == [
        TracedValue(2, "h", (6, 2), "float32"),
        TracedValue(5, "a", (6, 2), "float32"),
        TracedValue(5, "b", (2,), "float32"),
        TracedValue(5, "c[1]", (6, 2), "float32"),
        TracedValue(6, "h", (6, 2), "float32"),
        TracedValue(8, "return[0]", (6, 2), "int32"),
        TracedValue(8, "return[1]['b']", (2,), "float32"),
    ]


def test_a_loop_gives_each_distinct_value_once_and_keeps_its_variable(tmp_path):
    module = load(
        tmp_path,
        "def g(x):\n"
        "    return x[:, None]\n"
        "def f(xs):\n"
        "    h = xs[0]\n"
        "    for x in xs:\n"
        "        x = g(x)\n"
        "    while h.shape[0] > 2:\n"
        "        h = h[2:]\n"
        "    pairs = [x for x in xs]\n",
    )
    values = trace_values(module.__file__, module.f, [np.zeros(3), np.zeros(3), np.zeros(5)])
    assert [(value.line, value.name, value.shape) for value in values] == [
        (4, "h", (3,)),
        (5, "x", (3,)),
        (2, "return", (3, 1)),
        (6, "x", (3, 1)),
        (5, "x", (5,)),
        (2, "return", (5, 1)),
        (6, "x", (5, 1)),
        (8, "h", (1,)),
        (9, "pairs[0]", (3,)),
        (9, "pairs[1]", (3,)),
        (9, "pairs[2]", (5,)),
    ]


def test_arguments_may_have_the_names_of_the_parameters_of_the_tracer(tmp_path):
    module = load(tmp_path, "def f(source, function):\n    return source + function\n")
    inputs = {"source": np.zeros(2), "function": np.ones(2)}
    (value,) = trace_values(module.__file__, module.f, **inputs)
    assert (value.name, value.shape) == ("return", (2,))


def test_a_statement_that_raises_assigns_nothing(tmp_path):
    module = load(
        tmp_path,
        "def f(x):\n"
        "    h = x\n"
        "    try:\n"
        "        h = x.reshape(5)\n"
        "    except ValueError:\n"
        "        y = x[0]\n",
    )
    assert trace_values(module.__file__, module.f, np.zeros((2, 3), bool)) == [
        TracedValue(2, "h", (2, 3), "bool"),
        TracedValue(6, "y", (3,), "bool"),
    ]


def test_the_line_of_an_error_is_that_of_the_innermost_frame_of_the_file(tmp_path):
    module = load(tmp_path, "def g(x):\n    return x.reshape(5)\ndef f(x):\n    return g(x)\n")
    with pytest.raises(ValueError, match="reshape") as caught:
        trace_values(module.__file__, module.f, np.zeros(3))
    assert line_of_error(module.__file__, caught.value) == 2
    assert line_of_error(__file__, caught.value) is not None
    assert line_of_error("elsewhere.py", caught.value) is None
