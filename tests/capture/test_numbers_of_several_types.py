"""Numbers that are Python's on one path and a scalar of NumPy on another, as the data decide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import hagane
from hagane.errors import CaptureError

RNG = np.random.default_rng(0)
INPUTS = [np.round(RNG.standard_normal(4) * 3, 1) for _ in range(4)]
INPUTS += [np.full(4, -0.7), np.full(4, 0.3)]


def bounded(x: Any, y: Any) -> Any:
    return y * min(0.5, x.sum())


def best_of_a_loop(x: Any, y: Any) -> Any:
    best = 0.0
    for value in x:
        if value > best:
            best = value
    return y * best


def chosen_integer(x: Any, y: Any) -> Any:
    place = 1
    if x[0] > 0:
        place = (x > 0).sum()
    return y * place


def derived(x: Any, y: Any) -> Any:
    h = x[0] if x[0] > 0 else 1.0
    return abs(-(h * 2 + 1)) ** 2 * y


def quotient(x: Any, y: Any) -> Any:
    h = (x > 0).sum() if x[0] > 0 else 1
    return y * (min(h, 3) / 2)


def float_or_integer(x: Any, y: Any) -> Any:
    scale = 1 if x[0] > 0 else 0.5
    return y.astype(np.int32) * scale


def narrow_in_a_loop(x: Any, y: Any) -> Any:
    best = 0.0
    for value in y:
        if value > best:
            best = value
        best = best * 0.5
    return best


def items_of_two_types(x: Any, y: Any) -> Any:
    items = []
    for value in y:
        items.append(value if value > 0 else 0.0)
    return np.array(items)


def items_that_may_be_integers(x: Any, y: Any) -> Any:
    items = []
    for value in y:
        items.append(1 if value > 0 else 0.5)
    return np.array(items)


REFUSED: dict[Callable[..., Any], str] = {
    bounded: "of type float or float64, and so which element type the result has; .* as in float",
    best_of_a_loop: "of type float or float64",
    chosen_integer: r"of type int or int64, .* as in int\(x\)",
    derived: "of type float or float64",
    quotient: "of type float or float64",
    float_or_integer: "of type float or int",
    narrow_in_a_loop: r"scalar of float32, and so how it is rounded; .*np.float32\(0\)",
    items_of_two_types: "which element type the array has; say it, as in numpy.array",
    items_that_may_be_integers: "which element type the array has",
}


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_a_result_whose_element_type_the_data_decide_is_refused(
    function: Callable[..., Any],
) -> None:
    types = {np.asarray(function(x, x.astype(np.float32))).dtype for x in INPUTS}
    assert len(types) == 2 or function is narrow_in_a_loop
    with pytest.raises(CaptureError, match=REFUSED[function]) as caught:
        captured(function)
    assert __file__.rpartition("/")[2] in str(caught.value)


def converted(x: Any, y: Any) -> Any:
    h = min(0.5, x.sum())
    n = (x > 0).sum() if x[0] > 0 else 1
    return y * float(h), y * np.float64(h), y * int(n), y / float(n)


def beside_wide_arrays(x: Any, y: Any) -> Any:
    h = min(0.5, x.sum())
    return x * h, x[:, None] + np.array([h, 1.0]), np.full(3, h), np.where(x > 0, x, h)


def beside_arrays_of_its_type(x: Any, y: Any) -> Any:
    best = 0.0
    for value in y:
        if value > best:
            best = value
    return y * best, x * best, best


def as_numbers(x: Any, y: Any) -> Any:
    h = x[0] if x[0] > 0 else 1
    k = (x > 0).sum() if x[1] > 0 else 2
    scale = 1 if x[0] > 0 else 0.5
    places = np.arange(4, dtype=np.int32)
    numbers = h * 0.5 - 1, abs(-h), max(h, 0.25), k + 1, [1, 2, 3, 4, 5][k], k > 2
    return *numbers, places < k, places >= scale, y > k


def rounded_by_its_type(x: Any, y: Any) -> Any:
    return y * ((y[0] if y[0] > 0 else 0.1) * 0.1)


def with_types_that_are_said(x: Any, y: Any) -> Any:
    mixed, numbers = [], []
    for value in y:
        mixed.append(value if value > 0 else 0.0)
        numbers.append(1 if value > 0 else 0.5)
    return np.array(mixed, np.float32), np.array(mixed, dtype=float), np.array(numbers, float)


def counted(x: Any, y: Any) -> Any:
    items = [0]
    while len(items) < 6:
        items.append(items[-1] + (x > 0).sum())
    return np.array(items), y[items[1] % 4]


def digits(x: Any, y: Any) -> Any:
    return y * round(y[0], 1), x * round(x[0], 1), y * round(float(x[0]), 1), round(y[1])


CAPTURED = [
    converted,
    beside_wide_arrays,
    beside_arrays_of_its_type,
    as_numbers,
    rounded_by_its_type,
    with_types_that_are_said,
    counted,
    digits,
]


def captured(function: Callable[..., Any]) -> Any:
    sizes = {"x": {0: "n"}, "y": {0: "n"}}
    return hagane.capture(function, INPUTS[0], INPUTS[0].astype(np.float32), dynamic=sizes)


@pytest.mark.parametrize("function", CAPTURED, ids=lambda f: f.__name__)
def test_a_number_of_two_types_is_used_where_they_give_the_same(
    function: Callable[..., Any],
) -> None:
    session = hagane.InferenceSession(captured(function))
    for x in INPUTS:
        y = x.astype(np.float32)
        made = function(x, y)
        expected = [np.asarray(v) for v in (made if isinstance(made, tuple) else (made,))]
        feeds = {"x": x, "y": y}
        found = session.run(None, {i.name: feeds[i.name] for i in session.get_inputs()})
        for ours, theirs in zip(found, expected, strict=True):
            assert np.ndim(theirs) == 0 or np.asarray(ours).dtype == theirs.dtype
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_an_integer_or_float_beside_integers_of_pytorch_is_refused() -> None:
    def scaled(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        return n * (1 if x.sum() > 0 else 0.5)

    with pytest.raises(CaptureError, match="of type int or float"):
        hagane.capture(scaled, "float32[n]", "int64[n]")
    with pytest.raises(CaptureError, match="of type int or float"):
        hagane.capture(scaled, "float32[n]", "int32[n]")
    hagane.capture(scaled, "float32[n]", "float32[n]")


def sizes_and_fractions(x: torch.Tensor) -> Any:
    n = x.shape[0]
    whole, fractions = torch.zeros(3, dtype=torch.int32), torch.zeros(2)
    whole[0], whole[1] = 2.7, n
    fractions[0] = n / 2
    fractions[1] = True
    wide = torch.tensor([n, 0.1, float(x[0])], dtype=torch.float64)
    return torch.tensor([n, 0.5]), wide, whole, fractions, x.to(torch.uint8) ** 2


def test_sizes_keep_their_company_in_tensors() -> None:
    session = hagane.InferenceSession(hagane.capture(sizes_and_fractions, "float32[n]"))
    for n in (1, 2, 5):
        x = torch.arange(n) + 0.1
        for ours, theirs in zip(
            session.run(None, {"x": x.numpy()}), sizes_and_fractions(x), strict=True
        ):
            assert ours.dtype == theirs.numpy().dtype
            np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-12)


def of_python_or_a_tensor(x: torch.Tensor, y: torch.Tensor) -> Any:
    h = 0.1 if x[0] > 0 else x.sum()
    total = 0.0
    for value in x:
        if value > 0:
            total = total + value
    return y * h, y * (h * 2 + 1), torch.where(y > h, y, y - h), y * total


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.int64])
def test_a_number_keeps_its_digits_beside_the_tensor_that_it_may_be(dtype: torch.dtype) -> None:
    y = torch.arange(3).to(dtype)
    text = str(dtype).removeprefix("torch.")
    session = hagane.InferenceSession(
        hagane.capture(of_python_or_a_tensor, "float32[4]", f"{text}[3]")
    )
    for sign in (1, -1):
        x = sign * torch.tensor([1.0, -2, 3, 4])
        found = session.run(None, {"x": x.numpy(), "y": y.numpy()})
        for ours, theirs in zip(found, of_python_or_a_tensor(x, y), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12 if dtype == torch.float64 else 1e-6)
            assert ours.dtype == theirs.numpy().dtype


def of_either_truth(x: Any) -> Any:
    known = True
    if x[0] > 0:
        known = x[1] > 0
    chosen = x + 1 if known else x
    return known, x * known, chosen, known & (x[2] > 0), known == 1, x[int(known)]


def test_a_truth_value_may_be_of_numpy_or_of_python() -> None:
    session = hagane.InferenceSession(hagane.capture(of_either_truth, np.zeros(4, np.float32)))
    for items in ([1, -2, 3, 4], [1, 2, -3, 4], [-1, 2, -3, 4]):
        x = np.array(items, np.float32)
        for ours, theirs in zip(session.run(None, {"x": x}), of_either_truth(x), strict=True):
            np.testing.assert_array_equal(ours, theirs)
            assert ours.dtype == np.asarray(theirs).dtype

    def inverted(x: Any) -> Any:  # ~True is -2, and that of numpy.True_ is False
        known = True
        if x[0] > 0:
            known = x[1] > 0
        return ~known

    with pytest.raises(CaptureError, match=r"int\(-2\): the data decide which"):
        hagane.capture(inverted, np.zeros(4, np.float32))


def swapped(a: Any, b: Any) -> Any:
    x0, x1 = 1, 0
    while b > 0:
        q, r = divmod(a, b)
        a, b = b, r
        x0, x1 = x1, x0 - q * x1
    return a, x0


def test_numbers_of_which_the_first_is_pythons_change_places() -> None:
    session = hagane.InferenceSession(hagane.capture(swapped, np.int64(1), np.int64(1)))
    for a, b in ((240, 46), (7, 0), (5, 15), (81, 57)):
        found = session.run(None, {"a": np.int64(a), "b": np.int64(b)})
        assert [int(one) for one in found] == list(swapped(np.int64(a), np.int64(b)))


def pairs(x: Any) -> Any:
    found = []
    i = 0
    while i < len(x):
        if x[i] > 1:
            found.append([0, x[i]])
            i += 2
        else:
            found.append([i, 1])
            i += 1
    return np.array(found)


def test_lists_of_numbers_of_python_and_numpy_are_one_array() -> None:
    session = hagane.InferenceSession(
        hagane.capture(pairs, np.zeros(3, np.int64), dynamic={"x": {0: "n"}})
    )
    for size in (1, 4, 9):
        x = np.random.default_rng(size).integers(0, 4, size)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], pairs(x))


def by_a_signed_zero(x: Any) -> Any:
    zero = -0.0 if x.sum() > 0 else 0.0
    return 1 / (0 * abs(x) + zero) + 1 / (zero - 0 * abs(x))


def test_zeros_of_two_signs_are_two_numbers() -> None:
    model = hagane.capture(by_a_signed_zero, x="float32[2]")
    session = hagane.InferenceSession(model)
    for x in (torch.ones(2), -torch.ones(2)):
        (found,) = session.run(None, {"x": x.numpy()})
        np.testing.assert_array_equal(found, by_a_signed_zero(x).numpy())
