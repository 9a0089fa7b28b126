"""Operators of PyTorch's library ``aten``: of graphs that PyTorch exports, and of its compiler.

Most are public functions under another name. Those that have other arguments are programs here, by
``aten/src/ATen/native/native_functions.yaml`` of PyTorch's sources.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

from hagane.frontends.libraries.torch import aten_losses

ROOT = "torch.ops.aten."
# Functions of nn.functional whose first arguments are those of the operator, in its order.
_NETWORKS = frozenset(
    ("adaptive_avg_pool2d", "adaptive_avg_pool3d", "gelu", "glu",
     "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "linear", "max_unpool2d", "mish",
     "one_hot", "pad", "relu6", "scaled_dot_product_attention", "silu", "softplus", "softshrink")
)  # fmt: skip
# Functions of PyTorch in Python that have other arguments than the operator.
_OTHERS = frozenset(("stft", "istft", "unique_consecutive", "unique", "lu", "gradient"))
# Operators that are public functions under another name.
_RENAMED = {
    "_adaptive_avg_pool2d": "nn.functional.adaptive_avg_pool2d",
    "_adaptive_avg_pool3d": "nn.functional.adaptive_avg_pool3d",
    "log_sigmoid": "nn.functional.logsigmoid", "_conj": "conj", "_conj_physical": "conj",
    "_local_scalar_dense": "Tensor.item", "sym_size": "Tensor.size", "sym_numel": "Tensor.numel",
    "sym_stride": "Tensor.stride", "sym_storage_offset": "Tensor.storage_offset",
    "_unsafe_view": "Tensor.reshape", "_reshape_alias": "as_strided", "_linalg_det": "linalg.det",
    "matrix_H": "Tensor.mH", "im2col": "nn.functional.unfold", "_stack": "stack", "_cat": "cat",
}  # fmt: skip
_PREFIXES = {"special_": "special.", "linalg_": "linalg.", "fft_": "fft."}


def public(name: str, functions: Container[str], methods: Container[str]) -> str:
    """Return the public function or method of an operator's name; empty if there is none.

    Args:
        name: The dotted name, with or without that of an overload (``add.Tensor``).
        functions: The functions that are known, by dotted name.
        methods: The methods of tensors that are known.
    """
    last = name.removeprefix(ROOT).partition(".")[0]
    if f"{ROOT}{last}" in functions:
        return f"{ROOT}{last}"
    if last in _RENAMED:
        return f"torch.{_RENAMED[last]}"
    if last.removesuffix("_") in _OTHERS:
        return ""
    for prefix, module in _PREFIXES.items():
        if last.startswith(prefix) and f"torch.{module}{last.removeprefix(prefix)}" in functions:
            return f"torch.{module}{last.removeprefix(prefix)}"
    if last.endswith("_") and not last.endswith("__"):
        known = last in methods or last.removesuffix("_") in methods
        return f"torch.Tensor.{last}" if known else ""
    if f"torch.{last}" in functions:
        return f"torch.{last}"
    if last in methods:
        return f"torch.Tensor.{last}"
    return f"torch.nn.functional.{last}" if last in _NETWORKS else ""


def to_copy(
    self: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: Any = None, non_blocking: bool = False, memory_format: Any = None,
) -> Any:  # fmt: skip
    """Return a copy of another element type."""
    import torch

    if isinstance(dtype, int):  # by its number in c10/core/ScalarType.h
        dtype = (
            torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
            torch.float32, torch.float64, None, torch.complex64, torch.complex128, torch.bool,
            None, None, None, torch.bfloat16,
        )[dtype]  # fmt: skip
    made = self.clone() if dtype is None else self.to(dtype, copy=True)
    kept = memory_format is None or memory_format is torch.preserve_format
    return made if kept else made.contiguous(memory_format=memory_format)


def copied(self: Any) -> Any:
    """Return a copy."""
    return self.clone()


def alias(self: Any) -> Any:
    """Return a view of all of a tensor."""
    return self.view(self.shape)


def itself(self: Any) -> Any:
    """Return the tensor."""
    return self


def copy(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Return a tensor's content in the shape and element type of another."""
    return src.to(self.dtype).expand(self.shape).clone()


def sliced(self: Any, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Any:
    """Return a part of an axis."""
    place = dim + self.dim() if dim < 0 else dim
    if isinstance(end, int) and end >= 2**62:
        end = None
    return self[(slice(None),) * place + (slice(start, end, step),)]


def index(self: Any, indices: Any) -> Any:
    """Return the items at indices; None takes a whole axis."""
    return self[tuple(slice(None) if one is None else one for one in indices)]


def index_put(self: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Return a tensor with other items at indices."""
    found = self.clone()
    index_put_(found, indices, values, accumulate)
    return found


def index_put_(self: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Set items at indices, or add to them."""
    import torch

    places = tuple(slice(None) if one is None else one for one in indices)
    if not accumulate:
        self[places] = values
        return self
    if any(one is None for one in indices):
        whole = torch.arange(self.numel(), device=self.device).view(self.shape)[places]
        given = values.expand(whole.shape).reshape(-1)
        flat = self.reshape(-1).index_put((whole.reshape(-1),), given, accumulate)
        self.copy_(flat.view(self.shape))
        return self
    return self.index_put_(tuple(indices), values, accumulate)


def embedding(
    weight: Any, indices: Any, padding_idx: int = -1, scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:  # fmt: skip
    """Return rows of a table."""
    import torch

    return torch.nn.functional.embedding(indices, weight)


def batch_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool,
    momentum: float, eps: float, cudnn_enabled: bool = False,
) -> Any:  # fmt: skip
    """Return the input normalised a channel."""
    import torch

    return torch.nn.functional.batch_norm(
        input, running_mean, running_var, weight, bias, training, momentum, eps
    )


def batch_norm_at_rest(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, momentum: float,
    eps: float,
) -> Any:  # fmt: skip
    """Return the input normalised by known statistics, and no statistics."""
    import torch

    return torch.native_batch_norm(
        input, weight, bias, running_mean, running_var, False, momentum, eps
    )


def instance_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, use_input_stats: bool,
    momentum: float, eps: float, cudnn_enabled: bool = False,
) -> Any:  # fmt: skip
    """Return the input normalised a channel and sample."""
    import torch

    return torch.nn.functional.instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


def layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Any:  # fmt: skip
    """Return the input normalised over its last axes."""
    import torch

    return torch.nn.functional.layer_norm(input, normalized_shape, weight, bias, eps)


def group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Any:  # fmt: skip
    """Return the input normalised in groups of channels."""
    import torch

    return torch.nn.functional.group_norm(input, num_groups, weight, bias, eps)


def convolution(
    input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int,
) -> Any:  # fmt: skip
    """Return a convolution of as many axes as the weights have, or its transposition."""
    import torch

    if transposed:
        found = (
            torch.conv_transpose1d, torch.conv_transpose2d, torch.conv_transpose3d
        )[weight.dim() - 3]  # fmt: skip
        return found(input, weight, bias, stride, padding, output_padding, groups, dilation)
    plain = (torch.conv1d, torch.conv2d, torch.conv3d)[weight.dim() - 3]
    return plain(input, weight, bias, stride, padding, dilation, groups)


def constant_pad_nd(self: Any, pad: Any, value: Any = 0) -> Any:
    """Return a tensor with a number around it."""
    import torch

    return torch.nn.functional.pad(self, pad, "constant", value)


def reflection_pad(self: Any, padding: Any) -> Any:
    """Return a tensor with its reflection around it."""
    import torch

    return torch.nn.functional.pad(self, padding, "reflect")


def replication_pad(self: Any, padding: Any) -> Any:
    """Return a tensor with its border repeated around it."""
    import torch

    return torch.nn.functional.pad(self, padding, "replicate")


def max_pool1d_with_indices(
    self: Any, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:  # fmt: skip
    """Return the largest elements in windows of one axis and their places."""
    import torch

    return torch.nn.functional.max_pool1d(
        self, kernel_size, stride or None, padding, dilation, ceil_mode, return_indices=True
    )


def max_pool2d_with_indices(
    self: Any, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:  # fmt: skip
    """Return the largest elements in windows of two axes and their places."""
    import torch

    return torch.nn.functional.max_pool2d(
        self, kernel_size, stride or None, padding, dilation, ceil_mode, return_indices=True
    )


def max_pool3d_with_indices(
    self: Any, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:  # fmt: skip
    """Return the largest elements in windows of three axes and their places."""
    import torch

    return torch.nn.functional.max_pool3d(
        self, kernel_size, stride or None, padding, dilation, ceil_mode, return_indices=True
    )


def max_pool2d(
    self: Any, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:  # fmt: skip
    """Return the largest elements in windows of two axes."""
    return max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)[0]


def avg_pool2d(
    self: Any, kernel_size: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: Any = None,
) -> Any:  # fmt: skip
    """Return the means of windows of two axes."""
    import torch

    return torch.nn.functional.avg_pool2d(
        self, kernel_size, stride or None, padding, ceil_mode, count_include_pad, divisor_override
    )


def avg_pool3d(
    self: Any, kernel_size: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: Any = None,
) -> Any:  # fmt: skip
    """Return the means of windows of three axes."""
    import torch

    return torch.nn.functional.avg_pool3d(
        self, kernel_size, stride or None, padding, ceil_mode, count_include_pad, divisor_override
    )


def adaptive_max_pool2d(self: Any, output_size: Any) -> Any:
    """Return the largest elements of as many windows as asked for and their places."""
    import torch

    return torch.nn.functional.adaptive_max_pool2d(self, output_size, return_indices=True)


def adaptive_max_pool3d(self: Any, output_size: Any) -> Any:
    """Return the largest elements of as many windows as asked for and their places."""
    import torch

    return torch.nn.functional.adaptive_max_pool3d(self, output_size, return_indices=True)


def elu(self: Any, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Any:
    """Return the exponential linear unit, with factors."""
    import torch

    low = (torch.exp(self * input_scale) - 1) * (alpha * scale)
    return torch.where(self > 0, self * scale, low).to(self.dtype)


def softmax(self: Any, dim: int, half_to_float: bool = False) -> Any:
    """Return the softmax along an axis."""
    import torch

    return torch.softmax(self, dim, torch.float32 if half_to_float else None)


def log_softmax(self: Any, dim: int, half_to_float: bool = False) -> Any:
    """Return the logarithm of the softmax along an axis."""
    import torch

    return torch.log_softmax(self, dim, torch.float32 if half_to_float else None)


def _interpolated(self: Any, size: Any, scales: Any, mode: str, corners: Any = None) -> Any:
    """Return an image of another size; its places follow the factors where they are given."""
    import torch

    if scales and (scales[0] is None or isinstance(scales[0], (tuple, list))):
        scales = scales[0]
    factors = None if not scales else tuple(scales)
    if factors is not None and size is not None:
        made = [int(old * factor) for old, factor in zip(self.shape[2:], factors, strict=True)]
        if made != list(size):
            raise RuntimeError(f"expected {made}, the sizes by the factors, got {list(size)}")
        size = None
    return torch.nn.functional.interpolate(self, size, factors, mode, corners)


def upsample_nearest(self: Any, output_size: Any, *scales: Any) -> Any:
    """Return the nearest elements of an image of another size."""
    return _interpolated(self, output_size, scales, "nearest")


def upsample_linear(self: Any, output_size: Any, align_corners: bool, *scales: Any) -> Any:
    """Return an image of another size, of two elements an axis."""
    mode = ("linear", "bilinear", "trilinear")[self.dim() - 3]
    return _interpolated(self, output_size, scales, mode, align_corners)


def upsample_bicubic2d(self: Any, output_size: Any, align_corners: bool, *scales: Any) -> Any:
    """Return an image of another size, of sixteen elements each."""
    return _interpolated(self, output_size, scales, "bicubic", align_corners)


def asserted(*_: Any, **__: Any) -> None:
    """Compare nothing: of sizes and types that the graph knows."""


PROGRAMS: dict[str, Callable[..., Any]] = {
    "_to_copy": to_copy,
    "lift_fresh_copy": copied,
    "lift_fresh": itself,
    "alias": alias,
    "copy": copy,
    "slice": sliced,
    "index": index,
    "_unsafe_index": index,
    "index_put": index_put,
    "_unsafe_index_put": index_put,
    "index_put_": index_put_,
    "embedding": embedding,
    "batch_norm": batch_norm,
    "_native_batch_norm_legit_no_training": batch_norm_at_rest,
    "instance_norm": instance_norm,
    "layer_norm": layer_norm,
    "group_norm": group_norm,
    "convolution": convolution,
    "constant_pad_nd": constant_pad_nd,
    **{f"reflection_pad{axes}d": reflection_pad for axes in (1, 2, 3)},
    **{f"replication_pad{axes}d": replication_pad for axes in (1, 2, 3)},
    "max_pool1d_with_indices": max_pool1d_with_indices,
    "max_pool2d_with_indices": max_pool2d_with_indices,
    "max_pool3d_with_indices": max_pool3d_with_indices,
    "max_pool2d": max_pool2d,
    "avg_pool2d": avg_pool2d,
    "avg_pool3d": avg_pool3d,
    "adaptive_max_pool2d": adaptive_max_pool2d,
    "adaptive_max_pool3d": adaptive_max_pool3d,
    "elu": elu,
    "_softmax": softmax,
    "_log_softmax": log_softmax,
    **{f"upsample_nearest{axes}d": upsample_nearest for axes in (1, 2, 3)},
    "upsample_linear1d": upsample_linear,
    "upsample_bilinear2d": upsample_linear,
    "upsample_trilinear3d": upsample_linear,
    "upsample_bicubic2d": upsample_bicubic2d,
    "_assert_tensor_metadata": asserted,
    **aten_losses.PROGRAMS,
}
