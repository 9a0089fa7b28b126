"""``hagane.testing``: what tests of Chainer's programs are written with."""

from __future__ import annotations

import subprocess
import sys
import unittest
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812
from hagane import testing

# A file of tests as they are written for Chainer; two of them fail on purpose.
FILE = """
import unittest
import numpy
import chainer
from chainer import functions, testing
from chainer.testing import attr, condition


@testing.parameterize(*testing.product({"shape": [(2, 3), (4,)], "dtype": ["f", "d"]}))
@testing.inject_backend_tests(None, [{}, {"use_cuda": True}])
@testing.fix_random()
class TestSquare(testing.FunctionTestCase):
    def setUp(self):
        if self.dtype == "f":
            self.check_backward_options = {"rtol": 1e-2, "atol": 1e-2}
            self.check_double_backward_options = {"rtol": 1e-2, "atol": 1e-2}

    def generate_inputs(self):
        return numpy.random.uniform(-1, 1, self.shape).astype(self.dtype),

    def forward(self, inputs, device):
        return functions.square(inputs[0]),

    def forward_expected(self, inputs):
        return inputs[0] ** 2,


@testing.parameterize({"value": 1}, {"value": 2})
class TestValue(unittest.TestCase):
    def test_one(self):
        self.assertEqual(self.value, 1)

    @attr.gpu
    def test_gpu(self):
        raise AssertionError

    @condition.retry(3)
    def test_retry(self):
        testing.assert_allclose(chainer.Variable(numpy.ones(2, "f")), numpy.ones(2))


class TestWrong(testing.FunctionTestCase):
    skip_double_backward_test = True

    def generate_inputs(self):
        return numpy.ones(2),

    def forward(self, inputs, device):
        return functions.exp(inputs[0]),

    def forward_expected(self, inputs):
        return numpy.exp(inputs[0]).astype("f"),


testing.run_module(__name__, __file__)
"""


def test_a_file_of_tests_for_chainer_runs_with_its_tables(tmp_path: Path) -> None:
    script = tmp_path / "test_square.py"
    script.write_text(FILE)
    code = (
        "import sys, pytest; from hagane.nn.aliasing import install; install();"
        "sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', sys.argv[1]]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(script)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 1, done.stderr
    # 12 of squares, two retries, one value, one gradient; a GPU twice, a second gradient.
    assert "2 failed, 16 passed, 3 skipped" in done.stdout
    assert "Parameters: value=2" in done.stdout
    assert "outputs[0]: expected float32 of (2,), got float64 of (2,)" in done.stdout


def test_rows_of_tables_are_put_together() -> None:
    assert testing.product({"b": [1, 2], "a": "xy"}) == [
        {"a": "x", "b": 1},
        {"a": "x", "b": 2},
        {"a": "y", "b": 1},
        {"a": "y", "b": 2},
    ]
    assert testing.product([[{"a": 1}], [{"b": 2}, {"b": 3, "c": 4}]]) == [
        {"a": 1, "b": 2},
        {"a": 1, "b": 3, "c": 4},
    ]
    assert testing.from_pytest_parameterize("a, b", [(1, 2)]) == [{"a": 1, "b": 2}]
    with pytest.raises(TypeError, match="expected a dict of lists or lists of dicts"):
        testing.product(3)  # type: ignore[arg-type]


def test_drawn_numbers_are_fixed_and_go_on_as_before() -> None:
    seen: list[float] = []

    class Case(unittest.TestCase):
        def test_draws(self) -> None:
            seen.append(float(np.random.rand()))

    fixed = testing.fix_random()(Case)
    np.random.seed(3)
    expected = float(np.random.rand())
    np.random.seed(3)
    for _ in range(2):
        fixed("test_draws").debug()
    assert seen[0] == seen[1]
    assert np.random.rand() == expected


def test_repeated_tests_count_what_passed() -> None:
    class Case(unittest.TestCase):
        runs = 0

        @testing.condition.repeat_with_success_at_least(4, 2)
        def test_every_second(self) -> None:
            Case.runs += 1
            assert Case.runs % 2 == 0

        @testing.condition.repeat(3)
        def test_never(self) -> None:
            Case.runs += 1
            raise AssertionError("never")

    Case("test_every_second").debug()
    assert Case.runs == 4
    Case.runs = 0
    with pytest.raises(AssertionError, match="0 of 1 runs passed, expected 3 of 3: never"):
        Case("test_never").debug()
    assert Case.runs == 1


def test_matrices_have_the_singular_values_that_were_asked_for() -> None:
    np.random.seed(0)
    found = testing.generate_matrix((3, 4, 2), singular_values=[3.0, 0.5])
    np.testing.assert_allclose(np.linalg.svd(found, compute_uv=False), [[3, 0.5]] * 3)
    with pytest.raises(ValueError, match="expected singular_values not to be negative"):
        testing.generate_matrix((2, 2), singular_values=-1)
    with pytest.raises(TypeError, match="expected a floating or complex dtype, got int64"):
        testing.generate_matrix((2, 2), np.int64, singular_values=1)


def test_links_are_saved_and_loaded() -> None:
    one, other = L.Linear(3, 2), L.Linear(3, 2)
    testing.save_and_load_npz(one, other)
    np.testing.assert_array_equal(one.W.array, other.W.array)


def test_requirements_warnings_and_replaced_names() -> None:
    def skips(decorate: Any) -> bool:
        class Case(unittest.TestCase):
            def test(self) -> None:
                """Pass."""

        return bool(getattr(decorate(Case), "__unittest_skip__", False))

    assert not skips(testing.with_requires("numpy>=1.5", "numpy<99"))
    assert skips(testing.with_requires("numpy<1.5"))
    assert skips(testing.with_requires("no-such-package"))
    assert skips(testing.without_requires("numpy"))
    with pytest.raises(ValueError, match="expected a package and bounds, got '>=3'"):
        testing.with_requires(">=3")
    with testing.assert_warns(UserWarning):
        warnings.warn("told", UserWarning, stacklevel=1)
    with (
        pytest.raises(AssertionError, match="a warning of UserWarning, got none"),
        testing.assert_warns(UserWarning),
    ):
        pass
    with testing.patch("hagane.functions.relu") as replaced:
        F.relu(np.ones(2, "f"))
    assert replaced.call_count == 1


def test_gpus_are_refused_and_a_missing_method_is_named() -> None:
    with pytest.raises(ValueError, match="use_cuda: hagane computes on the CPU"):
        testing.BackendConfig({"use_cuda": True})
    with pytest.raises(NotImplementedError, match="FunctionTestCase lacks generate_inputs"):
        testing.FunctionTestCase("test_forward").debug()
