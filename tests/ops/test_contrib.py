"""Operators of com.microsoft, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import helper

from hagane.errors import TypeInferenceError
from hagane.graph import load
from hagane.native.plan.document import native_facet
from hagane.ops import infer_types, operators
from hagane.ops.definition import Unsupported
from hagane.ops.registry import schema
from hagane.ops.vjp import call_composed
from hagane.passes import optimize
from hagane.passes.legalise import legalise
from hagane.runtime import InferenceSession
from tests.native.models import refused, session
from tests.oracle import MICROSOFT, assert_agrees, assert_node_agrees, node_model, run_onnxruntime

_generator = np.random.default_rng(0)


def f(*shape: int) -> np.ndarray:
    return _generator.standard_normal(shape).astype(np.float32)


def u8(*shape: int) -> np.ndarray:
    return _generator.integers(0, 255, shape).astype(np.uint8)


def i8(*shape: int) -> np.ndarray:
    # Of larger ones ONNX Runtime's sums of two products saturate on processors without VNNI.
    return _generator.integers(-63, 64, shape).astype(np.int8)


def s(value: float, dtype: Any = np.float32) -> np.ndarray:
    return np.array(value, dtype)


def b(value: int) -> np.ndarray:
    return np.array(value, np.uint8)


def i32(*values: Any) -> np.ndarray:
    return np.array(values, np.int32)


MASK = i32([1, 1, 1, 0], [1, 1, 0, 0])
PAIR = [u8(2, 3), s(0.1), b(3), u8(3), s(0.2), b(5), s(0.3), b(7)]
UNARY = [u8(5, 3), s(0.05), b(128), s(0.05), b(100)]
POOL = [u8(1, 3, 6, 6), s(0.05), b(128), s(0.05), b(100)]
LSTM = [
    f(5, 2, 4), i8(1, 4, 12), i8(1, 3, 12), f(1, 24), None, None, None, None,
    np.float32([0.02]), np.int8([0]), np.float32([0.03]), np.int8([2]),
]  # fmt: skip
BOTH = [
    f(5, 2, 4), i8(2, 4, 12), i8(2, 3, 12), f(2, 24), None, None, None, None,
    np.float32([0.02, 0.01]), np.int8([0, 1]), np.float32([0.03, 0.02]), np.int8([2, 0]),
]  # fmt: skip
CACHE = [f(1, 2, 5, 16), f(1, 2, 5, 16), i32(5), np.array(6, np.int32)]

# name -> (operator, inputs, outputs, settings)
CASES: dict[str, tuple[str, list[np.ndarray | None], int, dict[str, Any]]] = {
    "BiasGelu": ("BiasGelu", [f(2, 3, 8), f(8)], 1, {}),
    "FastGelu": ("FastGelu", [f(2, 3, 8), f(8)], 1, {}),
    "FastGelu without bias": ("FastGelu", [f(2, 8)], 1, {}),
    "Gelu": ("Gelu", [f(2, 3)], 1, {}),
    "QuickGelu": ("QuickGelu", [f(2, 3)], 1, {"alpha": 1.5}),
    "FusedMatMul": ("FusedMatMul", [f(2, 3, 4), f(2, 3, 5)], 1, {"transA": 1, "alpha": 0.5}),
    "FusedMatMul of batches": (
        "FusedMatMul", [f(2, 3, 4), f(5, 2, 4)], 1, {"transB": 1, "transBatchB": 1},
    ),
    "TransposeMatMul": ("TransposeMatMul", [f(3, 4), f(5, 4)], 1, {"transB": 1}),
    "FusedConv": (
        "FusedConv", [f(1, 3, 8, 8), f(4, 3, 3, 3), f(4)], 1,
        {"activation": "Relu", "pads": [1, 1, 1, 1]},
    ),
    "FusedConv with a sum": (
        "FusedConv", [f(1, 3, 8, 8), f(4, 3, 3, 3), f(4), f(1, 4, 6, 6)], 1,
        {"activation": "Relu"},
    ),
    "FusedConv clipped": (
        "FusedConv", [f(1, 3, 8, 8), f(4, 3, 3, 3), f(4)], 1,
        {"activation": "Clip", "activation_params": [0.0, 1.0]},
    ),
    "FusedGemm": (
        "FusedGemm", [f(3, 4), f(4, 5), f(5)], 1,
        {"activation": "LeakyRelu", "activation_alpha": 0.2},
    ),
    "SkipLayerNormalization": (
        "SkipLayerNormalization", [f(2, 3, 8), f(2, 3, 8), f(8), f(8), f(8)], 1,
        {"epsilon": 1e-5},
    ),
    "SkipSimplifiedLayerNormalization": (
        "SkipSimplifiedLayerNormalization", [f(2, 3, 8), f(2, 3, 8), f(8)], 1, {"epsilon": 1e-5},
    ),
    "SimplifiedLayerNormalization": (
        "SimplifiedLayerNormalization", [f(2, 3, 8), f(8)], 1, {"domain": ""},
    ),
    "EmbedLayerNormalization": (
        "EmbedLayerNormalization",
        [i32([1, 2, 3, 0], [4, 1, 0, 2]), i32([0, 0, 1, 1], [0, 1, 1, 1]), f(10, 8), f(6, 8),
         f(2, 8), f(8), f(8), MASK],
        2, {"epsilon": 1e-5},
    ),
    "Attention": ("Attention", [f(2, 4, 8), f(8, 24), f(24)], 1, {"num_heads": 2}),
    "Attention masked": ("Attention", [f(2, 4, 8), f(8, 24), f(24), MASK], 1, {"num_heads": 2}),
    "Attention with lengths": (
        "Attention", [f(2, 4, 8), f(8, 24), f(24), i32(4, 2)], 1, {"num_heads": 2},
    ),
    "Attention causal": (
        "Attention", [f(2, 4, 8), f(8, 24), f(24)], 1, {"num_heads": 2, "unidirectional": 1},
    ),
    "Attention with a past": (
        "Attention", [f(2, 4, 8), f(8, 24), f(24), None, f(2, 2, 2, 3, 4)], 2,
        {"num_heads": 2, "unidirectional": 1},
    ),
    "MultiHeadAttention": (
        "MultiHeadAttention", [f(2, 4, 8), f(2, 5, 8), f(2, 5, 8), f(24)], 1, {"num_heads": 2},
    ),
    "MultiHeadAttention masked": (
        "MultiHeadAttention", [f(2, 4, 8), f(2, 4, 8), f(2, 4, 8), None, MASK], 1,
        {"num_heads": 2},
    ),
    "MultiHeadAttention with a past": (
        "MultiHeadAttention",
        [f(2, 4, 8), f(2, 4, 8), f(2, 4, 8), None, None, f(1, 2, 4, 7), f(2, 2, 3, 4),
         f(2, 2, 3, 4)],
        3, {"num_heads": 2},
    ),
    "GroupQueryAttention first": (
        "GroupQueryAttention",
        [f(2, 3, 64), f(2, 3, 32), f(2, 3, 32), np.zeros((2, 2, 0, 16), np.float32),
         np.zeros((2, 2, 0, 16), np.float32), i32(2, 2), np.array(3, np.int32)],
        3, {"num_heads": 4, "kv_num_heads": 2},
    ),
    "GroupQueryAttention next": (
        "GroupQueryAttention", [f(1, 1, 64), f(1, 1, 32), f(1, 1, 32), *CACHE], 3,
        {"num_heads": 4, "kv_num_heads": 2},
    ),
    "GroupQueryAttention packed and rotated": (
        "GroupQueryAttention", [f(1, 1, 128), None, None, *CACHE, f(16, 8), f(16, 8)], 3,
        {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1},
    ),
    "GroupQueryAttention in a window": (
        "GroupQueryAttention", [f(1, 1, 64), f(1, 1, 32), f(1, 1, 32), *CACHE], 3,
        {"num_heads": 4, "kv_num_heads": 2, "local_window_size": 3},
    ),
    "GroupQueryAttention smooth and capped": (
        "GroupQueryAttention", [f(1, 1, 64), f(1, 1, 32), f(1, 1, 32), *CACHE], 3,
        {"num_heads": 4, "kv_num_heads": 2, "smooth_softmax": 1, "softcap": 2.0, "scale": 0.5},
    ),
    "GroupQueryAttention with sinks": (
        "GroupQueryAttention",
        [f(1, 1, 64), f(1, 1, 32), f(1, 1, 32), *CACHE, None, None, None, None, f(4)], 3,
        {"num_heads": 4, "kv_num_heads": 2},
    ),
    "GroupQueryAttention with a bias": (
        "GroupQueryAttention",
        [f(1, 1, 64), f(1, 1, 32), f(1, 1, 32), *CACHE, None, None, None, f(1, 4, 1, 6)], 3,
        {"num_heads": 4, "kv_num_heads": 2},
    ),
    "GroupQueryAttention first, turned, in a window": (
        "GroupQueryAttention",
        [f(2, 4, 64), f(2, 4, 32), f(2, 4, 32), f(2, 2, 0, 16), f(2, 2, 0, 16), i32(3, 3),
         np.array(4, np.int32), f(16, 8), f(16, 8)], 3,
        {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1, "rotary_interleaved": 1,
         "local_window_size": 2},
    ),
    "RotaryEmbedding": (
        "RotaryEmbedding",
        [f(2, 3, 16), np.array([[0, 1, 2], [3, 4, 5]]), f(8, 4), f(8, 4)], 1, {},
    ),
    "RotaryEmbedding interleaved": (
        "RotaryEmbedding", [f(2, 3, 16), np.array([1]), f(8, 4), f(8, 4)], 1, {"interleaved": 1},
    ),
    "QLinearAdd": ("QLinearAdd", PAIR, 1, {"steps": 1}),
    "QLinearMul": ("QLinearMul", PAIR, 1, {"steps": 1}),
    "QLinearSigmoid": (
        "QLinearSigmoid", [u8(5, 3), s(0.05), b(128), s(1 / 256), b(0)], 1, {"steps": 1},
    ),
    "QLinearLeakyRelu": ("QLinearLeakyRelu", UNARY, 1, {"alpha": 0.1, "steps": 1}),
    "QLinearAveragePool": ("QLinearAveragePool", POOL, 1, {"kernel_shape": [2, 2], "steps": 1}),
    "QLinearGlobalAveragePool": ("QLinearGlobalAveragePool", POOL, 1, {"steps": 1}),
    "QLinearConcat": (
        "QLinearConcat", [s(0.1), b(3), u8(2, 3), s(0.2), b(1), u8(2, 4), s(0.05), b(9)], 1,
        {"axis": 1, "steps": 1},
    ),
    "QGemm": (
        "QGemm",
        [u8(3, 4), s(0.05), b(128), i8(4, 5), s(0.1), s(0, np.int8), i32(1, 20, -30, 4, 5),
         s(0.5), b(100)],
        1, {"steps": 1},
    ),
    "DynamicQuantizeMatMul": (
        "DynamicQuantizeMatMul", [f(3, 4), i8(4, 5), s(0.1), s(0, np.int8), f(5)], 1, {},
    ),
    "DynamicQuantizeMatMul by column": (
        "DynamicQuantizeMatMul", [f(3, 4), i8(4, 5), np.abs(f(5)), np.zeros(5, np.int8)], 1, {},
    ),
    "MatMulIntegerToFloat": (
        "MatMulIntegerToFloat",
        [u8(3, 4), i8(4, 5), s(0.05), s(0.1), b(128), s(3, np.int8), f(5)], 1, {},
    ),
    # Both round activations to 8 bits; sums in another order may round to the next step.
    "DynamicQuantizeLSTM": (
        "DynamicQuantizeLSTM", LSTM, 3, {"hidden_size": 3, "rtol": 1e-2, "atol": 1e-2},
    ),
    "DynamicQuantizeLSTM both ways": (
        "DynamicQuantizeLSTM", BOTH, 3,
        {"hidden_size": 3, "direction": "bidirectional", "rtol": 1e-2, "atol": 1e-2},
    ),
    "MatMulNBits": (
        "MatMulNBits", [f(2, 32), u8(8, 2, 8), np.abs(f(16))], 1,
        {"K": 32, "N": 8, "bits": 4, "block_size": 16, "rtol": 2e-2, "atol": 2e-2},
    ),
    "MatMulNBits with zero points": (
        "MatMulNBits", [f(2, 32), u8(8, 2, 8), np.abs(f(16)), u8(8)], 1,
        {"K": 32, "N": 8, "bits": 4, "block_size": 16, "rtol": 2e-2, "atol": 2e-2},
    ),
    "GatherBlockQuantized": (
        "GatherBlockQuantized", [u8(8, 16), np.array([1, 3]), f(8, 2)], 1,
        {"bits": 4, "block_size": 16, "quantize_axis": 1, "gather_axis": 0},
    ),
    "ExpandDims": ("ExpandDims", [f(2, 3), s(1, np.int32)], 1, {"constants": (1,)}),
    "Trilu": ("Trilu", [f(3, 3)], 1, {}),
    "Inverse": ("Inverse", [f(3, 3)], 1, {}),
    "CDist": ("CDist", [f(3, 4), f(5, 4)], 1, {"metric": "euclidean"}),
    "NhwcMaxPool": ("NhwcMaxPool", [u8(1, 6, 6, 3)], 1, {"kernel_shape": [2, 2]}),
    "Range": ("Range", [s(1, np.int64), s(9, np.int64)], 1, {}),
    "Pad": ("Pad", [f(2, 3), np.array([1, 0, 0, 2]), s(3.0)], 1, {}),
    "GatherND": ("GatherND", [f(3, 4), np.array([[0, 1], [2, 2]])], 1, {}),
    "QuantizeLinear": ("QuantizeLinear", [f(2, 3), s(0.1), b(3)], 1, {}),
    "DequantizeLinear": ("DequantizeLinear", [u8(2, 3), s(0.1), b(3)], 1, {}),
}  # fmt: skip

# ONNX Runtime has no CPU kernel for these: what they mean, in NumPy.
_OWN: dict[str, tuple[list[np.ndarray], dict[str, Any], Callable[..., np.ndarray]]] = {
    "Rfft": (
        [f(2, 8)],
        {"signal_ndim": 1},
        lambda x: np.stack([np.fft.rfft(x).real, np.fft.rfft(x).imag], axis=-1),
    ),
    "Irfft": (
        [f(2, 5, 2)],
        {"signal_ndim": 1},
        lambda x: np.fft.irfft(x[..., 0] + 1j * x[..., 1]),
    ),
    "ScaledTanh": (
        [f(2, 3)],
        {"domain": "", "alpha": 1.5, "beta": 0.5},
        lambda x: 1.5 * np.tanh(0.5 * x),
    ),
    "BiasAdd": ([f(2, 3, 4), f(4), f(2, 3, 4)], {}, lambda x, bias, skip: x + bias + skip),
}


@pytest.mark.parametrize("name", CASES)
def test_an_operator_agrees_with_onnxruntime(name: str) -> None:
    op_type, inputs, outputs, settings = CASES[name]
    settings = {"domain": MICROSOFT, **settings}
    assert_node_agrees(op_type, inputs, outputs, **settings)


# Weights, scales and positions that models have as constants.
_CONSTANT = {
    "MatMulNBits": (1, 2), "MatMulNBits with zero points": (1, 2, 3),
    "GatherBlockQuantized": (0, 2), "Range": (0, 1), "Pad": (1, 2),
    "FusedConv": (1, 2), "FusedConv with a sum": (1, 2), "FusedConv clipped": (1, 2),
    "FusedGemm": (1, 2), "QGemm": (3, 5), "DynamicQuantizeMatMul": (1, 3),
    "DynamicQuantizeMatMul by column": (1, 3), "MatMulIntegerToFloat": (1, 5),
}  # fmt: skip
_TOLERANCES = ("rtol", "atol", "steps", "constants")


@pytest.mark.parametrize("name", CASES)
def test_an_operator_runs_on_kernels_or_says_why_not(name: str) -> None:
    op_type, inputs, outputs, settings = CASES[name]
    settings = {"domain": MICROSOFT, "constants": _CONSTANT.get(name, ()), **settings}
    made = {key: item for key, item in settings.items() if key not in ("rtol", "atol", "steps")}
    model, feed = node_model(op_type, inputs, outputs, **made)
    op = operators()[settings["domain"], op_type]
    if isinstance(native_facet(op), Unsupported):
        made_ir = load(model)
        legalise(made_ir)
        optimize(made_ir.graph, infer_types(made_ir))
        assert op_type in [node.op_type for node in made_ir.graph]
        return
    compiled = session(model)
    assert refused(compiled) == {}
    tolerances = {key: settings[key] for key in ("rtol", "atol", "steps") if key in settings}
    assert_agrees(model, feed, **tolerances)


@pytest.mark.parametrize("name", CASES)
def test_an_operator_means_what_it_is_composed_of(name: str) -> None:
    """The reference kernel against its composition, both on arrays."""
    op_type, inputs, outputs, settings = CASES[name]
    op = operators()[settings.get("domain", MICROSOFT), op_type]
    if isinstance(op.compose, Unsupported):
        pytest.skip(op.compose.reason)
    attributes = {
        **schema(*op.key).defaults,
        **{key: item for key, item in settings.items() if key not in (*_TOLERANCES, "domain")},
    }
    found = call_composed(op.compose, inputs, attributes, outputs)
    assert found is not None
    for left, right in zip(found, op(inputs, attributes, outputs), strict=True):
        assert isinstance(right, np.ndarray)
        if right.dtype.kind in "iu":
            assert np.abs(left.astype(np.int64) - right.astype(np.int64)).max() <= 1
        else:
            np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-5)


HALVES = ["BiasGelu", "FastGelu", "QuickGelu", "FusedMatMul", "SkipLayerNormalization",
          "MultiHeadAttention"]  # fmt: skip


@pytest.mark.parametrize("name", HALVES)
def test_a_composition_of_halves_rounds_once(name: str) -> None:
    op_type, inputs, outputs, settings = CASES[name]
    halves = [None if x is None else x.astype(np.float16) for x in inputs]
    model, feed = node_model(op_type, halves, outputs, domain=MICROSOFT, **settings)
    op = operators()[MICROSOFT, op_type]
    attributes = {**schema(*op.key).defaults, **settings}
    made = session(model)
    assert refused(made) == {}
    for found, wanted in zip(made.run(None, feed), op(halves, attributes, outputs), strict=True):
        assert found.dtype == np.float16
        np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-3)  # type: ignore[arg-type]


SIZES = {
    "FusedConv": {0: ("n", 3, "h", "w")},
    "FusedGemm": {0: ("n", 4)},
    "FusedMatMul": {0: ("n", 3, 4), 1: ("n", 3, 5)},
    "SkipLayerNormalization": {0: ("n", "length", 8), 1: ("n", "length", 8)},
    "EmbedLayerNormalization": {0: ("n", "length"), 1: ("n", "length"), 7: ("n", "length")},
    "Attention masked": {0: ("n", "length", 8), 3: ("n", "length")},
    "Attention causal": {0: ("n", "length", 8)},
    "Attention with lengths": {0: ("n", "length", 8), 3: ("n",)},
    "RotaryEmbedding interleaved": {0: ("n", "length", 16)},
    "QLinearAdd": {0: ("n", 3), 3: (3,)},
    "QLinearGlobalAveragePool": {0: ("n", 3, "h", "w")},
    "DynamicQuantizeMatMul": {0: ("n", 4)},
    "NhwcMaxPool": {0: ("n", "h", "w", 3)},
}


@pytest.mark.parametrize("name", SIZES)
def test_a_composition_of_named_sizes_is_that_of_numbers(name: str) -> None:
    op_type, inputs, outputs, settings = CASES[name]
    made = {key: item for key, item in settings.items() if key not in ("rtol", "atol", "steps")}
    constants = _CONSTANT.get(name, ())
    model, feed = node_model(
        op_type, inputs, outputs, domain=MICROSOFT, constants=constants, **made
    )
    for value in model.graph.input:
        for number, shape in SIZES[name].items():
            if value.name == f"x{number}":
                kind = value.type.tensor_type.elem_type
                value.CopyFrom(helper.make_tensor_value_info(value.name, kind, shape))
    compiled = session(model)
    tolerances = {key: settings[key] for key in ("rtol", "atol", "steps") if key in settings}
    assert_agrees(model, feed, **tolerances)
    compiled.run(None, feed)
    assert refused(compiled) == {}


@pytest.mark.parametrize("op_type", _OWN)
def test_an_operator_that_onnxruntime_lacks_means_what_it_says(op_type: str) -> None:
    inputs, attributes, meaning = _OWN[op_type]
    attributes = {"domain": MICROSOFT, **attributes}
    model, feed = node_model(op_type, inputs, **attributes)
    for engine in ("native", "reference"):
        (found,) = session(model, engine=engine).run(None, feed)
        np.testing.assert_allclose(found, meaning(*inputs), rtol=1e-5, atol=1e-6)
    if callable(operators()[attributes["domain"], op_type].compose):
        assert refused(session(model)) == {}


def test_group_norm_is_group_normalization_with_channels_last() -> None:
    x, gamma, beta = f(2, 4, 4, 8), f(8), f(8)
    model, feed = node_model(
        "GroupNorm", [x, gamma, beta], domain=MICROSOFT, groups=2, activation=0, channels_last=1
    )
    (found,) = InferenceSession(model).run(None, feed)
    other, other_feed = node_model(
        "GroupNormalization", [np.moveaxis(x, -1, 1), gamma, beta], opset=21, num_groups=2
    )
    (expected,) = run_onnxruntime(other, other_feed)
    np.testing.assert_allclose(found, np.moveaxis(expected, 1, -1), rtol=1e-4, atol=1e-5)


def test_what_group_query_attention_lacks_is_refused_by_name() -> None:
    inputs = [f(1, 1, 64), f(1, 1, 32), f(1, 1, 32), *CACHE]
    model, _ = node_model(
        "GroupQueryAttention", inputs, 3, domain=MICROSOFT, num_heads=4, kv_num_heads=2,
        qk_output=1,
    )  # fmt: skip
    with pytest.raises(TypeInferenceError, match="qk_output=1 is not supported"):
        InferenceSession(model)


def test_every_operator_of_the_domain_has_a_case() -> None:
    tested = {op_type for op_type, *_ in CASES.values()} | set(_OWN)
    tested |= {"GroupNorm", "BiasSplitGelu", "QLinearSoftmax", "QLinearWhere"}
    tested |= {"Tokenizer"}  # of texts: test_text.py
    assert {name for domain, name in operators() if domain == MICROSOFT} <= tested


def test_bias_split_gelu_gates_one_half_by_the_other() -> None:
    x, bias = f(2, 8), f(8)
    model, feed = node_model("BiasSplitGelu", [x, bias], domain=MICROSOFT)
    (found,) = InferenceSession(model).run(None, feed)
    gelu, gelu_feed = node_model("Gelu", [(x + bias)[:, 4:]], domain=MICROSOFT)
    (gate,) = run_onnxruntime(gelu, gelu_feed)
    np.testing.assert_allclose(found, (x + bias)[:, :4] * gate, rtol=1e-4, atol=1e-6)


def test_quantised_softmax_and_where_follow_their_real_forms() -> None:
    x = u8(5, 3)
    inputs = [x, s(0.05), b(128), s(1 / 256), b(0)]
    model, feed = node_model("QLinearSoftmax", inputs, domain=MICROSOFT, opset=13)
    model.graph.node[0].attribute.append(helper.make_attribute("opset", 13))
    (found,) = InferenceSession(model).run(None, feed)
    real = np.exp((x - 128.0) * 0.05)
    expected = np.rint(real / real.sum(axis=1, keepdims=True) * 256)
    assert np.abs(found - expected).max() <= 1
    condition = np.array([[True, False, True]])
    pair = [condition, u8(2, 3), s(0.1), b(3), u8(2, 3), s(0.1), b(3), s(0.1), b(3)]
    model, feed = node_model("QLinearWhere", pair, domain=MICROSOFT)
    (found,) = InferenceSession(model).run(None, feed)
    np.testing.assert_array_equal(found, np.where(condition, pair[1], pair[4]))
