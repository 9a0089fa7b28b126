"""Gradients of variables with respect to others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hagane.nn.autograd.configuration import read, using_config
from hagane.nn.autograd.node import VariableNode
from hagane.nn.autograd.variable import Variable, as_variable
from hagane.nn.autograd.walking import (
    Gradients,
    Pending,
    check_gradients,
    check_whole,
    is_watched,
    step,
)
from hagane.ops.builder import op


def grad(
    outputs: Sequence[Variable],
    inputs: Sequence[Variable],
    grad_outputs: Sequence[Any] | None = None,
    grad_inputs: Sequence[Any] | None = None,
    set_grad: bool = False,
    retain_grad: bool = False,
    enable_double_backprop: bool = False,
    loss_scale: float | None = None,
) -> list[Any]:
    """Return the gradients of variables with respect to others.

    Args:
        outputs: The variables that are differentiated.
        inputs: Those with respect to which.
        grad_outputs: The gradients of the outputs, ones where None.
        grad_inputs: Gradients of the inputs that are added.
        set_grad: Whether the inputs' ``grad_var`` is set.
        retain_grad: Whether that of the variables between is.
        enable_double_backprop: Whether the gradients can be differentiated again.
        loss_scale: How many times too large gradients are made.

    Returns:
        One variable for each input, None where no output depends on it.
    """
    for name, value in (("outputs", outputs), ("inputs", inputs)):
        if not isinstance(value, tuple | list):
            raise TypeError(f"{name} must be a tuple or a list, not {type(value)}.")
        for i, one in enumerate(value):
            if not isinstance(one, Variable):
                raise TypeError(
                    f"grad: expected {name}[{i}] to be a Variable, got {type(one).__name__}; "
                    "the gradient is that of what was computed from a Variable"
                )
            if name == "outputs":
                one.node.check_old_style_gradient()
    if grad_outputs is not None:
        check_gradients("grad_outputs", grad_outputs, "outputs", outputs)
    if grad_inputs is not None:
        check_gradients("grad_inputs", grad_inputs, "inputs", inputs)
    gradients = Gradients(from_leaves=False)
    for i, y in enumerate(outputs):
        gradient = None if grad_outputs is None else grad_outputs[i]
        if gradient is None:
            scale = 1 if loss_scale is None else loss_scale
            filled = np.full_like(y.array, scale)
            gradient = Variable(filled, requires_grad=False)
        gradients[y.node] = as_variable(gradient)
    for x, gradient in zip(inputs, grad_inputs or (), strict=False):
        if gradient is not None:
            gradients[x.node] = as_variable(gradient)
    with using_config("enable_backprop", enable_double_backprop):
        found = _walk(outputs, inputs, _needed(outputs, inputs), retain_grad, gradients, loss_scale)
    results = [found[x.node] for x in inputs]
    if set_grad:
        for x, gradient in zip(inputs, results, strict=True):
            x.grad_var = gradient
    return results


def grad_of_call(
    compute: Callable[..., Sequence[Variable]],
    operands: Sequence[Any],
    targets: Sequence[int],
    grad_outputs: Sequence[Any],
) -> list[Any]:
    """Return gradients of a call by its operands, to be differentiated again.

    An operand may have been computed from another: gradients through that are not the call's.

    Args:
        compute: From the operands to the results.
        operands: Variables, None for absent ones.
        targets: Places of the operands by which.
        grad_outputs: The gradients of the results, None where there is none.
    """
    own: list[Any] = [None if x is None else op("Identity", x) for x in operands]
    pairs = [(y, g) for y, g in zip(compute(*own), grad_outputs, strict=True) if g is not None]
    return grad(
        [y for y, _ in pairs], [own[i] for i in targets], [g for _, g in pairs],
        enable_double_backprop=True,
    )  # fmt: skip


def _needed(outputs: Sequence[Variable], inputs: Sequence[Variable]) -> set[VariableNode]:
    """Return the nodes on the ways from inputs to outputs."""
    readers: dict[VariableNode, list[Any]] = {}
    pending = [y.node._creator_node for y in outputs if y.node._creator_node is not None]
    seen: set[Any] = set()
    while pending:
        function = pending.pop()
        if function in seen:
            continue
        seen.add(function)
        check_whole(function)
        for x in function.inputs:
            x.check_old_style_gradient()
            if x.requires_grad:
                readers.setdefault(x, []).append(function)
                if x._creator_node is not None:
                    pending.append(x._creator_node)
    needed: set[VariableNode] = set()
    nodes = [x.node for x in inputs]
    while nodes:
        node = nodes.pop()
        if node in needed:
            continue
        needed.add(node)
        for function in readers.get(node, ()):
            nodes += [y for y in (reference() for reference in function.outputs) if y in readers]
    return needed


def _walk(
    outputs: Sequence[Variable],
    inputs: Sequence[Variable],
    needed: set[VariableNode],
    retain_grad: bool,
    gradients: Gradients,
    loss_scale: float | None,
) -> dict[VariableNode, Any]:
    pending = Pending(is_watched())
    for y in outputs:
        if y.node._creator_node is not None:
            pending.reach(y.node)
    wanted = {x.node for x in inputs}
    results: dict[VariableNode, Any] = {}
    debug = read("debug")
    while (function := pending.pop()) is not None:
        nodes = [reference() for reference in function.outputs]
        given = tuple(
            [None if y is None or y._creator_node is None else gradients.pop(y) for y in nodes]
        )
        for node, gradient in zip(nodes, given, strict=True):
            if node is None:
                continue
            if node in wanted:
                results[node] = gradient
            if retain_grad:
                node.set_grad_if_alive(gradient)
        targets = tuple([i for i, x in enumerate(function.inputs) if x in needed])
        if not targets:
            continue
        found = {function.inputs[i]: gradients.terms(function.inputs[i]) for i in targets}
        step(function, targets, given, found, debug)
        for node, terms in found.items():
            if terms and node._creator_node is not None:
                pending.reach(node)
    for node in wanted:
        if node not in results:
            results[node] = gradients.pop(node)
    return results
