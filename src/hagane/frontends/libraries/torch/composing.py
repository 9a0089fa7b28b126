"""Functions of PyTorch that are composed of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hagane.frontends.libraries.composed import programmed
from hagane.frontends.libraries.torch import conditions, programs, trees
from hagane.frontends.libraries.torch.table import TORCH

_PROGRAMS: dict[str, Callable[..., Any]] = {
    "nn.functional.triplet_margin_with_distance_loss": programs.triplet_margin_with_distance_loss,
    "linalg.vecdot": programs.vecdot,
    "linalg.diagonal": programs.diagonal,
    "gradient": programs.gradient,
    "nn.functional.linear_cross_entropy": programs.linear_cross_entropy,
    "unravel_index": programs.unravel_index,
    "nn.functional.upsample_nearest": programs.upsample_nearest,
    "nn.functional.upsample_bilinear": programs.upsample_bilinear,
    "library.custom_op": programs.custom_op,
    "multiprocessing.spawn": programs.spawn,
    "func.stack_module_state": programs.stack_module_state,
    **conditions.PROGRAMS,
    **{f"utils._pytree.{name}": program for name, program in trees.PROGRAMS.items()},
}
for _name, _program in _PROGRAMS.items():
    programmed(TORCH, _name, _program)

# All of them are composed of functions that have their values.
COMPOSED = frozenset(
    {*(f"torch.{name}" for name in _PROGRAMS), "torch.nn.TripletMarginWithDistanceLoss.forward"}
)
