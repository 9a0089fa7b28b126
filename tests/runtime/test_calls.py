"""The short way of a run, beside the long one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import hagane
from hagane.errors import HaganeError
from hagane.runtime.backends import NativePart


def tensor(name: str, shape: list[int | str]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def sums(rows: int | str) -> hagane.InferenceSession:
    """Return a session of a + w and a * b, of open or fixed sizes."""
    nodes = [helper.make_node("Add", ["a", "w"], ["y"]), helper.make_node("Mul", ["a", "b"], ["z"])]
    shape = [rows, 4]
    graph = helper.make_graph(
        nodes,
        "sums",
        [tensor("a", shape), tensor("b", shape)],
        [tensor("y", shape), tensor("z", shape)],
        [numpy_helper.from_array(np.ones(4, np.float32), "w")],
    )
    opsets = [helper.make_opsetid("", 21)]
    return hagane.InferenceSession(helper.make_model(graph, opset_imports=opsets))


def arrays(rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    return {name: random.standard_normal((rows, 4)).astype(np.float32) for name in "ab"}


@pytest.fixture(params=["n", 3])
def made(request: pytest.FixtureRequest) -> hagane.InferenceSession:
    session = sums(request.param)
    assert session._call is not None
    return session


def shortly(session: hagane.InferenceSession, names: Any, feed: Any) -> list[np.ndarray]:
    """Return the outputs of the short way, which must be there."""
    assert session._call is not None
    found = session._call(feed, names)
    assert found is not None
    return found


def test_outputs_come_in_the_order_of_their_names(made: hagane.InferenceSession) -> None:
    feed = arrays(3)
    y, z = feed["a"] + 1, feed["a"] * feed["b"]
    cases: list[tuple[Any, list[np.ndarray]]] = [
        (None, [y, z]), ([], [y, z]), (["z"], [z]), (("z", "y"), [z, y]), (["".join("y")], [y]),
    ]  # fmt: skip
    for names, wanted in cases:
        for left, right in zip(shortly(made, names, feed), wanted, strict=True):
            np.testing.assert_array_equal(left, right)
    twice = made.run(["z", "z"], feed)  # the long way
    assert len(twice) == 2
    np.testing.assert_array_equal(twice[1], z)


def test_more_shapes_than_there_are_frames_give_the_same_as_the_long_way() -> None:
    made = sums("n")
    for turn in range(3):
        for rows in [0, 1, *range(40, 4, -1), 1, 3000]:
            feed = arrays(rows, turn)
            y, z = shortly(made, None, feed)
            np.testing.assert_array_equal(y, feed["a"] + 1)
            np.testing.assert_array_equal(z, feed["a"] * feed["b"])


def test_results_stay_when_the_session_runs_again(made: hagane.InferenceSession) -> None:
    first = made.run(None, arrays(3, 1))
    kept = [array.copy() for array in first]
    made.run(None, arrays(3, 2))
    for left, right in zip(first, kept, strict=True):
        np.testing.assert_array_equal(left, right)
        assert left.flags.owndata
        assert left.flags.writeable


def test_arrays_whose_elements_lie_apart_are_read_as_they_are(
    made: hagane.InferenceSession,
) -> None:
    wide = np.arange(48, dtype=np.float32).reshape(4, 12)
    feed = {"a": wide[:, ::4].T, "b": np.asfortranarray(arrays(3)["b"])}
    y, z = shortly(made, None, feed)
    np.testing.assert_array_equal(y, feed["a"] + 1)
    np.testing.assert_array_equal(z, feed["a"] * feed["b"])


def test_held_values_take_the_place_of_arrays(made: hagane.InferenceSession) -> None:
    feed = arrays(3)
    held = {name: hagane.OrtValue.ortvalue_from_numpy(array) for name, array in feed.items()}
    np.testing.assert_array_equal(shortly(made, ["y"], held)[0], feed["a"] + 1)
    (z,) = made.run_with_ort_values(["z"], held)
    np.testing.assert_array_equal(z.numpy(), feed["a"] * feed["b"])


def test_bound_outputs_are_written_where_they_are(made: hagane.InferenceSession) -> None:
    feed = arrays(3)
    binding = made.io_binding()
    for name, array in feed.items():
        binding.bind_cpu_input(name, array)
    target = np.zeros((3, 4), np.float32)
    binding.bind_ortvalue_output("z", hagane.OrtValue(target))
    binding.bind_output("y")
    for _ in range(2):
        target[:] = 0
        made.run_with_iobinding(binding)
        np.testing.assert_array_equal(target, feed["a"] * feed["b"])
        np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[1], feed["a"] + 1)
    names = list(binding.outputs)
    assert made._call is not None
    found = made._call(binding.inputs, names, [target, None])
    assert found is not None
    assert found[0] is target


def test_an_output_that_is_bound_to_an_input_is_written_last(
    made: hagane.InferenceSession,
) -> None:
    feed = arrays(3)
    want = [feed["a"] + 1, feed["a"] * feed["b"]]
    binding = made.io_binding()
    for name, array in feed.items():
        binding.bind_cpu_input(name, array)
    binding.bind_ortvalue_output("y", hagane.OrtValue(feed["a"]))
    binding.bind_ortvalue_output("z", hagane.OrtValue(feed["b"]))
    made.run_with_iobinding(binding)
    np.testing.assert_array_equal(feed["a"], want[0])
    np.testing.assert_array_equal(feed["b"], want[1])


def test_a_bound_output_of_another_shape_is_refused(made: hagane.InferenceSession) -> None:
    binding = made.io_binding()
    for name, array in arrays(3).items():
        binding.bind_cpu_input(name, array)
    binding.bind_ortvalue_output("y", hagane.OrtValue(np.zeros((3, 5), np.float32)))
    with pytest.raises(HaganeError, match=r"expected float32\[3, 5\], got float32\[3, 4\]"):
        made.run_with_iobinding(binding)


FEEDS: list[Callable[[], Any]] = [
    dict,
    lambda: {"a": arrays(3)["a"]},
    lambda: {**arrays(3), "c": np.zeros(1, np.float32)},
    lambda: {**arrays(3), "b": np.zeros((3, 4))},
    lambda: {**arrays(3), "b": np.zeros((3, 5), np.float32)},
    lambda: {**arrays(3), "b": np.zeros((2, 4), np.float32)},
    lambda: {**arrays(3), "b": np.zeros((3, 4, 1), np.float32)},
    lambda: {**arrays(3), "b": None},
    lambda: {**arrays(3), "b": "text"},
    lambda: {**arrays(3), 7: 1},
    lambda: [1, 2],
    lambda: {name: array.tolist() for name, array in arrays(3).items()},
    lambda: {name: array.astype(">f4") for name, array in arrays(3).items()},
]


@pytest.mark.parametrize("names", [None, ["y"], ["nothing"], "y", 5])
@pytest.mark.parametrize("feed", FEEDS)
def test_what_is_wrong_is_said_as_the_long_way_says_it(
    made: hagane.InferenceSession, feed: Callable[[], Any], names: Any
) -> None:
    def outcome() -> tuple[str, Any]:
        try:
            return "", [array.tolist() for array in made.run(names, feed())]
        except Exception as error:
            return type(error).__name__, str(error)

    for _ in range(2):
        short = outcome()
    made._call = None
    assert short == outcome()


def test_threads_run_one_session_at_several_shapes() -> None:
    made = sums("n")

    def work(number: int) -> None:
        for turn in range(60):
            feed = arrays(1 + (number + turn) % 5 * 700, number)
            y, z = made.run(None, feed)
            np.testing.assert_array_equal(y, feed["a"] + 1)
            np.testing.assert_array_equal(z, feed["a"] * feed["b"])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))


def test_a_run_of_shapes_met_before_enters_python_once(made: hagane.InferenceSession) -> None:
    """Shapes are checked and bound in C, whatever is asked for and however it is held."""
    feed = arrays(3)
    held = {name: hagane.OrtValue.ortvalue_from_numpy(array) for name, array in feed.items()}
    made.run(None, feed)
    entered: list[str] = []

    def note(frame: Any, event: str, argument: object) -> None:
        if event == "call":
            entered.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        made.run(None, feed)
        made.run(["z"], feed)
        made.run(["z", "y"], held)
    finally:
        sys.setprofile(None)
    assert entered == ["run", "run", "run"]


def test_parts_of_a_model_run_by_one_call_in_c_each(
    made: hagane.InferenceSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    (part,) = made._programs.general.parts()
    assert isinstance(part, NativePart)
    feed = arrays(3)
    want = part.segment.run([feed["a"], feed["b"]])

    def lead(*arguments: object) -> NoReturn:
        raise AssertionError("Python leads the run")

    monkeypatch.setattr(part.segment, "run", lead)
    for left, right in zip(part.run([feed["a"], feed["b"]]), want, strict=True):
        np.testing.assert_array_equal(left, right)
    with pytest.raises(AssertionError, match="Python leads"):
        part.run([feed["a"].astype(np.float64), feed["b"]])
