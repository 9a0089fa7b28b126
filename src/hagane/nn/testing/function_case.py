"""A test of a function: its result, its gradient and its second gradient."""

from __future__ import annotations

import unittest
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hagane.nn import gradient_check
from hagane.nn.autograd.devices import cpu
from hagane.nn.autograd.variable import Variable
from hagane.nn.testing.arrays import assert_allclose


class FunctionTestError(AssertionError):
    """A function, or the test of it, that does not do what the test needs."""

    @classmethod
    def check(cls, holds: bool, message: str) -> None:
        """Raise the error unless a condition holds."""
        if not holds:
            raise cls(message)


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
        contiguous: ``"C"`` for arrays that lie in order; else they have gaps.
    """

    check_forward_options: dict[str, Any] | None = None
    check_backward_options: dict[str, Any] | None = None
    check_double_backward_options: dict[str, Any] | None = None
    skip_forward_test = False
    skip_backward_test = False
    skip_double_backward_test = False
    dodge_nondifferentiable = False
    contiguous: str | None = None

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
        return tuple(map(_drawn_like, outputs_template))

    def generate_grad_grad_inputs(self, inputs_template: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return gradients of the inputs' gradients, arrays like the inputs; drawn by default."""
        return tuple(map(_drawn_like, inputs_template))

    def test_forward(self, backend_config: Any = None) -> None:
        """Compare the outputs with those expected."""
        if self.skip_forward_test:
            raise unittest.SkipTest("skip_forward_test is set")
        self.before_test("test_forward")
        inputs = _row("generate_inputs", self.generate_inputs(), np.ndarray)
        copies = tuple(x.copy() for x in inputs)
        found = self._outputs(*self._placed(inputs))
        expected = _row("forward_expected", self.forward_expected(copies), np.ndarray)
        FunctionTestError.check(
            len(found) == len(expected),
            f"expected {len(expected)} outputs, as forward_expected gives, got {len(found)}",
        )
        for i, (y, wanted) in enumerate(zip(found, expected, strict=True)):
            FunctionTestError.check(
                (y.shape, y.dtype) == (wanted.shape, wanted.dtype),
                f"outputs[{i}]: expected {wanted.dtype} of {wanted.shape}, got {y.dtype} of "
                f"{y.shape}",
            )
            assert_allclose(y, wanted, **(self.check_forward_options or {}))

    def test_backward(self, backend_config: Any = None) -> None:
        """Compare gradients with central differences."""
        if self.skip_backward_test:
            raise unittest.SkipTest("skip_backward_test is set")
        self.before_test("test_backward")

        def check(inputs: tuple[Any, ...]) -> None:
            gradient_check.check_backward(
                self._outputs,
                inputs,
                self._gradients(inputs),
                **self._options(self.check_backward_options),
            )

        self._at_a_point(check)

    def test_double_backward(self, backend_config: Any = None) -> None:
        """Compare second gradients with central differences of the first."""
        if self.skip_double_backward_test:
            raise unittest.SkipTest("skip_double_backward_test is set")
        self.before_test("test_double_backward")

        def check(inputs: tuple[Any, ...]) -> None:
            floating = tuple(x for x in inputs if x.dtype.kind == "f")
            gradients = self.generate_grad_grad_inputs(floating)
            row = iter(_row("generate_grad_grad_inputs", gradients, np.ndarray))
            gradient_check.check_double_backward(
                self._outputs,
                inputs,
                self._gradients(inputs),
                tuple(next(row) if x.dtype.kind == "f" else None for x in inputs),
                **self._options(self.check_double_backward_options),
            )

        self._at_a_point(check)

    def _options(self, given: dict[str, Any] | None) -> dict[str, Any]:
        return {"detect_nondifferentiable": self.dodge_nondifferentiable, **(given or {})}

    def _at_a_point(self, check: Callable[[tuple[Any, ...]], None]) -> None:
        """Check at drawn inputs; at others where there is no derivative and that is allowed."""
        for _ in range(20 if self.dodge_nondifferentiable else 1):
            inputs = _row("generate_inputs", self.generate_inputs(), np.ndarray)
            try:
                return check(self._placed(inputs))
            except gradient_check.NondifferentiableError:
                if not self.dodge_nondifferentiable:
                    raise
        raise FunctionTestError("generate_inputs: there was no derivative at 20 drawn points")

    def _placed(self, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
        return arrays if self.contiguous == "C" else tuple(map(_with_gaps, arrays))

    def _outputs(self, *inputs: Any) -> tuple[Variable, ...]:
        variables = tuple(x if isinstance(x, Variable) else Variable(x) for x in inputs)
        return _row("forward", self.forward(variables, cpu), Variable)

    def _gradients(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        outputs = self._outputs(*(x.copy() for x in inputs))
        gradients = self.generate_grad_outputs(tuple(y.array for y in outputs))
        return _row("generate_grad_outputs", gradients, np.ndarray)


def _row(where: str, found: Any, kind: type) -> tuple[Any, ...]:
    FunctionTestError.check(
        isinstance(found, tuple) and all(one is None or isinstance(one, kind) for one in found),
        f"{where}: expected a tuple of {kind.__name__}, got {_kinds(found)}",
    )
    return tuple(found)


def _kinds(found: Any) -> str:
    if isinstance(found, Sequence) and not isinstance(found, str):
        return f"{type(found).__name__} of {', '.join(type(one).__name__ for one in found)}"
    return type(found).__name__


def _drawn_like(x: Any) -> Any:
    return np.random.uniform(-1, 1, x.shape).astype(x.dtype)


def _with_gaps(x: Any) -> Any:
    """Return an equal array whose elements do not lie side by side."""
    if x.size <= 1:
        return x
    wide = np.empty((*x.shape, 2), x.dtype)
    wide[..., 0] = x
    return wide[..., 0]
