"""Drawn graphs of many types with open sizes: one session at several shapes, by all engines.

Results are compared with those of the reference kernels, and with ONNX Runtime's where it has the
operator for the type. ``make fuzz`` draws for hours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hagane.errors import KernelError
from tests.drawing import few, many
from tests.native.agreement import same
from tests.native.drawn_nested import NESTED
from tests.native.drawn_operators import OPERATORS
from tests.native.drawn_steps import STEPS, TYPES, Drawn
from tests.native.models import model, session

FEW = few(8, deadline=None)
MANY = many(3000)


@st.composite
def drawings(draw: st.DrawFn, most: int = 6) -> tuple[Drawn, str, int, list[tuple[int, ...]]]:
    """Draw a graph, the type and rank of its input, and shapes."""
    # (Most operators take float32, many of them nothing else.)
    dtype = draw(st.sampled_from(("float32", "float32", "float32", "int64", *TYPES)))
    rank = draw(st.integers(1, 3))
    graph = Drawn(draw, dtype, rank)
    for _ in range(draw(st.integers(1, most))):
        draw(st.sampled_from((*STEPS, *OPERATORS, *NESTED)))(graph)
    sizes = st.tuples(*[st.sampled_from([3, 1, 4, 7, 17])] * rank)
    return graph, dtype, rank, draw(st.lists(sizes, min_size=2, max_size=3))


def check(graph: Drawn, dtype: str, rank: int, shapes: list[tuple[int, ...]]) -> None:
    """Fail unless engines agree on every shape, or refuse it alike."""
    if not graph.nodes:
        return
    feeds = [{"x": _numbers(dtype, shape)} for shape in shapes]
    open_sizes = {"x": [f"n{axis}" for axis in range(rank)]}
    proto = model(graph.nodes, feeds[0], [graph.last], graph.constants, open_sizes)
    for domain in sorted({node.domain for node in graph.nodes} - {""}):
        proto.opset_import.append(onnx.helper.make_opsetid(domain, 1))
    proto.functions.extend(graph.functions)
    made, reference = session(proto), session(proto, engine="reference")
    other = _onnxruntime(proto, graph.dtype)
    # States are sums of numbers of this size, and may all be small.
    summed = float(any(node.op_type in ("GRU", "LSTM", "RNN") for node in graph.nodes))
    for feed in feeds:
        with np.errstate(all="ignore"):
            want = _result(lambda feed=feed: reference.run(None, feed))
        got = _result(lambda feed=feed: made.run(None, feed))
        assert (got is None) == (want is None), "one engine refuses what the other one takes"
        if got is None or want is None:
            continue
        same("native", got, want, length=400, summed=summed)
        if other is not None and want.size:
            theirs = _run_theirs(other, feed)
            if theirs is not None:
                same("ONNX Runtime", got, theirs, length=4000, summed=summed)


def _result(run: Callable[[], list[Any]]) -> np.ndarray | None:
    """Return the result of a run; None where the engine says that a node has none."""
    try:
        (found,) = run()
    except KernelError:
        return None
    array: np.ndarray = found
    return array


def _run_theirs(other: Any, feed: dict[str, np.ndarray]) -> np.ndarray | None:
    """Return ONNX Runtime's result; None where it gives no rows no length (shape ``[0, -1]``)."""
    try:
        (theirs,) = other.run(None, feed)
    except Exception as error:
        if "size != 0 && " in str(error) and "cannot be reshaped" in str(error):
            return None
        raise
    return theirs


def _numbers(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    numbers = np.random.default_rng(1).integers(0, 9, shape)
    return (
        (numbers > 3) if dtype == "bool" else (numbers / (2 if "f" in dtype else 1)).astype(dtype)
    )


# The last one: it gives no rows no length (shape ``[0, -1]``).
_REFUSED = ("NOT_IMPLEMENTED", "INVALID_GRAPH", "Type Error", "tensor cannot be reshaped")


def _onnxruntime(proto: onnx.ModelProto, dtype: str) -> Any:
    """Return a session, None where ONNX Runtime has no kernel for an operator and type."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    typed = onnx.shape_inference.infer_shapes(proto)
    if not typed.graph.output[0].HasField("type"):  # operators of its own are not inferred
        kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        typed.graph.output[0].type.tensor_type.elem_type = kind
    try:
        return onnxruntime.InferenceSession(
            typed.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        if any(text in str(error) for text in _REFUSED):
            return None
        raise


@FEW
@given(drawings())
def test_drawn_graphs_agree_at_every_shape(
    drawn: tuple[Drawn, str, int, list[tuple[int, ...]]],
) -> None:
    check(*drawn)


@pytest.mark.long
@MANY
@given(drawings(most=12))
def test_many_drawn_graphs_agree_at_every_shape(
    drawn: tuple[Drawn, str, int, list[tuple[int, ...]]],
) -> None:
    check(*drawn)
