"""Layers of ``chainer.links``: their parameters, and the functions that they apply."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from hagane.frontends.libraries.chainer import products
from hagane.frontends.libraries.chainer.link import LINK, items_of, parameter
from hagane.frontends.libraries.chainer.operands import (
    is_lazy,
    lazy_parameter,
    shape_of,
    size,
    sizes,
    variable,
)
from hagane.frontends.libraries.chainer.operands import parameter as weight
from hagane.frontends.libraries.chainer.table import CHAINER
from hagane.frontends.libraries.table import View
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Library, Value
from hagane.symbolic import product


def layer(*names: str) -> Callable[[Any], Any]:
    """Register a class of ``chainer.links``."""
    return CHAINER.layer(*(f"links.{name}" for name in names), base=LINK)


def _new(t: Core, name: str, *arguments: Value, **keywords: Value) -> Value:
    return t.call_library(f"chainer.links.{name}", list(arguments), keywords)


def new_bias(t: Core, nobias: Value, count: Value) -> Value:
    """Return a new bias, None without one."""
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
        return {"in_size": in_size, "out_size": out, "W": w, "b": new_bias(t, nobias, out)}

    @staticmethod
    def forward(t: Core, self: View, x: Value, n_batch_axes: Value = 1) -> Value:
        """Apply the layer."""
        if is_lazy(self.W):
            shape = shape_of(t, variable(t, x))
            self.W = weight(t, self.out_size, product(shape[n_batch_axes:]))
        return products.linear(t, x, self.W, self.get("b", None), n_batch_axes)


@layer("Bilinear")
class Bilinear:
    """``e1 W e2 + b``."""

    @staticmethod
    def init(t: Core, left_size: Value, right_size: Value, out_size: Value, nobias: Value = False,
             initialW: Value = None, initial_bias: Value = None) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        made: dict[str, Value] = {"W": weight(t, left_size, right_size, out_size), "nobias": nobias}
        if not nobias:
            made |= {"V1": weight(t, left_size, out_size), "V2": weight(t, right_size, out_size)}
            made["b"] = weight(t, out_size)
        return made

    @staticmethod
    def forward(t: Core, self: View, e1: Value, e2: Value) -> Value:
        """Apply the layer."""
        given = (self.get(name, None) for name in ("V1", "V2", "b"))
        return products.bilinear(t, e1, e2, self.W, *given)


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
        return products.embed_id(t, x, self.W, self.get("ignore_label", None))


@layer("Inception")
class Inception:
    """Four branches of convolutions, joined along the channels (Szegedy et al., 2014)."""

    @staticmethod
    def init(
        t: Core,
        in_channels: Value,
        out1: Value,
        proj3: Value,
        out3: Value,
        proj5: Value,
        out5: Value,
        proj_pool: Value,
        conv_init: Value = None,
        bias_init: Value = None,
    ) -> dict[str, Value]:
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
    def init(
        t: Core,
        in_channels: Value,
        out_channels: Value,
        ksize: Value = None,
        stride: Value = 1,
        pad: Value = 0,
        activation: Value = None,
        *_: Value,
        **__: Value,
    ) -> dict[str, Value]:
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
        activation = self.get("activation", None) or Library("chainer.functions.relu")
        first, *rest = items_of(t, self.instance())
        x = t.call(first, [x], {})
        for link in rest:
            x = t.call(link, [t.call(activation, [x], {})], {})
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
            "activate": activate or Library("chainer.functions.relu"),
        }

    @staticmethod
    def forward(t: Core, self: View, x: Value) -> Value:
        """Apply the layer."""
        out = t.call(self.activate, [t.call(self.plain, [x], {})], {})
        gate = t.call_library("chainer.functions.sigmoid", [t.call(self.transform, [x], {})])
        return t.call_library("chainer.functions.linear_interpolate", [gate, out, x])


@layer("Maxout")
class Maxout:
    """The largest of several linear layers."""

    @staticmethod
    def init(
        t: Core, in_size: Value, out_size: Value, pool_size: Value, *_: Value, **__: Value
    ) -> dict[str, Value]:
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
    """``x + b`` with b placed at an axis, which is a parameter or comes after x."""

    @staticmethod
    def init(t: Core, axis: Value = 1, shape: Value = None) -> dict[str, Value]:
        """Return the attributes."""
        return {"axis": axis, "b": None if shape is None else weight(t, *sizes(t, shape))}

    @staticmethod
    def forward(t: Core, self: View, *xs: Value) -> Value:
        """Apply the layer."""
        own = self.get("b", None)
        first, other = (*_some(t, xs, 1 if own is not None else 2), own)[:2]
        return t.call_library("chainer.functions.bias", [first, other, self.axis])


def _some(t: Core, xs: tuple[Value, ...], count: int) -> tuple[Value, ...]:
    """Return the inputs of a layer, which takes so many."""
    if len(xs) != count:
        t.fail("call", f"expected {count} inputs, got {len(xs)}")
    return xs


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
            if bias_shape is None:
                t.fail("value", "expected bias_shape, as W_shape is None and bias_term is true")
            made["bias"] = _new(t, "Bias", axis, bias_shape)
        return made

    @staticmethod
    def forward(t: Core, self: View, *xs: Value) -> Value:
        """Apply the layer."""
        own, bias = self.get("W", None), self.get("bias", None)
        first, other = (*_some(t, xs, 1 if own is not None else 2), own)[:2]
        y = t.call_library("chainer.functions.scale", [first, other, self.axis])
        return y if bias is None else t.call(bias, [y], {})


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
class SimplifiedDropconnect:
    """A linear layer with weights dropped while training."""

    @staticmethod
    def init(t: Core, in_size: Value, out_size: Value, ratio: Value = 0.5, nobias: Value = False,
             initialW: Value = None, initial_bias: Value = None) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        made = Linear.init(t, in_size, out_size, nobias, initialW, initial_bias)
        return {**made, "ratio": ratio}

    @staticmethod
    def forward(t: Core, self: View, x: Value, train: Value = True, mask: Value = None,
                use_batchwise_mask: Value = True) -> Value:  # fmt: skip
        """Apply the layer."""
        if is_lazy(self.W):
            self.W = weight(t, self.out_size, product(shape_of(t, variable(t, x))[1:]))
        given = [x, self.W, self.get("b", None), self.ratio, train, mask, use_batchwise_mask]
        return t.call_library("chainer.functions.simplified_dropconnect", given)


@layer("Classifier")
class Classifier:
    """A predictor with its loss and accuracy."""

    @staticmethod
    def init(t: Core, predictor: Value, lossfun: Value = None, accfun: Value = None,
             label_key: Value = -1) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
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
        self.accuracy = None
        self.y = t.call(self.predictor, inputs, named)
        self.loss = t.call(self.lossfun, [self.y, labels], {})
        if self.get("compute_accuracy", True):
            self.accuracy = t.call(self.accfun, [self.y, labels], {})
        return self.loss
