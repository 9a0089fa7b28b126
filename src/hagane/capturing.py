"""``hagane.capture``: a Python function or model as a graph."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx.defs
import onnx_ir as ir

from hagane.errors import InvalidArgument, KernelError
from hagane.frontends.capture.capture import Captured, capture_object
from hagane.frontends.libraries.meaning import MeaningTables
from hagane.frontends.python.values.type_text import TensorText, parse_type
from hagane.graph import to_proto
from hagane.runtime import InferenceSession
from hagane.symbolic import evaluate, symbols_of

__all__ = ["capture", "difference"]

_LEAST_OPSET = (
    21  # what all runtimes of today read; forms of operators are those of the current one
)


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
    outputs are called by their path in what is returned (``logits``, ``hidden.0``), ``output``
    where one tensor is returned.

    Args:
        model_or_function: A module, a method or a function with Python source.
        types_or_examples: The types of its arguments as text (``"float32[batch, 3]"``), or
            examples, whose sizes are fixed.
        dynamic: Names for sizes of examples: ``{"x": {0: "batch"}}``.
        opset: The opset of the file; the least one that has all operators, 21 or later, if None.
        named: Types or examples by name.

    Raises:
        CaptureError: Some of it cannot become a graph; each problem is named with file and line.
        InvalidArgument: A text that is no type, or an opset that cannot be had.
    """
    names = _argument_names(model_or_function)
    given = [
        _typed(value, _dynamic(dynamic, i, names)) for i, value in enumerate(types_or_examples)
    ]
    by_name = {n: _typed(value, _dynamic(dynamic, n, names)) for n, value in named.items()}
    return model_of(capture_object(model_or_function, given, by_name, MeaningTables()), opset)


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
    needed = max(_LEAST_OPSET, *(_introduced(node) for node in found.graph.all_nodes()), 0)
    model = ir.Model(found.graph, ir_version=10, producer_name="hagane", functions=[])
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


# Original and graph.

_SIZES = (2, 1, 3, 5)  # what named sizes are drawn from


def difference(
    original: Any, model: ir.Model, types: Mapping[str, str], *, draws: int = 12, seed: int = 0
) -> str:
    """Run original and graph on drawn inputs; return how they differ, empty if they do not.

    Args:
        original: The function or model.
        model: Its graph.
        types: The types of its arguments by name, as text.
        draws: How many inputs are drawn; sizes change from one to the next, and floats are drawn
            around zero, above and below it, so that branches go both ways.
        seed: Of the random numbers.
    """
    random = np.random.default_rng(seed)
    session = InferenceSession(to_proto(model).SerializeToString())
    names = {str(value.name) for value in model.graph.inputs}
    for number in range(draws):
        given = _drawn(types, number, random)
        feeds = {name: array for name, array in given.items() if name in names}
        shapes = ", ".join(f"{n}: {a.dtype}{list(a.shape)}" for n, a in given.items())
        theirs = _called(original, given)
        try:
            ours: Any = session.run(None, feeds)
        except KernelError as error:
            ours = error
        if isinstance(theirs, Exception) or isinstance(ours, Exception):
            if isinstance(theirs, Exception) and isinstance(ours, Exception):
                continue
            return f"with {shapes}: the original {_ended(theirs)}, the graph {_ended(ours)}"
        for name, a, b in zip(session.get_outputs(), _flat(theirs), ours, strict=False):
            told = _unlike(np.asarray(a), np.asarray(b))
            if told:
                return f"with {shapes}: output '{name.name}': {told}"
    return ""


def _drawn(
    types: Mapping[str, str], number: int, random: np.random.Generator
) -> dict[str, np.ndarray[Any, Any]]:
    sizes: dict[str, int] = {}
    given = {}
    for name, text in types.items():
        type_ = parse_type(text)
        if not isinstance(type_, TensorText):
            given[name] = np.array(int(random.integers(1, 6)))
            continue
        shape = []
        for axis in type_.axes:
            for symbol in sorted(symbols_of(axis.size)) if axis.size is not None else ():
                sizes.setdefault(symbol, _SIZES[(number + len(sizes)) % len(_SIZES)])
            shape.append(1 if axis.size is None else int(str(evaluate(axis.size, sizes))))
        dtype = type_.dtypes[0].numpy() if type_.dtypes else np.dtype(np.float32)
        given[name] = _array(dtype, tuple(shape), number, random)
    return given


def _array(
    dtype: np.dtype[Any], shape: tuple[int, ...], number: int, random: np.random.Generator
) -> np.ndarray[Any, Any]:
    if dtype.kind in "iu":
        return random.integers(0, 4, shape).astype(dtype)
    if dtype.kind == "b":
        return random.random(shape) < 0.5
    centre = (0.0, 1.5, -1.5)[number % 3]
    return (random.standard_normal(shape) + centre).astype(dtype)


def _called(original: Any, given: Mapping[str, np.ndarray[Any, Any]]) -> Any:
    values: dict[str, Any] = dict(given)
    if _is_torch(original):
        import torch

        values = {name: torch.from_numpy(np.array(array)) for name, array in given.items()}
    try:
        return original(**values)
    except Exception as error:
        return error


def _is_torch(original: Any) -> bool:
    owner = getattr(original, "__self__", original)
    if any(base.__module__.startswith("torch.") for base in type(owner).__mro__):
        return True
    names = getattr(original, "__globals__", {})
    used = getattr(getattr(original, "__code__", None), "co_names", ())
    methods = {"numpy", "np"} & {*used}
    return any(getattr(v, "__name__", "").startswith("torch") for v in names.values()) and not (
        methods
    )


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, tuple | list):
        for item in value:
            yield from _flat(item)
    elif hasattr(value, "detach"):
        yield value.detach().cpu().numpy()
    elif value is not None and not isinstance(value, str):
        yield value


def _ended(value: Any) -> str:
    if isinstance(value, Exception):
        return f"raises {type(value).__name__}: {str(value)[:200]}"
    return "returns"


def _unlike(expected: np.ndarray[Any, Any], found: np.ndarray[Any, Any]) -> str:
    if expected.shape != found.shape:
        return f"the original has shape {list(expected.shape)}, the graph {list(found.shape)}"
    if not np.allclose(
        expected.astype(np.float64), found.astype(np.float64), rtol=1e-3, atol=1e-4, equal_nan=True
    ):
        worst = float(np.max(np.abs(expected.astype(np.float64) - found.astype(np.float64))))
        return f"the values differ by up to {worst:.3g}"
    return ""
