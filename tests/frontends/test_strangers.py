"""Libraries that no table knows: what comes of them is unknown, never wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from hagane.checking import SCRIPT, Request, check_source
from hagane.frontends.python.report.findings import Report

_HEADER = "import os\nimport torch\nfrom torch import nn\nimport strange\n"


def scripted(folder: Path, text: str) -> Report:
    path = folder / "program.py"
    path.write_text(_HEADER + text, encoding="utf-8")
    return check_source(Request(path, SCRIPT))


@pytest.mark.parametrize(
    "text",
    [
        "class A(strange.Base):\n  pass\nA(3).fit(2)",
        "class A(strange.Base):\n  def f(self):\n    return self.hparams.size\nA(3).f()",
        "class A(strange.Base):\n  def f(self):\n    return super().f(1)\nA(3).f()",
        "class A(strange.Base, nn.Module):\n  pass\nA().fit(1)",
        "class A(torch.fx.Tracer):\n  pass\nA().trace(nn.Linear(3, 4))",
        "class A(strange.Base):\n  pass\nfor x in A():\n  x.y",
        "class A(strange.Base):\n  pass\nlen(A())",
        "class A(strange.Base):\n  x: int = 3\ntorch.zeros(A(x=4).x, 2)",
        "class A(strange.Base):\n  net: nn.Module = 'plain'\nA().net(torch.zeros(3))",
        "strange.URL['x'] = 3",
        "for x in strange.URL:\n  x.y",
        "nn.Linear(strange.N, 3)(torch.zeros(2, 5))",
        "class A(strange.Base):\n  pass\nassert isinstance(A(), strange.Root)\nA().f()",
    ],
)
def test_what_a_library_may_have_is_unknown(text: str, tmp_path: Path) -> None:
    report = scripted(tmp_path, text)
    assert report.errors == []
    assert report.unknown
    assert report.exit_code == 2


def test_the_reason_names_the_member_and_the_library(tmp_path: Path) -> None:
    (note, *_) = scripted(tmp_path, "class A(strange.Base):\n  pass\nA().fit(2)").unknown
    assert note.message == (
        "'strange.Base.fit' is not understood: 'strange' is no library that hagane knows, and no "
        "module beside the file or in its project"
    )


def test_a_class_of_known_bases_still_lacks_what_it_lacks(tmp_path: Path) -> None:
    (error,) = scripted(tmp_path, "class A(nn.Module):\n  pass\nA().fit(2)").errors
    assert "A has no attribute 'fit'" in error.message


def test_forward_is_called_where_the_base_is_not_known(tmp_path: Path) -> None:
    report = scripted(
        tmp_path,
        "class A(strange.Base):\n  def forward(self, x):\n    return nn.Linear(3, 4)(x)\n"
        "A()(torch.zeros(2, 5))",
    )
    (error,) = report.errors
    assert "Linear" in error.message


@pytest.mark.parametrize(
    "text",
    [
        "torch.zeros(3).to(int(os.environ['NOT_SET_ANYWHERE']))",
        "assert os.path.exists('/no/such/file')",
        "assert os.path.getsize('/no/such/file') > 3",
        "import importlib.metadata\nprint(importlib.metadata.version('no-such-package'))",
        "import requests\nprint(requests.get('https://example.com').json()['x'])",
    ],
)
def test_the_machine_answers_only_in_a_run(text: str, tmp_path: Path) -> None:
    assert scripted(tmp_path, text).errors == []


@pytest.mark.parametrize(
    "text",
    [
        # A layer of an unknown size has no known parameters, which an optimizer needs.
        "class A(nn.Module):\n  def __init__(self):\n    super().__init__()\n"
        "    self.w = nn.Parameter(torch.zeros(strange.n()))\n"
        "torch.optim.SGD(A().parameters(), lr=0.1)",
        "torch.zeros(max(strange.n() // 2, 1), 3)",
        "import types\ndef g():\n  pass\ntypes.FunctionType(g.__code__, {}, 'h', None, None)()",
        "for i in range(min(5, 7 - strange.n())):\n  print(i)",
        # The dictionary may be the one that is set.
        "d = {'blocks': [{} for _ in range(strange.n())]}\nfor name in strange.names():\n  one = d\n"
        "  if name.startswith('h'):\n    one = d['blocks'][int(name[1:])]\n  one[name] = 3\n"
        "print(d['wpe'])",
    ],
)
def test_unknown_values_are_no_wrong_ones(text: str, tmp_path: Path) -> None:
    report = scripted(tmp_path, text)
    assert report.errors == []
    assert report.exit_code == 2


def test_tokens_have_the_vocabulary_of_their_encoding(tmp_path: Path) -> None:
    text = (
        "import tiktoken\ne = tiktoken.get_encoding('gpt2')\nx = torch.tensor(e.encode('a b'))\n"
        "y = nn.Embedding(e.n_vocab, 8)(x)\nnn.Linear(9, 2)(y)"
    )
    (error,) = scripted(tmp_path, text).errors
    assert "expected 9 columns" in error.message or "9" in error.message
    report = scripted(tmp_path, text.replace("Linear(9", "Linear(8"))
    assert (report.errors, report.unknown) == ([], [])


def test_commands_of_tyro_have_their_defaults(tmp_path: Path) -> None:
    text = (
        "import tyro\nfrom dataclasses import dataclass\n@dataclass\nclass Args:\n  n: int = 5\n"
        "args = tyro.cli(Args)\nnn.Linear(args.n, 2)(torch.zeros(3, 4))"
    )
    (error,) = scripted(tmp_path, text).errors
    assert "Linear" in error.message


def test_names_that_the_program_gives_a_library_are_its_own(tmp_path: Path) -> None:
    text = "torch.pi = torch.acos(torch.zeros(1)) * 2\ntorch.sqrt(torch.pi)"
    assert scripted(tmp_path, text).errors == []
    (error,) = scripted(tmp_path, "torch.sqrt(torch.pi)").errors
    assert "expected a tensor as 'input', got float" in error.message


def test_arguments_become_attributes_by_the_frame_of_the_caller(tmp_path: Path) -> None:
    text = (
        "import inspect\nclass Kept:\n  def keep(self):\n"
        "    frame = inspect.currentframe().f_back\n"
        "    *_, held = inspect.getargvalues(frame)\n"
        "    for k, v in held.items():\n      setattr(self, k, v)\n"
        "class A(Kept):\n  def __init__(self, n, m=3):\n    self.keep()\n"
        "a = A(5)\nnn.Linear(a.n, a.m)(torch.zeros(2, 4))"
    )
    (error,) = scripted(tmp_path, text).errors
    assert "expected 5 features in the last axis, got 4" in error.message


def test_an_attribute_set_by_an_unknown_name_may_be_any(tmp_path: Path) -> None:
    text = (
        "class A:\n  pass\na = A()\nfor n in strange.names():\n  setattr(a, n, 3)\nprint(a.depth)"
    )
    report = scripted(tmp_path, text)
    assert report.errors == []
    assert report.exit_code == 2


@pytest.mark.parametrize(
    "text",
    [
        "torch.diag(torch.zeros(8, 8, device='cuda'), 3)",
        "q = torch.zeros(2, 3, 4, 4, device='cuda')\nmask = torch.ones(4, 4, device='cuda') > 0\n"
        "q[:, :, ~mask] = 1.0\nq[:, 0, mask]",
    ],
)
def test_places_inside_of_a_function_lie_where_its_operands_do(text: str, tmp_path: Path) -> None:
    report = scripted(tmp_path, text)
    assert (report.errors, report.unknown) == ([], [])


def test_tensors_of_one_element_are_numbers_in_a_list(tmp_path: Path) -> None:
    text = "x = torch.tensor([torch.zeros(1), torch.zeros(1, 1)]) + torch.zeros(2)"
    assert scripted(tmp_path, text).errors == []
    (error,) = scripted(tmp_path, "torch.tensor([torch.zeros(2)])").errors
    assert "only tensors of one element can be converted to numbers" in error.message


def test_long_data_sets_are_iterated_as_one_item(tmp_path: Path) -> None:
    text = (
        "class D(torch.utils.data.Dataset):\n  def __len__(self):\n    return 60_000\n"
        "  def __getitem__(self, i):\n    return torch.zeros(3, 4)\n"
        "x = torch.stack([d for d in D()])\nnn.Linear(5, 2)(x)"
    )
    (error,) = scripted(tmp_path, text).errors
    assert "got 4: torch.Tensor(dtype=float32, shape=(60000, 3, 4))" in error.message


def test_a_size_that_the_last_batch_lacks_is_an_error(tmp_path: Path) -> None:
    text = (
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "for (x,) in DataLoader(TensorDataset(torch.zeros(1000, 4)), 256{}):\n"
        "  s = x @ x.T\n  torch.cat([torch.diag(s, 128), torch.diag(s, -128)]).view(256, 1)"
    )
    pytest.importorskip("z3")
    (error,) = scripted(tmp_path, text.format("")).errors
    assert "cannot reshape" in error.message
    assert scripted(tmp_path, text.format(", drop_last=True")).errors == []


def test_rows_are_parted_for_training_and_testing(tmp_path: Path) -> None:
    text = (
        "from sklearn.model_selection import train_test_split\n"
        "a, b, c, d = train_test_split(torch.zeros(100, 5), list(range(100)), test_size=0.1)\n"
        "torch.zeros(90, 5) + a\ntorch.zeros(10) + torch.tensor(d)\ntorch.zeros(91, 5) + a"
    )
    (error,) = scripted(tmp_path, text).errors
    assert error.place.line == 9
