"""Gradients in scripts: what ``backward`` needs and frees, leaves, arrays, members of modules."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from hagane.checking import SCRIPT, Report, Request, check_source

HEAD = """import copy
import numpy as np
import torch
from torch import nn, optim
import torch.nn.functional as F
"""
GAN = """
G = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
D = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
for step in range(3):
    fake = G(torch.randn(5, 4))
    d = D(torch.randn(5, 2)).mean() - D(GIVEN).mean()
    d.backward()
    g = D(fake).mean()
    g.backward()
"""
RNN = """
rnn, head = nn.LSTM(3, 8), nn.Linear(8, 1)
h = (torch.zeros(1, 4, 8), torch.zeros(1, 4, 8))
for step in range(3):
    out, h = rnn(torch.randn(5, 4, 3), GIVEN)
    loss = head(out[-1]).mean()
    loss.backward()
"""


def checked(folder: Path, text: str) -> Report:
    """Return the report of a script."""
    file = folder / "script.py"
    file.write_text(HEAD + dedent(text))
    return check_source(Request(file, SCRIPT))


CLEAN = {
    "a generator is detached": GAN.replace("GIVEN", "fake.detach()"),
    "the states are detached": RNN.replace("GIVEN", "tuple(v.detach() for v in h)"),
    "the graph is kept": """
        body, a, b = nn.Linear(3, 4), nn.Linear(4, 1), nn.Linear(4, 2)
        h = torch.tanh(body(torch.ones(2, 3)))
        a(h).mean().backward(retain_graph=True)
        b(h).mean().backward()
        """,
    "one of two branches": """
        loss = torch.tanh(nn.Linear(3, 1)(torch.ones(2, 3))).mean()
        if torch.rand(1).item() > 0.5:
            loss.backward()
        else:
            (loss * 2).backward()
        """,
    "frozen parameters": """
        m = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
        for p in m[0].parameters():
            p.requires_grad = False
        m[0].weight.numpy()
        m(torch.ones(2, 3)).sum().backward()
        """,
    "an average of weights": """
        m = nn.Linear(3, 2)
        e = copy.deepcopy(m)
        e.extra = nn.Linear(2, 2)
        with torch.no_grad():
            for a, b in zip(e.parameters(), m.parameters()):
                a.mul_(0.9).add_(b, alpha=0.1)
        m.weight.data.fill_(0.1)
        nn.init.xavier_uniform_(m.weight)
        m.weight = nn.Parameter(torch.zeros(2, 3))
        m.load_state_dict(nn.Linear(3, 2).state_dict())
        """,
    "arrays of what has no gradients": """
        m = nn.Linear(3, 1)
        y = m(torch.ones(2, 3))
        y.detach().numpy(), y.data.numpy(), y.argmax(1).numpy(), (y > 0).numpy(), np.array(y.detach())
        with torch.no_grad():
            m(torch.ones(2, 3)).numpy()
        torch.ones(3).numpy()
        """,
    "items of a leaf": """
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        w[0].backward()
        (w * 2)[1].backward()
        """,
    "a penalty on gradients": """
        D = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
        x = torch.rand(5, 2, requires_grad=True)
        y = D(x)
        g, = torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)
        (y.mean() + ((g.norm(2, dim=1) - 1) ** 2).mean()).backward()
        """,
    "a function with a backward of its own": """
        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return torch.from_numpy(x.numpy() ** 2)
            @staticmethod
            def backward(ctx, g):
                x, = ctx.saved_tensors
                return 2 * x * g
        w = torch.ones(3, requires_grad=True)
        Square.apply(w).sum().backward()
        """,
    "an image is optimised": """
        img = torch.rand(1, 3, 8, 8, requires_grad=True)
        opt = optim.LBFGS([img])
        def closure():
            with torch.no_grad():
                img.clamp_(0, 1)
            loss = img.mean()
            loss.backward()
            return loss
        opt.step(closure)
        """,
}
FAULTS = {
    "a second time": (
        "loss = nn.Linear(3, 1)(torch.ones(2, 3)).tanh().mean()\nloss.backward()\nloss.backward()\n",
        8, "was differentiated before, by line 7",
    ),
    "the generator is not detached": (GAN.replace("GIVEN", "fake"), 14, "by line 12"),
    "the states carry the graph": (RNN.replace("GIVEN", "h"), 12, "by line 12"),
    "under no_grad": (
        "with torch.no_grad():\n    y = nn.Linear(3, 1)(torch.ones(2, 3)).mean()\ny.backward()\n",
        8, "needs no gradient",
    ),
    "of what is detached": (
        "y = F.cross_entropy(nn.Linear(3, 4)(torch.ones(2, 3)).detach(), torch.zeros(2).long())\n"
        "y.backward()\n", 7, "needs no gradient",
    ),
    "numpy": ("nn.Linear(3, 1)(torch.ones(2, 3)).numpy()\n", 6, "needs gradients, which no array has"),
    "np.array": ("np.array(nn.Linear(3, 1)(torch.ones(2, 3)))\n", 6, "which no array has"),
    "a leaf in place": ("w = torch.zeros(3, requires_grad=True)\nw += 1\n", 7, "is a leaf that needs"),
    "a weight in place": ("nn.Linear(3, 1).weight.fill_(0.5)\n", 6, "is a leaf that needs gradients"),
    "an item of a weight": ("m = nn.Linear(3, 1)\nm.weight[0, 0] = 1.0\n", 7, "is a leaf that needs"),
    "integers": ("torch.arange(3).requires_grad_()\n", 6, "only floating-point and complex tensors"),
    "made as integers": ("torch.zeros(3, dtype=torch.long, requires_grad=True)\n", 6, "only floating"),
    "parameters of integers": ("nn.Parameter(torch.arange(4))\n", 6, "only floating-point"),
    "no leaf": ("w = nn.Linear(3, 1).weight * 2\noptim.Adam([w])\n", 7, "can't optimize"),
    "the rate": ("optim.Adam(nn.Linear(3, 1).parameters(), lr=-0.1)\n", 6, "a learning rate of 0 or more"),
    "a tensor for a parameter": (
        "m = nn.Linear(3, 1)\nm.weight = torch.zeros(1, 3)\n", 7, "expected nn.Parameter or None",
    ),
    "a tensor is registered": (
        "nn.Module().register_parameter('s', torch.ones(1))\n", 6, "expected nn.Parameter or None as 's'",
    ),
    "a state of another width": (
        "nn.Linear(3, 2).load_state_dict(nn.Linear(3, 4).state_dict())\n", 6, "'weight' is",
    ),
    "a state of other names": (
        "nn.Linear(3, 2).load_state_dict({'module.weight': torch.ones(2, 3)})\n", 6,
        "the state lacks 'weight', 'bias'",
    ),
    "no super().__init__()": (
        "class M(nn.Module):\n    def __init__(self):\n        self.a = nn.Linear(3, 3)\n"
        "        self.b = nn.Linear(3, 3)\n    def forward(self, x):\n        return self.b(self.a(x))\n"
        "M()(torch.ones(2, 3))\n", 8, "cannot hold before Module.__init__() is called",
    ),
    "the data of a loss for its settings": (
        "y = torch.ones(2, 3)\nnn.MSELoss(y, y)\n", 7, "MSELoss takes settings",
    ),
    "an array for a layer": (
        "nn.Linear(3, 2)(np.ones((4, 3), np.float32))\n", 6, "expected torch.Tensor, got numpy.ndarray",
    ),
    "a module for parameters": (
        "nn.utils.clip_grad_norm_(nn.Linear(3, 2), 1.0)\n", 6, "expected parameters to clip",
    ),
    "rows of several lengths": ("torch.tensor([[1, 2], [3]])\n", 6, "rows of one length"),
    "texts": ("torch.tensor(['a', 'b'])\n", 6, "takes no texts"),
    "classes": ("F.one_hot(torch.tensor([0, 5]), 4)\n", 6, "expected classes below num_classes=4, got 5"),
    "items of several sizes": (
        "class D(torch.utils.data.Dataset):\n    def __len__(self): return 8\n"
        "    def __getitem__(self, i): return torch.ones(i + 1)\n"
        "for b in torch.utils.data.DataLoader(D(), batch_size=4):\n    pass\n", 9, "items of one size",
    ),
    "a dataset without a length": (
        "class D(torch.utils.data.Dataset):\n    def __getitem__(self, i): return torch.ones(3)\n"
        "torch.utils.data.DataLoader(D(), batch_size=4)\n", 8, "object of type 'D' has no len()",
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", CLEAN.values(), ids=list(CLEAN))
def test_gradients_that_pytorch_computes_are_clean(text: str, tmp_path: Path) -> None:
    report = checked(tmp_path, text)
    assert (report.errors, [note.message for note in report.unknown]) == ([], [])


def test_a_function_by_itself_may_be_called_where_no_gradients_are_recorded(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    text = "net = nn.Linear(3, 2)\ndef predict(x: 'float32[n, 3]'):\n    return net(x).numpy()\n"
    file.write_text(HEAD + text)
    report = check_source(Request(file))
    assert (report.errors, report.returned) == ([], "numpy.ndarray(dtype=float32, shape=(n, 2))")


@pytest.mark.parametrize(("text", "line", "told"), FAULTS.values(), ids=list(FAULTS))
def test_a_fault_that_pytorch_raises_is_told_once(
    text: str, line: int, told: str, tmp_path: Path
) -> None:
    report = checked(tmp_path, text)
    assert [(e.place.line, told in e.message) for e in report.errors] == [(line, True)], report
    assert report.unknown == []
