"""Operators on arrays: reference kernels, run at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hagane.errors import HaganeError
from hagane.graph.types import SequenceType, TensorType, Type
from hagane.machine import is_of_handler
from hagane.ops.builder.interpreter import Call
from hagane.ops.builder.types import check_call
from hagane.ops.definition import Array, OpDef, RuntimeValue
from hagane.ops.registry import schema
from hagane.ops.values import array_dtype, kernel_failed

# Runs an operator on arrays: its reference kernel, or something faster.
Kernel = Callable[[OpDef, Sequence[RuntimeValue], dict[str, Any], int], Sequence[RuntimeValue]]
# Contents of so many elements may decide the type of a result.
_MOST_ELEMENTS = 64
_MOST_CHECKED = 4096


def reference_kernel(
    op: OpDef, inputs: Sequence[RuntimeValue], attributes: dict[str, Any], n_outputs: int
) -> Sequence[RuntimeValue]:
    """Run the reference kernel of an operator."""
    return op(inputs, attributes, n_outputs)


class Eager:
    """Arrays, computed at once; a list is a sequence.

    Args:
        kernel: Runs one operator.
    """

    level = 0

    def __init__(self, kernel: Kernel = reference_kernel):
        self._kernel = kernel
        self._checked: set[object] = set()

    def apply(self, call: Call, n_outputs: int) -> Sequence[Any]:
        """Check the types of the operands, and run the kernel.

        Raises:
            TypeInferenceError: The operands do not fit the operator.
            KernelError: The kernel failed on their content.
        """
        self._check(call, n_outputs)
        defaults = schema(*call.op.key).defaults
        attributes = {**defaults, **call.attributes}
        try:
            with np.errstate(all="ignore"):
                results = self._kernel(call.op, list(call.inputs), attributes, n_outputs)
        except HaganeError:
            raise
        except Exception as error:
            if is_of_handler(error):
                raise
            raise kernel_failed(call.op.name, error, call.inputs) from error
        return [np.asarray(one) if isinstance(one, np.generic) else one for one in results]

    def _check(self, call: Call, n_outputs: int) -> None:
        if any(callable(item) for item in call.attributes.values()):
            return
        key = (
            call.op.key,
            n_outputs,
            tuple(map(_signature, call.inputs)),
            tuple((name, _hashable(item)) for name, item in call.attributes.items()),
        )
        if key in self._checked:
            return
        types = [None if value is None else self.type_of(value) for value in call.inputs]
        contents = [None if value is None else _small(value) for value in call.inputs]
        check_call(call, types, contents, n_outputs)
        if len(self._checked) >= _MOST_CHECKED:
            self._checked.clear()
        self._checked.add(key)

    def constant(self, content: Array) -> Any:
        """Return an array as it is."""
        return content if content.dtype != object else content.astype(np.int64)

    def type_of(self, value: Any) -> Type | None:
        """Return the type of an array, or of a list of arrays."""
        if isinstance(value, list):
            return SequenceType(self.type_of(value[0]) if value else None)
        if value is None or isinstance(value, Mapping):
            return None
        array = np.asarray(value)
        return TensorType(array_dtype(array), array.shape)

    def content_of(self, value: Any) -> Array | None:
        """Return the array itself."""
        return value if isinstance(value, np.ndarray) else None


def _small(value: Any) -> Array | None:
    """Return an array whose content may decide a type."""
    found = isinstance(value, np.ndarray) and value.size <= _MOST_ELEMENTS
    return value if found and value.dtype.kind in "iub" else None


def _signature(value: Any) -> object:
    if isinstance(value, np.ndarray):
        small = _small(value)
        return value.dtype, value.shape, None if small is None else small.tobytes()
    if isinstance(value, list):
        return tuple(map(_signature, value))
    return type(value)


def _hashable(item: Any) -> object:
    if isinstance(item, np.ndarray):
        return item.dtype.str, item.shape, item.tobytes()
    return item


EAGER = Eager()
