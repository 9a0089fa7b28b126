"""Sequences of words are counted as sequences of numbers."""

from __future__ import annotations

import onnx_ir as ir

from hagane.ops.builder import op
from hagane.ops.inference import GraphTypes
from hagane.passes.edit import building, given, name_of, remove_unread, replace_value


def number_words(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Let TfIdfVectorizer of texts count numbers, which a LabelEncoder gives words; return where.

    Kernels compute numbers alone. Words that the pool lacks all get one number, which stands in no
    sequence of it.
    """
    changed: list[str] = []
    for node in list(graph):
        attributes = given(node) if node.op_type == "TfIdfVectorizer" and not node.domain else {}
        if "pool_strings" not in attributes:
            continue
        words = list(attributes.pop("pool_strings").as_strings())
        numbers = {word: number for number, word in enumerate(dict.fromkeys(words), 1)}
        if not numbers:
            continue
        changed.append(name_of(node))
        with building(graph, types, node, name_of(node)):
            found = op(
                "LabelEncoder",
                node.inputs[0],
                domain="ai.onnx.ml",
                keys_strings=list(numbers),
                values_int64s=list(numbers.values()),
                default_int64=0,
            )
            pool = [numbers[word] for word in words]
            made = op("TfIdfVectorizer", found, **{**attributes, "pool_int64s": pool})
        replace_value(graph, types, node.outputs[0], made)
        remove_unread(graph, node)
    return changed
