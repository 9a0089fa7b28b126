"""Gradients of captured models end where the program lets none through."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest

import hagane
from hagane.errors import InvalidArgument
from hagane.graph import to_proto

torch = pytest.importorskip("torch")
nn = torch.nn


class Stopping(nn.Module):
    """Detached values, values without gradients, padding; within loops and branches too."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(7, 4, padding_idx=-7)
        self.left, self.right = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, i: Any, x: Any) -> Any:
        h = self.table(i).mean(1) + x
        with torch.no_grad():
            target = torch.tanh(self.right(h))
        y = self.left(h)
        z = y + (torch.round(y) - y).detach()  # the gradient of y, straight through
        for k in range(i.shape[1]):
            z = z + self.table(i[:, k]) * z.detach()
            if z.sum() > 0:
                z = z - target * x.data
        return ((z - target) ** 2).sum() / (x.abs().sum().item() + 1)


@pytest.mark.parametrize("opset", [None, 13])
def test_gradients_of_a_captured_model_end_where_pytorchs_do(opset: int | None) -> None:
    torch.manual_seed(0)
    module = Stopping()
    model = hagane.capture(module, "int64[b,t]", "float32[b,4]", opset=opset)
    of = str(model.graph.outputs[0].name)
    assert {node.domain for node in model.graph.all_nodes()} == {""}
    trained = ["table.weight", "left.weight"]
    made = hagane.gradient(model, of=of, with_respect_to=["x", *trained])
    peer = onnxruntime.InferenceSession(to_proto(made).SerializeToString())
    sessions = (hagane.InferenceSession(made), peer)
    for shape in ((3, 4), (1, 1), (2, 3)):
        i, x = torch.randint(0, 3, shape), torch.randn(shape[0], 4, requires_grad=True)
        module.zero_grad()
        module(i, x).backward()
        wanted = [x.grad, *(module.get_parameter(name).grad for name in trained)]
        names = [f"{name}.gradient" for name in ("x", *trained)]
        for session in sessions:
            found = session.run(names, {"i": i.numpy(), "x": x.detach().numpy()})
            for name, one, other in zip(names, found, wanted, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5, err_msg=name)
    with pytest.raises(InvalidArgument, match="does not depend on 'right.weight'"):
        hagane.gradient(model, of=of, with_respect_to=["right.weight"])


def test_marks_are_kept_in_files(tmp_path: Any) -> None:
    model = hagane.capture(lambda x: (x * x.detach()).sum(), "float32[n]")
    ir.save(model, tmp_path / "model.onnx")
    of = str(model.graph.outputs[0].name)
    made = hagane.gradient(tmp_path / "model.onnx", of=of, with_respect_to=["x"])
    x = np.array([1, -2, 3], np.float32)
    (found,) = hagane.InferenceSession(made).run(["x.gradient"], {"x": x})
    np.testing.assert_array_equal(found, x)
