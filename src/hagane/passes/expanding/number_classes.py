"""Classifiers of texts give the numbers of their classes, and the texts are looked up."""

from __future__ import annotations

import onnx_ir as ir

from hagane.ops.builder import op
from hagane.ops.inference import GraphTypes
from hagane.ops.values import strings
from hagane.passes.edit import building, given, name_of, remove_unread, replace_value

_DOMAIN = "ai.onnx.ml"
# The attribute that lists classes by number.
_NUMBERS = {
    "LinearClassifier": "classlabels_ints",
    "SVMClassifier": "classlabels_ints",
    "TreeEnsembleClassifier": "classlabels_int64s",
}
_TEXTS = "classlabels_strings"


def number_classes(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Let classifiers of texts give numbers, of which a Gather makes texts; return where.

    Kernels compute numbers alone. The labels of a classifier stand at the place of the class in its
    list, whatever they are.
    """
    changed: list[str] = []
    for node in list(graph):
        listed = _NUMBERS.get(node.op_type) if node.domain == _DOMAIN else None
        attributes = given(node)
        if listed is None or _TEXTS not in attributes:
            continue
        texts = list(attributes.pop(_TEXTS).as_strings())
        if not texts:
            continue
        changed.append(name_of(node))
        with building(graph, types, node, name_of(node)):
            numbers, scores = op(
                node.op_type,
                *node.inputs,
                outputs=2,
                domain=_DOMAIN,
                **{**attributes, listed: list(range(len(texts)))},
            )
            labels = op("Gather", strings(texts), numbers)
        for old, new in zip(node.outputs, (labels, scores), strict=False):
            if old in types.types:
                types.types[new] = types.types[old]
            replace_value(graph, types, old, new)
        remove_unread(graph, node)
    return changed
