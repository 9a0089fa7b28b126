"""Hyperparameters that change while a model is trained."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from hagane.errors import InvalidArgument
from hagane.training.expected import fail, need_number, need_text
from hagane.training.extension import Extension
from hagane.training.saved import number, optional


class Shift(Extension):
    """Base of extensions that set a hyperparameter at each call.

    Args:
        attr: The hyperparameter: an attribute of the optimizer, such as ``lr``.
        init: Its first value; the optimizer's own if None.
        optimizer: The optimizer; the updater's main one if None.
    """

    def __init__(self, attr: str, init: float | None, optimizer: Any):
        need_text(f"{type(self).__name__}: attr", attr)
        need_number(f"{type(self).__name__}: init", init, optional=True)
        self._attr = attr
        self._init = init
        self._optimizer = optimizer
        self._t = 0
        self._last_value: float | None = None

    def value(self, t: int) -> float | None:
        """Return the value after so many calls; None to leave it as it is."""
        raise NotImplementedError(f"{type(self).__name__} does not define value")

    @property
    def _first(self) -> float:
        assert self._init is not None, "initialize sets it"
        return self._init

    def initialize(self, trainer: Any) -> None:
        """Set the first value, or that of the snapshot that was loaded.

        Raises:
            InvalidArgument: The optimizer has no such attribute.
        """
        optimizer = self._get_optimizer(trainer)
        of_class = getattr(type(optimizer), self._attr, None)
        is_computed = isinstance(of_class, property) and of_class.fset is None
        if is_computed or not hasattr(optimizer, self._attr):
            known = ", ".join(optimizer.hyperparam.get_dict())
            raise InvalidArgument(
                f"{type(self).__name__}: {type(optimizer).__name__} has no hyperparameter "
                f"'{self._attr}' that can be set; it has {known}"
            )
        if self._init is None:
            self._init = getattr(optimizer, self._attr)
        value = self.value(self._t) if self._last_value is None else self._last_value
        self._set(optimizer, value)

    def __call__(self, trainer: Any) -> None:
        """Set the next value."""
        self._t += 1
        self._set(self._get_optimizer(trainer), self.value(self._t))

    def _get_optimizer(self, trainer: Any) -> Any:
        return self._optimizer or trainer.updater.get_optimizer("main")

    def _set(self, optimizer: Any, value: float | None) -> None:
        if value is not None:
            setattr(optimizer, self._attr, value)
            self._last_value = value

    def serialize(self, serializer: Any) -> None:
        """Read or write the number of calls and the last value."""
        self._t = serializer("_t", self._t)
        self._last_value = number(
            optional(serializer, "_last_value", self._last_value, self._last_value)
        )


def _bounded(value: float, target: float | None, grows: bool) -> float:
    """Return a value, or the target where the value has passed it, both of one sign."""
    if target is None:
        return value
    passed = abs(value) > abs(target) if grows else abs(value) < abs(target)
    return target if passed else value


class ExponentialShift(Shift):
    """Multiplies a hyperparameter by ``rate`` at each call.

    Args:
        attr: The hyperparameter.
        rate: The factor, at least 0.
        init: The first value; the optimizer's own if None.
        target: The value at which it stays.
        optimizer: The optimizer; the updater's main one if None.

    Raises:
        InvalidArgument: The rate is negative.
    """

    def __init__(
        self,
        attr: str,
        rate: float,
        init: float | None = None,
        target: float | None = None,
        optimizer: Any = None,
    ):
        need_number("ExponentialShift: rate", rate)
        need_number("ExponentialShift: target", target, optional=True)
        if rate < 0:
            raise InvalidArgument(
                f"ExponentialShift does not support negative rate: expected at least 0, got {rate}"
            )
        super().__init__(attr, init, optimizer)
        self._rate = rate
        self._target = target

    def value(self, t: int) -> float:
        """Return ``init * rate ** t``, or the target."""
        return _bounded(self._first * self._rate**t, self._target, self._rate > 1)


class InverseShift(Shift):
    """Sets a hyperparameter to ``init * (1 + gamma * t) ** -power``.

    Args:
        attr: The hyperparameter.
        gamma: See above.
        power: See above.
        init: The first value; the optimizer's own if None.
        target: The value at which it stays.
        optimizer: The optimizer; the updater's main one if None.

    Raises:
        InvalidArgument: ``gamma`` is negative.
    """

    def __init__(
        self,
        attr: str,
        gamma: float,
        power: float,
        init: float | None = None,
        target: float | None = None,
        optimizer: Any = None,
    ):
        need_number("InverseShift: gamma", gamma)
        need_number("InverseShift: power", power)
        need_number("InverseShift: target", target, optional=True)
        if gamma < 0:
            raise InvalidArgument(f"InverseShift: gamma: expected at least 0, got {gamma!r}")
        super().__init__(attr, init, optimizer)
        self._gamma = gamma
        self._power = power
        self._target = target

    def value(self, t: int) -> float:
        """Return the value after so many calls."""
        value = self._first * (1 + self._gamma * t) ** -self._power
        return _bounded(value, self._target, self._power < 0)


class PolynomialShift(Shift):
    """Sets a hyperparameter to ``init * (1 - t / max_count) ** rate``.

    Args:
        attr: The hyperparameter.
        rate: The exponent.
        max_count: Calls after which it is zero.
        init: The first value; the optimizer's own if None.
        target: The value at which it stays.
        optimizer: The optimizer; the updater's main one if None.
    """

    def __init__(
        self,
        attr: str,
        rate: float,
        max_count: int,
        init: float | None = None,
        target: float | None = None,
        optimizer: Any = None,
    ):
        need_number("PolynomialShift: rate", rate)
        need_number("PolynomialShift: max_count", max_count, positive=True)
        need_number("PolynomialShift: target", target, optional=True)
        super().__init__(attr, init, optimizer)
        self._rate = rate
        self._max_count = max_count
        self._target = target

    def value(self, t: int) -> float:
        """Return the value after so many calls."""
        left = max(1 - t / self._max_count, 0)
        return _bounded(self._first * left**self._rate, self._target, self._rate <= 0)


class StepShift(Shift):
    """Multiplies a hyperparameter by ``gamma`` every ``step`` calls.

    Args:
        attr: The hyperparameter.
        gamma: The factor.
        step: Calls between two changes.
        init: The first value; the optimizer's own if None.
        target: The value at which it stays.
        optimizer: The optimizer; the updater's main one if None.
    """

    def __init__(
        self,
        attr: str,
        gamma: float,
        step: int,
        init: float | None = None,
        target: float | None = None,
        optimizer: Any = None,
    ):
        need_number("StepShift: gamma", gamma)
        need_number("StepShift: step", step, positive=True)
        need_number("StepShift: target", target, optional=True)
        super().__init__(attr, init, optimizer)
        self._gamma = gamma
        self._step = step
        self._target = target

    def value(self, t: int) -> float:
        """Return the value after so many calls."""
        value = self._first * self._gamma ** math.floor(t / self._step)
        return _bounded(value, self._target, self._gamma > 1)


class CosineShift(Shift):
    """Takes a hyperparameter from its first value to ``target`` along half a cosine.

    Args:
        attr: The hyperparameter.
        max_count: Calls until the target.
        init: The first value; the optimizer's own if None.
        target: The last value.
        optimizer: The optimizer; the updater's main one if None.

    Source: Loshchilov and Hutter, SGDR, 2017, equation 5, without restarts.
    """

    def __init__(
        self,
        attr: str,
        max_count: int,
        init: float | None = None,
        target: float = 0.0,
        optimizer: Any = None,
    ):
        need_number("CosineShift: max_count", max_count, positive=True)
        need_number("CosineShift: target", target)
        super().__init__(attr, init, optimizer)
        self._max_count = max_count
        self._target = target

    def value(self, t: int) -> float:
        """Return the value after so many calls."""
        share = (1 + math.cos(math.pi * min(t / self._max_count, 1))) / 2
        return self._target + share * (self._first - self._target)


class LinearShift(Shift):
    """Takes a hyperparameter from one value to another in equal steps.

    Args:
        attr: The hyperparameter.
        value_range: The first and the last value.
        time_range: The calls at which it leaves the one and reaches the other.
        optimizer: The optimizer; the updater's main one if None.
    """

    def __init__(
        self,
        attr: str,
        value_range: tuple[float, float],
        time_range: tuple[float, float],
        optimizer: Any = None,
    ):
        for told, pair in (("value_range", value_range), ("time_range", time_range)):
            if not isinstance(pair, tuple | list | np.ndarray) or len(pair) != 2:
                raise fail(f"LinearShift: {told}", "a pair of numbers", pair)
            for number_of in pair:
                need_number(f"LinearShift: {told}", number_of)
        super().__init__(attr, value_range[0], optimizer)
        self._value_range = value_range
        self._time_range = time_range

    def value(self, t: int) -> float:
        """Return the value after so many calls."""
        (t1, t2), (v1, v2) = self._time_range, self._value_range
        if t <= t1:
            return v1
        if t >= t2:
            return v2
        return v1 + (t - t1) / (t2 - t1) * (v2 - v1)


class MultistepShift(Shift):
    """Multiplies a hyperparameter by ``gamma`` at given calls.

    Args:
        attr: The hyperparameter.
        gamma: The factor.
        step_value: The calls, in ascending order.
        init: The first value; the optimizer's own if None.
        optimizer: The optimizer; the updater's main one if None.
    """

    def __init__(
        self,
        attr: str,
        gamma: float,
        step_value: Sequence[int],
        init: float | None,
        optimizer: Any = None,
    ):
        need_number("MultistepShift: gamma", gamma)
        if isinstance(step_value, str) or not isinstance(step_value, Iterable):
            raise fail("MultistepShift: step_value", "a list of numbers", step_value)
        super().__init__(attr, init, optimizer)
        self._gamma = gamma
        self._step_value = list(step_value)
        for step in self._step_value:
            need_number("MultistepShift: step_value", step)

    def _passed(self, t: int) -> int:
        return sum(1 for step in self._step_value if t >= step)

    def value(self, t: int) -> float:
        """Return the value after so many calls."""
        return self._first * self._gamma ** self._passed(t)

    def serialize(self, serializer: Any) -> None:
        """Read or write the number of calls."""
        super().serialize(serializer)
        optional(serializer, "_current_step", self._passed(self._t))


class WarmupShift(Shift):
    """Takes a hyperparameter from ``warmup_start`` to ``init`` in ``warmup_iter`` equal steps.

    After these it leaves it alone, so that another extension can go on.

    Args:
        attr: The hyperparameter.
        warmup_start: The first value; the optimizer's own if None.
        warmup_iter: The number of steps.
        init: The last value.
        optimizer: The optimizer; the updater's main one if None.
    """

    def __init__(
        self,
        attr: str,
        warmup_start: float | None,
        warmup_iter: int,
        init: float,
        optimizer: Any = None,
    ):
        need_number("WarmupShift: warmup_start", warmup_start, optional=True)
        need_number("WarmupShift: warmup_iter", warmup_iter, positive=True)
        need_number("WarmupShift: init", init)
        super().__init__(attr, warmup_start, optimizer)
        self._warmup_iter = warmup_iter
        self._end = init

    def value(self, t: int) -> float | None:
        """Return the value after so many calls; None after the last step."""
        if t > self._warmup_iter:
            return self._end if self._last_value is None else None
        return (t * self._end + (self._warmup_iter - t) * self._first) / self._warmup_iter
