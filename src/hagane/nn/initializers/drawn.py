"""Arrays of random numbers, by default from NumPy's global generator."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.nn.initializers.constant import Constant
from hagane.nn.initializers.initializer import Initializer, get_fans


class Normal(Initializer):
    """Draws from a normal distribution.

    Args:
        scale: Its standard deviation.
        dtype: The element type.
        rng: A ``numpy.random.RandomState``.
    """

    def __init__(self, scale: float = 0.05, dtype: Any = None, **kwargs: Any):
        self.scale = scale
        self.rng = _take_rng(kwargs)
        super().__init__(dtype)

    def __call__(self, array: Any) -> None:
        """Fill an array in place."""
        _check_dtype(self, array)
        rng = np.random if self.rng is None else self.rng
        array[...] = rng.normal(loc=0.0, scale=self.scale, size=array.shape).astype(array.dtype)


class Uniform(Initializer):
    """Draws evenly from [-scale, scale]."""

    def __init__(self, scale: float = 0.05, dtype: Any = None, **kwargs: Any):
        self.scale = scale
        self.rng = _take_rng(kwargs)
        super().__init__(dtype)

    def __call__(self, array: Any) -> None:
        """Fill an array in place."""
        _check_dtype(self, array)
        rng = np.random if self.rng is None else self.rng
        drawn = rng.uniform(low=-self.scale, high=self.scale, size=array.shape)
        array[...] = drawn.astype(array.dtype)


class _Scaled(Initializer):
    """Draws with a deviation that the number of connections gives."""

    draw: Any = Normal
    default_scale = 1.0

    def __init__(self, scale: float | None = None, dtype: Any = None, **kwargs: Any):
        self.scale = self.default_scale if scale is None else scale
        self.rng = _take_rng(kwargs)
        super().__init__(dtype)

    def deviation(self, fan_in: int, fan_out: int) -> float:
        raise NotImplementedError

    def __call__(self, array: Any) -> None:
        """Fill an array in place."""
        _check_dtype(self, array)
        scale = self.scale * self.deviation(*get_fans(array.shape))
        type(self).draw(scale, rng=self.rng)(array)


class LeCunNormal(_Scaled):
    """Normal with deviation ``scale * sqrt(1 / fan_in)`` (LeCun 1998)."""

    def deviation(self, fan_in: int, fan_out: int) -> float:
        """Return the deviation."""
        return float(np.sqrt(1.0 / fan_in))


class GlorotNormal(_Scaled):
    """Normal with deviation ``scale * sqrt(2 / (fan_in + fan_out))`` (Glorot and Bengio 2010)."""

    def deviation(self, fan_in: int, fan_out: int) -> float:
        """Return the deviation."""
        return float(np.sqrt(2.0 / (fan_in + fan_out)))


class HeNormal(_Scaled):
    """Normal with deviation ``scale * sqrt(2 / fan)`` (He et al. 2015).

    Args:
        scale: A factor.
        dtype: The element type.
        fan_option: Which fan: ``fan_in`` or ``fan_out``.
    """

    def __init__(
        self, scale: float = 1.0, dtype: Any = None, fan_option: str = "fan_in", **kwargs: Any
    ):
        self.fan_option = fan_option
        super().__init__(scale, dtype, **kwargs)

    def deviation(self, fan_in: int, fan_out: int) -> float:
        """Return the deviation.

        Raises:
            ValueError: ``fan_option`` is neither.
        """
        if self.fan_option not in ("fan_in", "fan_out"):
            raise ValueError(
                f"fan_option should be either 'fan_in' or 'fan_out', got {self.fan_option!r}"
            )
        fan = fan_in if self.fan_option == "fan_in" else fan_out
        return float(np.sqrt(2.0 / fan))


class LeCunUniform(_Scaled):
    """Even on ``scale * sqrt(3 / fan_in)`` each way (LeCun 1998)."""

    draw = Uniform

    def deviation(self, fan_in: int, fan_out: int) -> float:
        """Return the bound."""
        return float(np.sqrt(3.0 / fan_in))


class GlorotUniform(_Scaled):
    """Even on ``scale * sqrt(6 / (fan_in + fan_out))`` each way (Glorot and Bengio 2010)."""

    draw = Uniform

    def deviation(self, fan_in: int, fan_out: int) -> float:
        """Return the bound."""
        return float(np.sqrt(6.0 / (fan_in + fan_out)))


class HeUniform(_Scaled):
    """Even on ``scale * sqrt(6 / fan_in)`` each way (He et al. 2015)."""

    draw = Uniform

    def deviation(self, fan_in: int, fan_out: int) -> float:
        """Return the bound."""
        return float(np.sqrt(6.0 / fan_in))


class Orthogonal(Initializer):
    """Fills a matrix with orthogonal rows or columns (Saxe et al. 2013).

    Args:
        scale: A factor.
        dtype: The element type.
        mode: ``auto``; ``embedding`` (more outputs than inputs), ``projection`` (fewer)
            or ``basis`` (as many) refuse other sizes.
    """

    def __init__(self, scale: float = 1.1, dtype: Any = None, mode: str = "auto", **kwargs: Any):
        if mode not in ("auto", "projection", "embedding", "basis"):
            raise ValueError(
                "Orthogonal: expected mode 'auto', 'projection', 'embedding' or 'basis', "
                f"got {mode!r}"
            )
        self.scale = scale
        self.mode = mode
        self.rng = _take_rng(kwargs)
        super().__init__(dtype)

    def __call__(self, array: Any) -> None:
        """Fill an array, seen as (first axis, all others), in place.

        Raises:
            ValueError: The mode does not allow its sizes.
        """
        _check_dtype(self, array)
        rng = np.random if self.rng is None else self.rng
        if not array.shape:
            array[...] = self.scale * (2 * int(rng.randint(2)) - 1)
            return
        if not array.size:
            raise ValueError("Array to be initialized must be non-empty.")
        rows, columns = len(array), int(np.prod(array.shape[1:], dtype=np.int64))
        if (columns > rows and self.mode in ("embedding", "basis")) or (
            columns < rows and self.mode in ("projection", "basis")
        ):
            raise ValueError(
                f"Cannot make orthogonal {self.mode}. shape = {array.shape}, interpreted as "
                f"{columns}-dim input and {rows}-dim output."
            )
        drawn = rng.normal(size=(rows, columns))
        if columns > rows:
            drawn = drawn.T
        q, r = np.linalg.qr(drawn)
        q = q * np.copysign(self.scale, np.diag(r))
        array[...] = (q.T if columns > rows else q).reshape(array.shape)


def _take_rng(options: dict[str, Any]) -> Any:
    rng = options.pop("rng", None)
    if options:
        raise TypeError(f"unexpected arguments: {', '.join(options)}")
    return rng


def _check_dtype(initializer: Initializer, array: Any) -> None:
    if initializer.dtype is not None:
        assert array.dtype == np.dtype(initializer.dtype), f"{array.dtype} != {initializer.dtype}"


class UpsamplingDeconvFilter(Initializer):
    """Fills the weight of a transposed convolution so that it interpolates linearly."""

    def __init__(self, interpolation: str = "linear", dtype: Any = None):
        if interpolation != "linear":
            raise ValueError(f"interpolation must be 'linear', got {interpolation!r}")
        self.interpolation = interpolation
        super().__init__(dtype)

    def __call__(self, array: Any) -> None:
        """Fill an array (in, out, *kernel) in place.

        Raises:
            ValueError: It has other axes.
        """
        _fill_diagonal_filters(array, _linear_taps)


class DownsamplingConvFilter(Initializer):
    """Fills the weight of a convolution so that it averages linearly."""

    def __init__(self, interpolation: str = "linear", dtype: Any = None):
        if interpolation != "linear":
            raise ValueError(f"interpolation must be 'linear', got {interpolation!r}")
        self.interpolation = interpolation
        super().__init__(dtype)

    def __call__(self, array: Any) -> None:
        """Fill an array (out, in, *kernel) in place.

        Raises:
            ValueError: It has other axes.
        """

        def taps(size: int) -> Any:
            found = _linear_taps(size)
            return found / found.sum()

        _fill_diagonal_filters(array, taps)


def _linear_taps(size: int) -> Any:
    up = (size + 1) // 2
    center = up - 1 if size % 2 == 1 else up - 0.5
    return 1 - np.abs(np.arange(size) - center) / up


def _fill_diagonal_filters(array: Any, taps: Any) -> None:
    if array.ndim < 3 or (array.shape[0] != array.shape[1] and array.shape[1] != 1):
        raise ValueError(
            "expected as many input as output channels, or groups of one, "
            f"got an array of shape {array.shape}"
        )
    kernel = np.ones(())
    for size in array.shape[2:]:
        kernel = np.multiply.outer(kernel, taps(size))
    array[...] = 0
    for i in range(array.shape[0]):
        array[i, i if array.shape[1] != 1 else 0] = kernel


_DEFAULT = LeCunNormal


def get_initializer(initializer: Any) -> Any:
    """Return an initializer: LeCunNormal for None, a constant for a number or array.

    Raises:
        TypeError: It is none of these and cannot be called.
    """
    if initializer is None:
        return _DEFAULT()
    if isinstance(initializer, str):
        raise TypeError(
            "initializer: expected None, a number, an array or an initializer, as "
            f"initializers.HeNormal(), got {initializer!r}"
        )
    if np.isscalar(initializer) or isinstance(initializer, np.ndarray):
        return Constant(initializer)
    if not callable(initializer):
        raise TypeError(f"invalid type of initializer: {type(initializer)}")
    return initializer
