"""Which products with gates become one activation, and which must not."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.native.models import draw, model
from tests.passes.harness import applied, node

X = draw((3, 17)) * 3
X[0, :4] = 200, -200, 90, -90  # where exp overflows, too
NUMBERS = {
    "root": np.sqrt(2), "c": 0.7071, "half": 0.5, "one": 1, "three": 3, "k": 0.044715, "six": 6,
    "s": np.sqrt(2 / np.pi), "quick": 1.702, "zero": 0, "sixth": 1 / 6, "twenty": 20, "two": 2,
    "cube": 3.0, "wrong": 0.05,
}  # fmt: skip
CONSTANTS = {name: np.array(value, np.float32) for name, value in NUMBERS.items()}


def written(*lines: str) -> list[onnx.NodeProto]:
    """Return nodes from lines such as ``y = Mul x half``."""
    nodes = []
    for line in lines:
        output, call = line.split(" = ")
        op_type, *inputs = call.split()
        nodes.append(node(op_type, " ".join(inputs), output))
    return nodes


def left(nodes: list[onnx.NodeProto], x: np.ndarray = X) -> list[str]:
    used = {name for one in nodes for name in one.input} & set(CONSTANTS)
    constants = {name: CONSTANTS[name].astype(x.dtype) for name in used}
    return applied(model(nodes, {"x": x}, constants=constants), {"x": x}, tolerance=1e-4)[1]


ERF = ["u = Div x root", "e = Erf u", "a = Add one e"]
CUBE = ["p = Pow x cube", "q = Mul k p", "r = Add x q", "u = Mul s r"]
GELU = {
    "half last": [*ERF, "m = Mul x a", "y = Mul m half"],
    "half inside": [*ERF, "m = Mul a half", "y = Mul m x"],
    "half first": [*ERF, "m = Mul x half", "y = Mul a m"],
    "half as quotient": [*ERF, "m = Mul a x", "y = Div m two"],
    "four digits": ["u = Mul x c", *ERF[1:], "m = Mul x a", "y = Mul m half"],
    "multiplied out": [*ERF[:2], "h = Mul x half", "m = Mul h e", "y = Add m h"],
    "half in both": [*ERF[:2], "m = Mul e half", "n = Add m half", "y = Mul x n"],
    "tanh of powers": [*CUBE, "e = Tanh u", "a = Add e one", "h = Mul x half", "y = Mul h a"],
    "tanh of products": [
        "p = Mul x x", "q = Mul p x", "q1 = Mul q k", "r = Add x q1", "u = Mul s r",
        "e = Tanh u", "a = Add e one", "h = Mul x a", "y = Mul h half",
    ],
    "tanh of a factored cube": [
        "p = Mul x x", "q = Mul k p", "r = Add one q", "v = Mul s x", "u = Mul v r",
        "e = Tanh u", "a = Add e one", "h = Mul half a", "y = Mul x h",
    ],
}  # fmt: skip


@pytest.mark.parametrize("form", GELU)
def test_every_form_of_gelu_is_recognised(form: str) -> None:
    assert left(written(*GELU[form])) == ["Gelu"]


NO_GELU = {
    "another divisor": ["u = Div x half", *ERF[1:], "m = Mul x a", "y = Mul m half"],
    "another factor": [*ERF, "m = Mul x a", "y = Mul m two"],
    "another summand": [*ERF[:2], "a = Add e two", "m = Mul x a", "y = Mul m half"],
    "another argument": [*ERF, "z = Neg x", "v = Exp z", "m = Mul v a", "y = Mul m half"],
    "another cube": [
        "p = Pow x cube", "q = Mul wrong p", "r = Add x q", "u = Mul s r", "e = Tanh u",
        "a = Add e one", "h = Mul x half", "y = Mul h a",
    ],
    "squared": [*ERF, "m = Mul x a", "n = Mul m x", "y = Mul n half"],
}  # fmt: skip


@pytest.mark.parametrize("form", NO_GELU)
def test_what_only_looks_like_gelu_stays(form: str) -> None:
    assert "Gelu" not in left(written(*NO_GELU[form]))


def test_double_precision_wants_all_digits() -> None:
    assert left(written(*GELU["half last"]), X.astype(np.float64))[-1] != "Gelu"
    exact = {"root": np.sqrt(2), "one": np.array(1.0), "half": np.array(0.5)}
    x = X.astype(np.float64)
    proto = model(written(*GELU["half last"]), {"x": x}, constants=exact)
    assert applied(proto, {"x": x})[1] == ["Gelu"]


def test_values_inside_that_others_read_are_computed_besides() -> None:
    nodes = written(*ERF, "m = Mul x a", "g = Mul m half", "y = Sub g m")
    assert left(nodes) == ["Div", "Erf", "Add", "Mul", "Gelu", "Sub"]


OTHERS = {
    "SiLU": (["g = Sigmoid x", "y = Mul x g"], "Swish"),
    "quick GELU": (["u = Mul quick x", "g = Sigmoid u", "y = Mul g x"], "Swish"),
    "hard gate": (["t = Add x three", "g = Clip t zero six", "m = Mul x g", "y = Div m six"],
                  "HardSwish"),
    "hard gate by product": (
        ["t = Add three x", "g = Clip t zero six", "h = Mul g sixth", "y = Mul h x"], "HardSwish"
    ),
    "Mish": (["p = Softplus x", "g = Tanh p", "y = Mul x g"], "Mish"),
    "Softplus": (["p = Softplus x", "g = Greater x twenty", "y = Where g x p"], "Softplus"),
}  # fmt: skip


@pytest.mark.parametrize("form", OTHERS)
def test_other_activations_are_recognised(form: str) -> None:
    lines, op_type = OTHERS[form]
    assert left(written(*lines)) == [op_type]


@pytest.mark.parametrize(("slope", "expected"), [(1 / 6, ["HardSwish"]), (0.2, None)])
def test_hard_swish_has_one_slope(slope: float, expected: list[str] | None) -> None:
    nodes = [node("HardSigmoid", "x", "g", alpha=slope), node("Mul", "x g", "y")]
    assert left(nodes) == (expected or ["HardSigmoid", "Mul"])


STAYS = {
    "another factor": ["v = Exp x", "g = Sigmoid x", "y = Mul v g"],
    "a shifted gate": ["v = Add x one", "g = Sigmoid v", "y = Mul x g"],
    "a sum": ["g = Sigmoid x", "y = Add x g"],
    "a wider clip": ["t = Add x two", "g = Clip t zero six", "m = Mul x g", "y = Div m six"],
    "no sixth": ["t = Add x three", "g = Clip t zero six", "y = Mul x g"],
    "a low threshold": ["p = Softplus x", "g = Greater x two", "y = Where g x p"],
    "Mish of another": ["p = Softplus x", "g = Tanh p", "v = Exp x", "y = Mul v g"],
}


@pytest.mark.parametrize("form", STAYS)
def test_what_only_looks_like_an_activation_stays(form: str) -> None:
    found = left(written(*STAYS[form]))
    assert not {"Swish", "HardSwish", "Mish", "Gelu"} & set(found)
    assert len(found) == len(STAYS[form])
