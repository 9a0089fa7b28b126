"""Convolutions of ``chainer.links``: their parameters, and the functions that they apply."""

from __future__ import annotations

from typing import Any

from hagane.frontends.libraries.chainer import windows
from hagane.frontends.libraries.chainer.links import layer, new_bias
from hagane.frontends.libraries.chainer.operands import (
    is_lazy,
    lazy_parameter,
    need_rank,
    per_axis,
    shape_of,
    size,
    variable,
)
from hagane.frontends.libraries.chainer.operands import parameter as weight
from hagane.frontends.libraries.table import View
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value


def _kernel(t: Core, in_channels: Value, out_channels: Value, ksize: Value) -> tuple[Value, ...]:
    """Return channels and kernel; two numbers alone are output channels and kernel."""
    if ksize is None:
        return None, in_channels, out_channels
    return in_channels, out_channels, ksize


def _conv(name: str, rank: int, *, transposed: bool = False, dilated: bool = False) -> None:
    """Register a convolution; ``rank`` 0 takes the number of axes as first argument."""

    def attributes(t: Core, spatial: int, channels: Value, out: Value, ksize: Value, stride: Value,
                   pad: Value, nobias: Value, outsize: Value, cover_all: Value, dilate: Value,
                   groups: Value) -> dict[str, Value]:  # fmt: skip
        made = {
            "ksize": ksize, "out_channels": out, "nobias": bool(nobias), "rank": spatial,
            "stride": stride, "pad": pad, "dilate": dilate, "groups": groups, "outsize": outsize,
            "cover_all": cover_all, "b": new_bias(t, nobias, out), "W": lazy_parameter(t),
        }  # fmt: skip
        if channels is not None:
            made["W"] = _filter(t, spatial, size(t, channels), made)
        return made

    def _filter(t: Core, spatial: int, channels: Value, made: dict[str, Value]) -> Tensor:
        kernel = per_axis(t, made["ksize"], spatial, "ksize")
        groups, out = made["groups"], size(t, made["out_channels"])
        for count, what in ((channels, "input"), (out, "output")):
            if isinstance(count, int) and isinstance(groups, int) and count % groups:
                t.fail("value", f"expected the {what} channels ({count}) to divide by {groups}")
        pair = (channels, out // groups) if transposed else (out, channels // groups)
        return weight(t, *pair, *kernel)

    def init(t: Core, in_channels: Value, out_channels: Value, ksize: Value = None,
             stride: Value = 1, pad: Value = 0, nobias: Value = False, initialW: Value = None,
             initial_bias: Value = None, cover_all: Value = False, *, dilate: Value = 1,
             groups: Value = 1) -> dict[str, Value]:  # fmt: skip
        channels, out, ksize = _kernel(t, in_channels, out_channels, ksize)
        return attributes(t, rank, channels, out, ksize, stride, pad, nobias, None, cover_all,
                          dilate, groups)  # fmt: skip

    def init_transposed(t: Core, in_channels: Value, out_channels: Value, ksize: Value = None,
                        stride: Value = 1, pad: Value = 0, nobias: Value = False,
                        outsize: Value = None, initialW: Value = None, initial_bias: Value = None,
                        *, dilate: Value = 1, groups: Value = 1) -> dict[str, Value]:  # fmt: skip
        channels, out, ksize = _kernel(t, in_channels, out_channels, ksize)
        return attributes(t, rank, channels, out, ksize, stride, pad, nobias, outsize, False,
                          dilate, groups)  # fmt: skip

    def init_dilated(
        t: Core,
        in_channels: Value,
        out_channels: Value,
        ksize: Value = None,
        stride: Value = 1,
        pad: Value = 0,
        dilate: Value = 1,
        nobias: Value = False,
        initialW: Value = None,
        initial_bias: Value = None,
    ) -> dict[str, Value]:
        channels, out, ksize = _kernel(t, in_channels, out_channels, ksize)
        return attributes(t, 2, channels, out, ksize, stride, pad, nobias, None, False, dilate, 1)

    def init_nd(
        t: Core,
        ndim: Value,
        in_channels: Value,
        out_channels: Value,
        ksize: Value = None,
        stride: Value = 1,
        pad: Value = 0,
        nobias: Value = False,
        *rest: Value,
        outsize: Value = None,
        initialW: Value = None,
        initial_bias: Value = None,
        cover_all: Value = False,
        dilate: Value = 1,
        groups: Value = 1,
    ) -> dict[str, Value]:
        channels, out, ksize = _kernel(t, in_channels, out_channels, ksize)
        return attributes(t, ndim, channels, out, ksize, stride, pad, nobias, outsize, cover_all,
                          dilate, groups)  # fmt: skip

    def forward(t: Core, self: View, x: Value) -> Value:
        shape = shape_of(t, variable(t, x))
        spatial = rank or self.get("rank", len(shape) - 2)
        if is_lazy(self.W):
            if len(shape) < 2:
                t.fail("rank", f"expected (batch, channels, ...), got {t.show(x)}", x)
            made = {k: getattr(self, k) for k in ("ksize", "groups", "out_channels")}
            self.W = _filter(t, spatial, shape[1], made)
        settings = (x, self.W, self.get("b", None), self.stride, self.pad)
        last = (self.get("dilate", 1), self.get("groups", 1))
        if transposed:
            return windows.deconvolution(t, spatial, *settings, self.get("outsize", None), *last)
        return windows.convolution(t, spatial, *settings, self.get("cover_all", False), *last)

    start: Any = init_transposed if transposed else init_dilated if dilated else init
    start = start if rank else init_nd
    functions = {"init": staticmethod(start), "forward": staticmethod(forward)}
    layer(name)(type(name, (), functions))


_conv("Convolution2D", 2)
_conv("Convolution1D", 1)
_conv("Convolution3D", 3)
_conv("ConvolutionND", 0)
_conv("DilatedConvolution2D", 2, dilated=True)
_conv("Deconvolution2D", 2, transposed=True)
_conv("Deconvolution1D", 1, transposed=True)
_conv("Deconvolution3D", 3, transposed=True)
_conv("DeconvolutionND", 0, transposed=True)


@layer("DepthwiseConvolution2D")
class DepthwiseConvolution2D:
    """A convolution of each channel by itself."""

    @staticmethod
    def init(t: Core, in_channels: Value, channel_multiplier: Value, ksize: Value,
             stride: Value = 1, pad: Value = 0, nobias: Value = False, initialW: Value = None,
             initial_bias: Value = None) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        kernel = per_axis(t, ksize, 2, "ksize")
        lazy = in_channels is None
        w = lazy_parameter(t) if lazy else weight(t, channel_multiplier, in_channels, *kernel)
        return {
            "channel_multiplier": channel_multiplier, "ksize": tuple(kernel), "stride": stride,
            "pad": pad, "W": w, "nobias": bool(nobias),
            "b": None if nobias or lazy else weight(t, channel_multiplier * in_channels),
        }  # fmt: skip

    @staticmethod
    def forward(t: Core, self: View, x: Value) -> Value:
        """Apply the layer."""
        if is_lazy(self.W):
            channels = need_rank(t, variable(t, x), 4, "x")[1]
            self.W = weight(t, self.channel_multiplier, channels, *self.ksize)
        bias = self.get("b", None)
        return windows.depthwise_convolution_2d(t, x, self.W, bias, self.stride, self.pad)


@layer("LocalConvolution2D")
class LocalConvolution2D:
    """A convolution with a kernel of its own at every place."""

    @staticmethod
    def init(t: Core, in_channels: Value, out_channels: Value, in_size: Value = None,
             ksize: Value = None, stride: Value = 1, nobias: Value = False, initialW: Value = None,
             initial_bias: Value = None, **_: Value) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        made = {"out_channels": out_channels, "ksize": ksize, "stride": stride, "nobias": nobias}
        if in_channels is None or in_size is None:
            return {**made, "W": lazy_parameter(t), "b": None if nobias else lazy_parameter(t)}
        return {**made, **LocalConvolution2D.parameters(t, made, in_channels, in_size)}

    @staticmethod
    def parameters(
        t: Core, made: dict[str, Value], channels: Value, in_size: Value
    ) -> dict[str, Value]:
        """Return weight and bias for pictures of a size."""
        w = LocalConvolution2D.kernel(t, made, channels, in_size)
        return {"W": w, "b": None if made["nobias"] else weight(t, *shape_of(t, w)[:3])}

    @staticmethod
    def kernel(t: Core, made: dict[str, Value], channels: Value, in_size: Value) -> Tensor:
        """Return the weight for pictures of a size."""
        kernel = per_axis(t, made["ksize"], 2, "ksize")
        strides, space = (
            per_axis(t, made["stride"], 2, "stride"),
            per_axis(t, in_size, 2, "in_size"),
        )
        out = [
            windows.output_size(n, k, s, 0, False)
            for n, k, s in zip(space, kernel, strides, strict=True)
        ]
        return weight(t, made["out_channels"], *out, channels, *kernel)

    @staticmethod
    def forward(t: Core, self: View, x: Value) -> Value:
        """Apply the layer."""
        if is_lazy(self.W):
            shape = need_rank(t, variable(t, x), 4, "x")
            made = {k: getattr(self, k) for k in ("out_channels", "ksize", "stride", "nobias")}
            found = LocalConvolution2D.parameters(t, made, shape[1], shape[2:])
            self.W, self.b = found["W"], found["b"]
        return windows.local_convolution_2d(t, x, self.W, self.get("b", None), self.stride)
