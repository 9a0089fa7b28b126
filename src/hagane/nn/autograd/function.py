"""Old-style functions: their gradient is computed on arrays and has no gradient itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.nn.autograd.configuration import config
from hagane.nn.autograd.function_node import FunctionNode
from hagane.nn.autograd.hooks import FunctionHook
from hagane.nn.autograd.variable import Variable


class FunctionAdapter(FunctionNode):
    """The node of an old-style function."""

    _function: Any = None

    def __init__(self, function: Function):
        super().__init__()
        self._function = function
        function._owned_node = self

    @property
    def function(self) -> Function:
        """The function."""
        return self._function

    @property
    def label(self) -> str:
        """The function's name."""
        return self._function.label

    @property
    def _impl_name(self) -> str:
        return type(self._function).__name__

    def check_type_forward(self, in_types: Any) -> None:
        """Ask the function."""
        self._function.check_type_forward(in_types)

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Ask the function."""
        self.retain_inputs(tuple(range(len(inputs))))
        return self._function.forward(inputs)

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> Sequence[Any]:
        """Ask the function, on arrays."""
        inputs = [node.data for node in self.inputs]
        gradients = tuple([None if g is None else g.array for g in grad_outputs])
        found = self._function.backward(tuple(inputs), gradients)
        if not isinstance(found, tuple):
            raise TypeError(
                f"backward output must be a tuple ({self.label})\nActual: {type(found)}"
            )
        made: list[Variable | None] = []
        for i in target_input_indexes:
            if found[i] is None:
                made.append(None)
                continue
            variable = Variable(np.asarray(found[i]))
            if config.enable_backprop:
                variable.node._old_style_grad_generator = self._function.label
            made.append(variable)
        return made


class Function:
    """An old-style function: ``forward`` and ``backward`` on arrays.

    New functions are better written as ``FunctionNode``, which can be differentiated twice.
    """

    _node: Any = None
    _owned_node: Any = None

    def __call__(self, *inputs: Any) -> Any:
        """Apply the function to variables or arrays; one output comes bare, several as a tuple."""
        node = self.node
        self._node = node
        self._owned_node = None
        outputs = node.apply(inputs)
        return outputs[0] if len(outputs) == 1 else outputs

    @property
    def node(self) -> FunctionAdapter:
        """The node that holds the function in a recorded computation."""
        if self._node is not None:
            return self._node
        if self._owned_node is None:
            self._owned_node = FunctionAdapter(self)
        return self._owned_node

    @property
    def inputs(self) -> Any:
        """The nodes of the inputs."""
        return self.node.inputs

    @property
    def outputs(self) -> Any:
        """Weak references to the nodes of the outputs."""
        return self.node.outputs

    @property
    def output_data(self) -> Any:
        """The retained arrays of the outputs."""
        return self.node.output_data

    @property
    def rank(self) -> int:
        """The number of functions on the longest way from a leaf."""
        return self.node.rank

    @property
    def label(self) -> str:
        """The name for messages and drawings."""
        return type(self).__name__

    @property
    def stack(self) -> Any:
        """Where it was applied, in debug mode."""
        return self.node.stack

    @property
    def local_function_hooks(self) -> dict[str, FunctionHook]:
        """The hooks of this function alone."""
        return self.node.local_function_hooks

    def check_type_forward(self, in_types: Any) -> None:
        """Check the types of the inputs by ``type_check.expect``."""

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arrays of the outputs."""
        return self.forward_cpu(inputs)

    def forward_cpu(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arrays of the outputs."""
        raise NotImplementedError(f"{self.label} defines neither forward nor forward_cpu")

    def backward(self, inputs: tuple[Any, ...], grad_outputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the gradients of the inputs, as arrays."""
        return self.backward_cpu(inputs, grad_outputs)

    def backward_cpu(
        self, inputs: tuple[Any, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """Return the gradients of the inputs, as arrays; None where there is none."""
        return (None,) * len(inputs)

    def retain_inputs(self, indexes: Sequence[int]) -> None:
        """Keep only some inputs for ``backward``; called in ``forward``."""
        self.node.retain_inputs(indexes)

    def retain_outputs(self, indexes: Sequence[int], retain_after_backward: bool = False) -> None:
        """Keep some outputs for ``backward``; called in ``forward``."""
        self.node.retain_outputs(indexes)

    def unchain(self) -> None:
        """Forget the inputs and outputs."""
        self.node.unchain()

    def add_hook(self, hook: FunctionHook, name: str | None = None) -> None:
        """Register a hook for this function alone."""
        self.node.add_hook(hook, name)

    def delete_hook(self, name: str) -> None:
        """Take a hook away."""
        self.node.delete_hook(name)
