"""Variables that optimizers update."""

from __future__ import annotations

import copy
from typing import Any
from weakref import ref

import numpy as np

from hagane.nn.autograd.devices import cpu
from hagane.nn.autograd.variable import Variable
from hagane.nn.initializers.constant import Constant, NaN, Zero
from hagane.nn.initializers.initializer import generate_array


class Parameter(Variable):
    """A variable that a link registers when it is assigned inside ``init_scope``.

    Args:
        initializer: The content of the array: an initializer, a number, or the array itself; NaN if
            None.
        shape: The sizes, a number for one axis. None leaves the array to ``initialize``.
        name: The parameter's name.

    Attributes:
        initializer: The filler of the array.
        update_rule: How an optimizer updates it; None before ``Optimizer.setup``.
    """

    initializer: Any = None
    _grad_initializer: Any = None
    # Its copies, and it among them: ``link.copy`` shares arrays that are yet to come.
    _copies: list[ref[Parameter]] | None = None

    def __init__(
        self,
        initializer: Any = None,
        shape: Any = None,
        name: str | None = None,
        *,
        layout: Any = None,
    ):
        if initializer is None:
            initializer = NaN()
        elif np.isscalar(initializer):
            initializer = Constant(initializer)
        if shape is None and isinstance(initializer, np.ndarray):
            super().__init__(initializer, name=name)
        elif shape is None:
            super().__init__(name=name, grad_valid=False)
            self._grad_initializer = NaN(getattr(initializer, "dtype", None))
        else:
            if isinstance(initializer, np.ndarray):
                initializer = Constant(initializer)
            data = generate_array(initializer, shape, np)
            super().__init__(data, name=name, grad=np.full_like(data, np.nan))
        self.update_rule: Any = None
        self.initializer = initializer

    def __copy__(self) -> Parameter:
        if self._copies is None:
            self._copies = [ref(self)]
        made: Parameter = self._copy_to(Parameter())
        self._copies.append(ref(made))
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        rebuild, state = self.__reduce__()
        made: Parameter = rebuild(*copy.deepcopy(state, memo))
        memo[id(self)] = made
        return made

    def __reduce__(self) -> Any:
        state = (self._array, self.name, self._grad, self._grad_valid)
        return _recover, (*state, self.initializer, self.update_rule, None)

    @property
    def is_initialized(self) -> bool:
        """Whether there is an array."""
        return self._array is not None

    @property
    def dtype(self) -> Any:
        """The element type, of the initializer where there is no array yet.

        Raises:
            RuntimeError: Neither names one.
        """
        if self._array is not None:
            return self._array.dtype
        if getattr(self.initializer, "dtype", None) is not None or hasattr(
            self.initializer, "dtype"
        ):
            return np.dtype(self.initializer.dtype)
        raise RuntimeError(
            "the parameter has no dtype yet: it is not initialized, and its initializer names none"
        )

    def cleargrad(self) -> None:
        """Drop the gradient, that of an array to come too."""
        super().cleargrad()
        if not self.is_initialized:
            self._grad_initializer = None

    def zerograd(self) -> None:
        """Set the gradient to zeros, that of an array to come too."""
        super().zerograd()
        if not self.is_initialized:
            self._grad_initializer = Zero(getattr(self.initializer, "dtype", None))

    def initialize(self, shape: Any) -> None:
        """Make the array.

        Args:
            shape: Its sizes.
        """
        data = generate_array(self.initializer, shape, np, device=cpu)
        grad = None
        if self._grad_initializer is not None:
            grad = generate_array(self._grad_initializer, shape, np, device=cpu)
        self.array = data
        for each in self._copies or ():
            other = each()
            if other is not None:
                other.array = data
        self.grad = grad

    def update(self) -> None:
        """Update the array by the rule of its optimizer, if it has one."""
        if self.update_rule is not None:
            self.update_rule.update(self)


def _recover(
    data: Any, name: Any, grad: Any, grad_valid: bool, initializer: Any, rule: Any, device: Any
) -> Parameter:
    made = Parameter(initializer=initializer, name=name)
    made.array = data
    made._grad = grad
    made._grad_valid = grad_valid
    made.update_rule = rule
    return made
