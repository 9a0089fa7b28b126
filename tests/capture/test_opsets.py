"""Captured graphs in earlier opsets run in ONNX Runtime, and return what the program returns."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn
from torch.nn.functional import affine_grid

import hagane
from hagane.errors import InvalidArgument
from hagane.graph import to_proto


def decayed(x: Any) -> Any:
    steps = 0
    while x.abs().max() > 0.1:
        x = torch.tanh(x) * 0.5
        steps = steps + 1
    return x, steps


class Normed(nn.Module):
    """Operators of opsets 14 to 20, and reductions over axes."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.exact, self.tanh = nn.LayerNorm(8), nn.GELU(), nn.GELU("tanh")

    def forward(self, x: Any) -> Any:
        y = self.norm(x)
        return (
            self.exact(y) + self.tanh(y), nn.functional.hardswish(y), nn.functional.mish(y),
            y.mean(-1), y.amax(1), y.logsumexp(2), torch.split(y, 4, 2)[1], y[:, ::2],
            nn.functional.pad(y, (1, 2)), y.reshape(-1, 4), y.shape[1], y.cumprod(-2),
            y.tril(1), (y > 0).triu(-y.shape[1] // 2), y.long().triu(),
            affine_grid(y[:, 0, :6].reshape(-1, 2, 3), (y.shape[0], 1, 3, y.shape[1]), False),
        )  # fmt: skip


@pytest.mark.parametrize("opset", [13, 14, 16, 17, 18, 20])
def test_a_graph_in_an_earlier_opset_computes_the_same(opset: int) -> None:
    torch.manual_seed(0)
    for program, sizes in ((decayed, (3,)), (Normed().eval(), (4, 8))):
        shape = "batch, " + ("3" if len(sizes) == 1 else "n, 8")
        model = hagane.capture(program, f"float32[{shape}]", opset=opset)
        assert model.graph.opset_imports[""] == opset
        places = [node for node in model.graph.all_nodes() if "hagane.place" in node.metadata_props]
        assert places
        session = onnxruntime.InferenceSession(to_proto(model).SerializeToString())
        for rows in (2, 5):
            x = torch.randn(rows, *sizes)
            with torch.no_grad():
                expected = program(x)
            for a, b in zip(session.run(None, {"x": x.numpy()}), expected, strict=True):
                np.testing.assert_allclose(a, np.asarray(b), rtol=1e-4, atol=1e-5)


class Kept(nn.Module):
    """The rows above zero, in another shape."""

    def forward(self, x: Any) -> Any:
        rows = x[x[:, 0] > 0]
        return rows.view(rows.shape[0], 2, 2).transpose(0, 1).reshape(4, -1) * 2


@pytest.mark.parametrize("opset", [13, 14])
def test_a_size_that_data_tell_may_be_zero_in_any_opset(opset: int) -> None:
    model = hagane.capture(Kept(), "float32[n, 4]", opset=opset)
    sessions = [
        onnxruntime.InferenceSession(to_proto(model).SerializeToString()),
        hagane.InferenceSession(model),
    ]
    for sign in (1, -1):
        x = np.linspace(sign, 3 * sign, 12, dtype=np.float32).reshape(3, 4)
        x[1] *= -1
        for rows in (x, x[::2]):
            expected = Kept()(torch.tensor(rows)) if (rows[:, 0] > 0).any() else np.zeros((4, 0))
            for session in sessions:
                np.testing.assert_array_equal(session.run(None, {"x": rows})[0], expected)


def test_what_an_opset_has_no_form_for_is_named() -> None:
    def masked(x: Any, y: Any) -> Any:
        return x & y

    types = ("int64[n]", "int64[n]")
    assert hagane.capture(masked, *types, opset=18).graph.opset_imports[""] == 18
    text = r"opset 17 has no BitwiseAnd, and hagane cannot .* from opset 18 on"
    with pytest.raises(InvalidArgument, match=text):
        hagane.capture(masked, *types, opset=17)
    with pytest.raises(InvalidArgument, match="opset=11: expected 13 or later"):
        hagane.capture(masked, *types, opset=11)


@pytest.mark.parametrize("opset", [17, 19, 20])
def test_fourier_transforms_say_their_axis_as_the_opset_does(opset: int) -> None:
    def program(x: Any) -> Any:
        spectrum = torch.fft.rfft(x, dim=1)
        return spectrum.abs(), torch.fft.irfft(spectrum, n=5, dim=1), torch.fft.fft(x).real

    model = hagane.capture(program, "float32[n, 5, m]", opset=opset)
    session = onnxruntime.InferenceSession(to_proto(model).SerializeToString())
    for shape in ((2, 5, 3), (1, 5, 4)):
        x = torch.randn(shape)
        for a, b in zip(session.run(None, {"x": x.numpy()}), program(x), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
