"""Gradient descent, with and without momentum."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.nn.optimizers.optimizer import GradientMethod
from hagane.nn.optimizers.rule import OnePass, UpdateRule


class SGDRule(UpdateRule):
    """``x -= lr * g``."""

    defaults = {"lr": 0.01}

    def step(self, param: Any, grad: Any) -> None:
        """Update the array in place."""
        param.array -= self.hyperparam.lr * grad

    def one_pass(self, param: Any) -> OnePass:
        """Return the update as one pass."""
        return "descend", (param.array,), (self.hyperparam.lr, 0, 0, 0, 0, 0)


class SGD(GradientMethod):
    """Stochastic gradient descent."""

    rule = SGDRule


class _Velocity(UpdateRule):
    def init_state(self, param: Any) -> None:
        """Start at rest."""
        self.state["v"] = np.zeros_like(param.array)


class MomentumSGDRule(_Velocity):
    """``v = momentum * v - lr * g; x += v`` (Polyak 1964)."""

    defaults = {"lr": 0.01, "momentum": 0.9}

    def step(self, param: Any, grad: Any) -> None:
        """Update the array in place."""
        v = self.state["v"]
        v *= self.hyperparam.momentum
        v -= self.hyperparam.lr * grad
        param.array += v

    def one_pass(self, param: Any) -> OnePass:
        """Return the update as one pass."""
        numbers = self.hyperparam.lr, self.hyperparam.momentum, 0, 0, 0, 0
        return "momentum", (param.array, self.state["v"]), numbers


class MomentumSGD(GradientMethod):
    """Gradient descent with momentum."""

    rule = MomentumSGDRule


class CorrectedMomentumSGDRule(_Velocity):
    """``v = momentum * v - g; x += lr * v``: the learning rate scales the velocity."""

    defaults = {"lr": 0.01, "momentum": 0.9}

    def step(self, param: Any, grad: Any) -> None:
        """Update the array in place."""
        v = self.state["v"]
        v *= self.hyperparam.momentum
        v -= grad
        param.array += self.hyperparam.lr * v


class CorrectedMomentumSGD(GradientMethod):
    """Gradient descent with a momentum that changes of the learning rate do not disturb."""

    rule = CorrectedMomentumSGDRule


class NesterovAGRule(_Velocity):
    """Nesterov's accelerated gradient, as Bengio et al. 2013 write it."""

    defaults = {"lr": 0.01, "momentum": 0.9}

    def step(self, param: Any, grad: Any) -> None:
        """Update the array in place."""
        v, lr, momentum = self.state["v"], self.hyperparam.lr, self.hyperparam.momentum
        v *= momentum
        v -= lr * grad
        param.array += momentum * momentum * v
        param.array -= (1 + momentum) * lr * grad


class NesterovAG(GradientMethod):
    """Nesterov's accelerated gradient."""

    rule = NesterovAGRule


class MSVAGRule(UpdateRule):
    """M-SVAG (Balles and Hennig 2018): momentum, each element damped by its variance."""

    defaults = {"lr": 0.1, "beta": 0.9, "eta": 1.0, "weight_decay_rate": 0}

    def prepare(self) -> None:
        """Start the power of beta."""
        self.beta_power = self.hyperparam.beta

    def init_state(self, param: Any) -> None:
        """Start both means at zero."""
        self.state["m"] = np.zeros_like(param.array)
        self.state["v"] = np.zeros_like(param.array)

    def step(self, param: Any, grad: Any) -> None:
        """Update the array in place."""
        hp, power = self.hyperparam, self.beta_power
        m, v = self.state["m"], self.state["v"]
        rho = (1 - hp.beta) ** 2 * (1 - power**2) / ((1 - power) ** 2 * (1 - hp.beta**2))
        rho = min(rho, 0.9999)
        m += (1 - hp.beta) * (grad - m)
        v += (1 - hp.beta) * (grad * grad - v)
        mean, square = m / (1 - power), v / (1 - power)
        variance = (square - mean**2) / (1 - rho)
        with np.errstate(invalid="ignore", divide="ignore"):
            factor = np.clip(mean**2 / (mean**2 + rho * variance), 0, 1)
        factor = np.where(np.isnan(factor), np.zeros_like(factor), factor)
        param.array -= hp.eta * (hp.lr * mean * factor + hp.weight_decay_rate * param.array)
        self.beta_power *= hp.beta


class MSVAG(GradientMethod):
    """M-SVAG."""

    rule = MSVAGRule
