"""Gradients of operators that treat each element by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ops.gradient.differences import check_operator

RNG = np.random.default_rng(7)


def draw(*shape: int, low: float = -2, high: float = 2) -> np.ndarray:
    return np.asarray(RNG.uniform(low, high, shape))


UNARY: list[tuple[str, float, float]] = [
    ("Abs", -2, 2),
    ("Acos", -0.9, 0.9),
    ("Acosh", 1.2, 3),
    ("Asin", -0.9, 0.9),
    ("Asinh", -2, 2),
    ("Atan", -2, 2),
    ("Atanh", -0.9, 0.9),
    ("Ceil", -3, 3),
    ("Cos", -2, 2),
    ("Cosh", -2, 2),
    ("Erf", -2, 2),
    ("Exp", -2, 2),
    ("Floor", -3, 3),
    ("HardSwish", -4, 4),
    ("Identity", -2, 2),
    ("Log", 0.3, 3),
    ("Mish", -3, 3),
    ("Neg", -2, 2),
    ("Reciprocal", 0.5, 2),
    ("Relu", -2, 2),
    ("Round", -3, 3),
    ("Sigmoid", -3, 3),
    ("Sign", -2, 2),
    ("Sin", -2, 2),
    ("Sinh", -2, 2),
    ("Softplus", -3, 3),
    ("Softsign", -3, 3),
    ("Sqrt", 0.3, 3),
    ("Tan", -1, 1),
    ("Tanh", -2, 2),
]


@pytest.mark.parametrize(("name", "low", "high"), UNARY, ids=lambda item: str(item))
def test_functions_of_one_number(name: str, low: float, high: float) -> None:
    check_operator(name, draw(3, 4, low=low, high=high))
    check_operator(name, draw(low=low, high=high))
    check_operator(name, draw(0, 2, low=low, high=high))


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("Celu", {"alpha": 1.7}),
        ("Celu", {}),
        ("Elu", {"alpha": 0.3}),
        ("Gelu", {}),
        ("Gelu", {"approximate": "tanh"}),
        ("HardSigmoid", {"alpha": 0.6, "beta": 0.1}),
        ("LeakyRelu", {"alpha": 0.2}),
        ("Selu", {}),
        ("Selu", {"alpha": 0.7, "gamma": 2.0}),
        ("Shrink", {"bias": 0.3, "lambd": 0.9}),
        ("Swish", {"alpha": 1.4}),
        ("ThresholdedRelu", {"alpha": 0.8}),
        ("Cast", {"to": 11}),
    ],
    ids=lambda item: str(item),
)
def test_functions_with_attributes(name: str, attributes: dict[str, Any]) -> None:
    check_operator(name, draw(3, 5), attributes=attributes)


BROADCASTS = [((3, 4), (3, 4)), ((3, 4), (4,)), ((), (2, 3)), ((2, 1, 3), (4, 1)), ((0, 3), (1, 3))]


@pytest.mark.parametrize("shapes", BROADCASTS, ids=str)
@pytest.mark.parametrize("name", ["Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Mean", "Sum"])
def test_operands_that_broadcast(name: str, shapes: Any) -> None:
    check_operator(name, *(draw(*shape, low=0.5, high=2) for shape in shapes))


def test_remainders_follow_the_whole_quotient() -> None:
    for fmod in (0, 1):
        x, y = draw(3, 4, low=-7, high=7), draw(4, low=1.1, high=1.9)
        check_operator("Mod", x, y if fmod == 0 else -y, attributes={"fmod": 1})


def test_many_operands() -> None:
    for name in ("Max", "Min", "Mean", "Sum"):
        check_operator(name, draw(2, 3), draw(3), draw(2, 1))
        check_operator(name, draw(2, 3))


def test_equal_operands_share_the_gradient_of_the_extreme() -> None:
    from hagane.ops.builder import op
    from hagane.ops.gradient import pull_back

    x = np.array([1.0, 2.0, 3.0])
    _, pull = pull_back(lambda a, b: [op("Max", a, b)], x, np.array([1.0, 5.0, 0.0]))
    a, b = pull([np.ones(3)])
    assert a.tolist() == [0.5, 0, 1]
    assert b.tolist() == [0.5, 1, 0]


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 0.5, -1.5])
def test_powers_of_known_exponents(exponent: float) -> None:
    check_operator("Pow", draw(3, 2, low=0.5, high=2), np.array(exponent))
    check_operator("Pow", draw(3, 2, low=0.5, high=2), np.array([exponent] * 2))


def test_powers_of_whole_exponents_and_zero() -> None:
    check_operator("Pow", draw(5), np.array([0, 1, 2, 3, 4]), wanted=[0])
    from hagane.ops.builder import op
    from hagane.ops.gradient import pull_back

    _, pull = pull_back(lambda a, b: [op("Pow", a, b)], np.zeros(3), np.array([0.0, 1.0, 2.0]))
    of_base, of_exponent = pull([np.ones(3)])
    assert of_base.tolist() == [0, 1, 0]
    assert of_exponent.tolist() == [0, 0, 0]


def test_bounds() -> None:
    for bounds in ([], [np.array(-0.5)], [np.array(-0.5), np.array(0.7)], [None, np.array(0.7)]):
        check_operator("Clip", draw(4, 5), *bounds)
    check_operator("Clip", draw(4, 5), np.array(0.6), np.array(-0.4))


def test_choices() -> None:
    condition = RNG.random((3, 1)) > 0.5
    check_operator("Where", condition, draw(3, 4), draw(4))
    check_operator("Where", condition, draw(2, 1, 1), draw())


def test_a_value_that_is_given_twice_has_two_gradients() -> None:
    from hagane.ops.builder import op
    from hagane.ops.gradient import pull_back
    from tests.ops.gradient.differences import check

    x = draw(2, 3)
    check(lambda x: [op("SwiGLU", x, x)], x)
    _, pull = pull_back(lambda a, b: [op("Sub", a, b)], x, x)
    a, b = pull([np.ones((2, 3))])
    assert (a == 1).all()
    assert (b == -1).all()


def test_slopes() -> None:
    check_operator("PRelu", draw(2, 3, 4), draw(3, 1))
    check_operator("PRelu", draw(2, 3, 4), draw(1))
    check_operator("SwiGLU", draw(2, 3), draw(2, 3), attributes={"alpha": 1.3})
