"""The one way to apply an operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.errors import TypeInferenceError, UnsupportedModel
from hagane.graph.types import OptionalType, SequenceType, Shape, TensorType, Type
from hagane.ops.builder.interpreter import Call, Interpreter, interpreter_of
from hagane.ops.definition import Array, OpDef
from hagane.ops.registry import operators, schema
from hagane.ops.values import array_dtype
from hagane.symbolic import Dim, Expr

_NUMBERS = (bool, int, float, Expr)
# Of which the interpreter makes its own values.
_TAKEN = (*_NUMBERS, list, tuple, np.ndarray, np.generic)
# Classes that are none of these.
_SEEN: set[type] = set()


def op(name: str, /, *inputs: Any, outputs: int = 1, domain: str = "", **attributes: Any) -> Any:
    """Apply an operator to values, in the meaning that their interpreter gives it.

    Args:
        name: The operator.
        inputs: Values, None for an absent one. Arrays are constants. Numbers, sizes and lists of
            them are constants too, of the element type of the operands that the operator's schema
            wants to have the same one; without such, integers and sizes are int64, other numbers
            float32.
        outputs: How many outputs the call has.
        domain: The operator's domain.
        attributes: None keeps a default. Element types are ``ir.DataType``,
            subgraphs are Python functions from values to sequences of values.

    Returns:
        The output; a tuple where ``outputs`` is not one.

    Raises:
        UnsupportedModel: The operator has no definition.
        TypeInferenceError: The operands do not fit the operator.
    """
    interpreter = interpreter_of(inputs)
    definition = _find(domain, name)
    lifted = _lift(interpreter, definition, inputs)
    given = {key: _plain(item) for key, item in attributes.items() if item is not None}
    results = tuple(interpreter.apply(Call(definition, lifted, given), outputs))
    return results[0] if outputs == 1 else results


def _find(domain: str, name: str) -> OpDef:
    try:
        return operators()[domain, name]
    except KeyError:
        raise UnsupportedModel([f"operator '{name}' of domain '{domain or 'ai.onnx'}'"]) from None


def _plain(item: Any) -> Any:
    kind = type(item)
    if kind is int or kind is float or kind is tuple or kind is str:
        return item
    if isinstance(item, ir.DataType):
        return int(item)
    if isinstance(item, list):
        return tuple(item)
    return item.item() if isinstance(item, np.generic) else item


def _lift(interpreter: Interpreter, definition: OpDef, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Return the operands as values of one interpreter."""
    arrays = others = False
    for value in inputs:
        kind = type(value)
        if kind is np.ndarray:
            arrays = True
        elif kind not in _SEEN:
            if isinstance(value, _TAKEN):
                others = True
            else:
                _SEEN.add(kind)
    if not others:
        if not arrays:
            return tuple(inputs)
        make = interpreter.constant
        return tuple([make(value) if type(value) is np.ndarray else value for value in inputs])
    schema_ = schema(*definition.key)
    dtypes: dict[str, ir.DataType] = {}
    for index, value in enumerate(inputs):
        if value is None or _is_python(value) or not schema_.inputs:
            continue
        if isinstance(value, np.ndarray | np.generic):
            found: Type | None = TensorType(array_dtype(np.asarray(value)), np.shape(value))
        else:
            found = type_of(value)
        if isinstance(found, TensorType):
            dtypes.setdefault(schema_.input(index).type_variable, found.dtype)
    lifted: list[Any] = []
    for index, value in enumerate(inputs):
        if _is_python(value):
            variable = schema_.input(index).type_variable if schema_.inputs else ""
            value = interpreter.constant(content(value, dtypes.get(variable)))
        elif isinstance(value, np.ndarray | np.generic):
            value = interpreter.constant(np.asarray(value))
        lifted.append(value)
    return tuple(lifted)


def _is_python(value: Any) -> bool:
    """Whether a value is a number or size of Python, or a nest of lists of such."""
    if isinstance(value, list | tuple):
        return all(map(_is_python, value))
    return isinstance(value, _NUMBERS)


def content(value: Any, dtype: ir.DataType | None = None) -> Array:
    """Return numbers and sizes of Python as an array; one of objects where a size is a formula."""
    array = np.array(value, dtype=object) if _has_sizes(value) else np.array(value)
    if array.size == 0 and dtype is None:
        return array.astype(np.int64)
    if array.dtype == object:
        return array
    if dtype is not None:
        return array.astype(dtype.numpy())
    natural = {"f": np.float32, "i": np.int64, "u": np.int64}.get(array.dtype.kind)
    return array if natural is None else array.astype(natural)


def _has_sizes(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_has_sizes, value))
    return isinstance(value, Expr)


def type_of(value: Any) -> Type | None:
    """Return the type of a value, None where it is not known."""
    if isinstance(value, np.ndarray):
        return TensorType(array_dtype(value), value.shape)
    return interpreter_of((value,)).type_of(value)


def tensor_type(value: Any) -> TensorType:
    """Return the type of a tensor.

    Raises:
        TypeInferenceError: It is none, or its type is not known.
    """
    found = type_of(value)
    if not isinstance(found, TensorType):
        raise TypeInferenceError(f"expected a tensor whose type is known, got {found}")
    return found


def dtype_of(value: Any) -> ir.DataType:
    """Return the element type of a tensor."""
    return tensor_type(value).dtype


def shape_of(value: Any) -> Shape:
    """Return the sizes of a tensor.

    Raises:
        TypeInferenceError: Its rank is not known.
    """
    found = tensor_type(value)
    if found.shape is None:
        raise TypeInferenceError("expected a tensor whose number of axes is known")
    return found.shape


def rank_of(value: Any) -> int:
    """Return the number of axes of a tensor."""
    return len(shape_of(value))


def size_of(value: Any, axis: int) -> Dim:
    """Return one size of a tensor.

    Raises:
        TypeInferenceError: Its rank is not known, or it has no such axis.
    """
    shape = shape_of(value)
    if not -len(shape) <= axis < len(shape):
        raise TypeInferenceError(f"expected a tensor that has axis {axis}, got {len(shape)} axes")
    return shape[axis]


def content_of(value: Any) -> Array | None:
    """Return the content of a value if it is known; the elements of object arrays are sizes."""
    if isinstance(value, np.ndarray):
        return value
    return interpreter_of((value,)).content_of(value)


def is_continuous(value: Any) -> bool:
    """Whether a value holds real numbers, so that it can have a gradient."""
    return value is not None and _is_real(type_of(value))


def _is_real(type_: Type | None) -> bool:
    match type_:
        case TensorType(dtype=dtype):
            return dtype.is_floating_point()
        case SequenceType(element=element) | OptionalType(element=element):
            return element is None or _is_real(element)
    return False
