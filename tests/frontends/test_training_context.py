"""What surrounds a forward pass: memory, hooks, mixed precision, optimizers, loaders, arguments."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import hagane
from hagane.checking import SCRIPT, Report, Request, check_source
from hagane.cli import main

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


class Inner(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.linear(x)
        return found


def longer(module: torch.nn.Module, args: object, out: torch.Tensor) -> torch.Tensor:
    return out.unsqueeze(0)


def checked(tmp_path: Path, text: str) -> Report:
    file = tmp_path / "train.py"
    file.write_text(HEAD + text)
    return check_source(Request(file, SCRIPT))


VIEWS = [
    "x.t().view(-1)",
    "x.permute(1, 0).view(15)",
    "x.t().contiguous().view(-1)",
    "x.t().reshape(-1)",
    "x.t().clone().view(-1)",
    "(x.t() + 1).view(-1)",
    "torch.relu(x.t()).view(3, 5)",
    "x.t().view(3, 5, 1)",
    "z.transpose(1, 2).view(2, 12)",
    "z.transpose(0, 1).view(3, 2, 2, 2)",
    "z.permute(2, 0, 1).view(4, 6)",
    "z.permute(1, 2, 0).view(12, 2)",
    "z.transpose(0, 1).flatten(1).view(-1)",
    "x.view(5, 1, 3).transpose(0, 1).view(-1)",
    "x.t().t().view(-1)",
    "x.mT.view(-1)",
    "x[:, :2].view(-1)",
    "x[1:3].view(-1)",
    "x[::2].view(-1)",
    "z[..., ::2].view(-1)",
    "z[..., 1].view(6)",
    "z[:, 1].view(2, 2, 2)",
    "z[:, None, 1:].view(-1)",
    "x.chunk(3, 1)[0].view(5)",
    "x.split(2, 1)[0].view(10)",
    "x[:, 0].unsqueeze(1).expand(5, 2).view(10)",
    "x[:1].expand(5, 3).view(5, 3, 1)",
    "x.unfold(0, 2, 1).view(-1)",
    "x.unfold(1, 3, 1).view(15)",
    "x[:3].diagonal().view(3, 1)",
    "z.unbind(2)[0].view(-1)",
    "z.narrow(1, 0, 2).view(-1)",
    "x.t().unsqueeze(0).view(15)",
    "(x.t() + torch.ones(5)).view(-1)",
    "x.t().eq(torch.ones(1, 5)).view(-1)",
    "(torch.ones(1, 5) > x.t()).view(-1)",
    "torch.maximum(x.t(), torch.ones(5)).view(-1)",
    "x[:, :2].reshape(-1).view(2, 5)",
    "x[:, [0, 1]].view(-1)",
]


@pytest.mark.parametrize("text", VIEWS)
def test_a_view_needs_neighbours_in_memory_as_pytorch_has_it(text: str, tmp_path: Path) -> None:
    given = {"x": torch.zeros(5, 3), "z": torch.zeros(2, 3, 4), "torch": torch}
    try:
        eval(text, given)
        fails = False
    except RuntimeError:
        fails = True
    report = checked(
        tmp_path, f"x = torch.zeros(5, 3)\nz = torch.zeros(2, 3, 4)\ny = {text}\nprint(y)\n"
    )
    assert [e.code for e in report.errors] == (["view"] if fails else [])
    if fails:
        assert "use .reshape(...)" in report.errors[0].remedy


AUTOCAST = [
    "m(x)", "x @ x.t()", "F.softmax(m(x), -1)", "F.mse_loss(m(x), x)", "m(x) + x", "n(m(x))",
    "torch.cat([m(x), x])", "F.cross_entropy(m(x), y)", "torch.exp(m(x))", "m(x).sum()",
    "c(x.view(3, 1, 2, 2))", "b(c(x.view(3, 1, 2, 2)))", "torch.einsum('ij,kj->ik', x, x)",
    "torch.bmm(x[None], x.t()[None])", "m(x.double().float())", "x * 2",
    "F.scaled_dot_product_attention(x[None], x[None], x[None])", "F.gelu(m(x))",
    "F.binary_cross_entropy_with_logits(m(x), x)", "torch.stack([m(x), x])", "m(x).prod()",
    "a(x[None], x[None], x[None])[0]",
]  # fmt: skip
MADE = (
    "m, n = nn.Linear(4, 4), nn.LayerNorm(4)\nc, b = nn.Conv2d(1, 2, 2), nn.BatchNorm2d(2)\n"
    "a = nn.MultiheadAttention(4, 2, batch_first=True)\n"
    "x, y = torch.ones(3, 4), torch.ones(3, dtype=torch.long)\n"
)


@pytest.mark.parametrize("text", AUTOCAST)
def test_autocast_gives_the_element_types_of_pytorch(text: str, tmp_path: Path) -> None:
    names: dict[str, object] = {}
    exec(HEAD + MADE, names)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected = eval(text, names)
    report = checked(
        tmp_path,
        MADE
        + f"with torch.autocast('cpu', dtype=torch.bfloat16):\n    z = {text}\nw = z\nv = x @ x.t()\n",
    )
    assert report.exit_code == 0, (report.errors, report.unknown)
    found = {t.expression: t.dtype for t in report.types}
    types = {torch.float32: "float32", torch.bfloat16: "bfloat16"}
    assert found["w"] == types[expected.dtype]
    assert found["v"] == "float32"


def test_a_hook_changes_what_comes_out_until_it_is_removed(tmp_path: Path) -> None:
    report = checked(
        tmp_path,
        "m = nn.Linear(4, 4)\nx = torch.ones(3, 4)\n"
        "before = m.register_forward_pre_hook(lambda module, args: (args[0][:2],))\n"
        "after = m.register_forward_hook(lambda module, args, out: out.sum(1))\n"
        "a = m(x)\nafter.remove()\nb = m(x)\nbefore.remove()\nc = m(x)\n",
    )
    shapes = {t.expression: t.shape for t in report.types if t.expression in ("a", "b", "c")}
    sizes = {name: [n for n, _ in shape or ()] for name, shape in shapes.items()}
    assert sizes == {"a": [2], "b": [2, 4], "c": [3, 4]}


def test_a_real_module_keeps_its_hooks() -> None:
    module = Inner()
    module.linear.register_forward_hook(longer)
    report = hagane.check(module, "float32[batch, 4]")
    assert "(1, batch, 2)" in str(report.returned)


WRONG = {
    "a loss of every pair": (
        "m, x, y = nn.Linear(4, 1), torch.ones(5, 4), torch.ones(5)\nloss = F.mse_loss(m(x), y)\n",
        "every element is compared with others",
    ),
    "an optimizer without parameters": (
        "o = torch.optim.Adam([])\n", "the optimizer got an empty list of parameters",
    ),
    "a setting that no optimizer has": (
        "o = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=1, betas=(0.9, 0.99))\n",
        "unexpected argument 'betas'",
    ),
    "a schedule of no optimizer": (
        "s = torch.optim.lr_scheduler.StepLR(nn.Linear(1, 1), 3)\n", "expected an optimizer",
    ),
    "rows of two lengths": (
        "from torch.utils.data import TensorDataset\n"
        "d = TensorDataset(torch.ones(5, 2), torch.ones(6))\n", "expected tensors of one length",
    ),
    "parts that are not the whole": (
        "from torch.utils.data import TensorDataset, random_split\n"
        "d = random_split(TensorDataset(torch.ones(5, 2)), [3, 3])\n", "lengths that sum to 5",
    ),
    "an item that no batch is made of": (
        "from torch.utils.data import DataLoader, Dataset\n"
        "class D(Dataset):\n    def __len__(self):\n        return 9\n"
        "    def __getitem__(self, i):\n        return torch.ones(2), None\n"
        "for x, y in DataLoader(D(), batch_size=2):\n    print(x)\n", "default_collate makes",
    ),
    "the last batch is smaller": (
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "for (x,) in DataLoader(TensorDataset(torch.ones(10, 4)), batch_size=4):\n"
        "    y = x.view(4, 2, 2)\n", "cannot reshape",
    ),
    "a gradient of another shape": (
        "class S(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        ctx.save_for_backward(x)\n        return x.sum(1)\n    @staticmethod\n"
        "    def backward(ctx, g):\n        return g\n"
        "y = S.apply(torch.ones(3, 2))\n", "gradient 0 has to have the shape of argument 0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_fault_of_training_is_named(name: str, tmp_path: Path) -> None:
    text, message = WRONG[name]
    report = checked(tmp_path, text)
    assert [e for e in report.errors if message in e.message], (report.errors, report.unknown)
    assert len(report.errors) == 1


def test_a_size_that_comes_from_outside_is_any_number_which_is_told(tmp_path: Path) -> None:
    made = "import json\ns = json.load(open('settings.json'))\nm = nn.Linear(4, s['width'])\n"
    report = checked(
        tmp_path, made + "n = nn.Linear(s['width'], s['heads'])\nn(m(torch.ones(2, 4)))\n"
    )
    assert (report.exit_code, report.unknown) == (0, [])
    told = "what 'json.load' gives is a whole number here"
    assert {note.message for note in report.assumptions} == {told}
    report = checked(tmp_path, made + "m(torch.ones(2, 3))\n")
    assert [e.code for e in report.errors] == ["shape-mismatch"]


def test_what_a_run_alone_knows_is_no_clean_bill_where_it_need_not_be_a_number(
    tmp_path: Path,
) -> None:
    report = checked(tmp_path, "x = torch.load('x.pt')\ny = nn.Linear(4, 2)(x)\n")
    assert report.exit_code == 2
    assert "which only a run knows" in report.unknown[0].message


def test_parts_of_small_known_tensors_lie_on_their_device(tmp_path: Path) -> None:
    report = checked(
        tmp_path, "x = torch.ones(8).cuda()\ny = x[:, None] * torch.ones(4).cuda()[None]\n"
    )
    assert (report.errors, report.exit_code) == ([], 0)
    report = checked(tmp_path, "x = torch.ones(8).cuda()\ny = x[:4] * torch.ones(4)[:4]\n")
    assert [e.code for e in report.errors] == ["device-mismatch"]


def test_a_line_that_is_typed_is_open(tmp_path: Path) -> None:
    report = checked(tmp_path, "m = nn.Linear(4, int(input('width? ')))\ny = m(torch.ones(2, 4))\n")
    assert (report.exit_code, report.unknown) == (0, [])
    report = checked(tmp_path, "m = nn.Linear(4, int(input('width? ')))\ny = m(torch.ones(2, 3))\n")
    assert [e.code for e in report.errors] == ["shape-mismatch"]


def test_a_failed_value_fails_no_assertion(tmp_path: Path) -> None:
    report = checked(
        tmp_path,
        "def f(x, flag):\n    assert x.dim() == 3 or not flag\n    return x\n"
        "x = torch.zeros(3, 4).view(5)\ny = f(x, True)\n",
    )
    assert [e.code for e in report.errors] == ["shape-mismatch"]


def test_the_command_follows_a_script_as_it_is_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "train.py"
    file.write_text(
        HEAD + "import argparse\n\ndef main():\n    p = argparse.ArgumentParser()\n"
        "    p.add_argument('--width', type=int, default=3)\n    args = p.parse_args()\n"
        "    print(nn.Linear(4, 2)(torch.ones(2, args.width)))\n\n"
        "if __name__ == '__main__':\n    main()\n"
    )
    with pytest.raises(SystemExit) as left:
        main(["check", "--no-cache", str(file)])
    assert left.value.code == 1
    assert "train.py:10:" in capsys.readouterr().out


def test_classes_of_libraries_are_compared_by_name(tmp_path: Path) -> None:
    report = checked(
        tmp_path,
        "norm = nn.BatchNorm2d\nlayer = nn.Conv2d(3, 4, 3, bias=norm == nn.InstanceNorm2d)\n"
        "assert layer.bias is None\nassert norm != nn.LayerNorm\nassert norm == nn.BatchNorm2d\n",
    )
    assert (report.exit_code, report.errors) == (0, [])


def test_a_layer_whose_setting_is_open_is_no_clean_bill(tmp_path: Path) -> None:
    report = checked(
        tmp_path,
        "import random\nlayer = nn.Conv2d(3, 4, 3, bias=random.random() < 0.5)\n"
        "y = layer(torch.zeros(2, 3, 8, 8))\n",
    )
    assert (report.exit_code, report.errors) == (2, [])
    assert "whose settings only a run knows" in report.unknown[0].message


def test_a_program_that_asks_for_the_compiler_is_told_that_it_is_there(tmp_path: Path) -> None:
    report = checked(
        tmp_path,
        "import torch._dynamo\n"
        "if torch._dynamo.eval_frame.is_dynamo_supported():\n    y = torch.ones(2, 3).view(5)\n",
    )
    assert [e.code for e in report.errors] == ["shape-mismatch"]


RECORDED = """
from tqdm import tqdm, trange
from tqdm.auto import tqdm as bar
from torch.utils.tensorboard import SummaryWriter
import time
import matplotlib.pyplot as plt
import wandb
writer = SummaryWriter(f"runs/{time.time()}")
wandb.init(project="p", config={"lr": 1e-3})
net = nn.Linear(4, 2)
data = [torch.randn(3, 4) for _ in range(5)]
with bar(total=len(data), desc="d") as progress:
    for epoch in trange(2, leave=False):
        for step, x in enumerate(pbar := tqdm(data, disable=True, total=len(data))):
            loss = net(x).mean()
            pbar.set_postfix(loss=f"{loss.item():.3f}", lr=wandb.config.lr)
            progress.update(1)
            writer.add_scalar("loss", loss.item(), step)
            wandb.log({"loss": loss.item()})
writer.close()
figure, axes = plt.subplots(2, 3)
axes[0].plot([loss.item()])
plt.savefig("loss.png")
"""


def test_progress_bars_and_records_pass_on_what_they_show(tmp_path: Path) -> None:
    report = checked(tmp_path, RECORDED)
    assert report.exit_code == 0, (report.errors, report.unknown)


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("data = [torch.randn(3, 4)", "data = [torch.randn(3, 5)", "expected 4 features"),
        ("tqdm(data, disable=True,", "tqdm(7, disable=True,", "int(7) is not iterable"),
        ("writer.add_scalar(", "writer.add_scaler(", "no attribute 'add_scaler'"),
    ],
)
def test_what_a_progress_bar_passes_on_is_checked(
    tmp_path: Path, right: str, wrong: str, message: str
) -> None:
    report = checked(tmp_path, RECORDED.replace(right, wrong))
    assert report.exit_code == 1
    (error,) = report.errors
    assert message in error.message


def test_a_size_from_the_settings_of_a_run_is_assumed_to_be_a_number(tmp_path: Path) -> None:
    report = checked(tmp_path, "import wandb\nnn.Linear(wandb.config.width, 2)\n")
    assert [note.message for note in report.assumptions] == [
        "'wandb.config' is a whole number here"
    ]


REPLAY = """
import random
from collections import deque, namedtuple
Step = namedtuple(typename="Step", field_names=["state", "action", "following"])
memory = deque(maxlen=100)
for episode in range(2):
    for turn in range(9):
        following = None if random.random() < 0.1 else torch.randn(1, 6)
        memory.append(Step(torch.randn(1, 6), torch.tensor([[1]]), following))
        if len(memory) < 8:
            continue
        batch = Step(*zip(*random.sample(memory, 8)))
        rest = torch.cat([s for s in batch.following if s is not None])
        chosen = nn.Linear(6, 3)(torch.cat(batch.state)).gather(1, torch.cat(batch.action))
        best = nn.Linear(6, 3)(rest).max(1).values
"""


def test_named_tuples_drawn_from_a_memory_are_followed(tmp_path: Path) -> None:
    report = checked(tmp_path, REPLAY)
    assert report.exit_code == 0, (report.errors, report.unknown)
    wrong = checked(tmp_path, REPLAY.replace("(6, 3)(rest)", "(5, 3)(rest)"))
    assert ["expected 5 features" in e.message for e in wrong.errors] == [True]


@pytest.mark.parametrize(
    "text",
    [
        "x = torch.zeros(2, 3)\nx -= torch.zeros(2)\ny = x + torch.zeros(3)\nz = x - torch.zeros(5)\n",
        "def f(a, b): d['k'] = a\nd = {}\nf(1)\nprint(d['k'])\n",
        "def f(x):\n    loss = F.mse_loss(x, torch.zeros(5))\n"
        "    return (loss, x) if loss is not None else (x,)\nloss, x = f(torch.zeros(3))\n",
        "p = dict(nn.Linear(3, 2).named_parameters())\n"
        "g = torch.autograd.grad(F.cross_entropy(torch.zeros(2, 3), torch.zeros(3).long()), p.values())\n"
        "q = dict((k, v) for (k, v), w in zip(p.items(), g))\n",
    ],
)
def test_one_fault_is_one_error(tmp_path: Path, text: str) -> None:
    report = checked(tmp_path, text)
    assert report.exit_code == 1
    assert len(report.errors) == 1, report.errors


COLUMN = """
def main():
    critic, target = nn.Linear(4, 1), torch.randn(8)
    value = torch.tanh(critic(torch.randn(8, 4)))
    total = {}
main()
"""


@pytest.mark.parametrize(
    "expression",
    [
        "(value - target).pow(2).mean()", "(target - value.clamp(-1, 1)).abs().mean()",
        "((value > 0) == (target > 0)).float().mean()",
        "torch.max((value - target) ** 2, (value * target) ** 2).mean()",
    ],
)  # fmt: skip
def test_a_column_of_predictions_against_a_row_of_targets_is_one_error(
    tmp_path: Path, expression: str
) -> None:
    report = checked(tmp_path, COLUMN.format(expression))
    (error,) = report.errors
    assert error.code == "square"
    assert "(8, 1)) and" in error.message or "(8,)) and" in error.message
    assert "broadcast to (8, 8): every element of one is taken with every" in error.message
    assert ".squeeze(-1)" in error.remedy


def test_pictures_of_one_channel_against_targets_without_it_are_one_error(tmp_path: Path) -> None:
    text = "def main():\n    layer, target = nn.Conv2d(3, 1, 3, padding=1), torch.rand(4, 8, 8)\n"
    text += "    y = F.interpolate(layer(torch.rand(4, 3, 4, 4)), size=(8, 8), mode='bilinear')\n"
    text += "    print((torch.log1p(y.clamp(min=0)){} - target).abs().mean())\nmain()\n"
    assert checked(tmp_path, text.format(".squeeze(1)")).exit_code == 0
    (error,) = checked(tmp_path, text.format("")).errors
    assert "broadcast to (4, 4, 8, 8): every item of one is taken with every one" in error.message
    assert ".squeeze(1)" in error.remedy
    assert checked(tmp_path, text.format("").replace("4, 8, 8)", "8, 8)")).exit_code == 0


@pytest.mark.parametrize(
    "expression",
    [
        "value.squeeze(-1) - target", "value.view(-1, 1) - target", "target[:, None] - target",
        "value - value.t()", "value[:1] - target[:1]", "value * nn.Parameter(torch.ones(8))",
        "value.mean(1, keepdim=True) - target", "value - target[:, None]",
    ],
)  # fmt: skip
def test_pairs_that_are_meant_are_left_alone(tmp_path: Path, expression: str) -> None:
    report = checked(tmp_path, COLUMN.format(expression))
    assert report.exit_code == 0, report.errors


@pytest.mark.parametrize(
    ("body", "assumed"),
    [
        ("v = x[:-1]\n    v.view(v.shape[0], -1)", "0 < n - 1 (a size beside -1)"),
        ("nn.LSTM(4, 5)(x[1:])", "0 < n - 1 (steps of LSTM)"),
        ("nn.GRU(4, 5, batch_first=True)(x[:, None][1:])", ""),
        ("x.reshape(x.shape[0], -1, 2)", ""),
    ],
)
def test_slices_that_may_be_empty_are_ruled_out_where_pytorch_refuses_them(
    tmp_path: Path, body: str, assumed: str
) -> None:
    file = tmp_path / "cut.py"
    file.write_text(f"{HEAD}\ndef f(x):\n    {body}\n")
    report = check_source(Request(file, "f", {"x": "float32[n, 4]"}))
    assert report.exit_code == 0
    assert [assumed in str(found) for found in report.assumptions] == ([True] if assumed else [])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("torch.zeros(3, 4)[:0].view(0, -1)", "expected sizes beside -1 that are not 0"),
        ("nn.RNN(4, 5)(torch.zeros(0, 2, 4))", "expected at least one step"),
        ("F.avg_pool2d(torch.zeros(1, 1, 4, 4).int(), 2)", "expected a floating-point tensor"),
    ],
)
def test_empty_operands_and_means_of_integers_are_refused_as_pytorch_does(
    tmp_path: Path, call: str, message: str
) -> None:
    report = checked(tmp_path, f"{call}\n")
    assert [message in error.message for error in report.errors] == [True]


def test_means_of_windows_over_int64_are_int64(tmp_path: Path) -> None:
    text = "y = F.avg_pool2d(torch.ones(1, 2, 4, 4).long(), 2)\nassert y.dtype == torch.int64\n"
    report = checked(tmp_path, f"{text}y.view(2, 5)\n")
    assert ["Reshape" in error.message for error in report.errors] == [True]


@pytest.mark.parametrize("name", ["scatter", "scatter_add", "scatter_reduce"])
@pytest.mark.parametrize(
    ("index", "source", "message"),
    [
        ((4,), (4, 1), "a source with as many axes as the index"),
        ((4,), (3,), "is larger than the source"),
        ((2,), (), "a source with as many axes as the index"),
        ((3,), (4,), ""),
    ],
)
def test_a_source_to_scatter_has_an_element_for_each_index(
    tmp_path: Path, name: str, index: tuple[int, ...], source: tuple[int, ...], message: str
) -> None:
    extra = {"reduce": "amax"} if name == "scatter_reduce" else {}
    call = f"torch.zeros(5).{name}(0, torch.zeros({index}).long(), src=torch.zeros({source}), **{extra})"
    report = checked(tmp_path, f"{call}\n")
    assert [message in error.message for error in report.errors] == ([True] if message else [])
    refuses = False
    try:
        eval(call, {"torch": torch})
    except RuntimeError:
        refuses = True
    assert refuses == bool(message)


def test_a_normalisation_counts_its_batches(tmp_path: Path) -> None:
    text = "n = nn.BatchNorm2d(3)\nn.num_batches_tracked += 1\n"
    text += "assert n.num_batches_tracked.dtype == torch.int64\nn(torch.zeros(2, 3, 4, 4))\n"
    report = checked(tmp_path, text)
    assert report.exit_code == 0, (report.errors, report.unknown)


def test_a_transformed_distribution_has_no_entropy(tmp_path: Path) -> None:
    text = "from torch import distributions as td\nbase = td.Normal(torch.zeros(3, 2), 1.0)\n"
    text += "d = td.Independent(td.TransformedDistribution(base, [td.TanhTransform()]), 1)\n"
    text += "assert d.log_prob(d.rsample()).shape == (3,)\n"
    assert checked(tmp_path, text).exit_code == 0
    (error,) = checked(tmp_path, text + "d.base_dist.entropy()\n").errors
    assert "a transformed distribution has no entropy()" in error.message
