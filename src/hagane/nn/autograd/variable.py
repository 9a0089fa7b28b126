"""Arrays that remember how they were computed."""

from __future__ import annotations

import copy
import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from hagane.nn.autograd.configuration import config, using_config
from hagane.nn.autograd.devices import cpu, get_device
from hagane.nn.autograd.node import VariableNode, check_gradient
from hagane.nn.autograd.operand import Operand
from hagane.nn.autograd.writing import described, written

if TYPE_CHECKING:
    from hagane.ops.builder import Interpreter


class Variable(Operand):
    """An array with the function that made it, and its gradient.

    Args:
        data: The array, None for none yet.
        name: A name for messages and drawings.
        grad: The gradient's array.
        requires_grad: Whether gradients flow to it.

    Raises:
        TypeError: ``data`` is not an array, or the gradient does not fit.
    """

    __array_priority__ = 200
    _loss_scale: float | None = None
    _has_chainerx_array = False
    # Whether a gradient went through it that was not kept; noted in debug mode.
    grad_dropped = False
    # Whether it is a gradient whose array nobody else reads, so that another may be added in place.
    is_own = False
    # Computes and records operators on variables; ``tape.py`` sets it.
    interpreter: ClassVar[Interpreter]
    _grad: Any = None
    _grad_var: Variable | None = None
    _grad_valid = True

    def __init__(self, data: Any = None, **options: Any):
        name = options.pop("name", None)
        grad = options.pop("grad", None)
        requires_grad = options.pop("requires_grad", True)
        grad_valid = options.pop("grad_valid", True)
        options.pop("layout", None)
        if "volatile" in options:
            raise ValueError(
                "volatile argument is not supported anymore: use using_config('enable_backprop', …)"
            )
        if options:
            raise TypeError(f"Variable: unknown arguments {', '.join(map(repr, options))}")
        if not isinstance(requires_grad, bool | np.bool_):
            raise TypeError(f"Variable: expected requires_grad to be a bool, got {requires_grad!r}")
        if data is not None and not isinstance(data, np.ndarray):
            raise TypeError(
                f"Variable: expected a numpy.ndarray, got {type(data)}; "
                "convert it by numpy.asarray first"
            )
        self._set_up(data, name, bool(requires_grad))
        self._grad_valid = grad_valid
        if grad is not None:
            self.grad = grad

    def _set_up(self, data: Any, name: str | None, requires_grad: bool) -> None:
        self._array = data
        self._requires_grad = requires_grad
        self._node = VariableNode(self, name, requires_grad)

    @classmethod
    def make(cls, data: Any, requires_grad: bool = True, name: str | None = None) -> Variable:
        """Return a variable on an array, without checks."""
        made = _new(Variable)
        made._array = data
        made._requires_grad = requires_grad
        made._node = VariableNode(made, name, requires_grad)
        return made

    @classmethod
    def own(cls, data: Any) -> Variable:
        """Return a gradient on an array of its own."""
        made = cls.make(data)
        made.is_own = True
        return made

    def __copy__(self) -> Variable:
        return self._copy_to(Variable.make(None))

    def _copy_to(self, target: Any) -> Any:
        target.__dict__ = dict(self.__dict__)
        target._node = VariableNode(target, self.name, self._requires_grad)
        return target

    def __reduce__(self) -> Any:
        return _rebuild, (self._array, self.name, self._grad, self._requires_grad)

    def __repr__(self) -> str:
        return written(self, repr)

    def __str__(self) -> str:
        return written(self, str)

    @property
    def device(self) -> Any:
        """Where the array lies."""
        return cpu

    @property
    def xp(self) -> Any:
        """The array module: NumPy."""
        return np

    @property
    def layout(self) -> None:
        """The memory layout of the array: always the standard one."""

    @property
    def name(self) -> str | None:
        """The name."""
        return self._node.name

    @name.setter
    def name(self, name: str | None) -> None:
        self._node.name = name

    def summary(self) -> str:
        """Return ``<variable NAME>``, or its address where it has no name."""
        return f"<variable {self.name or f'at {id(self):#x}'}>"

    def debug_print(self) -> str:
        """Return the type, the place, and mean and deviation of the array and its gradient."""
        return described(self)

    def __pos__(self) -> Variable:
        return self

    def __len__(self) -> int:
        return len(self._array)

    @property
    def label(self) -> str:
        """Sizes and element type."""
        return self._node.label

    @property
    def _named(self) -> str:
        """Sizes and element type, with the name if there is one, for messages."""
        return self.label if self.name is None else f"{self.name}: {self.label}"

    @property
    def creator(self) -> Any:
        """The function that made it; None for a leaf."""
        return self._node.creator

    @creator.setter
    def creator(self, function: Any) -> None:
        self._node.creator = function

    @property
    def creator_node(self) -> Any:
        """The function node that made it; None for a leaf."""
        return self._node.creator_node

    @creator_node.setter
    def creator_node(self, function: Any) -> None:
        self._node.creator_node = function

    def set_creator(self, gen_func: Any) -> None:
        """Set the function that made it."""
        self._node.set_creator(gen_func)

    def set_creator_node(self, fnode: Any) -> None:
        """Set the function node that made it."""
        self._node.set_creator_node(fnode)

    @property
    def array(self) -> Any:
        """The array."""
        return self._array

    @array.setter
    def array(self, array: Any) -> None:
        self._array = array
        self._node.update_type(array)

    @property
    def data(self) -> Any:
        """The array; ``array`` is the better name, which arrays lack."""
        return self.array

    @data.setter
    def data(self, array: Any) -> None:
        self.array = array

    raw_array = array

    @property
    def grad(self) -> Any:
        """The gradient's array, None where there is none.

        Raises:
            RuntimeError: A parameter without an array was neither given one nor cleared; in debug
            mode also a gradient that nobody asked for.
        """
        if not self._grad_valid:
            raise RuntimeError(self._no_gradient("grad"))
        if self._grad is None and config.debug:
            self._check_asked()
        return self._grad if self._grad_var is None else self._grad_var.array

    @grad.setter
    def grad(self, gradient: Any) -> None:
        if gradient is not None:
            check_gradient(None, self, gradient)
        self._grad = gradient
        self._grad_var = None
        self._grad_valid = True
        self.grad_dropped = False

    def _no_gradient(self, attribute: str) -> str:
        """Return why there is neither a gradient nor a note that there is none."""
        text = f"cannot retrieve Variable.{attribute}: either set it or call cleargrad() before"
        if self._array is None:
            text += (
                f"; the parameter {self.name or 'without a name'} has no array yet: call its link "
                "once, or initialize(shape)"
            )
        return text

    def _check_asked(self) -> None:
        if not self._requires_grad:
            raise RuntimeError(
                f"the variable {self._named} has no gradient: it was made with requires_grad=False"
            )
        if self.grad_dropped:
            raise RuntimeError(
                f"the gradient of the intermediate variable {self._named} was not kept: "
                "use backward(retain_grad=True), or hagane.grad"
            )

    @property
    def grad_var(self) -> Variable | None:
        """The gradient as a variable, None where there is none."""
        if not self._grad_valid:
            raise RuntimeError(self._no_gradient("grad_var"))
        if self._grad_var is None and self._grad is not None:
            self._grad_var = Variable(self._grad)
        return self._grad_var

    @grad_var.setter
    def grad_var(self, gradient: Variable | None) -> None:
        if gradient is not None:
            check_gradient(None, self, gradient.array)
        self.set_grad_unchecked(gradient)

    def set_grad_unchecked(self, gradient: Variable | None) -> None:
        """Set the gradient, without checks."""
        self._grad_var = gradient
        self._grad = None if gradient is None else gradient.array
        self._grad_valid = True

    @property
    def shape(self) -> Any:
        """The sizes.

        Raises:
            AttributeError: There is no array yet.
        """
        try:
            return self._array.shape
        except AttributeError:
            raise AttributeError(
                f"{self.name or 'the variable'} has no shape yet: a parameter whose sizes come "
                "with the first input has none before its link was called, or initialize(shape)"
            ) from None

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._array.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._array.size

    @property
    def dtype(self) -> Any:
        """The element type."""
        return self._array.dtype

    @property
    def rank(self) -> int:
        """The number of functions on the longest way from a leaf."""
        return self._node.rank

    @property
    def node(self) -> VariableNode:
        """Its place in the recorded computation."""
        return self._node

    def set_node(self, node: VariableNode) -> None:
        """Take another place in the recorded computation."""
        self._node = node

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to it."""
        return self._requires_grad

    @property
    def T(self) -> Variable:
        """The axes in reverse order."""
        return self.transpose()

    def to_cpu(self) -> None:
        """Do nothing: arrays lie in this machine's memory; ``to_device`` is the newer name."""
        _warn_of_transfer("to_cpu", "@numpy")

    def to_gpu(self, device: Any = None) -> None:
        """Refuse: there is no GPU.

        Raises:
            RuntimeError: Always.
        """
        _warn_of_transfer("to_gpu", "@cupy:0")
        get_device("@cupy:0" if device is None else device)
        raise RuntimeError("to_gpu: hagane computes on the CPU")

    def to_intel64(self) -> None:
        """Do nothing: arrays keep NumPy's layout."""
        _warn_of_transfer("to_intel64", "@intel64")

    def to_chx(self) -> None:
        """Refuse: there is no ChainerX.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError("ChainerX is not available: hagane computes on NumPy's arrays")

    def from_chx(self) -> None:
        """Do nothing: arrays are NumPy's."""

    def to_device(self, device: Any) -> None:
        """Check that a device is the CPU."""
        get_device(device)

    def cleargrad(self) -> None:
        """Drop the gradient."""
        self._grad = self._grad_var = None
        self._grad_valid = True

    def zerograd(self) -> None:
        """Set the gradient to zeros; ``cleargrad`` costs less."""
        warnings.warn(
            "Variable.zerograd is deprecated. Use Variable.cleargrad instead.",
            DeprecationWarning,
            stacklevel=2,
        )
        self._grad_valid = True
        if self._array is None:
            return
        if self._grad is None:
            self._grad, self._grad_var = np.zeros_like(self._array), None
        else:
            if self._grad_var is not None:
                self._grad_var.unchain()
            self._grad.fill(0)

    def copydata(self, var: Variable) -> None:
        """Copy the array of another variable; one without an array is initialised first."""
        if var.array is None:
            if self._array is None:
                return
            var.initialize(self.shape)  # type: ignore[attr-defined]
        elif self._array is None:
            self.initialize(var.shape)  # type: ignore[attr-defined]
        try:
            np.copyto(self._array, var.array)
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"copydata: expected an array that fits {self._named}, got {var.label}"
            ) from error

    def addgrad(self, var: Variable) -> None:
        """Add the gradient of another variable to its own."""
        if var.grad is None:
            return
        if self._array is None:
            self.initialize(var.shape)  # type: ignore[attr-defined]
        source, own = var.grad_var, self.grad_var
        self.grad_var = source if own is None else own + source

    def backward(
        self,
        retain_grad: bool = False,
        enable_double_backprop: bool = False,
        loss_scale: float | None = None,
    ) -> None:
        """Compute the gradients of all variables that it was computed from.

        Args:
            retain_grad: Whether intermediate variables keep their gradients.
            enable_double_backprop: Whether the gradients can be differentiated again.
            loss_scale: Gradients are computed so many times too large; optimizers undo it.
        """
        from hagane.nn.autograd.backprop import backprop_to_all

        if self._array.size == 1 and self.grad_var is None:
            if self._array.ndim != 0:
                warnings.warn(
                    "Treating a variable with only one element as a scalar in Variable.backward "
                    "is deprecated. A scalar has no axes: squeeze it first.",
                    DeprecationWarning,
                    stacklevel=2,
                )
            self.grad = np.ones_like(self._array)
            if loss_scale is not None:
                self.grad *= loss_scale
        if self._node.released and self._node._creator_node is None:
            raise RuntimeError(
                f"backward: the functions that computed the variable {self._named} were released "
                "by unchain_backward; compute the variable anew"
            )
        gradient = self.grad_var
        if gradient is None and not self._requires_grad:
            return
        if gradient is None and self._node._creator_node is not None:
            raise RuntimeError(
                f"backward: expected a scalar or a variable whose grad is set, got {self._named}; "
                "take functions.mean or functions.sum of it first"
            )
        self.grad_var = None
        with using_config("enable_backprop", enable_double_backprop):
            backprop_to_all([(self._node, gradient)], retain_grad, loss_scale)

    def item(self) -> Any:
        """Return the one element as a number of Python."""
        return self._array.item()

    def unchain(self) -> None:
        """Forget the function that made it."""
        self.creator_node = None

    def unchain_backward(self) -> None:
        """Forget all functions that it was computed by, to cut the recorded computation here."""
        pending, seen = [self._node._creator_node], set()
        while pending:
            function = pending.pop()
            if function is None or function in seen:
                continue
            seen.add(function)
            pending += [node._creator_node for node in function.inputs or ()]
            function.unchain()

    def retain_data(self) -> None:
        """Keep the array in the recorded computation."""
        self._node.data = self._array


_new = object.__new__


def _warn_of_transfer(name: str, device: str) -> None:
    warnings.warn(
        f"{name} is deprecated. Use to_device('{device}') instead.",
        DeprecationWarning,
        stacklevel=3,
    )


def _rebuild(array: Any, name: str | None, grad: Any, requires_grad: bool) -> Variable:
    return Variable(array, name=name, grad=grad, requires_grad=requires_grad)


def as_variable(obj: Any) -> Variable:
    """Return a variable as it is, and an array as one to which no gradient flows."""
    if isinstance(obj, Variable):
        return obj
    return Variable(obj, requires_grad=False)


def as_array(obj: Any) -> Any:
    """Return the array of a variable; an array as it is."""
    return obj.array if isinstance(obj, Variable) else obj


def copied(variable: Variable) -> Variable:
    """Return a shallow copy with a place of its own."""
    return copy.copy(variable)
