"""DynamicQuantizeLSTM at open sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests.native.models import compiled, model, session
from tests.native.written import check, check_fault, node, proto_of

RNG = np.random.default_rng(0)
INPUTS = ("x", "w", "r", "b", "l", "h", "c", "p", "ws", "wz", "rs", "rz")


def draw(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def feed(
    directions: int, steps: int, batch: int, size: int, hidden: int, *, columns: bool, dtype: str
) -> dict[str, np.ndarray]:
    """Return a layer's input and weights, scales one a direction or one a column."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max + 1
    whole = lambda *shape: RNG.integers(low, high, shape).astype(dtype)  # noqa: E731
    own = (directions, 4 * hidden) if columns else (directions,)
    return {
        "x": draw(steps, batch, size),
        "w": whole(directions, size, 4 * hidden), "r": whole(directions, hidden, 4 * hidden),
        "ws": (RNG.random(own) * 0.02).astype(np.float32), "wz": whole(*own),
        "rs": (RNG.random(own) * 0.02).astype(np.float32), "rz": whole(*own),
    }  # fmt: skip


def lstm(names: Any, outputs: Any = ("y", "yh", "yc"), **attributes: Any) -> Any:
    inputs = [name if name in names else "" for name in INPUTS]
    return node("com.microsoft:DynamicQuantizeLSTM", inputs, outputs, **attributes)


SIZES = [(5, 2, 7, 4), (1, 1, 3, 17), (9, 3, 20, 33), (4, 31, 9, 12)]


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("columns", "dtype"), [(False, "int8"), (True, "uint8")])
def test_states_are_quantised_at_every_step(direction: str, columns: bool, dtype: str) -> None:
    ways = 2 if direction == "bidirectional" else 1
    feeds = []
    for steps, batch, size, hidden in SIZES:
        one = feed(ways, steps, batch, size, hidden, columns=columns, dtype=dtype)
        one["b"] = draw(ways, 8 * hidden)
        one["l"] = RNG.integers(0, steps + 1, batch).astype(np.int32)
        one |= {name: draw(ways, batch, hidden) for name in "hc"}
        feeds.append(one)
    made = lstm(feeds[0], direction=direction)
    check(made, feeds, length=400, fixed=[f"{name}:0" for name in ("w", "r", "b", "h", "c", "ws")])
    check_fault(made, feeds[0], feeds[0] | {"l": np.array([3, 9], np.int32)})


@pytest.mark.parametrize(
    "attributes",
    [
        {"input_forget": 1, "clip": 0.7},
        {
            "activations": ["HardSigmoid", "ScaledTanh", "Softsign"],
            "activation_alpha": [0.3, 1.5], "activation_beta": [0.4, 0.6],
        },
        {"activations": ["Sigmoid", "Relu", "LeakyRelu"]},
        {"activations": ["Sigmoid", "Elu", "Softplus"]},
        {"activations": ["Affine", "ThresholdedRelu", "Tanh"], "activation_alpha": [0.1, 0.2]},
    ],
)  # fmt: skip
@pytest.mark.parametrize("peephole", [False, True])
def test_cells_have_other_functions(attributes: dict[str, Any], peephole: bool) -> None:
    feeds = [feed(1, *sizes, columns=False, dtype="int8") for sizes in SIZES[:2]]
    for one, sizes in zip(feeds, SIZES, strict=False):
        if peephole:
            one["p"] = draw(1, 3 * sizes[3])
    check(lstm(feeds[0], ("y",), **attributes), feeds, length=400)
    check(lstm(feeds[0], ("", "yh"), **attributes), feeds, length=400)


def test_rows_of_inputs_meet_weights_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task of one row reads all weights for it: eight times as long as for two dozen."""
    one = feed(1, 48, 1, 256, 128, columns=False, dtype="int8")
    constants = {name: one.pop(name) for name in ("w", "r", "ws", "wz", "rs", "rz")}
    proto = model([lstm([*one, *constants])], one, ["y"], constants)
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    kernels = compiled(monkeypatch, lambda: session(proto))
    (inputs,) = [each for each in kernels if "inputs" in str(each.name)]
    assert inputs.tasks == 2


@pytest.mark.parametrize("place", [(0, 0, 0), (2, 1, 6)])
def test_no_number_in_an_input_reaches_every_state(place: tuple[int, ...]) -> None:
    one = feed(1, 5, 2, 7, 4, columns=False, dtype="int8")
    one["x"][place] = np.nan
    check(lstm(one), [one], length=400)
    got = session(proto_of([lstm(one)], one)).run(None, one)
    assert all(np.isnan(each).all() for each in got)
