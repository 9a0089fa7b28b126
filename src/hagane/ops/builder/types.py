"""Operators on types: types of results, without computing these."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType, Type
from hagane.ops.builder.interpreter import Call, Interpreter
from hagane.ops.builder.node import node_of
from hagane.ops.context import Judge
from hagane.ops.definition import Array
from hagane.ops.node import infer_node
from hagane.ops.values import array_dtype
from hagane.symbolic import Expr, symbol

_NUMBERS = itertools.count()


@dataclass(frozen=True, slots=True, eq=False)
class Typed:
    """A value of which the type is known.

    Attributes:
        type: Its type, None where nothing is known.
        content: Its content, if that is known; the elements of an object array are sizes.
    """

    type: Type | None
    content: Array | None = None

    @property
    def interpreter(self) -> Interpreter:
        """The interpretation of operators as types."""
        return TYPES


class Types:
    """Types and symbolic shapes, by the type rules of the operators.

    Args:
        judge: Says whether two sizes differ; cheap rules only if None.
    """

    level = 0

    def __init__(self, judge: Judge | None = None):
        self._judge = judge

    def apply(self, call: Call, n_outputs: int) -> Sequence[Typed]:
        """Return the types of the outputs.

        Raises:
            TypeInferenceError: The operands do not fit the operator.
        """
        types = [None if value is None else value.type for value in call.inputs]
        contents = [None if value is None else value.content for value in call.inputs]
        found = check_call(call, types, contents, n_outputs, self._judge)
        return [Typed(type_, content) for type_, content in found]

    def constant(self, content: Array) -> Typed:
        """Return the type of fixed content, with it."""
        return Typed(TensorType(content_dtype(content), tuple(content.shape)), content)

    def type_of(self, value: Typed) -> Type | None:
        """Return the type."""
        return value.type

    def content_of(self, value: Typed) -> Array | None:
        """Return the content, if it is known."""
        return value.content


def content_dtype(content: Array) -> ir.DataType:
    """Return the element type of fixed content; sizes are int64."""
    return ir.DataType.INT64 if content.dtype == np.dtype(object) else array_dtype(content)


def check_call(
    call: Call,
    types: Sequence[Type | None],
    contents: Sequence[Array | None],
    n_outputs: int,
    judge: Judge | None = None,
) -> list[tuple[Type | None, Array | None]]:
    """Return the type of each output of a call, and its content where that is known.

    Raises:
        TypeInferenceError: The operands do not fit the operator.
    """
    values = [None if type_ is None else ir.Value() for type_ in types]
    node = node_of(call.op, values, call.attributes, n_outputs)
    return infer_node(node, types, contents, fresh=_fresh, infer_graph=_no_graph, judge=judge)


def _fresh(label: str) -> Expr:
    return symbol(f"{label}_{next(_NUMBERS)}")


def _no_graph(*_: Any) -> Any:
    raise NotImplementedError("the type of a call with subgraphs is found on its graph")


TYPES: Interpreter = Types()
