"""Fourier transforms of complex tensors whose parts are two real ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.complex.rules import cast
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.builder import op
from hagane.ops.functions.numbers.elementary import div, mul, sqrt
from hagane.ops.functions.sums import spectra
from hagane.ops.functions.sums.spectra import Pair
from hagane.ops.functions.tensors.parts import part
from hagane.symbolic import Dim, floordiv

PairOf = Callable[[Value], Pair]
FFT = {
    f"{kind}fft{count}": (kind, count) for kind in ("", "i", "r", "ir") for count in ("", "2", "n")
}
STFT = (
    "input", "n_fft", "hop_length", "win_length", "window", "center", "pad_mode", "normalized",
    "onesided", "return_complex",
)  # fmt: skip
ISTFT = (
    "input", "n_fft", "hop_length", "win_length", "window", "center", "normalized", "onesided",
    "length", "return_complex",
)  # fmt: skip


def transformed(
    core: Core, pair_of: PairOf, last: str, to: ir.DataType, arguments: Sequence[Value],
    keywords: Mapping[str, Value],
) -> Any:  # fmt: skip
    """Return the parts of a Fourier transform, in the precision that its result has."""
    kind, count = FFT[last]
    names = ("input", "n", "dim", "norm")
    same = {"a": "input", "s": "n", "axis": "dim", "axes": "dim"}
    given = {same.get(key, key): x for key, x in keywords.items()}
    given = {**dict(zip(names, arguments, strict=False)), **given}
    pair = pair_of(given["input"])
    pair = cast(pair[0], to), None if pair[1] is None else cast(pair[1], to)
    rank = len(pair[0].shape)
    axes, lengths = _transform_axes(given.get("dim"), given.get("n"), count, rank)
    sizes: list[Dim] = []
    order = list(zip(axes, lengths, strict=True))
    for axis, length in reversed(order):
        is_last = (axis, length) == order[-1]
        size = pair[0].shape[axis] if length is None else length
        if kind == "r" and is_last:
            pair = spectra.half_transform(pair[0], axis, length)
        elif kind != "ir" or not is_last:
            pair = spectra.transform(pair, axis, length, inverse=kind.startswith("i"))
        else:
            size = 2 * (pair[0].shape[axis] - 1) if length is None else length
        sizes.append(size)
    if kind == "ir":
        axis, size = order[-1][0], sizes[0]
        half = floordiv(size, 2) + 1
        if half != pair[0].shape[axis]:
            real, imaginary = (None if x is None else part(x, axis, 0, half) for x in pair)
            pair = real, imaginary
            if core.emit.differ(half, pair[0].shape[axis]):
                raise CheckError("capture", f"'{last}' of more elements than the input has")
        pair = spectra.real_from_half(pair, axis, size), None
    return _normalised(pair, given.get("norm"), kind.startswith("i"), sizes, to)


def frames(
    pair_of: PairOf, promised: Tensor, to: ir.DataType, *, input: Value, n_fft: Value,
    hop_length: Value = None, win_length: Value = None, window: Value = None,
    center: Value = True, pad_mode: Value = "reflect", normalized: Value = False,
    onesided: Value = None, **_: Value,
) -> Any:  # fmt: skip
    """Return the parts of the spectra of a signal's frames: ``torch.stft``."""
    x = pair_of(input)
    if x[1] is not None or not isinstance(n_fft, int):
        raise CheckError("capture", "'stft' of complex numbers, or of a size that is no number")
    signal, flat = x[0], len(x[0].shape) == 1
    signal = op("Unsqueeze", signal, [0]) if flat else signal
    if center:
        half = n_fft // 2
        mode = {"reflect": "reflect", "constant": "constant", "replicate": "edge"}.get(pad_mode)
        if mode is None:
            raise CheckError("capture", f"'stft' with pad_mode='{pad_mode}'")
        signal = op("Pad", signal, [0, half, 0, half], mode=mode)
    step = n_fft // 4 if hop_length is None else hop_length
    factors = _window(pair_of, window, n_fft, win_length, to)
    pair = spectra.frames(signal, factors, step, onesided=onesided is not False)
    if flat:
        pair = op("Squeeze", pair[0], [0]), op("Squeeze", pair[1], [0])
    return _normalised(pair, "ortho" if normalized else None, False, [n_fft], to)


def signal_of(
    pair_of: PairOf, promised: Tensor, to: ir.DataType, *, input: Value, n_fft: Value,
    hop_length: Value = None, win_length: Value = None, window: Value = None,
    center: Value = True, normalized: Value = False, onesided: Value = None,
    length: Value = None, return_complex: Value = False,
) -> Any:  # fmt: skip
    """Return the signal of which spectra are, and None: ``torch.istft``."""
    if onesided is False or return_complex or not isinstance(n_fft, int):
        raise CheckError("capture", "'istft' of two-sided spectra, or of a size that is no number")
    real, imaginary = pair_of(input)
    flat = len(real.shape) == 2
    if flat:
        real, imaginary = (
            None if x is None else op("Unsqueeze", x, [0]) for x in (real, imaginary)
        )
    step = n_fft // 4 if hop_length is None else hop_length
    factors = _window(pair_of, window, n_fft, win_length, to)
    pair = _normalised((real, imaginary), "ortho" if normalized else None, True, [n_fft], to)
    total, weights = spectra.overlapped(pair, factors, n_fft, step)
    assert promised.shape is not None
    start, size = n_fft // 2 if center else 0, promised.shape[-1]
    total, weights = part(total, 1, start, size), part(weights, 1, start, size)
    signal = div(total, weights)
    return (op("Squeeze", signal, [0]) if flat else signal), None


def _window(pair_of: PairOf, window: Value, size: int, length: Value, to: ir.DataType) -> Any:
    """Return the factors of a window, with zeros on both sides where it is shorter."""
    inner = size if not isinstance(length, int) else length
    if window is None:
        factors: Any = op("Expand", np.ones(1, to.numpy()), [inner])
    else:
        factors = cast(pair_of(window)[0], to)
    left = (size - inner) // 2
    return factors if inner == size else op("Pad", factors, [left, size - inner - left])


def _transform_axes(
    dim: Value, n: Value, count: str, rank: int
) -> tuple[list[int], list[Dim | None]]:
    """Return the axes of a transform and its lengths."""
    lengths: list[Any] = list(n) if isinstance(n, list | tuple) else []
    if not count:
        return [(-1 if dim is None else dim) % rank], [n]
    if dim is None:
        kept = 2 if count == "2" else len(lengths) or rank
        dim = range(rank - kept, rank)
    axes = [axis % rank for axis in ((dim,) if isinstance(dim, int) else dim)]
    return axes, [None if x == -1 else x for x in lengths] or [None] * len(axes)


def _normalised(
    pair: Pair, norm: Value, inverse: bool, sizes: Sequence[Dim], to: ir.DataType
) -> Pair:
    """Return a transform in the norm of PyTorch and NumPy: backward, ortho or forward."""
    if norm in (None, "backward"):
        return pair
    if norm not in ("ortho", "forward"):
        raise CheckError("capture", f"a transform with norm={norm!r}")
    count: Dim = 1
    for size in sizes:
        count = count * size
    number: Any = (
        np.array(count, to.numpy())
        if isinstance(count, int)
        else op("Cast", op("Squeeze", [count], [0]), to=to)
    )
    factor = sqrt(number) if norm == "ortho" else number
    rule = mul if inverse else div
    return rule(pair[0], factor), None if pair[1] is None else rule(pair[1], factor)
