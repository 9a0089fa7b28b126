"""Random small graphs: native results are those of the reference kernels, however nodes meet."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drawing import few, many
from tests.native.agreement import same
from tests.native.models import every_level, model, session
from tests.native.random_graphs import Sketch, graphs

FEW = few(6)
MANY = many(2000)


def check_graph(level: str, sketch: Sketch, threads: int, symbolic: str) -> None:
    """Compare every output that ends a graph, and some from its middle."""
    read = {name for node in sketch.nodes for name in node.input}
    values = sketch.made[len(sketch.feed) :]
    if not values:
        return
    kept = [v for i, v in enumerate(values) if v.name not in read or i % 5 == 3]
    shapes = {}
    for number, (name, array) in enumerate(sketch.feed.items()):
        if symbolic == "batch":
            shapes[name] = [f"n{number}", *array.shape[1:]]
        elif symbolic == "all":
            shapes[name] = [f"d{number}_{axis}" for axis in range(array.ndim)]
    names = [value.name for value in kept]
    proto = model(sketch.nodes, sketch.feed, names, sketch.constants, shapes)
    with np.errstate(all="ignore"):
        want = session(proto, engine="reference").run(None, sketch.feed)
    got = session(proto, instructions=level, threads=threads).run(None, sketch.feed)
    for value, left, right in zip(kept, got, want, strict=True):
        assert right.shape == value.shape
        same(value.name, left, right, length=1 if value.exact else 40000)


@every_level
@FEW
@given(graphs(), st.sampled_from([1, 2]), st.sampled_from(["", "", "batch", "all"]))
def test_graphs_give_what_their_reference_gives(
    level: str, sketch: Sketch, threads: int, symbolic: str
) -> None:
    check_graph(level, sketch, threads, symbolic)


@pytest.mark.long
@every_level
@MANY
@given(graphs(), st.sampled_from([1, 2]), st.sampled_from(["", "", "batch", "all"]))
def test_many_graphs_give_what_their_reference_gives(
    level: str, sketch: Sketch, threads: int, symbolic: str
) -> None:
    check_graph(level, sketch, threads, symbolic)
