"""Optional, OptionalGetElement, OptionalHasElement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import OptionalType, TensorType
from hagane.ops.builder import Call
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef, RuntimeValue
from hagane.ops.vjp import DISCRETE


def _optional(value: RuntimeValue = None, *, type: Any = None) -> RuntimeValue:
    return value


def _infer_optional(ctx: InferContext) -> Sequence[Any]:
    if ctx.has(0):
        return [OptionalType(ctx.type(0))]
    given = ctx.attr("type")
    if given is None:
        ctx.fail("expected an input or the attribute 'type'")
    from hagane.ops.inference import declared_type

    return [OptionalType(declared_type(given.type, None))]


def _get_element(value: RuntimeValue) -> RuntimeValue:
    if value is None:
        raise ValueError("the optional value is absent")
    return value


def _infer_get_element(ctx: InferContext) -> Sequence[Any]:
    found = ctx.type(0)
    return [found.element if isinstance(found, OptionalType) else found]


def _has_element(value: RuntimeValue = None) -> Array:
    return np.array(value is not None)


def _infer_has_element(ctx: InferContext) -> Sequence[Any]:
    return [TensorType(ir.DataType.BOOL, ())]


def _same_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    return gradients if call.inputs else []


OPERATORS = (
    OpDef("Optional", _infer_optional, _optional, vjp=_same_vjp),
    OpDef("OptionalGetElement", _infer_get_element, _get_element, vjp=_same_vjp),
    OpDef("OptionalHasElement", _infer_has_element, _has_element, vjp=DISCRETE),
)
