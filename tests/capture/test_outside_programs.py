"""Programs of outside users that once were captured wrongly, or not at all."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

import hagane
from hagane.graph import to_proto

from .meanings import flat

Array = np.ndarray[Any, Any]


def compare(function: Any, kinds: list[str], *calls: tuple[Array, ...]) -> None:
    """Check that function and graph agree for each call, in ONNX Runtime and in hagane."""
    content = to_proto(hagane.capture(function, *kinds)).SerializeToString()
    for session in (onnxruntime.InferenceSession(content), hagane.InferenceSession(content)):
        names = [value.name for value in session.get_inputs()]
        for given in calls:
            expected = [*flat(function(*given))]
            found = session.run(None, dict(zip(names, given, strict=True)))
            assert len(found) == len(expected)
            for ours, theirs in zip(found, expected, strict=True):
                np.testing.assert_allclose(ours, np.asarray(theirs), rtol=1e-5, atol=1e-6)
                assert ours.dtype == np.asarray(theirs).dtype


def test_arrays_of_numpy_are_multiplied_and_divided_by_sizes() -> None:
    def function(x: Any) -> Any:
        u = np.ones(x.shape[0], np.float32)
        return x * x.shape[1], u / x.shape[1] * x.shape[0], x.sum(0) / x.shape[0]

    compare(function, ["float32[n, m]"], (np.ones((3, 4), np.float32),))


def test_functions_of_numpy_take_arrays_in_a_file_that_imports_torch_too() -> None:
    def function(x: Any) -> Any:
        y = x.copy()
        y[0] = np.exp(y[0])
        return y

    assert torch.__name__ in str(torch)
    compare(function, ["float32[n]"], (np.ones(3, np.float32),))


def test_no_element_of_none_is_true() -> None:
    def function(x: Any) -> Any:
        return (x > 0).any(), (x > 0).all()

    compare(function, ["float32[n]"], (np.zeros(0, np.float32),), (np.ones(2, np.float32),))


def test_unsigned_integers_are_negated_modulo_their_range() -> None:
    compare(lambda x: np.negative(x), ["uint8[n]"], (np.array([0, 1, 200], np.uint8),))


def test_a_transposed_matrix_times_a_vector_is_a_product_with_a_column() -> None:
    def function(x: Any, v: Any) -> Any:
        return np.exp(x.T) @ v

    x = np.arange(6, dtype=np.float32).reshape(2, 3) / 6
    compare(function, ["float32[n, m]", "float32[n]"], (x, np.array([1, 2], np.float32)))


def test_a_loop_goes_from_one_text_to_another() -> None:
    def function(x: Any) -> Any:
        state, count = "idle", 0
        for v in x:
            if state == "idle":
                if v > 0:
                    state = "run"
            elif state == "run":
                count += 1
                if v < -0.5:
                    state = "end" if v < -5 else "idle"
        return count, x * (1 if state == "run" else 2 if state == "end" else 3)

    lists = ([1, 2, -1, 3], [-1], [1, 0, -9, 1, 1], [1])
    compare(function, ["float32[n]"], *((np.array(v, np.float32),) for v in lists))


FROZEN = frozenset({"mps", "npu"})


def test_members_of_frozen_sets_are_known() -> None:
    model = hagane.capture(lambda x: x * 2 if x.device.type in FROZEN else x, "float32[n]")
    assert {node.op_type for node in model.graph.all_nodes()} == {"Identity"}


def test_an_import_within_a_function_finds_the_running_module(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import sys

    made = types.ModuleType("made_by_hand")
    made.__dict__["FACTOR"] = 3.0
    monkeypatch.setitem(sys.modules, "made_by_hand", made)

    def function(x: Any) -> Any:
        from made_by_hand import FACTOR  # type: ignore[import-not-found]

        return np.add(x, 0) * FACTOR

    compare(function, ["float32[n]"], (np.ones(2, np.float32),))


class Documented:
    def read(self) -> float:
        return 2.0

    value = property(fget=read, doc="A number.")


def test_a_property_may_be_documented_where_it_is_made() -> None:
    def function(x: Any) -> Any:
        class Inner:
            value = property(fget=lambda self: 2.0, doc="A number.")

        return np.add(x, 0) * Inner().value * Documented().value

    compare(function, ["float32[n]"], (np.ones(2, np.float32),))


def test_the_best_of_a_size_that_is_open_are_as_many_as_are_taken() -> None:
    model = hagane.capture(lambda x: torch.topk(x, 2)[0], "float32[n]")
    x = np.array([1, 3, 2], np.float32)
    (found,) = hagane.InferenceSession(model).run(None, {"x": x})
    assert found.tolist() == [3, 2]


def test_rows_of_an_embedding_are_changed_in_place() -> None:
    table = torch.nn.Embedding(4, 2)

    def function(x: Any) -> Any:
        rows = table(x)
        for i in range(1, x.shape[0]):
            rows[i] = rows[i - 1] + rows[i]
        return rows

    model = hagane.capture(function, "int64[n]")
    x = torch.tensor([3, 1, 1])
    (found,) = hagane.InferenceSession(model).run(None, {"x": x.numpy()})
    np.testing.assert_allclose(found, function(x).detach().numpy(), rtol=1e-5)


def test_a_part_is_written_after_its_whole_was() -> None:
    def function(x: Any) -> Any:
        x = torch.clone(x)
        y, turned = x.view(-1), x.t()
        z = x[0]
        x += 1
        z.mul_(2)
        turned[0] = 3
        x[-1] = x[0]
        return x, y, z, turned

    session = hagane.InferenceSession(hagane.capture(function, "float32[n, m]"))
    for rows in (1, 2, 3):
        x = torch.arange(rows * 4.0).reshape(rows, 4)
        for ours, theirs in zip(session.run(None, {"x": x.numpy()}), function(x), strict=True):
            np.testing.assert_allclose(ours, theirs.numpy())


def test_a_refused_change_is_told_though_code_behind_it_reads_more() -> None:
    def function(x: Any) -> Any:
        x = torch.clone(x)
        y = x.t().reshape(-1)  # a copy, but where there is one row or column
        z = x[0]
        x += 1
        z.mul_(2)
        x[-1] = x[0]
        return x, y

    with pytest.raises(hagane.errors.CaptureError, match="shares its memory"):
        hagane.capture(function, "float32[n, m]")


@pytest.mark.parametrize("shape", [(3, 4), (1, 2), (5, 1)])
def test_a_row_and_all_elements_see_changes_of_a_matrix(shape: tuple[int, int]) -> None:
    def function(x: Any) -> Any:
        x = torch.clone(x)
        y = x.view(-1)
        z = x[0]
        x += 1
        z.mul_(2)
        x[-1] = x[0]
        return x, y

    x = np.random.default_rng(0).random(shape, np.float32)
    found = hagane.InferenceSession(hagane.capture(function, "float32[n, m]")).run(None, {"x": x})
    for ours, theirs in zip(found, function(torch.from_numpy(x)), strict=True):
        np.testing.assert_array_equal(ours, theirs.numpy())


ACTIVATIONS = [lambda x: x + 1, lambda x: x * 2, lambda x: (lambda y: y * 3)(x), lambda x: -x]
NAMED = {"plus": lambda x: lambda y: x + y, "times": lambda x: lambda y: x * y}


@pytest.mark.parametrize("function", [*ACTIVATIONS, NAMED["plus"](3), NAMED["times"](3)])
def test_lambdas_of_one_line_are_told_apart(function: Any) -> None:
    model = hagane.capture(lambda x: function(x), "float32[2]")
    x = np.array([5, 7], np.float32)
    (found,) = hagane.InferenceSession(model).run(None, {"x": x})
    np.testing.assert_array_equal(found, function(x))


def test_parts_of_a_variable_are_cut_at_places_that_data_say() -> None:
    from hagane import functions

    def function(x: Any, lengths: Any) -> Any:
        return functions.split_axis(functions.tanh(x), np.cumsum(lengths[:-1]), 0)

    model = hagane.capture(function, "float32[n, 2]", "int64[3]")
    x, lengths = np.arange(12, dtype=np.float32).reshape(6, 2), np.array([1, 3, 2])
    found = hagane.InferenceSession(model).run(None, {"x": x, "lengths": lengths})
    assert [part.shape for part in found] == [(1, 2), (3, 2), (2, 2)]
    np.testing.assert_allclose(np.concatenate(found), np.tanh(x), rtol=1e-5)


@dataclasses.dataclass
class Point:
    x: float
    y: float


def test_match_statements_take_the_first_case_that_fits() -> None:
    def function(x: Any, k: Any) -> Any:
        match int(k):
            case 0:
                x = np.add(x, 1)
            case 1 | 2:
                x = x * 2
            case n if n > 5:
                x = x * n
            case _:
                x = x - 1
        return x

    compare(
        function,
        ["float32[n]", "int64[]"],
        *((np.ones(2, np.float32), np.array(k)) for k in (0, 2, 4, 7)),
    )


def test_match_statements_take_values_apart() -> None:
    def factor(value: Any) -> Any:
        match value:
            case []:
                return 1
            case ("scale", s):
                return s
            case [first, *middle, last]:
                return first + 10 * len(middle) + 100 * last
            case {"by": by, "kind": "square"}:
                return by**2
            case Point(x, y=2.0):
                return x + 0.5
            case int(n) if n < 0:
                return -n
            case None | True:
                return 8
            case other:
                return other

    def function(x: Any) -> Any:
        given = [
            [], ("scale", 2), [1, 0, 0, 3], {"by": 3, "kind": "square"}, {"by": 3}, Point(4.0, 2.0),
            Point(4.0, 3.0), -9, 9, None, True,
        ]  # fmt: skip
        factors = [factor(one) for one in given]
        return [np.multiply(x, f) for f in factors if isinstance(f, int | float)]

    compare(function, ["float32[n]"], (np.ones(2, np.float32),))


def test_and_or_hand_on_what_the_path_leaves_of_a_value() -> None:
    def function(x: Any) -> Any:
        first = int(x[0])
        return np.add(x, (first == 5 and 3) or 7)

    compare(function, ["int64[n]"], (np.array([5, 1]),), (np.array([4, 1]),))


def _sum_of_rows(x: Any) -> Any:
    total = 0
    for row in x:
        total = total + row.sum()
    return total


def _sum_of_elements(x: Any) -> Any:
    total = 0
    for row in x:
        for v in row:
            total = total + v
    return total


def _sum_until(x: Any) -> Any:
    total = 0.0
    for row in x:
        if row[0] < -1:
            continue
        total = total + row.sum()
        if total > 3:
            break
    return total * torch.ones(1)


def _sum_with_all_exits(x: Any) -> Any:
    total = 0
    for i in range(x.shape[0]):
        for v in x[i]:
            if v > 1:
                break
            if v < -1:
                continue
            total = total + v
        else:
            total = total + 10
            continue
        total = total * 2
        if total > 50:
            break
    return total * torch.ones(1)


@pytest.mark.parametrize(
    "function", [_sum_of_rows, _sum_of_elements, _sum_until, _sum_with_all_exits]
)
def test_sums_of_tensors_begin_with_a_number_of_python(function: Any) -> None:
    model = hagane.capture(function, "float32[n, m]")
    session = hagane.InferenceSession(model)
    for sizes in ((3, 4), (1, 1), (9, 3), (12, 1)):
        x = np.random.default_rng(sizes).standard_normal(sizes).astype("f")
        (found,) = session.run(None, {"x": x})
        np.testing.assert_allclose(found, function(torch.from_numpy(x)), rtol=1e-5, atol=1e-6)


def test_results_of_numpy_are_written_into_given_arrays() -> None:
    def function(x: Any) -> Any:
        y = np.zeros_like(x)
        np.add(x, 1, out=y)
        np.multiply(y, 2, y)
        sums = np.empty(x.shape[1], x.dtype)
        np.sum(x, axis=0, out=sums)
        cut = x.copy()
        cut.clip(-1, 0.5, out=cut)
        inverse = np.divide(1, x, out=np.zeros_like(x), where=x > 0)
        first = x.copy()
        np.negative(first[0], out=first[0])
        return y, sums, cut, inverse, first

    x = np.random.default_rng(0).standard_normal((3, 4)).astype("f")
    compare(function, ["float32[n, m]"], (x,), (x[:1, :1],))


def test_results_of_torch_are_written_into_given_tensors() -> None:
    def function(x: Any) -> Any:
        y = torch.zeros_like(x)
        torch.add(x, 1, out=y)
        torch.clamp(y, 0, 1, out=y)
        return y

    session = hagane.InferenceSession(hagane.capture(function, "float32[n, m]"))
    x = np.random.default_rng(0).standard_normal((3, 4)).astype("f")
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], function(torch.from_numpy(x)))


def test_elements_that_a_function_of_numpy_leaves_out_are_refused() -> None:
    def function(x: Any) -> Any:
        return np.sqrt(x, where=x > 0)

    with pytest.raises(hagane.errors.CaptureError, match="leaves elements as they happen to be"):
        hagane.capture(function, np.ones(3, np.float32))


class _Registered:
    """A class that knows its subclasses, which objects of theirs are read with."""

    known: typing.ClassVar[dict[str, type]] = {}

    def __init_subclass__(cls) -> None:
        _Registered.known[cls.__name__] = cls

    def apply(self, x: Any) -> Any:
        return x + 1


class _Doubling:
    def apply(self, x: Any) -> Any:
        return super().apply(x) * 2  # type: ignore[misc]


class _Mixed(_Doubling, _Registered):
    def __call__(self, x: Any) -> Any:
        return self.apply(x)


class _Derived(_Mixed):
    def __call__(self, x: Any) -> Any:
        return super().__call__(x) + super(_Mixed, self).apply(x)


def test_classes_that_a_base_lists_among_its_attributes_are_one_class_each() -> None:
    compare(_Registered.known["_Derived"](), ["float32[n]"], (np.ones(3, np.float32),))


def test_steps_of_a_sequence_are_unbound_along_any_axis() -> None:
    def function(x: Any) -> Any:
        state = x.new_zeros(x.shape[0], x.shape[2])
        for step in x.unbind(1):
            state = torch.tanh(state + step)
        return state

    session = hagane.InferenceSession(hagane.capture(function, "float32[b, t, 4]"))
    for sizes in ((3, 7, 4), (1, 1, 4)):
        x = np.random.default_rng(0).standard_normal(sizes).astype("f")
        (found,) = session.run(None, {"x": x})
        np.testing.assert_allclose(found, function(torch.from_numpy(x)), rtol=1e-5, atol=1e-6)


class _Listed(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        made = [torch.randn(3, 3, generator=generator) for _ in range(3)]
        self.weights = torch.nn.ParameterList(made)
        self.shifts = torch.nn.ParameterDict({"a": torch.ones(3), "b": torch.ones(3) * 2})

    def forward(self, x: Any) -> Any:
        for i, weight in enumerate(self.weights):
            x = x @ weight * (i + 1)
        for shift in self.shifts.values():
            x = x + shift
        return x + self.weights[-1].mean() * len(self.weights) + self.shifts["b"]


def test_lists_and_dictionaries_of_parameters_are_walked() -> None:
    module = _Listed().eval()
    model = hagane.capture(module, "float32[n, 3]")
    assert {"weights.0", "weights.2", "shifts.b"} <= set(model.graph.initializers)
    x = np.random.default_rng(0).standard_normal((2, 3)).astype("f")
    (found,) = hagane.InferenceSession(model).run(None, {"x": x})
    np.testing.assert_allclose(found, module(torch.from_numpy(x)).detach(), rtol=1e-5, atol=1e-5)


def test_floats_are_divided_with_exact_remainders_as_python_does() -> None:
    def function(q: float) -> Any:
        return q // 0.1, q % 0.1, q // -0.3, q % -0.3, divmod(q, 0.7), q % 1

    compare(function, ["float"], *[(np.array(q),) for q in (1.0, -1.0, 0.3, 7.5, -7.5, 1e10)])


def test_arrays_of_floats_are_divided_with_exact_remainders() -> None:
    def function(x: Any) -> Any:
        return x // 0.1, x % 0.1, x // -0.3, np.divmod(x, 3), x % np.inf, np.mod(x, -x - 0.5)

    x = np.array([7.5, -7.5, 1.0, 0.0, 1e10, 0.3, -0.1, 6.0, 1e-9], np.float64)
    compare(function, ["float64[n]"], (x,))


def test_tensors_of_floats_are_divided_with_exact_remainders() -> None:
    def function(x: Any) -> Any:
        return x // 0.1, torch.remainder(x, 0.1), torch.div(x, -0.3, rounding_mode="floor")

    x = np.array([7.5, -7.5, 1.0, 0.0, 1e10, 0.3, -0.1, 6.0], np.float32)
    session = hagane.InferenceSession(hagane.capture(function, "float32[n]"))
    expected = function(torch.from_numpy(x))
    for ours, theirs in zip(session.run(None, {"x": x}), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_functions_of_math_take_numbers_that_the_data_decide() -> None:
    def function(q: float, r: float) -> Any:
        return (
            math.fmod(q, r), math.copysign(q, r), math.hypot(q, r),
            math.log1p(abs(q)), math.degrees(q), math.radians(r), math.log(abs(q) + 1, 3),
            math.isfinite(q / r),
        )  # fmt: skip

    pairs = ((7.5, -2.0), (-7.5, 2.0), (0.25, 0.5), (-1.0, -3.0))
    compare(function, ["float", "float"], *[(np.array(q), np.array(r)) for q, r in pairs])


def test_angles_of_numbers_are_computed_by_hagane() -> None:
    def function(q: float, r: float) -> Any:  # ONNX Runtime has no Atan and Sinh of float64
        return math.atan2(q, r), math.asinh(r), math.expm1(q)

    session = hagane.InferenceSession(hagane.capture(function, "float", "float"))
    for q, r in ((7.5, -2.0), (-7.5, 2.0), (-1.0, -3.0)):
        found = session.run(None, {"q": np.array(q), "r": np.array(r)})
        np.testing.assert_allclose(found, function(q, r), rtol=1e-12)


def test_programs_without_any_operator_become_graphs() -> None:
    x = np.arange(3, dtype=np.float32)
    same = hagane.capture(lambda x: x, x)
    np.testing.assert_array_equal(hagane.InferenceSession(same).run(None, {"x": x})[0], x)
    assert not hagane.capture(lambda x: None, x).graph.outputs
