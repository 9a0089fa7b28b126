"""Convolution links."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from hagane.nn import functions as F
from hagane.nn.autograd.parameter import Parameter
from hagane.nn.functions.applying import pop_options
from hagane.nn.functions.images.windows import as_tuple, get_conv_outsize
from hagane.nn.initializers import Constant, get_initializer
from hagane.nn.links.connection import bias_initializer
from hagane.nn.model.link import Link


def _of_rank(construct: Callable[..., None], ndim: int) -> Any:
    """Return a constructor of links over any number of axes as that of links over ``ndim``."""

    @functools.wraps(construct)
    def constructed(self: Any, *args: Any, **kwargs: Any) -> None:
        construct(self, ndim, *args, **kwargs)

    own, _, *rest = inspect.signature(construct).parameters.values()
    vars(constructed)["__signature__"] = inspect.Signature([own, *rest])
    return constructed


def _filled(W: Any, b: Any) -> dict[str, Any]:
    """Return the initializers of a link on given arrays."""
    content = None if b is None else Constant(getattr(b, "array", b))
    return {"initialW": Constant(getattr(W, "array", W)), "initial_bias": content}


def _check_bias(out_channels: int, b: Any) -> None:
    if b is not None and out_channels != b.size:
        raise ValueError(
            f"`out_channels` does not match the size of `b`: {out_channels} and {b.size}"
        )


class _Filters(Link):
    """Filters over windows, in groups of channels."""

    _specs: tuple[str, ...] = ("in_channels", "out_channels", "ksize", "stride", "pad")

    def __init__(
        self,
        ndim: int,
        in_channels: Any,
        out_channels: Any,
        ksize: Any,
        stride: Any,
        pad: Any,
        nobias: bool,
        initialW: Any,
        initial_bias: Any,
        dilate: Any,
        groups: int,
    ):
        super().__init__()
        if ksize is None:
            out_channels, ksize, in_channels = in_channels, out_channels, None
        self.ndim = ndim
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.ksize = ksize
        self.stride = as_tuple(stride, ndim)
        self.pad = as_tuple(pad, ndim)
        self.dilate = as_tuple(dilate, ndim)
        self.groups = int(groups)
        with self.init_scope():
            self.W = Parameter(get_initializer(initialW))
            if in_channels is not None:
                self._initialize_params(in_channels)
            self.b = None if nobias else Parameter(bias_initializer(initial_bias), out_channels)

    def _channels(self, in_channels: int) -> tuple[int, int]:
        """Return the channels of the filters, first those that no group divides."""
        raise NotImplementedError

    def _initialize_params(self, in_channels: int) -> None:
        for name, count in (
            ("the number of input channels", in_channels),
            ("the number of output channels", self.out_channels),
        ):
            if count % self.groups:
                raise ValueError(f"{name} must be divisible by the number of groups")
        whole, divided = self._channels(in_channels)
        kernel = as_tuple(self.ksize, self.ndim)
        self.W.initialize((whole, divided // self.groups, *kernel))

    @property
    def printable_specs(self) -> Any:
        """Sizes and options."""
        more = [("nobias", self.b is None), ("dilate", self.dilate), ("groups", self.groups)]
        return iter([(name, getattr(self, name)) for name in self._specs] + more)


class _Convolution(_Filters):
    """What links of convolutions share: none of the public ones is another, as in Chainer."""

    # Whether the constructor knows the number of axes, which then is no argument.
    _has_rank = False

    def __init__(
        self,
        ndim: int,
        in_channels: Any,
        out_channels: Any,
        ksize: Any = None,
        stride: Any = 1,
        pad: Any = 0,
        nobias: bool = False,
        initialW: Any = None,
        initial_bias: Any = None,
        cover_all: bool = False,
        dilate: Any = 1,
        groups: int = 1,
    ):
        super().__init__(
            ndim, in_channels, out_channels, ksize, stride, pad, nobias, initialW, initial_bias,
            dilate, groups,
        )  # fmt: skip
        self.cover_all = cover_all

    def _channels(self, in_channels: int) -> tuple[int, int]:
        return self.out_channels, in_channels

    def forward(self, x: Any) -> Any:
        """Return the outputs, (batch, out_channels, *sizes)."""
        if self.W.array is None:
            self._initialize_params(x.shape[1])
        return F.convolution_nd(
            x, self.W, self.b, self.stride, self.pad, self.cover_all, self.dilate, self.groups
        )

    @classmethod
    def from_params(
        cls,
        W: Any,
        b: Any = None,
        stride: Any = 1,
        pad: Any = 0,
        nobias: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Return a link on given arrays."""
        out_channels, in_channels, *kernel = W.shape
        _check_bias(out_channels, b)
        rank = () if cls._has_rank else (len(kernel),)
        make: Any = cls
        return make(
            *rank, in_channels * kwargs.get("groups", 1), out_channels, tuple(kernel), stride, pad,
            nobias or b is None, **_filled(W, b), **kwargs,
        )  # fmt: skip


class ConvolutionND(_Convolution):
    """A convolution over any number of axes.

    Args:
        ndim: The number of axes.
        in_channels: None for that of the first input.
        out_channels: The number of filters.
        ksize: The filters' size. Without it the arguments before move up by one.
        stride: Of the window.
        pad: Zeros around the input.
        nobias: Whether there is no bias.
        initialW: Fills the filters; LeCun's normal one if None.
        initial_bias: Fills the bias; zeros if None.
        cover_all: Whether every element lies in a window.
        dilate: The distance of taps.
        groups: Into how many independent parts channels split.
    """


class Convolution1D(ConvolutionND):
    """A convolution over one axis."""

    _has_rank = True
    __init__ = _of_rank(ConvolutionND.__init__, 1)


class Convolution3D(ConvolutionND):
    """A convolution over three axes."""

    _has_rank = True
    __init__ = _of_rank(ConvolutionND.__init__, 3)


class _Convolution2D(_Convolution):
    _has_rank = True

    def __init__(
        self,
        in_channels: Any,
        out_channels: Any,
        ksize: Any = None,
        stride: Any = 1,
        pad: Any = 0,
        nobias: bool = False,
        initialW: Any = None,
        initial_bias: Any = None,
        **kwargs: Any,
    ):
        dilate, groups = pop_options(
            "Convolution2D", kwargs, ("deterministic",), dilate=1, groups=1
        )
        super().__init__(
            2,
            in_channels,
            out_channels,
            ksize,
            stride,
            pad,
            nobias,
            initialW,
            initial_bias,
            False,
            dilate,
            groups,
        )

    def forward(self, x: Any) -> Any:
        """Return the outputs, (batch, out_channels, height, width)."""
        if self.W.array is None:
            self._initialize_params(x.shape[1])
        return F.convolution_2d(
            x, self.W, self.b, self.stride, self.pad, dilate=self.dilate, groups=self.groups
        )


class Convolution2D(_Convolution2D):
    """A convolution of images.

    Args:
        in_channels: None for that of the first input.
        out_channels: The number of filters.
        ksize: The filters' size. Without it the arguments before move up by one.
        stride: Of the window.
        pad: Zeros around the image.
        nobias: Whether there is no bias.
        initialW: Fills the filters.
        initial_bias: Fills the bias.
        kwargs: ``dilate`` and ``groups``, both 1 by default.
    """


class DilatedConvolution2D(_Convolution2D):
    """A convolution of images whose taps lie apart."""

    def __init__(
        self,
        in_channels: Any,
        out_channels: Any,
        ksize: Any = None,
        stride: Any = 1,
        pad: Any = 0,
        dilate: Any = 1,
        nobias: bool = False,
        initialW: Any = None,
        initial_bias: Any = None,
    ):
        super().__init__(
            in_channels,
            out_channels,
            ksize,
            stride,
            pad,
            nobias,
            initialW,
            initial_bias,
            dilate=dilate,
        )


class _Deconvolution(_Filters):
    """What links of transposed convolutions share."""

    _specs = (*_Filters._specs, "outsize")
    _transposed: Callable[..., Any] = staticmethod(F.deconvolution_nd)

    def __init__(
        self,
        ndim: int,
        in_channels: Any,
        out_channels: Any,
        ksize: Any = None,
        stride: Any = 1,
        pad: Any = 0,
        nobias: bool = False,
        outsize: Any = None,
        initialW: Any = None,
        initial_bias: Any = None,
        dilate: Any = 1,
        groups: int = 1,
    ):
        super().__init__(
            ndim, in_channels, out_channels, ksize, stride, pad, nobias, initialW, initial_bias,
            dilate, groups,
        )  # fmt: skip
        self.outsize = None if outsize is None else as_tuple(outsize, ndim)

    def _channels(self, in_channels: int) -> tuple[int, int]:
        return in_channels, self.out_channels

    def forward(self, x: Any) -> Any:
        """Return the outputs, (batch, out_channels, *sizes)."""
        if self.W.array is None:
            self._initialize_params(x.shape[1])
        return self._transposed(
            x, self.W, self.b, self.stride, self.pad, self.outsize,
            dilate=self.dilate, groups=self.groups,
        )  # fmt: skip


class DeconvolutionND(_Deconvolution):
    """A transposed convolution over any number of axes.

    Args:
        ndim: The number of axes.
        in_channels: None for that of the first input.
        out_channels: The number of filters.
        ksize: The filters' size. Without it the arguments before move up by one.
        stride: Of the window.
        pad: Elements that are cut off around the result.
        nobias: Whether there is no bias.
        outsize: The sizes of the result; by default the smallest.
        initialW: Fills the filters.
        initial_bias: Fills the bias.
        dilate: The distance of taps.
        groups: Into how many independent parts channels split.
    """


class Deconvolution1D(DeconvolutionND):
    """A transposed convolution over one axis."""

    __init__ = _of_rank(DeconvolutionND.__init__, 1)


class Deconvolution3D(DeconvolutionND):
    """A transposed convolution over three axes."""

    __init__ = _of_rank(DeconvolutionND.__init__, 3)


class Deconvolution2D(_Deconvolution):
    """A transposed convolution of images."""

    _transposed = staticmethod(F.deconvolution_2d)

    def __init__(
        self,
        in_channels: Any,
        out_channels: Any,
        ksize: Any = None,
        stride: Any = 1,
        pad: Any = 0,
        nobias: bool = False,
        outsize: Any = None,
        initialW: Any = None,
        initial_bias: Any = None,
        **kwargs: Any,
    ):
        dilate, groups = pop_options(
            "Deconvolution2D", kwargs, ("deterministic",), dilate=1, groups=1
        )
        super().__init__(
            2,
            in_channels,
            out_channels,
            ksize,
            stride,
            pad,
            nobias,
            outsize,
            initialW,
            initial_bias,
            dilate,
            groups,
        )

    @classmethod
    def from_params(
        cls,
        W: Any,
        b: Any = None,
        stride: Any = 1,
        pad: Any = 0,
        nobias: bool = False,
        outsize: Any = None,
        **kwargs: Any,
    ) -> Deconvolution2D:
        """Return a link on given arrays."""
        in_channels, out_channels, *kernel = W.shape
        out_channels *= kwargs.get("groups", 1)
        _check_bias(out_channels, b)
        return cls(
            in_channels, out_channels, tuple(kernel), stride, pad, nobias or b is None, outsize,
            **_filled(W, b), **kwargs,
        )  # fmt: skip


class DepthwiseConvolution2D(Link):
    """A convolution of each channel with filters of its own."""

    def __init__(
        self,
        in_channels: Any,
        channel_multiplier: int,
        ksize: Any,
        stride: Any = 1,
        pad: Any = 0,
        nobias: bool = False,
        initialW: Any = None,
        initial_bias: Any = None,
    ):
        super().__init__()
        self.ksize = ksize
        self.stride = as_tuple(stride, 2)
        self.pad = as_tuple(pad, 2)
        self.channel_multiplier = channel_multiplier
        self.nobias = nobias
        self.initial_bias = 0 if initial_bias is None else initial_bias
        with self.init_scope():
            self.W = Parameter(get_initializer(initialW))
            self.b = None if nobias else Parameter(get_initializer(self.initial_bias))
        if in_channels is not None:
            self._initialize_params(in_channels)

    def _initialize_params(self, in_channels: int) -> None:
        self.W.initialize((self.channel_multiplier, in_channels, *as_tuple(self.ksize, 2)))
        if self.b is not None:
            self.b.initialize(self.channel_multiplier * in_channels)

    def forward(self, x: Any) -> Any:
        """Return the outputs, (batch, channels * multiplier, height, width)."""
        if self.W.array is None:
            self._initialize_params(x.shape[1])
        return F.depthwise_convolution_2d(x, self.W, self.b, self.stride, self.pad)


class LocalConvolution2D(Link):
    """A convolution with filters of its own at each place."""

    def __init__(
        self,
        in_channels: Any,
        out_channels: int,
        in_size: Any = None,
        ksize: Any = None,
        stride: Any = 1,
        nobias: bool = False,
        initialW: Any = None,
        initial_bias: Any = None,
        **kwargs: Any,
    ):
        pop_options("LocalConvolution2D", kwargs, ())
        super().__init__()
        self.ksize = ksize
        self.stride = as_tuple(stride, 2)
        self.nobias = nobias
        self.out_channels = out_channels
        with self.init_scope():
            self.W = Parameter(get_initializer(initialW))
            self.b = None if nobias else Parameter(bias_initializer(initial_bias))
            if in_channels is not None and in_size is not None:
                self._initialize_params(in_channels, as_tuple(in_size, 2))

    def _initialize_params(self, in_channels: int, in_size: tuple[int, ...]) -> None:
        kernel = as_tuple(self.ksize, 2)
        places = [
            get_conv_outsize(size, k, s, 0)
            for size, k, s in zip(in_size, kernel, self.stride, strict=True)
        ]
        self.W.initialize((self.out_channels, *places, in_channels, *kernel))
        if self.b is not None:
            self.b.initialize((self.out_channels, *places))

    def forward(self, x: Any) -> Any:
        """Return the outputs, (batch, out_channels, rows, columns)."""
        if self.W.array is None:
            self._initialize_params(x.shape[1], x.shape[2:])
        return F.local_convolution_2d(x, self.W, self.b, self.stride)
