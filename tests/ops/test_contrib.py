"""Operators of com.microsoft, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import helper

from hagane.errors import InvalidFeed, KernelError, TypeInferenceError
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
from tests.ops.contrib_cases import BEAMS, CACHE, CASES, CONSTANT, GENERATOR, b, f, i8, i32, s, u8
from tests.oracle import MICROSOFT, assert_agrees, assert_node_agrees, node_model, run_onnxruntime

_generator = GENERATOR  # each test begins the streams of its module

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
    # (For sparse operands it has one: tests/surface/test_written_files.py.)
    "SparseToDenseMatMul": (
        [f(3, 4), f(5, 4)],
        {"alpha": 0.5, "transB": 1},
        lambda a, b: np.float32(0.5) * (a @ b.T),
    ),
    "BiasAdd": ([f(2, 3, 4), f(4), f(2, 3, 4)], {}, lambda x, bias, skip: x + bias + skip),
}


@pytest.mark.parametrize("name", CASES)
def test_an_operator_agrees_with_onnxruntime(name: str) -> None:
    op_type, inputs, outputs, settings = CASES[name]
    settings = {"domain": MICROSOFT, **settings}
    assert_node_agrees(op_type, inputs, outputs, **settings)


_TOLERANCES = ("rtol", "atol", "steps", "constants")


@pytest.mark.parametrize("name", CASES)
def test_an_operator_runs_on_kernels_or_says_why_not(name: str) -> None:
    op_type, inputs, outputs, settings = CASES[name]
    settings = {"domain": MICROSOFT, "constants": CONSTANT.get(name, ()), **settings}
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
    if op_type == "GroupQueryAttention":  # but for norms, which have a test of their own
        pytest.skip("its caches are filled to another length in each sequence")
    assert found is not None
    for left, right in zip(found, op(inputs, attributes, outputs), strict=True):
        assert isinstance(right, np.ndarray)
        if right.dtype.kind in "iu":
            assert np.abs(left.astype(np.int64) - right.astype(np.int64)).max() <= 1
        else:
            np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-5)


HALVES = ["BiasGelu", "FastGelu", "QuickGelu", "FusedMatMul", "SkipLayerNormalization",
          "MultiHeadAttention", "MoE of gates"]  # fmt: skip


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
    constants = CONSTANT.get(name, ())
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


@pytest.mark.parametrize(
    ("operator", "inputs", "attributes", "message"),
    [
        ("MatMulNBits", [f(2, 32), u8(8, 2, 8), f(16)], {"K": 32, "N": 8, "block_size": 0},
         "a positive block_size=0"),
        ("MatMulNBits", [f(2, 32), u8(8, 2, 8), f(16)],
         {"K": 32, "N": 8, "block_size": 16, "bits": 9}, "got bits=9"),
        ("MultiHeadAttention", [f(2, 4, 8), f(2, 4, 8)], {"num_heads": 2}, "expected 'value'"),
        ("MultiHeadAttention", [f(2, 4, 8)], {"num_heads": 0}, "got num_heads=0"),
        ("MultiHeadAttention", [*CASES["MultiHeadAttention in a cache of beams"][1][:8], None,
         BEAMS], {"num_heads": 2}, "'past_sequence_length' beside 'cache_indirection'"),
        ("DecoderMaskedMultiHeadAttention", [f(2, 1, 8), f(2, 1, 8), f(2, 1, 8)],
         {"num_heads": 2}, "expected 'past_key', 'past_value' and 'past_sequence_length'"),
        ("QLinearConcat", [s(0.5), b(3), i8(2, 3), s(0.5), b(3)], {"axis": 0},
         "expected UINT8 as input 2"),
        ("QGemm", [*CASES["QGemm"][1][:7], None, b(100)], {}, "both 'y_scale' and 'y_zero_point'"),
    ],
)  # fmt: skip
def test_attributes_that_make_no_operation_are_refused(
    operator: str, inputs: list[np.ndarray | None], attributes: dict[str, Any], message: str
) -> None:
    model, _ = node_model(operator, inputs, domain=MICROSOFT, **attributes)
    with pytest.raises(TypeInferenceError, match=message):
        InferenceSession(model)


@pytest.mark.parametrize(("axis", "p", "message"), [(2, 2, "axis=2"), (0, 3, "got p=3")])
def test_a_norm_is_of_an_axis_that_there_is(axis: int, p: int, message: str) -> None:
    model, _ = node_model("LpNormalization", [f(3, 4)], axis=axis, p=p)
    with pytest.raises(TypeInferenceError, match=message):
        InferenceSession(model)


def test_types_that_a_composition_lacks_run_on_the_operators_own_kernel() -> None:
    x, scale = u8(3, 4), s(0.5, np.float64)
    model, feed = node_model("DequantizeLinear", [x, scale, b(3)], domain=MICROSOFT, opset=23)
    for engine in ("native", "reference"):
        (found,) = session(model, engine=engine).run(None, feed)
        np.testing.assert_array_equal(found, (x - 3.0) * 0.5)


@pytest.mark.parametrize("operator", ["Attention", "MultiHeadAttention"])
def test_a_negative_mask_hides_a_key(operator: str) -> None:
    given: list[np.ndarray | None] = [f(2, 4, 8), f(8, 24), f(24)]
    if operator == "MultiHeadAttention":
        given = [f(2, 4, 8), f(2, 4, 8), f(2, 4, 8), None]
    mask = i32([1, -1, 2, 0], [1, 1, -7, 3])
    assert_node_agrees(operator, [*given, mask], domain=MICROSOFT, num_heads=2)


# Case, input, its shape, what is said of fixed sizes; of open ones a run says which two differ.
_MISFITS = [
    ("Attention", 2, (1,), r"expected 'bias' of the shape \[24\]"),
    ("Attention masked", 3, (2, 1), r"expected 'mask_index' of the shape \[2, 4\] or \[2, 4, 4\]"),
    (
        "Attention with a past",
        4,
        (3, 2, 2, 3, 4),
        r"expected 'past' of the shape \[2, 2, 2, \?, 4\]",
    ),
    ("MultiHeadAttention masked", 4, (2, 3), "expected 'key_padding_mask' of the shape"),
    ("RotaryEmbedding", 0, (2, 3, 15), "expected heads of one size"),
    ("RotaryEmbedding", 3, (9, 4), r"expected 'sin_cache' of the shape \[8, 4\]"),
    ("SkipLayerNormalization", 3, (1,), r"expected 'beta' of the shape \[8\]"),
    ("EmbedLayerNormalization", 7, (2, 1), r"expected 'mask' of the shape \[2, 4\]"),
    ("BiasGelu", 1, (1,), "expected one bias an element of the last axis"),
    ("DynamicQuantizeMatMul by column", 2, (1,), None),
    ("QGemm", 6, (7,), "expected 'C' to broadcast"),
    ("MatMulNBits", 2, (17,), "expected 16 elements of 'scales', got 17"),
    ("GatherBlockQuantized", 2, (8, 3), r"expected 'scales' of the shape \[8, 2\]"),
    ("FusedConv with a sum", 3, (1, 4, 6, 1), "expected the sum to have the shape of the result"),
]


@pytest.mark.parametrize(("name", "number", "shape", "message"), _MISFITS)
def test_sizes_that_do_not_fit_an_operator_are_refused(
    name: str, number: int, shape: tuple[int, ...], message: str | None
) -> None:
    op_type, inputs, outputs, settings = CASES[name]
    made = {key: item for key, item in settings.items() if key not in (*_TOLERANCES,)}
    given = inputs[number]
    assert given is not None
    wrong = np.resize(given, shape)
    changed = [*inputs[:number], wrong, *inputs[number + 1 :]]
    model, feed = node_model(op_type, changed, outputs, domain=MICROSOFT, **made)
    if message is None:
        assert_agrees(model, feed)
        return
    with pytest.raises(TypeInferenceError, match=message):
        InferenceSession(model)
    if name == "MatMulNBits":
        return
    for value in model.graph.input:  # of open sizes, each with a name of its own
        kind = value.type.tensor_type.elem_type
        names = [f"{value.name}_{axis}" for axis in range(feed[value.name].ndim)]
        value.CopyFrom(helper.make_tensor_value_info(value.name, kind, names))
    for engine in ("native", "reference"):
        opened = session(model, engine=engine)
        with pytest.raises((InvalidFeed, KernelError)):
            opened.run(None, feed)


@pytest.mark.parametrize("name", ["Attention", "Attention causal", "MultiHeadAttention masked"])
def test_attention_of_nothing_is_nothing(name: str) -> None:
    op_type, inputs, outputs, settings = CASES[name]
    empty = [x if x is None or len(x) != 2 else x[:0] for x in inputs]
    model, feed = node_model(op_type, empty, outputs, domain=MICROSOFT, **settings)
    for engine in ("native", "reference"):
        (found,) = session(model, engine=engine).run(None, feed)
        assert np.shape(found) == (0, 4, 8)


def test_embeddings_without_segments_have_the_first_one() -> None:
    _, inputs, outputs, settings = CASES["EmbedLayerNormalization"]
    given = [inputs[0], None, *inputs[2:]]
    assert_node_agrees("EmbedLayerNormalization", given, outputs, domain=MICROSOFT, **settings)


def test_causal_heads_see_as_many_keys_as_lie_before_them() -> None:
    inputs = [f(2, 5, 8), f(2, 4, 8), f(2, 4, 8)]
    more = {"num_heads": 2, "unidirectional": 1}
    assert_node_agrees("MultiHeadAttention", inputs, domain=MICROSOFT, **more)


@pytest.mark.parametrize("packed", [False, True])
def test_norms_of_queries_and_keys_come_before_their_rotation(packed: bool) -> None:
    """ONNX Runtime has them on GPUs alone: there they are SimplifiedLayerNormalization by head."""
    heads = f(2, 1, 64), f(2, 1, 32), f(2, 1, 32)
    caches = [f(2, 2, 5, 16), f(2, 2, 5, 16), i32(5, 4), np.array(6, np.int32), f(8, 8), f(8, 8)]
    weights = [f(16), f(16)]
    settings = {"domain": MICROSOFT, "num_heads": 4, "kv_num_heads": 2, "do_rotary": 1}
    query = [np.concatenate(heads, 2), None, None] if packed else list(heads)
    inputs = [*query, *caches, *[None] * 5, *weights]
    model, feed = node_model(
        "GroupQueryAttention", inputs, 3, k_norm_epsilon=0.25, qk_norm_epsilon=0.5, **settings
    )

    def normed(x: np.ndarray, weight: np.ndarray, epsilon: float) -> np.ndarray:
        rows = x.reshape(2, 1, -1, 16)
        root = np.sqrt((rows * rows).mean(axis=-1, keepdims=True) + np.float32(epsilon))
        return (rows / root * weight).reshape(x.shape)

    plain = [normed(heads[0], weights[0], 0.5), normed(heads[1], weights[1], 0.25), heads[2]]
    other, other_feed = node_model("GroupQueryAttention", [*plain, *caches], 3, **settings)
    wanted = run_onnxruntime(other, other_feed)
    for engine in ("native", "reference"):
        made = session(model, engine=engine)
        for one, expected in zip(made.run(None, feed), wanted, strict=True):
            np.testing.assert_allclose(np.asarray(one), expected, rtol=1e-4, atol=1e-5)
    assert refused(session(model)) == {}


def test_a_flag_that_is_neither_no_nor_yes_is_refused() -> None:
    op_type, inputs, outputs, settings = CASES["Attention causal"]
    settings = {**settings, "unidirectional": 2}
    model, _ = node_model(op_type, inputs, outputs, domain=MICROSOFT, **settings)
    with pytest.raises(TypeInferenceError, match="expected unidirectional from 0 to 1, got 2"):
        InferenceSession(model)


def test_an_unknown_activation_is_refused_by_name() -> None:
    model, _ = node_model("FusedGemm", [f(3, 4), f(4, 5)], domain=MICROSOFT, activation="Swoosh")
    with pytest.raises(TypeInferenceError, match="activation to be one of .*, got 'Swoosh'"):
        InferenceSession(model)


def test_a_part_without_its_zero_point_is_refused_by_name() -> None:
    scale, zero, part = np.float32(0.5), np.uint8(1), np.zeros((2, 3), np.uint8)
    inputs = [scale, zero, part, scale, zero, part, scale]
    model, _ = node_model("QLinearConcat", list(map(np.asarray, inputs)), domain=MICROSOFT, axis=0)
    with pytest.raises(
        TypeInferenceError, match="expected data, scale and zero point of each part"
    ):
        InferenceSession(model)


@pytest.mark.parametrize("operator", ["Attention", "MultiHeadAttention"])
def test_no_score_outweighs_that_a_key_comes_later(operator: str) -> None:
    """A key behind a query stays hidden, whatever number hides padding."""
    hidden = i32([1, 1, 1, 1], [1, 1, 0, 0])
    given: list[np.ndarray | None] = [20 * f(2, 4, 8), f(8, 24), f(24), hidden]
    if operator == "MultiHeadAttention":
        given = [20 * f(2, 4, 8), f(2, 4, 8), f(2, 4, 8), None, hidden]
    more = {"num_heads": 2, "unidirectional": 1, "mask_filter_value": -5.0}
    assert_node_agrees(operator, given, domain=MICROSOFT, **more)


@pytest.mark.parametrize("ends", [[4, 2], [4, 3, 1, 0]])
def test_lengths_of_keys_may_lie_in_a_tensor_of_open_size(ends: list[int]) -> None:
    """With starts behind the ends or without, which only a run tells."""
    inputs = [f(2, 4, 8), f(8, 24), f(24), i32(*ends)]
    model, feed = node_model("Attention", inputs, domain=MICROSOFT, num_heads=2)
    for value in model.graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if value.name == model.graph.input[3].name:
                dim.dim_param = f"mask_{axis}"
    (want,) = run_onnxruntime(model, feed)
    for engine in ("native", "reference"):
        (found,) = session(model, engine=engine).run(None, feed)
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(1,), (3, 5), (1, 1), (1, 5), (4,)])
def test_positions_of_open_sizes_are_the_first_or_one_a_row(shape: tuple[int, ...]) -> None:
    """Others are refused, as ONNX Runtime does, and no memory beside them is read."""
    inputs = [f(3, 5, 24), np.full(shape, 3), f(40, 4), f(40, 4)]
    model, feed = node_model("RotaryEmbedding", inputs, domain=MICROSOFT)
    for axis, dim in enumerate(model.graph.input[1].type.tensor_type.shape.dim):
        dim.dim_param = f"p{axis}"
    sessions = [session(model, engine=engine) for engine in ("native", "reference")]
    if shape in ((1,), (3, 5)):
        (want,) = run_onnxruntime(model, feed)
        for each in sessions:
            np.testing.assert_allclose(each.run(None, feed)[0], want, rtol=1e-5, atol=1e-5)
        return
    with pytest.raises(Exception, match="ONNXRuntimeError"):
        run_onnxruntime(model, feed)
    for each in sessions:
        with pytest.raises((InvalidFeed, KernelError), match="RotaryEmbedding|cannot reshape"):
            each.run(None, feed)


@pytest.mark.parametrize("operator", ["RotaryEmbedding", "MRotaryEmbedding"])
def test_features_beside_whole_heads_are_refused_though_sizes_are_open(operator: str) -> None:
    """The last were left as they are by the reference kernel, whatever the sizes came from."""
    sections: dict[str, list[int]] = {}
    at = np.ones((2, 3), np.int64)
    if operator == "MRotaryEmbedding":
        at, sections = np.ones((3, 2, 3), np.int64), {"mrope_section": [2, 1, 1]}
    inputs = [f(2, 3, 15), at, f(8, 4), f(8, 4)]
    model, feed = node_model(operator, inputs, domain=MICROSOFT, **sections)
    for value in model.graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.dim_param = f"{value.name}_{axis}"
    for engine in ("native", "reference"):
        with pytest.raises(InvalidFeed, match="got 15 and 8"):
            session(model, engine=engine).run(None, feed)
    kernel = operators()[MICROSOFT, operator]
    with pytest.raises(ValueError, match="15 features are not heads of 8"):
        kernel(inputs, sections, 1)


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize(("filled", "total"), [(-5, 6), (6, 6), (2**31 - 1, 6), (5, -5)])
def test_caches_are_not_filled_beyond_their_room(filled: int, total: int, engine: str) -> None:
    inputs = [f(1, 1, 64), f(1, 1, 32), f(1, 1, 32), *CACHE[:2], i32(filled), i32(total)]
    model, feed = node_model("GroupQueryAttention", inputs, 3, domain=MICROSOFT, num_heads=4,
                             kv_num_heads=2)  # fmt: skip
    inputs[3] = inputs[4] = None  # no cache yet, and no room for one
    if total < 0:
        model, feed = node_model("GroupQueryAttention", inputs, 3, domain=MICROSOFT, num_heads=4,
                                 kv_num_heads=2)  # fmt: skip
    with pytest.raises(KernelError, match="expected 'seqlens_k' of 0 to"):
        session(model, engine=engine).run(None, feed)


@pytest.mark.parametrize("block", [-1, 2])
def test_weights_are_of_blocks_that_there_are(block: int) -> None:
    inputs = [f(2, 32), u8(4, 2, 8), f(4, 2), None, np.full(32, block, np.int32)]
    model, feed = node_model("MatMulNBits", inputs, domain=MICROSOFT, K=32, N=4, block_size=16)
    with pytest.raises(KernelError, match="expected blocks of 0 to 1 in 'g_idx'"):
        session(model).run(None, feed)
