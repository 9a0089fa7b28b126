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


@testing.fix_random()
@testing.unary_math_function_unittest(functions.sin, label_expected="sin")
class TestSine(unittest.TestCase):
    pass


class _Affine:
    param_names = ("W", "b")

    def generate_params(self):
        return [numpy.random.uniform(-1, 1, size).astype("f") for size in ((3, 2), (3,))]

    def generate_inputs(self):
        return numpy.random.uniform(-1, 1, (4, 2)).astype("f"),

    def create_link(self, initializers):
        W, b = initializers
        return chainer.links.Linear(None, 3, initialW=W, initial_bias=b)


@testing.fix_random()
@testing.inject_backend_tests(None, [{}])
class TestLinear(_Affine, testing.LinkTestCase):
    dodge_nondifferentiable = True

    def setUp(self):
        self.check_forward_options.update({"atol": 1e-4})
        self.check_backward_options.update({"atol": 1e-4})

    def forward(self, link, inputs, device):
        return functions.relu(link(inputs[0])),

    def forward_expected(self, link, inputs):
        return numpy.maximum(inputs[0].dot(link.W.array.T) + link.b.array, 0),


@testing.fix_random()
@testing.inject_backend_tests(None, [{}])
class TestInitializers(_Affine, testing.LinkInitializersTestCase):
    def get_initializers(self):
        return [chainer.initializers.Constant(2), 1], [testing.InitializerArgument(None, 0), 3]


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
    # 12 of squares, 24 of sines, three of a link, two retries, one value, one gradient; a GPU
    # twice, a second gradient.
    assert "2 failed, 43 passed, 3 skipped" in done.stdout, done.stdout
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
    with pytest.raises(NotImplementedError, match="LinkTestCase lacks generate_params"):
        testing.LinkTestCase("test_backward").debug()


class _Product(testing.LinkTestCase):
    """Tests a link that scales by a parameter; subclasses get something wrong."""

    param_names: Any = ("W",)

    def generate_params(self) -> Any:
        return [np.arange(1, 4, dtype="f")]

    def generate_inputs(self) -> Any:
        return (np.ones((2, 3), "f"),)

    def create_link(self, initializers: Any) -> Any:
        return _scale(initializers[0])

    def forward_expected(self, link: Any, inputs: Any) -> Any:
        return (inputs[0] * link.W.array,)


def _scale(values: Any) -> Any:
    link = L.Scale(W_shape=(3,))
    link.W.array[...] = values
    return link


def _fails(case: type[unittest.TestCase], name: str) -> str:
    with pytest.raises(AssertionError) as raised:
        case(name).debug()
    return f"{type(raised.value).__name__}: {raised.value}"


def test_links_that_are_right_pass() -> None:
    _Product("test_forward").debug()
    _Product("test_backward").debug()


def test_wrong_links_and_wrong_tests_of_links_are_named() -> None:
    class Otherwise(_Product):
        def forward_expected(self, link: Any, inputs: Any) -> Any:
            return (inputs[0] * link.W.array + 1,)

    class Wide(_Product):
        def forward_expected(self, link: Any, inputs: Any) -> Any:
            return (inputs[0].astype("d") * link.W.array,)

    class Detached(_Product):
        def forward(self, link: Any, inputs: Any, device: Any) -> Any:
            return (F.scale(inputs[0], link.W.array),)

    class Nameless(_Product):
        param_names = ("W", "gamma")

    class Bare(_Product):
        def forward(self, link: Any, inputs: Any, device: Any) -> Any:
            return link(*inputs)

    class Unlike(testing.LinkInitializersTestCase):
        param_names = ("W",)
        generate_params = _Product.generate_params
        generate_inputs = _Product.generate_inputs

        def create_link(self, initializers: Any) -> Any:
            return _scale(7)

        def get_initializers(self) -> Any:
            return ([2],)

    assert "LinkTestError: outputs[0]: Not equal" in " ".join(
        _fails(Otherwise, "test_forward").split()
    )
    assert "expected float64 of (2, 3), got float32 of (2, 3)" in _fails(Wide, "test_forward")
    assert "check_backward failed" in _fails(Detached, "test_backward")
    assert "param_names: Scale has no parameter 'gamma'" in _fails(Nameless, "test_backward")
    assert "forward: expected a tuple of Variable, got Variable" in _fails(Bare, "test_forward")
    assert "LinkTestError: W[0]" in _fails(Unlike, "test_initializers")
    with pytest.raises(ValueError, match="InitializerArgument: expected an initializer, got None"):
        testing.InitializerArgument(3, None)


def test_a_function_that_changes_its_input_is_named() -> None:
    class Case(testing.FunctionTestCase):
        def generate_inputs(self) -> Any:
            return (np.ones(3, "f"),)

        def forward(self, inputs: Any, device: Any) -> Any:
            inputs[0].array[0] = 2
            return (F.identity(inputs[0]),)

        def forward_expected(self, inputs: Any) -> Any:
            return (np.array([2, 1, 1], "f"),)

    assert "forward changed its input 0 in place" in _fails(Case, "test_forward")


def test_tests_of_functions_of_one_array_say_what_they_need() -> None:
    def doubled(x: Any) -> Any:
        return F.sin(x) * 2

    cases = testing.unary_math_function_unittest(doubled, np.sin, label_expected="sin")
    with pytest.raises(ValueError, match="NumPy has no function 'doubled'; expected func_expected"):
        testing.unary_math_function_unittest(doubled)
    with pytest.raises(TypeError, match=r"expected a unittest\.TestCase, got int"):
        cases(int)


def test_a_trainer_with_a_stand_in_of_an_updater_counts() -> None:
    seen: list[Any] = []

    def note(trainer: Any) -> None:
        updater = trainer.updater
        seen.append((updater.iteration, updater.epoch, updater.epoch_detail, updater.is_new_epoch))

    trainer = testing.get_trainer_with_mock_updater((4, "iteration"), iter_per_epoch=2)
    trainer.extend(note, name="note", trigger=(1, "iteration"))
    trainer.run()
    assert seen == [(1, 0, 0.5, False), (2, 1, 1.0, True), (3, 1, 1.5, False), (4, 2, 2.0, True)]
    assert trainer.updater.update_core.call_count == 4
