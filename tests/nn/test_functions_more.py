"""Regions, sparse products, deformable windows, decorrelation, recomputing, strides."""

from __future__ import annotations

import numpy as np
import pytest

import hagane
import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812
from hagane.gradient_check import check_backward, check_double_backward
from hagane.utils import to_coo
from hagane.utils.type_check import InvalidType

N = np.random.default_rng(1)


@pytest.mark.parametrize("name", ["max", "average"])
def test_a_region_of_the_whole_image_is_pooled_as_by_windows(name: str) -> None:
    x = N.normal(size=(2, 3, 6, 8))
    boxes, images = np.array([[0.0, 0, 12, 16], [0, 0, 12, 16]]), np.array([1, 0], np.int32)
    found = getattr(F, f"roi_{name}_pooling_2d")(x, boxes, images, (3, 4), 0.5)
    pooled = F.max_pooling_2d(x, 2) if name == "max" else F.average_pooling_2d(x, 2)
    np.testing.assert_allclose(found.array, pooled.array[[1, 0]])


@pytest.mark.parametrize("ratio", [None, 2, (1, 3)])
@pytest.mark.parametrize("name", ["roi_max_align_2d", "roi_average_align_2d"])
def test_gradients_of_aligned_regions_are_those_of_differences(name: str, ratio: object) -> None:
    # Means of whole numbers would be equal at several places, and the largest has no derivative.
    # Each part has a sample inside of the image; without one its largest is minus infinity.
    x = N.normal(size=(2, 2, 5, 7))
    boxes = np.array([[0.3, 1.1, 4.2, 5.3], [-3, -3, 7, 9], [2, 2, 2.5, 2.5]])
    images = np.array([0, 1, 1], np.int32)

    def pool(x: object) -> object:
        return getattr(F, name)(x, boxes, images, (2, 3), 1.0, ratio)

    check_backward(pool, x, N.normal(size=(3, 2, 2, 3)), eps=1e-7, atol=1e-4)


def test_an_empty_part_of_a_region_is_minus_infinity_or_zero() -> None:
    x, box = np.ones((1, 1, 4, 4)), np.array([[6.0, 0, 8, 4]])
    found = F.roi_max_pooling_2d(x, box, np.zeros(1, np.int32), 2, 1.0)
    assert (found.array == -np.inf).all()
    old = F.roi_pooling_2d(x, np.array([[0.0, 0, 6, 4, 8]]), 2, 2, 1.0)
    assert (old.array == 0).all()


def test_samples_outside_of_the_image_are_no_maxima() -> None:
    x, images = -np.ones((1, 1, 4, 4)), np.zeros(1, np.int32)
    box = np.array([[0.0, 0, 9, 4]])  # rows of parts: inside, partly inside, outside
    found = F.roi_max_align_2d(x, box, images, (3, 1), 1.0, 2)
    assert found.array.ravel().tolist() == [-1, -1, -np.inf]
    mean = F.roi_average_align_2d(x, box, images, (3, 1), 1.0, (2, 1))
    assert mean.array.ravel().tolist() == [-1, -0.5, 0]


def test_no_regions_give_no_parts() -> None:
    x, none = np.ones((1, 2, 4, 4), "f"), np.zeros((0, 4), "f")
    for name in ("roi_max_pooling_2d", "roi_average_pooling_2d", "roi_max_align_2d"):
        found = getattr(F, name)(x, none, np.zeros(0, np.int32), (3, 1), 1.0)
        assert found.shape == (0, 2, 3, 1)


@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("transposed", [False, True])
def test_sparse_products_are_those_of_whole_matrices(
    batch: tuple[int, ...], transposed: bool
) -> None:
    sparse = np.where(N.random((*batch, 4, 4)) > 0.6, N.normal(size=(*batch, 4, 4)), 0)
    dense = N.normal(size=(*batch, 4, 4)).astype("f")
    coo = to_coo(sparse, requires_grad=True)
    np.testing.assert_array_equal(coo.to_dense(), sparse)
    left = F.sparse_matmul(coo, dense, transa=transposed)
    other = sparse.swapaxes(-1, -2) if transposed else sparse
    assert left.dtype == np.float64
    np.testing.assert_allclose(left.array, other @ dense, atol=1e-12)
    right = F.sparse_matmul(dense, coo, transb=transposed)
    np.testing.assert_allclose(right.array, dense @ other, atol=1e-12)
    F.sum(left).backward()
    assert coo.data.grad.shape == coo.row.shape
    with pytest.raises(ValueError, match="expected one CooMatrix and one dense array"):
        F.sparse_matmul(dense, dense)


def test_without_offsets_a_deformable_convolution_is_a_convolution() -> None:
    x, w, b = N.normal(size=(2, 3, 6, 7)), N.normal(size=(4, 3, 3, 2)), N.normal(size=4)
    plain = F.convolution_2d(x, w, b, stride=(2, 1), pad=1)
    offsets = np.zeros((2, 12, *plain.shape[2:]))
    found = F.deformable_convolution_2d_sampler(x, offsets, w, b, (2, 1), 1)
    np.testing.assert_allclose(found.array, plain.array, atol=1e-10)
    link = L.DeformableConvolution2D(None, 5, 3, pad=1)
    assert link(x.astype("f")).shape == (2, 5, 6, 7)


def test_decorrelated_channels_have_the_unit_covariance() -> None:
    x = N.normal(size=(20, 6, 3)) @ np.diag([1.0, 3.0, 0.2])
    y = F.decorrelated_batch_normalization(x, groups=2, eps=1e-12)
    rows = y.array.transpose(1, 0, 2).reshape(2, 3, -1)
    covariance = rows @ rows.swapaxes(1, 2) / rows.shape[-1]
    np.testing.assert_allclose(covariance, np.stack([np.eye(3)] * 2), atol=1e-8)
    check_backward(
        lambda x: F.decorrelated_batch_normalization(x, groups=2),
        x[:5],
        N.normal(size=(5, 6, 3)),
        eps=1e-5,
        atol=1e-4,
    )
    link = L.DecorrelatedBatchNormalization(6, groups=2)
    for _ in range(200):
        link(x.astype("f"))
    with hagane.using_config("train", False):
        fixed = link(x.astype("f"))
    np.testing.assert_allclose(fixed.array, y.array, atol=0.1)


def test_forgotten_results_are_computed_again_with_the_same_gradients() -> None:
    x, link, calls = hagane.Variable(N.normal(size=(2, 3)).astype("f")), L.Linear(3, 4), []

    def twice(x: hagane.Variable) -> hagane.Variable:
        calls.append(1)
        return F.tanh(link(x)) * 2

    link.cleargrads()
    F.sum(twice(x)).backward()
    wanted = x.grad.copy(), link.W.grad.copy()
    x.cleargrad()
    link.cleargrads()
    F.sum(F.forget(twice, x)).backward()
    np.testing.assert_allclose(x.grad, wanted[0], rtol=1e-6)
    np.testing.assert_allclose(link.W.grad, wanted[1], rtol=1e-6)
    assert len(calls) == 3
    with pytest.raises(RuntimeError, match="2nd element of a returned tuple is not Variable"):
        F.forget(lambda x: (x, 1), x)


def test_strided_elements_that_overlap_add_their_gradients() -> None:
    x = hagane.Variable(np.arange(4.0))
    y = F.as_strided(x, (3, 2), (1, 1), 0)
    np.testing.assert_array_equal(y.array, [[0, 1], [1, 2], [2, 3]])
    F.sum(y).backward()
    np.testing.assert_array_equal(x.grad, [1, 2, 2, 1])
    with pytest.raises(ValueError, match="a memory of 4 elements, got 0 to 4"):
        F.as_strided(x, (5,), (1,), 0)


@pytest.mark.parametrize("other", [np.float16, np.float64])
def test_products_of_different_types_have_the_wider_one(other: type) -> None:
    a, b = (
        hagane.Variable(N.normal(size=(2, 3)).astype("f")),
        hagane.Variable(np.ones((3, 2), other)),
    )
    y = F.matmul(a, b)
    assert y.dtype == np.result_type(np.float32, other)
    F.sum(y).backward()
    assert (a.grad.dtype, b.grad.dtype) == (np.float32, np.dtype(other))
    assert F.tensordot(a, b, axes=1).dtype == y.dtype


def test_labels_in_half_precision_count_beyond_what_it_can_add() -> None:
    x = hagane.Variable(np.zeros((70_000, 2), np.float16))
    loss = F.softmax_cross_entropy(x, np.zeros(70_000, np.int32))
    assert abs(float(loss.array) - np.log(2)) < 1e-3
    loss.backward()
    assert np.isfinite(x.grad).all()


def test_targets_of_losses_get_no_gradient() -> None:
    x, t = hagane.Variable(N.normal(size=(3, 2))), hagane.Variable(np.full((3, 2), 0.5))
    F.softmax_cross_entropy(x, t).backward()
    assert x.grad is not None
    assert t.grad is None


def test_second_derivatives_take_gradients_of_those_inputs_only_that_have_one() -> None:
    labels = np.array([1, 0, 1], np.int32)
    check_double_backward(
        lambda x, t: F.sigmoid_cross_entropy(x, t, reduce="no"),
        (N.normal(size=3), labels),
        N.normal(size=3),
        (N.normal(size=3),),
    )


@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "pad", "cover_all"),
    [
        ((2, 3, 7, 9), (3, 3), 2, 1, True),
        ((2, 3, 7, 9), (3, 3), 2, 1, False),
        ((3, 1, 8, 5), (2, 4), 3, 1, True),
        ((3, 2, 5, 5), (2, 2), 4, 1, True),
        ((1, 2, 6), (3,), 3, 3, True),
        ((2, 2, 5, 6, 4), (2, 2, 2), 3, 1, True),
    ],
)
def test_indices_of_max_pooling_are_the_first_largest_places_of_windows(
    shape: tuple[int, ...], kernel: tuple[int, ...], stride: int, pad: int, cover_all: bool
) -> None:
    x = np.random.RandomState(0).randint(0, 5, shape).astype(np.float32)
    margins = [(0, 0)] * 2 + [(pad, pad + stride)] * len(kernel)
    wide = np.pad(x, margins, constant_values=-np.inf)
    y, places = F.max_pooling_nd(
        x, kernel, stride=stride, pad=pad, cover_all=cover_all, return_indices=True
    )
    assert places.dtype == np.int64
    assert places.shape == y.shape
    for index in np.ndindex(*y.shape[2:]):
        cut = tuple(slice(i * stride, i * stride + k) for i, k in zip(index, kernel, strict=True))
        window = wide[(..., *cut)].reshape(*shape[:2], -1)
        np.testing.assert_array_equal(places[(..., *index)], window.argmax(-1))
        np.testing.assert_array_equal(y.array[(..., *index)], window.max(-1))


def test_sums_of_products_that_do_not_fit_are_refused() -> None:
    x, y = np.ones((2, 2), "f"), np.ones((3, 2), "f")
    with pytest.raises(InvalidType, match="einsum"):
        F.einsum("...i,...i", x, y)
    for subscripts in ("...i->i", "ij->...ij"):
        with pytest.raises(ValueError, match=r"expected '\.\.\.' in the output"):
            F.einsum(subscripts, x)
    assert F.einsum("...ij->ij", x).shape == (2, 2)
    with pytest.raises(InvalidType, match="one array or more"):
        F.broadcast()
    with pytest.raises(TypeError, match="tile: expected x to be an array"):
        F.tile((x, x), 2)


@pytest.mark.parametrize("norm", [1, 2])
def test_losses_of_clusters_are_means_over_instances_and_pairs_of_them(norm: int) -> None:
    draw = np.random.default_rng(0)  # of which no number lies at a kink
    x = draw.normal(size=(2, 3, 4, 5))
    # The last instance is in neither sample; 0 and 7 are none.
    labels = draw.choice([0, 1, 2, 7], size=(2, 4, 5))

    def length(v: np.ndarray) -> float:
        return float(np.abs(v).sum() if norm == 1 else np.sqrt((v * v).sum()))

    means, spread = np.zeros((3, 2, 3)), 0.0
    for one in (1, 2):
        pixels = [(n, *place) for n, *place in zip(*np.nonzero(labels == one), strict=True)]
        for n in range(2):
            own = np.array([x[n, :, i, j] for k, i, j in pixels if k == n])
            means[one - 1, n] = own.mean(axis=0)
        far = [max(length(means[one - 1, n] - x[n, :, i, j]) - 0.5, 0) ** 2 for n, i, j in pixels]
        spread += np.mean(far) / 3
    apart = [
        max(3 - length(means[a, n] - means[b, n]), 0) ** 2
        for a in range(3)
        for b in range(a)
        for n in range(2)
    ]
    size = sum(length(each) for each in means) / 6

    def losses(x: object) -> object:
        return F.discriminative_margin_based_clustering_loss(
            x, labels, 0.5, 1.5, 3, norm, 2.0, 3.0, 4.0
        )

    found = [y.item() for y in losses(x)]
    np.testing.assert_allclose(found, [2 * spread, 3 * np.mean(apart), 4 * size], rtol=1e-12)
    check_backward(lambda x: sum(losses(x)), x, None, atol=1e-4)
    with pytest.raises(InvalidType, match=r"embeddings.shape\[1\] == 4, the number of instances"):
        F.discriminative_margin_based_clustering_loss(x, labels, 0.5, 1.5, 4)


def test_a_cast_to_the_same_type_has_a_gradient_of_its_own() -> None:
    x = hagane.Variable(np.ones(3, "f"))
    one, other = F.cast(x, "f"), F.cast(x, "f")
    found = hagane.grad([one + 2 * other], [one, other], [hagane.Variable(np.ones(3, "f"))])
    assert [g.array[0] for g in found] == [1, 2]
    with hagane.no_backprop_mode():
        assert F.cast(x, "f") is x


@pytest.mark.parametrize("name", ["vstack", "dstack"])
def test_stacks_of_arrays_with_differing_numbers_of_axes_are_refused(name: str) -> None:
    with pytest.raises(InvalidType, match=r"xs\[1\].ndim == xs\[0\].ndim\nActual: 2 != 1"):
        getattr(F, name)([np.ones(3, "f"), np.ones((1, 3), "f")])


def test_more_indices_than_axes_are_refused_by_sums_at_indices() -> None:
    with pytest.raises(InvalidType, match="ndim >= 3"):
        F.scatter_add(np.ones((2, 3)), (0, 0, 0), np.ones(()))
