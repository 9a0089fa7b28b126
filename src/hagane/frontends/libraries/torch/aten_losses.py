"""Losses of PyTorch's library ``aten``, whose reductions are numbers.

``aten/src/ATen/native/native_functions.yaml`` of PyTorch's sources tells their arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _reduced(reduction: int) -> str:
    """Return the public name of a reduction."""
    return ("none", "mean", "sum")[reduction]


def mse_loss(self: Any, target: Any, reduction: int = 1) -> Any:
    """Return the squares of differences."""
    import torch

    return torch.nn.functional.mse_loss(self, target, reduction=_reduced(reduction))


def l1_loss(self: Any, target: Any, reduction: int = 1) -> Any:
    """Return the sizes of differences."""
    import torch

    return torch.nn.functional.l1_loss(self, target, reduction=_reduced(reduction))


def smooth_l1_loss(self: Any, target: Any, reduction: int = 1, beta: float = 1.0) -> Any:
    """Return the sizes of differences, small ones squared."""
    import torch

    found = _reduced(reduction)
    return torch.nn.functional.smooth_l1_loss(self, target, reduction=found, beta=beta)


def huber_loss(self: Any, target: Any, reduction: int = 1, delta: float = 1.0) -> Any:
    """Return the sizes of differences, small ones squared."""
    import torch

    return torch.nn.functional.huber_loss(self, target, _reduced(reduction), delta)


def kl_div(self: Any, target: Any, reduction: int = 1, *, log_target: bool = False) -> Any:
    """Return the divergence of distributions."""
    import torch

    found = _reduced(reduction)
    return torch.nn.functional.kl_div(self, target, reduction=found, log_target=log_target)


def binary_cross_entropy(self: Any, target: Any, weight: Any = None, reduction: int = 1) -> Any:
    """Return the cross entropy of probabilities of two classes."""
    import torch

    found = _reduced(reduction)
    return torch.nn.functional.binary_cross_entropy(self, target, weight, reduction=found)


def binary_cross_entropy_with_logits(
    self: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: int = 1
) -> Any:
    """Return the cross entropy of logits of two classes."""
    import torch

    return torch.nn.functional.binary_cross_entropy_with_logits(
        self, target, weight, reduction=_reduced(reduction), pos_weight=pos_weight
    )


def nll_loss(
    self: Any, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100
) -> Any:
    """Return the negative logarithms at the classes."""
    import torch

    return torch.nn.functional.nll_loss(
        self, target, weight, ignore_index=ignore_index, reduction=_reduced(reduction)
    )


def cross_entropy_loss(
    self: Any, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    """Return the cross entropy of logits."""
    import torch

    return torch.nn.functional.cross_entropy(
        self, target, weight, ignore_index=ignore_index, reduction=_reduced(reduction),
        label_smoothing=label_smoothing,
    )  # fmt: skip


PROGRAMS: dict[str, Callable[..., Any]] = {
    "mse_loss": mse_loss,
    "l1_loss": l1_loss,
    "smooth_l1_loss": smooth_l1_loss,
    "huber_loss": huber_loss,
    "kl_div": kl_div,
    "binary_cross_entropy": binary_cross_entropy,
    "binary_cross_entropy_with_logits": binary_cross_entropy_with_logits,
    "nll_loss": nll_loss,
    "nll_loss_nd": nll_loss,
    "cross_entropy_loss": cross_entropy_loss,
}
