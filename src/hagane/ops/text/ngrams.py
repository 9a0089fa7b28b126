"""TfIdfVectorizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hagane.ops.context import InferContext
from hagane.ops.definition import OpDef
from hagane.ops.delegated import onnx_kernel
from hagane.ops.vjp import TEXT


def _infer(ctx: InferContext) -> Sequence[Any]:
    size = max(ctx.attr("ngram_indexes"), default=-1) + 1
    shape = ctx.shape(0)
    if len(shape) not in (1, 2):
        ctx.fail(f"expected one axis or two, got {ctx.inputs_text()}")
    return [(*shape[:-1], size)]


OPERATORS = (OpDef("TfIdfVectorizer", _infer, onnx_kernel("TfIdfVectorizer"), vjp=TEXT),)
