"""Layers of ``torch.nn``: their attributes, and the functions that they apply."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torch import normalising, recurrent, windows
from hagane.frontends.libraries.torch.operands import (
    FLOAT,
    device_of,
    dtype_of,
    per_axis,
    shape_of,
)
from hagane.frontends.libraries.torch.products import linear
from hagane.frontends.libraries.torch.shaping import flatten, unflatten
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.core import Core
from hagane.frontends.python.values import Tensor, Value
from hagane.symbolic import Dim

_MODULE = "torch.nn.Module"


def weight(t: Core, *shape: Dim, dtype: Value = None, device: Value = None) -> Tensor:
    """Return a new parameter."""
    x = t.emit.new(dtype_of(dtype, FLOAT), shape, kind="torch.Tensor", device=device_of(device))
    x.parameter = True
    return x


def buffer(t: Core, *shape: Dim) -> Tensor:
    """Return a new tensor that is not trained."""
    return t.emit.new(FLOAT, shape, kind="torch.Tensor")


def layer(*names: str) -> Callable[[Any], Any]:
    """Register a layer of ``torch.nn``."""
    return TORCH.layer(*(f"nn.{name}" for name in names), base=_MODULE)


@layer("Linear")
class Linear:
    """``input @ weight.T + bias``."""

    @staticmethod
    def init(t: Core, in_features: Value, out_features: Value, bias: Value = True, device: Value = None,
             dtype: Value = None) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        made = {"dtype": dtype, "device": device}
        return {
            "in_features": in_features, "out_features": out_features,
            "weight": weight(t, out_features, in_features, **made),
            "bias": weight(t, out_features, **made) if bias else None,
        }  # fmt: skip

    @staticmethod
    def forward(t: Core, self: View, input: Value) -> Value:
        """Apply the layer."""
        return linear(t, input, self.weight, self.bias)


@layer("LazyLinear")
class LazyLinear:
    """A linear layer whose input features are those of the first input."""

    @staticmethod
    def init(t: Core, out_features: Value, bias: Value = True, **_: Value) -> dict[str, Value]:
        """Return the attributes."""
        return {
            "out_features": out_features,
            "weight": None,
            "bias": weight(t, out_features) if bias else None,
        }

    @staticmethod
    def forward(t: Core, self: View, input: Value) -> Value:
        """Apply the layer."""
        if self.weight is None:
            self.weight = weight(t, self.out_features, shape_of(t, input)[-1])
        return linear(t, input, self.weight, self.bias)


@layer("Bilinear")
class Bilinear:
    """``x1 A x2 + b``."""

    @staticmethod
    def init(t: Core, in1_features: Value, in2_features: Value, out_features: Value, bias: Value = True,
             **_: Value) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        return {"weight": weight(t, out_features, in1_features, in2_features), "bias": None}

    @staticmethod
    def forward(t: Core, self: View, input1: Value, input2: Value) -> Value:
        """Apply the layer."""
        return t.call_library("torch.nn.functional.bilinear", [input1, input2, self.weight])


def _conv(spatial: int, transposed: bool) -> None:
    def init(
        t: Core, in_channels: Value, out_channels: Value, kernel_size: Value, stride: Value = 1,
        padding: Value = 0, dilation: Value = 1, groups: Value = 1, bias: Value = True,
        padding_mode: Value = "zeros", device: Value = None, dtype: Value = None,
    ) -> dict[str, Value]:  # fmt: skip
        for count, name in ((in_channels, "in_channels"), (out_channels, "out_channels")):
            if isinstance(count, int) and isinstance(groups, int) and groups > 0 and count % groups:
                t.fail("value", f"expected {name} ({count}) to be divisible by groups ({groups})")
        kernel = per_axis(t, kernel_size, spatial, "kernel_size")
        first, second = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        return {
            "in_channels": in_channels, "out_channels": out_channels, "kernel_size": tuple(kernel),
            "stride": _spread(t, stride, spatial, "stride"),
            "padding": _spread(t, padding, spatial, "padding"),
            "dilation": _spread(t, dilation, spatial, "dilation"), "groups": groups,
            "padding_mode": padding_mode, "output_padding": (0,) * spatial,
            "weight": weight(t, first, second // groups, *kernel, dtype=dtype, device=device),
            "bias": weight(t, out_channels, dtype=dtype, device=device) if bias else None,
        }  # fmt: skip

    def init_transposed(
        t: Core, in_channels: Value, out_channels: Value, kernel_size: Value, stride: Value = 1,
        padding: Value = 0, output_padding: Value = 0, groups: Value = 1, bias: Value = True,
        dilation: Value = 1, padding_mode: Value = "zeros", device: Value = None, dtype: Value = None,
    ) -> dict[str, Value]:  # fmt: skip
        found = init(t, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
                     padding_mode, device, dtype)  # fmt: skip
        return {**found, "output_padding": _spread(t, output_padding, spatial, "output_padding")}

    def forward(t: Core, self: View, input: Value) -> Value:
        if self.padding_mode != "zeros" and not isinstance(self.padding, str):
            amounts = [p for size in reversed(self.padding) for p in (size, size)]
            input = t.call_library(
                "torch.nn.functional.pad", [input, tuple(amounts), self.padding_mode]
            )
            return windows.conv(
                t,
                spatial,
                input,
                self.weight,
                self.bias,
                self.stride,
                0,
                self.dilation,
                self.groups,
            )
        return windows.conv(
            t,
            spatial,
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.dilation,
            self.groups,
        )

    def forward_transposed(t: Core, self: View, input: Value, output_size: Value = None) -> Value:
        y = windows.conv_transpose(
            t, spatial, input, self.weight, self.bias, self.stride, self.padding, self.output_padding,
            self.groups, self.dilation,
        )  # fmt: skip
        if output_size is not None:
            shape = (*shape_of(t, y)[:-spatial], *list(output_size)[-spatial:])
            return t.emit.typed("ConvTranspose", [y], y.dtype, shape)
        return y

    name = f"ConvTranspose{spatial}d" if transposed else f"Conv{spatial}d"
    functions = {
        "init": staticmethod(init_transposed if transposed else init),
        "forward": staticmethod(forward_transposed if transposed else forward),
    }
    layer(name)(type(name, (), functions))


def _spread(t: Core, value: Value, count: int, what: str) -> Value:
    return value if isinstance(value, str) else tuple(per_axis(t, value, count, what))


for _spatial in (1, 2, 3):
    _conv(_spatial, transposed=False)
    _conv(_spatial, transposed=True)


def functional(
    name: str, function: str, defaults: dict[str, Value] | None = None, *names: str
) -> None:
    """Register a layer that stores arguments and passes them to a function.

    Args:
        name: The layer.
        function: The function, which gets the input first.
        defaults: The constructor's arguments with their defaults, in order; ``...`` for none.
        names: The function's names for them where they differ.
    """
    given = defaults or {}
    parameters = [inspect.Parameter("t", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for key, default in given.items():
        parameters.append(
            inspect.Parameter(
                key,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=inspect.Parameter.empty if default is ... else default,
            )
        )
    signature = inspect.Signature(parameters)

    def init(t: Core, *arguments: Value, **keywords: Value) -> dict[str, Value]:
        bound = signature.bind(t, *arguments, **keywords)
        bound.apply_defaults()
        return {key: value for key, value in bound.arguments.items() if key != "t"}

    init.__signature__ = signature  # type: ignore[attr-defined]

    def forward(t: Core, self: View, *inputs: Value, **keywords: Value) -> Value:
        passed = {
            target: getattr(self, key)
            for key, target in zip(given, names or given, strict=True)
            if target
        }
        return t.call_library(f"torch.{function}", list(inputs), {**passed, **keywords})

    layer(name)(type(name, (), {"init": staticmethod(init), "forward": staticmethod(forward)}))


_INPLACE = {"inplace": False}
for _name, _function, _defaults in (
    ("ReLU", "relu", _INPLACE), ("ReLU6", "relu6", _INPLACE), ("SiLU", "silu", _INPLACE),
    ("Mish", "mish", _INPLACE), ("Hardswish", "hardswish", _INPLACE), ("SELU", "selu", _INPLACE),
    ("Hardsigmoid", "hardsigmoid", _INPLACE), ("Tanhshrink", "tanhshrink", {}),
    ("LogSigmoid", "logsigmoid", {}), ("Softsign", "softsign", {}),
    ("LeakyReLU", "leaky_relu", {"negative_slope": 0.01, "inplace": False}),
    ("ELU", "elu", {"alpha": 1.0, "inplace": False}),
    ("CELU", "celu", {"alpha": 1.0, "inplace": False}),
    ("GELU", "gelu", {"approximate": "none"}),
    ("Hardtanh", "hardtanh", {"min_val": -1.0, "max_val": 1.0, "inplace": False}),
    ("Softplus", "softplus", {"beta": 1.0, "threshold": 20.0}),
    ("Threshold", "threshold", {"threshold": ..., "value": ..., "inplace": False}),
    ("GLU", "glu", {"dim": -1}),
    ("Softmax", "softmax", {"dim": None}), ("LogSoftmax", "log_softmax", {"dim": None}),
    ("Softmin", "softmin", {"dim": None}),
    ("CosineSimilarity", "cosine_similarity", {"dim": 1, "eps": 1e-8}),
    ("PixelShuffle", "pixel_shuffle", {"upscale_factor": ...}),
    ("PixelUnshuffle", "pixel_unshuffle", {"downscale_factor": ...}),
    ("Upsample", "interpolate", {"size": None, "scale_factor": None, "mode": "nearest", "align_corners": None}),
    ("Unfold", "unfold", {"kernel_size": ..., "dilation": 1, "padding": 0, "stride": 1}),
    ("Fold", "fold", {"output_size": ..., "kernel_size": ..., "dilation": 1, "padding": 0, "stride": 1}),
    ("LocalResponseNorm", "local_response_norm", {"size": ..., "alpha": 1e-4, "beta": 0.75, "k": 1.0}),
    ("MSELoss", "mse_loss", {"reduction": "mean"}), ("L1Loss", "l1_loss", {"reduction": "mean"}),
    ("SmoothL1Loss", "smooth_l1_loss", {"reduction": "mean"}),
    ("HuberLoss", "huber_loss", {"reduction": "mean"}), ("KLDivLoss", "kl_div", {"reduction": "mean"}),
    ("BCELoss", "binary_cross_entropy", {"weight": None, "reduction": "mean"}),
    ("NLLLoss", "nll_loss", {"weight": None, "reduction": "mean"}),
    ("CTCLoss", "ctc_loss", {"blank": 0, "reduction": "mean", "zero_infinity": False}),
    ("TripletMarginLoss", "triplet_margin_loss", {"margin": 1.0, "reduction": "mean"}),
    ("CosineEmbeddingLoss", "cosine_embedding_loss", {"margin": 0.0, "reduction": "mean"}),
):  # fmt: skip
    functional(_name, f"nn.functional.{_function}", _defaults)
functional(
    "CrossEntropyLoss", "nn.functional.cross_entropy",
    {"weight": None, "size_average": None, "ignore_index": -100, "reduce": None, "reduction": "mean",
     "label_smoothing": 0.0},
)  # fmt: skip
functional(
    "BCEWithLogitsLoss", "nn.functional.binary_cross_entropy_with_logits",
    {"weight": None, "size_average": None, "reduce": None, "reduction": "mean", "pos_weight": None},
)  # fmt: skip
functional("Tanh", "tanh")
functional("Sigmoid", "sigmoid")
for _suffix in ("", "1d", "2d", "3d"):
    functional(f"Dropout{_suffix}", "nn.functional.dropout", {"p": 0.5, "inplace": False})
functional("AlphaDropout", "nn.functional.dropout", {"p": 0.5, "inplace": False})
for _n in (1, 2, 3):
    functional(
        f"MaxPool{_n}d", f"nn.functional.max_pool{_n}d",
        {"kernel_size": ..., "stride": None, "padding": 0, "dilation": 1, "return_indices": False,
         "ceil_mode": False},
    )  # fmt: skip
    functional(
        f"AvgPool{_n}d", f"nn.functional.avg_pool{_n}d",
        {"kernel_size": ..., "stride": None, "padding": 0, "ceil_mode": False,
         "count_include_pad": True, "divisor_override": None},
    )  # fmt: skip
    functional(
        f"AdaptiveAvgPool{_n}d", f"nn.functional.adaptive_avg_pool{_n}d", {"output_size": ...}
    )
    functional(f"AdaptiveMaxPool{_n}d", f"nn.functional.adaptive_max_pool{_n}d",
               {"output_size": ..., "return_indices": False})  # fmt: skip


@layer("PReLU")
class PReLU:
    """max(0, x) + weight * min(0, x)."""

    @staticmethod
    def init(
        t: Core, num_parameters: Value = 1, init: Value = 0.25, **_: Value
    ) -> dict[str, Value]:
        """Return the attributes."""
        return {"num_parameters": num_parameters, "weight": weight(t, num_parameters)}

    @staticmethod
    def forward(t: Core, self: View, input: Value) -> Value:
        """Apply the layer."""
        return t.call_library("torch.nn.functional.prelu", [input, self.weight])


@layer("Identity")
class Identity:
    """Returns its input."""

    @staticmethod
    def init(t: Core, *_: Value, **__: Value) -> dict[str, Value]:
        """Return no attributes."""
        return {}

    @staticmethod
    def forward(t: Core, self: View, input: Value) -> Value:
        """Return the input."""
        return t.wrap(input)


@layer("Flatten")
class Flatten:
    """Joins axes."""

    @staticmethod
    def init(t: Core, start_dim: Value = 1, end_dim: Value = -1) -> dict[str, Value]:
        """Return the attributes."""
        return {"start_dim": start_dim, "end_dim": end_dim}

    @staticmethod
    def forward(t: Core, self: View, input: Value) -> Value:
        """Apply the layer."""
        return flatten(t, input, self.start_dim, self.end_dim)


@layer("Unflatten")
class Unflatten:
    """Splits an axis."""

    @staticmethod
    def init(t: Core, dim: Value, unflattened_size: Value) -> dict[str, Value]:
        """Return the attributes."""
        return {"dim": dim, "unflattened_size": unflattened_size}

    @staticmethod
    def forward(t: Core, self: View, input: Value) -> Value:
        """Apply the layer."""
        return unflatten(t, input, self.dim, self.unflattened_size)


def _pad(name: str, spatial: int, mode: str) -> None:
    def init(t: Core, padding: Value, value: Value = 0.0) -> dict[str, Value]:
        amounts = (padding,) * (2 * spatial) if isinstance(padding, int) else tuple(padding)
        return {"padding": amounts, "value": value}

    def forward(t: Core, self: View, input: Value) -> Value:
        return t.call_library("torch.nn.functional.pad", [input, self.padding, mode])

    layer(name)(type(name, (), {"init": staticmethod(init), "forward": staticmethod(forward)}))


for _n in (1, 2, 3):
    for _kind, _mode in (("Zero", "constant"), ("Constant", "constant"), ("Reflection", "reflect"),
                         ("Replication", "replicate"), ("Circular", "circular")):  # fmt: skip
        _pad(f"{_kind}Pad{_n}d", _n, _mode)


def _batch_norm(name: str, ranks: tuple[int, ...], affine_default: bool) -> None:
    def init(
        t: Core, num_features: Value, eps: Value = 1e-5, momentum: Value = 0.1,
        affine: Value = affine_default, track_running_stats: Value = True, device: Value = None,
        dtype: Value = None,
    ) -> dict[str, Value]:  # fmt: skip
        made = {"dtype": dtype, "device": device}
        return {
            "num_features": num_features, "eps": eps, "momentum": momentum, "affine": affine,
            "track_running_stats": track_running_stats,
            "weight": weight(t, num_features, **made) if affine else None,
            "bias": weight(t, num_features, **made) if affine else None,
            "running_mean": buffer(t, num_features) if track_running_stats else None,
            "running_var": buffer(t, num_features) if track_running_stats else None,
        }  # fmt: skip

    def forward(t: Core, self: View, input: Value) -> Value:
        if isinstance(input, Tensor) and input.shape is not None and len(input.shape) not in ranks:
            t.fail(
                "rank",
                f"{name} expects {' or '.join(map(str, ranks))} axes, got {t.show(input)}",
                input,
            )
        if isinstance(input, Tensor):
            instance = name.startswith("Instance")
            if instance and len(input.shape or ()) == min(ranks) and len(ranks) > 1:
                return t.emit.typed("InstanceNormalization", [input], input.dtype, input.shape)
            normalising.channels_fit(t, input, self.num_features, name)
        return normalising.batch_norm(t, input, None, None, self.weight, self.bias)

    layer(name)(type(name, (), {"init": staticmethod(init), "forward": staticmethod(forward)}))


for _n, _ranks in ((1, (2, 3)), (2, (4,)), (3, (5,))):
    _batch_norm(f"BatchNorm{_n}d", _ranks, True)
    _batch_norm(f"InstanceNorm{_n}d", (_n + 1, _n + 2), False)
_batch_norm("SyncBatchNorm", (2, 3, 4, 5), True)


def _layer_norm(name: str, has_bias: bool) -> None:
    def init(
        t: Core, normalized_shape: Value, eps: Value = 1e-5, elementwise_affine: Value = True,
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
        return normalising.layer_norm(t, input, self.normalized_shape, self.weight)

    layer(name)(type(name, (), {"init": staticmethod(init), "forward": staticmethod(forward)}))


_layer_norm("LayerNorm", True)
_layer_norm("RMSNorm", False)


@layer("GroupNorm")
class GroupNorm:
    """Normalises over groups of channels."""

    @staticmethod
    def init(t: Core, num_groups: Value, num_channels: Value, eps: Value = 1e-5, affine: Value = True,
             **_: Value) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        if isinstance(num_channels, int) and num_channels % num_groups:
            t.fail(
                "value",
                f"expected num_channels ({num_channels}) to be divisible by num_groups ({num_groups})",
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
        return normalising.group_norm(t, input, self.num_groups, self.weight)


@layer("Embedding")
class Embedding:
    """Rows of a table."""

    @staticmethod
    def init(t: Core, num_embeddings: Value, embedding_dim: Value, padding_idx: Value = None,
             max_norm: Value = None, norm_type: Value = 2.0, scale_grad_by_freq: Value = False,
             sparse: Value = False, _weight: Value = None, device: Value = None,
             dtype: Value = None, **_: Value) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        return {
            "num_embeddings": num_embeddings, "embedding_dim": embedding_dim, "padding_idx": padding_idx,
            "weight": weight(t, num_embeddings, embedding_dim, dtype=dtype, device=device),
        }  # fmt: skip

    @staticmethod
    def forward(t: Core, self: View, input: Value) -> Value:
        """Apply the layer."""
        return normalising.embedding(t, input, self.weight)


@layer("EmbeddingBag")
class EmbeddingBag:
    """Sums or means of rows of a table."""

    @staticmethod
    def init(
        t: Core, num_embeddings: Value, embedding_dim: Value, *_: Value, **__: Value
    ) -> dict[str, Value]:
        """Return the attributes."""
        return {"weight": weight(t, num_embeddings, embedding_dim)}

    @staticmethod
    def forward(t: Core, self: View, input: Value, offsets: Value = None, *_: Value) -> Value:
        """Apply the layer."""
        return normalising.embedding_bag(t, input, self.weight, offsets)


@layer("MultiheadAttention")
class MultiheadAttention:
    """Attention with projections (Vaswani et al., 2017)."""

    @staticmethod
    def init(t: Core, embed_dim: Value, num_heads: Value, dropout: Value = 0.0, bias: Value = True,
             add_bias_kv: Value = False, add_zero_attn: Value = False, kdim: Value = None,
             vdim: Value = None, batch_first: Value = False, device: Value = None,
             dtype: Value = None) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        if isinstance(embed_dim, int) and isinstance(num_heads, int) and embed_dim % num_heads:
            t.fail(
                "assertion",
                f"expected embed_dim ({embed_dim}) to be divisible by num_heads ({num_heads})",
            )
        return {
            "embed_dim": embed_dim, "num_heads": num_heads, "dropout": dropout,
            "kdim": embed_dim if kdim is None else kdim, "vdim": embed_dim if vdim is None else vdim,
            "batch_first": batch_first, "head_dim": embed_dim // num_heads,
            "in_proj_weight": weight(t, 3 * embed_dim, embed_dim),
        }  # fmt: skip

    @staticmethod
    def forward(t: Core, self: View, query: Value, key: Value, value: Value,
                key_padding_mask: Value = None, need_weights: Value = True, attn_mask: Value = None,
                average_attn_weights: Value = True, is_causal: Value = False) -> Value:  # fmt: skip
        """Apply the layer."""
        return normalising.multi_head_attention(
            t, self.embed_dim, self.num_heads, bool(self.batch_first), query, key, value, self.kdim,
            self.vdim, key_padding_mask, attn_mask, need_weights, average_attn_weights,
        )  # fmt: skip


def _recurrent(name: str) -> None:
    def init(
        t: Core, input_size: Value, hidden_size: Value, num_layers: Value = 1, bias: Value = True,
        batch_first: Value = False, dropout: Value = 0.0, bidirectional: Value = False,
        proj_size: Value = 0, device: Value = None, dtype: Value = None, nonlinearity: Value = "tanh",
    ) -> dict[str, Value]:  # fmt: skip
        return recurrent.layer_init(
            t,
            name,
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            proj_size,
        )

    def forward(t: Core, self: View, input: Value, hx: Value = None) -> Value:
        return recurrent.layer_forward(t, self, input, hx)

    def flatten_parameters(t: Core, self: View) -> Value:
        return None

    layer(name)(
        type(name, (), {"init": staticmethod(init), "forward": staticmethod(forward),
                        "flatten_parameters": staticmethod(flatten_parameters)})
    )  # fmt: skip


def _cell(name: str) -> None:
    def init(
        t: Core, input_size: Value, hidden_size: Value, bias: Value = True, device: Value = None,
        dtype: Value = None, nonlinearity: Value = "tanh",
    ) -> dict[str, Value]:  # fmt: skip
        return recurrent.cell_init(t, name.removesuffix("Cell"), input_size, hidden_size, bias)

    def forward(t: Core, self: View, input: Value, hx: Value = None) -> Value:
        return recurrent.cell_forward(t, self, input, hx)

    layer(name)(type(name, (), {"init": staticmethod(init), "forward": staticmethod(forward)}))


for _name in ("LSTM", "GRU", "RNN"):
    _recurrent(_name)
    _cell(f"{_name}Cell")
