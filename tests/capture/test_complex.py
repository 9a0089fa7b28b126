"""Complex tensors inside a graph: their parts are what PyTorch and NumPy compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

import hagane
from hagane.errors import CaptureError
from hagane.graph import to_proto


class Rotary(torch.nn.Module):
    """Queries turned by complex factors, kept in a buffer as Llama's first programs have them."""

    def __init__(self) -> None:
        super().__init__()
        angles = torch.outer(torch.arange(12), 0.3 ** torch.arange(3))
        factors = torch.polar(torch.ones(12, 3), angles)
        self.register_buffer("factors", factors, persistent=False)

    def forward(self, x: Any) -> Any:
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        factors = self.factors[: x.shape[1]].view(1, x.shape[1], 1, -1)
        return torch.view_as_real(pairs * factors).flatten(3).type_as(x)


def spectrogram(x: Any, window: Any) -> Any:
    found = torch.stft(x, 16, 4, window=window, return_complex=True)
    return torch.log10((found[..., :-1].abs() ** 2).clamp(min=1e-6))


def other_windows(x: Any) -> Any:
    made = torch.stft(
        x, 15, 5, 9, torch.ones(9), normalized=True, onesided=False, center=False,
        return_complex=True,
    )  # fmt: skip
    return made.real, made.imag


def quieter(x: Any, window: Any) -> Any:
    found = torch.stft(x, 16, 4, window=window, return_complex=True, pad_mode="constant")
    halved = torch.polar(found.abs() * 0.5, found.angle())
    return torch.istft(halved, 16, 4, window=window, length=x.shape[-1])


def filtered(x: Any, weight: Any) -> Any:
    found = torch.fft.rfft2(x, dim=(1, 2), norm="ortho") * torch.view_as_complex(weight)
    return torch.fft.irfft2(found, s=x.shape[1:3], dim=(1, 2), norm="ortho")


def convolved(x: Any, kernel: Any) -> Any:
    n = x.shape[-1] + kernel.shape[-1] - 1
    found = torch.fft.irfft(torch.fft.rfft(x, n=n) * torch.fft.rfft(kernel, n=n), n=n)
    return found, torch.fft.irfft(torch.fft.rfft(x)), torch.fft.fft2(x, norm="forward").real


def kept_bins(x: Any) -> Any:
    found = torch.fft.rfft(x)
    found = found * (torch.arange(found.shape[-1]) < 3)
    return torch.fft.irfft(found, n=x.shape[-1]), torch.fft.ifft(found, n=6, dim=0).imag


def arithmetic(x: Any, y: Any) -> Any:
    z = torch.complex(x, y)
    q = (z * (2 - 1j) + 1) / (z - 3j) - z.conj() / 2
    both = torch.cat([z, q, x], 0).transpose(0, 1).reshape(-1)
    kept = torch.where(x > 0, z, torch.zeros(()))
    return (
        both.real, both.imag, (z @ q.transpose(0, 1)).abs(), torch.view_as_real(torch.exp(1j * x)),
        (z**3).real, (-z).imag, z.sum(0).abs(), torch.einsum("ij,kj->ik", z, q).imag,
        kept.imag, torch.stack([z, q]).real, z[:, ::2].imag, (1 - z).real, (y / z).imag,
    )  # fmt: skip


def of_arrays(x: Any) -> Any:
    found = np.fft.rfft(x)
    return np.abs(found), found.real, np.fft.irfft(found * 2j, n=x.shape[-1])


def doubled(x: Any) -> Any:
    z = torch.view_as_complex(x + 0)
    z *= 2
    return z.real


def doubled_later(x: Any) -> Any:
    z = torch.view_as_complex(x + 0)
    real = z.real
    z.mul_(2)
    return real


def set_first(x: Any) -> Any:
    z = torch.view_as_complex(x + 0)
    z[0] = 0
    return z.imag


def drawn(*shape: int) -> Any:
    return torch.from_numpy(np.random.default_rng(sum(shape)).standard_normal(shape)).float()


def hann() -> Any:
    return torch.hann_window(16)


CASES: dict[str, tuple[Any, list[str], Any]] = {
    "rotary": (Rotary(), ["float32[b, t, h, 6]"], lambda i: [drawn(1 + i, 3 + 2 * i, 2, 6)]),
    "spectrogram": (
        spectrogram, ["float32[n]", "float32[16]"], lambda i: [drawn(40 + 7 * i), hann()]
    ),
    "windows": (other_windows, ["float32[b, n]"], lambda i: [drawn(1 + i, 31 + 6 * i)]),
    "inverse": (
        quieter, ["float32[b, n]", "float32[16]"], lambda i: [drawn(1 + i, 60 + 3 * i), hann()]
    ),
    "filter": (
        filtered, ["float32[b, 7, 6, c]", "float32[7, 4, c, 2]"],
        lambda i: [drawn(1 + i, 7, 6, 2 + i), drawn(7, 4, 2 + i, 2)],
    ),
    "convolution": (
        convolved, ["float32[b, n]", "float32[k]"],
        lambda i: [drawn(1 + i, 8 + i), drawn(3 + 2 * i)],
    ),
    "bins": (kept_bins, ["float32[b, n]"], lambda i: [drawn(2 + i, 9 + 2 * i)]),
    "arithmetic": (
        arithmetic, ["float32[a, b]"] * 2, lambda i: [drawn(2 + i, 3 + i), drawn(3 + i, 2 + i).T]
    ),
}  # fmt: skip


def flat(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple) else [found]


@pytest.mark.parametrize("name", CASES)
def test_one_graph_computes_complex_numbers_at_all_sizes(name: str) -> None:
    function, types, arrays = CASES[name]
    model = hagane.capture(function, *types)
    content = to_proto(model).SerializeToString()
    peer = onnxruntime.InferenceSession(content)
    session = hagane.InferenceSession(content)
    names = [value.name for value in session.get_inputs()]
    for i in range(3):
        given = arrays(i)
        expected = [x.numpy() for x in flat(function(*given))]
        feed = {n: np.ascontiguousarray(x) for n, x in zip(names, given, strict=True)}
        for run in (session.run, peer.run):
            for want, found in zip(expected, run(None, feed), strict=True):
                assert found.dtype == want.dtype
                np.testing.assert_allclose(found, want, rtol=1e-4, atol=2e-5)


def test_transforms_of_numpys_arrays_are_captured() -> None:
    x = drawn(3, 9).numpy()
    model = hagane.capture(of_arrays, x, dynamic={"x": {0: "n"}})
    session = hagane.InferenceSession(model)
    for rows in (x, x[:1]):
        for want, found in zip(of_arrays(rows), session.run(None, {"x": rows}), strict=True):
            np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


def test_complex_buffers_are_read_anew_by_each_call() -> None:
    module = Rotary()
    compiled, x = hagane.compile(module), drawn(2, 4, 2, 6)
    torch.testing.assert_close(compiled(x), module(x))
    module.factors.mul_(2)
    with pytest.warns(UserWarning, match="the content of a Tensor that is read changed"):
        compiled(x)
    torch.testing.assert_close(compiled(x), module(x))


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda x: torch.fft.fft(x).real.sum() * torch.linalg.eigvals(x).real.sum(), "eigvals"),
    ],
)
def test_complex_functions_without_formula_are_refused(call: Any, told: str) -> None:
    with pytest.raises(CaptureError, match=told):
        hagane.capture(call, "float32[n, n]")


@pytest.mark.parametrize("call", [doubled, doubled_later, set_first])
def test_complex_views_are_not_written_in_place(call: Any) -> None:
    with pytest.raises(CaptureError, match="a complex tensor changes in place that shares its"):
        hagane.capture(call, "float32[n, 2]")


def scaled_by_numpys_scalars(x: np.ndarray[Any, Any]) -> Any:
    turn = np.exp(1j * 0.5)
    return (x * turn).real, (x * turn**2).imag, (x * np.conj(2 + 1j)).imag, (x * 1j).imag


def test_complex_scalars_of_numpy_hold_their_own_type() -> None:
    x = np.arange(5, dtype=np.float32)
    model = hagane.capture(scaled_by_numpys_scalars, "float32[n]")
    found = hagane.InferenceSession(model).run(None, {"x": x})
    for ours, theirs in zip(found, scaled_by_numpys_scalars(x), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
