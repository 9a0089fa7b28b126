"""Steps of LSTMs and their way back, beside their reference kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from hagane.errors import TypeInferenceError
from hagane.ops import operators
from tests.native.models import every_level, refused, session

# Steps, batch, hidden units: odd ones, and those that fill vectors and tiles.
SIZES = [(3, 1, 1), (4, 5, 17), (2, 13, 32), (5, 3, 70)]
INPUTS = {"LSTMSteps": "p r h c", "LSTMStepsGradient": "gates cells c r gy gc"}
OUTPUTS = {"LSTMSteps": ["y", "cells", "gates"], "LSTMStepsGradient": ["gp", "gh", "gc0"]}


def draw(name: str, steps: int, batch: int, hidden: int, dtype: Any) -> dict[str, Any]:
    rng = np.random.default_rng(hidden)
    shapes = {
        "p": (steps, batch, 4 * hidden), "gates": (steps, batch, 4 * hidden),
        "r": (4 * hidden, hidden), "h": (batch, hidden), "c": (batch, hidden),
    }  # fmt: skip
    whole = (steps, batch, hidden)
    found = {n: rng.standard_normal(shapes.get(n, whole)) for n in INPUTS[name].split()}
    if "gates" in found:
        found["gates"] = 1 / (1 + np.exp(-found["gates"]))
    found["r"] /= 2 * hidden**0.5
    return {n: value.astype(dtype) for n, value in found.items()}


def made(name: str, given: dict[str, Any], reverse: int, *, open_sizes: bool = False) -> Any:
    def shape(value: Any) -> list[Any]:
        if not open_sizes or value.shape == given["r"].shape:
            return [*value.shape]
        return [*("steps", "batch")[3 - value.ndim :], value.shape[-1]]

    kind = TensorProto.FLOAT if given["r"].dtype == np.float32 else TensorProto.DOUBLE
    node = helper.make_node(name, INPUTS[name].split()[: len(given)], OUTPUTS[name], name="lstm",
                            domain="hagane", reverse=reverse)  # fmt: skip
    graph = helper.make_graph(
        [node], "graph",
        [helper.make_tensor_value_info(n, kind, shape(v)) for n, v in given.items()],
        [helper.make_tensor_value_info(n, kind, None) for n in OUTPUTS[name]],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("hagane", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def compare(
    name: str, proto: onnx.ModelProto, given: dict[str, Any], reverse: int, **entries: Any
) -> None:
    wide = [value.astype(np.float64) for value in given.values()]
    wanted: Any = operators()["hagane", name].reference(*wide, reverse=reverse)
    found = session(proto, **entries)
    assert refused(found) == {}
    tolerance = 1e-5 if given["r"].dtype == np.float32 else 1e-12
    for one, other in zip(found.run(None, given), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@every_level
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("name", INPUTS)
def test_steps_are_those_of_the_reference(name: str, sizes: Any, level: str) -> None:
    reverse = sizes[1] % 2
    given = draw(name, *sizes, np.float32)
    compare(name, made(name, given, reverse), given, reverse, instructions=level)


@pytest.mark.parametrize("name", INPUTS)
def test_steps_and_batches_stay_open(name: str) -> None:
    proto = made(name, draw(name, 2, 2, 20, np.float32), 1, open_sizes=True)
    for steps, batch in ((1, 1), (3, 14), (2, 5)):
        compare(name, proto, draw(name, steps, batch, 20, np.float32), 1)


@pytest.mark.parametrize("name", INPUTS)
def test_doubles_are_written_in_other_operators(name: str) -> None:
    given = draw(name, 3, 2, 4, np.float64)
    compare(name, made(name, given, 0), given, 0)


def test_a_gradient_of_cells_may_be_missing() -> None:
    given = draw("LSTMStepsGradient", 3, 2, 9, np.float32)
    del given["gc"]
    compare("LSTMStepsGradient", made("LSTMStepsGradient", given, 0), given, 0)


def test_operands_that_do_not_fit_are_named() -> None:
    given = draw("LSTMSteps", 3, 2, 4, np.float32)
    given["p"] = given["p"][..., :15]
    with pytest.raises(TypeInferenceError, match="expected 4 gates of 4 in 'P'"):
        session(made("LSTMSteps", given, 0))
