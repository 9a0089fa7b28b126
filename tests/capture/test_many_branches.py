"""Branches one behind the other, whose numbers are joined again and again."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

import hagane
from hagane.graph.walk import all_nodes


def labelled(x):
    """Number the connected runs of positive elements from the top left."""
    labels, count = np.zeros(x.shape, np.int64), 0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > 0:
                up = labels[i - 1, j] if i > 0 else 0
                left = labels[i, j - 1] if j > 0 else 0
                if up == 0 and left == 0:
                    count += 1
                    labels[i, j] = count
                else:
                    labels[i, j] = max(up, left)
    return labels, count


@pytest.mark.long
def test_nodes_and_time_grow_with_the_branches() -> None:
    """Each join doubles the formula of a number: formulas, texts and values of them must not."""
    nodes = []
    for size in (3, 6):
        model = hagane.capture(labelled, f"float32[{size}, {size}]")
        nodes.append(sum(1 for _ in all_nodes(model.graph)))
        session = hagane.InferenceSession(ir.to_proto(model).SerializeToString())
        for seed in range(3):
            x = np.random.default_rng(seed).standard_normal((size, size)).astype(np.float32)
            for got, want in zip(session.run(None, {"x": x}), labelled(x), strict=True):
                np.testing.assert_array_equal(got, want)
    assert nodes[1] < 16 * nodes[0]  # of 36 branches, and of 9
