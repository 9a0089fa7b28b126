"""Outputs of a binding that the caller holds: later runs write into them, as in ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import hagane.onnxruntime as hagane_onnxruntime

SEATS = [hagane_onnxruntime]
try:
    import onnxruntime
except ImportError:
    pass
else:
    SEATS.append(onnxruntime)


def session(ort: Any, operator: str = "Neg") -> Any:
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node(operator, ["x"], ["y"])],
        "g",
        [info("x", TensorProto.FLOAT, ["n"])],
        [info("y", TensorProto.FLOAT, ["n"])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("ort", SEATS, ids=lambda ort: ort.__name__)
def test_a_value_that_was_given_out_has_the_result_of_the_last_run(ort: Any) -> None:
    model = session(ort)
    binding = model.io_binding()
    binding.bind_output("y")
    binding.bind_cpu_input("x", np.array([1, 2], np.float32))
    model.run_with_iobinding(binding)
    copied = binding.copy_outputs_to_cpu()[0]
    value = binding.get_outputs()[0]
    binding.bind_cpu_input("x", np.array([3, 4], np.float32))
    model.run_with_iobinding(binding)
    again = binding.copy_outputs_to_cpu()[0]
    assert value.numpy().tolist() == again.tolist() == [-3, -4]
    binding.bind_cpu_input("x", np.array([5, 6], np.float32))
    model.run_with_iobinding(binding)
    assert (copied.tolist(), again.tolist()) == ([-1, -2], [-3, -4])
    assert value.numpy().tolist() == [-5, -6]


@pytest.mark.parametrize("ort", SEATS, ids=lambda ort: ort.__name__)
def test_an_output_that_is_bound_again_has_a_value_of_its_own(ort: Any) -> None:
    model = session(ort)
    binding = model.io_binding()
    values = []
    for number in (1, 2):
        binding.bind_output("y")
        binding.bind_cpu_input("x", np.full(number, number, np.float32))
        model.run_with_iobinding(binding)
        values.append(binding.get_outputs()[0])
    assert [value.numpy().tolist() for value in values] == [[-1], [-2, -2]]


def test_results_of_other_sizes_leave_the_value_that_was_given_out() -> None:
    model = session(hagane_onnxruntime)
    binding = model.io_binding()
    binding.bind_output("y")
    binding.bind_cpu_input("x", np.ones(2, np.float32))
    model.run_with_iobinding(binding)
    value = binding.get_outputs()[0]
    binding.bind_cpu_input("x", np.full(3, 7, np.float32))
    model.run_with_iobinding(binding)
    assert value.numpy().tolist() == [-1, -1]
    assert binding.get_outputs()[0].numpy().tolist() == [-7, -7, -7]


def test_an_input_is_never_written_through_an_output() -> None:
    model = session(hagane_onnxruntime, "Identity")
    binding = model.io_binding()
    binding.bind_output("y")
    first = np.array([1, 2], np.float32)
    binding.bind_cpu_input("x", first)
    model.run_with_iobinding(binding)
    binding.get_outputs()
    binding.bind_cpu_input("x", np.array([3, 4], np.float32))
    model.run_with_iobinding(binding)
    assert first.tolist() == [1, 2]
