"""Fourier transforms of PyTorch."""

from __future__ import annotations

from typing import Any

from hagane.frontends.libraries.computing import built
from hagane.frontends.libraries.torch.functions.arrays.creating import made, placed
from hagane.frontends.libraries.torch.operands import (
    FLOAT,
    as_float,
    at_least,
    axes,
    axis,
    category,
    complex_dtype,
    device_of,
    dtype_of,
    expect_axes,
    need_tensor,
    real_dtype,
    shape_of,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.functions.numbers import special
from hagane.ops.functions.tensors import parts
from hagane.symbolic import Dim, Expr, floordiv


def _transformed(
    t: Core, name: str, x: Tensor, places: list[int], lengths: list[Dim | None]
) -> Tensor:
    """Return the transform over axes; the last one is halved for real inputs, or doubled back."""
    x = as_float(t, x)
    shape = list(shape_of(t, x))
    if not places:
        t.fail("rank", f"{name} needs at least one axis, got {t.show(x)}", x)
    for place, length in zip(places, lengths, strict=True):
        if length is not None:
            shape[place] = length
    last = places[-1]
    if name.startswith("rfft"):
        if real_dtype(x.dtype) != x.dtype:
            t.fail("dtype-mismatch", f"{name} takes real numbers, got {t.show(x)}", x)
        shape[last] = floordiv(shape[last], 2) + 1
    elif name.startswith("irfft") and lengths[-1] is None:
        shape[last] = (shape[last] - 1) * 2
    to = real_dtype if name.startswith("irfft") else complex_dtype
    return t.emit.typed("DFT", [x], to(x.dtype), tuple(shape))


def _line(name: str) -> None:
    def function(
        t: Core, input: Value, n: Value = None, dim: Value = -1, norm: Value = None
    ) -> Tensor:
        x = need_tensor(t, input, "input")
        expect_axes(t, x)
        return _transformed(t, name, x, [axis(t, dim, len(shape_of(t, x)), x)], [n])

    TORCH.function(f"fft.{name}")(function)


def _several(name: str, default: tuple[int, int] | None) -> None:
    def function(
        t: Core, input: Value, s: Value = None, dim: Value = default, norm: Value = None
    ) -> Tensor:
        x = need_tensor(t, input, "input")
        expect_axes(t, x)
        rank = len(shape_of(t, x))
        if dim is None and s is not None:
            dim = tuple(range(rank - len(s), rank))
        places = axes(t, dim, rank, x)
        return _transformed(t, name, x, places, [None] * len(places) if s is None else list(s))

    TORCH.function(f"fft.{name}")(function)


for _name in ("fft", "ifft", "rfft", "irfft"):
    _line(_name)
    _several(f"{_name}2", (-2, -1))
    _several(f"{_name}n", None)


def _shift(name: str) -> None:
    def shifted(t: Core, input: Value, dim: Value = None) -> Tensor:
        x = need_tensor(t, input, "input")
        places = axes(t, dim, len(shape_of(t, x)), x)

        def halves_swapped(x: Tensor) -> Any:
            for place in places:
                size = shape_of(t, x)[place]
                half = floordiv(size, 2)
                x = parts.roll(x, half if name == "fftshift" else size - half, place)
            return x

        return built(t, (x.dtype, shape_of(t, x)), halves_swapped, x)

    TORCH.function(f"fft.{name}")(shifted)


_shift("fftshift")
_shift("ifftshift")


def _frequencies(name: str, half: bool) -> None:
    def frequencies(
        t: Core, n: Value, d: Value = 1.0, *, dtype: Value = None, device: Value = None, **_: Value
    ) -> Tensor:
        wanted = dtype_of(dtype, FLOAT)
        count = floordiv(n, 2) + 1 if half else n
        if not isinstance(n, int | Expr) or not isinstance(d, int | float):
            return made(t, wanted, [count], device_of(device))
        return placed(t, wanted, [count], device_of(device), special.frequencies, n, half,
                      float(d), wanted)  # fmt: skip

    TORCH.function(name)(frequencies)


_frequencies("fft.fftfreq", half=False)
_frequencies("fft.rfftfreq", half=True)


def _hop(t: Core, n_fft: Value, hop_length: Value) -> Value:
    """Return how far windows lie apart, which is a quarter of one where nothing else is said."""
    hop = floordiv(n_fft, 4) if hop_length is None else hop_length
    if isinstance(hop, int) and hop <= 0:
        t.fail("value", f"expected hop_length > 0, a quarter of n_fft={n_fft} by default, "
               f"got {hop}")  # fmt: skip
    return hop


@TORCH.function("stft", methods=("stft",))
def stft(
    t: Core, input: Value, n_fft: Value, hop_length: Value = None, win_length: Value = None,
    window: Value = None, center: Value = True, pad_mode: Value = "reflect",
    normalized: Value = False, onesided: Value = None, return_complex: Value = None,
) -> Tensor:  # fmt: skip
    """Return the short-time Fourier transform: (batch, frequencies, frames), complex."""
    x = need_tensor(t, input, "input")
    shape = shape_of(t, x)
    if len(shape) not in (1, 2):
        t.fail("rank", f"stft takes (time) or (batch, time), got {t.show(x)}", x)
    at_least(t, n_fft, 1, "n_fft")
    hop = _hop(t, n_fft, hop_length)
    if isinstance(window, Tensor):
        expected = n_fft if win_length is None else win_length
        if t.emit.differ(shape_of(t, window, 1, "window")[0], expected):
            t.fail("shape-mismatch", f"expected a window of {expected}, got {t.show(window)}", x)
    if center and pad_mode == "reflect":
        t.emit.require_size(shape[-1] - floordiv(n_fft, 2), 1, "length beyond half the window")
    steps = shape[-1] + (2 * floordiv(n_fft, 2) if center else 0)
    t.emit.require_size(steps - n_fft, 0, "length beyond the window")
    frames = floordiv(steps - n_fft, hop) + 1
    if category(x.dtype) < 2:
        t.fail("dtype-mismatch", f"expected floating-point or complex numbers, got {t.show(x)}", x,
               remedy="convert it with .float()")  # fmt: skip
    given = [x, window] if isinstance(window, Tensor) else [x]
    has_parts = any(category(one.dtype) == 3 for one in given)
    if has_parts and onesided is True:
        t.fail("value", "expected onesided=False for complex numbers, got True", x)
    halved = not has_parts if onesided is None else onesided
    found = (*shape[:-1], floordiv(n_fft, 2) + 1 if halved else n_fft, frames)
    if return_complex or (return_complex is None and has_parts):
        return t.emit.typed("STFT", given, complex_dtype(x.dtype), found)
    if return_complex is None:
        t.fail("value", "stft needs return_complex=True for real inputs", x)
    return t.emit.typed("STFT", given, real_dtype(x.dtype), (*found, 2))


@TORCH.function("istft", methods=("istft",))
def istft(
    t: Core, input: Value, n_fft: Value, hop_length: Value = None, win_length: Value = None,
    window: Value = None, center: Value = True, normalized: Value = False, onesided: Value = None,
    length: Value = None, return_complex: Value = False,
) -> Tensor:  # fmt: skip
    """Return the signal of a short-time Fourier transform."""
    x = need_tensor(t, input, "input")
    expect_axes(t, x, 2)
    shape = shape_of(t, x)
    if len(shape) > 3:
        t.fail("rank", f"istft takes (frequencies, frames), or a batch, got {t.show(x)}", x)
    if category(x.dtype) != 3:
        t.fail("dtype-mismatch", f"expected complex numbers, got {t.show(x)}", x)
    rows = n_fft if onesided is False or return_complex else floordiv(n_fft, 2) + 1
    if onesided is None and isinstance(shape[-2], int) and shape[-2] == n_fft:
        rows = n_fft
    is_known = isinstance(shape[-2], int) or onesided is not None
    if is_known and t.emit.differ(shape[-2], rows):
        t.fail("shape-mismatch", f"expected {rows} frequencies (axis -2), got {t.show(x)}", x)
    hop = _hop(t, n_fft, hop_length)
    if isinstance(window, Tensor):
        expected = n_fft if win_length is None else win_length
        if t.emit.differ(shape_of(t, window, 1, "window")[0], expected):
            t.fail("shape-mismatch", f"expected a window of {expected}, got {t.show(window)}", x)
    if length is None:
        cut = 2 * floordiv(n_fft, 2) if center else 0
        length = n_fft + hop * (shape[-1] - 1) - cut
    to = x.dtype if return_complex else real_dtype(x.dtype)
    return t.emit.typed("ISTFT", [x], to, (*shape[:-2], length))


def _window(name: str, coefficients: tuple[float, ...]) -> None:
    def window(
        t: Core, window_length: Value, periodic: Value = True, *_: Value, dtype: Value = None,
        device: Value = None, **__: Value,
    ) -> Tensor:  # fmt: skip
        wanted = dtype_of(dtype, FLOAT)
        whole = isinstance(window_length, int) and isinstance(periodic, bool) and window_length > 0
        if not coefficients or _ or {*__} & {"alpha", "beta"} or not whole:
            return made(t, wanted, [window_length], device_of(device))
        period = window_length if periodic else max(window_length - 1, 1)
        return placed(t, wanted, [window_length], device_of(device), special.cosine_window,
                      window_length, period, coefficients, wanted)  # fmt: skip

    TORCH.function(name)(window)


_window("hann_window", (0.5, -0.5))
_window("hamming_window", (0.54, -0.46))
_window("blackman_window", (0.42, -0.5, 0.08))
_window("bartlett_window", ())
_window("kaiser_window", ())
