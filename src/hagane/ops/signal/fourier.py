"""DFT and STFT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.errors import NotDifferentiable
from hagane.ops.builder import Call, content_of, dtype_of, op, rank_of
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.numbers.elementary import cast, div, mul, where
from hagane.ops.functions.tensors.shapes import reshape_like
from hagane.ops.precision import widened
from hagane.symbolic import Dim, floordiv


def _complex(x: Array) -> Array:
    return x[..., 0] if x.shape[-1] == 1 else x[..., 0] + 1j * x[..., 1]


def _pairs(x: Array, dtype: Any) -> Array:
    return np.stack([x.real, x.imag], axis=-1).astype(dtype)


@widened
def _dft(
    x: Array,
    dft_length: Array | None = None,
    axis: Array | None = None,
    *,
    inverse: int = 0,
    onesided: int = 0,
) -> Array:
    along = -2 if axis is None else int(np.asarray(axis).ravel()[0])
    # Without the last axis, which holds real and imaginary part.
    inner = along if along >= 0 else along + 1
    signal = _complex(x)
    if inverse and onesided:
        bins = signal.shape[inner]
        size = 2 * (bins - 1) if dft_length is None else int(np.asarray(dft_length).ravel()[0])
        return np.fft.irfft(signal, n=size, axis=inner)[..., None].astype(x.dtype)
    size = signal.shape[inner] if dft_length is None else int(np.asarray(dft_length).ravel()[0])
    spectrum = (np.fft.ifft if inverse else np.fft.fft)(signal, n=size, axis=inner)
    if onesided:
        spectrum = np.take(spectrum, np.arange(size // 2 + 1), axis=inner)
    return _pairs(spectrum, x.dtype)


def _infer_dft(ctx: InferContext) -> Sequence[Any]:
    shape = list(ctx.shape(0))
    axis = (ctx.ints(2) or (None,))[0] if ctx.has(2) else -2
    one_sided, inverse = ctx.attr("onesided"), ctx.attr("inverse")
    if axis is None:
        return [(*(ctx.fresh() for _ in shape[:-1]), 1 if one_sided and inverse else 2)]
    along = ctx.axis(axis, len(shape))
    if along == len(shape) - 1:
        ctx.fail(f"axis {axis} holds real and imaginary part, which cannot be transformed")
    if ctx.has(1):
        known = ctx.data(1)
        length: Dim = ctx.fresh() if known is None else ctx.dims(1)[0]  # type: ignore[index]
        if isinstance(length, int) and length < 1:
            ctx.fail(f"expected a positive dft_length, got {length}")
    else:
        length = shape[along]
        if one_sided and inverse:
            length = 2 * (length - 1)
    shape[along] = floordiv(length, 2) + 1 if one_sided and not inverse else length
    shape[-1] = 1 if one_sided and inverse else 2
    return [tuple(shape)]


@widened
def _stft(
    signal: Array,
    frame_step: Array,
    window: Array | None = None,
    frame_length: Array | None = None,
    *,
    onesided: int = 1,
) -> Array:
    wave = _complex(signal) if signal.ndim == 3 else signal
    step = int(np.asarray(frame_step).ravel()[0])
    if step < 1:
        raise ValueError(f"expected a positive frame_step, got {step}")
    if frame_length is not None:
        length = int(np.asarray(frame_length).ravel()[0])
    else:
        length = wave.shape[1] if window is None else window.shape[0]
    frames = np.lib.stride_tricks.sliding_window_view(wave, length, axis=1)[:, ::step]
    if window is not None:
        frames = frames * window
    spectrum = np.fft.fft(frames, axis=-1)
    if onesided:
        spectrum = spectrum[..., : length // 2 + 1]
    return _pairs(spectrum, signal.dtype)


def _infer_stft(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    step = ctx.ints(1)
    if step is not None and step[0] < 1:
        ctx.fail(f"expected a positive frame_step, got {step[0]}")
    length: Dim | None = shape[1]
    if ctx.has(3):
        length = (ctx.dims(3) or (None,))[0] if ctx.data(3) is not None else None
    elif ctx.has(2):
        length = ctx.shape(2, rank=1)[0]
    if length is None:
        return [(shape[0], ctx.fresh(), ctx.fresh(), 2)]
    bins = floordiv(length, 2) + 1 if ctx.attr("onesided") else length
    frames = ctx.fresh() if step is None else floordiv(shape[1] - length, step[0]) + 1
    return [(shape[0], frames, bins, 2)]


def _dft_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    """Transform back: as a linear map, the transform has its inverse, scaled, as transpose."""
    x, *rest = call.inputs
    (g,), (y,), rank = gradients, call.outputs, rank_of(x)
    known = content_of(rest[1]) if len(rest) > 1 and rest[1] is not None else np.array(-2)
    if known is None:
        raise NotDifferentiable("DFT has no gradient along an axis that is computed")
    axis = int(known.ravel()[0]) % rank
    inverse, onesided = call.attr("inverse"), call.attr("onesided")
    if rest and rest[0] is not None:
        length = op("Cast", op("Reshape", rest[0], [1]), to=ir.DataType.INT64)
    else:
        length = op("Shape", y if onesided and inverse else x, start=axis, end=axis + 1)
    size = op("Squeeze", cast(length, dtype_of(g)), [0])
    if inverse and onesided:
        # A bin inside stands for its mirror image too.
        back = op("DFT", g, op("Squeeze", length, [0]), axis, onesided=1)
        bins = op("Range", 0, op("Squeeze", op("Shape", back, start=axis, end=axis + 1), [0]), 1)
        half = op("Squeeze", length, [0])
        alone = op("Or", op("Equal", bins, 0), op("Equal", op("Mul", bins, 2), half))
        weight = op(
            "Reshape",
            where(alone, *(np.array(n, dtype_of(g).numpy()) for n in (1, 2))),
            _along(axis, rank),
        )
        back = div(mul(back, weight), size)
    elif inverse:
        back = div(op("DFT", g, None, axis), size)
    else:
        if onesided:
            missing = op("Sub", length, op("Shape", g, start=axis, end=axis + 1))
            g = op("Pad", g, op("Concat", [0], missing, axis=0), None, [axis])
        back = mul(op("DFT", g, None, axis, inverse=1), size)
    back = op("Slice", back, [0], op("Shape", x, start=-1), [rank - 1])
    # Elements cut from the signal, or added to it, have no part in the result.
    more = op(
        "Sub", op("Shape", x, start=axis, end=axis + 1), op("Shape", back, start=axis, end=axis + 1)
    )
    back = op("Pad", back, op("Concat", [0], more, axis=0), None, [axis])
    return [reshape_like(back, x), *(None for _ in rest)]


def _along(axis: int, rank: int) -> list[int]:
    return [-1 if i == axis else 1 for i in range(rank)]


def composed_stft(
    signal: Any, frame_step: Any, window: Any = None, frame_length: Any = None, *, onesided: int = 1
) -> Any:
    """Return the operator's output, over the builder."""
    wave = signal if rank_of(signal) == 3 else op("Unsqueeze", signal, [2])
    total = op("Squeeze", op("Shape", signal, start=1, end=2), [0])
    if frame_length is not None:
        length = op(
            "Reshape", cast(frame_length, ir.DataType.INT64), op("Identity", np.zeros(0, np.int64))
        )
    else:
        length = total if window is None else op("Squeeze", op("Shape", window), [0])
    step = op("Reshape", cast(frame_step, ir.DataType.INT64), op("Identity", np.zeros(0, np.int64)))
    starts = op("Range", 0, op("Add", op("Sub", total, length), 1), step)
    places = op("Add", op("Unsqueeze", starts, [1]), op("Range", 0, length, 1))
    frames = op("Gather", wave, places, axis=1)
    if window is not None:
        frames = mul(frames, op("Unsqueeze", cast(window, dtype_of(wave)), [1]))
    return op("DFT", frames, None, 2, onesided=onesided)


OPERATORS = (
    OpDef("DFT", _infer_dft, _dft, vjp=_dft_vjp),
    OpDef("STFT", _infer_stft, _stft, compose=composed_stft),
)
