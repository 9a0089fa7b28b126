"""Memory of large results is used again once nobody looks at it, and not before."""

import pickle

import ml_dtypes
import numpy as np
import pytest

from hagane.native import OutputPool, is_pooled

SIZES = 300, 400


def _place(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def test_memory_is_taken_again_once_the_array_and_all_views_of_it_are_gone() -> None:
    pool = OutputPool()
    array = pool.empty(SIZES, np.dtype("f"))
    first, view = _place(array), array[3:].T
    del array
    other = pool.empty(SIZES, np.dtype("f"))
    assert _place(other) != first
    del view
    assert _place(pool.empty(SIZES, np.dtype("f"))) == first


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "complex64", "bfloat16"])
def test_arrays_of_a_pool_have_sizes_and_type_and_are_plain(dtype: str) -> None:
    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    array = OutputPool().empty(SIZES, kind)
    assert type(array) is np.ndarray
    assert array.shape == SIZES
    assert array.dtype == kind
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert array.flags.aligned
    array[...] = 1
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(array)), np.ones(SIZES, kind))


def test_views_of_a_pools_array_are_not_the_callers_own() -> None:
    array = OutputPool().empty(SIZES, np.dtype("f"))
    assert is_pooled(array)
    assert not is_pooled(array[:])
    assert not is_pooled(array.reshape(-1))
    assert not is_pooled(np.ones(3))
    assert array.base is not None
    assert not is_pooled(array.base)
    assert not is_pooled(array.base[:])


def test_a_view_of_a_block_does_not_give_its_memory_back() -> None:
    pool = OutputPool()
    array = pool.empty(SIZES, np.dtype("f"))
    first = _place(array)
    assert array.base is not None
    array.base.view()
    assert _place(pool.empty(SIZES, np.dtype("f"))) != first


@pytest.mark.parametrize("order", ["growing", "shrinking", "mixed"])
def test_results_of_many_sizes_leave_no_block_of_each(order: str) -> None:
    pool, widths = OutputPool(), list(range(100, 3000, 50))
    if order == "shrinking":
        widths.reverse()
    elif order == "mixed":
        np.random.default_rng(0).shuffle(widths)
    for width in widths:
        held = [pool.empty((width, 400), np.dtype("f")) for _ in range(3)]
        assert len({_place(array) for array in held}) == 3
        del held
        assert pool._kept <= 3 * 1.5 * max(widths) * 400 * 4
    assert pool._kept == sum(size * len(blocks) for size, blocks in pool._free.items())


def test_a_small_result_does_not_take_a_large_block() -> None:
    pool = OutputPool()
    large = _place(pool.empty((3000, 400), np.dtype("f")))
    small = pool.empty((300, 400), np.dtype("f"))
    assert _place(small) != large
    assert _place(pool.empty((1000, 400), np.dtype("f"))) == large
