"""Classifiers of texts run on kernels, and their texts are looked up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests.native.models import draw, model, session
from tests.oracle import assert_agrees
from tests.passes.harness import applied

ML = "ai.onnx.ml"
TREE = {
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [1, 0, 0],
    "nodes_values": [0.1, 0.0, 0.0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
    "class_treeids": [0, 0, 0],
    "class_nodeids": [1, 2, 2],
    "class_ids": [0, 1, 2],
    "class_weights": [1.0, 0.7, 0.3],
}
LINEAR = {"coefficients": [0.3, -0.2, 0.5, 0.1, -0.4, 0.2, 0.9, 0.1, -0.7], "intercepts": [0.0] * 3}
VECTORS = {
    "coefficients": [0.5, -0.25, 1.0, -1.0, 0.75, -0.5],
    "support_vectors": [0.1, 0.2, 0.3, -0.4, 0.5, -0.6, 0.7, 0.8, -0.9],
    "vectors_per_class": [1, 1, 1],
    "rho": [0.1, 0.0, -0.1],
    "kernel_type": "LINEAR",
    "kernel_params": [0.5, 0.1, 3.0],
}
KINDS: dict[str, dict[str, Any]] = {
    "LinearClassifier": LINEAR,
    "SVMClassifier": VECTORS,
    "TreeEnsembleClassifier": TREE,
}


@pytest.mark.parametrize("kind", list(KINDS))
def test_classifiers_of_texts_are_native(kind: str) -> None:
    classes, outputs = ["left", "", "right"], ["label", "y"]
    classifier = helper.make_node(
        kind, ["x"], outputs, domain=ML, classlabels_strings=classes, **KINDS[kind]
    )
    feed = {"x": draw((9, 3))}
    proto = model([classifier], feed, outputs=outputs, shapes={"x": ("n", 3)})
    proto.opset_import.append(helper.make_opsetid(ML, 3))
    counts, left = applied(proto, feed)
    assert counts["number_classes"] == 1
    assert left == [kind, "Gather"]
    assert_agrees(proto, feed)
    made = session(proto)
    (part,) = made._programs.general.parts("native")
    assert [each.op_type for each in part.nodes] == [kind]


def test_classifiers_of_numbers_stay() -> None:
    made = helper.make_node(
        "LinearClassifier", ["x"], ["label", "y"], domain=ML, classlabels_ints=[1, 2, 3], **LINEAR
    )
    feed = {"x": draw((2, 3))}
    proto = model([made], feed, outputs=["label", "y"])
    proto.opset_import.append(helper.make_opsetid(ML, 3))
    counts, left = applied(proto, feed)
    assert "number_classes" not in counts
    assert left == ["LinearClassifier"]
    assert np.asarray(session(proto).run(None, feed)[0]).dtype == np.int64
