"""Optimizers that scale each element by the history of its gradients."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from hagane.nn.optimizers.optimizer import GradientMethod
from hagane.nn.optimizers.rule import OnePass, UpdateRule


class AdaGradRule(UpdateRule):
    """AdaGrad (Duchi, Hazan and Singer 2011)."""

    defaults = {"lr": 0.001, "eps": 1e-8}

    def init_state(self, param: Any) -> None:
        """Start the sum of squares at zero."""
        self.state["h"] = np.zeros_like(param.array)

    def step(self, param: Any, grad: Any) -> None:
        """Update the array in place."""
        h = self.state["h"]
        h += grad * grad
        param.array -= self.hyperparam.lr * grad / (np.sqrt(h) + self.hyperparam.eps)


class AdaGrad(GradientMethod):
    """AdaGrad."""

    rule = AdaGradRule


class AdaDeltaRule(UpdateRule):
    """AdaDelta (Zeiler 2012)."""

    defaults = {"rho": 0.95, "eps": 1e-6}

    def init_state(self, param: Any) -> None:
        """Start both means of squares at zero."""
        self.state["msg"] = np.zeros_like(param.array)
        self.state["msdx"] = np.zeros_like(param.array)

    def step(self, param: Any, grad: Any) -> None:
        """Update the array in place."""
        rho, eps = self.hyperparam.rho, self.hyperparam.eps
        of_gradients, of_steps = self.state["msg"], self.state["msdx"]
        of_gradients *= rho
        of_gradients += (1 - rho) * grad * grad
        step = np.sqrt((of_steps + eps) / (of_gradients + eps)) * grad
        of_steps *= rho
        of_steps += (1 - rho) * step * step
        param.array -= step


class AdaDelta(GradientMethod):
    """AdaDelta."""

    rule = AdaDeltaRule


class RMSpropRule(UpdateRule):
    """RMSprop (Tieleman and Hinton 2012)."""

    defaults = {"lr": 0.01, "alpha": 0.99, "eps": 1e-8, "eps_inside_sqrt": False}

    def init_state(self, param: Any) -> None:
        """Start the mean of squares at zero."""
        self.state["ms"] = np.zeros_like(param.array)

    def step(self, param: Any, grad: Any) -> None:
        """Update the array in place.

        Raises:
            ValueError: ``eps`` vanishes in the element type.
        """
        hp = self.hyperparam
        eps = checked_eps("RMSprop", hp.eps, grad.dtype)
        ms = self.state["ms"]
        ms *= hp.alpha
        ms += (1 - hp.alpha) * grad * grad
        root = np.sqrt(ms + eps) if hp.eps_inside_sqrt else np.sqrt(ms) + eps
        param.array -= hp.lr * grad / root


class RMSprop(GradientMethod):
    """RMSprop."""

    rule = RMSpropRule


class RMSpropGravesRule(UpdateRule):
    """RMSprop with momentum and centred squares (Graves 2013, equations 38–45)."""

    defaults = {"lr": 1e-4, "alpha": 0.95, "momentum": 0.9, "eps": 1e-4}

    def init_state(self, param: Any) -> None:
        """Start all at zero."""
        for name in ("n", "g", "delta"):
            self.state[name] = np.zeros_like(param.array)

    def step(self, param: Any, grad: Any) -> None:
        """Update the array in place."""
        hp = self.hyperparam
        n, g, delta = self.state["n"], self.state["g"], self.state["delta"]
        n *= hp.alpha
        n += (1 - hp.alpha) * grad * grad
        g *= hp.alpha
        g += (1 - hp.alpha) * grad
        delta *= hp.momentum
        delta -= hp.lr * grad / np.sqrt(n - g * g + hp.eps)
        param.array += delta


class RMSpropGraves(GradientMethod):
    """RMSprop as Graves wrote it."""

    rule = RMSpropGravesRule


class SMORMS3Rule(UpdateRule):
    """SMORMS3 (Funk 2015)."""

    defaults = {"lr": 0.001, "eps": 1e-16}

    def init_state(self, param: Any) -> None:
        """Start with a memory of one step."""
        self.state["mem"] = np.ones_like(param.array)
        self.state["g"] = np.zeros_like(param.array)
        self.state["g2"] = np.zeros_like(param.array)

    def step(self, param: Any, grad: Any) -> None:
        """Update the array in place."""
        eps = self.hyperparam.eps
        r = 1 / (self.state["mem"] + 1)
        g = (1 - r) * self.state["g"] + r * grad
        g2 = (1 - r) * self.state["g2"] + r * grad * grad
        x = g * g / (g2 + eps)
        param.array -= grad * np.minimum(x, self.hyperparam.lr) / (np.sqrt(g2) + eps)
        self.state.update(mem=1 + self.state["mem"] * (1 - x), g=g, g2=g2)


class SMORMS3(GradientMethod):
    """SMORMS3."""

    rule = SMORMS3Rule


class AdamRule(UpdateRule):
    """Adam (Kingma and Ba 2015), with AdamW, AMSGrad and AdaBound as options."""

    defaults = {
        "alpha": 0.001,
        "beta1": 0.9,
        "beta2": 0.999,
        "eps": 1e-8,
        "eta": 1.0,
        "weight_decay_rate": 0,
        "amsgrad": False,
        "adabound": False,
        "final_lr": 0.1,
        "gamma": 0.001,
    }

    def prepare(self) -> None:
        """Remember the learning rate that the bounds begin with."""
        if self.hyperparam.adabound:
            self.initial_alpha = self.hyperparam.alpha

    def init_state(self, param: Any) -> None:
        """Start the means at zero."""
        self.state["m"] = np.zeros_like(param.array)
        self.state["v"] = np.zeros_like(param.array)
        if self.hyperparam.amsgrad:
            self.state["vhat"] = np.zeros_like(param.array)

    def step(self, param: Any, grad: Any) -> None:
        """Update the array in place.

        Raises:
            ValueError: ``eps`` vanishes in the element type.
        """
        hp = self.hyperparam
        dtype = np.promote_types(param.dtype, np.float32)
        checked_eps("Adam", hp.eps, dtype)
        grad = grad.astype(dtype, copy=False)
        m, v = self.state["m"], self.state["v"]
        # Assigned rather than added in place: states may have fewer bits than the gradient here.
        m[...] = m + (1 - hp.beta1) * (grad - m)
        v[...] = v + (1 - hp.beta2) * (grad * grad - v)
        largest = v
        if hp.amsgrad:
            largest = self.state["vhat"]
            np.maximum(largest, v, out=largest)
        step = self.alpha_t / (np.sqrt(largest.astype(dtype, copy=False)) + hp.eps)
        if hp.adabound:
            step = np.clip(step, *self.bounds)
        array = param.array
        if hp.weight_decay_rate:
            array[...] = self._kept() * array - hp.eta * (step * m)
        else:
            array[...] = array - hp.eta * (step * m)

    def one_pass(self, param: Any) -> OnePass | None:
        """Return the update as one pass; there is none with AMSGrad and AdaBound."""
        hp, array = self.hyperparam, param.array
        if hp.amsgrad or hp.adabound:
            return None
        checked_eps("Adam", hp.eps, array.dtype)
        numbers = (self.alpha_t, 1 - hp.beta1, 1 - hp.beta2, hp.eps, hp.eta, self._kept())
        return "adam", (array, self.state["m"], self.state["v"]), numbers

    def _kept(self) -> float:
        """Return the share of a parameter that its decay leaves."""
        return 1 - self.hyperparam.eta * self.hyperparam.weight_decay_rate

    @property
    def alpha_t(self) -> float:
        """The learning rate of this update, bias corrected."""
        return corrected_rate(self.hyperparam, self.t)

    @property
    def lr(self) -> float:
        """The same, under its old name."""
        warnings.warn(
            "AdamRule.lr has been renamed to AdamRule.alpha_t.", DeprecationWarning, stacklevel=2
        )
        return self.alpha_t

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest step (Luo et al. 2019).

        Raises:
            RuntimeError: There was no update yet.
        """
        if self.t == 0:
            raise RuntimeError(
                "Can't determine the bounds of AdaBound optimizer because the update steps have "
                "not been started."
            )
        hp = self.hyperparam
        final = hp.final_lr * hp.alpha / self.initial_alpha
        lower = final * (1.0 - 1.0 / (hp.gamma * self.t + 1))
        return lower, final * (1.0 + 1.0 / (hp.gamma * self.t))


class Adam(GradientMethod):
    """Adam."""

    rule = AdamRule

    @property
    def alpha_t(self) -> float:
        """The learning rate of the last update, bias corrected."""
        return corrected_rate(self.hyperparam, self.t)

    @property
    def lr(self) -> float:
        """The same, under its old name."""
        warnings.warn(
            "Adam.lr has been renamed to AdamRule.alpha_t.", DeprecationWarning, stacklevel=2
        )
        return self.alpha_t


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019)."""

    def __init__(
        self,
        alpha: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        eta: float = 1.0,
        weight_decay_rate: float = 0,
    ):
        super().__init__(alpha, beta1, beta2, eps, eta, weight_decay_rate)  # type: ignore[call-arg]


class AMSGrad(Adam):
    """Adam that never forgets the largest square (Reddi, Kale and Kumar 2018)."""

    def __init__(
        self,
        alpha: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        eta: float = 1.0,
    ):
        super().__init__(alpha, beta1, beta2, eps, eta, amsgrad=True)  # type: ignore[call-arg]


class AdaBound(Adam):
    """Adam whose steps approach those of plain descent (Luo et al. 2019)."""

    def __init__(
        self,
        alpha: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        final_lr: float = 0.1,
        gamma: float = 0.001,
        eps: float = 1e-8,
        eta: float = 1.0,
    ):
        super().__init__(  # type: ignore[call-arg]
            alpha, beta1, beta2, eps, eta, adabound=True, final_lr=final_lr, gamma=gamma
        )


class AMSBound(Adam):
    """AdaBound that never forgets the largest square (Luo et al. 2019)."""

    def __init__(
        self,
        alpha: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        final_lr: float = 0.1,
        gamma: float = 0.001,
        eps: float = 1e-8,
        eta: float = 1.0,
    ):
        super().__init__(  # type: ignore[call-arg]
            alpha,
            beta1,
            beta2,
            eps,
            eta,
            amsgrad=True,
            adabound=True,
            final_lr=final_lr,
            gamma=gamma,
        )


def corrected_rate(hyperparam: Any, t: int) -> float:
    """Return the bias corrected learning rate of the update ``t``.

    Raises:
        RuntimeError: There was no update yet.
    """
    if t == 0:
        raise RuntimeError(
            "Can't determine the learning rate of Adam optimizer because the update steps have "
            "not been started."
        )
    first = 1.0 - math.pow(hyperparam.beta1, t)
    second = 1.0 - math.pow(hyperparam.beta2, t)
    return float(hyperparam.alpha * math.sqrt(second) / first)


def checked_eps(name: str, eps: float, dtype: Any) -> Any:
    """Return ``eps`` in an element type.

    Raises:
        ValueError: It vanishes there.
    """
    found = dtype.type(eps)
    if eps != 0 and found == 0:
        raise ValueError(f"eps of {name} optimizer is too small for {dtype.name} ({eps})")
    return found
