"""Gradients against central differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hagane.nn.autograd.backprop import backward
from hagane.nn.autograd.configuration import using_config
from hagane.nn.autograd.derivatives import grad
from hagane.nn.autograd.variable import Variable, as_variable


class NondifferentiableError(Exception):
    """A function that has no derivative at the point where it is checked."""


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, tuple | list) else (x,)


def _arrays(values: Any) -> tuple[Any, ...]:
    return tuple(y.array if isinstance(y, Variable) else y for y in _as_tuple(values))


def numerical_grad(
    f: Callable[[], Any],
    inputs: Sequence[Any],
    grad_outputs: Sequence[Any],
    eps: float = 1e-3,
    detect_nondifferentiable: bool = False,
    diff_atol: float = 0,
    diff_rtol: float = 1e-2,
    center_outputs: Any = None,
) -> tuple[Any, ...]:
    """Return gradients by central differences.

    Args:
        f: Takes nothing, and returns the outputs for the present content of the inputs.
        inputs: Arrays, which are changed in place and restored.
        grad_outputs: The gradients of the outputs, None where one does not count.
        eps: How far elements are moved.
        detect_nondifferentiable: Whether a point without a derivative is an error.
        diff_atol: How much the slopes of both sides may differ.
        diff_rtol: The same, in relation to them.
        center_outputs: The outputs, if they are known.

    Raises:
        NondifferentiableError: The slopes of both sides differ.
    """
    if not eps > 0:
        raise AssertionError(f"numerical_grad: expected eps to be positive, got {eps}")
    inputs, grad_outputs = tuple(inputs), tuple(grad_outputs)
    found = tuple(np.zeros(x.shape, x.dtype) for x in inputs)
    if any(x.dtype.kind != "f" for x in inputs):
        raise TypeError("numerical_grad: expected inputs of floating-point numbers")

    def outputs() -> tuple[Any, ...]:
        # Inputs may be of a wider element type than parameters.
        with using_config("type_check", False):
            return tuple(None if y is None else np.array(y) for y in _as_tuple(f()))

    centre = outputs() if detect_nondifferentiable else None
    for x, gx in zip(inputs, found, strict=True):
        for index in np.ndindex(x.shape):
            kept = x[index]
            x[index] = kept + eps
            above = outputs()
            x[index] = kept - eps
            below = outputs()
            x[index] = kept
            total = 0.0
            for i, gy in enumerate(grad_outputs):
                if gy is None or above[i] is None:
                    continue
                up, down = above[i].astype(np.float64), below[i].astype(np.float64)
                total += float((gy * (up - down)).sum()) / (2 * eps)
                if centre is not None and centre[i].dtype.kind == "f":
                    _check_smooth(centre[i], up, down, eps, diff_atol, diff_rtol, index)
            gx[index] = total
    return found


def _check_smooth(
    centre: Any, up: Any, down: Any, eps: float, atol: float, rtol: float, index: Any
) -> None:
    right, left = (up - centre) / eps, (centre - down) / eps
    bound = np.maximum(np.abs(right), np.abs(left)) * rtol + max(atol, 10 * eps)
    if (np.isfinite(right) != np.isfinite(left)).any() or (np.abs(right - left) > bound).any():
        raise NondifferentiableError(
            f"Function is non-differentiable: at element {index} the slopes of both sides are "
            f"{left.ravel()} and {right.ravel()}"
        )


def assert_allclose(
    x: Any, y: Any, atol: float = 1e-5, rtol: float = 1e-4, verbose: bool = True
) -> None:
    """Check that arrays agree."""
    found, wanted = _arrays((x, y))
    np.testing.assert_allclose(found, wanted, atol=atol, rtol=rtol, verbose=verbose)


def check_backward(
    func: Callable[..., Any],
    x_data: Any,
    y_grad: Any,
    params: Any = (),
    eps: float = 1e-3,
    atol: float = 1e-5,
    rtol: float = 1e-4,
    no_grads: Any = None,
    dtype: Any = None,
    detect_nondifferentiable: bool = False,
) -> None:
    """Check gradients along a random direction against central differences.

    Args:
        func: From variables to a variable or a tuple of them.
        x_data: The arrays of its inputs.
        y_grad: The gradients of its outputs; None for one scalar output.
        params: Parameters that it uses too.
        eps: How far the inputs are moved.
        atol: How much both may differ.
        rtol: The same, in relation to them.
        no_grads: The inputs without gradient, by default the integer ones.
        dtype: The element type in which differences are computed.
        detect_nondifferentiable: Whether a point without a derivative is an error.

    Raises:
        AssertionError: They differ, or an input has a gradient that should have none.
        NondifferentiableError: There is no derivative at the point.
    """
    arrays, params = _as_tuple(x_data), _as_tuple(params)
    if dtype is not None and np.dtype(dtype).kind != "f":
        raise ValueError("`dtype` is allowed only float type")
    skipped = (
        [x is None or x.dtype.kind != "f" for x in arrays] if no_grads is None else list(no_grads)
    )
    if len(skipped) != len(arrays):
        raise ValueError("Length of no_grads param and xs should be same.")
    # As they lie in memory: functions may treat arrays with gaps otherwise.
    xs = [None if x is None else Variable(x) for x in arrays]
    for parameter in params:
        parameter.cleargrad()
    ys = _as_tuple(func(*xs))
    kept: list[Any] = [None if x is None else x.array.copy() for x in xs]
    grads = _check_outputs(ys, y_grad)
    pairs = [(y, gy) for y, gy in zip(ys, grads, strict=True) if gy is not None]
    backward([y for y, _ in pairs], [as_variable(gy) for _, gy in pairs])
    for i, (x, before) in enumerate(zip(xs, kept, strict=True)):
        if x is not None and not np.array_equal(x.array, before, equal_nan=x.dtype.kind == "f"):
            raise AssertionError(f"forward changed its input {i} in place")
    targets: list[Any] = []
    for i, (x, skip) in enumerate(zip(xs, skipped, strict=True)):
        if skip:
            if x is not None and x.grad is not None:
                raise RuntimeError(f"gradient of int variable must be None: input {i}")
        elif x is None:
            raise RuntimeError(f"gradients of some arguments are not calculated: input {i}")
        else:
            targets.append(x)
    targets += list(params)
    if not targets:
        raise RuntimeError("check_backward: there is nothing to differentiate by")
    _compare(func, xs, targets, grads, eps, atol, rtol, dtype, detect_nondifferentiable)


def _check_outputs(ys: tuple[Any, ...], y_grad: Any) -> tuple[Any, ...]:
    if y_grad is None:
        if len(ys) != 1:
            raise ValueError(
                "Can not compute multi-output derivatives if `y_grad` is None: "
                "function to check should return only one output"
            )
        return (np.ones_like(ys[0].array),)
    grads = _as_tuple(y_grad)
    if len(grads) != len(ys):
        raise ValueError(
            f"`y_grad` should have the same length of output values: {len(grads)} and {len(ys)}"
        )
    return tuple(g.array if isinstance(g, Variable) else g for g in grads)


def _compare(
    func: Any,
    xs: list[Any],
    targets: list[Any],
    grads: tuple[Any, ...],
    eps: float,
    atol: float,
    rtol: float,
    dtype: Any,
    detect: bool,
) -> None:
    drawn = [np.random.normal(size=x.shape) for x in targets]
    norm = np.sqrt(sum(float((d * d).sum()) for d in drawn)) or 1.0
    directions = [d / norm for d in drawn]
    # A direction along which nothing changes much would check nothing.
    analytic = 0.0
    for x, direction in zip(targets, directions, strict=True):
        # None stands for zero: differences tell whether it is.
        if x.grad is None:
            continue
        analytic += float((x.grad.astype(np.float64) * direction).sum())
    wide = np.float64 if dtype is None else dtype
    places = [x.array for x in targets]
    originals = [x.array if x is not None else None for x in xs]
    delta = np.zeros((), np.float64)

    def moved() -> tuple[Any, ...]:
        by_id = {id(x): (a, d) for x, a, d in zip(targets, places, directions, strict=True)}
        given: list[Any] = []
        for x, original in zip(xs, originals, strict=True):
            if x is None:
                given.append(None)
                continue
            array, direction = by_id.get(id(x), (original, None))
            if array.dtype.kind == "f" and dtype is not None:
                array = array.astype(wide)
            if direction is not None:
                array = np.asarray(array + delta * direction, dtype=array.dtype)
            given.append(Variable(array, requires_grad=False))
        for x in targets:
            if id(x) in {id(one) for one in xs}:
                continue
            array, direction = by_id[id(x)]
            kind = wide if dtype is not None else array.dtype
            x.array = np.asarray(array.astype(kind) + delta * direction, dtype=kind)
        try:
            return _arrays(func(*given))
        finally:
            for x, array in zip(targets, places, strict=True):
                x.array = array

    (numeric,) = numerical_grad(moved, (delta,), grads, eps=eps, detect_nondifferentiable=detect)
    if not np.allclose(float(numeric), analytic, atol=atol, rtol=rtol):
        lines = [
            "check_backward failed",
            f"numeric: {float(numeric)}",
            f"backward: {analytic}",
            f"absolute difference: {abs(float(numeric) - analytic)} (atol {atol}, rtol {rtol})",
            f"eps: {eps}",
        ]
        raise AssertionError("\n".join(lines))


def check_double_backward(
    func: Callable[..., Any],
    x_data: Any,
    y_grad: Any,
    x_grad_grad: Any,
    params: Any = (),
    params_grad_grad: Any = (),
    eps: float = 1e-3,
    atol: float = 1e-4,
    rtol: float = 1e-3,
    no_grads: Any = None,
    dtype: Any = None,
    detect_nondifferentiable: bool = False,
) -> None:
    """Check second derivatives: ``check_backward`` of the gradient, by inputs and gradients.

    Args:
        func: From variables to a variable or a tuple of them.
        x_data: The arrays of its inputs.
        y_grad: The gradients of its outputs.
        x_grad_grad: The gradients of the gradients of its inputs.
        params: Parameters that it uses too.
        params_grad_grad: The gradients of their gradients.
        eps: As for ``check_backward``.
        atol: As there.
        rtol: As there.
        no_grads: Which inputs have no gradient.
        dtype: As there.
        detect_nondifferentiable: As there.
    """
    arrays, params = _as_tuple(x_data), _as_tuple(params)
    y_grads = tuple(g for g in _as_tuple(y_grad))
    x_grads, param_grads = _as_tuple(x_grad_grad), _as_tuple(params_grad_grad)
    count = len(arrays)
    skipped = (
        [x is None or x.dtype.kind != "f" for x in arrays] if no_grads is None else list(no_grads)
    )
    present = [i for i, g in enumerate(y_grads) if g is not None]

    def first_order(*inputs: Any) -> tuple[Any, ...]:
        xs, given = inputs[:count], inputs[count:]
        ys = _as_tuple(func(*xs))
        # Users may return inputs; their gradients must not be mixed up with those of outputs.
        gys: list[Any] = [None] * len(ys)
        for i, g in zip(present, given, strict=True):
            gys[i] = g
        chosen = [x for x, skip in zip(xs, skipped, strict=True) if not skip]
        pairs = [(y, g) for y, g in zip(ys, gys, strict=True) if g is not None]
        with using_config("enable_backprop", True):
            found = grad(
                [y for y, _ in pairs],
                [*chosen, *params],
                [g for _, g in pairs],
                enable_double_backprop=True,
            )
        return tuple(
            Variable(np.zeros_like(x.array)) if one is None else one
            for one, x in zip(found, [*chosen, *params], strict=True)
        )

    def with_graph(*inputs: Any) -> tuple[Any, ...]:
        with using_config("enable_backprop", True):
            return first_order(
                *[
                    x if x is None or x.requires_grad or x.dtype.kind != "f" else Variable(x.array)
                    for x in inputs
                ]
            )

    # Gradients of gradients are given for all inputs, or for those only that have a gradient.
    if len(x_grads) == len(skipped):
        second = [g for g, skip in zip(x_grads, skipped, strict=True) if not skip]
    else:
        second = list(x_grads)
    try:
        check_backward(
            with_graph,
            (*arrays, *(y_grads[i] for i in present)),
            (*second, *param_grads),
            params=params,
            eps=eps,
            atol=atol,
            rtol=rtol,
            no_grads=[*skipped, *(False for _ in present)],
            dtype=dtype,
            detect_nondifferentiable=detect_nondifferentiable,
        )
    except AssertionError as error:
        raise AssertionError(f"check_double_backward failed: {error}") from None
