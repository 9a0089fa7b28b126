"""Links of several convolutions."""

from __future__ import annotations

from typing import Any

from hagane.nn import functions as F
from hagane.nn.links.convolution import Convolution2D, _pop
from hagane.nn.model.chain import Chain
from hagane.nn.model.sequential import Sequential


class MLPConvolution2D(Sequential):
    """A convolution, and then convolutions of single pixels (Lin et al. 2013)."""

    def __init__(
        self,
        in_channels: Any,
        out_channels: Any,
        ksize: Any = None,
        stride: Any = 1,
        pad: Any = 0,
        activation: Any = F.relu,
        *args: Any,
        **kwargs: Any,
    ):
        conv_init, bias_init = _pop("MLPConvolution2D", kwargs, conv_init=None, bias_init=None)
        if ksize is None:
            out_channels, ksize, in_channels = in_channels, out_channels, None
        if not callable(activation):
            raise TypeError(f"MLPConvolution2D: activation must be callable, got {activation!r}")
        first, *rest = out_channels
        layers: list[Any] = [
            Convolution2D(
                in_channels, first, ksize, stride, pad, initialW=conv_init, initial_bias=bias_init
            )
        ]
        before = first
        for count in rest:
            layers += [
                activation,
                Convolution2D(before, count, 1, initialW=conv_init, initial_bias=bias_init),
            ]
            before = count
        super().__init__(*layers)
        self.activation = activation


class Inception(Chain):
    """A block of GoogLeNet (Szegedy et al. 2014)."""

    def __init__(
        self,
        in_channels: Any,
        out1: int,
        proj3: int,
        out3: int,
        proj5: int,
        out5: int,
        proj_pool: int,
        conv_init: Any = None,
        bias_init: Any = None,
    ):
        super().__init__()
        given = {"initialW": conv_init, "initial_bias": bias_init}
        with self.init_scope():
            self.conv1 = Convolution2D(in_channels, out1, 1, **given)
            self.proj3 = Convolution2D(in_channels, proj3, 1, **given)
            self.conv3 = Convolution2D(proj3, out3, 3, pad=1, **given)
            self.proj5 = Convolution2D(in_channels, proj5, 1, **given)
            self.conv5 = Convolution2D(proj5, out5, 5, pad=2, **given)
            self.projp = Convolution2D(in_channels, proj_pool, 1, **given)

    def forward(self, x: Any) -> Any:
        """Return the outputs of all four ways, joined."""
        ways = (
            self.conv1(x),
            self.conv3(F.relu(self.proj3(x))),
            self.conv5(F.relu(self.proj5(x))),
            self.projp(F.max_pooling_2d(x, 3, stride=1, pad=1)),
        )
        return F.relu(F.concat(ways, axis=1))
