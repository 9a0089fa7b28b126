"""Optimizers: updates of the parameters of a link from their gradients."""

from __future__ import annotations

import logging
import math
import numbers
import warnings
from typing import Any, ClassVar

import numpy as np

from hagane.errors import InvalidArgument
from hagane.nn.autograd.configuration import config
from hagane.nn.autograd.debugging import check_used, defined_at
from hagane.nn.model.link import Link
from hagane.nn.optimizers.hooking import Hooks
from hagane.nn.optimizers.hyperparameter import Hyperparameter, HyperparameterProxy
from hagane.nn.optimizers.rule import UpdateRule, initialiser, update_all

_logger = logging.getLogger("hagane.training")


class Optimizer:
    """Base of optimizers of a link's parameters.

    Attributes:
        target: The link.
        t: The number of updates.
        epoch: The number of the epoch.
    """

    target: Any = None
    t = 0
    epoch = 0
    use_auto_new_epoch = False
    _hooks: Hooks | None = None
    _loss_scale: float | None = None
    _loss_scale_max = 65504
    _loss_scaling_is_dynamic = False
    _loss_scaling_isnan = False
    _loss_scaling_isnan_ever = False
    _loss_scaling_multiplier = 1.0

    def setup(self, link: Link) -> Any:
        """Take a link as target; returns the optimizer.

        Raises:
            TypeError: It is no link.
        """
        if not isinstance(link, Link):
            raise TypeError(f"optimization target must be a link, got {type(link)}")
        self.target = link
        self.t = 0
        self.epoch = 0
        self._hooks = Hooks(invalid_timing_fallback=True, call=self.call_hook)
        return self

    def update(self, lossfun: Any = None, *args: Any, **kwds: Any) -> None:
        """Update the parameters, from gradients of ``lossfun(*args, **kwds)`` if it is given."""
        raise NotImplementedError

    def new_epoch(self, auto: bool = False) -> None:
        """Start a new epoch.

        Raises:
            RuntimeError: An updater does it already, or should not.
        """
        if auto and not self.use_auto_new_epoch:
            raise RuntimeError(
                "invalid new_epoch call with auto=True: set optimizer.use_auto_new_epoch = True"
            )
        if not auto and self.use_auto_new_epoch:
            raise RuntimeError(
                "duplicated new_epoch with the updater: pass auto_new_epoch=False to the updater "
                "or stop calling new_epoch outside of it"
            )
        self.epoch += 1

    def _ready_hooks(self) -> Hooks:
        if self._hooks is None:
            raise RuntimeError("Optimizer is not set up. Call `setup` method.")
        return self._hooks

    def add_hook(self, hook: Any, name: str | None = None, timing: str = "auto") -> None:
        """Register a hook.

        Args:
            hook: Called with the optimizer, or with rule and parameter of each parameter if its
                ``call_for_each_param`` is true.
            name: Its name, by default its attribute ``name``.
            timing: ``pre`` or ``post`` the update, or ``auto``: as the hook says.
        """
        self._ready_hooks().add_hook(hook, name, timing)

    def remove_hook(self, name: str) -> None:
        """Take a hook away."""
        self._ready_hooks().remove_hook(name)

    def call_hooks(self, timing: str = "pre") -> None:
        """Call the hooks of a timing."""
        self._ready_hooks().call_hooks(timing, ())

    def call_hook(self, hook: Any) -> None:
        """Call one hook."""
        if getattr(hook, "call_for_each_param", False):
            for param in self.target.params():
                hook(param.update_rule, param)
        else:
            hook(self)

    def serialize(self, serializer: Any) -> None:
        """Read or write the numbers of updates and epochs, and the rules' states."""
        self.t = serializer("t", self.t)
        self.epoch = serializer("epoch", self.epoch)
        for name, param in self.target.namedparams():
            rule = getattr(param, "update_rule", None)
            if rule is not None:
                rule.serialize(serializer[name])

    def loss_scaling(self, interval: int = 1000, scale: float | None = None) -> None:
        """Scale the loss, so that float16 gradients do not vanish.

        Args:
            interval: With a scale that adapts: after how many updates it has doubled.
            scale: A fixed scale.

        Raises:
            InvalidArgument: The scale is no positive number.
            ValueError: The interval is not positive.
        """
        if scale is not None:
            if not isinstance(scale, numbers.Real | np.number) or not scale > 0:
                raise InvalidArgument(f"loss_scale must be a positive number. Actual: {scale!r}")
            self._loss_scale = scale
            return
        if interval < 1:
            raise ValueError(f"interval must be greater than or equal to 1. Actual: {interval}")
        self._loss_scaling_is_dynamic = True
        self._loss_scale = 1.0
        self._loss_scaling_multiplier = math.pow(2.0, 1.0 / interval)
        self._loss_scaling_isnan_ever = False

    def set_loss_scale(self, loss_scale: float) -> None:
        """Scale the loss by a fixed factor."""
        self.loss_scaling(scale=loss_scale)

    def check_nan_in_grads(self) -> None:
        """Look for gradients that overflowed, where the scale adapts."""
        self._loss_scaling_isnan = False
        if not self._loss_scaling_is_dynamic:
            return
        for name, param in self.target.namedparams():
            if not np.all(np.isfinite(param.grad)):
                self._loss_scaling_isnan = self._loss_scaling_isnan_ever = True
                warnings.warn(
                    f"Non finite number found in param.grad of {name} "
                    f"(iteration: {self.t}, loss_scale: {self._loss_scale})",
                    stacklevel=2,
                )

    def is_safe_to_update(self) -> bool:
        """Return whether no gradient overflowed."""
        return not self._loss_scaling_isnan

    def update_loss_scale(self) -> None:
        """Adapt the scale of the loss."""
        if not self._loss_scaling_is_dynamic or self._loss_scale is None:
            return
        factor = 2.0
        if self._loss_scaling_isnan:
            factor = 0.5
        elif self._loss_scaling_isnan_ever:
            factor = self._loss_scaling_multiplier
        self._loss_scale = max(1, min(self._loss_scale_max, self._loss_scale * factor))


class GradientMethod(Optimizer):
    """Base of optimizers with one rule a parameter.

    Subclasses with ``rule`` get an ``__init__`` that takes the rule's hyperparameters.

    Attributes:
        hyperparam: The hyperparameters.
        rule: The rule of each parameter.
    """

    rule: ClassVar[type[UpdateRule] | None] = None
    _use_cleargrads = True

    def __init__(self) -> None:
        self.hyperparam = Hyperparameter()
        self._use_fp32_update = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.rule is None or "__init__" in cls.__dict__ or "rule" not in cls.__dict__:
            return
        for name in cls.rule.defaults:
            setattr(cls, name, HyperparameterProxy(name))
        cls.__init__ = initialiser(cls.rule.defaults, cls._start, first=False)  # type: ignore[method-assign]

    def _start(self, **values: Any) -> None:
        GradientMethod.__init__(self)
        self.hyperparam.__dict__.update(values)

    def setup(self, link: Link) -> Any:
        """Take a link as target, and give each of its parameters a rule."""
        super().setup(link)
        for param in link.params():
            param.update_rule = self.create_update_rule()
            if self._use_fp32_update:
                param.update_rule.use_fp32_update()
        return self

    def reallocate_cleared_grads(self) -> None:
        """Give parameters without a gradient one of zeros."""
        for param in self.target.params(False):
            if param.grad is None:
                param.grad = np.zeros_like(param.array)

    def call_hook(self, hook: Any) -> None:
        """Call one hook; gradients that it cleared become zeros."""
        super().call_hook(hook)
        self.reallocate_cleared_grads()

    def update(self, lossfun: Any = None, *args: Any, **kwds: Any) -> None:
        """Update the parameters.

        Args:
            lossfun: Returns the loss, of which the gradients are computed first; None where they
                are there.
            args: Its arguments.
            kwds: Its named arguments.

        Raises:
            RuntimeError: The optimizer has no target; in debug mode also where a parameter has no
                gradient.
            TypeError: The loss is no variable.
        """
        if self.target is None:
            raise RuntimeError(
                f"{type(self).__name__} is not set up: call setup(link) with its target first"
            )
        if lossfun is not None:
            loss = lossfun(*args, **kwds)
            self._check_loss(lossfun, loss)
            if self._use_cleargrads:
                self.target.cleargrads()
            else:
                self.target.zerograds()
            loss.backward(loss_scale=self._loss_scale)
            del loss
            self._tell_unreached()
        if config.debug:
            check_used(self._without_gradient())
        self.reallocate_cleared_grads()
        self.check_nan_in_grads()
        self.call_hooks("pre")
        self.t += 1
        if self.is_safe_to_update():
            update_all(self.target.params())
        self.reallocate_cleared_grads()
        self.call_hooks("post")
        self.update_loss_scale()

    def _check_loss(self, lossfun: Any, loss: Any) -> None:
        """Raise ``TypeError`` or ``RuntimeError`` where no gradient can come of a loss."""
        told = f"{type(self).__name__}.update: expected the loss function to return"
        place = defined_at(lossfun)
        if not hasattr(loss, "backward"):
            raise TypeError(
                f"{told} a Variable, got {type(loss).__name__}; return the loss itself, not its "
                f"array{place}"
            )
        dtype = getattr(loss, "dtype", None)
        if dtype is not None and np.dtype(dtype).kind not in "fV":
            raise TypeError(
                f"{told} a floating-point number, got {dtype}; no gradient goes through it, return "
                f"what it is computed from{place}"
            )
        if getattr(loss, "size", 1) != 1 and getattr(loss, "grad_var", None) is None:
            raise RuntimeError(
                f"{told} a scalar or a variable whose grad is set, got one of shape {loss.shape}; "
                f"take functions.mean of it{place}"
            )

    def _tell_unreached(self) -> None:
        """Warn of parameters without a gradient at the first update."""
        unreached = self._without_gradient()
        if unreached and self.t == 0:
            _logger.warning(
                f"{type(self).__name__}.update: the loss does not depend on "
                f"{', '.join(path.partition(':')[0] for path in unreached)}: their gradients are "
                "zeros"
            )

    def _without_gradient(self) -> list[str]:
        """Return the parameters that are updated and have no gradient."""
        return [
            f"{path}: {param.label}"
            for path, param in self.target.namedparams()
            if param._grad is None and (param.update_rule is None or param.update_rule.enabled)
        ]

    def use_cleargrads(self, use: bool = True) -> None:
        """Choose between dropping gradients and filling them with zeros."""
        warnings.warn(
            "GradientMethod.use_cleargrads is deprecated.", DeprecationWarning, stacklevel=2
        )
        self._use_cleargrads = use

    def create_update_rule(self) -> UpdateRule:
        """Return a new rule for a parameter."""
        if self.rule is None:
            raise NotImplementedError(f"{type(self).__name__} defines no rule")
        return self.rule(self.hyperparam)

    def use_fp32_update(self, flag: bool = True) -> None:
        """Keep and update float16 parameters in float32."""
        self._use_fp32_update = flag
        for param in self.target.params() if self.target is not None else ():
            param.update_rule.use_fp32_update()
