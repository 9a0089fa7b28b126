"""DFT and STFT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
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


OPERATORS = (OpDef("DFT", _infer_dft, _dft), OpDef("STFT", _infer_stft, _stft))
