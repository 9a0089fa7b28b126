"""Normalisations of ``torch.nn``."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torch.functions.networks import normalising
from hagane.frontends.libraries.torch.layers.layer import buffer, layer, made_as, weight
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


def _nothing(t: Core, self: View) -> Value:
    return None


def _batch_norm(name: str, ranks: tuple[int, ...], default: bool) -> None:
    def init(
        t: Core, num_features: Value, eps: Value = 1e-5, momentum: Value = 0.1,
        affine: Value = default, track_running_stats: Value = default, device: Value = None,
        dtype: Value = None, *, bias: Value = True,
    ) -> dict[str, Value]:  # fmt: skip
        made = {"dtype": dtype, "device": device}
        return {
            "num_features": num_features, "eps": eps, "momentum": momentum, "affine": affine,
            "track_running_stats": track_running_stats,
            "weight": weight(t, num_features, **made) if affine else None,
            "bias": weight(t, num_features, **made) if affine and bias else None,
            "running_mean": buffer(t, num_features, **made) if track_running_stats else None,
            "running_var": buffer(t, num_features, **made) if track_running_stats else None,
            "num_batches_tracked": _count(t) if track_running_stats else None,
        }  # fmt: skip

    def init_sync(
        t: Core, num_features: Value, eps: Value = 1e-5, momentum: Value = 0.1,
        affine: Value = True, track_running_stats: Value = True, process_group: Value = None,
        device: Value = None, dtype: Value = None, *, bias: Value = True,
    ) -> dict[str, Value]:  # fmt: skip
        made = init(t, num_features, eps, momentum, affine, track_running_stats, device, dtype,
                    bias=bias)  # fmt: skip
        return {**made, "process_group": process_group}

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

    made = init_sync if name.startswith("Sync") else init
    functions = {"init": made, "forward": forward, "reset_running_stats": _nothing}
    layer(name)(type(name, (), {key: staticmethod(item) for key, item in functions.items()}))


for _n, _ranks in ((1, (2, 3)), (2, (4,)), (3, (5,))):
    _batch_norm(f"BatchNorm{_n}d", _ranks, True)
    _batch_norm(f"InstanceNorm{_n}d", (_n + 1, _n + 2), False)
_batch_norm("SyncBatchNorm", (2, 3, 4, 5), True)


def _lazy(kind: str) -> None:
    plain: Any = TORCH.layers[f"torch.nn.{kind}"]

    def init(
        t: Core, eps: Value = 1e-5, momentum: Value = 0.1, affine: Value = True,
        track_running_stats: Value = True, device: Value = None, dtype: Value = None, *,
        bias: Value = True,
    ) -> dict[str, Value]:  # fmt: skip
        settings = plain.init(t, 0, eps, momentum, affine, track_running_stats, device, dtype,
                              bias=bias)  # fmt: skip
        return {**settings, "num_features": 0}

    def forward(t: Core, self: View, input: Value) -> Value:
        x = need_tensor(t, input, "input")
        if self.num_features == 0 and len(shape_of(t, x)) > 1:
            self.num_features = count = shape_of(t, x)[1]
            for name, make in (
                ("weight", weight), ("bias", weight), ("running_mean", buffer),
                ("running_var", buffer),
            ):  # fmt: skip
                if (held := self.raw(name)) is not None:
                    setattr(self, name, make(t, count, **made_as(held)))
        return plain.forward(t, self, x)

    functions: dict[str, Any] = {
        "init": init, "forward": forward, "reset_running_stats": _nothing,
    }  # fmt: skip
    members: dict[str, Any] = {key: staticmethod(item) for key, item in functions.items()}
    layer(f"Lazy{kind}")(type(f"Lazy{kind}", (), members))


for _n in (1, 2, 3):
    _lazy(f"BatchNorm{_n}d")
    _lazy(f"InstanceNorm{_n}d")


def _layer_norm(name: str, has_bias: bool, epsilon: float | None) -> None:
    def init(
        t: Core, normalized_shape: Value, eps: Value = epsilon, elementwise_affine: Value = True,
        bias: Value = has_bias, device: Value = None, dtype: Value = None,
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
            **({"bias": weight(t, *shape, **made) if elementwise_affine and bias else None}
               if has_bias else {}),
        }  # fmt: skip

    def init_rms(
        t: Core, normalized_shape: Value, eps: Value = None, elementwise_affine: Value = True,
        device: Value = None, dtype: Value = None,
    ) -> dict[str, Value]:  # fmt: skip
        return init(t, normalized_shape, eps, elementwise_affine, False, device, dtype)

    def forward(t: Core, self: View, input: Value) -> Value:
        return normalising.layer_norm(
            t, input, self.normalized_shape, self.weight, self.bias, self.eps
        )

    def forward_rms(t: Core, self: View, x: Value) -> Value:
        return normalising.rms_norm(t, x, self.normalized_shape, self.weight, self.eps)

    own: tuple[Any, Any] = (init, forward) if has_bias else (init_rms, forward_rms)
    functions = {"init": staticmethod(own[0]), "forward": staticmethod(own[1])}
    layer(name)(type(name, (), functions))


_layer_norm("LayerNorm", True, 1e-5)
_layer_norm("RMSNorm", False, None)


@layer("GroupNorm")
class GroupNorm:
    """Normalises over groups of channels."""

    @staticmethod
    def init(
        t: Core, num_groups: Value, num_channels: Value, eps: Value = 1e-5, affine: Value = True,
        device: Value = None, dtype: Value = None, *, bias: Value = True,
    ) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        if isinstance(num_channels, int) and num_channels % num_groups:
            t.fail(
                "value",
                f"expected num_channels ({num_channels}) to be divisible by num_groups "
                f"({num_groups})",
            )
        made = {"dtype": dtype, "device": device}
        return {
            "num_groups": num_groups, "num_channels": num_channels, "eps": eps, "affine": affine,
            "weight": weight(t, num_channels, **made) if affine else None,
            "bias": weight(t, num_channels, **made) if affine and bias else None,
        }  # fmt: skip

    @staticmethod
    def forward(t: Core, self: View, input: Value) -> Value:
        """Apply the layer."""
        normalising.channels_fit(t, input, self.num_channels, "GroupNorm")
        return normalising.group_norm(t, input, self.num_groups, self.weight, self.bias, self.eps)
