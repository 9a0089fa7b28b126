"""Gradients of a call from its graph, where the program would compute something else by now.

They come from the program, run again when they are wanted. What it read may have changed since: a
number of a loop that it is called in, the mode of a module, a hook.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hagane.capturing.leaves import TensorLeaf, Tree, leaves
from hagane.capturing.tensors import array_of, as_array, returned
from hagane.capturing.variant import Variant
from hagane.errors import HaganeError
from hagane.frontends.capture.capture import GLOBAL_HOOKS, has_global_hooks
from hagane.ops.inference import infer_types
from hagane.passes.differentiate import differentiate
from hagane.passes.legalise import legalise
from hagane.runtime import InferenceSession


class Later:
    """The gradients of a call whose program may have changed.

    Args:
        variant: The graph of the call.
        tree: Its arguments.
        names: Its outputs through which gradients may come.
    """

    def __init__(self, variant: Variant, tree: Mapping[str, Tree], names: Sequence[str]):
        self._variant, self._names = variant, tuple(names)
        self._leaves = leaves(tree)
        self._dtype = sys.modules["torch"].get_default_dtype()

    def _changed(self) -> str:
        """Return what has changed since the call, empty if nothing that matters has."""
        torch = sys.modules["torch"]
        if torch.get_default_dtype() is not self._dtype:
            return "the default element type was another one"
        with torch.enable_grad():
            return GLOBAL_HOOKS if has_global_hooks() else self._variant.broken()

    def gradients(
        self, tensors: Sequence[Any], gradients: Sequence[Any], is_recorded: bool
    ) -> list[Any] | None:
        """Return the gradients of a call's tensors; None where the program gives them still.

        Args:
            tensors: Those among the arguments in order, then those that the program read.
            gradients: Those of the outputs, or None.
            is_recorded: Whether gradients of gradients are wanted.

        Raises:
            RuntimeError: Neither program nor graph has them.
        """
        told = self._changed()
        if not told:
            return None
        captured = self._variant.captured
        assert captured is not None
        reason = ""
        if is_recorded:
            reason = "gradients of gradients follow from the program alone"
        elif captured.own_gradients:
            reason = "a torch.autograd.Function has gradients of its own"
        try:
            found = None if reason else self._from_graph(tensors, gradients)
        except HaganeError as error:
            found, reason = None, str(error)
        if found is None:
            raise RuntimeError(
                f"hagane.compile: gradients of a call: {told}, and its graph does not give them: "
                f"{reason}; call backward() before that changes, or the original for gradients"
            )
        return found

    def _from_graph(self, tensors: Sequence[Any], gradients: Sequence[Any]) -> list[Any]:
        variant = self._variant
        given = [x for x in self._leaves if isinstance(x, TensorLeaf) and x.kind == "torch.Tensor"]
        weights = variant.weight_names
        paths = [*(leaf.path for leaf in given), *weights]
        known = dict(zip(paths, tensors, strict=True))
        wanted = tuple(name for name, tensor in known.items() if tensor.requires_grad)
        seeds = {n: g for n, g in zip(self._names, gradients, strict=True) if g is not None}
        key = tuple(seeds), wanted
        if key not in variant.ways:
            variant.ways[key] = _made(variant, *key)
        session = variant.ways[key]
        feeds = {
            leaf.path: as_array(leaf) if isinstance(leaf, TensorLeaf) else leaf.value
            for leaf in self._leaves
        }
        feeds.update((name, array_of(known[name])) for name in weights)
        feeds.update((f"{n}.seed", _as_output(variant, n, array_of(g))) for n, g in seeds.items())
        names = [one.name for one in session.get_inputs()]
        outputs = [one.name for one in session.get_outputs()]
        made = session.run(outputs, {name: feeds[name] for name in names}) if outputs else []
        found = dict(zip(outputs, made, strict=True))
        results = [found.get(f"{name}.gradient") for name in paths]
        return [
            None if array is None else returned(array, _KINDS[tensor.is_complex()])
            for array, tensor in zip(results, tensors, strict=True)
        ]


_KINDS = {False: "torch.Tensor", True: "complex torch.Tensor"}


def _as_output(variant: Variant, name: str, gradient: Any) -> Any:
    """Return the gradient of a result as that of the output that it is."""
    assert variant.captured is not None
    view = variant.captured.views.get(name)
    if view is not None and view.axes:  # the graph gives it as it lies in memory
        gradient = gradient.transpose(np.argsort(view.axes))
    return np.ascontiguousarray(gradient)


def _made(variant: Variant, of: Sequence[str], wanted: Sequence[str]) -> InferenceSession:
    """Return the graph of gradients; weights, as they were, are inputs."""
    assert variant.model is not None
    model = variant.model.clone()
    graph = model.graph
    for name in variant.weight_names:
        value = graph.initializers.pop(name)
        value.const_value = None
        graph.inputs.append(value)
    legalise(model)
    types = infer_types(model)
    outputs = {str(value.name): value for value in graph.outputs}
    inputs = {str(value.name): value for value in graph.inputs}
    known = [inputs[name] for name in wanted if name in inputs]
    count = len(graph.outputs)
    differentiate(model, types, [outputs[name] for name in of], known, seeds=True)
    del graph.outputs[:count]
    return InferenceSession(model)


__all__ = ["Later"]
