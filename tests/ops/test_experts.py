"""Mixtures of experts: cases that the tests of all operators of ``com.microsoft`` lack."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hagane import InferenceSession
from hagane.errors import TypeInferenceError
from hagane.ops import operators
from hagane.ops.builder import op
from hagane.ops.gradient import pull_back
from hagane.ops.registry import schema
from tests.native.models import refused, session
from tests.ops.expert_cases import EXPERT_CONSTANTS, EXPERTS
from tests.oracle import node_model

MICROSOFT = "com.microsoft"


@pytest.mark.parametrize(
    ("name", "changes", "shapes", "message"),
    [
        ("MoE", {"k": 5}, {}, "expected k from 1 to the 4 experts, got 5"),
        (
            "MoE",
            {"activation_type": "tanh"},
            {},
            "activation_type of relu, .*, got 'tanh'",
        ),
        ("MoE", {"use_sparse_mixer": 1}, {}, "use_sparse_mixer is not supported"),
        (
            "MoE",
            {"activation_type": "swiglu"},
            {},
            "expected fc3 for 'swiglu' with",
        ),
        ("MoE", {}, {1: (5, 4)}, "expected a row of router_probs for each token"),
        ("MoE", {}, {4: (4, 7, 5)}, r"expected 'fc2_experts_weights' of the shape \[4, 6, 5\]"),
        ("QMoE", {"block_size": 48}, {}, "expected rows of whole bytes and blocks, got 64"),
        ("QMoE", {"expert_weight_bits": 3}, {}, "expected 2, 4 or 8 bits a number, got 3"),
        ("QMoE", {"quant_type": "fp8"}, {}, "expected quant_type='int'"),
        ("QMoE", {}, {3: (4, 32, 2)}, r"expected 'fc1_scales' of the shape \[4, 32, 4\]"),
    ],
)
def test_what_does_not_fit_a_mixture_is_refused(
    name: str, changes: dict[str, Any], shapes: dict[int, tuple[int, ...]], message: str
) -> None:
    _, inputs, outputs, settings = EXPERTS[name]
    inputs = [np.resize(x, shapes[i]) if i in shapes else x for i, x in enumerate(inputs)]
    model, _ = node_model(name, inputs, outputs, domain=MICROSOFT, **{**settings, **changes})
    with pytest.raises(TypeInferenceError, match=message):
        InferenceSession(model)


@pytest.mark.parametrize("name", ["MoE of gates", "QMoE of gates"])
def test_any_number_of_tokens_runs_on_kernels(name: str) -> None:
    op_type, inputs, outputs, settings = EXPERTS[name]
    constants = EXPERT_CONSTANTS.get(name, ())
    model, feed = node_model(
        op_type, inputs, outputs, domain=MICROSOFT, constants=constants, **settings
    )
    rows = [f"x{i}" for i in (0, 1, 14) if f"x{i}" in feed]
    for value in model.graph.input:
        if value.name in rows:
            value.type.tensor_type.shape.dim[0].dim_param = f"n{value.name}"
    made, reference = session(model), session(model, engine="reference")
    assert refused(made) == {}
    for count in (1, 0, 9):
        given = {key: x[:1] if key in rows else x for key, x in feed.items()}
        given = {key: np.repeat(x, count, 0) if key in rows else x for key, x in given.items()}
        if name == "MoE of gates":  # tokens of 3 axes
            given["x1"] = np.repeat(given["x1"], 3, 0)
        (found,), (wanted,) = made.run(None, given), reference.run(None, given)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_a_mixture_has_gradients_of_all_its_inputs() -> None:
    _, inputs, _, settings = EXPERTS["MoE of gates"]
    random = np.random.default_rng(0)
    gradient = random.standard_normal(inputs[0].shape)
    wide = [x.astype(np.float64) for x in inputs]
    _, pull = pull_back(lambda *v: (op("MoE", *v, domain=MICROSOFT, **settings),), *wide)
    attributes = {**schema(MICROSOFT, "MoE").defaults, **settings}
    kernel = operators()[MICROSOFT, "MoE"]

    def along(place: int, step: np.ndarray) -> float:
        changed = [x + step if i == place else x for i, x in enumerate(wide)]
        (y,) = kernel(changed, attributes, 1)
        return float(np.sum(y * gradient))  # type: ignore[operator]

    for place, found in enumerate(pull([gradient])):
        step = 1e-5 * random.standard_normal(wide[place].shape)
        wanted = (along(place, step) - along(place, -step)) / 2
        assert np.sum(found * step) == pytest.approx(wanted, rel=1e-4, abs=1e-9)
