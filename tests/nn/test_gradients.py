"""First and second derivatives of functions against central differences, in float64."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hagane
import hagane.functions as F  # noqa: N812
from hagane.gradient_check import check_backward, check_double_backward
from hagane.nn.autograd.retention import UNREAD
from hagane.nn.eager.programs import WORKSHOP
from hagane.ops.builder import op

N = np.random.default_rng(0)


def draw(*shape: int) -> np.ndarray:
    """Numbers that are not near zero, nor near each other, where some functions have kinks."""
    size = int(np.prod(shape))
    values = (N.permutation(size) - size / 2 + 0.5) / max(size, 1) * 3
    return values.reshape(shape)


def positive(*shape: int) -> np.ndarray:
    return np.abs(draw(*shape)) + 0.3


LABELS = np.array([0, 2, -1, 1], np.int32)
MASK = draw(3, 4) > 0
SIGNS = np.array([[1, 0, -1], [0, 1, 1], [1, 1, 0], [0, 0, 1]], np.int32)

CASES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    **{
        name: (getattr(F, name), (draw(3, 4),))
        for name in (
            "absolute sin cos tan arctan sinh cosh exp erf square sigmoid tanh softmax "
            "log_softmax relu leaky_relu elu selu softplus crelu silu gelu logsumexp cumsum "
            "expm1 erfc erfcx ndtr log_ndtr hard_sigmoid relu6 transpose flatten fliplr "
            "flipud sum mean max min prod cumprod normalize batch_l2_norm_squared decov "
        ).split()
    },
    **{
        name: (getattr(F, name), (positive(3, 4),))
        for name in ("log log2 log10 log1p sqrt rsqrt lgamma digamma ").split()
    },
    "arcsin": (F.arcsin, (draw(3, 4) / 4,)),
    "arccos": (F.arccos, (draw(3, 4) / 4,)),
    "arctanh": (F.arctanh, (draw(3, 4) / 4,)),
    "erfinv": (F.erfinv, (draw(3, 4) / 4,)),
    "arctan2": (F.arctan2, (draw(3, 4), positive(3, 4))),
    "add": (lambda x, y: x + y * 2 - 1, (draw(3, 4), draw(4))),
    "div": (lambda x, y: 1 / y - x / y, (draw(3, 4), positive(3, 1))),
    "pow": (lambda x, y: x**y + 2**y + x**3, (positive(3, 4), draw(3, 4))),
    "maximum": (F.maximum, (draw(3, 4), draw(3, 4)[::-1].copy() + 0.05)),
    "get_item": (lambda x: x[1:, [0, 2, 2]] * x[0, 1], (draw(3, 4),)),
    "scatter_add": (lambda a, b: F.scatter_add(a, ([0, 0, 2],), b), (draw(3, 4), draw(3, 4))),
    "concat": (lambda x, y: F.concat([x, y], axis=0), (draw(3, 4), draw(2, 4))),
    "stack": (lambda x, y: F.stack([x, y], axis=1), (draw(3, 4), draw(3, 4))),
    "split": (lambda x: F.split_axis(x, [1, 3], 1)[1], (draw(3, 4),)),
    "repeat": (lambda x: F.repeat(x, 2, axis=1), (draw(3, 4),)),
    "tile": (lambda x: F.tile(x, (2, 1, 2)), (draw(3, 4),)),
    "pad": (lambda x: F.pad(x, ((1, 2), (0, 1)), "constant"), (draw(3, 4),)),
    "where": (lambda x, y: F.where(MASK, x, y), (draw(3, 4), draw(3, 4))),
    "diagonal": (lambda x: F.diagonal(x, 1), (draw(3, 4),)),
    "rollaxis": (lambda x: F.rollaxis(x, 2, 1) * 2, (draw(2, 3, 4),)),
    "permutate": (lambda x: F.permutate(x, np.array([2, 0, 1])), (draw(3, 4),)),
    "select_item": (lambda x: F.select_item(x, np.array([1, 0, 3])), (draw(3, 4),)),
    "matmul": (lambda x, y: F.matmul(x, y, transb=True), (draw(2, 3, 4), draw(2, 5, 4))),
    "einsum": (lambda x, y: F.einsum("ij,kj->ki", x, y), (draw(3, 4), draw(2, 4))),
    "tensordot": (lambda x, y: F.tensordot(x, y, axes=1), (draw(3, 4), draw(4, 2))),
    "linear": (F.linear, (draw(3, 4), draw(5, 4), draw(5))),
    "bilinear": (
        F.bilinear,
        (draw(3, 2), draw(3, 4), draw(2, 4, 5), draw(2, 5), draw(4, 5), draw(5)),
    ),
    "embed_id": (lambda W: F.embed_id(np.array([[0, 2], [2, -1]]), W, -1), (draw(3, 4),)),
    "inv": (lambda x: F.inv(x + 4 * np.eye(3)), (draw(3, 3),)),
    "det": (lambda x: F.det(x + 4 * np.eye(3)), (draw(3, 3),)),
    "fft": (lambda x, y: F.fft((x, y)), (draw(3, 4), draw(3, 4))),
    "convolution_2d": (
        lambda x, W, b: F.convolution_2d(x, W, b, (2, 1), (1, 0), dilate=(1, 2), groups=2),
        (draw(2, 4, 6, 5), draw(6, 2, 3, 2), draw(6)),
    ),
    "convolution_cover_all": (
        lambda x, W: F.convolution_2d(x, W, None, 3, 1, True),
        (draw(1, 2, 6, 5), draw(3, 2, 2, 2)),
    ),
    "convolution_1d": (
        lambda x, W, b: F.convolution_1d(x, W, b, 2),
        (draw(2, 3, 7), draw(4, 3, 3), draw(4)),
    ),
    "deconvolution_2d": (
        lambda x, W, b: F.deconvolution_2d(x, W, b, 2, 1, outsize=(6, 5)),
        (draw(2, 3, 3, 3), draw(3, 4, 3, 3), draw(4)),
    ),
    "depthwise_convolution_2d": (
        F.depthwise_convolution_2d,
        (draw(2, 3, 4, 4), draw(2, 3, 3, 3), draw(6)),
    ),
    "local_convolution_2d": (
        F.local_convolution_2d,
        (draw(2, 3, 4, 5), draw(2, 3, 3, 3, 2, 3), draw(2, 3, 3)),
    ),
    "im2col": (lambda x: F.im2col(x, 3, 2, 1, True), (draw(1, 2, 4, 5),)),
    "shift": (F.shift, (draw(1, 10, 4, 4),)),
    "max_pooling_2d": (lambda x: F.max_pooling_2d(x, 3, 2, 1), (draw(2, 2, 5, 6),)),
    "max_pooling_1d": (lambda x: F.max_pooling_1d(x, 2), (draw(2, 2, 5),)),
    "average_pooling_2d": (lambda x: F.average_pooling_2d(x, 3, 2, 1), (draw(2, 2, 5, 6),)),
    "average_pooling_none": (
        lambda x: F.average_pooling_nd(x, 3, 2, 1, pad_value=None),
        (draw(2, 2, 5, 6),),
    ),
    "unpooling_2d": (lambda x: F.unpooling_2d(x, 2, 2, cover_all=False), (draw(2, 2, 3, 2),)),
    "spatial_pyramid": (lambda x: F.spatial_pyramid_pooling_2d(x, 2, "max"), (draw(2, 2, 5, 6),)),
    "batch_normalization": (F.batch_normalization, (draw(4, 3, 2), positive(3), draw(3))),
    "fixed_batch_normalization": (
        F.fixed_batch_normalization,
        (draw(4, 3), positive(3), draw(3), draw(3), positive(3)),
    ),
    "layer_normalization": (F.layer_normalization, (draw(4, 5), positive(5), draw(5))),
    "group_normalization": (
        lambda x, g, b: F.group_normalization(x, 2, g, b),
        (draw(2, 4, 3), positive(4), draw(4)),
    ),
    "local_response_normalization": (F.local_response_normalization, (draw(2, 7, 2),)),
    "rms_norm": (F.rms_norm, (draw(3, 4), positive(4))),
    "softmax_cross_entropy": (
        lambda x: F.softmax_cross_entropy(x, LABELS, class_weight=np.array([0.5, 1.0, 2.0])),
        (draw(4, 3),),
    ),
    "sigmoid_cross_entropy": (lambda x: F.sigmoid_cross_entropy(x, SIGNS), (draw(4, 3),)),
    "hinge": (lambda x: F.hinge(x, np.array([0, 2, 1, 1]), "L2"), (draw(4, 3),)),
    "huber_loss": (lambda x, t: F.huber_loss(x, t, 0.7), (draw(4, 3), draw(4, 3) / 3)),
    "contrastive": (
        lambda x, y: F.contrastive(x, y, np.array([1, 0, 1, 0])),
        (draw(4, 3), draw(4, 3)),
    ),
    "triplet": (F.triplet, (draw(4, 3), draw(4, 3), draw(4, 3))),
    "gaussian_nll": (F.gaussian_nll, (draw(4, 3), draw(4, 3), draw(4, 3))),
    "gaussian_kl": (F.gaussian_kl_divergence, (draw(4, 3), draw(4, 3))),
    "bernoulli_nll": (F.bernoulli_nll, (draw(4, 3), draw(4, 3))),
    "cross_covariance": (F.cross_covariance, (draw(4, 3), draw(4, 2))),
    "mean_squared_error": (F.mean_squared_error, (draw(4, 3), draw(4, 3))),
    "resize_images": (lambda x: F.resize_images(x, (5, 7)), (draw(1, 2, 3, 4),)),
    "spatial_transformer_grid": (lambda t: F.spatial_transformer_grid(t, (3, 4)), (draw(2, 2, 3),)),
    "spatial_transformer_sampler": (
        F.spatial_transformer_sampler,
        (draw(1, 2, 4, 5), draw(1, 2, 3, 2) / 3.1),
    ),
    "roi_average_align_2d": (
        lambda x: F.roi_average_align_2d(
            x, np.array([[0, 1, 4, 5], [2, 0, 6, 3]], float), np.array([0, 1]), 2, 0.7, 2
        ),
        (draw(2, 2, 5, 6),),
    ),
    "prelu": (F.prelu, (draw(4, 3), draw(3))),
    "swish": (F.swish, (draw(4, 3), draw(3))),
    "maxout": (lambda x: F.maxout(x, 2), (draw(4, 6),)),
    "lstm": (F.lstm, (draw(4, 2), draw(3, 8))),
    "slstm": (F.slstm, (draw(4, 2), draw(4, 2), draw(4, 8), draw(4, 8))),
    "tree_lstm": (F.tree_lstm, (draw(4, 2), draw(4, 2), draw(4, 10))),
    "crf1d": (
        lambda c, x, y: F.crf1d(c, [x, y], [np.array([0, 1, 2]), np.array([1, 1])]),
        (draw(3, 3), draw(3, 3), draw(2, 3)),
    ),
    "argmax_crf1d": (
        lambda c, x, y, z: F.argmax_crf1d(c, [x, y, z])[0],
        (draw(3, 3), draw(4, 3), draw(2, 3), draw(1, 3)),
    ),
    "ctc": (
        lambda x, y, z: F.connectionist_temporal_classification(
            [x, y, z], np.array([[1], [2]], np.int32), 0, reduce="no"
        ),
        (draw(2, 3), draw(2, 3), draw(2, 3)),
    ),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_gradients_agree_with_central_differences(name: str) -> None:
    function, inputs = CASES[name]
    np.random.seed(0)
    ys = function(*inputs)
    shapes = [y.shape for y in (ys if isinstance(ys, tuple) else (ys,))]
    grads = tuple(np.asarray(np.random.uniform(0.5, 1, s)) for s in shapes)
    check_backward(function, inputs, grads, eps=1e-5, atol=1e-6, rtol=1e-5)


TWICE = (
    "sin exp sigmoid tanh softmax log_softmax softplus add div pow get_item concat "
    "matmul linear convolution_2d deconvolution_2d average_pooling_2d "
    "batch_normalization layer_normalization softmax_cross_entropy lstm prod einsum "
    "max_pooling_2d embed_id "
).split()


@pytest.mark.parametrize("name", TWICE)
def test_second_derivatives_agree_with_central_differences(name: str) -> None:
    function, inputs = CASES[name]
    np.random.seed(1)
    ys = function(*inputs)
    shapes = [y.shape for y in (ys if isinstance(ys, tuple) else (ys,))]
    grads = tuple(np.asarray(np.random.uniform(0.5, 1, s)) for s in shapes)
    again = tuple(np.random.uniform(0.5, 1, x.shape) for x in inputs)
    check_double_backward(function, inputs, grads, again, eps=1e-5, atol=1e-6, rtol=1e-5)


def test_a_wrong_gradient_is_found() -> None:

    class Wrong(hagane.FunctionNode):
        def forward(self, inputs: Any) -> Any:
            return (inputs[0] * 2,)

        def backward(self, indexes: Any, grads: Any) -> Any:
            return (grads[0] * 2.01,)

    with pytest.raises(AssertionError, match="check_backward failed"):
        check_backward(lambda x: Wrong().apply((x,))[0], draw(3, 4), draw(3, 4))


RETAINING: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "Add": (lambda x, y: op("Add", x, y), (draw(3, 4), draw(4))),
    "Sub": (lambda x, y: op("Sub", x, y), (draw(3, 1), draw(3, 4))),
    "Mul": (lambda x, y: op("Mul", x, y), (draw(3, 4), draw(4))),
    "Neg": (lambda x: op("Neg", x), (draw(3, 4),)),
    "Concat": (lambda x, y: op("Concat", x, y, axis=1), (draw(3, 4), draw(3, 2))),
    "Transpose": (lambda x: op("Transpose", x, perm=(1, 0)), (draw(3, 4),)),
    "Reshape": (lambda x: op("Reshape", x, [2, 6]), (draw(3, 4),)),
    "Flatten": (lambda x: op("Flatten", x), (draw(3, 4, 2),)),
    "Squeeze": (lambda x: op("Squeeze", x, [1]), (draw(3, 1),)),
    "Unsqueeze": (lambda x: op("Unsqueeze", x, [1]), (draw(3, 4),)),
    "MatMul": (lambda x, y: op("MatMul", x, y), (draw(2, 3, 4), draw(4, 5))),
    "Gemm": (
        lambda x, w, b: op("Gemm", x, w, b, transB=1, beta=2.0),
        (draw(3, 4), draw(5, 4), draw(5)),
    ),
    "Conv": (
        lambda x, w, b: op("Conv", x, w, b, pads=(1, 0)),
        (draw(2, 3, 6), draw(4, 3, 2), draw(4)),
    ),
    **{
        name: (lambda x, name=name: op(name, x), (positive(3, 4),))
        for name in ("Exp", "LogSoftmax", "Relu", "Sigmoid", "Softmax", "Sqrt", "Tanh", "Log")
    },
}


@pytest.mark.parametrize("name", sorted(UNREAD))
def test_arrays_that_are_not_retained_are_read_by_no_derivative(name: str) -> None:
    """Their stand-ins are zeros, so that a rule that reads them gives something else."""
    function, inputs = RETAINING[name]
    found = {}
    for debug in (True, False):  # which retains everything
        with hagane.using_config("debug", debug):
            xs = [hagane.Variable(x) for x in inputs]
            y = function(*xs)
            y = F.sum(y * y * np.cos(np.arange(y.size)).reshape(y.shape))
            firsts = hagane.grad([y], xs, enable_double_backprop=True)
            again = F.sum(F.concat([F.flatten(g * g) for g in firsts], axis=0))
            again.backward()
            found[debug] = [g.array for g in firsts] + [x.grad for x in xs]
            y.backward()
            found[debug] += [x.grad for x in xs]
    for one, other in zip(found[True], found[False], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_a_rectified_product_is_let_go_while_its_gradient_is_to_come() -> None:
    import weakref

    x, w = hagane.Variable(draw(3, 4)), hagane.Variable(draw(5, 4))
    y = F.linear(x, w)
    product = weakref.ref(y.array)
    z = F.relu(y)
    del y
    assert product() is None
    F.sum(z).backward()
    np.testing.assert_array_equal(w.grad, (z.array > 0).T.astype(float) @ x.array)


@pytest.mark.parametrize("mode", ["off", "wait"])
def test_second_derivatives_do_not_count_ways_between_operands(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One operand is computed from the other."""
    monkeypatch.setattr(WORKSHOP, "mode", mode)
    x = hagane.Variable(np.array([[2.0, 3.0], [4.0, 5.0]]))
    y = F.sum(F.matmul(x, x * x, transb=True))
    (g,) = hagane.grad([y], [x], enable_double_backprop=True)
    s, squares = x.array.sum(axis=0), (x.array**2).sum(axis=0)
    np.testing.assert_allclose(g.array, squares + 2 * x.array * s)
    Mul = importlib.import_module("hagane.nn.functions.classes").Mul
    z = F.sum(Mul().apply((x, x * x))[0])
    (g,) = hagane.grad([z], [x], enable_double_backprop=True)
    np.testing.assert_allclose(g.array, 3 * x.array**2)


def test_second_derivatives_of_halves_are_halves_where_compositions_are_wider() -> None:
    x = hagane.Variable(draw(1, 2, 4, 3).astype(np.float16))
    y = F.average_pooling_2d(x, 3, 2, 1)
    (g,) = hagane.grad([F.sum(y * y)], [x], enable_double_backprop=True)
    F.sum(g * g).backward()
    assert (g.dtype, x.grad.dtype) == (np.float16, np.float16)
