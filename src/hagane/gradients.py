"""``hagane.gradient``: a model that computes gradients of one that does not."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import onnx
import onnx.defs
import onnx_ir as ir

from hagane.errors import InvalidArgument
from hagane.graph import CURRENT_OPSETS, ModelSource, TensorType, load
from hagane.graph.walk import all_nodes
from hagane.ops.inference import GraphTypes, infer_types
from hagane.passes.differentiate import differentiate
from hagane.passes.legalise import legalise
from hagane.symbolic import Dim

# The forms of operators have not changed since.
_OLDEST_FORM = 21


def gradient(
    model: ModelSource,
    of: str | Sequence[str],
    with_respect_to: str | Sequence[str],
    *,
    seeds: bool = False,
) -> ir.Model:
    """Return the model with outputs that are gradients.

    To each value in ``with_respect_to`` comes an output ``<name>.gradient`` of its type: the
    derivative of the sum of all values in ``of``. The model's own outputs stay. Gradients of
    gradients follow from a second call on the result, which are called ``<name>.gradient.2`` where
    the first name is taken.

    Args:
        model: A path, bytes, an ``onnx.ModelProto`` or an ``onnx_ir.Model``; it is not changed.
        of: Names of values of one floating-point number each, or of any with ``seeds``.
        with_respect_to: Names of floating-point values: inputs, initializers, or values on the
            way.
        seeds: Give each value in ``of`` an input ``<name>.seed`` of its type, the gradient to
            start from, in place of 1.

    Raises:
        InvalidArgument: A name is unknown, or its value has no gradient: it is no floating-point
            tensor, has more than one element (without ``seeds``), or nothing in ``of`` depends
            on it.
        NotDifferentiable: An operator on the way has no gradient.
        UnsupportedModel: The model needs operators that hagane lacks.
        TypeInferenceError: The inputs of a node do not fit its operator.
    """
    loaded = load(model)
    oldest = loaded.opset_imports.get("", 1)
    legalise(loaded)
    types = infer_types(loaded)
    graph = loaded.graph
    known = _named_values(graph)
    outputs = [_find(known, types, name, "of") for name in _names(of, "of")]
    inputs = [
        _find(known, types, name, "with_respect_to")
        for name in _names(with_respect_to, "with_respect_to")
    ]
    if not seeds:
        _check_scalars(types, outputs)
    found = differentiate(loaded, types, outputs, inputs, seeds=seeds)
    unused = [str(value.name) for value, has in zip(inputs, found, strict=True) if not has]
    if unused:
        wanted = " or ".join(f"'{value.name}'" for value in outputs)
        listed = ", ".join(f"'{name}'" for name in unused)
        raise InvalidArgument(
            f"gradient: {wanted} does not depend on {listed}: leave that out of with_respect_to"
        )
    loaded.opset_imports[""] = _needed_opset(graph, oldest)
    return loaded


def _names(given: str | Sequence[str], argument: str) -> list[str]:
    names = [given] if isinstance(given, str) else list(given)
    if not names:
        raise InvalidArgument(f"gradient: expected at least one name in '{argument}'")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidArgument(f"gradient: '{twice}' stands twice in '{argument}'")
    return names


def _named_values(graph: ir.Graph) -> dict[str, ir.Value]:
    """Return the values of the main graph that have names."""
    values = [*graph.inputs, *graph.initializers.values()]
    values += [value for node in graph for value in node.outputs]
    return {value.name: value for value in values if value.name}


def _find(known: dict[str, ir.Value], types: GraphTypes, name: str, argument: str) -> ir.Value:
    if name not in known:
        near = get_close_matches(name, known, n=3, cutoff=0.6)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise InvalidArgument(f"gradient: '{argument}' names no value of the model: '{name}'{hint}")
    value = known[name]
    found = types.types.get(value)
    if not isinstance(found, TensorType) or not found.dtype.is_floating_point():
        shown = "of unknown type" if found is None else str(found)
        raise InvalidArgument(
            f"gradient: expected a floating-point tensor in '{argument}', "
            f"but '{name}' is {shown}, which has no gradient"
        )
    return value


def _check_scalars(types: GraphTypes, values: Sequence[ir.Value]) -> None:
    """Raise ``InvalidArgument`` unless each value has one element."""
    for value in values:
        found = types.types[value]
        assert isinstance(found, TensorType)
        shape: tuple[Dim, ...] = (-1,) if found.shape is None else found.shape
        if any(dim != 1 for dim in shape):
            raise InvalidArgument(
                f"gradient: expected one number to differentiate, but '{value.name}' is {found}: "
                f"reduce it to a scalar, or give its gradient as an input '{value.name}.seed' with "
                "seeds=True"
            )


def _needed_opset(graph: ir.Graph, oldest: int) -> int:
    """Return the first opset from ``oldest`` on that has all operators in their current form."""
    needed = max(oldest, _OLDEST_FORM)
    for name in {node.op_type for node in all_nodes(graph) if node.domain == ""}:
        version = needed
        while version < CURRENT_OPSETS[""] and not onnx.defs.has(name, version, ""):
            version += 1
        needed = max(needed, version)
    return needed
