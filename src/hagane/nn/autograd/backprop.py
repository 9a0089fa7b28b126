"""Gradients of recorded computations: from the last function back to the first."""

from __future__ import annotations

import heapq
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hagane.nn.autograd.configuration import read, using_config
from hagane.nn.autograd.debugging import at_place, check_retained
from hagane.nn.autograd.deferred import Deferred, together
from hagane.nn.autograd.function_node import FunctionNode
from hagane.nn.autograd.hooks import get_function_hooks, hooks_of
from hagane.nn.autograd.invalid_type import user_place
from hagane.nn.autograd.node import VariableNode
from hagane.nn.autograd.variable import Variable, as_variable, check_gradient
from hagane.nn.autograd.way_back import WAYS, Trail, gone, may_be_short, spend, trail_of
from hagane.ops.builder import op


class _Pending:
    """Functions to walk back through, those of highest rank first, each once."""

    def __init__(self) -> None:
        self._heap: list[Any] = []
        self._seen: set[Any] = set()

    def add(self, function: Any) -> None:
        if function not in self._seen:
            heapq.heappush(self._heap, (-function.rank, len(self._seen), function))
            self._seen.add(function)

    def pop(self) -> Any:
        return heapq.heappop(self._heap)[2] if self._heap else None


class _Gradients:
    """The parts of each node's gradient found so far.

    Args:
        from_leaves: Whether leaves begin with the gradient that they have.
    """

    def __init__(self, from_leaves: bool):
        self._found: dict[VariableNode, list[Any]] = {}
        self._from_leaves = from_leaves

    def __setitem__(self, node: VariableNode, gradient: Any) -> None:
        self._found[node] = [] if gradient is None else [gradient]

    def terms(self, node: VariableNode) -> list[Any]:
        found = self._found.get(node)
        if found is None:
            found = self._found[node] = []
            if self._from_leaves and node.creator_node is None:
                node.check_old_style_gradient()
                before = _taken(node)
                if before is not None:
                    found.append(before)
        return found

    def pop(self, node: VariableNode | None) -> Any:
        if node is None:
            return None
        found = self._found.pop(node, None)
        if found is None:
            return _taken(node) if self._from_leaves else None
        return total(found)


def _taken(node: VariableNode) -> Variable | None:
    variable = node.get_variable_or_none()
    if variable is None:
        return None
    gradient = variable.grad_var if variable._grad_valid else None
    variable.set_grad_unchecked(None)
    return gradient


def total(terms: list[Any]) -> Any:
    """Return the sum of gradients, None of none."""
    if not terms:
        return None
    if len(terms) == 1 and type(terms[0]) is not Deferred:
        found = terms[0]
        found.is_own = False
        return found
    if read("enable_backprop"):
        found = terms[0]
        for term in terms[1:]:
            found = found + term
        return found
    terms = together(terms)
    return terms[0] if len(terms) == 1 else _summed(terms)


def _summed(terms: list[Any]) -> Variable:
    """Return the sum of gradients, in the memory of one that nobody else reads, if there is one."""
    first, second, *others = terms
    if second.is_own and not first.is_own:
        first, second = second, first
    a, b = first.array, second.array
    # A sum of arrays without axes is a number of NumPy.
    summed = np.add(a, b, out=a) if first.is_own and a.dtype == b.dtype else np.asarray(a + b)
    for term in others:
        summed += term.array
    return Variable.make(summed)


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
        before = _taken(leaf)
        made = Variable.make(array if before is None else np.asarray(before.array + array))
        variable.set_grad_unchecked(made)
        variable._loss_scale = loss_scale


def _trail(node: VariableNode) -> Trail | None:
    """Return the functions behind a node if one program may walk back through them."""
    if read("enable_backprop") or read("debug") or get_function_hooks() or not may_be_short():
        return None
    return trail_of(node, _Pending())


def _walk_to_all(
    outputs: Sequence[tuple[VariableNode, Any]], retain_grad: bool, loss_scale: float | None
) -> None:
    pending = _Pending()
    gradients = _Gradients(from_leaves=True)
    leaves: dict[VariableNode, None] = {}

    def reach(node: VariableNode) -> None:
        if node._creator_node is None:
            leaves[node] = None
        else:
            pending.add(node._creator_node)

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
        _step(function, targets, given, found, debug)
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


def check_whole(function: Any) -> None:
    """Refuse a gradient through a function whose record was released.

    Raises:
        RuntimeError: It was.
    """
    if function.inputs is None:
        raise RuntimeError(
            f"backward: the inputs of {function.label} were released by unchain; "
            "compute the variable anew"
        )


def _step(
    function: Any,
    targets: tuple[int, ...],
    given: tuple[Any, ...],
    found: dict[Any, list[Any]],
    debug: bool,
) -> None:
    """Add the gradients of a function's inputs to those found."""
    if debug:
        check_retained(function)
    hooks = hooks_of(function)
    if hooks:
        arrays = tuple([x.data for x in function.inputs])
        shown = tuple([None if g is None else g.array for g in given])
        for hook in hooks:
            hook.backward_preprocess(function, arrays, shown)
    if type(function).backward_accumulate is not FunctionNode.backward_accumulate:
        for i in targets:
            found[function.inputs[i]][:] = together(found[function.inputs[i]])
        so_far = tuple(
            [
                total([found[function.inputs[i]].pop()]) if found[function.inputs[i]] else None
                for i in targets
            ]
        )
        results = _called(function, function.backward_accumulate, targets, given, so_far)
    else:
        results = _called(function, function.backward, targets, given)
        if debug or len(results) != len(targets) or len(targets) != len(function.inputs):
            results = _selected(function, targets, results, debug)
    for i, gradient in zip(targets, results, strict=True):
        if gradient is None:
            continue
        node = function.inputs[i]
        if type(gradient) is Deferred:
            found[node].append(gradient)
            continue
        array = gradient.array
        if array is None:
            continue
        if debug:
            _check_debug(function, i, node, gradient)
        if type(array) is not np.ndarray or array.dtype != node.dtype or array.shape != node.shape:
            check_gradient(function, node, array)
        found[node].append(gradient)
    if hooks:
        for hook in hooks:
            hook.backward_postprocess(function, arrays, shown)


def _called(function: Any, method: Any, *arguments: Any) -> Any:
    try:
        return method(*arguments)
    except Exception as error:
        place = None if function.stack is None else user_place(function.stack)
        if place is not None:
            error.add_note(f"in the gradient of {function.label}, applied at {place}")
        raise


def _selected(function: Any, targets: tuple[int, ...], results: Any, debug: bool) -> Any:
    if debug:
        for gradient in results:
            if not (gradient is None or isinstance(gradient, Variable)):
                raise ValueError(
                    function._get_error_message(
                        "type of gradients returned from backward is incorrect: "
                        f"{type(gradient)} != expected {Variable}"
                    )
                )
    if len(results) == len(function.inputs):
        return [results[i] for i in targets]
    if len(results) == len(targets):
        return results
    expected = f"{len(function.inputs)}"
    if len(targets) != len(function.inputs):
        expected += f" or {len(targets)}"
    raise ValueError(
        function._get_error_message(
            "number of gradients returned from backward is incorrect: "
            f"{len(results)} != expected {expected}"
        )
    )


def _check_debug(function: Any, index: int, node: VariableNode, gradient: Variable) -> None:
    for what, got, expected in (
        ("shape", gradient.shape, node.shape),
        ("dtype", gradient.dtype, node.dtype),
    ):
        if got != expected:
            raise ValueError(
                function._get_error_message(
                    f"{what} of gradients returned from backward is incorrect: "
                    f"input-index={index}, actual {got} != expected {expected}"
                )
            )
    if gradient.dtype.kind == "f" and np.isnan(gradient.array).any():
        message = function._get_error_message("NaN is detected on backward computation")
        raise RuntimeError(message + at_place(function.stack))


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
        _check_gradients("grad_outputs", grad_outputs, "outputs", outputs)
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


def _check_gradients(name: str, gradients: Any, of_name: str, of: Any) -> None:
    if not isinstance(gradients, tuple | list):
        raise TypeError(f"{name} must be None, a tuple, or a list, not {type(gradients)}.")
    if len(gradients) != len(of):
        raise ValueError(
            f"{name} must be of the same length as {of_name}.\n"
            f"len({of_name}) = {len(of)}, len({name}) = {len(gradients)}"
        )


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
    if grad_outputs is not None:
        _check_gradients("grad_outputs", grad_outputs, "outputs", outputs)
    if grad_inputs is not None:
        _check_gradients("grad_inputs", grad_inputs, "inputs", inputs)
    gradients = _Gradients(from_leaves=False)
    for i, y in enumerate(outputs):
        y.node.check_old_style_gradient()
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
    pending = [y.creator_node for y in outputs if y.creator_node is not None]
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
                if x.creator_node is not None:
                    pending.append(x.creator_node)
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
    gradients: _Gradients,
    loss_scale: float | None,
) -> dict[VariableNode, Any]:
    pending = _Pending()
    for y in outputs:
        if y.creator_node is not None:
            pending.add(y.creator_node)
    wanted = {x.node for x in inputs}
    results: dict[VariableNode, Any] = {}
    debug = read("debug")
    while (function := pending.pop()) is not None:
        nodes = [reference() for reference in function.outputs]
        given = tuple(
            [None if y is None or y.creator_node is None else gradients.pop(y) for y in nodes]
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
        _step(function, targets, given, found, debug)
        for node, terms in found.items():
            if terms and node.creator_node is not None:
                pending.add(node.creator_node)
    for node in wanted:
        if node not in results:
            results[node] = gradients.pop(node)
    return results
