"""Gradients of the leaves of recorded computations, from the last function back to the first."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.nn.autograd.configuration import read, using_config
from hagane.nn.autograd.hooks import get_function_hooks
from hagane.nn.autograd.node import VariableNode
from hagane.nn.autograd.variable import Variable
from hagane.nn.autograd.walking import (
    Gradients,
    Pending,
    check_gradients,
    check_whole,
    is_watched,
    step,
    taken,
)
from hagane.nn.autograd.way_back import WAYS, Trail, gone, may_be_short, spend, trail_of


def backprop_to_all(
    outputs: Sequence[tuple[VariableNode, Any]], retain_grad: bool, loss_scale: float | None
) -> None:
    """Set the gradients of all leaves that nodes were computed from.

    Args:
        outputs: Nodes, with their gradients.
        retain_grad: Whether the variables between keep theirs.
        loss_scale: How many times too large the gradients are.
    """
    trail = None
    if len(outputs) == 1 and not retain_grad and outputs[0][1] is not None:
        trail = _trail(outputs[0][0])
    if trail is None:
        _walk_to_all(outputs, retain_grad, loss_scale)
        return
    known = WAYS.known(trail)
    node, gradient = outputs[0]
    found = gone(trail, known, gradient.array)
    if found is None:
        begun = time.perf_counter()
        _walk_to_all(outputs, retain_grad, loss_scale)
        spend(trail, known, node, begun)
        return
    for i, array in zip(known.leaves, found, strict=True):
        leaf = trail.leaves[i]
        variable = leaf.get_variable_or_none()
        if variable is None:
            continue
        before = taken(leaf)
        made = Variable.make(array if before is None else np.asarray(before.array + array))
        variable.set_grad_unchecked(made)
        variable._loss_scale = loss_scale


def _trail(node: VariableNode) -> Trail | None:
    """Return the functions behind a node if one program may walk back through them."""
    if read("enable_backprop") or read("debug") or get_function_hooks() or not may_be_short():
        return None
    return trail_of(node, Pending())


def _walk_to_all(
    outputs: Sequence[tuple[VariableNode, Any]], retain_grad: bool, loss_scale: float | None
) -> None:
    pending = Pending(is_watched())
    gradients = Gradients(from_leaves=True)
    leaves: dict[VariableNode, None] = {}

    def reach(node: VariableNode) -> None:
        if node._creator_node is None:
            leaves[node] = None
        else:
            pending.reach(node)

    for node, gradient in outputs:
        if gradient is not None:
            gradients.terms(node).append(gradient)
        reach(node)
    debug = read("debug")
    while (function := pending.pop()) is not None:
        inputs = function.inputs
        if inputs is None:
            check_whole(function)
        targets = tuple([i for i, x in enumerate(inputs) if x._requires_grad])
        nodes = [reference() for reference in function.outputs]
        given = tuple(
            [None if y is None or y._creator_node is None else gradients.pop(y) for y in nodes]
        )
        if not targets:
            continue
        found = {inputs[i]: gradients.terms(inputs[i]) for i in targets}
        step(function, targets, given, found, debug)
        if retain_grad:
            for y, gradient in zip(nodes, given, strict=True):
                if y is not None:
                    y.set_grad_if_alive(gradient)
        elif debug:
            _note_dropped(nodes)
        for x, terms in found.items():
            if terms:
                reach(x)
    for node in leaves:
        variable = node.get_variable_or_none()
        gradient = gradients.pop(node)
        if variable is not None:
            variable.set_grad_unchecked(gradient)
            variable._loss_scale = loss_scale


def _note_dropped(nodes: Sequence[Any]) -> None:
    for node in nodes:
        variable = None if node is None else node.get_variable_or_none()
        if variable is not None:
            variable.grad_dropped = True


def backward(
    outputs: Sequence[Variable],
    grad_outputs: Sequence[Any] | None = None,
    *,
    enable_double_backprop: bool = False,
) -> None:
    """Set the gradients of all leaves that variables were computed from.

    Args:
        outputs: The variables.
        grad_outputs: Their gradients, None for their present ones.
        enable_double_backprop: Whether the gradients can be differentiated again.
    """
    if not isinstance(outputs, tuple | list):
        raise TypeError(f"outputs must be a tuple or a list, not {type(outputs)}.")
    for y in outputs:
        if not isinstance(y, Variable):
            raise TypeError(f"each output must be a Variable, not {type(y)}")
    if grad_outputs is not None:
        check_gradients("grad_outputs", grad_outputs, "outputs", outputs)
        given = list(grad_outputs)
    else:
        given = []
        for y in outputs:
            if y.grad_var is None:
                warnings.warn(
                    "outputs contains a Variable without grad, or duplicate outputs. "
                    "Note that backward does not set default grad.",
                    RuntimeWarning,
                    stacklevel=2,
                )
            given.append(y.grad_var)
            y.grad_var = None
    pairs = [(y.node, gy) for y, gy in zip(outputs, given, strict=True) if gy is not None]
    with using_config("enable_backprop", enable_double_backprop):
        backprop_to_all(pairs, False, None)
