"""A call of a function of the library as one function node."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from hagane.nn.autograd.application import WATCHED, Application
from hagane.nn.autograd.function_node import FunctionNode
from hagane.nn.autograd.hooks import FunctionHook
from hagane.nn.autograd.node import creator_of


class Applied(FunctionNode):
    """A call of a function of the library as one function node.

    Args:
        application: The call.
        part: One of its operators, None before there are any.
    """

    def __init__(self, application: Application, part: Any):
        self._application = application
        self._part = part
        self._found: tuple[Any, ...] | None = None
        self._reached: dict[Any, None] = {}

    def __getattr__(self, name: str) -> Any:
        """Return a note of how the result was made."""
        if name.startswith("_") or self._part is None:
            raise AttributeError(f"'{self.label}' object has no attribute '{name}'")
        return getattr(self._part, name)

    def __eq__(self, other: object) -> bool:
        return type(other) is Applied and other._application is self._application

    def __hash__(self) -> int:
        return id(self._application)

    @property
    def label(self) -> str:
        """The name for messages and drawings."""
        return self._application.names()[0]

    @property
    def title(self) -> str:
        """The name for messages."""
        return self._application.title

    @property
    def _impl_name(self) -> str:
        return self._application.names()[1]

    @property
    def _recorded(self) -> Any:
        """One of the operators, which stands in the record for all."""
        return self._part

    @property
    def _local_function_hooks(self) -> Any:
        return self._application.hooks

    @_local_function_hooks.setter
    def _local_function_hooks(self, hooks: dict[str, FunctionHook] | None) -> None:
        WATCHED.add(self._application)
        self._application.hooks = hooks

    @property
    def stack(self) -> Any:
        """Where it was called, in debug mode."""
        return None if self._part is None else self._part.stack

    @property
    def inputs(self) -> Any:
        """The nodes of the inputs: the operands, then what its operators read besides."""
        if self._part is None:
            return self._application.given
        if self._part.inputs is None:
            return None
        if self._found is None:
            given = tuple(self._application.given)
            self._found = (*given, *[x for x in self._read() if x.requires_grad and x not in given])
        return self._found

    def _read(self) -> dict[Any, None]:
        """Return the nodes that its operators read and none of them made, in order."""
        pending = [x for part in reversed(self._last()) for x in reversed(part.inputs or ())]
        found: dict[Any, None] = {}
        seen = set()
        while pending:
            node = pending.pop()
            maker = node._creator_node
            if maker is None or maker.application is not self._application:
                found[node] = None
            elif maker not in seen:
                seen.add(maker)
                pending += reversed(maker.inputs or ())
        return found

    def _last(self) -> list[Any]:
        """Return the operators that made the results."""
        made = [node._creator_node for node in self._results()]
        return list(dict.fromkeys(made)) or [self._part]

    def _results(self) -> list[Any]:
        nodes = [reference() for reference in self._application.results]
        return [
            node
            for node in nodes
            if node is not None
            and node._creator_node is not None
            and node._creator_node.application is self._application
        ]

    @property
    def outputs(self) -> Any:
        """Weak references to the nodes of the outputs."""
        if self._part is None or self._part.outputs is None:
            return None
        made = self._results()
        if not made and not self._reached:
            return self._part.outputs
        between = [weakref.ref(node) for node in self._reached if node not in made]
        kept = [one for one in self._application.results if one() is None or one() in made]
        return (*kept, *between)

    def reach(self, node: Any) -> None:
        """Count a node between its operators as an output: gradients of theirs read it."""
        self._reached[node] = None

    @property
    def known_rank(self) -> int | None:
        """The rank, None before it was counted."""
        return self._application.rank

    @known_rank.setter
    def known_rank(self, rank: int | None) -> None:
        self._application.rank = rank

    @property
    def output_data(self) -> tuple[Any, ...]:
        """The arrays of the outputs, None where not retained."""
        return self._part.output_data

    def get_retained_inputs(self) -> tuple[Any, ...]:
        """Return the inputs whose arrays are there, as variables."""
        return tuple([None if x.data is None else x.get_variable() for x in self.inputs or ()])

    def get_retained_outputs(self) -> tuple[Any, ...]:
        """Return the outputs whose arrays are there, as variables."""
        return self._part.get_retained_outputs()

    def unchain(self) -> None:
        """Forget the inputs and outputs."""
        parts, pending = dict.fromkeys(self._last()), self._last()
        while pending:
            for x in pending.pop().inputs or ():
                maker = x._creator_node
                if maker is not None and maker.application is self._application:
                    if maker not in parts:
                        pending.append(maker)
                    parts[maker] = None
        for part in parts:
            part.unchain()

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> Sequence[Any]:
        """Return the gradients of the inputs, by walking back through the operators."""
        from hagane.nn.autograd.walking import walk_within

        outputs = [reference() for reference in self.outputs]
        pairs = [(y, g) for y, g in zip(outputs, grad_outputs, strict=True) if g is not None]
        found = walk_within(self._application, pairs)
        # An operand that is there twice gets its gradient at its first place.
        return [found.pop(self.inputs[i], None) for i in target_input_indexes]


def applied(function: Any) -> Any:
    """Return the call that an operator is part of as a function node, others as they are."""
    application = function.application
    if application is None:
        return function
    view = None if application.view is None else application.view()
    if view is None:
        view = Applied(application, function)
        application.view = weakref.ref(view)
    return view


def count_rank(function: Any) -> None:
    """Find the ranks of a function and of all that it depends on."""
    pending = [function]
    while pending:
        top = pending[-1]
        makers = [creator_of(x) for x in top.inputs or ()]
        missing = [one for one in makers if one is not None and one.known_rank is None]
        if missing:
            pending += missing
            continue
        ranks = [
            node._rank if maker is None else maker.known_rank + 1
            for node, maker in zip(top.inputs or (), makers, strict=True)
        ]
        top.known_rank = max(ranks, default=0)
        pending.pop()
