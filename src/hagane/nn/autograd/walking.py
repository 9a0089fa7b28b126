"""One function after the other on the way back, and the sums of gradients found so far."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.nn.autograd.application import WATCHED
from hagane.nn.autograd.applied import applied
from hagane.nn.autograd.configuration import read
from hagane.nn.autograd.debugging import at_place, check_retained
from hagane.nn.autograd.deferred import Deferred, together
from hagane.nn.autograd.function_node import FunctionNode
from hagane.nn.autograd.hooks import get_function_hooks, hooks_of
from hagane.nn.autograd.invalid_type import user_place
from hagane.nn.autograd.node import VariableNode, check_gradient
from hagane.nn.autograd.variable import Variable


class Pending:
    """Functions to walk back through, those of highest rank first, each once.

    Args:
        whole: Whether calls of functions of the library are walked through as one, as hooks see
            them, and not operator by operator.
    """

    def __init__(self, whole: bool = False) -> None:
        self._heap: list[Any] = []
        self._seen: set[Any] = set()
        self._whole = whole

    def reach(self, node: VariableNode) -> None:
        """Add the function that made a node."""
        function = node._creator_node
        if self._whole:
            whole = applied(function)
            if whole is not function:
                whole.reach(node)
            function = whole
        self.add(function)

    def add(self, function: Any) -> None:
        """Add a function, unless it was added before."""
        if function not in self._seen:
            rank = function.rank if self._whole else function._depth
            heapq.heappush(self._heap, (-rank, len(self._seen), function))
            self._seen.add(function)

    def pop(self) -> Any:
        """Return the function of the highest rank, None if there is none left."""
        return heapq.heappop(self._heap)[2] if self._heap else None


class Gradients:
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
        """Return the parts of a node's gradient, to which others are appended."""
        found = self._found.get(node)
        if found is None:
            found = self._found[node] = []
            if self._from_leaves and node._creator_node is None:
                node.check_old_style_gradient()
                before = taken(node)
                if before is not None:
                    found.append(before)
        return found

    def pop(self, node: VariableNode | None) -> Any:
        """Return the sum of a node's parts, which are forgotten; None if there are none."""
        if node is None:
            return None
        found = self._found.pop(node, None)
        if found is None:
            return taken(node) if self._from_leaves else None
        return total(found)


def taken(node: VariableNode) -> Variable | None:
    """Return the gradient that a node's variable has, which then has none."""
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


def is_watched() -> bool:
    """Whether hooks look at functions on the way back."""
    return bool(get_function_hooks()) or bool(WATCHED)


def check_whole(function: Any) -> None:
    """Refuse a gradient through a function whose record was released.

    Raises:
        RuntimeError: It was.
    """
    if function.inputs is None:
        raise RuntimeError(
            f"backward: the inputs of {function.title} were released by unchain; "
            "compute the variable anew"
        )


def step(
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


def walk_within(application: Any, outputs: Sequence[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return gradients of a call of a function of the library, operator by operator.

    Args:
        application: The call.
        outputs: Nodes of its results, with their gradients.

    Returns:
        The gradient of each node that the operators read and none of them made.
    """
    pending = Pending()
    gradients = Gradients(from_leaves=False)
    for node, gradient in outputs:
        gradients.terms(node).append(gradient)
        pending.add(node._creator_node)
    read_from: dict[Any, None] = {}
    debug = read("debug")
    while (function := pending.pop()) is not None:
        check_whole(function)
        nodes = [reference() for reference in function.outputs]
        given = tuple(
            [None if y is None or y._creator_node is None else gradients.pop(y) for y in nodes]
        )
        targets = tuple([i for i, x in enumerate(function.inputs) if x._requires_grad])
        if not targets:
            continue
        found = {function.inputs[i]: gradients.terms(function.inputs[i]) for i in targets}
        step(function, targets, given, found, debug)
        for x, terms in found.items():
            maker = x._creator_node
            if maker is not None and maker.application is application:
                if terms:
                    pending.add(maker)
            else:
                read_from[x] = None
    return {x: gradients.pop(x) for x in read_from}


def _called(function: Any, method: Any, *arguments: Any) -> Any:
    try:
        return method(*arguments)
    except Exception as error:
        place = None if function.stack is None else user_place(function.stack)
        if place is not None:
            error.add_note(f"in the gradient of {function.title}, applied at {place}")
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


def check_gradients(name: str, gradients: Any, of_name: str, of: Any) -> None:
    """Check that gradients are a row as long as that of their variables.

    Raises:
        TypeError: They are no row.
        ValueError: It has another length.
    """
    if not isinstance(gradients, tuple | list):
        raise TypeError(f"{name} must be None, a tuple, or a list, not {type(gradients)}.")
    if len(gradients) != len(of):
        raise ValueError(
            f"{name} must be of the same length as {of_name}.\n"
            f"len({of_name}) = {len(of)}, len({name}) = {len(gradients)}"
        )
