"""``hagane.capture``: a Python function or model as a graph."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx.defs
import onnx_ir as ir

from hagane.capturing.arguments import Reader, example_leaf
from hagane.capturing.changes import check_apart
from hagane.capturing.leaves import NumberLeaf, Obstacle, TensorLeaf, replaced
from hagane.capturing.portable import portable
from hagane.errors import CaptureError, InvalidArgument
from hagane.frontends.capture.capture import Captured, capture_object
from hagane.frontends.capture.interface.structure import Example
from hagane.frontends.libraries.meaning import MeaningTables
from hagane.frontends.python.values.type_text import tensor_text

__all__ = ["CaptureNotice", "capture", "model_of", "onnx_model"]

_LEAST_OPSET = 21  # read by all runtimes of today; forms of operators are those of the current one


class CaptureNotice(UserWarning):
    """A part of a program that its graph does not have: a ``print`` or ``assert`` of a tensor."""


def capture(
    model_or_function: Any,
    *types_or_examples: Any,
    dynamic: Any = None,
    opset: int | None = None,
    keep_prints: bool = False,
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
            examples, whose sizes are fixed. The tensors in lists, dicts and objects are inputs
            called by their path, ``cache.layers.0.keys``; all else that an object holds is known.
            Their parts that the call changes are outputs of the same name with ``.new``; so are
            arrays and tensors among the examples that it writes in place, each of which has to
            have memory of its own.
        dynamic: Names for sizes of examples: ``{"x": {0: "batch"}}``; those of ``"cache"`` are for
            all tensors in it.
        opset: The opset of the file, from 13 on; the least one that has all operators, 21 or later,
            if None.
        keep_prints: Whether tensors that the program prints or asserts, outside of branches and
            loops, are outputs, ``print.0`` and ``assert.0``; each one left out is told of by a
            :class:`CaptureNotice`.
        named: Types or examples by name; of attributes that the call changes too, by their path,
            or None for a graph of the first call, before which they are None. ``self.`` before the
            path tells an attribute from an argument of its name.

    Raises:
        CaptureError: Some of it cannot become a graph; each problem is named with file and line.
        InvalidArgument: A text that is no type, a size of ``dynamic`` that is not there, an opset
            that cannot be had, or a class whose objects are made of arguments.
    """
    model_or_function = _made(model_or_function)
    names = _argument_names(model_or_function)
    keys = [names[i] if i < len(names) else str(i) for i in range(len(types_or_examples))]
    values = [*zip(keys, types_or_examples, strict=True), *named.items()]
    plain = hasattr(type(model_or_function), "named_modules")  # modules take arrays for tensors
    examples: list[TensorLeaf] = []
    given = _types(values, {} if dynamic is None else dynamic, plain, examples)
    by_name = {name: given.pop() for name in reversed(named)}
    by_name = {name: by_name[name] for name in named}
    found = capture_object(
        model_or_function, given, by_name, MeaningTables(), keep_prints=keep_prints
    )
    try:
        check_apart(found.changes, examples)
    except Obstacle as error:
        raise CaptureError([str(error)]) from None
    for text in found.left_out:
        warnings.warn(text, CaptureNotice, stacklevel=2)
    return portable(model_of(found, opset))


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


def _types(
    values: Sequence[tuple[str, Any]], dynamic: Any, plain: bool, examples: list[TensorLeaf]
) -> list[Any]:
    """Return types and examples with names for some sizes, objects with such in their parts.

    Args:
        values: The arguments by name.
        dynamic: The names, as :func:`capture` takes them.
        plain: Whether arrays stand for the tensors of a module.
        examples: Is filled with the tensors among the arguments.
    """
    if not isinstance(dynamic, Mapping):
        raise InvalidArgument(
            f"capture: expected dynamic as names by argument and axis, "
            f"{{'x': {{0: 'batch'}}}}; got {dynamic!r}"
        )
    reader = Reader(example_leaf, _text)
    used: set[str] = set()

    def example(leaf: TensorLeaf | NumberLeaf) -> Any:
        if isinstance(leaf, NumberLeaf):
            return leaf.value
        examples.append(leaf)
        sizes: list[Any] = list(leaf.shape)
        for path in _around(leaf.path):
            if path in dynamic:
                used.add(path)
                _rename(sizes, dynamic[path], leaf.path, whole=path == leaf.path)
                break
        text = f"{leaf.dtype}[{', '.join(map(str, sizes))}]"
        if plain and leaf.path in paths:
            return text
        return Example(text, leaf.kind, type(leaf.value) is np.ndarray)

    paths = {path for path, _ in values}
    trees = [_read(reader, value, path) for path, value in values]
    made: list[Any] = replaced(trees, example)
    unused = [path for path in dynamic if path not in used]
    if unused:
        raise InvalidArgument(
            f"capture: dynamic names the sizes of '{unused[0]}', which is no example; the "
            f"arguments are: {', '.join(paths) or 'none'}"
        )
    return made


def _read(reader: Reader, value: Any, path: str) -> Any:
    if isinstance(value, str):
        return value
    for text in getattr(value, "__metadata__", ()):  # hagane.Shaped["…"]
        return text
    try:
        is_types = _is_of_types(value) and _has_type(value)
        return reader.read(_apart(value) if is_types else value, path)
    except Obstacle as error:
        raise CaptureError([str(error)]) from None


def _is_of_types(value: Any) -> bool:
    """Whether a container holds types of tensors and plain values, and nothing else."""
    parts = list(value.values()) if type(value) is dict else value
    if type(parts) not in (list, tuple):
        return False
    inner = [part for part in parts if type(part) in (list, tuple, dict)]
    plain = [part for part in parts if type(part) in (str, int, float, bool, type(None))]
    return len(inner) + len(plain) == len(parts) and all(map(_is_of_types, inner))


def _has_type(value: Any) -> bool:
    """Whether a container holds a type of a tensor."""
    if isinstance(value, str):
        return tensor_text(value) is not None
    parts = value.values() if isinstance(value, dict) else value
    return type(value) in (list, tuple, dict) and any(map(_has_type, parts))


def _apart(value: Any) -> Any:
    """Return containers of types made anew: one that is given twice stands for two of the run."""
    if type(value) is dict:
        return {name: _apart(part) for name, part in value.items()}
    return type(value)(map(_apart, value)) if type(value) in (list, tuple) else value


def _text(value: str) -> Any:
    """Return a text in a list or object: the type of a tensor if it reads like one."""
    return value if tensor_text(value) is None else Example(value)


def _around(path: str) -> Iterator[str]:
    """Yield a path and the paths of the values around it."""
    while path:
        yield path
        path = path.rpartition(".")[0]


def _rename(sizes: list[Any], names: Any, path: str, *, whole: bool) -> None:
    """Give names to sizes of an example.

    Args:
        sizes: The sizes, changed in place.
        names: The names, by axis or for all.
        path: The path of the example.
        whole: Whether the names are for this one alone, and each of its axes has to be there.
    """
    pairs = names.items() if isinstance(names, Mapping) else enumerate(names)
    for axis, name in pairs:
        if not -len(sizes) <= axis < len(sizes):
            if whole:
                raise InvalidArgument(
                    f"capture: dynamic names axis {axis} of '{path}', which has {len(sizes)} axes"
                )
        elif name:
            sizes[axis] = name


def model_of(found: Captured, opset: int | None = None) -> ir.Model:
    """Return a captured program as a model."""
    return onnx_model(found.graph, opset)


def onnx_model(graph: ir.Graph, opset: int | None = None) -> ir.Model:
    """Return a graph as a model of the least opset that has all its operators, or of another one.

    Raises:
        InvalidArgument: It cannot be had in that opset.
    """
    names = {node.op_type for node in graph.all_nodes() if not node.domain}
    needed = max((_LEAST_OPSET, *(_first_opsets().get(name, 0) for name in names)))
    model = ir.Model(graph, ir_version=10, producer_name="hagane", functions=[])
    model.graph.opset_imports[""] = max(needed, opset or 0)
    if opset is not None and opset < needed:
        from hagane.capturing.opsets import in_opset

        model = in_opset(model, opset)
    return model


@cache
def _first_opsets() -> dict[str, int]:
    """Return the first opset that has each operator of ONNX."""
    found: dict[str, int] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.domain:
            found[schema.name] = min(schema.since_version, found.get(schema.name, 1000))
    return found
