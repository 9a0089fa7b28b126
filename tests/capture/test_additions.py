"""Functions of hagane beside Chainer's, as graphs: they compute what the eager ones do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hagane
import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812
from hagane.checking import Request, check_source
from hagane.errors import CaptureError
from hagane.frontends.libraries.names.additions import HAGANE


def drawn(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype("f")


def gelus(x: Any) -> Any:
    return F.gelu(x) + F.gelu(x, approximate="tanh") + F.silu(x)


def norms(x: Any, gamma: Any, beta: Any) -> Any:
    both = F.layer_norm(x, gamma, beta) + F.layer_norm(x, gamma, eps=1e-3)
    return both + F.rms_norm(x, gamma)


def attended(q: Any, k: Any, v: Any) -> Any:
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return y + F.scaled_dot_product_attention(q, k, v, scale=0.3)


def masked(q: Any, k: Any, v: Any, seen: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v, seen, is_causal=True)


def turned(x: Any) -> Any:
    return F.rotary(x) + F.rotary(x, np.array([3, 1, 4, 1, 5]), base=100.0)


def turned_at(x: Any, places: Any) -> Any:
    return F.rotary(x, places)


@pytest.mark.parametrize(
    ("function", "types", "arrays"),
    [
        (gelus, ["float32[n, 3]"], [drawn(4, 3)]),
        (norms, ["float32[n, t, 6]", "float32[6]", "float32[6]"],
         [drawn(2, 3, 6), drawn(6), drawn(6, seed=1)]),
        (attended, ["float32[n, 2, t, 4]", "float32[n, 2, t, 4]", "float32[n, 2, t, 3]"],
         [drawn(3, 2, 5, 4), drawn(3, 2, 5, 4, seed=1), drawn(3, 2, 5, 3)]),
        (masked, ["float32[n, t, 4]", "float32[n, k, 4]", "float32[n, k, 3]", "bool[t, k]"],
         [drawn(3, 5, 4), drawn(3, 7, 4, seed=1), drawn(3, 7, 3), drawn(5, 7) > 0]),
        (turned, ["float32[n, 5, 6]"], [drawn(2, 5, 6)]),
        (turned_at, ["float32[n, t, 6]", "int64[n, t]"],
         [drawn(2, 3, 6), np.array([[0, 5, 90000], [2, 2, 1]])]),
    ],
    ids=["gelu", "norm", "attention", "mask", "rotary", "places"],
)  # fmt: skip
def test_a_graph_computes_what_the_function_does(function: Any, types: Any, arrays: Any) -> None:
    model = hagane.capture(function, *types)
    session = hagane.InferenceSession(model)
    names = [value.name for value in session.get_inputs()]
    (found,) = session.run(None, dict(zip(names, arrays, strict=True)))
    np.testing.assert_allclose(found, function(*arrays).array, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"rotary": True}, {"cross": True}])
def test_a_block_of_a_transformer_is_captured(options: dict[str, Any]) -> None:
    np.random.seed(0)
    block = L.TransformerBlock(8, 2, dropout=0.1, **options)
    arrays = {"x": drawn(3, 5, 8)}
    types = {"x": "float32[n, t, 8]"}
    if "cross" in options:
        arrays["memory"], types["memory"] = drawn(3, 4, 8, seed=1), "float32[n, k, 8]"
    with hagane.using_config("train", False):
        model = hagane.capture(block, **types)
        expected = block(**arrays).array
    (found,) = hagane.InferenceSession(model).run(None, arrays)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("F.gelu(f(2, 3), approximate='fast')", "expected 'none' or 'tanh'"),
        ("F.layer_norm(f(2, 3), f(4))", "expected 3 features in 'gamma'"),
        ("F.scaled_dot_product_attention(f(2, 3), f(2, 4), f(2, 3))", "of one feature size"),
        ("F.scaled_dot_product_attention(f(2, 3), f(2, 3), f(4, 3))", "as many keys as values"),
        ("F.rotary(f(2, 3))", "an even number of features"),
        ("F.rms_norm(np.ones((2, 3), 'i'), f(3))", "expected floating-point elements"),
    ],
)
def test_the_checker_refuses_operands_that_do_not_fit(
    expression: str, told: str, tmp_path: Path
) -> None:
    file = tmp_path / "called.py"
    file.write_text(
        "import numpy as np\nimport hagane.functions as F\n\n\n"
        "def f(*shape):\n    return np.ones(shape, 'f')\n\n\n"
        f"def called():\n    return {expression}\n"
    )
    found = check_source(Request(file, "called")).errors
    assert any(told in str(error.message) for error in found), found


def test_every_name_is_a_function_of_hagane() -> None:
    for name in HAGANE.functions:
        assert callable(getattr(F, name.rpartition(".")[2]))


def test_sizes_of_heads_that_do_not_fit_cannot_be_captured() -> None:
    with pytest.raises(CaptureError, match="of one feature size"):
        hagane.capture(attended, "float32[2, 3]", "float32[2, 4]", "float32[2, 3]")


def counted(x: Any, limit: int = 5) -> Any:
    seen = np.zeros((3, 1), np.int64)
    for _ in range(limit):
        last = np.take(np.arange(10) + 1, seen[:, -1])
        seen = np.concatenate([seen, last[:, None]], 1)
        if (last * x > 6).all():
            break
    return seen


def test_nothing_is_left_of_loops_that_were_interpreted_again() -> None:
    graph = hagane.capture(counted, "int64[3]").graph
    nodes = set(graph.all_nodes())
    for name, value in graph.initializers.items():
        assert any(use.node in nodes for use in value.uses()), name
    x = np.array([1, 2, 3])
    (found,) = hagane.InferenceSession(hagane.capture(counted, "int64[3]")).run(None, {"x": x})
    np.testing.assert_array_equal(found, counted(x))
