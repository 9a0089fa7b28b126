"""Normalisations of ``torch.nn``."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torch.functions.networks import normalising
from hagane.frontends.libraries.torch.layers.layer import buffer, layer, weight
from hagane.frontends.libraries.torch.operands import need_tensor, shape_of
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value


def _count(t: Core) -> Tensor:
    return t.emit.new(ir.DataType.INT64, (), kind="torch.Tensor")


def _counts(t: Core) -> Counter[int] | None:
    """Return the counts of calls that the caller of the graph keeps; None if the graph does."""
    training = t.emit.training
    return None if training is None or training.written else training.counted


def _batch_norm(name: str, ranks: tuple[int, ...], affine_default: bool) -> None:
    def init(
        t: Core, num_features: Value, eps: Value = 1e-5, momentum: Value = 0.1,
        affine: Value = affine_default, track_running_stats: Value = True, device: Value = None,
        dtype: Value = None, bias: Value = True,
    ) -> dict[str, Value]:  # fmt: skip
        made = {"dtype": dtype, "device": device}
        return {
            "num_features": num_features, "eps": eps, "momentum": momentum, "affine": affine,
            "track_running_stats": track_running_stats,
            "weight": weight(t, num_features, **made) if affine else None,
            "bias": weight(t, num_features, **made) if affine and bias else None,
            "running_mean": buffer(t, num_features) if track_running_stats else None,
            "running_var": buffer(t, num_features) if track_running_stats else None,
            "num_batches_tracked": _count(t) if track_running_stats else None,
        }  # fmt: skip

    def forward(t: Core, self: View, input: Value) -> Value:
        if isinstance(input, Tensor) and input.shape is not None and len(input.shape) not in ranks:
            t.fail(
                "rank",
                f"{name} expects {' or '.join(map(str, ranks))} axes, got {t.show(input)}",
                input,
            )
        x = need_tensor(t, input, "input")
        tracked = bool(self.track_running_stats)
        training = bool(self.get("training", True))
        own = training or not tracked
        if not name.startswith("Instance"):  # its flag only says whether training changes them
            tracked = (tracked or not training) and self.running_mean is not None
            own = training or not tracked
        mean, variance = (self.running_mean, self.running_var) if tracked else (None, None)
        if not name.startswith("Instance"):
            normalising.channels_fit(t, x, self.num_features, name)
            share = self.momentum
            # The count is read where it is needed alone: what was read of a tensor is compared.
            if training and isinstance(mean, Tensor) and share is None:
                share = normalising.share_of_batch(t, self.get("num_batches_tracked", None))
            elif training and isinstance(mean, Tensor) and (counts := _counts(t)) is not None:
                counts[id(self.instance().host)] += 1  # the caller counts
            elif training and isinstance(mean, Tensor):
                normalising.count_batch(t, self.get("num_batches_tracked", None))
            return normalising.batch_norm(
                t, x, mean, variance, self.weight, self.bias, own, share, self.eps
            )
        lone = len(shape_of(t, x)) == min(ranks)
        if lone:
            x = t.op("Unsqueeze", x, np.array([0], dtype=np.int64))
        if not lone or tracked:
            normalising.channels_fit(t, x, self.num_features, name)
        share = 0.0 if self.momentum is None else self.momentum
        y = normalising.instance_norm(
            t, x, mean, variance, self.weight, self.bias, own, share, self.eps
        )
        return t.op("Squeeze", y, np.array([0], dtype=np.int64)) if lone else y

    layer(name)(type(name, (), {"init": staticmethod(init), "forward": staticmethod(forward)}))


for _n, _ranks in ((1, (2, 3)), (2, (4,)), (3, (5,))):
    _batch_norm(f"BatchNorm{_n}d", _ranks, True)
    _batch_norm(f"InstanceNorm{_n}d", (_n + 1, _n + 2), False)
_batch_norm("SyncBatchNorm", (2, 3, 4, 5), True)


def _lazy(kind: str) -> None:
    plain: Any = TORCH.layers[f"torch.nn.{kind}"]

    def init(t: Core, *arguments: Value, **keywords: Value) -> dict[str, Value]:
        return {**plain.init(t, 0, *arguments, **keywords), "num_features": 0}

    def forward(t: Core, self: View, input: Value) -> Value:
        x = need_tensor(t, input, "input")
        if self.num_features == 0 and len(shape_of(t, x)) > 1:
            self.num_features = count = shape_of(t, x)[1]
            for name in ("weight", "bias", "running_mean", "running_var"):
                if self.raw(name) is not None:
                    setattr(self, name, weight(t, count))
        return plain.forward(t, self, x)

    functions = {"init": staticmethod(init), "forward": staticmethod(forward)}
    layer(f"Lazy{kind}")(type(f"Lazy{kind}", (), functions))


for _n in (1, 2, 3):
    _lazy(f"BatchNorm{_n}d")
    _lazy(f"InstanceNorm{_n}d")


def _layer_norm(name: str, has_bias: bool, epsilon: float | None) -> None:
    def init(
        t: Core, normalized_shape: Value, eps: Value = epsilon, elementwise_affine: Value = True,
        bias: Value = True, device: Value = None, dtype: Value = None,
    ) -> dict[str, Value]:  # fmt: skip
        shape = (
            tuple(normalized_shape)
            if isinstance(normalized_shape, tuple | list)
            else (normalized_shape,)
        )
        made = {"dtype": dtype, "device": device}
        return {
            "normalized_shape": shape, "eps": eps, "elementwise_affine": elementwise_affine,
            "weight": weight(t, *shape, **made) if elementwise_affine else None,
            "bias": weight(t, *shape, **made) if elementwise_affine and bias and has_bias else None,
        }  # fmt: skip

    def forward(t: Core, self: View, input: Value) -> Value:
        shape, scale = self.normalized_shape, self.weight
        if not has_bias:
            return normalising.rms_norm(t, input, shape, scale, self.eps)
        return normalising.layer_norm(t, input, shape, scale, self.bias, self.eps)

    layer(name)(type(name, (), {"init": staticmethod(init), "forward": staticmethod(forward)}))


_layer_norm("LayerNorm", True, 1e-5)
_layer_norm("RMSNorm", False, None)


@layer("GroupNorm")
class GroupNorm:
    """Normalises over groups of channels."""

    @staticmethod
    def init(
        t: Core, num_groups: Value, num_channels: Value, eps: Value = 1e-5, affine: Value = True,
        **_: Value,
    ) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        if isinstance(num_channels, int) and num_channels % num_groups:
            t.fail(
                "value",
                f"expected num_channels ({num_channels}) to be divisible by num_groups "
                f"({num_groups})",
            )
        return {
            "num_groups": num_groups, "num_channels": num_channels, "eps": eps, "affine": affine,
            "weight": weight(t, num_channels) if affine else None,
            "bias": weight(t, num_channels) if affine else None,
        }  # fmt: skip

    @staticmethod
    def forward(t: Core, self: View, input: Value) -> Value:
        """Apply the layer."""
        normalising.channels_fit(t, input, self.num_channels, "GroupNorm")
        return normalising.group_norm(t, input, self.num_groups, self.weight, self.bias, self.eps)
