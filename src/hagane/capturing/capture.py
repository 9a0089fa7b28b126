"""``hagane.capture``: a Python function or model as a graph."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import onnx.defs
import onnx_ir as ir

from hagane.errors import InvalidArgument
from hagane.frontends.capture.capture import Captured, capture_object
from hagane.frontends.libraries.meaning import MeaningTables
from hagane.graph import to_proto

__all__ = ["capture", "model_of", "onnx_model"]

_LEAST_OPSET = 21  # read by all runtimes of today; forms of operators are those of the current one


def capture(
    model_or_function: Any,
    *types_or_examples: Any,
    dynamic: Any = None,
    opset: int | None = None,
    **named: Any,
) -> ir.Model:
    """Return the graph of a function or model, with its branches and loops.

    The source is interpreted, never run. Inputs keep the names of the arguments and the sizes of
    their types; arrays that are attributes or globals become initializers under their path;
    outputs are called by their path in the result (``logits``, ``hidden.0``), ``output``
    where one tensor is returned, with ``.new`` appended where an input has that name.

    Args:
        model_or_function: A module or link, a method or a function with Python source; a class
            stands for a new object of it.
        types_or_examples: The types of its arguments as text (``"float32[batch, 3]"``), or
            examples, whose sizes are fixed.
        dynamic: Names for sizes of examples: ``{"x": {0: "batch"}}``.
        opset: The opset of the file; the least one that has all operators, 21 or later, if None.
        named: Types or examples by name.

    Raises:
        CaptureError: Some of it cannot become a graph; each problem is named with file and line.
        InvalidArgument: A text that is no type, an opset that cannot be had, or a class whose
            objects are made of arguments.
    """
    model_or_function = _made(model_or_function)
    names = _argument_names(model_or_function)
    given = [
        _typed(value, _dynamic(dynamic, i, names)) for i, value in enumerate(types_or_examples)
    ]
    by_name = {n: _typed(value, _dynamic(dynamic, n, names)) for n, value in named.items()}
    return model_of(capture_object(model_or_function, given, by_name, MeaningTables()), opset)


def _made(found: Any) -> Any:
    """Return an object of a class; others as they are."""
    if not isinstance(found, type):
        return found
    try:
        return found()
    except TypeError as error:
        raise InvalidArgument(
            f"{found.__name__}() cannot be made: {error}; give an object of the class"
        ) from None


def _argument_names(found: Any) -> list[str]:
    try:
        return list(inspect.signature(getattr(found, "forward", found)).parameters)
    except (TypeError, ValueError):
        return []


def _dynamic(dynamic: Any, key: int | str, names: list[str]) -> Mapping[int, str]:
    """Return the names that sizes of one example have."""
    if not dynamic:
        return {}
    if isinstance(key, int):
        key = names[key] if key < len(names) else key
    found = dynamic.get(key, {})
    return dict(enumerate(found)) if isinstance(found, tuple | list) else found


def _typed(value: Any, names: Mapping[int, str]) -> Any:
    """Return an annotation's text, or the type of an example with names for some sizes."""
    for text in getattr(value, "__metadata__", ()):  # hagane.Shaped["…"]
        return text
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        dtype = str(value.dtype).removeprefix("torch.")
        sizes = [str(names.get(axis) or size) for axis, size in enumerate(value.shape)]
        return f"{dtype}[{', '.join(sizes)}]"
    return value


def model_of(found: Captured, opset: int | None = None) -> ir.Model:
    """Return a captured program as a model."""
    return onnx_model(found.graph, opset)


def onnx_model(graph: ir.Graph, opset: int | None = None) -> ir.Model:
    """Return a graph as a model of the least opset that has all its operators, or of another one.

    Raises:
        InvalidArgument: It cannot be had in that opset.
    """
    needed = max(_LEAST_OPSET, *(_introduced(node) for node in graph.all_nodes()), 0)
    model = ir.Model(graph, ir_version=10, producer_name="hagane", functions=[])
    model.graph.opset_imports[""] = max(needed, opset or 0)
    if opset is not None and opset < needed:
        model = _converted(model, opset)
    return model


def _introduced(node: ir.Node) -> int:
    if node.domain:
        return 0
    versions = [s.since_version for s in onnx.defs.get_all_schemas_with_history()
                if s.name == node.op_type and not s.domain]  # fmt: skip
    return min(versions, default=0)


def _converted(model: ir.Model, opset: int) -> ir.Model:
    from onnx import version_converter

    try:
        found: ir.Model = ir.from_proto(version_converter.convert_version(to_proto(model), opset))
        return found
    except Exception as error:
        raise InvalidArgument(
            f"the graph needs opset {model.graph.opset_imports['']}; converting it to {opset} "
            f"failed: {error}"
        ) from None
