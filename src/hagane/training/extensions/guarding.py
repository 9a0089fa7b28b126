"""Extensions that watch over a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.nn.autograd.configuration import config
from hagane.nn.autograd.variable import Variable
from hagane.training.errors import Diverged
from hagane.training.extension import Extension


class FailOnNonNumber(Extension):
    """Ends a run whose parameters are no longer finite.

    As Chainer's, it looks at parameters alone: a loss that is NaN or infinite while these stay
    finite (it reaches none of them, or the update was left out) does not end the run;
    ``LogReport`` warns of that, and ``hagane.config.debug = True`` ends it at the function.
    """

    def __call__(self, trainer: Any) -> None:
        """Look at all parameters.

        Raises:
            Diverged: One holds an infinity or a NaN.
        """
        for name, optimizer in trainer.updater.get_all_optimizers().items():
            for path, parameter in optimizer.target.namedparams(include_uninit=False):
                if not np.isfinite(parameter.array).all():
                    raise Diverged(
                        f"parameters in optimizer '{name}' diverge: {path} holds a NaN or an "
                        f"infinity after iteration {trainer.updater.iteration}; a smaller "
                        "learning rate or GradientClipping may help"
                    )


class unchain_variables(Extension):  # noqa: N801
    """Forgets the computations of observed variables, after the extensions that read them."""

    priority = 0

    def __init__(self) -> None:
        self._before = False

    def initialize(self, trainer: Any) -> None:
        """Note whether computations are kept."""
        self._before = bool(config.keep_graph_on_report)

    def trigger(self, trainer: Any) -> bool:
        """Return whether computations were kept at the last iteration."""
        flag, self._before = self._before, bool(config.keep_graph_on_report)
        return flag

    def __call__(self, trainer: Any) -> None:
        """Forget them."""
        for value in trainer.observation.values():
            if isinstance(value, Variable):
                value.unchain_backward()
