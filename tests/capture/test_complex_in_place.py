"""Complex tensors that change in place: their parts do, where no other tensor has their memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import hagane
from hagane.errors import CaptureError


class FourierLayer(torch.nn.Module):
    """The layer of Fourier neural operators, as its authors' programs have it."""

    def __init__(self, channels: int = 3, modes: int = 2):
        super().__init__()
        self.channels, self.modes = channels, modes
        shape = (channels, channels, modes, modes)
        self.low = torch.nn.Parameter(torch.rand(shape, dtype=torch.cfloat))
        self.high = torch.nn.Parameter(torch.rand(shape, dtype=torch.cfloat))

    def forward(self, x: Any) -> Any:
        n = self.modes
        found = torch.fft.rfft2(x)
        out = torch.zeros(
            x.shape[0], self.channels, x.size(-2), x.size(-1) // 2 + 1, dtype=torch.cfloat,
            device=x.device,
        )  # fmt: skip
        out[:, :, :n, :n] = torch.einsum("bixy,ioxy->boxy", found[:, :, :n, :n], self.low)
        out[:, :, -n:, :n] = torch.einsum("bixy,ioxy->boxy", found[:, :, -n:, :n], self.high)
        return torch.fft.irfft2(out, s=(x.size(-2), x.size(-1)))


def test_a_layer_of_a_fourier_neural_operator_is_captured_for_all_sizes() -> None:
    torch.manual_seed(0)
    layer = FourierLayer()
    session = hagane.InferenceSession(hagane.capture(layer, "float32[b, 3, h, w]"))
    for shape in ((2, 3, 6, 8), (1, 3, 5, 7), (3, 3, 4, 4)):
        x = torch.randn(shape)
        with torch.no_grad():
            expected = layer(x).numpy()
        np.testing.assert_allclose(session.run(None, {"x": x.numpy()})[0], expected, atol=1e-4)


def scaled(x: Any) -> Any:
    z = torch.fft.fft(x)
    z = z * 1
    z *= 2j
    z += x
    return torch.view_as_real(z)


def copied(x: Any) -> Any:
    z = torch.fft.fft(x)
    y = z.clone()
    y[0] = 1j
    return torch.view_as_real(z), torch.view_as_real(y)


def cut(x: Any) -> Any:
    z = torch.fft.fft(x)
    z[..., 1:] = 0
    z[z.abs() < 1] = 0.5
    return torch.fft.ifft(z).real


def filled(x: Any) -> Any:
    out = torch.zeros(x.shape[0], x.shape[1], dtype=torch.cfloat)
    for k in range(2):
        out[:, k] += torch.fft.fft(x)[:, k] * (k + 1j)
    some = torch.empty(2, dtype=torch.complex64)
    some[0], some[1] = x.sum(), 1j
    return torch.view_as_real(out), torch.view_as_real(some)


def like(x: Any) -> Any:
    z = torch.fft.rfft(x)
    y = torch.zeros_like(z)
    y[:, 0] = z[:, 0]
    return torch.fft.irfft(y + z.new_ones(1), n=x.shape[1])


@pytest.mark.parametrize("function", [scaled, copied, cut, filled, like])
def test_complex_tensors_of_their_own_change_in_place(function: Any) -> None:
    session = hagane.InferenceSession(hagane.capture(function, "float32[b, t]"))
    torch.manual_seed(0)
    for shape in ((2, 5), (3, 4), (1, 2)):
        x = torch.randn(shape)
        expected = function(x)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for ours, theirs in zip(session.run(None, {"x": x.numpy()}), expected, strict=True):
            np.testing.assert_allclose(ours, theirs.numpy(), atol=1e-4)


def part_is_held(x: Any) -> Any:
    z = torch.fft.fft(x)
    row = z[0]
    z.mul_(2)
    return torch.view_as_real(row)


def view_is_held(x: Any) -> Any:
    z = torch.fft.fft(x)
    turned = z.T
    z[0] = 0
    return torch.view_as_real(turned)


def real_part_is_held(x: Any) -> Any:
    z = torch.fft.fft(x)
    real = z.real
    z *= 2
    return real


def is_a_view(x: Any) -> Any:
    pairs = torch.stack([x, x * 2], -1)
    z = torch.view_as_complex(pairs)
    z[0] = 3 + 1j
    return pairs


@pytest.mark.parametrize("function", [part_is_held, view_is_held, real_part_is_held, is_a_view])
def test_shared_memory_of_complex_tensors_is_not_written(function: Any) -> None:
    with pytest.raises(CaptureError, match="a complex tensor changes in place that shares its"):
        hagane.capture(function, "float32[b, t]")


def test_pairs_that_show_a_complex_tensor_are_not_read_after_a_change() -> None:
    def written(x: Any) -> Any:
        z = torch.fft.fft(x)
        pairs = torch.view_as_real(z)
        pairs[..., 0] = 0
        return z.real

    with pytest.raises(CaptureError, match="shares its memory with this one, which is read later"):
        hagane.capture(written, "float32[b, t]")
