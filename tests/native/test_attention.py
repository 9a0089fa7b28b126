"""Attention in one kernel, against the reference: masks, heads, caches, any sizes and strides."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from hagane.errors import KernelError
from tests.drawing import few
from tests.native.models import RUNNABLE, compare, draw, every_level, model, refused, session

FEW = few(5)
OPSET = 24


def check(
    feed: dict[str, np.ndarray],
    level: str,
    outputs: tuple[str, ...] = ("y",),
    shapes: dict[str, Any] | None = None,
    **attributes: Any,
) -> list[Any]:
    names = ["q", "k", "v", "mask", "past_key", "past_value"]
    inputs = [name if name in feed else "" for name in names]
    while not inputs[-1]:
        inputs.pop()
    node = helper.make_node("Attention", inputs, list(outputs), name="attention", **attributes)
    proto = model([node], feed, outputs, opset=OPSET, shapes=shapes)
    return compare(proto, feed, level, rtol=1e-4, atol=1e-5)


@pytest.mark.long
@pytest.mark.skipif("amx" not in RUNNABLE, reason="this processor has no matrix tiles")
@few(10)
@given(
    st.integers(1, 2), st.integers(1, 3), st.integers(3, 150), st.integers(1, 150),
    st.integers(1, 70), st.integers(1, 70), st.sampled_from(["none", "float", "bool"]),
    st.booleans(), st.booleans(),
)  # fmt: skip
def test_attention_in_bfloat16_is_near(
    batch: int, heads: int, queries: int, keys: int, size: int, width: int, kind: str,
    causal: bool, dynamic: bool,
) -> None:  # fmt: skip
    feed = {
        "q": draw((batch, heads, queries, size)),
        "k": draw((batch, heads, keys, size), 1),
        "v": draw((batch, heads, keys, width), 2),
    }
    if kind != "none":
        feed["mask"] = draw((1, 1, queries, keys), 3)
    if kind == "bool":
        feed["mask"] = feed["mask"] > -0.5
        feed["mask"][..., 0, :] = False
    node = helper.make_node("Attention", list(feed), ["y"], is_causal=int(causal))
    lead = [batch, heads]
    shapes: dict[str, Any] = {
        "q": [*lead, "queries", size], "k": [*lead, "keys", size], "v": [*lead, "keys", width],
        "mask": [1, 1, "queries", "keys"],
    }  # fmt: skip
    proto = model([node], feed, opset=OPSET, shapes=shapes if dynamic else None)
    made = session(proto, precision="bf16", instructions="amx")
    for _ in range(2):
        (got,) = made.run(None, feed)
    assert refused(made) == {}
    exact = {
        name: array.astype(ml_dtypes.bfloat16).astype(np.float32) if name in "qkv" else array
        for name, array in feed.items()
    }
    (want,) = session(proto, engine="reference").run(None, exact)
    assert np.abs(got - want).max() <= 2.0**-8 * np.abs(feed["v"]).max()


@every_level
@FEW
@given(st.data())
def test_attention_equals_the_reference(level: str, data: st.DataObject) -> None:
    batch, shared, groups = (data.draw(st.integers(1, most)) for most in (2, 3, 3))
    queries, keys = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 70))
    size, width = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 70))
    feed = {
        "q": draw((batch, shared * groups, queries, size)),
        "k": draw((batch, groups, keys, size), 1),
        "v": draw((batch, groups, keys, width), 2),
    }
    kind = data.draw(st.sampled_from(["none", "float", "bool"]))
    lead = data.draw(st.sampled_from([(), (1, 1), (batch, 1), (1, shared * groups)]))
    if kind == "float":
        feed["mask"] = draw((*lead, queries, keys), 3)
    if kind == "bool":
        feed["mask"] = draw((*lead, queries, keys), 3) > -0.5
        feed["mask"][..., 0, :] = False  # a row without a key
    shapes = None
    if data.draw(st.booleans()):
        shapes = {
            "q": [batch, shared * groups, "queries", size], "k": [batch, groups, "keys", size],
            "v": [batch, groups, "keys", width],
        }  # fmt: skip
        if "mask" in feed:
            shapes["mask"] = [*lead, "queries", "keys"]
    causal = int(data.draw(st.booleans()))
    check(feed, level, shapes=shapes, is_causal=causal, scale=0.3)


@every_level
@pytest.mark.parametrize("queries", [1, 2, 3, 17])
def test_a_cache_is_joined_and_returned(level: str, queries: int) -> None:
    feed = {
        "q": draw((2, 4, queries, 24)), "k": draw((2, 2, queries, 24), 1),
        "v": draw((2, 2, queries, 40), 2), "past_key": draw((2, 2, 9, 24), 3),
        "past_value": draw((2, 2, 9, 40), 4),
    }  # fmt: skip
    check(feed, level, ("y", "key", "value"), is_causal=1)
    shapes = {name: list(array.shape) for name, array in feed.items()}
    for name in ("past_key", "past_value"):
        shapes[name][2] = "past"
    check(feed, level, ("y", "key", "value"), shapes=shapes, is_causal=1)
    check(feed, level, is_causal=0)


@every_level
@pytest.mark.parametrize("keys", [5, 40])
def test_scores_that_are_no_numbers_are_not_taken_for_hidden(level: str, keys: int) -> None:
    feed = {"q": draw((2, 2, 3, 8)), "k": draw((2, 2, keys, 8), 1), "v": draw((2, 2, keys, 8), 2)}
    feed["q"][:, 0, :, 2] = np.nan
    feed["mask"] = np.ones((3, keys), bool)
    feed["mask"][0] = False
    feed["mask"][1, 1:] = False
    (y,) = check(feed, level)
    assert np.isnan(y[:, 0, 1:]).all()
    assert not y[:, :, 0].any()
    del feed["mask"]
    (y,) = check(feed, level)
    assert np.isnan(y[:, 0]).all()


@every_level
def test_three_axes_hold_the_heads_side_by_side(level: str) -> None:
    feed = {
        "q": draw((2, 19, 4 * 12)),
        "k": draw((2, 33, 2 * 12), 1),
        "v": draw((2, 33, 2 * 20), 2),
    }
    check(feed, level, q_num_heads=4, kv_num_heads=2)


@every_level
def test_transposed_operands_and_results_are_not_copied(level: str) -> None:
    feed = {name: draw((2, 21, 3, 16), seed) for seed, name in enumerate("qkv")}
    nodes = [
        helper.make_node("Transpose", [name], [f"{name}t"], perm=[0, 2, 1, 3]) for name in "qkv"
    ]
    nodes.append(helper.make_node("Attention", ["qt", "kt", "vt"], ["a"], name="attention"))
    nodes.append(helper.make_node("Transpose", ["a"], ["y"], perm=[0, 2, 1, 3]))
    proto = model(nodes, feed, opset=OPSET)
    compare(proto, feed, level, rtol=1e-4, atol=1e-5)
    (step,) = session(proto, instructions=level)._programs.general.steps
    assert [kernel.label for kernel in step.part.segment.kernels] == ["Attention 'attention'"]


def test_written_out_attention_becomes_one_kernel() -> None:
    feed = {name: draw((1, 2, 40, 16), seed) for seed, name in enumerate("qkv")}
    feed["mask"] = np.where(np.tri(40, dtype=bool), 0, -np.inf).astype(np.float32)
    nodes = [
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "kt"], ["s"]),
        helper.make_node("Mul", ["s", "scale"], ["scaled"]),
        helper.make_node("Add", ["scaled", "mask"], ["masked"]),
        helper.make_node("Softmax", ["masked"], ["p"]),
        helper.make_node("MatMul", ["p", "v"], ["y"], name="end"),
    ]
    mask = feed.pop("mask")
    proto = model(nodes, feed, constants={"scale": np.float32(0.25), "mask": mask})
    made = session(proto)
    (got,) = made.run(None, feed)
    (want,) = session(proto, engine="reference").run(None, feed)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    (step,) = made._programs.general.steps
    assert [kernel.label.split()[0] for kernel in step.part.segment.kernels] == ["Attention"]


@pytest.mark.parametrize("what", ["softcap", "scores", "window"])
def test_rarer_forms_are_written_in_parts(what: str) -> None:
    feed = {name: draw((1, 2, 5, 8), seed) for seed, name in enumerate("qkv")}
    outputs = ["y", "", "", "scores"] if what == "scores" else ["y"]
    attributes: dict[str, Any] = {"softcap": 2.0} if what == "softcap" else {}
    if what == "window":
        attributes = {"left_window_size": 1}
    node = helper.make_node("Attention", ["q", "k", "v"], outputs, name="a", **attributes)
    opset = 28 if what == "window" else OPSET
    proto = model([node], feed, [name for name in outputs if name], opset=opset)
    made = session(proto)
    for got, want in zip(
        made.run(None, feed), session(proto, engine="reference").run(None, feed), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    assert refused(made) == {}


@every_level
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("axes", [3, 4])
def test_rotary_embedding_equals_the_reference(
    level: str, interleaved: int, ids: bool, axes: int
) -> None:
    batch, heads, length, size, turned = 2, 3, 7, 50, 36
    shape = (batch, heads, length, size) if axes == 4 else (batch, length, heads * size)
    angles = draw((20, turned // 2) if ids else (batch, length, turned // 2), 1)
    feed = {"x": draw(shape), "cos": np.cos(angles), "sin": np.sin(angles)}
    if ids:
        feed["ids"] = np.random.default_rng(0).integers(0, 20, (batch, length))
    attributes = {"interleaved": interleaved, "rotary_embedding_dim": turned}
    if axes == 3:
        attributes["num_heads"] = heads
    node = helper.make_node("RotaryEmbedding", list(feed), ["y"], name="turn", **attributes)
    compare(model([node], feed, opset=OPSET), feed, level)


def test_a_position_out_of_range_is_an_error_that_names_it() -> None:
    feed = {"x": draw((1, 1, 2, 8)), "ids": np.array([[0, 5]])}
    constants = {"cos": draw((5, 4)), "sin": draw((5, 4))}
    node = helper.make_node("RotaryEmbedding", ["x", "cos", "sin", "ids"], ["y"], name="turn")
    made = session(model([node], feed, constants=constants, opset=OPSET))
    with pytest.raises(KernelError, match=r"RotaryEmbedding 'turn'.*position 5 is out of range"):
        made.run(None, feed)


@pytest.mark.parametrize("mode", [0, 1])
def test_the_raw_product_is_what_was_before_the_cap(mode: int) -> None:
    feed = {name: draw((1, 2, 3, 4), seed) for seed, name in enumerate("qkv")}
    node = helper.make_node("Attention", list("qkv"), ["y", "", "", "shown"], softcap=0.5,
                            scale=1.0, qk_matmul_output_mode=mode)  # fmt: skip
    raw = feed["q"] @ feed["k"].transpose(0, 1, 3, 2)
    wanted = raw if mode == 0 else np.tanh(raw / 0.5) * 0.5
    made = model([node], feed, ["shown"], opset=25)
    for engine in ("native", "reference"):
        (found,) = session(made, engine=engine).run(None, feed)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
