"""Functions of PyTorch that are composed of others."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from hagane.frontends.libraries.composed import programmed
from hagane.frontends.libraries.torch import (
    aten,
    by_name,
    conditions,
    control,
    copies,
    decomposed,
    matrices,
    programs,
    trees,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.interpret.own_programs import run_own
from hagane.frontends.python.values.values import Value

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
    **control.PROGRAMS,
    **copies.PROGRAMS,
    **decomposed.PROGRAMS,
    **matrices.PROGRAMS,
    **{f"ops.aten.{name}": program for name, program in aten.PROGRAMS.items()},
    **{f"utils._pytree.{name}": program for name, program in trees.PROGRAMS.items()},
}
_METHODS = (*copies.METHODS, *decomposed.METHODS, *matrices.METHODS)
_FIELDS = matrices.FIELDS | decomposed.FIELDS
for _name, _program in _PROGRAMS.items():
    programmed(TORCH, _name, _program, methods=[_name] if _name in _METHODS else (),
               fields=_FIELDS.get(_name, ()))  # fmt: skip
for _name, _program in by_name.METHODS.items():
    programmed(TORCH, "", _program, methods=[_name])

_ADAPTIVE = "nn.AdaptiveLogSoftmaxWithLoss.forward"


@TORCH.function(_ADAPTIVE)
def _adaptive_log_softmax(t: Core, self: Value, input_: Value, target_: Value) -> Value:
    made = run_own(t, programs.adaptive_log_softmax, [self, t.wrap(input_), t.wrap(target_)], {})
    assert isinstance(made, tuple)
    named = sys.modules["torch"].nn.modules.adaptive._ASMoutput
    return t.call(t.lift(named), list(made), {})


# Their own lines say which memory their results share with their arguments.
PROGRAMS = frozenset(
    (*(f"torch.{name}" for name in _PROGRAMS),
     *(f"torch.Tensor.{name}" for name in (*_METHODS, *by_name.METHODS)))
)  # fmt: skip
# All of them are composed of functions that have their values.
COMPOSED = frozenset(
    (*PROGRAMS,
     *(f"torch.{name}" for name in (_ADAPTIVE, "nn.TripletMarginWithDistanceLoss.forward")))
)  # fmt: skip
