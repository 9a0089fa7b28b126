"""Operators of ai.onnx.ml, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import hagane
from hagane.errors import TypeInferenceError
from hagane.ops import operators
from tests.native.models import session as native_session
from tests.ops.ml_cases import FEATURES, GENERATOR, LEAVES, NODES, f, numbers
from tests.oracle import ML, assert_agrees, assert_node_agrees, node_model, run_onnxruntime

_generator = GENERATOR  # each test begins the streams of its module
TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")
POSITIVE, MIXED = [0.5, 0.2, 0.3, 0.25, 0.1], [0.5, -1.0, 2.0, 0.25, -1.0]


def rows_with_nan() -> np.ndarray:
    x = f(40, 3)
    x[::5, 0] = np.nan
    x[::7, 2] = np.nan
    return x


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_tree_regressors(aggregate: str, transform: str) -> None:
    assert_node_agrees(
        "TreeEnsembleRegressor", [rows_with_nan()], domain=ML, **NODES,
        target_ids=[0, 1, 0, 1, 0], target_nodeids=LEAVES[0], target_treeids=LEAVES[1],
        target_weights=[0.5, -1.0, 2.0, 0.25, 1.0], n_targets=2,
        aggregate_function=aggregate, post_transform=transform,
    )  # fmt: skip


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("weights", [POSITIVE, MIXED], ids=["positive", "mixed"])
@pytest.mark.parametrize("base", [None, [0.1]], ids=["", "base"])
@pytest.mark.parametrize("target", [0, 1])
def test_binary_tree_classifiers(
    target: int, base: list[float] | None, weights: list[float], transform: str
) -> None:
    extra = {} if base is None else {"base_values": base}
    labels = {"classlabels_strings": ["no", "yes"]} if target else {"classlabels_int64s": [3, 7]}
    assert_node_agrees(
        "TreeEnsembleClassifier", [rows_with_nan()], 2, domain=ML, **NODES,
        class_ids=[target] * 5, class_nodeids=LEAVES[0], class_treeids=LEAVES[1],
        class_weights=weights, post_transform=transform, **labels, **extra,
    )  # fmt: skip


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_tree_classifiers_of_three_classes(transform: str) -> None:
    assert_node_agrees(
        "TreeEnsembleClassifier", [rows_with_nan()], 2, domain=ML, **NODES,
        class_ids=[0, 1, 2, 1, 0], class_nodeids=LEAVES[0], class_treeids=LEAVES[1],
        class_weights=MIXED, classlabels_int64s=[3, 7, 9], post_transform=transform,
    )  # fmt: skip


def test_two_classes_with_scores_of_their_own_go_to_the_larger() -> None:
    # ONNX Runtime looks at the second score's sign alone; the specification asks for the top class.
    model, feed = node_model(
        "TreeEnsembleClassifier", [f(20, 3)], 2, domain=ML, **NODES,
        class_ids=[0, 1, 0, 1, 0], class_nodeids=LEAVES[0], class_treeids=LEAVES[1],
        class_weights=POSITIVE, classlabels_int64s=[3, 7],
    )  # fmt: skip
    labels, scores = hagane.InferenceSession(model).run(None, feed)
    np.testing.assert_array_equal(labels, np.array([3, 7])[scores.argmax(axis=1)])


def test_a_forest_whose_nodes_form_a_cycle_is_refused() -> None:
    nodes = {**NODES, "nodes_truenodeids": [1, 0, 0, 0, 0, 1, 0, 0]}
    model, feed = node_model(
        "TreeEnsembleRegressor", [np.full((1, 3), -1, np.float32)], domain=ML, **nodes,
        target_ids=[0] * 5, target_nodeids=LEAVES[0], target_treeids=LEAVES[1],
        target_weights=POSITIVE, n_targets=1,
    )  # fmt: skip
    session = hagane.InferenceSession(model)
    with pytest.raises(hagane.errors.KernelError, match="tree 0 has no single root"):
        session.run(None, feed)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_linear_models(transform: str) -> None:
    settings = {"domain": ML, "post_transform": transform}
    assert_node_agrees(
        "LinearClassifier", [f(10, 3)], 2, coefficients=numbers(9), intercepts=numbers(3),
        classlabels_ints=[1, 2, 5], **settings,
    )  # fmt: skip
    assert_node_agrees(
        "LinearClassifier", [f(10, 3)], 2, coefficients=numbers(3), intercepts=[0.1],
        classlabels_ints=[1, 2], **settings,
    )  # fmt: skip
    assert_node_agrees(
        "LinearClassifier", [f(10, 3)], 2, coefficients=numbers(6), intercepts=[0.1, -0.1],
        classlabels_strings=["a", "b"], **settings,
    )  # fmt: skip
    assert_node_agrees(
        "LinearRegressor", [f(10, 3)], coefficients=numbers(6), intercepts=[0.1, 0.2], targets=2,
        **settings,
    )  # fmt: skip


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_support_vector_machines(kernel: str, transform: str) -> None:
    settings = {"domain": ML, "kernel_type": kernel, "kernel_params": [0.5, 0.1, 3.0]}
    if transform == "NONE":
        assert_node_agrees(
            "SVMRegressor", [f(10, 3)], coefficients=numbers(4), support_vectors=numbers(12),
            n_supports=4, rho=[0.2], rtol=1e-3, atol=1e-4, **settings,
        )  # fmt: skip
    for probabilities in (False, True):
        pair = {"prob_a": [-0.5], "prob_b": [0.1]} if probabilities else {}
        assert_node_agrees(
            "SVMClassifier", [f(10, 3)], 2, coefficients=numbers(4), support_vectors=numbers(12),
            vectors_per_class=[2, 2], rho=[0.2], classlabels_ints=[1, 2],
            post_transform=transform, rtol=1e-3, atol=1e-4, **pair, **settings,
        )  # fmt: skip
        three = {"prob_a": [-0.5] * 3, "prob_b": [0.1] * 3} if probabilities else {}
        # Coupling three probabilities iterates until changes fall below 0.005 / 3.
        tolerance = 5e-3 if probabilities else 1e-4
        assert_node_agrees(
            "SVMClassifier", [f(10, 3)], 2, coefficients=numbers(12), support_vectors=numbers(18),
            vectors_per_class=[2, 2, 2], rho=[0.2, 0.1, -0.1], classlabels_ints=[1, 2, 5],
            post_transform=transform, rtol=1e-3, atol=tolerance, **three, **settings,
        )  # fmt: skip


@pytest.mark.parametrize("name", FEATURES)
def test_feature_operators(name: str) -> None:
    op_type, inputs, attributes = FEATURES[name]
    model, feed = node_model(op_type, inputs, domain=ML, **attributes)
    if op_type == "ZipMap":
        (maps,) = hagane.InferenceSession(model).run(None, feed)
        keys = attributes.get("classlabels_int64s") or attributes["classlabels_strings"]
        assert [list(item) for item in maps] == [keys] * 3
        np.testing.assert_allclose([list(item.values()) for item in maps], inputs[0])
        return
    assert_agrees(model, feed)


def test_maps_go_in_and_vectors_come_out() -> None:
    import onnx
    from onnx import TensorProto, helper

    key_value = helper.make_map_type_proto(
        TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    )
    graph = helper.make_graph(
        [
            helper.make_node(
                "DictVectorizer", ["x"], ["y"], domain=ML, string_vocabulary=["a", "b", "c"]
            )
        ],
        "maps",
        [helper.make_value_info("x", key_value)],
        [onnx.ValueInfoProto(name="y")],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(ML, 3)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    (y,) = hagane.InferenceSession(model).run(None, {"x": {"c": 3.0, "a": 1.0}})
    np.testing.assert_array_equal(y, [[1, 0, 3]])


def test_every_operator_of_the_domain_is_named_here() -> None:
    tested = {op_type for op_type, *_ in FEATURES.values()}
    tested |= {"TreeEnsembleClassifier", "TreeEnsembleRegressor", "LinearClassifier"}
    tested |= {"LinearRegressor", "SVMClassifier", "SVMRegressor", "DictVectorizer"}
    # TreeEnsemble is among ONNX's own cases; ONNX has none for CastMap.
    tested |= {"TreeEnsemble", "CastMap"}
    assert {name for domain, name in operators() if domain == ML} == tested


def test_cast_map_orders_by_key_and_fills_gaps() -> None:
    op = operators()[ML, "CastMap"]
    values = {3: 1.5, 1: 0.5}
    (dense,) = op([values], {"cast_to": "TO_FLOAT", "map_form": "DENSE"}, 1)
    np.testing.assert_array_equal(dense, np.float32([[0.5, 1.5]]))
    (sparse,) = op([values], {"cast_to": "TO_INT64", "map_form": "SPARSE", "max_map": 4}, 1)
    np.testing.assert_array_equal(sparse, [[0, 0, 0, 1]])


def test_each_of_several_label_encoders_has_its_own_table() -> None:
    encoders = [
        helper.make_node(
            "LabelEncoder", ["x"], [f"y{n}"], domain="ai.onnx.ml",
            keys_int64s=[1, 2, 3 + n], values_floats=[n + 0.5, -float(n), 7.0 * n],
        )
        for n in range(12)
    ]  # fmt: skip
    graph = helper.make_graph(
        encoders,
        "tables",
        [helper.make_tensor_value_info("x", TensorProto.INT64, ["n"])],
        [helper.make_tensor_value_info(f"y{n}", TensorProto.FLOAT, ["n"]) for n in range(12)],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    got = hagane.InferenceSession(model).run(None, {"x": np.array([1, 2, 14, 3])})
    for n, found in enumerate(got):
        last = [7.0 * n if 3 + n == x else 0.0 for x in (14, 3)]
        np.testing.assert_array_equal(found, np.array([n + 0.5, -float(n), *last], np.float32))


@pytest.mark.parametrize("operator", ["LinearRegressor", "LinearClassifier", "SVMRegressor"])
def test_a_model_without_coefficients_is_refused_by_name(operator: str) -> None:
    outputs = 2 if operator == "LinearClassifier" else 1
    model, _ = node_model(operator, [f(5, 3)], outputs, domain=ML)
    with pytest.raises(TypeInferenceError, match="expected the attribute 'coefficients'"):
        hagane.InferenceSession(model)


def test_coefficients_of_another_number_of_features_are_refused() -> None:
    model, feed = node_model("LinearRegressor", [f(5, 3)], domain=ML, coefficients=numbers(2))
    session = hagane.InferenceSession(model)
    with pytest.raises(hagane.errors.KernelError, match="LinearRegressor 'node' failed"):
        session.run(None, feed)


def test_coefficients_beyond_the_scores_are_passed_over() -> None:
    more = {"coefficients": numbers(9), "intercepts": [0.1, -0.2, 0.3]}
    assert_node_agrees("LinearClassifier", [f(5, 2)], 2, domain=ML, classlabels_ints=[4, 5, 6],
                       **more)  # fmt: skip


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
def test_a_score_of_classes_without_labels_stays_one(transform: str) -> None:
    more = {"coefficients": numbers(3), "intercepts": [0.2], "post_transform": transform}
    assert_node_agrees("LinearClassifier", [f(5, 3)], 2, domain=ML, **more)


@pytest.mark.parametrize("values", [{"values_strings": ["a", "b"]}, {"values_int64s": [7, 8]}])
@pytest.mark.parametrize("keys", [{"keys_int64s": [1, 2]}, {"keys_floats": [1.0, 2.0]}])
def test_a_default_tensor_stands_for_missing_keys_of_any_values(
    keys: dict[str, Any], values: dict[str, Any]
) -> None:
    text = "values_strings" in values
    kind, default = (TensorProto.STRING, [b"?"]) if text else (TensorProto.INT64, [42])
    x = np.array([2, 9, 1], np.int64 if "keys_int64s" in keys else np.float32)
    settings = {"default_tensor": helper.make_tensor("d", kind, [1], default), **keys, **values}
    model, feed = node_model("LabelEncoder", [x], domain=ML, ml_opset=4, **settings)
    for engine in ("native", "reference"):
        (found,) = native_session(model, engine=engine).run(None, feed)
        assert list(np.asarray(found)) == (["b", "?", "a"] if text else [8, 42, 7])
    settings["default_tensor"] = helper.make_tensor("d", TensorProto.FLOAT, [1], [0.5])
    model, _ = node_model("LabelEncoder", [x], domain=ML, ml_opset=4, **settings)
    with pytest.raises(TypeInferenceError, match="as default_tensor, which stands for keys"):
        hagane.InferenceSession(model)


@pytest.mark.parametrize("kind", ["int64", "float"])
def test_the_first_of_equal_keys_counts(kind: str) -> None:
    x = np.array([2, 3, 1, 9, 3], np.int64 if kind == "int64" else np.float32)
    keys = {"keys_int64s": [3, 2, 3, 2]} if kind == "int64" else {"keys_floats": [3.0, 2, 3, 2]}
    values = [0.5, 0.6, 0.7, 0.8]
    assert_node_agrees("LabelEncoder", [x], domain=ML, values_floats=values, **keys)
    model, feed = node_model("LabelEncoder", [x], domain=ML, values_floats=values, **keys)
    for engine in ("native", "reference"):
        (found,) = native_session(model, engine=engine).run(None, feed)
        np.testing.assert_allclose(found, [0.6, 0.5, 0, 0, 0.5], rtol=1e-6)


@pytest.mark.parametrize("wrong", [{"target_ids": [0, 1, 0, 1, 2]}, {"nodes_featureids": [7] * 8},
                                   {"nodes_featureids": [-1] * 8}])  # fmt: skip
def test_a_forest_beyond_its_targets_or_features_is_refused(wrong: dict[str, Any]) -> None:
    leaves = {"target_ids": [0, 1, 0, 1, 0], "target_weights": MIXED, "n_targets": 2}
    model, feed = node_model(
        "TreeEnsembleRegressor", [f(9, 3)], domain=ML, target_nodeids=LEAVES[0],
        target_treeids=LEAVES[1], **{**NODES, **leaves, **wrong},
    )  # fmt: skip
    for engine in ("native", "reference"):
        with pytest.raises(hagane.errors.KernelError, match="TreeEnsembleRegressor 'node' failed"):
            native_session(model, engine=engine).run(None, feed)


@pytest.mark.parametrize("widths", [[-1, 4], [2], [2, 4, 1]])
def test_features_of_another_number_or_of_less_than_none_are_refused(widths: list[int]) -> None:
    parts = [np.zeros((3, 2), np.float32), np.zeros((3, 4), np.float32)]
    model, _ = node_model("FeatureVectorizer", parts, domain=ML, inputdimensions=widths)
    with pytest.raises(TypeInferenceError, match="expected inputdimensions of 2 inputs"):
        hagane.InferenceSession(model)


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("transform", ["LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"])
def test_regressors_of_one_score_apply_the_transforms_that_onnx_runtime_applies(
    transform: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAGANE_ENGINE", engine)
    settings = {"domain": ML, "post_transform": transform}
    x = np.linspace(-0.4, 0.4, 12, dtype=np.float32).reshape(4, 3)
    for operator, attributes in (
        ("LinearRegressor", {"coefficients": [0.1, 0.2, -0.1], "intercepts": [0.4]}),
        (
            "SVMRegressor",
            {
                "coefficients": [0.3, -0.1, 0.2], "rho": [0.4], "kernel_type": "LINEAR",
                "kernel_params": [0.5, 0.1, 3.0],
            },
        ),
        (
            "TreeEnsembleRegressor",
            {
                **NODES, "target_ids": [0] * 5, "target_nodeids": LEAVES[0],
                "target_treeids": LEAVES[1], "target_weights": POSITIVE, "n_targets": 1,
            },
        ),
    ):  # fmt: skip
        model, feed = node_model(operator, [x], **attributes, **settings)
        (expected,) = run_onnxruntime(model, feed)
        (found,) = hagane.InferenceSession(model).run(None, feed)
        np.testing.assert_allclose(found, expected, 1e-4, 1e-6)
