"""Functions that PyTorch's own layers and its compiler call, as programs over public ones.

``aten/src/ATen/native/native_functions.yaml`` and ``torch/_decomp/decompositions.py`` of PyTorch's
sources tell what they return.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def native_layer_norm(
    input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float
) -> Any:  # fmt: skip
    """Return the input normalised over its last axes, their means and inverse deviations."""
    import torch

    found = torch.nn.functional.layer_norm(input, normalized_shape, weight, bias, eps)
    places = list(range(input.dim() - len(normalized_shape), input.dim()))
    wide = input.float() if input.dtype in (torch.float16, torch.bfloat16) else input
    mean = wide.mean(places, keepdim=True)
    scale = torch.rsqrt(wide.var(places, correction=0, keepdim=True) + eps)
    return found, mean.to(input.dtype), scale.to(input.dtype)


def native_group_norm(
    input: Any, weight: Any, bias: Any, N: Any, C: Any, HxW: Any, group: int, eps: float
) -> Any:
    """Return the input normalised in groups of channels, their means and inverse deviations."""
    import torch

    found = torch.nn.functional.group_norm(input, group, weight, bias, eps)
    wide = input.float() if input.dtype in (torch.float16, torch.bfloat16) else input
    rows = wide.reshape(N, group, -1)
    scale = torch.rsqrt(rows.var(-1, correction=0) + eps)
    return found, rows.mean(-1).to(input.dtype), scale.to(input.dtype)


def native_batch_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool,
    momentum: float, eps: float,
) -> Any:  # fmt: skip
    """Return the input normalised a channel, the means and inverse deviations of a batch."""
    import torch

    found = torch.nn.functional.batch_norm(
        input, running_mean, running_var, weight, bias, training, momentum, eps
    )
    if not training:
        empty = torch.empty(0, dtype=input.dtype)
        return found, empty, empty
    places = [place for place in range(input.dim()) if place != 1]
    scale = torch.rsqrt(input.var(places, correction=0) + eps)
    return found, input.mean(places), scale


_INTERPOLATIONS = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def grid_sampler(
    input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Any:
    """Return what ``nn.functional.grid_sample`` returns, of numbered modes."""
    import torch

    mode, padding = _INTERPOLATIONS[interpolation_mode], _PADDINGS[padding_mode]
    return torch.nn.functional.grid_sample(input, grid, mode, padding, align_corners)


def fill(input: Any, value: Any) -> Any:
    """Return a tensor of one number."""
    import torch

    if isinstance(value, torch.Tensor):
        if value.dim() > 0:
            raise RuntimeError(
                "fill only supports 0-dimension value tensor but got tensor with "
                f"{value.dim()} dimensions."
            )
        return value.to(input.dtype).expand(input.shape).clone()
    return torch.full_like(input, value)


def frexp(input: Any) -> Any:
    """Return numbers from 0.5 to 1 and exponents of 2, whose product is the input."""
    import torch

    if not input.dtype.is_floating_point:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    wide = input.double()
    plain = wide.isfinite() & (wide != 0)
    size = torch.where(plain, wide.abs(), 1.0)
    power = torch.floor(torch.log2(size)) + 1
    half = torch.floor(power / 2)
    share = size * torch.pow(2.0, -half) * torch.pow(2.0, half - power)
    power = torch.where(share >= 1, power + 1, torch.where(share < 0.5, power - 1, power))
    share = torch.where(share >= 1, share / 2, torch.where(share < 0.5, share * 2, share))
    share = torch.where(plain, torch.copysign(share, wide), wide)
    return share.to(input.dtype), torch.where(plain, power, 0).to(torch.int32)


def nonzero_static(input: Any, *, size: int, fill_value: int = -1) -> Any:
    """Return the places of the first elements that are not zero, as many rows as asked for."""
    import torch

    found = input.nonzero()
    rest = torch.full((size, input.dim()), fill_value, dtype=torch.int64)
    return torch.cat([found, rest])[:size]


def hfft(input: Any, n: Any = None, dim: int = -1, norm: Any = None) -> Any:
    """Return the real transform of a signal of which half is given."""
    import torch

    count = 2 * (input.shape[dim] - 1) if n is None else n
    return torch.fft.irfft(input.conj(), n, dim, _turned(norm)) if count else input.real


def ihfft(input: Any, n: Any = None, dim: int = -1, norm: Any = None) -> Any:
    """Return half of the inverse transform of a real signal."""
    import torch

    return torch.fft.rfft(input, n, dim, _turned(norm)).conj()


def _turned(norm: Any) -> Any:
    """Return the scale that a transform has where it stands for its inverse."""
    return {"backward": "forward", "forward": "backward"}.get(norm or "backward", norm)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "native_layer_norm": native_layer_norm,
    "native_group_norm": native_group_norm,
    "native_batch_norm": native_batch_norm,
    "grid_sampler": grid_sampler,
    "grid_sampler_2d": grid_sampler,
    "grid_sampler_3d": grid_sampler,
    "fill": fill,
    "frexp": frexp,
    "nonzero_static": nonzero_static,
    "fft.hfft": hfft,
    "fft.ihfft": ihfft,
}
METHODS = ("frexp", "nonzero_static")
FIELDS = {"frexp": ("mantissa", "exponent")}
