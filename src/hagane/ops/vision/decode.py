"""ImageDecoder."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

from hagane.errors import MissingExtra
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.delegated import onnx_kernel
from hagane.ops.vjp import CONSTANT

_decode = onnx_kernel("ImageDecoder")


def _image_decoder(stream: Array, *, attributes: dict[str, Any], n_outputs: int) -> Any:
    if importlib.util.find_spec("PIL") is None:
        raise MissingExtra("the operator ImageDecoder", "image")
    return _decode(stream, attributes=attributes, n_outputs=n_outputs)


def _infer_image_decoder(ctx: InferContext) -> Sequence[Any]:
    channels = 1 if ctx.attr("pixel_format") == "Grayscale" else 3
    return [(ctx.fresh("height"), ctx.fresh("width"), channels)]


OPERATORS = (OpDef("ImageDecoder", _infer_image_decoder, _image_decoder, vjp=CONSTANT),)
