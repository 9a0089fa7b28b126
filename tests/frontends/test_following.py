"""One message for one mistake: nothing is said of what only follows from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hagane.checking import SCRIPT, Request, check_source

HEAD = "import torch\nimport torch.nn as nn\nfrom torch.autograd.functional import jacobian\n"
FAULTS = [
    (  # a layer under two names
        "class G(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.out = nn.Linear(19, 32)\n"
        "    def forward(self, x):\n"
        "        return self.out(x)  # here\n"
        "g = G()\n"
        "g(torch.zeros(4, 32))\n"
        "g.out(torch.zeros(1, 32))\n"
    ),
    (  # a function whose result a derivative is asked of
        "lin = nn.Linear(3, 4)\n"
        "def f(a):\n"
        "    return lin(a).squeeze(1)  # here\n"
        "jacobian(f, torch.zeros(2, 5))\n"
    ),
    (  # a tensor of the wrong width, in two sums
        "def scan(u, delta):\n"
        "    a = torch.exp(delta.unsqueeze(-1) * torch.ones(64, 8))  # here\n"
        "    b = delta.unsqueeze(-1) * torch.ones(4, 16, 1, 8) * u.unsqueeze(-1)\n"
        "    return a + b\n"
        "scan(torch.ones(4, 16, 64), torch.ones(4, 16, 32) * 2)\n"
    ),
    (  # a backward function, for two calls and element types
        "class S(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x, w):\n"
        "        ctx.save_for_backward(x, w)\n"
        "        return x * w\n"
        "    @staticmethod\n"
        "    def backward(ctx, g):\n"
        "        x, w = ctx.saved_tensors\n"
        "        return g * w, g * x\n"
        "S.apply(torch.ones(4), torch.ones(1))  # here\n"
        "S.apply(torch.ones(3, dtype=torch.double), torch.ones(1, dtype=torch.double))\n"
    ),
    (  # a module that gives one row and column too few, compared at two calls and reshaped
        "net = nn.Sequential(nn.ConvTranspose2d(4, 1, 3, 2, 1))\n"
        "def loss(z, x):\n"
        "    return torch.distributions.Bernoulli(logits=net(z)).log_prob(x).sum()  # here\n"
        "loss(torch.zeros(3, 4, 4, 4), torch.ones(3, 1, 8, 8))\n"
        "torch.distributions.Bernoulli(logits=net(torch.zeros(9, 4, 4, 4))).mean.view(3, 3, 8, 8)\n"
    ),
    (  # a function that gives twice the rows, for as many rows as each call has
        "lin = nn.Linear(2, 1)\n"
        "def net(x, t):\n"
        "    return lin(torch.cat([torch.cat([x, t], 1)] * 2))\n"
        "nn.functional.mse_loss(net(torch.rand(8, 1), torch.rand(8, 1)), torch.rand(8, 1))  # here\n"
        "net(torch.rand(5, 1), torch.rand(5, 1)) * torch.rand(5, 1)\n"
        "net(torch.rand(12, 1), torch.rand(12, 1)).reshape(3, 4)\n"
    ),
    (  # a layer with one class too many, in two losses
        "head, weight = nn.Linear(6, 5), torch.ones(4)\n"
        "out, y = head(torch.rand(3, 6)), torch.zeros(3).long()\n"
        "nn.functional.cross_entropy(out, y, weight=weight)  # here\n"
        "out.softmax(1) * nn.functional.one_hot(y, 4)\n"
    ),
    (  # a sum that fails at one call, and broadcasts to what is wrong at the next
        "table = torch.zeros(1, 100, 32)\n"
        "def embed(x):\n"
        "    return x + table  # here\n"
        "embed(torch.zeros(7, 8, 32))\n"
        "embed(torch.zeros(7, 1, 32))[-1].sum(-1).argmax(0, keepdim=True).sum()\n"
        "embed(torch.zeros(7, 1, 32))[-1].sum(-1).item()\n"
    ),
    (  # a number of axes that no one knows after a failure
        "def keep(x):\n"
        "    a, b = x.shape  # here\n"
        "    return x * a\n"
        "y = keep(torch.zeros(2, 3, 4))\n"
        "y.new_empty((2,) + (1,) * (y.ndim - 1))\n"
    ),
]


@pytest.mark.parametrize("text", FAULTS)
def test_a_mistake_has_one_message(text: str, tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(HEAD + text)
    report = check_source(Request(file, SCRIPT))
    lines = file.read_text().splitlines()
    assert report.exit_code == 1
    assert ["# here" in lines[error.place.line - 1] for error in report.errors] == [True]


def test_a_value_may_be_none_or_a_number_in_any_turn_of_a_loop(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(
        HEAD + "def learn(n):\n"
        "    if torch.rand(()).item() < 0.5:\n"
        "        return None\n"
        "    return torch.zeros(n).sum().item()\n"
        "for episode in range(60):\n"
        "    done, total = False, 0.0\n"
        "    while not done:\n"
        "        loss = learn(3)\n"
        "        done = torch.rand(()).item() < 0.1\n"
        "        if loss is not None:\n"
        "            total += loss\n"
        "print(loss)\n"
    )
    report = check_source(Request(file, SCRIPT))
    assert (report.exit_code, report.errors, report.unknown) == (0, [], [])


def test_a_target_that_became_a_square_is_refused_by_the_loss(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(
        HEAD + "q, r, best = torch.rand(16), torch.rand(16), torch.rand(16, 3)\n"
        "target = r + best.gather(1, torch.zeros(16, 1).long())\n"
        "nn.functional.smooth_l1_loss(q, target)  # here\n"
        "nn.functional.mse_loss(best, torch.rand(16, 1))\n"
        "nn.functional.mse_loss(torch.rand(16, 16), torch.rand(16, 1).T)\n"
    )
    report = check_source(Request(file, SCRIPT))
    assert [(error.place.line, error.code) for error in report.errors] == [(6, "broadcast")]
    assert "broadcast to (16, 16): every element is compared with others" in (
        report.errors[0].message
    )


def test_a_clash_of_two_tensors_is_told_once_though_their_sums_clash_too(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(
        HEAD + "def dice(p, t):\n"
        "    inter = (p * t).sum((2, 3))\n"
        "    return inter / (p.sum((2, 3)) + t.sum((2, 3)))\n"
        "dice(torch.rand(2, 4, 8, 8), torch.rand(2, 8, 4, 8).exp())\n"
        "eps, real, fake = torch.rand(3, 1, 2), torch.rand(3, 5, 6), torch.rand(3, 5, 6)\n"
        "mixed = eps * real + (1 - eps) * fake\n"
        "real + torch.rand(3, 5, 2)\n"
        "fake * torch.rand(3, 5, 2)\n"
    )
    report = check_source(Request(file, SCRIPT))
    first = len(HEAD.splitlines())
    assert [error.place.line - first for error in report.errors] == [2, 6, 7, 8]


def test_two_faults_of_one_right_size_are_told_both(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(
        HEAD + "lin = nn.Linear(3, 16)\n"
        "def f(x):\n"
        "    return lin(x)\n"
        "f(torch.zeros(4, 3)) * torch.ones(4, 8)\n"
        "f(torch.zeros(4, 3)) * torch.ones(4, 5)\n"
        "f(torch.zeros(6, 3)) * torch.ones(7, 16)\n"
    )
    report = check_source(Request(file, SCRIPT))
    first = len(HEAD.splitlines())
    assert [error.place.line - first for error in report.errors] == [4, 5, 6]


def test_a_number_of_axes_that_is_not_known_is_no_mistake_of_the_program(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(
        HEAD + "import json\n"
        "x = torch.zeros(2, 3)\n"
        "for _ in range(json.load(open('steps.json'))):\n"
        "    x = x.unsqueeze(0)\n"
        "try:\n"
        "    y = x.new_zeros((1,) * x.dim())\n"
        "except ValueError:\n"
        "    raise\n"
    )
    report = check_source(Request(file, SCRIPT))
    assert (report.exit_code, report.errors) == (2, [])
    assert report.unknown


def test_a_value_of_a_module_that_is_not_there_is_not_known(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(
        HEAD + "import shapes\n"
        "from sizes import WIDTH as width\n"
        "x = torch.zeros(shapes.N, 3)\n"
        "for i in range(width):\n"
        "    lin = nn.Linear(i, 3)\n"
        "y = torch.zeros(2, 3)[width]\n"
        "z = torch.zeros(2, 3) + torch.zeros(2, 4)\n"
    )
    report = check_source(Request(file, SCRIPT))
    first = len(HEAD.splitlines())
    assert [error.place.line - first for error in report.errors] == [7]
    assert report.unknown[0].message == (
        "the value of 'shapes.N' is not known: 'shapes' is no library that hagane knows, and no "
        "module beside the file or in its project"
    )
    assert "the value of 'sizes.WIDTH'" in report.unknown[1].message


def test_content_that_is_not_known_keeps_the_type_of_a_parameter(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(
        HEAD + "import strange\n"
        "lin = nn.Linear(3, 4)\n"
        "lin.weight.data = strange.weights()\n"
        "lin(torch.zeros(2, 5))\n"
    )
    report = check_source(Request(file, SCRIPT))
    assert [error.place.line for error in report.errors] == [7]
    assert [note.message.partition(" is ")[0] for note in report.unknown] == ["'strange.weights'"]
