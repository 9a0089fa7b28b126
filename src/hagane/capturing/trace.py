"""``hagane.trace``: the operators that a call of define-by-run code applies, as a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.capturing.capture import onnx_model
from hagane.errors import CaptureError, InvalidArgument
from hagane.frontends.capture.emitting.prune import prune
from hagane.frontends.capture.interface.names import joined
from hagane.graph.names import separate_names
from hagane.graph.types import TensorType, to_ir_shape, to_ir_type
from hagane.nn.autograd.node import VariableNode
from hagane.nn.autograd.variable import Variable
from hagane.ops.builder import Call, Nodes, interpreting
from hagane.ops.gradient.record import Recorder
from hagane.ops.inference import GraphTypes
from hagane.ops.values import array_dtype
from hagane.passes.expanding.expand_composed import expand_own


def trace(function: Any, *examples: Any, opset: int | None = None) -> ir.Model:
    """Return the computation of one call of define-by-run code, as a model with fixed sizes.

    The call is run and its operators are recorded, for functions without source. It is run
    again with other numbers: where they decide on operators, or reach the result past the
    recorded operators (``x.array`` in NumPy), the call is refused. A branch that none of these
    numbers takes is not noticed. Inputs are ``x0``, ``x1`` and so on; parameters of a link keep
    their path.

    Args:
        function: A function or link over :class:`hagane.Variable`.
        examples: Arrays or variables, one for each argument.
        opset: As for :func:`hagane.capture`.

    Raises:
        CaptureError: The computation depends on the numbers, or was not recorded.
        InvalidArgument: No example was given, or one is no array.
    """
    if not examples:
        raise InvalidArgument("hagane.trace: expected an example for each argument, got none")
    arrays = [np.asarray(getattr(x, "array", x)) for x in examples]
    for place, array in enumerate(arrays):
        if array.dtype.kind not in "biuf":
            raise InvalidArgument(
                f"hagane.trace: expected an array as example {place}, got {array.dtype}"
            )
    first = _Traced(function, arrays)
    random = np.random.default_rng(0)
    for scale, noise in _OTHERS:
        others = [_other(array, scale, noise, random) for array in arrays]
        first.compare(_Traced(function, others))
    return onnx_model(first.graph, opset)


# Factor of the examples for other numbers, and the added noise.
_OTHERS = ((1.0, 1.0), (-1.0, 0.0), (0.0, 0.01), (10.0, 1.0))


def _other(
    array: np.ndarray[Any, Any], scale: float, noise: float, random: np.random.Generator
) -> np.ndarray[Any, Any]:
    """Return other numbers of the same kind; integers are drawn from the given ones."""
    if array.dtype.kind == "f":
        drawn = random.standard_normal(array.shape) * noise
        return np.asarray(array * scale + drawn, array.dtype)
    return np.asarray(random.permutation(array.ravel()).reshape(array.shape), array.dtype)


class _Traced:
    """One recorded call as a graph."""

    def __init__(self, function: Any, arrays: Sequence[np.ndarray[Any, Any]]):
        inputs = [Variable(array) if array.dtype.kind == "f" else array for array in arrays]
        recorder = Recorder()
        with interpreting(recorder):
            result = function(*inputs)
        self.calls = recorder.calls
        self.parameters = _parameters(function)
        self.constants: list[tuple[str, np.ndarray[Any, Any]]] = []
        self._made = {_key(value): call for call in self.calls for value in call.outputs or ()}
        self._values: dict[int, ir.Value] = {}
        self._kept: list[Any] = [*inputs, result]
        self.graph = ir.Graph([], [], nodes=[], name="traced")
        self.types = GraphTypes()
        for place, (value, array) in enumerate(zip(inputs, arrays, strict=True)):
            made = ir.Value(name=f"x{place}")
            type_ = TensorType(array_dtype(array), tuple(array.shape))
            self.types.types[made] = type_
            made.type, made.shape = to_ir_type(type_), to_ir_shape(type_.shape)
            self.graph.inputs.append(made)
            self._values[_key(value)] = made
        self.nodes = Nodes(self.graph, self.types)
        with interpreting(self.nodes):
            for path, value in _results(result, ""):
                made = self.nodes._node("Identity", self._value(value))
                made.name = path or "output"
                self.graph.outputs.append(made)
        expand_own(self.graph, self.types)
        prune(self.graph)
        separate_names(self.graph)

    def _value(self, value: Any) -> ir.Value:
        """Return the graph's value for a value of the program."""
        pending = [value]
        while pending:
            top = pending[-1]
            key = _key(top)
            if key in self._values:
                pending.pop()
                continue
            call = self._made.get(key)
            made_by = call or getattr(getattr(top, "_node", top), "_creator_node", None)
            if made_by is None:
                self._values[key] = self._constant(top)
                continue
            operands = made_by.inputs
            missing = [x for x in operands if x is not None and _key(x) not in self._values]
            if missing:
                pending += missing
                continue
            inputs = tuple(None if x is None else self._values[_key(x)] for x in operands)
            if call is None:
                self._write(made_by, inputs)
                continue
            outputs = call.outputs or ()
            made = self.nodes.apply(Call(call.op, inputs, call.attributes), len(outputs))
            for output, one in zip(outputs, made, strict=True):
                self._values[_key(output)] = one
        return self._values[_key(value)]

    def _write(self, function: Any, inputs: Sequence[ir.Value | None]) -> None:
        """Write in operators what a function computed on arrays."""
        made = function.operators(*inputs)
        if made is None:
            raise CaptureError(
                [
                    f"the function {function.label} computes on arrays, which is not recorded; "
                    "write it with functions of hagane that have operators, or define its "
                    "'operators' beside 'forward'"
                ]
            )
        for output, one in zip(function.outputs, made, strict=True):
            if output() is not None:
                self._values[_key(output())] = one

    def _constant(self, value: Any) -> ir.Value:
        if isinstance(value, VariableNode):
            value = value.get_variable()
        array = value.array if isinstance(value, Variable) else value
        if id(array) in self._values:  # an argument without gradient
            return self._values[id(array)]
        array = np.asarray(array)
        name = self.parameters.get(id(value), "")
        if not name:
            self.constants.append((str(len(self.constants)), array))
        made = self.nodes.initializer(array, name or "constant")
        made.name = name or made.name
        return made

    def compare(self, other: _Traced) -> None:
        """Refuse a call that does something else for other numbers."""
        ours, theirs = (
            [(node.op_type, len(node.inputs)) for node in one.graph] for one in (self, other)
        )
        if ours != theirs:
            raise CaptureError(
                ["the operators depend on the numbers in the inputs; capture reads branches and "
                 "loops from the source: hagane.capture"]
            )  # fmt: skip
        for (_, a), (_, b) in zip(self.constants, other.constants, strict=True):
            if a.shape != b.shape or not np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
                raise CaptureError(
                    [f"an array of shape {list(a.shape)} that is no parameter differs from call to "
                     "call: it is random, or computed from an input by NumPy (x.array), which is "
                     "not recorded"]
                )  # fmt: skip


def _key(value: Any) -> int:
    """Return the mark that tells values apart: several variables may stand for one node."""
    return id(value.node) if isinstance(value, Variable) else id(value)


def _parameters(function: Any) -> Mapping[int, str]:
    owner = getattr(function, "__self__", function)
    if not hasattr(owner, "namedparams"):
        return {}
    return {id(p): path.strip("/").replace("/", ".") for path, p in owner.namedparams()}


def _results(value: Any, path: str) -> list[tuple[str, Any]]:
    """Return the tensors of a result with their paths."""
    if isinstance(value, Mapping):
        parts = list(value.items())
    elif isinstance(value, tuple | list):
        parts = list(enumerate(value))
    elif value is None:
        return []
    elif isinstance(value, Variable | np.ndarray | np.generic | int | float):
        return [(path, value)]
    else:
        raise CaptureError([f"the result '{path}' is a {type(value).__name__}, no tensor"])
    return [one for name, part in parts for one in _results(part, joined(path, name))]


__all__ = ["trace"]
