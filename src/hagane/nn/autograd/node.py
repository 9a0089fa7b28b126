"""The place of a variable in a recorded computation."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from hagane.nn.autograd.variable import Variable


def creator_of(node: VariableNode) -> Any:
    """Return the function that made a node's variable, as programs see it; None for a leaf."""
    maker = node._creator_node
    if maker is None or maker.application is None:
        return maker
    from hagane.nn.autograd.applied import applied

    return applied(maker)


class VariableNode:
    """A recorded computation's notes of a variable: type, creator, and the array if asked.

    Variables hold their node and not the other way round, so that arrays that no gradient needs are
    freed as soon as the program drops them.

    Attributes:
        dtype: The element type.
        shape: The sizes.
        name: The variable's name.
        data: The array if it is retained, else None.
        released: Whether ``unchain_backward`` let go of the function that made the variable.
    """

    __slots__ = (
        "__weakref__",
        "_creator_node",
        "_old_style_grad_generator",
        "_rank",
        "_requires_grad",
        "_variable",
        "data",
        "dtype",
        "name",
        "released",
        "shape",
    )

    def __init__(
        self, variable: Variable, name: str | None, requires_grad: bool = True, **options: Any
    ):
        if options:
            raise ValueError(
                f"VariableNode: unknown arguments {', '.join(map(repr, options))}; a gradient is "
                "the variable's"
            )
        self._variable: Any = weakref.ref(variable)
        self.name = name
        self._requires_grad = requires_grad
        self._creator_node: Any = None
        self._old_style_grad_generator: str | None = None
        self._rank = 0
        self.data: Any = None
        self.released = False
        array = variable._array
        if array is None:
            self.dtype: Any = None
            self.shape: Any = None
        else:
            self.dtype = array.dtype
            self.shape = array.shape

    def update_type(self, array: Any) -> None:
        """Take the type of an array, and the array itself where it is retained."""
        if array is None:
            self.dtype = self.shape = None
        else:
            self.dtype = array.dtype
            self.shape = array.shape
        if self.data is not None:
            self.data = array

    @property
    def creator_node(self) -> Any:
        """The function node that made the variable, None for a leaf."""
        return creator_of(self)

    @creator_node.setter
    def creator_node(self, function: Any) -> None:
        function = getattr(function, "_recorded", function)
        self._creator_node = function
        if function is not None:
            self._rank = function._depth + 1

    @property
    def creator(self) -> Any:
        """The function that made the variable; an old-style one itself, not its node."""
        function = creator_of(self)
        return getattr(function, "function", function) if function is not None else None

    @creator.setter
    def creator(self, function: Any) -> None:
        self.creator_node = getattr(function, "node", function)

    def set_creator(self, creator: Any) -> None:
        """Set the function, old-style or not, that made the variable."""
        self.creator = creator

    def set_creator_node(self, creator_node: Any) -> None:
        """Set the function node that made the variable."""
        self.creator_node = creator_node

    @property
    def grad(self) -> Any:
        """The gradient's array if the variable lives, else None."""
        variable = self._variable()
        return None if variable is None else variable.grad

    @property
    def grad_var(self) -> Any:
        """The gradient if the variable lives, else None."""
        variable = self._variable()
        return None if variable is None else variable.grad_var

    def set_grad_if_alive(self, gradient: Variable | None) -> None:
        """Set the gradient of the variable, if that lives."""
        variable = self._variable()
        if variable is not None:
            variable.set_grad_unchecked(gradient)

    @property
    def label(self) -> str:
        """Sizes and element type."""
        if self.shape is None:
            text = "(), None"
        else:
            text = f"({', '.join(map(str, self.shape))}), {np.dtype(self.dtype)}"
            if len(self.shape) == 0:
                text = str(np.dtype(self.dtype))
        return text

    @property
    def rank(self) -> int:
        """The number of functions on the longest way from a leaf."""
        maker = creator_of(self)
        return self._rank if maker is None else maker.rank + 1

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to this variable."""
        return self._requires_grad

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def get_variable(self) -> Variable:
        """Return the variable; a new one on the retained array where it is gone."""
        from hagane.nn.autograd.variable import Variable

        variable = self._variable()
        if variable is not None:
            return variable
        variable = Variable.make(self.data, requires_grad=self._requires_grad, name=self.name)
        variable.set_node(self)
        self._variable = weakref.ref(variable)
        return variable

    def get_variable_or_none(self) -> Variable | None:
        """Return the variable, None where it is gone."""
        return self._variable()

    def unchain(self) -> None:
        """Forget the function that made the variable."""
        self.creator_node = None

    def retain_data(self) -> None:
        """Keep the array for a later gradient.

        Raises:
            RuntimeError: The variable is gone.
        """
        variable = self._variable()
        if variable is None:
            raise RuntimeError(
                "cannot retain variable data: the variable has been already released"
            )
        self.data = variable.array

    def check_old_style_gradient(self) -> None:
        """Refuse a derivative of an old-style function's gradient.

        Raises:
            RuntimeError: The gradient came from an old-style function.
        """
        if self._old_style_grad_generator is not None:
            raise RuntimeError(
                "cannot twice-differentiate an old style Function "
                f'"{self._old_style_grad_generator}"; write it as a FunctionNode'
            )


def check_gradient(function: Any, x: Any, gradient: Any) -> None:
    """Check that an array can be the gradient of a variable or node.

    Raises:
        TypeError: It is no array, or has another element type.
        ValueError: It has other sizes.
    """
    dtype, shape = (x.dtype, x.shape) if isinstance(x, VariableNode) else _type_of(x)
    if type(gradient) is np.ndarray and gradient.dtype == dtype and gradient.shape == shape:
        return
    where = "" if function is None else f"\nFunction: {function.label}"
    named = getattr(x, "name", None)
    where += "" if named is None else f"\nVariable: {named}"
    if not isinstance(gradient, np.ndarray):
        raise TypeError(f"expected the gradient to be a numpy.ndarray, got {type(gradient)}{where}")
    if dtype is None or shape is None:
        return
    if gradient.dtype != dtype:
        raise TypeError(
            f"expected the gradient to have the variable's dtype {dtype}, "
            f"got {gradient.dtype}{where}"
        )
    if gradient.shape != shape:
        raise ValueError(
            f"expected the gradient to have the variable's shape {shape}, "
            f"got {gradient.shape}{where}"
        )


def _type_of(x: Any) -> Any:
    array = x.array
    return (None, None) if array is None else (array.dtype, array.shape)
