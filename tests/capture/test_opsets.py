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
        assert all(value.uses() for value in model.graph.initializers.values())
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


@pytest.mark.parametrize("kind", ["int64", "int32", "uint8", "int8"])
def test_bits_of_integers_are_told_before_opset_18(kind: str) -> None:
    def masked(x: Any, y: Any) -> Any:
        return x & y, x | y, x ^ y, ~x, x & 15, (x | 9) & 6, x ^ 1

    model = hagane.capture(masked, f"{kind}[n]", f"{kind}[n]", opset=17)
    session = onnxruntime.InferenceSession(to_proto(model).SerializeToString())
    assert not [node for node in model.graph.all_nodes() if node.op_type.startswith("Bitwise")]
    limits = np.iinfo(kind)
    ends = [limits.min, limits.max, 0, 1, 5, 100, limits.max // 3, limits.min // 2]
    x = np.array(ends * 2, kind)
    y = np.array([*ends, *ends[::-1]], kind)
    expected = masked(torch.from_numpy(x), torch.from_numpy(y))
    for ours, theirs in zip(session.run(None, {"x": x, "y": y}), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs.numpy())


@pytest.mark.parametrize("opset", [15, 17])
def test_elements_are_joined_before_there_is_a_scatter_that_does(opset: int) -> None:
    def joined(x: Any, at: Any, y: Any) -> Any:
        return (
            x.scatter_add(1, at, y), x.scatter_reduce(0, at, y, "prod"),
            x.scatter_reduce(1, at, y, "amax", include_self=True), x.index_add(0, at[:, 0], y),
        )  # fmt: skip

    model = hagane.capture(joined, "float32[n, 3]", "int64[n, 3]", "float32[n, 3]", opset=opset)
    session = onnxruntime.InferenceSession(to_proto(model).SerializeToString())
    for rows in (3, 5):
        x, y = torch.randn(rows, 3), torch.randn(rows, 3)
        at = torch.tensor([[0, 2, 2], [0, 1, 0], [1, 1, 2], [2, 0, 0], [0, 0, 0]])[:rows]
        feed = {"x": x.numpy(), "at": at.numpy(), "y": y.numpy()}
        for ours, theirs in zip(session.run(None, feed), joined(x, at, y), strict=True):
            np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-5, atol=1e-6)


def test_what_an_opset_has_no_form_for_is_named() -> None:
    def transformed(x: Any) -> Any:
        return torch.fft.rfft(x).abs()

    assert hagane.capture(transformed, "float32[n, 4]", opset=17).graph.opset_imports[""] == 17
    text = r"opset 16 has no DFT, and hagane cannot .* from opset 17 on"
    with pytest.raises(InvalidArgument, match=text):
        hagane.capture(transformed, "float32[n, 4]", opset=16)
    with pytest.raises(InvalidArgument, match="opset=11: expected 13 or later"):
        hagane.capture(transformed, "float32[n, 4]", opset=11)


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
