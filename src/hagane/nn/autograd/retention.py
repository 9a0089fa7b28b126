"""Arrays that gradients of operators do not read: they are let go with the program's variables.

A gradient that needs sizes alone is given an array of these sizes that takes no memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hagane.ops.definition import OpDef

_MOST = 4096


@dataclass(frozen=True, slots=True)
class Unread:
    """The arrays of a call that its gradient does not read.

    Attributes:
        operands: Places of operands; of those alone that have a gradient.
        results: Whether results are not read.
    """

    operands: frozenset[int] = frozenset()
    results: bool = False


EVERYTHING = Unread()
_ALL = frozenset(range(64))
_NEITHER, _RESULTS_ALONE = Unread(_ALL, True), Unread(_ALL, False)
_OPERANDS_ALONE = Unread(frozenset(), True)
# Derivatives of these rules, which are operators again, read no more than they do.
UNREAD: dict[str, Unread] = {
    **dict.fromkeys(("Add", "Concat", "Neg", "Sub", "Transpose"), _NEITHER),
    **dict.fromkeys(("Reshape", "Flatten", "Squeeze", "Unsqueeze"), _NEITHER),
    **dict.fromkeys(
        ("Exp", "LogSoftmax", "Relu", "Sigmoid", "Softmax", "Sqrt", "Tanh"), _RESULTS_ALONE
    ),
    **dict.fromkeys(("Log", "MatMul", "Mul"), _OPERANDS_ALONE),
    # The addends of products.
    **dict.fromkeys(("Conv", "Gemm"), Unread(frozenset({2}), True)),
}
_stand_ins: dict[Any, Any] = {}


def unread_of(op: OpDef) -> Unread:
    """Return the arrays that an operator's gradient does not read."""
    return EVERYTHING if op.domain else UNREAD.get(op.name, EVERYTHING)


def stand_in(dtype: Any, shape: tuple[int, ...]) -> Any:
    """Return an array of a type and sizes that takes no memory; its content is not to be read."""
    key = dtype, shape
    found = _stand_ins.get(key)
    if found is None:
        if len(_stand_ins) >= _MOST:
            _stand_ins.clear()
        found = _stand_ins[key] = np.broadcast_to(np.zeros((), dtype), shape)
    return found
