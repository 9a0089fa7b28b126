"""Functions on variables, with their gradient."""

from __future__ import annotations

import traceback
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.nn.autograd import type_check
from hagane.nn.autograd.application import CURRENT, begin_current
from hagane.nn.autograd.configuration import modes, read
from hagane.nn.autograd.debugging import check_numbers, mark_retained
from hagane.nn.autograd.hooks import FunctionHook, hooks_of
from hagane.nn.autograd.variable import Variable, as_variable


class FunctionNode:
    """One application of a differentiable function; users derive their own.

    A subclass defines ``forward``, from arrays to a tuple of arrays, and ``backward``, from
    gradients (variables) to gradients (variables). An object is applied once.

    Attributes:
        inputs: The nodes of the inputs, once it was applied and recorded.
        outputs: Weak references to the nodes of the outputs.
        application: The call of a function of the library that it is part of, if there is one.
        known_rank: The rank, None before it was asked for.
        stack: Where it was applied, in debug mode.
        retained_sums: Checksums of the arrays that it retains, in debug mode.
    """

    inputs: Any = None
    outputs: Any = None
    application: Any = None
    known_rank: int | None = None
    # Greater than that of all that it depends on, operators counted one by one.
    _depth = 0
    stack: Any = None
    lazy_grad_sum = False
    is_elementwise = False
    _output_count: int | None = None
    _input_indexes_to_retain: Any = None
    _output_indexes_to_retain: Any = None
    _retained_output_data: Any = None
    _local_function_hooks: dict[str, FunctionHook] | None = None
    retained_sums: dict[str, int | None] | None = None

    @property
    def local_function_hooks(self) -> dict[str, FunctionHook]:
        """The hooks of this function alone, by name."""
        if self._local_function_hooks is None:
            self._local_function_hooks = {}
        return self._local_function_hooks

    @property
    def rank(self) -> int:
        """The number of functions on the longest way from a leaf."""
        if self.known_rank is None:
            from hagane.nn.autograd.applied import count_rank

            count_rank(self)
        return self.known_rank or 0

    @rank.setter
    def rank(self, rank: int) -> None:
        self.known_rank = self._depth = rank

    @property
    def label(self) -> str:
        """The name for messages and drawings."""
        return type(self).__name__

    @property
    def title(self) -> str:
        """The name for messages: that of the function of the library which the program called."""
        application = self.application
        return self.label if application is None else application.title

    @property
    def _impl_name(self) -> str:
        return type(self).__name__

    @property
    def output_data(self) -> tuple[Any, ...]:
        """The arrays of the outputs, None where not retained.

        Raises:
            RuntimeError: They are gone.
        """
        if self._retained_output_data is None:
            raise RuntimeError("retained output data is gone")
        found: list[Any] = [None] * (self._output_count or 0)
        for index, data in zip(
            self._output_indexes_to_retain, self._retained_output_data, strict=True
        ):
            found[index] = data
        return tuple(found)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Refuse: functions are applied by ``apply``.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError(
            f"{self.label}: a function node is not called; use {self.label}(…).apply((x, …))"
        )

    def apply(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        """Compute the outputs of variables or arrays, and record how.

        Raises:
            InvalidType: ``check_type_forward`` refuses the types of the inputs.
            TypeError: ``forward`` returned something else than a tuple of arrays.
        """
        variables = [as_variable(x) for x in inputs]
        arrays = tuple([x.array for x in variables])
        if read("debug"):
            self.stack = traceback.extract_stack()
        if read("type_check"):
            type_check.check_node(self, arrays)
        self.application = CURRENT.get()
        begin_current()
        hooks = hooks_of(self)
        for hook in hooks:
            hook.forward_preprocess(self, arrays)
        self._input_indexes_to_retain = None
        self._output_indexes_to_retain = None
        outputs = self.forward(arrays)
        self._check_outputs(outputs)
        if read("debug"):
            check_numbers(self.title, arrays, outputs)
        for hook in hooks:
            hook.forward_postprocess(self, arrays)
        self._output_count = len(outputs)
        return self._record(variables, outputs)

    def _check_outputs(self, outputs: Any) -> None:
        if not isinstance(outputs, tuple):
            raise TypeError(
                f"forward output must be a tuple ({self.label})\nActual: {type(outputs)}"
            )
        if not all(y is None or isinstance(y, np.ndarray) for y in outputs):
            raise TypeError(
                "forward output must be a tuple of ndarrays.\n"
                f"Function: {self.label}\nActual output types: {tuple(map(type, outputs))}"
            )

    def _record(self, variables: Sequence[Variable], outputs: Sequence[Any]) -> Any:
        requires_grad = any(x._requires_grad for x in variables)
        made = tuple([Variable.make(y, requires_grad) for y in outputs])
        recorded, debug = modes()
        if not recorded:
            return made
        self._depth = max([x._node._rank for x in variables]) if variables else 0
        for y in made:
            y._node.creator_node = self
        self.inputs = tuple([x._node for x in variables])
        self.outputs = tuple([weakref.ref(y._node) for y in made])
        for index in self._input_indexes_to_retain or ():
            variables[index].retain_data()
        if self._output_indexes_to_retain is not None:
            kept = []
            for index in self._output_indexes_to_retain:
                made[index].retain_data()
                kept.append(outputs[index])
            self._retained_output_data = tuple(kept)
        self.lazy_grad_sum = read("lazy_grad_sum")
        if debug:
            mark_retained(self)
        return made

    def check_type_forward(self, in_types: Any) -> None:
        """Check the types of the inputs by ``type_check.expect``; called before ``forward``."""

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arrays of the outputs; subclasses define it or ``forward_cpu``."""
        return self.forward_cpu(inputs)

    def forward_cpu(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arrays of the outputs."""
        raise NotImplementedError(f"{self.label} defines neither forward nor forward_cpu")

    def operators(self, *inputs: Any) -> Sequence[Any] | None:
        """Return the outputs, written in operators; None if there is no such way.

        ``hagane.trace`` writes what ``forward`` computed on arrays by it.

        Args:
            inputs: Values of a graph, of the inputs' types and sizes.
        """
        return None

    def retain_inputs(self, indexes: Sequence[int]) -> None:
        """Keep the arrays of some inputs for ``backward``; called in ``forward``."""
        self._input_indexes_to_retain = indexes

    def retain_outputs(self, indexes: Sequence[int]) -> None:
        """Keep the arrays of some outputs for ``backward``; called in ``forward``."""
        self._output_indexes_to_retain = indexes

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> Sequence[Any]:
        """Return the gradients of the inputs.

        Args:
            target_input_indexes: The inputs of which the gradient is asked for.
            grad_outputs: The gradients of the outputs, None where there is none.

        Returns:
            One variable or None for each of these inputs, or for each input.
        """
        return (None,) * len(target_input_indexes)

    def backward_accumulate(
        self,
        target_input_indexes: tuple[int, ...],
        grad_outputs: tuple[Any, ...],
        grad_inputs: tuple[Any, ...],
    ) -> tuple[Any, ...]:
        """Return the gradients of the inputs, added to present ones."""
        found: Any = self.backward(target_input_indexes, grad_outputs)
        if len(found) == len(self.inputs):
            found = [found[i] for i in target_input_indexes]
        return tuple(
            [
                gx if so_far is None else so_far if gx is None else gx + so_far
                for gx, so_far in zip(found, grad_inputs, strict=True)
            ]
        )

    def get_retained_inputs(self) -> tuple[Any, ...]:
        """Return the inputs that ``retain_inputs`` kept, as variables."""
        if self._input_indexes_to_retain is None or self.inputs is None:
            return ()
        found = []
        for index in self._input_indexes_to_retain:
            node = self.inputs[index]
            found.append(None if node.data is None else node.get_variable())
        return tuple(found)

    def get_retained_outputs(self) -> tuple[Any, ...]:
        """Return the outputs that ``retain_outputs`` kept, as variables.

        Raises:
            ValueError: They were not kept.
        """
        if self._output_indexes_to_retain is None or self.outputs is None:
            return ()
        if self._retained_output_data is None:
            raise ValueError(self._get_error_message("retain_outputs is not called in forward."))
        found: list[Any] = []
        outputs = list(self.outputs)
        for index, data in zip(
            self._output_indexes_to_retain, self._retained_output_data, strict=True
        ):
            node = outputs[index]()
            if node is None:
                variable = Variable.make(data)
                variable.creator_node = self
                variable.retain_data()
                outputs[index] = weakref.ref(variable.node)
            else:
                variable = node.get_variable()
            found.append(None if variable.array is None else variable)
        self.outputs = tuple(outputs)
        return tuple(found)

    def unchain(self) -> None:
        """Forget the inputs and outputs."""
        for reference in self.outputs or ():
            node = reference()
            if node is not None:
                node.unchain()
                node.released = True
        self.inputs = None
        self.outputs = None

    def add_hook(self, hook: FunctionHook, name: str | None = None) -> None:
        """Register a hook for this function alone.

        Raises:
            TypeError: It is no hook.
            KeyError: There is one of that name.
        """
        if not isinstance(hook, FunctionHook):
            raise TypeError(f"expected a FunctionHook, got {type(hook)}")
        name = hook.name if name is None else name
        if name in self.local_function_hooks:
            raise KeyError(f"a hook named '{name}' already exists")
        self.local_function_hooks[name] = hook
        hook.added(self)

    def delete_hook(self, name: str) -> None:
        """Take a hook away.

        Raises:
            KeyError: There is none of that name.
        """
        if name not in self.local_function_hooks:
            raise KeyError(f"there is no hook named '{name}'")
        self.local_function_hooks.pop(name).deleted(self)

    def _get_error_message(self, message: str) -> str:
        lines = [message, f"  function={self._impl_name} ({self.label})"]
        for i, node in enumerate(self.inputs or ()):
            lines.append(f"    input {i}: shape={node.shape} dtype={node.dtype}")
        for i, reference in enumerate(self.outputs or ()):
            node = reference()
            text = "not available" if node is None else f"shape={node.shape} dtype={node.dtype}"
            lines.append(f"    output {i}: {text}")
        if self.stack is not None:
            lines += ["Stacktrace of the function is below:", *traceback.format_list(self.stack)]
        return "\n".join(lines)
