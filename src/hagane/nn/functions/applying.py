"""How functions of the library take variables, arrays, and values of any interpreter."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

import hagane.nn.autograd.tape  # noqa: F401  operators take variables from then on
from hagane.errors import KernelError, OutOfRange, TypeInferenceError
from hagane.nn.autograd import type_check
from hagane.nn.autograd.application import CURRENT, Application, nodes_of
from hagane.nn.autograd.configuration import read
from hagane.nn.autograd.debugging import at_place
from hagane.nn.autograd.invalid_type import InvalidType
from hagane.nn.autograd.labels import ARITHMETIC
from hagane.nn.autograd.variable import Variable
from hagane.ops.builder import dtype_of, op
from hagane.ops.builder import shape_of as shape_of_any
from hagane.ops.values import array_dtype

_Function = TypeVar("_Function", bound=Callable[..., Any])


def lift(x: Any) -> Any:
    """Return an array as a variable to which no gradient flows; other values as they are."""
    if isinstance(x, np.ndarray):
        return Variable.make(x, False)
    if isinstance(x, np.generic):
        return Variable.make(np.asarray(x), False)
    return x


def function(
    *tensors: str, composed: bool = False, name: str | None = None
) -> Callable[[_Function], _Function]:
    """Let a function over the builder take variables and arrays, and name it in errors and labels.

    Args:
        tensors: The parameters that are tensors; with a star, all that are left, or a sequence. One
            with a colon is an operand as programs see it, and comes as it is given.
        composed: Whether hooks and drawings see the functions that it calls, and not itself.
        name: What it is called there, by default its own name.
    """

    def decorate(define: _Function) -> _Function:
        parameters = list(inspect.signature(define).parameters)
        names = {name for name in tensors if name[0] not in "*:"}
        beside = {place for place, name in enumerate(parameters) if f":{name}" in tensors}
        rows = {name[1:] for name in tensors if name.startswith("*")}
        places = [
            (place, lift if name in names else _lifted)
            for place, name in enumerate(parameters)
            if name in names or name in rows
        ]
        called = name or define.__name__
        arithmetic = called in ARITHMETIC
        variadic = (
            bool(rows)
            and inspect.signature(define).parameters[next(iter(rows))].kind
            is inspect.Parameter.VAR_POSITIONAL
        )

        @functools.wraps(define)
        def applied(*args: Any, **kwargs: Any) -> Any:
            if variadic:
                given: Any = [lift(x) for x in args]
            else:
                given = args
                for place, convert in places:
                    if place < len(args) and not isinstance(args[place], Variable):
                        if given is args:
                            given = list(args)
                        given[place] = convert(args[place])
            if kwargs:
                for key, item in kwargs.items():
                    if key in names:
                        kwargs[key] = lift(item)
                    elif key in rows:
                        kwargs[key] = _lifted(item)
            if composed or CURRENT.get() is not None:
                return define(*given, **kwargs)
            application = Application(called)
            if beside:
                given_nodes = nodes_of([_shown(x, i in beside) for i, x in enumerate(given)])
            elif arithmetic:
                given_nodes, application.number = _of_arithmetic(given)
            elif rows:
                given_nodes = nodes_of(given)
            else:
                given_nodes = [x._node for x in given if isinstance(x, Variable)]
            if kwargs:
                given_nodes = [*given_nodes, *nodes_of(tuple(kwargs.values()))]
            application.given = given_nodes
            token = CURRENT.set(application)
            try:
                y = define(*given, **kwargs)
                application.finish(y)
                return y
            except InvalidType:
                raise
            except TypeInferenceError as error:
                raise type_check.refuse(called, "operands that fit", str(error)) from None
            except KernelError as error:
                if isinstance(error.__cause__, IndexError | ValueError):
                    error.add_note(f"in {called}")
                raise
            finally:
                CURRENT.reset(token)

        return applied  # type: ignore[return-value]

    return decorate


def _shown(x: Any, is_operand: bool) -> Any:
    """Return an array that is an operand as a variable; other values as they are."""
    if not is_operand or x is None or isinstance(x, Variable):
        return x
    shown = Variable.make(np.asarray(x), False)
    shown._node.data = shown._array
    return shown


def _of_arithmetic(operands: Sequence[Any]) -> tuple[list[Any], Any]:
    """Return the nodes of the operands of arithmetic, and the number beside a single one."""
    nodes, number = [], None
    for x in operands:
        if isinstance(x, Variable):
            nodes.append(x._node)
        elif isinstance(x, np.ndarray):
            nodes.append(_shown(x, True)._node)
        elif isinstance(x, int | float | np.generic):
            number = x
    return nodes, number if len(nodes) == 1 else None


def _lifted(xs: Any) -> Any:
    if isinstance(xs, np.ndarray):
        return [lift(x) for x in xs]
    return [lift(x) for x in xs] if isinstance(xs, list | tuple) else xs


def noted(y: Any, /, **notes: Callable[[], Any]) -> Any:
    """Return a result; programs find notes of how it was made in the function that made it.

    Args:
        y: A variable; values of other interpreters have no notes.
        notes: Functions that return a note, called each time that a program asks for it.
    """
    if isinstance(y, Variable) and y._node._creator_node is not None:
        y._node._creator_node.notes = notes
    return y


def shape_of(x: Any) -> Any:
    """Return the sizes of a value: numbers where it is a variable, else formulas too."""
    return x.array.shape if isinstance(x, Variable) else shape_of_any(x)


def require(
    where: str,
    name: str,
    x: Any,
    *,
    kind: str | None = None,
    ndim: int | None = None,
    at_least: int | None = None,
    shape: Sequence[Any] | None = None,
    dtype_as: tuple[str, Any] | None = None,
    shape_as: tuple[str, Any] | None = None,
) -> None:
    """Check the type of an argument.

    Args:
        where: The function.
        name: The argument.
        x: Its value; one without known sizes is left to the type rules of operators.
        kind: Letters of ``numpy.dtype.kind`` that are taken.
        ndim: The number of axes.
        at_least: The least number of axes.
        shape: Sizes, None where any size will do.
        dtype_as: Name and value of an argument of the same element type.
        shape_as: Name and value of an argument of the same sizes.

    Raises:
        InvalidType: It does not fit.
    """
    if not isinstance(x, Variable) or not read("type_check"):
        if x is None or isinstance(x, int | float | str | list | tuple):
            raise type_check.refuse(where, f"{name} to be an array or a Variable", f"{type(x)}")
        return
    found, sizes = x.dtype, x.shape
    if kind is not None and found.kind not in kind:
        raise type_check.refuse(where, f"{name}.dtype.kind in '{kind}'", f"{name}.dtype == {found}")
    if ndim is not None and len(sizes) != ndim:
        raise type_check.refuse(where, f"{name}.ndim == {ndim}", f"{name}.shape == {sizes}")
    if at_least is not None and len(sizes) < at_least:
        raise type_check.refuse(where, f"{name}.ndim >= {at_least}", f"{name}.shape == {sizes}")
    if shape is not None and (
        len(shape) != len(sizes)
        or any(a is not None and a != b for a, b in zip(shape, sizes, strict=True))
    ):
        text = ", ".join("…" if size is None else str(size) for size in shape)
        text += "," if len(shape) == 1 else ""
        raise type_check.refuse(where, f"{name}.shape == ({text})", f"{name}.shape == {sizes}")
    if dtype_as is not None and isinstance(dtype_as[1], Variable) and found != dtype_as[1].dtype:
        raise type_check.refuse(
            where,
            f"{name}.dtype == {dtype_as[0]}.dtype",
            f"{found} != {dtype_as[1].dtype}; convert one of them by astype or "
            "hagane.functions.cast",
        )
    if shape_as is not None and isinstance(shape_as[1], Variable) and sizes != shape_as[1].shape:
        raise type_check.refuse(
            where, f"{name}.shape == {shape_as[0]}.shape", f"{sizes} != {shape_as[1].shape}"
        )


def constant_like(value: Any, x: Any) -> Any:
    """Return a number or array as a constant of a value's element type."""
    dtype = x.array.dtype if isinstance(x, Variable) else dtype_of(x).numpy()
    return np.asarray(value, dtype=dtype)


def as_dtype_of(x: Any, parameter: Any) -> Any:
    """Return a parameter in the element type of an input, where both are variables."""
    if not (isinstance(x, Variable) and isinstance(parameter, Variable)):
        return parameter
    if x.dtype == parameter.dtype:
        return parameter
    return op("Cast", parameter, to=array_dtype(x.array))


def promoted(where: str, a: Any, b: Any) -> tuple[Any, Any]:
    """Return two operands in the wider of their floating-point types, as NumPy promotes them.

    Raises:
        InvalidType: One of them holds no floating-point numbers.
    """
    require(where, "a", a, kind="f")
    require(where, "b", b, kind="f")
    if not (isinstance(a, Variable) and isinstance(b, Variable)) or a.dtype == b.dtype:
        return a, b
    wider = a if np.result_type(a.dtype, b.dtype) == a.dtype else b
    return as_dtype_of(wider, a), as_dtype_of(wider, b)


def array_of(x: Any) -> Any:
    """Return the array of a variable; an array as it is."""
    return x.array if isinstance(x, Variable) else np.asarray(x)


def check_indices(where: str, name: str, indices: Any, bound: int) -> None:
    """Refuse integers that are not from 0 to a bound, which is not among them.

    Raises:
        OutOfRange: One is not.
    """
    wrong = (indices < 0) | (indices >= bound)
    if wrong.any():
        raise OutOfRange(
            f"{where}: expected 0 <= {name} < {bound}, got {indices[wrong].flat[0]}{at_place()}"
        )


# Arguments that programs of earlier versions give, and what says the same today.
REMOVED = {
    "train": "use using_config('train', …)",
    "test": "use using_config('train', …)",
    "volatile": "use using_config('enable_backprop', …)",
    "deterministic": "use using_config('deterministic', …)",
    "use_cudnn": "leave it out, as kernels are the engine's",
    "use_bi_direction": "use the link of both directions, as NStepBiLSTM",
    "activation": "use the link of that activation, as NStepRNNReLU",
    "wscale": "use conv_init, an initializer with that scale",
}


def pop_options(
    where: str, options: dict[str, Any], removed: Sequence[str] = ("train",), **defaults: Any
) -> tuple[Any, ...]:
    """Return named options that a function takes beside its parameters.

    Args:
        where: The function, for messages.
        options: Those that were given; what is known is taken out.
        removed: Arguments that it once had, of ``REMOVED``.
        defaults: The options that it has.

    Raises:
        ValueError: It once had one of them.
        TypeError: There is an unknown one.
    """
    found = tuple(options.pop(name, default) for name, default in defaults.items())
    for name in removed:
        if name in options:
            raise ValueError(
                f"{where}: {name} argument is not supported anymore; {REMOVED[name]} instead"
            )
    if options:
        raise TypeError(
            f"{where}() got unexpected keyword argument(s) {', '.join(map(repr, options))}"
        )
    return found
