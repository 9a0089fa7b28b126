"""Words become numbers where kernels count their sequences."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from tests.native.models import refused, session
from tests.passes.harness import applied

POOL = ["the", "mon", "", "no", "mon", "mon", "ü", "a b", "the", "the", "mon", "ü"]
WORDS = np.array(["the", "mon", "ü", "the", "the", "mon", "no", "a b", "ü"], object)


@pytest.mark.parametrize(("least", "most", "skips"), [(1, 1, 0), (1, 2, 1), (2, 2, 3)])
def test_sequences_of_words_are_counted_as_numbers(least: int, most: int, skips: int) -> None:
    node = helper.make_node(
        "TfIdfVectorizer", ["x"], ["y"], mode="TFIDF", min_gram_length=least, max_gram_length=most,
        max_skip_count=skips, pool_strings=POOL, ngram_counts=[0, 4], ngram_indexes=list(range(8)),
        weights=[0.5, 2.0, 1.0, 3.0, 1.0, 0.25, 7.0, 1.5],
    )  # fmt: skip
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info("x", TensorProto.STRING, ["n", "words"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )  # fmt: skip
    proto = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 21)])
    feeds = [{"x": WORDS.reshape(shape)} for shape in ((3, 3), (1, 9), (9, 1))]
    counts, left = applied(proto, feeds[0])
    assert counts["number_words"] == 1
    assert left == ["LabelEncoder", "TfIdfVectorizer"]
    made = session(proto)
    assert refused(made).keys() == {"LabelEncoder"}
    peer = onnxruntime.InferenceSession(proto.SerializeToString())
    for feed in feeds:
        np.testing.assert_array_equal(made.run(None, feed)[0], peer.run(None, feed)[0])
