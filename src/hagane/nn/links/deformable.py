"""Deformable convolution as links (Dai et al. 2017)."""

from __future__ import annotations

from typing import Any

from hagane.nn import functions as F
from hagane.nn.autograd.parameter import Parameter
from hagane.nn.functions.images.windows import as_tuple
from hagane.nn.initializers import get_initializer
from hagane.nn.links.connection import bias_initializer
from hagane.nn.links.convolution import Convolution2D
from hagane.nn.model.chain import Chain
from hagane.nn.model.link import Link


class DeformableConvolution2D(Chain):
    """A convolution that first finds, by a convolution, where its taps go.

    Args:
        in_channels: None for that of the first input.
        out_channels: The number of filters.
        ksize: The filters' size.
        stride: Of the window.
        pad: Zeros around the image.
        offset_nobias: Whether the offsets have no bias.
        offset_initialW: Fills the filters of the offsets.
        offset_initial_bias: Fills their bias; zeros if None.
        deform_nobias: Whether the result has no bias.
        deform_initialW: Fills the filters; zeros if None.
        deform_initial_bias: Fills the bias; zeros if None.
    """

    def __init__(
        self,
        in_channels: Any,
        out_channels: int,
        ksize: Any,
        stride: Any = 1,
        pad: Any = 0,
        offset_nobias: bool = False,
        offset_initialW: Any = None,
        offset_initial_bias: Any = None,
        deform_nobias: bool = False,
        deform_initialW: Any = None,
        deform_initial_bias: Any = None,
    ):
        super().__init__()
        height, width = as_tuple(ksize, 2)
        with self.init_scope():
            self.offset_conv = Convolution2D(
                in_channels,
                2 * height * width,
                ksize,
                stride,
                pad,
                offset_nobias,
                offset_initialW,
                offset_initial_bias,
            )
            self.deform_conv = DeformableConvolution2DSampler(
                in_channels,
                out_channels,
                ksize,
                stride,
                pad,
                deform_nobias,
                deform_initialW,
                deform_initial_bias,
            )

    def forward(self, x: Any) -> Any:
        """Return the outputs, (batch, out_channels, rows, columns)."""
        return self.deform_conv(x, self.offset_conv(x))


class DeformableConvolution2DSampler(Link):
    """A convolution whose taps are moved by offsets that it is given."""

    def __init__(
        self,
        in_channels: Any,
        out_channels: int,
        ksize: Any,
        stride: Any = 1,
        pad: Any = 0,
        nobias: bool = False,
        initialW: Any = None,
        initial_bias: Any = None,
    ):
        super().__init__()
        self.ksize, self.out_channels = ksize, out_channels
        self.stride, self.pad = as_tuple(stride, 2), as_tuple(pad, 2)
        with self.init_scope():
            self.W = Parameter(get_initializer(0 if initialW is None else initialW))
            self.b = None if nobias else Parameter(bias_initializer(initial_bias), out_channels)
        if in_channels is not None:
            self._initialize_params(in_channels)

    def _initialize_params(self, in_channels: int) -> None:
        self.W.initialize((self.out_channels, in_channels, *as_tuple(self.ksize, 2)))

    def forward(self, x: Any, offset: Any) -> Any:
        """Return the outputs, (batch, out_channels, rows, columns)."""
        if self.W.array is None:
            self._initialize_params(x.shape[1])
        return F.deformable_convolution_2d_sampler(x, offset, self.W, self.b, self.stride, self.pad)
