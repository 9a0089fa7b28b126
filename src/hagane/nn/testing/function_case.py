"""A test of a function: its result, its gradient and its second gradient."""

from __future__ import annotations

import unittest
from collections.abc import Callable
from typing import Any

import numpy as np

from hagane.nn import gradient_check
from hagane.nn.autograd.devices import cpu
from hagane.nn.autograd.variable import Variable
from hagane.nn.testing.rows import CaseError, compare, drawn_like, row_of, with_gaps

# Points at which a test looks for a derivative.
_DRAWS = 20


class FunctionTestError(CaseError):
    """A function, or the test of it, that does not do what the test needs."""


class FunctionTestCase(unittest.TestCase):
    """Tests a function by its result, its gradient and its second gradient.

    Classes of tests define ``generate_inputs``, ``forward`` and ``forward_expected``;
    ``test_forward``, ``test_backward`` and ``test_double_backward`` come from them.

    Attributes:
        check_forward_options: Keyword arguments of ``assert_allclose`` of results.
        check_backward_options: Those of ``gradient_check.check_backward``.
        check_double_backward_options: Those of ``gradient_check.check_double_backward``.
        skip_forward_test: Whether ``test_forward`` checks nothing; likewise the other two.
        dodge_nondifferentiable: Whether inputs are drawn anew at points without a derivative.
        numerical_grad_dtype: The element type in which differences are computed.
        contiguous: ``"C"`` for arrays that lie in order; else they have gaps.
        test_name: The test that runs.
        backend_config: The settings of a device that it got.
    """

    check_forward_options: dict[str, Any]
    check_backward_options: dict[str, Any]
    check_double_backward_options: dict[str, Any]
    skip_forward_test = False
    skip_backward_test = False
    skip_double_backward_test = False
    dodge_nondifferentiable = False
    numerical_grad_dtype: Any = np.float64
    contiguous: str | None = None
    test_name: str | None = None
    backend_config: Any = None

    def __init__(self, *args: Any, **kwargs: Any):
        # Tests add to them, or put others in their place.
        self.check_forward_options = {}
        self.check_backward_options = {}
        self.check_double_backward_options = {}
        super().__init__(*args, **kwargs)

    def before_test(self, test_name: str) -> None:
        """Prepare a test; the name is that of the method."""

    def generate_inputs(self) -> tuple[Any, ...]:
        """Return the arrays of the inputs."""
        raise NotImplementedError(f"{type(self).__name__} lacks generate_inputs")

    def forward(self, inputs: tuple[Variable, ...], device: Any) -> tuple[Variable, ...]:
        """Return the outputs of the function, variables."""
        raise NotImplementedError(f"{type(self).__name__} lacks forward")

    def forward_expected(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arrays that ``forward`` should give."""
        raise NotImplementedError(f"{type(self).__name__} lacks forward_expected")

    def generate_grad_outputs(self, outputs_template: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return gradients of the outputs, arrays like these; drawn by default."""
        return tuple(map(drawn_like, outputs_template))

    def generate_grad_grad_inputs(self, inputs_template: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return gradients of the inputs' gradients, arrays like the inputs; drawn by default."""
        return tuple(map(drawn_like, inputs_template))

    def check_forward_outputs(
        self, outputs: tuple[Any, ...], expected_outputs: tuple[Any, ...]
    ) -> None:
        """Compare the arrays of the outputs with those expected; tests may check more."""
        compare("outputs", outputs, expected_outputs, FunctionTestError, self.check_forward_options)

    def test_forward(self, backend_config: Any = None) -> None:
        """Compare the outputs with those expected."""
        if self.skip_forward_test:
            raise unittest.SkipTest("skip_forward_test is set")
        self._begin("test_forward", backend_config)
        inputs = self._placed(self._inputs())
        copies = tuple(x.copy() for x in inputs)
        expected = self._arrays("forward_expected", self.forward_expected(copies))
        given = tuple(x.copy() for x in inputs)
        found = self._outputs(*inputs)
        for i, (x, before) in enumerate(zip(inputs, given, strict=True)):
            FunctionTestError.check(
                np.array_equal(x, before, equal_nan=x.dtype.kind in "fc"),
                f"forward changed its input {i} in place",
            )
        self.check_forward_outputs(tuple(y.array for y in found), expected)

    def test_backward(self, backend_config: Any = None) -> None:
        """Compare gradients with central differences."""
        if self.skip_backward_test:
            raise unittest.SkipTest("skip_backward_test is set")
        self._begin("test_backward", backend_config)

        def check(inputs: tuple[Any, ...]) -> None:
            gradients = self._gradients(inputs)
            with FunctionTestError.told("backward"):
                gradient_check.check_backward(
                    self._outputs, inputs, gradients, **self._options(self.check_backward_options)
                )

        self._at_a_point(check)

    def test_double_backward(self, backend_config: Any = None) -> None:
        """Compare second gradients with central differences of the first."""
        if self.skip_double_backward_test:
            raise unittest.SkipTest("skip_double_backward_test is set")
        self._begin("test_double_backward", backend_config)

        def check(inputs: tuple[Any, ...]) -> None:
            floating = tuple(x for x in inputs if x.dtype.kind == "f")
            gradients = self.generate_grad_grad_inputs(floating)
            row = iter(self._arrays("generate_grad_grad_inputs", gradients))
            grad_grads = tuple(next(row) if x.dtype.kind == "f" else None for x in inputs)
            grad_outputs = self._gradients(inputs)
            with FunctionTestError.told("double backward"):
                gradient_check.check_double_backward(
                    self._outputs,
                    inputs,
                    grad_outputs,
                    tuple(map(self._placed_one, grad_grads)),
                    **self._options(self.check_double_backward_options),
                )

        self._at_a_point(check)

    def _begin(self, name: str, backend_config: Any) -> None:
        self.test_name, self.backend_config = name, backend_config
        self.before_test(name)

    def _options(self, given: dict[str, Any]) -> dict[str, Any]:
        return {
            "dtype": self.numerical_grad_dtype,
            "detect_nondifferentiable": self.dodge_nondifferentiable,
            **given,
        }

    def _at_a_point(self, check: Callable[[tuple[Any, ...]], None]) -> None:
        """Check at drawn inputs; at others where there is no derivative and that is allowed."""
        for _ in range(_DRAWS if self.dodge_nondifferentiable else 1):
            try:
                return check(self._placed(self._inputs()))
            except gradient_check.NondifferentiableError:
                if not self.dodge_nondifferentiable:
                    raise
        raise FunctionTestError(f"generate_inputs: no derivative at {_DRAWS} drawn points")

    def _inputs(self) -> tuple[Any, ...]:
        return self._arrays("generate_inputs", self.generate_inputs())

    def _arrays(self, where: str, found: Any) -> tuple[Any, ...]:
        return row_of(where, found, np.ndarray, FunctionTestError)

    def _placed(self, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(map(self._placed_one, arrays))

    def _placed_one(self, array: Any) -> Any:
        return array if self.contiguous == "C" else with_gaps(array)

    def _outputs(self, *inputs: Any) -> tuple[Variable, ...]:
        variables = tuple(
            x if isinstance(x, Variable) else Variable(x, requires_grad=x.dtype.kind == "f")
            for x in inputs
        )
        return row_of("forward", self.forward(variables, cpu), Variable, FunctionTestError)

    def _gradients(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        outputs = self._outputs(*(x.copy() for x in inputs))
        gradients = self.generate_grad_outputs(tuple(y.array for y in outputs))
        return self._placed(self._arrays("generate_grad_outputs", gradients))
