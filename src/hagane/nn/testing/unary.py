"""Tests of a function of one array, element by element."""

from __future__ import annotations

import unittest
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from hagane.nn import gradient_check
from hagane.nn.autograd.variable import Variable
from hagane.nn.testing.arrays import assert_allclose
from hagane.nn.testing.rows import drawn_like
from hagane.nn.testing.tables import parameterize, product

# Tolerances of float16, in which gradients are compared over long differences, and of others.
_HALF, _HALF_STEP, _OTHERS = float(np.finfo(np.float16).eps), 2.0**-4, 1e-4


def unary_math_function_unittest(
    func: Callable[..., Any],
    func_expected: Callable[..., Any] | None = None,
    label_expected: str | None = None,
    make_data: Callable[..., Any] | None = None,
    is_linear: bool | None = None,
    forward_options: dict[str, Any] | None = None,
    backward_options: dict[str, Any] | None = None,
    double_backward_options: dict[str, Any] | None = None,
) -> Callable[[type], Any]:
    """Return a decorator that gives a class tests of a function, for shapes and element types.

    Args:
        func: From a variable to one of its type and sizes, element by element.
        func_expected: From an array and ``dtype`` to what it should give; by default NumPy's
            function of that name.
        label_expected: The label of the function in hooks and drawings; not tested if None.
        make_data: From shape and element type to an input, a gradient of the output, and one of the
            input's gradient; by default drawn between -1 and 1.
        is_linear: Whether second derivatives are those of its square; deprecated.
        forward_options: Keyword arguments of ``assert_allclose``.
        backward_options: Those of ``gradient_check.check_backward``.
        double_backward_options: Those of ``gradient_check.check_double_backward``.

    Raises:
        ValueError: NumPy has no function of that name.
    """
    if func_expected is None:
        func_expected = getattr(np, func.__name__, None)
        if func_expected is None:
            raise ValueError(
                f"unary_math_function_unittest: NumPy has no function '{func.__name__}'; "
                "expected func_expected"
            )
    if is_linear is not None:
        warnings.warn("is_linear option is deprecated", DeprecationWarning, stacklevel=2)

    def set_up(self: Any) -> None:
        make = make_data or _drawn
        self.x, self.gy, self.ggx = make(self.shape, self.dtype)
        half = self.dtype == np.float16
        bound = _HALF if half else _OTHERS
        self.forward_options = {"atol": bound, "rtol": bound, **(forward_options or {})}
        options: dict[str, Any] = {"dtype": np.float64, "atol": _OTHERS, "rtol": _OTHERS}
        if half:
            options |= dict.fromkeys(("eps", "atol", "rtol"), _HALF_STEP)
        self.backward_options = options | (backward_options or {})
        self.double_backward_options = options | (double_backward_options or {})

    def test_forward_cpu(self: Any) -> None:
        y = func(Variable(self.x))
        assert y.dtype == self.x.dtype, f"expected {self.x.dtype}, got {y.dtype}"
        expected = func_expected(self.x, dtype=self.x.dtype)
        assert_allclose(y, expected, **self.forward_options)

    def test_backward_cpu(self: Any) -> None:
        gradient_check.check_backward(func, self.x, self.gy, **self.backward_options)

    def test_double_backward_cpu(self: Any) -> None:
        def squared(x: Any) -> Any:
            y = func(x)
            return y * y

        gradient_check.check_double_backward(
            squared if is_linear else func,
            self.x,
            self.gy,
            self.ggx,
            **self.double_backward_options,
        )

    def test_label(self: Any) -> None:
        found = func(Variable(self.x)).creator.label
        assert found == label_expected, f"expected the label {label_expected}, got {found}"

    tests = [test_forward_cpu, test_backward_cpu, test_double_backward_cpu]
    if label_expected is not None:
        tests.append(test_label)

    def decorate(cls: type) -> Any:
        if not issubclass(cls, unittest.TestCase):
            raise TypeError(
                f"unary_math_function_unittest: expected a unittest.TestCase, got {cls.__name__}"
            )
        cls.setUp = set_up  # type: ignore[method-assign]
        for each in tests:
            setattr(cls, each.__name__, each)
        types = [np.float16, np.float32, np.float64]
        return parameterize(*product({"shape": [(3, 2), ()], "dtype": types}))(cls)

    return decorate


def _drawn(shape: tuple[int, ...], dtype: Any) -> tuple[Any, Any, Any]:
    like = np.empty(shape, dtype)
    return drawn_like(like), drawn_like(like), drawn_like(like)
