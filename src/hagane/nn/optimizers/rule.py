"""Rules: how one parameter is updated."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np

from hagane.nn.autograd.parameter import Parameter
from hagane.nn.autograd.variable import Variable
from hagane.nn.eager.updates import UPDATES, Pass
from hagane.nn.optimizers.hooking import Hooks
from hagane.nn.optimizers.hyperparameter import Hyperparameter
from hagane.nn.serializers.serializer import Deserializer

# An update that C does in one pass: its name, the arrays that it changes, six hyperparameters.
OnePass = tuple[str, tuple[Any, ...], tuple[float, ...]]


def initialiser(defaults: dict[str, Any], make: Callable[..., None], first: bool) -> Any:
    """Return an ``__init__`` that takes the hyperparameters by place or name."""
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter("self", kinds)]
    if first:
        parameters.append(inspect.Parameter("parent_hyperparam", kinds, default=None))
    for name, value in defaults.items():
        parameters.append(inspect.Parameter(name, kinds, default=None if first else value))
    signature = inspect.Signature(parameters)

    def initialise(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        values = dict(bound.arguments)
        del values["self"]
        make(self, **values)

    initialise.__signature__ = signature  # type: ignore[attr-defined]
    return initialise


class UpdateRule:
    """How one parameter is updated.

    Subclasses with ``defaults`` get an ``__init__`` that takes these hyperparameters.

    Attributes:
        enabled: Whether the parameter is updated.
        hyperparam: The hyperparameters.
        t: The number of updates.
        state: Arrays that are kept between updates, by name.
    """

    is_elementwise = True
    defaults: ClassVar[dict[str, Any]] = {}
    # Whether ``update`` is ours, and ``one_pass`` says what ``step`` does.
    _is_plain: ClassVar[bool] = False
    _pass: Pass | None = None

    def __init__(self, parent_hyperparam: Hyperparameter | None = None):
        self._state: dict[str, Any] | None = None
        self.enabled = True
        self.hyperparam = Hyperparameter(parent_hyperparam)
        self.t = 0
        self._use_fp32_update = False
        self._fp32_param: Parameter | None = None
        self._hooks = Hooks()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        ours = ("update", "update_core", "update_core_cpu")
        own = next(each for each in cls.__mro__ if {"step", "one_pass"} & each.__dict__.keys())
        cls._is_plain = {"step", "one_pass"} <= own.__dict__.keys() and all(
            getattr(cls, name) is getattr(UpdateRule, name) for name in ours
        )
        if "defaults" in cls.__dict__ and "__init__" not in cls.__dict__:
            cls.__init__ = initialiser(cls.defaults, cls._start, first=True)  # type: ignore[method-assign]

    def _start(self, parent_hyperparam: Any, **values: Any) -> None:
        if parent_hyperparam is None:
            parent_hyperparam = Hyperparameter()
            parent_hyperparam.__dict__.update(self.defaults)
        UpdateRule.__init__(self, parent_hyperparam)
        for name, value in values.items():
            if value is not None:
                setattr(self.hyperparam, name, value)
        self.prepare()

    def prepare(self) -> None:
        """Called once the hyperparameters are set."""

    @property
    def state(self) -> Any:
        """Arrays that are kept between updates; None before the first."""
        return self._state

    def add_hook(self, hook: Any, name: str | None = None, timing: str = "auto") -> None:
        """Register a hook, called with the rule and the parameter.

        Args:
            hook: The hook.
            name: Its name, by default its attribute ``name``.
            timing: ``pre`` or ``post`` the update, or ``auto``: as the hook says.
        """
        self._hooks.add_hook(hook, name, timing)

    def remove_hook(self, name: str) -> None:
        """Take a hook away."""
        self._hooks.remove_hook(name)

    def update(self, param: Parameter) -> None:
        """Update a parameter, if the rule is enabled."""
        if not self.enabled:
            return
        self.t += 1
        target, initialised = param, param.array is not None
        wide = self._use_fp32_update and _dtype_or_none(param) == np.float16
        if wide:
            target = self._widened(param)
        if initialised:
            self._init_states(target)
            if param._loss_scale is not None and target.grad is not None:
                # (The quotient of an array without axes is a number of NumPy.)
                target.grad = np.asarray(target.grad / param._loss_scale, target.dtype)
        self._hooks.call_hooks("pre", (self, target))
        self.update_core(target)
        self._hooks.call_hooks("post", (self, target))
        if wide:
            if initialised:
                param.array = target.array.astype(param.dtype)
            target.grad = None

    def _widened(self, param: Parameter) -> Parameter:
        if self._fp32_param is None:
            if param.array is not None:
                made = Parameter(param.array.astype(np.float32), name=param.name)
            else:
                made = Parameter(_Never(), name=param.name)
            self._fp32_param = made
        if param.array is not None and param.grad is not None:
            self._fp32_param.grad = param.grad.astype(np.float32)
        return self._fp32_param

    def update_core(self, param: Parameter) -> None:
        """Update a parameter; by default ``update_core_cpu``."""
        self.update_core_cpu(param)

    def update_core_cpu(self, param: Parameter) -> None:
        """Update a parameter that has a gradient, by ``step``."""
        grad = param.grad
        if grad is None:
            return
        job = self.job(param, grad) if self._is_plain else None
        if job is None:
            self.step(param, grad)
        else:
            UPDATES.run([job])

    def update_core_gpu(self, param: Parameter) -> None:
        """Refuse: there is no GPU.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError("update_core_gpu: hagane computes on the CPU")

    def update_core_chainerx(self, param: Parameter) -> None:
        """Refuse: there is no ChainerX.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError("update_core_chainerx: hagane computes on NumPy's arrays")

    def begin(self, param: Parameter) -> Pass | None:
        """Begin an update that is done together with those of other parameters.

        Returns:
            None if it has to be done alone, by ``update``; nothing was begun then.
        """
        if not self._is_plain or not self.enabled or self._use_fp32_update or self._hooks:
            return None
        grad = param._grad
        if grad is None or param._array is None or param._loss_scale is not None:
            return None
        if self._state is None:
            self._init_states(param)
        self.t += 1
        if self.job(param, grad) is None:
            self.t -= 1
            return None
        return self._pass

    def job(self, param: Any, grad: Any) -> bytearray | None:
        """Return the update as C reads it, None if Python has to do it."""
        found = self.one_pass(param) if UPDATES.is_there() else None
        if found is None:
            return None
        name, arrays, numbers = found
        if self._pass is None or not self._pass.is_for(arrays):
            self._pass = Pass.of(name, arrays)
        return None if self._pass is None else self._pass.job(grad, numbers)

    def one_pass(self, param: Any) -> OnePass | None:
        """Return the update as one pass over its arrays, None if it is none.

        Stands beside ``step`` in a class, and gives the same.
        """
        return None

    def step(self, param: Parameter, grad: Any) -> None:
        """Update the array of a parameter in place from its gradient."""
        raise NotImplementedError(f"{type(self).__name__} defines no update")

    def init_state(self, param: Any) -> None:
        """Fill ``state`` for a parameter."""

    def _init_states(self, param: Any) -> None:
        if self._state is None:
            self._state = {}
            self.init_state(param)

    def serialize(self, serializer: Any) -> None:
        """Read or write the state."""
        self.t = serializer("t", self.t)
        if self._state is not None:
            for key in self._state:
                self._state[key] = serializer(key, self._state[key])
            return
        if not isinstance(serializer, Deserializer):
            return
        # A parameter of one element shows which states there are.
        self._state = {}
        trial = copy.copy(self)
        array = np.empty(1, dtype=np.float32)
        trial.init_state(Variable(array, grad=array))
        found = {}
        for key in self._state:
            try:
                found[key] = serializer(key, None)
            except KeyError:
                if self.enabled:
                    raise
                found[key] = None
        self._state = None if any(value is None for value in found.values()) else found

    def use_fp32_update(self, flag: bool = True) -> None:
        """Keep and update float16 parameters in float32."""
        self._use_fp32_update = flag


def update_all(params: Iterable[Parameter]) -> None:
    """Update parameters, as many as can be in one call."""
    passes: list[Pass] = []
    for param in params:
        rule = param.update_rule
        found = None
        if isinstance(rule, UpdateRule) and type(param).update is Parameter.update:
            found = rule.begin(param)
        if found is None:
            param.update()
        else:
            passes.append(found)
    if not passes:
        return
    starts = {each.start for each in passes}
    if len(starts) == len(passes) and starts.isdisjoint([each.read for each in passes]):
        UPDATES.run([each.bytes for each in passes])
    else:  # one after the other, where a parameter is there twice or is another's gradient
        for each in passes:
            UPDATES.run([each.bytes])


class _Never:
    dtype = np.float32

    def __call__(self, array: Any) -> None:
        """Never called: the array is set from another."""
        raise AssertionError("an array that stands for another is not initialised")


def _dtype_or_none(param: Parameter) -> Any:
    try:
        return param.dtype
    except RuntimeError:
        return None
