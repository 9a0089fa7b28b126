"""Hooks of optimizers: changes of gradients before an update."""

from __future__ import annotations

from typing import Any

import numpy as np


class WeightDecay:
    """Adds ``rate`` times the parameter to its gradient (ridge, Tikhonov)."""

    name = "WeightDecay"
    call_for_each_param = True
    timing = "pre"

    def __init__(self, rate: float):
        self.rate = rate

    def __call__(self, rule: Any, param: Any) -> None:
        """Change the gradient in place."""
        if param.array is None or param.grad is None:
            return
        scale = 1 if param._loss_scale is None else param._loss_scale
        gradient = param.grad
        gradient += self.rate * scale * param.array


class Lasso:
    """Adds ``rate`` times the parameter's sign to its gradient (Tibshirani 1996)."""

    name = "Lasso"
    call_for_each_param = True
    timing = "pre"

    def __init__(self, rate: float):
        self.rate = rate

    def __call__(self, rule: Any, param: Any) -> None:
        """Change the gradient in place."""
        if param.array is None or param.grad is None:
            return
        gradient = param.grad
        gradient += self.rate * np.sign(param.array)


class GradientClipping:
    """Scales all gradients so that their common norm is at most ``threshold``."""

    name = "GradientClipping"
    timing = "pre"

    def __init__(self, threshold: float):
        self.threshold = threshold

    def __call__(self, opt: Any) -> None:
        """Change the gradients in place."""
        gradients = [param.grad for param in opt.target.params(False)]
        total = sum(gradient.ravel().dot(gradient.ravel()) for gradient in gradients)
        with np.errstate(divide="ignore"):
            rate = self.threshold / np.sqrt(total)
        if rate >= 1:
            return
        for gradient in gradients:
            gradient *= gradient.dtype.type(rate)


class GradientHardClipping:
    """Brings each element of a gradient between two bounds."""

    name = "GradientHardClipping"
    call_for_each_param = True
    timing = "pre"

    def __init__(self, lower_bound: float, upper_bound: float):
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound

    def __call__(self, rule: Any, param: Any) -> None:
        """Change the gradient in place."""
        if param.grad is not None:
            np.clip(param.grad, self.lower_bound, self.upper_bound, out=param.grad)


class GradientLARS:
    """Scales each gradient by the norm of its parameter (You, Gitman and Ginsburg 2017)."""

    name = "GradientLARS"
    call_for_each_param = True
    timing = "pre"

    def __init__(self, threshold: float = 1e-2, weight_decay: float = 0.0, eps: float = 1e-9):
        self.threshold = threshold
        self.weight_decay = weight_decay
        self.eps = eps

    def __call__(self, rule: Any, param: Any) -> None:
        """Change the gradient in place."""
        if param.array is None or param.grad is None:
            return
        norm = float(np.linalg.norm(param.array))
        gradient = param.grad
        rate = norm / (self.eps + float(np.linalg.norm(gradient)) + self.weight_decay * norm)
        if not norm > self.threshold:
            rate = 1.0
        gradient += self.weight_decay * param.array
        gradient *= gradient.dtype.type(rate)


def exponential_decay_noise(xp: Any, shape: Any, dtype: Any, hook: Any, opt: Any) -> Any:
    """Return normal noise whose variance falls with time (Neelakantan et al. 2015).

    Args:
        xp: The array module.
        shape: The sizes.
        dtype: The element type.
        hook: The hook, whose ``eta`` scales the variance.
        opt: The rule, whose ``t`` is the time.
    """
    deviation = np.sqrt(hook.eta / np.power(1 + opt.t, 0.55))
    return xp.random.normal(0, deviation, shape).astype(dtype)


class GradientNoise:
    """Adds noise to gradients.

    Args:
        eta: Scales the variance of the noise.
        noise_func: Makes the noise.
    """

    name = "GradientNoise"
    call_for_each_param = True
    timing = "pre"

    def __init__(self, eta: float, noise_func: Any = exponential_decay_noise):
        self.eta = eta
        self.noise_func = noise_func

    def __call__(self, rule: Any, param: Any) -> None:
        """Change the gradient in place."""
        if param.grad is None:
            return
        gradient = param.grad
        gradient += self.noise_func(np, gradient.shape, gradient.dtype, self, rule)
