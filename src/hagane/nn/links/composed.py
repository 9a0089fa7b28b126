"""Links of several convolutions."""

from __future__ import annotations

import itertools
from typing import Any

from hagane.nn import functions as F
from hagane.nn.autograd.configuration import get_dtype
from hagane.nn.functions.applying import pop_options
from hagane.nn.links.convolution import Convolution2D
from hagane.nn.links.normalization import BatchNormalization
from hagane.nn.model.chain import Chain, ChainList


class MLPConvolution2D(ChainList):
    """A convolution, and then convolutions of single pixels (Lin et al. 2013).

    The activation comes between them, and is no link: the convolutions have the numbers 0, 1, ….
    """

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
        conv_init, bias_init = pop_options(
            "MLPConvolution2D", kwargs, ("wscale",), conv_init=None, bias_init=None
        )
        if ksize is None:
            out_channels, ksize, in_channels = in_channels, out_channels, None
        if not callable(activation):
            raise TypeError(f"MLPConvolution2D: activation must be callable, got {activation!r}")
        first = out_channels[0]
        given = {"initialW": conv_init, "initial_bias": bias_init}
        super().__init__(
            Convolution2D(in_channels, first, ksize, stride, pad, **given),
            *(Convolution2D(a, b, 1, **given) for a, b in itertools.pairwise(out_channels)),
        )
        self.activation = activation

    def forward(self, x: Any) -> Any:
        """Return the outputs of the last convolution, without an activation."""
        *inner, last = self
        for layer in inner:
            x = self.activation(layer(x))
        return last(x)


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


class InceptionBN(Chain):
    """A block of GoogLeNet with batch normalization (Ioffe and Szegedy 2015).

    Args:
        in_channels: Channels of inputs, None for those of the first.
        out1: Maps of the way of single pixels, 0 for none.
        proj3: Maps before the convolution of 3 x 3.
        out3: Its maps.
        proj33: Maps before two convolutions of 3 x 3.
        out33: Their maps.
        pooltype: ``max`` or ``avg``.
        proj_pool: Maps after pooling, None for the input's channels as they are.
        stride: Of the last step of each way.
        conv_init: Fills the filters.
        dtype: The element type of the normalization.

    Raises:
        NotImplementedError: ``pooltype`` is another.
    """

    def __init__(
        self,
        in_channels: Any,
        out1: int,
        proj3: int,
        out3: int,
        proj33: int,
        out33: int,
        pooltype: str,
        proj_pool: int | None = None,
        stride: int = 1,
        conv_init: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        if pooltype not in ("max", "avg"):
            raise NotImplementedError(f"pooltype: expected 'max' or 'avg', got {pooltype!r}")
        if out1 > 0:
            assert stride == 1, f"stride: expected 1 beside out1 == {out1}, got {stride}"
            assert proj_pool is not None, f"proj_pool: expected maps beside out1 == {out1}"
        self.out1, self.proj_pool, self.stride, self.pooltype = out1, proj_pool, stride, pooltype
        found = get_dtype(dtype)
        ways: list[tuple[str, Any, int, int, int]] = [
            ("proj3", in_channels, proj3, 1, 1),
            ("conv3", proj3, out3, 3, stride),
            ("proj33", in_channels, proj33, 1, 1),
            ("conv33a", proj33, out33, 3, 1),
            ("conv33b", out33, out33, 3, stride),
        ]
        if out1 > 0:
            ways.append(("conv1", in_channels, out1, 1, stride))
        if proj_pool is not None:
            ways.append(("poolp", in_channels, proj_pool, 1, 1))
        with self.init_scope():
            for name, before, maps, ksize, step in ways:
                made = Convolution2D(
                    before, maps, ksize, step, ksize // 2, nobias=True, initialW=conv_init
                )
                setattr(self, name, made)
                setattr(self, f"{name}n", BatchNormalization(maps, dtype=found))

    def _way(self, x: Any, *names: str) -> Any:
        for name in names:
            x = F.relu(getattr(self, f"{name}n")(getattr(self, name)(x)))
        return x

    def forward(self, x: Any) -> Any:
        """Return the outputs of all ways, joined."""
        # In this order weights are drawn whose sizes come with the first input.
        ways = [self._way(x, "conv1")] if self.out1 > 0 else []
        ways += [self._way(x, "proj3", "conv3"), self._way(x, "proj33", "conv33a", "conv33b")]
        if self.pooltype == "max":
            pooled = F.max_pooling_2d(x, 3, stride=self.stride, pad=1, cover_all=False)
        else:
            pooled = F.average_pooling_2d(x, 3, stride=self.stride, pad=1)
        ways.append(pooled if self.proj_pool is None else self._way(pooled, "poolp"))
        return F.concat(ways, axis=1)
