"""Classes of PyTorch take the arguments, and have the attributes, that it publishes."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import torch

from hagane.checking import SCRIPT, Request, check_source
from hagane.frontends.libraries.names.left_out import LEFT_OUT
from hagane.frontends.libraries.table import Table
from hagane.frontends.libraries.torch.published import signatures, stubs
from hagane.frontends.libraries.torch.table import TORCH

_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
# Of these the table says less about arguments than their own functions, which look at each.
_OWN_CHECKS = ("torch.optim.", "torch.distributions.", "torch.utils.data.", "torch.nn.parallel.")
_LEFT_OUT = {
    "torch.nn.DataParallel", "torch.nn.Module", "torch.nn.Identity", "torch.nn.Sequential",
    "torch.cuda.amp.autocast", "torch.cpu.amp.autocast",  # one class with torch.autocast
    "torch.autocast", "torch.amp.autocast", "torch.amp.autocast_mode.autocast",
    "torch.no_grad", "torch.autograd.no_grad", "torch.autograd.grad_mode.no_grad",
    "torch.nn.LSTM", "torch.nn.GRU", "torch.nn.RNN",  # without signatures of their own
}  # fmt: skip


def real_of(name: str) -> Any:
    found: Any = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return found


def test_the_table_of_signatures_is_that_of_pytorch() -> None:
    if not torch.__version__.startswith("2.13"):
        pytest.skip("the table is that of PyTorch 2.13")
    text = Path(signatures.__file__).with_suffix(".txt").read_text(encoding="utf-8")
    assert text.splitlines() == stubs.lines()


def described(function: Any, hidden: int) -> list[tuple[str, Any, Any]]:
    """Return name, kind and default of each parameter that a program sees."""
    found = [*inspect.signature(function).parameters.values()][hidden:]
    return [
        (one.name, one.kind, "relu" if one.default is torch.nn.functional.relu else one.default)
        for one in found
    ]


def layers(table: Table) -> dict[str, tuple[Any, Any]]:
    found = {name: (cls, real_of(name)) for name, cls in table.layers.items()}
    return {name: pair for name, pair in found.items() if inspect.isclass(pair[1])}


def test_layers_are_made_by_the_arguments_of_pytorchs() -> None:
    wrong, compared = {}, 0
    for name, (cls, real) in layers(TORCH).items():
        left_out = name in _LEFT_OUT or name.startswith(_OWN_CHECKS)
        if left_out or not hasattr(cls, "init") or not name.startswith("torch.nn."):
            continue
        own, published = described(cls.init, 1), described(real, 0)
        if real.__init__ is torch.nn.Module.__init__:  # which fails if it is given any
            published = []
        compared += 1
        if own != published:
            wrong[name] = (own, published)
    assert compared > 130
    assert not wrong


def test_layers_are_called_by_the_arguments_of_pytorchs() -> None:
    wrong = {}
    for name, (cls, real) in layers(TORCH).items():
        if not hasattr(cls, "forward") or name in _LEFT_OUT or name.startswith(_OWN_CHECKS):
            continue
        own, published = described(cls.forward, 2), described(real.forward, 1)
        loose = any(kind in _VARIABLE for _, kind, _ in (*own, *published))
        if not loose and [one[0] for one in own] != [one[0] for one in published]:
            wrong[name] = (own, published)
    assert not wrong


def chain(name: str) -> list[str]:
    found = [name]
    while found[-1] in TORCH.bases:
        found.append(TORCH.bases[found[-1]])
    return found


def test_no_attribute_of_pytorchs_classes_is_said_to_be_missing() -> None:
    made_by_objects = {
        "torch.utils.data.RandomSampler", "torch.utils.data.sampler.RandomSampler",
        "torch.autograd.Function", "torch.autograd.function.Function",
        "torch.autograd.function.NestedIOFunction",
    }  # fmt: skip
    wrong = {}
    for name, (_, real) in layers(TORCH).items():
        if name in made_by_objects or name.startswith("torch.distributions."):
            continue
        known = {"forward"}
        for owner in chain(name):
            known |= {*vars(TORCH.layers[owner]), *LEFT_OUT.get(owner, ())}
            known |= {*TORCH.attributes.get(owner, ()), *TORCH.methods.get(owner, ())}
        published = {each for each in dir(real) if not each.startswith("_")}
        missing = {each for each in published - known if f"{name}.{each}" not in TORCH.functions}
        if missing - {"batch_sizes", "data", "sorted_indices", "unsorted_indices", "clone"}:
            wrong[name] = missing
    assert not wrong


# Layers whose weights have the element type that they are made with, an input for each.
_TYPED = {
    "Linear(4, 5)": (2, 4), "LazyLinear(5)": (2, 4), "PReLU(4)": (2, 4), "Conv1d(4, 6, 3)": (2, 4, 8),
    "LazyConv2d(6, 3, groups=2)": (2, 4, 8, 8), "LazyConvTranspose2d(6, 3)": (2, 4, 8, 8),
    "BatchNorm1d(4)": (2, 4), "LazyBatchNorm2d()": (2, 4, 8, 8), "InstanceNorm2d(4)": (2, 4, 8, 8),
    "InstanceNorm1d(4, affine=True, track_running_stats=True)": (2, 4, 8),
    "LazyInstanceNorm1d(bias=False)": (2, 4, 8), "GroupNorm(2, 4, bias=False)": (2, 4, 3),
    "GroupNorm(2, 4, 1e-5, True, None)": (2, 4, 3), "LayerNorm(4, bias=False)": (2, 4),
    "RMSNorm(4)": (2, 4), "LSTM(4, 5, 2, bidirectional=True, proj_size=3)": (3, 2, 4),
    "GRU(4, 5, bias=False, batch_first=True)": (3, 2, 4), "RNN(4, 5, 1, 'relu')": (3, 2, 4),
    "LSTMCell(4, 5)": (2, 4), "GRUCell(4, 5, False)": (2, 4), "RNNCell(4, 5, True, 'relu')": (2, 4),
    "TransformerEncoderLayer(8, 2, 16, bias=False, norm_first=True)": (3, 2, 8),
    "TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dtype=torch.float64), 2, None, False)":
        (3, 2, 8),
}  # fmt: skip


def test_weights_and_results_are_those_of_pytorch(tmp_path: Path) -> None:
    lines = ["import torch", "from torch import nn"]
    for text, shape in _TYPED.items():
        own = "" if text.startswith("TransformerEncoder(") else "dtype=torch.float64"
        made = f"{text[:-1]}{', ' if own and text[-2] != '(' else ''}{own})"
        layer = eval(f"nn.{made}", {"nn": torch.nn, "torch": torch})
        result = layer(torch.zeros(shape, dtype=torch.float64))
        first = result[0] if isinstance(result, tuple) else result
        lines += [
            f"m = nn.{made}",
            f"y = m(torch.zeros{shape}, dtype=torch.float64))".replace("zeros(", "zeros(("),
            f"y = {'y[0]' if isinstance(result, tuple) else 'y'}",
            f"assert y.dtype == {first.dtype} and tuple(y.shape) == {tuple(first.shape)}",
            "s = {k: (tuple(v.shape), v.dtype) for k, v in m.state_dict().items()}",
        ]
        for key, value in layer.state_dict().items():
            lines.append(f"assert s[{key!r}] == ({tuple(value.shape)}, {value.dtype})")
        lines.append(f"assert list(s) == {[*layer.state_dict()]}")
    report = checked(tmp_path, "\n".join(lines))
    assert not report.errors
    assert not report.unknown


def checked(folder: Path, text: str) -> Any:
    file = folder / "script.py"
    file.write_text(text)
    return check_source(Request(file, SCRIPT))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nn.GroupNorm(2, 4, epsilon=1e-5)", "got an unexpected keyword argument 'epsilon'"),
        ("nn.LSTM(4, 5, proj=2)", "got an unexpected keyword argument 'proj'"),
        ("nn.Embedding(4, 5, pad=0)", "got an unexpected keyword argument 'pad'"),
        ("nn.RNN(4, 5, 1, 'sigmoid')", "expected the nonlinearity 'tanh' or 'relu'"),
        ("nn.init.normal_(nn.Linear(3, 4).weight, men=0.0)", "unexpected keyword argument 'men'"),
        ("nn.init.xavier_uniform_(nn.Linear(3, 4).bias)",
         "xavier_uniform takes a tensor of at least 2 axes"),
        ("nn.utils.clip_grad_norm_(nn.Linear(3, 4).parameters())", "argument: 'max_norm'"),
        ("nn.CTCLoss(reduction='avg')(torch.randn(10, 2, 5), torch.ones(2, 4, dtype=torch.int64), "
         "[10, 10], [4, 3])", "expected reduction to be one of"),
        ("torch.optim.lr_scheduler.StepLR(step_size=2)", "missing the argument 'optimizer'"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_found(tmp_path: Path, line: str, message: str) -> None:
    (found,) = checked(tmp_path, f"import torch\nfrom torch import nn\n{line}").errors
    assert message in found.message


def test_members_that_layers_and_distributions_have(tmp_path: Path) -> None:
    report = checked(
        tmp_path,
        """
import torch
from torch import nn
import torch.distributions as D
d = D.Normal(torch.zeros(3), torch.ones(3))
assert d.has_rsample and not D.Categorical(torch.ones(2, 3)).has_rsample
assert D.Independent(d, 1).perplexity().shape == () and d.icdf(torch.rand(4, 3)).shape == (4, 3)
assert len(torch.optim.lr_scheduler.ChainedScheduler(schedulers=[
    torch.optim.lr_scheduler.StepLR(torch.optim.SGD(nn.Linear(2, 2).parameters()), 2)
]).get_last_lr()) == 1
layers = nn.ModuleDict({"a": nn.Linear(2, 3), "b": nn.Linear(3, 4)})
assert layers.pop("a").weight.shape == (3, 2) and list(layers) == ["b"]
kept = nn.ParameterDict({"w": torch.zeros(2, 3)})
kept["v"] = torch.zeros(4)
assert len(list(kept.parameters())) == 2 and kept.get("u") is None
several = nn.ParameterList(values=[torch.zeros(2), torch.zeros(3)])
assert len(several) == len(list(several.parameters())) == 2
assert not nn.Conv2d(2, 3, 1).transposed and nn.UpsamplingBilinear2d(scale_factor=2).align_corners
layer = nn.TransformerEncoderLayer(8, 2, 16)
assert not hasattr(layer, "norm3") and len(list(layer.parameters())) == 12
encoder = nn.TransformerEncoder(layer, 2)
assert len(list(encoder.parameters())) == 24
""",
    )
    assert not report.errors
    assert not report.unknown
