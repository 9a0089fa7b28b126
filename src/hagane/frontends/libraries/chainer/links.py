"""Layers of ``chainer.links``: their parameters, and the functions that they apply."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from hagane.frontends.libraries.chainer import products, windows
from hagane.frontends.libraries.chainer.link import LINK, parameter
from hagane.frontends.libraries.chainer.operands import (
    is_lazy,
    lazy_parameter,
    need_rank,
    per_axis,
    shape_of,
    size,
    sizes,
    variable,
)
from hagane.frontends.libraries.chainer.operands import parameter as weight
from hagane.frontends.libraries.chainer.table import CHAINER
from hagane.frontends.libraries.table import View
from hagane.frontends.python.core import Core
from hagane.frontends.python.values import Tensor, Value
from hagane.symbolic import product


def layer(*names: str) -> Callable[[Any], Any]:
    """Register a class of ``chainer.links``."""
    return CHAINER.layer(*(f"links.{name}" for name in names), base=LINK)


def _new(t: Core, name: str, *arguments: Value, **keywords: Value) -> Value:
    return t.call_library(f"chainer.links.{name}", list(arguments), keywords)


def _bias(t: Core, nobias: Value, count: Value) -> Value:
    return None if nobias else weight(t, count)


@layer("Linear")
class Linear:
    """``x @ W.T + b``; without ``in_size`` the first input tells it."""

    @staticmethod
    def init(t: Core, in_size: Value, out_size: Value = None, nobias: Value = False,
             initialW: Value = None, initial_bias: Value = None) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        if out_size is None:
            in_size, out_size = None, in_size
        out = size(t, out_size)
        w = lazy_parameter(t) if in_size is None else weight(t, out, in_size)
        return {"in_size": in_size, "out_size": out, "W": w, "b": _bias(t, nobias, out)}

    @staticmethod
    def forward(t: Core, self: View, x: Value, n_batch_axes: Value = 1) -> Value:
        """Apply the layer."""
        if is_lazy(self.W):
            shape = shape_of(t, variable(t, x))
            self.W = weight(t, self.out_size, product(shape[n_batch_axes:]))
        return products.linear(t, x, self.W, self.b, n_batch_axes)


@layer("Bilinear")
class Bilinear:
    """``e1 W e2 + b``."""

    @staticmethod
    def init(t: Core, left_size: Value, right_size: Value, out_size: Value, nobias: Value = False,
             initialW: Value = None, initial_bias: Value = None) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        return {"W": weight(t, left_size, right_size, out_size), "b": _bias(t, nobias, out_size)}

    @staticmethod
    def forward(t: Core, self: View, e1: Value, e2: Value) -> Value:
        """Apply the layer."""
        return products.bilinear(t, e1, e2, self.W)


@layer("EmbedID")
class EmbedID:
    """Rows of a table by their numbers."""

    @staticmethod
    def init(t: Core, in_size: Value, out_size: Value, initialW: Value = None,
             ignore_label: Value = None) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        return {"W": weight(t, in_size, out_size), "ignore_label": ignore_label}

    @staticmethod
    def forward(t: Core, self: View, x: Value) -> Value:
        """Apply the layer."""
        return products.embed_id(t, x, self.W)


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
            "cover_all": cover_all, "b": _bias(t, nobias, out), "W": lazy_parameter(t),
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

    def init_dilated(t: Core, in_channels: Value, out_channels: Value, ksize: Value = None,
                     stride: Value = 1, pad: Value = 0, dilate: Value = 1, nobias: Value = False,
                     initialW: Value = None, initial_bias: Value = None) -> dict[str, Value]:  # fmt: skip
        channels, out, ksize = _kernel(t, in_channels, out_channels, ksize)
        return attributes(t, 2, channels, out, ksize, stride, pad, nobias, None, False, dilate, 1)

    def init_nd(t: Core, ndim: Value, in_channels: Value, out_channels: Value, ksize: Value = None,
                stride: Value = 1, pad: Value = 0, nobias: Value = False, *rest: Value,
                outsize: Value = None, initialW: Value = None, initial_bias: Value = None,
                cover_all: Value = False, dilate: Value = 1, groups: Value = 1) -> dict[str, Value]:  # fmt: skip
        channels, out, ksize = _kernel(t, in_channels, out_channels, ksize)
        return attributes(t, ndim, channels, out, ksize, stride, pad, nobias, outsize, cover_all,
                          dilate, groups)  # fmt: skip

    def forward(t: Core, self: View, x: Value) -> Value:
        made = {k: getattr(self, k) for k in ("ksize", "groups", "out_channels")}
        if is_lazy(self.W):
            shape = shape_of(t, variable(t, x))
            if len(shape) < 2:
                t.fail("rank", f"expected (batch, channels, ...), got {t.show(x)}", x)
            self.W = _filter(t, self.rank, shape[1], made)
        settings = (x, self.W, self.b, self.stride, self.pad)
        if transposed:
            return windows.deconvolution(
                t, self.rank, *settings, self.outsize, self.dilate, self.groups
            )
        return windows.convolution(
            t, self.rank, *settings, self.cover_all, self.dilate, self.groups
        )

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
        return windows.depthwise_convolution_2d(t, x, self.W, self.b, self.stride, self.pad)


@layer("LocalConvolution2D")
class LocalConvolution2D:
    """A convolution with a kernel of its own at every place."""

    @staticmethod
    def init(t: Core, in_channels: Value, out_channels: Value, in_size: Value = None,
             ksize: Value = None, stride: Value = 1, nobias: Value = False, initialW: Value = None,
             initial_bias: Value = None, **_: Value) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        made = {"out_channels": out_channels, "ksize": ksize, "stride": stride}
        lazy = in_channels is None or in_size is None
        w = lazy_parameter(t) if lazy else LocalConvolution2D.kernel(t, made, in_channels, in_size)
        return {**made, "W": w}

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
            made = {k: getattr(self, k) for k in ("out_channels", "ksize", "stride")}
            self.W = LocalConvolution2D.kernel(t, made, shape[1], shape[2:])
        return windows.local_convolution_2d(t, x, self.W, None, self.stride)


@layer("Inception")
class Inception:
    """Four branches of convolutions, joined along the channels (Szegedy et al., 2014)."""

    @staticmethod
    def init(t: Core, in_channels: Value, out1: Value, proj3: Value, out3: Value, proj5: Value,
             out5: Value, proj_pool: Value, conv_init: Value = None, bias_init: Value = None) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        return {
            "conv1": _new(t, "Convolution2D", in_channels, out1, 1),
            "proj3": _new(t, "Convolution2D", in_channels, proj3, 1),
            "conv3": _new(t, "Convolution2D", proj3, out3, 3, pad=1),
            "proj5": _new(t, "Convolution2D", in_channels, proj5, 1),
            "conv5": _new(t, "Convolution2D", proj5, out5, 5, pad=2),
            "projp": _new(t, "Convolution2D", in_channels, proj_pool, 1),
        }  # fmt: skip

    @staticmethod
    def forward(t: Core, self: View, x: Value) -> Value:
        """Apply the layer."""

        def run(name: str, value: Value) -> Value:
            return t.call(getattr(self, name), [value], {})

        def relu(value: Value) -> Value:
            return t.call_library("chainer.functions.relu", [value])

        pooled = t.call_library("chainer.functions.max_pooling_2d", [x, 3], {"stride": 1, "pad": 1})
        branches = [
            run("conv1", x), run("conv3", relu(run("proj3", x))),
            run("conv5", relu(run("proj5", x))), run("projp", pooled),
        ]  # fmt: skip
        return relu(t.call_library("chainer.functions.concat", [branches], {"axis": 1}))


@layer("MLPConvolution2D")
class MLPConvolution2D:
    """A convolution followed by convolutions of size 1."""

    @staticmethod
    def init(t: Core, in_channels: Value, out_channels: Value, ksize: Value = None,
             stride: Value = 1, pad: Value = 0, activation: Value = None, *_: Value, **__: Value) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        if ksize is None:
            in_channels, out_channels, ksize = None, in_channels, out_channels
        links = [_new(t, "Convolution2D", in_channels, out_channels[0], ksize, stride, pad)]
        for before, after in itertools.pairwise(out_channels):
            links.append(_new(t, "Convolution2D", before, after, 1))
        return {"_children": t.new_list(links), "activation": activation}

    @staticmethod
    def forward(t: Core, self: View, x: Value) -> Value:
        """Apply the layer."""
        for link in self.raw("_children") and self._children:
            x = t.call(link, [x], {})
        return x


@layer("Highway")
class Highway:
    """A layer that passes a part of its input through."""

    @staticmethod
    def init(t: Core, in_out_size: Value, nobias: Value = False, activate: Value = None,
             *_: Value, **__: Value) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        return {
            "plain": _new(t, "Linear", in_out_size, in_out_size, nobias),
            "transform": _new(t, "Linear", in_out_size, in_out_size, nobias),
        }

    @staticmethod
    def forward(t: Core, self: View, x: Value) -> Value:
        """Apply the layer."""
        y = t.call(self.plain, [x], {})
        t.call(self.transform, [x], {})
        return y


@layer("Maxout")
class Maxout:
    """The largest of several linear layers."""

    @staticmethod
    def init(t: Core, in_size: Value, out_size: Value, pool_size: Value, *_: Value, **__: Value) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        return {
            "linear": _new(t, "Linear", in_size, out_size * pool_size),
            "out_size": out_size,
            "pool_size": pool_size,
        }

    @staticmethod
    def forward(t: Core, self: View, x: Value) -> Value:
        """Apply the layer."""
        y = t.call(self.linear, [x], {})
        return t.call_library("chainer.functions.maxout", [y, self.pool_size])


@layer("PReLU")
class PReLU:
    """max(0, x) + W * min(0, x)."""

    @staticmethod
    def init(t: Core, shape: Value = (), init: Value = 0.25) -> dict[str, Value]:
        """Return the attributes."""
        return {"W": weight(t, *sizes(t, shape))}

    @staticmethod
    def forward(t: Core, self: View, x: Value) -> Value:
        """Apply the layer."""
        return t.call_library("chainer.functions.prelu", [x, self.W])


@layer("Swish")
class Swish:
    """``x * sigmoid(beta * x)``."""

    @staticmethod
    def init(t: Core, beta_shape: Value = (), beta_init: Value = 1.0) -> dict[str, Value]:
        """Return the attributes."""
        return {"beta": weight(t, *(() if beta_shape is None else sizes(t, beta_shape)))}

    @staticmethod
    def forward(t: Core, self: View, x: Value) -> Value:
        """Apply the layer."""
        return t.call_library("chainer.functions.swish", [x, self.beta])


@layer("Bias")
class Bias:
    """``x + b`` with b placed at an axis."""

    @staticmethod
    def init(t: Core, axis: Value = 1, shape: Value = None) -> dict[str, Value]:
        """Return the attributes."""
        return {"axis": axis, "b": None if shape is None else weight(t, *sizes(t, shape))}

    @staticmethod
    def forward(t: Core, self: View, *xs: Value) -> Value:
        """Apply the layer."""
        other = xs[1] if self.b is None else self.b
        return t.call_library("chainer.functions.bias", [xs[0], other, self.axis])


@layer("Scale")
class Scale:
    """``W * x + b`` with W placed at an axis."""

    @staticmethod
    def init(t: Core, axis: Value = 1, W_shape: Value = None, bias_term: Value = False,
             bias_shape: Value = None) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        made: dict[str, Value] = {"axis": axis, "W": None, "bias": None}
        if W_shape is not None:
            made["W"] = weight(t, *sizes(t, W_shape))
            if bias_term:
                made["bias"] = _new(t, "Bias", axis, W_shape)
        elif bias_term:
            made["bias"] = _new(t, "Bias", axis, bias_shape)
        return made

    @staticmethod
    def forward(t: Core, self: View, *xs: Value) -> Value:
        """Apply the layer."""
        other = xs[1] if self.W is None else self.W
        y = t.call_library("chainer.functions.scale", [xs[0], other, self.axis])
        return y if self.bias is None else t.call(self.bias, [y], {})


@layer("Parameter")
class ParameterLink:
    """A link that only holds an array."""

    @staticmethod
    def init(t: Core, array: Value) -> dict[str, Value]:
        """Return the attributes."""
        return {"W": parameter(t, array)}

    @staticmethod
    def forward(t: Core, self: View, volatile: Value = "off") -> Value:
        """Return the parameter."""
        return self.W


@layer("SimplifiedDropconnect")
class SimplifiedDropconnect(Linear):
    """A linear layer with weights dropped while training."""

    init = Linear.init
    forward = Linear.forward


@layer("Classifier")
class Classifier:
    """A predictor with its loss and accuracy."""

    @staticmethod
    def init(t: Core, predictor: Value, lossfun: Value = None, accfun: Value = None,
             label_key: Value = -1) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        from hagane.frontends.python.values import Library

        return {
            "predictor": predictor, "label_key": label_key, "compute_accuracy": True,
            "lossfun": lossfun or Library("chainer.functions.softmax_cross_entropy"),
            "accfun": accfun or Library("chainer.functions.accuracy"), "y": None, "loss": None,
            "accuracy": None,
        }  # fmt: skip

    @staticmethod
    def forward(t: Core, self: View, *args: Value, **kwargs: Value) -> Value:
        """Return the loss of the predictor's scores against the labels."""
        inputs, named = list(args), dict(kwargs)
        if isinstance(self.label_key, str):
            if self.label_key not in named:
                t.fail("value", f"ValueError: label key '{self.label_key}' is not found")
            labels = named.pop(self.label_key)
        else:
            if not -len(inputs) <= self.label_key < len(inputs):
                t.fail("value", f"ValueError: label key {self.label_key} is out of bounds")
            labels = inputs.pop(self.label_key)
        self.y = t.call(self.predictor, inputs, named)
        self.loss = t.call(self.lossfun, [self.y, labels], {})
        if self.compute_accuracy:
            self.accuracy = t.call(self.accfun, [self.y, labels], {})
        return self.loss
