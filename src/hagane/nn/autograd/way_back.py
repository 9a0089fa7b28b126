"""The way back of a step that comes again and again, as one program.

A step of training records the same functions on arrays of the same sizes each time. Once it has
been seen often enough, its way back is described (``eager/way.py``) and compiled beside, and from
then on a call of that program stands in the place of one call for each function. Whatever looks at
single functions or their gradients (hooks, the debug mode, kept gradients, second derivatives,
functions of the program's own) goes the long way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hagane.nn.autograd.retention import unread_of
from hagane.nn.eager.dispatch import NATIVE
from hagane.nn.eager.order import Operand, is_exact
from hagane.nn.eager.programs import WORKSHOP, Program
from hagane.nn.eager.table import SERVED
from hagane.nn.eager.way import Passed, Way
from hagane.ops.definition import Unsupported

# Ways that are remembered; functions of a way that is described.
_MOST, _LONGEST = 256, 1024
# Seconds that a way takes altogether before a program is asked for; steps, where one is waited for.
_PATIENCE, _SEEN = 1.0, 2
# Arrays of integers of so many elements are part of the description: shapes and axes.
_FEW = 16


class Trail:
    """The functions of one step, from the last to the first, and their values by number.

    Attributes:
        functions: Those of highest rank first.
        nodes: The nodes of the values that have one.
        leaves: Nodes that no function made and that gradients may reach.
        key: Tells ways apart.
    """

    __slots__ = ("functions", "key", "leaves", "nodes")

    def __init__(self, functions: list[Any], nodes: dict[Any, int], leaves: list[Any], key: object):
        self.functions = functions
        self.nodes = nodes
        self.leaves = leaves
        self.key = key


class Known:
    """A way that was seen before.

    Attributes:
        program: Computes it; None before it is asked for.
        seen: How often it was.
        spent: Seconds that it took altogether.
        refused: Whether it has no program.
    """

    __slots__ = ("feeds", "leaves", "program", "refused", "seen", "sources", "spent")

    def __init__(self) -> None:
        self.program: Program | None = None
        self.seen = 0
        self.spent = 0.0
        self.refused = False
        # By number, where the array of a value is found.
        self.sources: list[_Source] = []
        # The names of inputs and where their arrays are, once the program is there.
        self.feeds: list[tuple[str, _Source | None]] | None = None
        # Which of the leaves of a trail have gradients.
        self.leaves: list[int] = []


class _Source:
    """The place of an array: a function's number, one of three rows, an index there; its type."""

    __slots__ = ("dtype", "function", "index", "row", "shape")

    def __init__(self, function: int, row: str, index: int, dtype: Any, shape: Any):
        self.function = function
        self.row = row
        self.index = index
        self.dtype = dtype
        self.shape = shape

    def array(self, functions: Sequence[Any]) -> Any:
        """Return the array, None where there is none of that type and those sizes."""
        function = functions[self.function]
        if self.row == "x":
            found = function.inputs[self.index].data
        elif self.row == "y":
            found = function._retained_output_data[self.index]
        else:
            found = function._fixed[self.index]
        if found is None or found.shape != self.shape or found.dtype != self.dtype:
            return None
        return found


class Ways:
    """The ways back that were seen."""

    def __init__(self) -> None:
        self._known: dict[object, Known] = {}

    def known(self, trail: Trail) -> Known:
        """Return what is known of a trail."""
        found = self._known.get(trail.key)
        if found is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            found = self._known[trail.key] = Known()
        return found

    def clear(self) -> None:
        """Forget all ways."""
        self._known.clear()


WAYS = Ways()
# For each class of functions whose gradients are made of operators: the tell of one of its objects
# from others, None where it has no description; and its description: place, name, kind, attributes,
# the places of its inputs among its operands, and all operands with those alone that are no inputs,
# None if there are none.
DESCRIBED: dict[type, tuple[Callable[[Any], object], Callable[[Any], tuple[Any, ...]]]] = {}


def trail_of(node: Any, pending: Any) -> Trail | None:
    """Return the functions that computed a node, None where the long way has to be gone.

    Args:
        node: The node whose gradient is given.
        pending: An empty heap of functions.
    """
    if node._creator_node is None:
        return None
    pending.add(node._creator_node)
    numbers: dict[Any, int] = {node: 0}
    functions: list[Any] = []
    leaves: list[Any] = []
    key: list[Any] = []
    append = key.append
    while (function := pending.pop()) is not None:
        described = DESCRIBED.get(type(function))
        inputs = function.inputs
        if (
            described is None
            or inputs is None
            or function._local_function_hooks
            or (function.application is not None and function.application.hooks)
            or len(functions) >= _LONGEST
        ):
            return None
        sign = described[0](function)
        if sign is None:
            return None
        functions.append(function)
        append(sign)
        for reference in function.outputs:
            y = reference()
            if y is None or y._creator_node is not function:
                append(None)
                continue
            number = numbers.get(y)
            append(number)
            if number is None:
                variable = y._variable()
                if variable is not None and variable._grad is not None:
                    return None
        for x in inputs:
            number = numbers.get(x)
            if number is None:
                number = numbers[x] = len(numbers)
                if x._creator_node is None:
                    if x._old_style_grad_generator is not None:
                        return None
                    leaves.append(x)
            if x._requires_grad:
                append(number)
                if x._creator_node is not None:
                    pending.add(x._creator_node)
            else:
                append(~number)
    return Trail(functions, numbers, leaves, tuple(key))


def describe(trail: Trail, start: Any) -> tuple[Way, list[_Source], list[int]] | None:
    """Return a trail as a way, with the places of its arrays, and which leaves have gradients.

    Args:
        trail: The functions.
        start: The node whose gradient is given.
    """
    found = _Description(trail, start)
    return None if found.is_refused else (found.way(), found.sources, found.reached)


class _Description:
    def __init__(self, trail: Trail, start: Any):
        self.is_refused = False
        self.sources: list[Any] = [None] * len(trail.nodes)
        self._values: list[Operand | None] = [None] * len(trail.nodes)
        self._steps: list[Passed] = []
        self._start = trail.nodes[start]
        for i, function in enumerate(trail.functions):
            self._take(i, function, trail.nodes)
        for node, number in trail.nodes.items():
            if self._values[number] is None:
                self._values[number] = Operand(np.dtype(node.dtype).name, node.shape)
        gained = {step.operands[place] for step in self._steps for place in step.targets}
        self.reached = [
            i
            for i, x in enumerate(trail.leaves)
            if trail.nodes[x] in gained and np.dtype(x.dtype).kind == "f"
        ]
        self._leaves = tuple([trail.nodes[trail.leaves[i]] for i in self.reached])
        if not self.reached:
            self.is_refused = True

    def _check(self, attributes: Any, inputs: Any) -> None:
        if not is_exact(attributes, inputs):
            self.is_refused = True

    def way(self) -> Way:
        values = tuple([each for each in self._values if each is not None])
        return Way(values, tuple(self._steps), self._start, self._leaves)

    def _number(self, array: Any, source: _Source | None, content: bool) -> int:
        """Return the number of a value that has no node."""
        bytes_ = array.tobytes() if content else None
        self._values.append(Operand(array.dtype.name, array.shape, bytes_))
        self.sources.append(source)
        return len(self._values) - 1

    def _take(self, at: int, function: Any, numbers: dict[Any, int]) -> None:
        inputs = function.inputs
        own = [numbers[x] for x in inputs]
        for i, x in enumerate(inputs):
            if self.sources[own[i]] is None and x.data is not None:
                self.sources[own[i]] = _Source(at, "x", i, x.data.dtype, x.data.shape)
        place, name, kind, attributes, places, fixed = DESCRIBED[type(function)][1](function)
        self._check(attributes, inputs)
        operands: list[int | None] = [None] * (len(fixed) if fixed else len(places))
        for where, each in zip(places, own, strict=True):
            operands[where] = each
        for where, array in enumerate(fixed or ()):
            if array is None:
                continue
            if not isinstance(array, np.ndarray):
                self.is_refused = True
                continue
            content = is_content(function, where, array)
            source = None if content else _Source(at, "f", where, array.dtype, array.shape)
            operands[where] = self._number(array, source, content)
        outputs: list[int | None] = []
        kept = function._retained_output_data if kind == "operator" else None
        readable = kept is not None and not unread_of(function._op).results
        for k, reference in enumerate(function.outputs):
            node = reference()
            number = None if node is None else numbers.get(node)
            if kept is None or not kept:
                outputs.append(number)
                continue
            source = None
            if readable:
                source = _Source(at, "y", k, kept[k].dtype, kept[k].shape)
            if number is None:
                number = self._number(kept[k], source, False)
            elif self.sources[number] is None:
                self.sources[number] = source
            outputs.append(number)
        targets = tuple([places[i] for i, x in enumerate(inputs) if x._requires_grad])
        self._steps.append(
            Passed(kind, place, name, attributes, tuple(operands), tuple(outputs), targets)
        )


def is_content(function: Any, place: int, array: Any) -> bool:
    """Whether a fixed operand is part of the description: shapes, axes."""
    served = SERVED.get(function._op.key)
    if served is not None:
        return place in served.constants
    return array.dtype.kind == "i" and array.size <= _FEW


def sign_of_operator(function: Any) -> object:
    """Return what tells an operator's call from others, None where it has no description."""
    prepared = function._prepared
    if prepared is None:
        return _sign_of_call(function)
    return prepared if function._fixed is None else (prepared, *function._places)


def described_operator(function: Any) -> tuple[Any, ...]:
    """Return the description of an operator's call."""
    domain, name = function._op.key
    attributes = tuple(sorted(function._attributes.items()))
    return domain, name, "operator", attributes, function._places, function._fixed


def _sign_of_call(function: Any) -> object:
    op = function._op
    if isinstance(op.vjp, Unsupported):
        return None
    fixed: list[Any] = []
    for place, array in enumerate(function._fixed or ()):
        if array is None:
            fixed.append(None)
        elif not isinstance(array, np.ndarray):
            return None
        elif is_content(function, place, array):
            fixed.append((array.dtype.char, array.shape, array.tobytes()))
        else:
            fixed.append((array.dtype.char, array.shape))
    if any(callable(item) for item in function._attributes.values()):
        return None
    sizes = [(x.dtype, x.shape) for x in function.inputs]
    made = (op.key, tuple(function._places), tuple(function._attributes.items()), *fixed, *sizes)
    try:
        hash(made)
    except TypeError:
        return None
    return made


def gone(trail: Trail, known: Known, gradient: Any) -> list[Any] | None:
    """Return the gradients of the leaves that a way reaches, None where there is no program."""
    program = known.program
    if program is None or program.run is None:
        return None
    feeds = known.feeds
    if feeds is None:
        assert program.names is not None
        feeds = known.feeds = [
            (name, None if name == "g" else known.sources[int(name[1:])]) for name in program.names
        ]
        if any(name != "g" and source is None for name, source in feeds):
            known.refused = True
    if known.refused:
        return None
    functions = trail.functions
    fed = {}
    for name, source in feeds:
        array = gradient if source is None else source.array(functions)
        if array is None:
            return None
        fed[name] = array
    found: list[Any] = program.run(None, fed)
    return found


def spend(trail: Trail, known: Known, start: Any, begun: float) -> None:
    """Note that a way was gone the long way, and ask for its program once that pays."""
    known.seen += 1
    known.spent += time.perf_counter() - begun
    if known.program is not None or known.refused:
        return
    waited = WORKSHOP.mode == "wait"
    # (Programs of functions that are still to come will change the way.)
    if known.seen < _SEEN or (not waited and (known.spent < _PATIENCE or WORKSHOP.left())):
        return
    found = describe(trail, start)
    if found is None:
        known.refused = True
        return
    way, known.sources, known.leaves = found
    known.program = WORKSHOP.program(way)
    if not waited:
        WORKSHOP.ask(known.program)


def may_be_short() -> bool:
    """Whether programs serve at all."""
    return not NATIVE._is_off()
