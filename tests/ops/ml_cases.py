"""Cases of ai.onnx.ml's operators: arrays and attributes."""

from __future__ import annotations

from typing import Any

import numpy as np

GENERATOR = np.random.default_rng(0)


def f(*shape: int) -> np.ndarray:
    return GENERATOR.standard_normal(shape).astype(np.float32)


def numbers(count: int) -> list[float]:
    return [float(v) for v in f(count)]


# Two trees: a root with an inner node and three leaves; a root with two leaves.
NODES: dict[str, Any] = {
    "nodes_treeids": [0, 0, 0, 0, 0, 1, 1, 1],
    "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
    "nodes_featureids": [0, 1, 0, 0, 0, 2, 0, 0],
    "nodes_values": [0.1, -0.2, 0, 0, 0, 0.3, 0, 0],
    "nodes_modes": [
        "BRANCH_LEQ", "BRANCH_LT", "LEAF", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF",
    ],
    "nodes_truenodeids": [1, 2, 0, 0, 0, 1, 0, 0],
    "nodes_falsenodeids": [4, 3, 0, 0, 0, 2, 0, 0],
    "nodes_missing_value_tracks_true": [1, 0, 0, 0, 0, 1, 0, 0],
}  # fmt: skip
LEAVES = ([2, 3, 4, 1, 2], [0, 0, 0, 1, 1])

FEATURES: dict[str, tuple[str, list[np.ndarray], dict[str, Any]]] = {
    "Normalizer MAX": ("Normalizer", [f(3, 4)], {"norm": "MAX"}),
    "Normalizer L1": ("Normalizer", [f(3, 4)], {"norm": "L1"}),
    "Normalizer L2": ("Normalizer", [f(3, 4)], {"norm": "L2"}),
    "Scaler": ("Scaler", [f(3, 4)], {"offset": [0.1] * 4, "scale": [2.0] * 4}),
    "Scaler of integers": (
        "Scaler", [np.arange(8).reshape(2, 4)], {"offset": [0.5], "scale": [2.0]},
    ),
    "Imputer": (
        "Imputer", [np.float32([[np.nan, 1, 2]])],
        {"imputed_value_floats": [9.0, 8.0, 7.0], "replaced_value_float": float("nan")},
    ),
    "FeatureVectorizer of three axes": (
        "FeatureVectorizer", [f(3, 2, 2), f(3, 4)], {"inputdimensions": [4, 4]},
    ),
    "Binarizer": ("Binarizer", [f(3, 4)], {"threshold": 0.2}),
    "FeatureVectorizer": (
        "FeatureVectorizer", [f(3, 2), f(3, 4)], {"inputdimensions": [2, 4]},
    ),
    "OneHotEncoder": ("OneHotEncoder", [np.array([1, 2, 9, 3])], {"cats_int64s": [1, 2, 3]}),
    "LabelEncoder": (
        "LabelEncoder", [np.array([1, 2, 9, 3])],
        {"keys_int64s": [1, 2, 3], "values_floats": [0.5, 0.6, 0.7]},
    ),
    "LabelEncoder to text": (
        "LabelEncoder", [np.array([1, 2, 9])],
        {"keys_int64s": [1, 2], "values_strings": ["a", "b"], "default_string": "?"},
    ),
    "CategoryMapper": (
        "CategoryMapper", [np.array([1, 2, 9])],
        {"cats_int64s": [1, 2], "cats_strings": ["a", "b"]},
    ),
    "ZipMap": ("ZipMap", [f(3, 2)], {"classlabels_int64s": [4, 5]}),
    "ZipMap of text": ("ZipMap", [f(3, 2)], {"classlabels_strings": ["a", "b"]}),
    "ArrayFeatureExtractor": ("ArrayFeatureExtractor", [f(3, 4), np.array([[0, 2]])], {}),
}  # fmt: skip

_FOREST = {
    "class_ids": [0, 1, 2, 1, 0], "class_nodeids": LEAVES[0], "class_treeids": LEAVES[1],
    "class_weights": [0.5, -1.0, 2.0, 0.25, -1.0], **NODES,
}  # fmt: skip
_SUMS = {
    "target_ids": [0, 1, 0, 1, 0], "target_nodeids": LEAVES[0], "target_treeids": LEAVES[1],
    "target_weights": [0.5, -1.0, 2.0, 0.25, 1.0], "n_targets": 2, **NODES,
}  # fmt: skip
_VECTORS = {
    "coefficients": numbers(12), "support_vectors": numbers(18), "vectors_per_class": [2, 2, 2],
    "rho": [0.2, 0.1, -0.1], "classlabels_ints": [1, 2, 5], "kernel_params": [0.5, 0.1, 3.0],
}  # fmt: skip

# Learned ones: name -> (operator, inputs, outputs, attributes)
MODELS: dict[str, tuple[str, list[np.ndarray], int, dict[str, Any]]] = {
    "TreeEnsembleRegressor": ("TreeEnsembleRegressor", [f(9, 3)], 1, _SUMS),
    "TreeEnsembleRegressor MAX": (
        "TreeEnsembleRegressor", [f(9, 3)], 1, {**_SUMS, "aggregate_function": "MAX"},
    ),
    "TreeEnsembleClassifier": (
        "TreeEnsembleClassifier", [f(9, 3)], 2, {**_FOREST, "classlabels_int64s": [3, 7, 9]},
    ),
    "TreeEnsembleClassifier of text": (
        "TreeEnsembleClassifier", [f(9, 3)], 2,
        {**_FOREST, "classlabels_strings": ["a", "b", "c"], "post_transform": "SOFTMAX"},
    ),
    "LinearClassifier": (
        "LinearClassifier", [f(5, 3)], 2,
        {"coefficients": numbers(9), "intercepts": numbers(3), "classlabels_ints": [1, 2, 5],
         "post_transform": "SOFTMAX"},
    ),
    "LinearRegressor": (
        "LinearRegressor", [f(5, 3)], 1,
        {"coefficients": numbers(6), "intercepts": [0.1, 0.2], "targets": 2},
    ),
    "SVMRegressor": (
        "SVMRegressor", [f(5, 3)], 1,
        {"coefficients": numbers(4), "support_vectors": numbers(12), "n_supports": 4,
         "rho": [0.2], "kernel_type": "RBF", "kernel_params": [0.5, 0.1, 3.0]},
    ),
    "SVMClassifier LINEAR": (
        "SVMClassifier", [f(5, 3)], 2, {**_VECTORS, "kernel_type": "LINEAR"},
    ),
    "SVMClassifier POLY": ("SVMClassifier", [f(5, 3)], 2, {**_VECTORS, "kernel_type": "POLY"}),
}  # fmt: skip
