"""Where elements lie under another shape, without a copy."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hagane.native.kernels.tensor import Buffer, Kind, Tensor

FLOATS = np.dtype(np.float32)


@st.composite
def strided(draw: st.DrawFn) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return a view of some numbers, and another shape of as many."""
    shape = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    wide = [size + draw(st.integers(0, 2)) for size in shape]
    order = draw(st.permutations(range(len(shape))))
    array = np.arange(np.prod(wide), dtype=np.float32).reshape(wide)
    view = array[tuple(slice(0, size) for size in shape)].transpose(order)
    sizes = list(view.shape)
    for _ in range(draw(st.integers(0, 3))):
        i = draw(st.integers(0, len(sizes) - 1))
        if draw(st.booleans()) and i + 1 < len(sizes):
            sizes[i : i + 2] = [sizes[i] * sizes[i + 1]]
        else:
            factor = draw(st.sampled_from([n for n in range(1, 7) if sizes[i] % n == 0]))
            sizes[i : i + 1] = [factor, sizes[i] // factor]
    return view, tuple(sizes)


@given(strided())
def test_a_view_of_another_shape_has_the_same_elements(
    made: tuple[np.ndarray, tuple[int, ...]],
) -> None:
    view, shape = made
    steps = tuple(stride // 4 for stride in view.strides)
    tensor = Tensor(Buffer("", 0, Kind.ARENA), FLOATS, view.shape, steps)
    found = tensor.viewed(shape)
    copied = view.reshape(shape)
    if found is None:
        assert not np.shares_memory(copied, view)
        return
    assert found.shape == shape
    base = view.base if view.base is not None else view
    flat = np.lib.stride_tricks.as_strided(
        base, shape, tuple(4 * int(stride) for stride in found.strides)
    )
    np.testing.assert_array_equal(flat, copied)


def test_an_axis_may_be_split_where_others_are_open() -> None:
    from hagane.symbolic import symbol

    rows = symbol("rows")
    tensor = Tensor(Buffer("", 0, Kind.ARENA), FLOATS, (2, rows, 64), (rows * 192, 192, 1))
    found = tensor.viewed((2, rows, 4, 16))
    assert found is not None
    assert found.strides == (rows * 192, 192, 16, 1)
    assert tensor.viewed((2 * rows, 64)) is None
