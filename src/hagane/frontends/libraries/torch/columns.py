"""A column of predictions against a row of targets, which broadcast to a square unnoticed."""

from __future__ import annotations

import onnx_ir as ir

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.registry import operators
from hagane.ops.traits import Trait
from hagane.symbolic import definitely_equal

_OPERATORS = frozenset(("add", "sub", "mul", "truediv", "eq", "ne", "lt", "gt", "le", "ge"))
_PRODUCTS = frozenset(("MatMul", "Gemm", "Conv", "ConvTranspose"))
_PASSED = frozenset(
    ("BatchNormalization", "Cast", "Composed", "Dropout", "Elementwise", "Identity", "Where")
)
_FURTHEST = 64  # values that are followed back


def refuse_square(t: Core, name: str, left: Value, right: Value) -> None:
    """Refuse ``(n, 1) op (n,)`` where the column comes straight out of a layer.

    A layer of one output gives ``(n, 1)``, and targets are ``(n,)``: PyTorch makes ``(n, n)`` of
    them without a word; likewise ``(n, n, h, w)`` of pictures of one channel, ``(n, 1, h, w)``, and
    targets without that axis. A column made on purpose (by ``unsqueeze``, ``None`` as an index,
    ``keepdim``, ``view``) is left alone.

    Raises:
        CheckError: Such operands in code of the user.
    """
    if name not in _OPERATORS or t.emit.builds or t.frame is None or not t.frame.is_user:
        return
    if not isinstance(left, Tensor) or not isinstance(right, Tensor):
        return
    for column, row in ((left, right), (right, left)):
        if not _is_column(column) or row.shape is None or row.parameter:
            continue
        assert column.shape is not None
        count, *rest = (column.shape[0], *column.shape[2:])
        if count == 1 or len(row.shape) != len(rest) + 1:
            continue
        same = all(map(definitely_equal, (count, *rest), row.shape))
        if same and _is_product(t, column):
            whole = ", ".join(map(str, (count, count, *rest)))
            axis = 1 if rest else -1
            t.fail(
                "square",
                f"{t.show(left)} and {t.show(right)} broadcast to ({whole}): every "
                f"{'item' if rest else 'element'} of one is taken with every one of the other",
                left,
                right,
                remedy=f"give both one shape, as with .squeeze({axis}); write column and row as "
                "x[:, None] and y[None, :] where all pairs are meant",
            )


def _is_column(value: Tensor) -> bool:
    return value.shape is not None and len(value.shape) > 1 and value.shape[1] == 1


def _is_product(t: Core, column: Tensor) -> bool:
    """Whether a column comes of a matrix product by operations on single elements alone."""
    queue: list[ir.Value] = [column.value]
    for value in queue:
        node = value.producer()
        if node is None or len(queue) > _FURTHEST:
            continue
        if node.op_type in _PRODUCTS:
            return True
        known = operators().get((node.domain, node.op_type))
        elementwise = known is not None and bool(known.traits & Trait.ELEMENTWISE)
        if node.op_type not in _PASSED and not elementwise:
            continue
        for source in node.inputs:
            found = None if source is None else t.emit.tensors.get(source)
            if found is not None and _is_column(found):
                queue.append(found.value)
    return False


__all__ = ["refuse_square"]
