"""Cases of com.microsoft's operators: arrays, attributes, and how near results have to be."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.expert_cases import EXPERT_CONSTANTS, EXPERTS

GENERATOR = np.random.default_rng(0)


def f(*shape: int) -> np.ndarray:
    return GENERATOR.standard_normal(shape).astype(np.float32)


def u8(*shape: int) -> np.ndarray:
    return GENERATOR.integers(0, 255, shape).astype(np.uint8)


def i8(*shape: int) -> np.ndarray:
    # Of larger ones ONNX Runtime's sums of two products saturate on processors without VNNI.
    return GENERATOR.integers(-63, 64, shape).astype(np.int8)


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
# Which of two beams of two sequences holds each position of a cache of six.
BEAMS = np.array([[[0, 1, 1, 0, 0, 0], [1, 0, 1, 0, 0, 0]]] * 2, np.int32)
CACHE = [f(1, 2, 5, 16), f(1, 2, 5, 16), i32(5), np.array(6, np.int32)]
# Of ONNX's own domain, where it had it before opset 10.
EXPERIMENT: dict[str, Any] = {"domain": "", "opset": 8}

# name -> (operator, inputs, outputs, settings)
CASES: dict[str, tuple[str, list[np.ndarray | None], int, dict[str, Any]]] = {
    "MatMulInteger16": (
        "MatMulInteger16",
        [GENERATOR.integers(-999, 999, (2, 3, 5)).astype("h"),
         GENERATOR.integers(-999, 999, (5, 4)).astype("h")], 1, {},
    ),
    "MurmurHash3": ("MurmurHash3", [GENERATOR.integers(-(2**31), 2**31, 9).astype("i")], 1, {}),
    "MurmurHash3 of doubles": ("MurmurHash3", [GENERATOR.random((2, 5))], 1, {"seed": 7}),
    "MurmurHash3 with signs": (
        "MurmurHash3", [GENERATOR.integers(-(2**63), 2**63 - 1, 9)], 1,
        {"positive": 0, "seed": 3},
    ),
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
    **{
        f"FusedGemm and {name}": (
            "FusedGemm", [f(3, 4), f(4, 5), f(5)], 1, {"activation": name, **parameters},
        )
        for name, parameters in {
            "Elu": {"activation_alpha": 0.7},
            "ParametricSoftplus": {"activation_alpha": 0.5, "activation_beta": 2.0},
            "ScaledTanh": {"activation_alpha": 0.5, "activation_beta": 2.0},
            "Selu": {"activation_alpha": 1.5, "activation_gamma": 1.1},
            "Softplus": {},
            "Softsign": {},
            "ThresholdedRelu": {"activation_alpha": 0.3},
        }.items()
    },
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
    "MultiHeadAttention in a cache of beams": (
        "MultiHeadAttention",
        [f(4, 1, 8), f(4, 1, 8), f(4, 1, 8), f(24), None, f(1, 2, 1, 4), f(4, 2, 6, 4),
         f(4, 2, 6, 4), i32(3), BEAMS],
        4, {"num_heads": 2},
    ),
    "MultiHeadAttention of a prompt in a cache": (
        "MultiHeadAttention",
        [f(2, 3, 8), f(2, 3, 8), f(2, 3, 8), None, i32([1, 1, 1, 1], [0, 1, 1, 1]), None,
         f(2, 2, 6, 4), f(2, 2, 6, 4), np.array(1, np.int32)],
        3, {"num_heads": 2, "unidirectional": 1},
    ),
    "DecoderMaskedMultiHeadAttention packed": (
        "DecoderMaskedMultiHeadAttention",
        [f(4, 1, 24), None, None, i32([1, 1, 1, 1], [0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 1, 1]),
         None, f(4, 2, 6, 4), f(4, 2, 6, 4), i32(3), i32(2), BEAMS, f(24)],
        3, {"num_heads": 2, "past_present_share_buffer": 1},
    ),
    "DecoderMaskedMultiHeadAttention without beams": (
        "DecoderMaskedMultiHeadAttention",
        [f(2, 1, 8), f(2, 1, 8), f(2, 1, 8), None, f(2, 2, 1, 4), f(2, 2, 6, 4), f(2, 2, 6, 4),
         i32(3)],
        4, {"num_heads": 2, "past_present_share_buffer": 1, "output_qk": 1, "scale": 0.7},
    ),
    "DecoderMaskedMultiHeadAttention of another sequence": (
        "DecoderMaskedMultiHeadAttention",
        [f(2, 1, 8), f(2, 2, 5, 4), f(2, 2, 5, 4), i32([1, 1, 1, 1, 1], [1, 1, 0, 0, 0])],
        1, {"num_heads": 2},
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
    "QAttention": (
        "QAttention", [u8(2, 4, 8), i8(8, 24), f(24), s(0.02), s(0.01)], 1, {"num_heads": 2},
    ),
    "QAttention masked, by column": (
        "QAttention",
        [u8(2, 4, 8), i8(8, 24), f(24), s(0.02), np.full(24, 0.01, np.float32), MASK, b(120),
         np.arange(24, dtype=np.int8)],
        1, {"num_heads": 2},
    ),
    "QAttention with a past": (
        "QAttention",
        [u8(2, 4, 8), u8(8, 24), f(24), s(0.02), s(0.01), None, b(120), b(128), f(2, 2, 2, 3, 4)],
        2, {"num_heads": 2, "unidirectional": 1},
    ),
    "QEmbedLayerNormalization": (
        "QEmbedLayerNormalization",
        [i32([1, 2, 3, 0], [4, 1, 0, 2]), i32([0, 0, 1, 1], [0, 1, 1, 1]), u8(10, 8), u8(6, 8),
         u8(2, 8), u8(8), u8(8), MASK, s(0.02), s(0.03), s(0.04), s(0.01), s(0.02), b(120), b(128),
         b(90), b(100), b(128)],
        2, {"epsilon": 1e-5},
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
    "NhwcMaxPool of padding": (
        "NhwcMaxPool", [i8(2, 7, 5, 3) - np.int8(60)], 1,
        {"kernel_shape": [3, 2], "strides": [2, 3], "pads": [1, 0, 1, 1], "ceil_mode": 1},
    ),
    "QLinearConv with channels last": (
        "QLinearConv",
        [u8(2, 6, 5, 4), s(0.1), b(3), i8(6, 2, 3, 3), np.full(6, 0.2, np.float32),
         np.zeros(6, np.int8), s(0.3), b(7), i32(*range(6))], 1,
        {"channels_last": 1, "group": 2, "pads": [1, 1, 1, 1], "strides": [2, 1], "steps": 1},
    ),
    "GridSample": (
        "GridSample", [f(2, 3, 5, 6), f(2, 4, 3, 2)], 1,
        {"mode": "bicubic", "padding_mode": "reflection", "align_corners": 1},
    ),
    "Unique": ("Unique", [np.float32([3, 1, 2, 3, 1, 7])], 3, {}),
    **EXPERTS,
    "UnfoldTensor": ("UnfoldTensor", [f(4, 7, 3)], 1, {"size": 3, "step": 2, "dim": 1}),
    "NGramRepeatBlock": (
        "NGramRepeatBlock", [GENERATOR.integers(0, 3, (3, 8)), f(3, 4)], 1, {"ngram_size": 3},
    ),
    "NGramRepeatBlock of single tokens": (
        "NGramRepeatBlock", [GENERATOR.integers(0, 4, (3, 2)), f(3, 4)], 1, {"ngram_size": 1},
    ),
    "ScaledSiLU": ("ScaledSiLU", [f(2, 3, 4)], 1, {"alpha": 0.5}),
    "GatedAdd": ("GatedAdd", [f(2, 3, 4), f(2, 3, 4), f(2, 3, 1)], 1, {}),
    "GatedRMSNorm": ("GatedRMSNorm", [f(2, 3, 8), f(4), f(2, 3, 8)], 1, {}),
    "GatedRMSNorm of sigmoids": (
        "GatedRMSNorm", [f(2, 3, 8), f(8), f(2, 3, 8)], 1, {"activation": "sigmoid"},
    ),
    "BranchwiseRMSNorm": ("BranchwiseRMSNorm", [f(2, 3, 8), f(3, 8)], 1, {}),
    "BranchwiseRMSNorm side by side": (
        "BranchwiseRMSNorm", [f(2, 3, 8), f(4)], 1, {"num_branches": 2},
    ),
    "LinearAttentionGate": (
        "LinearAttentionGate", [f(2, 3, 4), f(4), f(4), f(2, 3, 4)], 2, {},
    ),
    "MRotaryEmbedding": (
        "MRotaryEmbedding",
        [f(2, 3, 5, 8), GENERATOR.integers(0, 16, (3, 2, 5)), f(16, 4), f(16, 4)], 1,
        {"mrope_section": [2, 1, 1]},
    ),
    "MRotaryEmbedding interleaved": (
        "MRotaryEmbedding",
        [f(2, 5, 24), GENERATOR.integers(0, 16, (3, 2, 5)), f(16, 3), f(16, 3)], 1,
        {"mrope_section": [1, 1, 1], "mrope_layout": 1, "interleaved": 1, "num_heads": 3,
         "rotary_embedding_dim": 6},
    ),
    "CausalConvWithState": (
        "CausalConvWithState", [f(2, 6, 5), f(6, 1, 4), f(6), f(2, 6, 3)], 2,
        {"activation": "silu"},
    ),
    "LinearAttention": (
        "LinearAttention",
        [f(2, 5, 16), f(2, 5, 8), f(2, 5, 12), f(2, 2, 4, 6), -np.abs(f(2, 5, 2)),
         np.abs(f(2, 5, 2))], 2,
        {"q_num_heads": 4, "kv_num_heads": 2},
    ),
    "Affine": ("Affine", [f(2, 3)], 1, {**EXPERIMENT, "alpha": 0.5, "beta": 2.0}),
    "Crop": ("Crop", [f(2, 3, 6, 7)], 1, {**EXPERIMENT, "border": [1, 2, 0, 1]}),
    "Crop to a size": (
        "Crop", [f(2, 3, 6, 7)], 1, {**EXPERIMENT, "border": [1, 2, 3, 1], "scale": [2, 3]},
    ),
    "DynamicSlice": (
        "DynamicSlice", [f(4, 3, 5), np.array([1, 2]), np.array([3, -1]), np.array([0, 2])], 1,
        EXPERIMENT,
    ),
    "ImageScaler": (
        "ImageScaler", [f(2, 3, 4, 4)], 1, {**EXPERIMENT, "bias": [1.0, 2.0, 3.0], "scale": 0.5},
    ),
    "ParametricSoftplus": (
        "ParametricSoftplus", [f(2, 3)], 1, {**EXPERIMENT, "alpha": 0.5, "beta": 2.0},
    ),
    "Scale": ("Scale", [f(2, 3)], 1, {**EXPERIMENT, "scale": 0.5}),
    "Range": ("Range", [s(1, np.int64), s(9, np.int64)], 1, {}),
    "Pad": ("Pad", [f(2, 3), np.array([1, 0, 0, 2]), s(3.0)], 1, {}),
    "GatherND": ("GatherND", [f(3, 4), np.array([[0, 1], [2, 2]])], 1, {}),
    "QuantizeLinear": ("QuantizeLinear", [f(2, 3), s(0.1), b(3)], 1, {}),
    "DequantizeLinear": ("DequantizeLinear", [u8(2, 3), s(0.1), b(3)], 1, {}),
    "MatMulBnb4": (
        "MatMulBnb4", [f(2, 32), u8(128), np.abs(f(16))], 1,
        {"K": 32, "N": 8, "block_size": 16, "quant_type": 0, "rtol": 1e-4, "atol": 1e-5},
    ),
    "MatMulBnb4 of quantiles": (
        "MatMulBnb4", [f(2, 32), u8(128), np.abs(f(4))], 1,
        {"K": 32, "N": 8, "block_size": 64, "quant_type": 1, "rtol": 1e-4, "atol": 1e-5},
    ),
}  # fmt: skip

# Weights, scales and positions that models have as constants.
CONSTANT = {
    **EXPERT_CONSTANTS,
    "MatMulBnb4": (1, 2), "MatMulBnb4 of quantiles": (1, 2),
    "MatMulNBits": (1, 2), "MatMulNBits with zero points": (1, 2, 3),
    "QLinearConv with channels last": (3, 4, 5, 8),
    "GatherBlockQuantized": (0, 2), "Range": (0, 1), "Pad": (1, 2),
    "FusedConv": (1, 2), "FusedConv with a sum": (1, 2), "FusedConv clipped": (1, 2),
    "FusedGemm": (1, 2), "QGemm": (3, 5), "DynamicQuantizeMatMul": (1, 3),
    "DynamicQuantizeMatMul by column": (1, 3), "MatMulIntegerToFloat": (1, 5),
}  # fmt: skip
