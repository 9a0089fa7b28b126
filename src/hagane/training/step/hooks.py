"""The hooks of optimizers that are part of a compiled step: their effect on gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hagane.errors import InvalidArgument
from hagane.nn.optimizers.decays import (
    GradientClipping,
    GradientHardClipping,
    GradientLARS,
    Lasso,
    WeightDecay,
)
from hagane.ops.builder import dtype_of, op
from hagane.ops.functions.numbers.elementary import add, div, mul, sqrt, where

# Parameters and gradients by name, to gradients.
Pairs = Mapping[str, tuple[Any, Any]]


def _like(value: float, x: Any) -> Any:
    return np.array(value, dtype_of(x).numpy())


def _norm(x: Any) -> Any:
    return op("ReduceL2", x, keepdims=0)


def _decayed(hook: Any, p: Any, g: Any) -> Any:
    return add(g, mul(p, _like(hook.rate, g)))


def _lasso(hook: Any, p: Any, g: Any) -> Any:
    return add(g, mul(op("Sign", p), _like(hook.rate, g)))


def _hard_clipped(hook: Any, p: Any, g: Any) -> Any:
    return op("Clip", g, _like(hook.lower_bound, g), _like(hook.upper_bound, g))


def _lars(hook: Any, p: Any, g: Any) -> Any:
    norm, decay = _norm(p), _like(hook.weight_decay, g)
    rate = div(norm, add(_like(hook.eps, g), _norm(g), mul(decay, norm)))
    rate = where(op("Greater", norm, _like(hook.threshold, g)), rate, _like(1, g))
    return mul(add(g, mul(p, decay)), rate)


_EACH: Mapping[type, Callable[[Any, Any, Any], Any]] = {
    WeightDecay: _decayed,
    Lasso: _lasso,
    GradientHardClipping: _hard_clipped,
    GradientLARS: _lars,
}


def _clipped(hook: Any, pairs: Pairs) -> dict[str, Any]:
    total: Any = None
    for _, g in pairs.values():
        part = op("ReduceSumSquare", g, keepdims=0)
        total = part if total is None else add(total, part)
    threshold = _like(hook.threshold, total)
    rate = op("Min", div(threshold, sqrt(total)), _like(1, total))
    return {name: mul(g, rate) for name, (_, g) in pairs.items()}


_KNOWN = (*_EACH, GradientClipping)


def checked_hooks(optimizer: Any, parameters: Sequence[Any]) -> list[Any]:
    """Return the hooks of an optimizer, which act on gradients.

    Raises:
        InvalidArgument: One is none of hagane's own for gradients, or belongs to one parameter.
    """
    before, after = optimizer._hooks._before, optimizer._hooks._after
    for name, hook in (*before.items(), *after.items()):
        if _kind(hook) is None or name in after:
            raise InvalidArgument(
                f"compile: the optimizer's hook '{name}' ({type(hook).__name__}) cannot be part of "
                f"a compiled step: expected one of {', '.join(k.__name__ for k in _KNOWN)}, called "
                "before the update; remove it, or call optimizer.update"
            )
    for param in parameters:
        own = param.update_rule._hooks
        if own._before or own._after:
            raise InvalidArgument(
                f"compile: the update rule of '{param.name}' has a hook of its own, which is not "
                "compiled; give the hook to the optimizer"
            )
    return list(before.values())


def _kind(hook: Any) -> Any:
    """Return hagane's class of a hook, whose call it has, if it has one."""
    kinds = (kind for kind in _KNOWN if isinstance(hook, kind))
    return next((kind for kind in kinds if type(hook).__call__ is kind.__call__), None)


def settings_of(hooks: Sequence[Any]) -> tuple[object, ...]:
    """Return the settings that programs rest on."""
    return tuple((type(hook), tuple(sorted(vars(hook).items()))) for hook in hooks)


def apply_hooks(hooks: Sequence[Any], pairs: Pairs) -> dict[str, Any]:
    """Return the gradients, by name, after the hooks, in their order."""
    found = {name: g for name, (_, g) in pairs.items()}
    for hook in hooks:
        now = {name: (p, found[name]) for name, (p, _) in pairs.items()}
        if isinstance(hook, GradientClipping):
            found = _clipped(hook, now)
        else:
            each = _EACH[_kind(hook)]
            found = {name: each(hook, p, g) for name, (p, g) in now.items()}
    return found
