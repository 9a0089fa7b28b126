"""The engine behind a captured graph, and weights that change in place.

Weights that rest are constants of a session, which folds and packs them ahead. Passes look at the
values that constants hold (zeros, equal ones), so other content may ask for another program: a
first change makes a session anew. Weights that change again are inputs of one session that serves
of any content, packed in each run, until they rest for some runs.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.capturing.tensors import array_of
from hagane.capturing.variables import is_variable
from hagane.capturing.watching import WatchedArray, WatchedTensors
from hagane.runtime import InferenceSession

# Runs without a change after which weights are taken for constants again. A session takes about as
# long to make as some dozens of runs take longer with weights that are inputs.
_AT_REST = 32


Marks = tuple[Any, ...]  # of all tensors, then of each array


def _flat(marks: Marks) -> list[int]:
    return [*marks[0], *marks[1:]]


def _content(found: Any) -> Any:
    if isinstance(found, np.ndarray):
        return found
    return found.array if is_variable(found) else array_of(found)


class Sessions:
    """Runs a model with its weights as they are at each run.

    Args:
        model: The model, whose initializers hold the weights as they are now.
        weights: Tensors of PyTorch, then variables and arrays of NumPy, and the initializers that
            they are.
    """

    def __init__(self, model: ir.Model, weights: Sequence[tuple[Any, ir.Value]]):
        self._model, self._weights = model, tuple(weights)
        self._lock = threading.Lock()
        arrays = [isinstance(found, np.ndarray) or is_variable(found) for found, _ in weights]
        self._arrays = [WatchedArray(w[0]) for w, own in zip(weights, arrays, strict=True) if own]
        self._tensors = WatchedTensors(
            [w[0] for w, own in zip(weights, arrays, strict=True) if not own]
        )
        self._seen: Marks = ()
        self._seen = self.marks()
        self._held = self._seen  # versions that the constants hold
        # All results may be known, and only a call's arguments be compared.
        self._fixed: Any = InferenceSession(model) if model.graph.outputs else None
        self._open: Any = None
        self._fed: dict[str, Any] = {}  # tensors that the open session is given, by name
        self._changes = self._rested = 0

    def marks(self) -> Marks:
        """Return how often each weight was found to be another one."""
        with self._lock:
            now = (self._tensors.marks(), *(array.mark() for array in self._arrays))
            return self._seen if now == self._seen else now

    def expect_updates(self) -> None:
        """Note that gradients are computed, after which parameters may be updated."""
        with self._lock:
            self._tensors.expect_updates()

    def are_seen(self, now: Marks) -> bool:
        """Whether the weights are as they were in the last run."""
        return now is self._seen

    def run(self, feeds: Mapping[str, Any], now: Marks | None = None) -> list[Any]:
        """Return the outputs, in the order of the graph.

        Args:
            feeds: The inputs by name.
            now: The marks of the weights, if they were looked at for this run.

        Raises:
            KernelError: A node failed.
        """
        if self._fixed is None:
            return []
        if now is None:
            now = self.marks()
        with self._lock:
            session, fed = self._chosen(now)
        if fed:
            feeds = {**feeds, **{name: _content(tensor) for name, tensor in fed.items()}}
        found: list[Any] = session.run(None, feeds)
        return found

    def _chosen(self, now: Marks) -> tuple[Any, Mapping[str, Any]]:
        """Return the session for the weights as they are, and the tensors that it is given."""
        self._rested += 1
        if now is self._seen is self._held:  # nearly always
            return self._fixed, {}
        if now != self._seen:
            self._seen, self._rested = now, 0
            self._changes += 1
        if now == self._held:
            return self._fixed, {}
        if self._changes > 1 and self._rested < _AT_REST:
            self._open_for(now)
            return self._open, self._fed
        for (tensor, value), old, new in zip(
            self._weights, _flat(self._held), _flat(now), strict=True
        ):
            if old != new:
                value.const_value = ir.tensor(_content(tensor), name=value.name)
        self._fixed = InferenceSession(self._model)
        self._held = now
        return self._fixed, {}

    def _open_for(self, now: Marks) -> None:
        """Have a session to which all weights are inputs that the constants no longer hold."""
        changed = {
            str(value.name): tensor
            for (tensor, value), old, new in zip(
                self._weights, _flat(self._held), _flat(now), strict=True
            )
            if old != new
        }
        if changed.keys() <= self._fed.keys():
            return
        fed = {**self._fed, **changed}
        model = self._model.clone()
        for name in fed:
            value = model.graph.initializers.pop(name)
            value.const_value = None
            model.graph.inputs.append(value)
        self._open, self._fed = InferenceSession(model), fed


__all__ = ["Sessions"]
