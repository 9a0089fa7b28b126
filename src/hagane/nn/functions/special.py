"""Functions that no operator of ONNX computes, each with its gradient."""

from __future__ import annotations

import importlib
import math as _math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hagane.errors import MissingExtra
from hagane.nn.autograd import type_check
from hagane.nn.autograd.function_node import FunctionNode
from hagane.nn.functions.applying import constant_like, function, require
from hagane.nn.functions.array import broadcast_to, reshape, transpose
from hagane.nn.functions.math import exp, sum, sum_to
from hagane.ops.builder import op
from hagane.ops.functions.chainer import elementwise
from hagane.ops.functions.chainer.arrays import fourier
from hagane.ops.functions.numbers import activations


class Untracked(FunctionNode):
    """A function that has no gradient, of arrays.

    Args:
        name: Its name.
        compute: The function of arrays.
        written: The same of operators, if there is one.
    """

    def __init__(
        self, name: str, compute: Callable[..., Any], written: Callable[..., Any] | None = None
    ):
        self._name = name
        self._compute = compute
        self._written = written

    @property
    def label(self) -> str:
        """The function's name."""
        return self._name

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the result."""
        return (np.asarray(self._compute(*inputs)),)

    def operators(self, *inputs: Any) -> Sequence[Any] | None:
        """Return the result, written in operators."""
        return None if self._written is None else [self._written(*inputs)]


class Elementwise(FunctionNode):
    """A function of one array, element by element.

    Args:
        name: Its name.
        compute: The function of arrays.
        slope: Its derivative, a function of the variables of input and output.
    """

    def __init__(self, name: str, compute: Callable[[Any], Any], slope: Callable[[Any, Any], Any]):
        self._name, self._compute, self._slope = name, compute, slope

    @property
    def label(self) -> str:
        """The function's name."""
        return self._name

    def check_type_forward(self, in_types: Any) -> None:
        """Check that elements are floating-point numbers."""
        type_check.expect(in_types.size() == 1, in_types[0].dtype.kind == "f")

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the result."""
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        (x,) = inputs
        with np.errstate(all="ignore"):
            return (np.asarray(self._compute(x), dtype=x.dtype),)

    def operators(self, *inputs: Any) -> Sequence[Any] | None:
        """Return the result, written in operators, if there are any."""
        written = _WRITTEN.get(self._name)
        return None if written is None else [written(*inputs)]

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Sequence[Any]:
        """Return the gradient times the derivative."""
        (x,), (y,) = self.get_retained_inputs(), self.get_retained_outputs()
        return (grad_outputs[0] * self._slope(x, y),)


def _scipy(name: str) -> Any:
    try:
        return getattr(importlib.import_module("scipy.special"), name)
    except ImportError:
        raise MissingExtra(f"the function {name}", "chainer") from None


def _wide(compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that computes float16 in float32."""
    return lambda x: compute(x.astype(np.float32) if x.dtype == np.float16 else x)


def _define(name: str, text: str, compute: Callable[[Any], Any], slope: Any) -> Any:
    def apply(x: Any) -> Any:
        require(name, "x", x, kind="f")
        return Elementwise(name, _wide(compute), slope).apply((x,))[0]

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"Return {text}, element by element."
    return function("x")(apply)


def _square(x: Any) -> Any:
    return x * x


_TWO_BY_ROOT_PI = 2 / _math.sqrt(_math.pi)
_ROOT_TWO_PI = _math.sqrt(2 * _math.pi)

expm1 = _define("expm1", "``exp(x) - 1``", np.expm1, lambda x, y: y + 1)
log1p = _define("log1p", "``log(1 + x)``", np.log1p, lambda x, y: 1 / (x + 1))
erfc = _define(
    "erfc",
    "one minus the error function",
    lambda x: _scipy("erfc")(x),
    lambda x, y: -_TWO_BY_ROOT_PI * exp(-_square(x)),
)
erfcx = _define(
    "erfcx",
    "``exp(x ** 2) * erfc(x)``",
    lambda x: _scipy("erfcx")(x),
    lambda x, y: 2 * x * y - _TWO_BY_ROOT_PI,
)
erfinv = _define(
    "erfinv",
    "the inverse of the error function",
    lambda x: _scipy("erfinv")(x),
    lambda x, y: exp(_square(y)) * (1 / _TWO_BY_ROOT_PI),
)
erfcinv = _define(
    "erfcinv",
    "the inverse of one minus the error function",
    lambda x: _scipy("erfcinv")(x),
    lambda x, y: exp(_square(y)) * (-1 / _TWO_BY_ROOT_PI),
)
ndtr = _define(
    "ndtr",
    "the cumulative distribution of the normal distribution",
    lambda x: _scipy("ndtr")(x),
    lambda x, y: exp(_square(x) * -0.5) * (1 / _ROOT_TWO_PI),
)
ndtri = _define(
    "ndtri",
    "the quantiles of the normal distribution",
    lambda x: _scipy("ndtri")(x),
    lambda x, y: exp(_square(y) * 0.5) * _ROOT_TWO_PI,
)
log_ndtr = _define(
    "log_ndtr",
    "the logarithm of the normal cumulative distribution",
    lambda x: _scipy("log_ndtr")(x),
    lambda x, y: math_sqrt_two_by_pi(x) / erfcx(x * (-1 / _math.sqrt(2))),
)
lgamma = _define(
    "lgamma",
    "the logarithm of the absolute gamma function",
    lambda x: _scipy("gammaln")(x),
    lambda x, y: _digamma(x),
)
digamma = _define(
    "digamma",
    "the derivative of the logarithm of the gamma function",
    lambda x: _scipy("digamma")(x),
    lambda x, y: _polygamma(1, x),
)


def _digamma(x: Any) -> Any:
    return digamma(x)


def math_sqrt_two_by_pi(x: Any) -> Any:
    """Return the square root of two by pi, of the element type of ``x``."""
    return constant_like(_math.sqrt(2 / _math.pi), x)


def _polygamma(order: Any, x: Any) -> Any:
    return Elementwise(
        "polygamma",
        _wide(lambda a: _scipy("polygamma")(order, a)),
        lambda x, y: _polygamma(order + 1, x),
    ).apply((x,))[0]


@function(":n", "x")
def polygamma(n: Any, x: Any) -> Any:
    """Return the derivative of order ``n`` of the digamma function, element by element.

    Args:
        n: The order, integers.
        x: An array that broadcasts with it.
    """
    from hagane.nn.functions.applying import array_of

    order = array_of(n)
    if order.dtype.kind not in "iu":
        raise type_check.refuse("polygamma", "n.dtype.kind in 'iu'", f"n.dtype == {order.dtype}")
    require("polygamma", "x", x, kind="f")
    shape = np.broadcast_shapes(order.shape, x.shape)
    return _polygamma(order, broadcast_to(x, shape))


def _zeta(x: Any, q: Any) -> Any:
    return Elementwise(
        "zeta",
        _wide(lambda a: _scipy("zeta")(x, a)),
        lambda q, y: _zeta(x + 1, q) * (-x).astype(q.dtype),
    ).apply((q,))[0]


@function("q")
def zeta(x: Any, q: Any) -> Any:
    """Return Hurwitz' zeta function, differentiated by ``q`` alone."""
    from hagane.nn.functions.applying import array_of

    exponent = array_of(x)
    shape = np.broadcast_shapes(exponent.shape, q.shape)
    return _zeta(exponent, broadcast_to(q, shape))


_WRITTEN = {
    "erfc": elementwise.erfc,
    "expm1": activations.expm1,
    "log1p": activations.log1p,
    "ndtr": elementwise.ndtr,
}


class Arctan2(FunctionNode):
    """The angle of points."""

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the angles."""
        self.retain_inputs((0, 1))
        return (np.asarray(np.arctan2(*inputs)),)

    def operators(self, *inputs: Any) -> Sequence[Any]:
        """Return the angles, written in operators."""
        return [elementwise.arctan2(inputs[0], inputs[1])]

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Sequence[Any]:
        """Return the gradients."""
        y, x = self.get_retained_inputs()
        by_square = grad_outputs[0] / (x * x + y * y)
        return sum_to(by_square * x, y.shape), sum_to(-(by_square * y), x.shape)


class Product(FunctionNode):
    """The product over axes; its gradient holds where elements are zero too."""

    def __init__(self, axes: tuple[int, ...], keepdims: bool):
        self.axes, self.keepdims = axes, keepdims

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the product."""
        self.retain_inputs((0,))
        (x,) = inputs
        return (np.asarray(np.prod(x, axis=self.axes, keepdims=self.keepdims), dtype=x.dtype),)

    def operators(self, *inputs: Any) -> Sequence[Any]:
        """Return the product, written in operators."""
        axes = np.array(self.axes, np.int64)
        return [op("ReduceProd", *inputs, axes, keepdims=int(self.keepdims))]

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Sequence[Any]:
        """Return the gradient times the product of all other elements."""
        (x,) = self.get_retained_inputs()
        rest = tuple(i for i in range(x.ndim) if i not in self.axes)
        kept = tuple(x.shape[i] for i in rest)
        count = int(np.prod([x.shape[i] for i in self.axes], dtype=np.int64))
        rows = reshape(transpose(x, (*rest, *self.axes)), (*kept, 1, count))
        # Row i holds all elements but the i-th, for which one stands.
        eye = np.eye(count, dtype=x.dtype)
        square = broadcast_to(rows, (*kept, count, count)) * (1 - eye) + eye
        others = Product((len(kept) + 1,), False).apply((square,))[0]
        g = reshape(grad_outputs[0], (*kept, 1))
        back = reshape(
            broadcast_to(g, others.shape) * others, (*kept, *(x.shape[i] for i in self.axes))
        )
        order = np.argsort((*rest, *self.axes)).tolist()
        return (transpose(back, tuple(order)),)


class CumulativeProduct(FunctionNode):
    """The products up to each element of an axis."""

    def __init__(self, axis: int):
        self.axis = axis

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the products."""
        self.retain_inputs((0,))
        (x,) = inputs
        return (np.cumprod(x, axis=self.axis, dtype=x.dtype),)

    def operators(self, *inputs: Any) -> Sequence[Any]:
        """Return the products, written in operators."""
        return [elementwise.cumulative_product(inputs[0], self.axis)]

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Sequence[Any]:
        """Return the gradient; element i of product j is the product of all others up to j."""
        (x,) = self.get_retained_inputs()
        n = x.shape[self.axis]
        rest = tuple(i for i in range(x.ndim) if i != self.axis)
        kept = tuple(x.shape[i] for i in rest)
        order = (*rest, self.axis)
        rows = reshape(transpose(x, order), (*kept, 1, n))
        eye = np.eye(n, dtype=x.dtype)
        square = broadcast_to(rows, (*kept, n, n)) * (1 - eye) + eye
        products = CumulativeProduct(len(kept) + 1).apply((square,))[0]
        g = reshape(transpose(grad_outputs[0], order), (*kept, 1, n))
        terms = products * np.triu(np.ones((n, n), x.dtype)) * broadcast_to(g, (*kept, n, n))
        return (transpose(sum(terms, axis=len(kept) + 1), tuple(np.argsort(order).tolist())),)


class Inverse(FunctionNode):
    """The inverses of a stack of matrices."""

    def check_type_forward(self, in_types: Any) -> None:
        """Check that the matrices are square."""
        type_check.expect(
            in_types.size() == 1,
            in_types[0].dtype.kind == "f",
            in_types[0].ndim == 3,
            in_types[0].shape[-1] == in_types[0].shape[-2],
        )

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the inverses."""
        self.retain_outputs((0,))
        (x,) = inputs
        wide = x.astype(np.float32) if x.dtype == np.float16 else x
        try:
            return (np.linalg.inv(wide).astype(x.dtype),)
        except np.linalg.LinAlgError as error:
            raise ValueError(f"inv: a matrix of {x.shape} has no inverse: {error}") from None

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Sequence[Any]:
        """Return ``-A⁻ᵀ g A⁻ᵀ``."""
        from hagane.nn.functions.products import matmul

        (inverse,) = self.get_retained_outputs()
        left = matmul(-inverse, grad_outputs[0], transa=True)
        return (matmul(left, inverse, transb=True),)


@function("a")
def batch_inv(a: Any) -> Any:
    """Return the inverses of matrices (batch, n, n)."""
    return Inverse().apply((a,))[0]


@function("a")
def inv(a: Any) -> Any:
    """Return the inverse of a matrix."""
    _check_square("inv", a)
    n = a.shape[0]
    return reshape(batch_inv(reshape(a, (1, n, n))), (n, n))


@function("a")
def batch_det(a: Any) -> Any:
    """Return the determinants of matrices (batch, n, n)."""
    require("batch_det", "a", a, kind="f", ndim=3)
    if a.shape[1] != a.shape[2]:
        raise type_check.refuse("batch_det", "square matrices", f"a.shape == {a.shape}")
    return op("Det", a)


@function("a", composed=True)
def det(a: Any) -> Any:
    """Return the determinant of a matrix."""
    _check_square("det", a)
    return reshape(batch_det(reshape(a, (1, *a.shape))), ())


def _check_square(where: str, a: Any) -> None:
    require(where, "a", a, kind="f", ndim=2)
    if a.shape[0] != a.shape[1]:
        raise type_check.refuse(where, "a.shape[0] == a.shape[1]", f"a.shape == {a.shape}")


class Cholesky(FunctionNode):
    """The lower triangular root of a positive definite matrix."""

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the root."""
        self.retain_outputs((0,))
        return (np.linalg.cholesky(inputs[0]),)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Sequence[Any]:
        """Return the gradient (Murray 2016, equation 10), symmetric."""
        from hagane.nn.functions.products import matmul

        (root,) = self.get_retained_outputs()
        n = root.shape[0]
        half = np.tril(np.ones((n, n), root.dtype)) - 0.5 * np.eye(n, dtype=root.dtype)
        middle = matmul(root, grad_outputs[0], transa=True) * half
        inverse = inv(root)
        found = matmul(matmul(inverse, middle, transa=True), inverse)
        return ((found + transpose(found)) * 0.5,)


@function("a")
def cholesky(a: Any) -> Any:
    """Return the lower triangular root of a positive definite matrix."""
    _check_square("cholesky", a)
    return Cholesky().apply((a,))[0]


class Fourier(FunctionNode):
    """A discrete Fourier transform along the last axis, of real and imaginary parts."""

    def __init__(self, method: str):
        self.method = method

    def check_type_forward(self, in_types: Any) -> None:
        """Check that both parts agree."""
        type_check.expect(in_types.size() == 2)
        real, imaginary = in_types
        type_check.expect(
            real.dtype.kind == "f",
            real.dtype == imaginary.dtype,
            real.ndim > 0,
            real.shape == imaginary.shape,
        )

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return real and imaginary part."""
        real, imaginary = inputs
        made = getattr(np.fft, self.method)(real + imaginary * 1j)
        return (
            made.real.astype(real.dtype, copy=False),
            made.imag.astype(imaginary.dtype, copy=False),
        )

    def operators(self, *inputs: Any) -> Sequence[Any]:
        """Return real and imaginary part, written in operators."""
        return fourier(inputs[0], inputs[1], self.method == "ifft")

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Sequence[Any]:
        """Return the other transform of the gradients, scaled."""
        real, imaginary = grad_outputs
        if real is None:
            real = imaginary * 0
        if imaginary is None:
            imaginary = real * 0
        size = real.shape[-1]
        other, factor = ("ifft", size) if self.method == "fft" else ("fft", 1 / size)
        found = Fourier(other).apply((real, imaginary))
        return tuple(part * factor for part in found)


@function("*x")
def fft(x: Any) -> Any:
    """Return the Fourier transform of a pair of real and imaginary part, as a pair."""
    real, imaginary = x
    return Fourier("fft").apply((real, imaginary))


@function("*x")
def ifft(x: Any) -> Any:
    """Return the inverse Fourier transform of a pair of real and imaginary part, as a pair."""
    real, imaginary = x
    return Fourier("ifft").apply((real, imaginary))
