"""Memory of large results is used again, and never while anyone looks at it."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import helper

from hagane.native.ready.outputs import OutputPool, is_pooled
from tests.native.models import draw, model, session

LARGE = (300, 300)


def address(array: np.ndarray) -> int:
    return array.ctypes.data


def test_memory_comes_back_when_nobody_looks_at_it() -> None:
    pool = OutputPool()
    first = pool.empty(LARGE, np.dtype(np.float32))
    place = address(first)
    del first
    assert address(pool.empty(LARGE, np.dtype(np.float32))) == place


LOOKS: dict[str, Callable[[np.ndarray], Any]] = {
    "slice": lambda array: array[3:9, 2:],
    "transpose": lambda array: array.T,
    "reshape": lambda array: array.reshape(-1),
    "view": lambda array: array.view(np.uint32),
    "buffer": memoryview,
}


@pytest.mark.parametrize("look", LOOKS)
def test_a_view_keeps_its_memory(look: str) -> None:
    pool = OutputPool()
    first = pool.empty(LARGE, np.dtype(np.float32))
    first[:] = 7
    place = address(first)
    kept = LOOKS[look](first)
    want = bytes(kept)
    del first
    gc.collect()
    second = pool.empty(LARGE, np.dtype(np.float32))
    second[:] = 1
    assert address(second) != place
    assert bytes(kept) == want


def test_arrays_have_their_shape_and_type_and_can_be_written() -> None:
    pool = OutputPool()
    for dtype in (np.float32, np.int64, np.bool_, ml_dtypes.bfloat16):
        array = pool.empty((70, 1000), np.dtype(dtype))
        assert array.shape == (70, 1000)
        assert array.dtype == dtype
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert is_pooled(array)
        assert not is_pooled(array[1:])
        assert not is_pooled(array.reshape(-1))
    assert not is_pooled(pool.empty((3,), np.dtype(np.float32)))


def test_not_more_than_a_limit_is_kept() -> None:
    pool = OutputPool()
    arrays = [pool.empty((1 << 24,), np.dtype(np.uint8)) for _ in range(9)]
    arrays.clear()
    assert pool._kept <= 64 << 20


def test_results_of_a_session_are_the_callers_own() -> None:
    x = draw(LARGE)
    nodes = [helper.make_node("Add", ["x", "x"], ["y"])]
    made = session(model(nodes, {"x": x}, shapes={"x": ["rows", 300]}))
    kept = [made.run(None, {"x": x + i})[0] for i in range(4)]
    for i, y in enumerate(kept):
        np.testing.assert_array_equal(y, (x + i) * 2)
    place = address(kept[0])
    kept.clear()
    again = [made.run(None, {"x": x})[0] for _ in range(4)]
    assert place in {address(y) for y in again}
