"""Hooks under the names that Chainer had for them before ``optimizer_hooks``: they warn of that."""

from __future__ import annotations

import warnings
from typing import Any

from hagane.nn.optimizers import decays


def _moved(hook: Any) -> Any:
    name = hook.__name__

    def initialise(self: Any, *args: Any, **options: Any) -> None:
        warnings.warn(
            f"optimizer.{name} is deprecated. Use optimizer_hooks.{name} instead.",
            DeprecationWarning,
            stacklevel=2,
        )
        hook.__init__(self, *args, **options)

    content = {"__init__": initialise, "__doc__": hook.__doc__, "__module__": __name__}
    return type(name, (hook,), content)


GradientClipping = _moved(decays.GradientClipping)
GradientHardClipping = _moved(decays.GradientHardClipping)
GradientNoise = _moved(decays.GradientNoise)
Lasso = _moved(decays.Lasso)
WeightDecay = _moved(decays.WeightDecay)
