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
