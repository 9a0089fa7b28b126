"""Known content of tensors, which every way to change it in place makes unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from hagane.checking import SCRIPT, Request, check_source

HEAD = """
import copy
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("c", torch.zeros(3, dtype=torch.long))

def touch(t):
    t.add_(1)

m = M()
s = m.c.sum()
"""
TAIL = """
if int(m.c.sum()) == 0:
    torch.zeros(2)
else:
    torch.zeros(2) @ torch.zeros(3)
"""
WAYS = [
    "m.c.add_(1)",
    "m.c += 1",
    "m.c[0] = 5",
    "m.c[:] = 5",
    "m.c[...] = 5",
    "m.c.copy_(torch.tensor([1, 2, 3]))",
    "m.c.data.add_(1)",
    "m.c.data = torch.tensor([1, 2, 3])",
    "a = torch.ones_like(m.c)\nm.c.copy_(a)",
    "m.c.fill_(3)",
    "m.c.index_add_(0, torch.tensor([0]), torch.tensor([4]))",
    "m.c.scatter_(0, torch.tensor([0]), 4)",
    "m.c.index_put_((torch.tensor([1]),), torch.tensor([5]), accumulate=True)",
    "torch.add(m.c, 1, out=m.c)",
    "with torch.no_grad():\n    m.c.add_(1)",
    "l = [m.c]\nl[0] += 1",
    "l = [m.c]\nfor t in l:\n    t.add_(1)",
    "d = {'c': m.c}\nd['c'].add_(1)",
    "z = m.c\nz.add_(1)",
    "z = m.c\nz += 1",
    "z = m.c.view(-1)\nz.add_(1)",
    "z = m.c[:2]\nz += 2",
    "m.c[:2] += 2",
    "n = M()\nn.c = m.c\nn.c.add_(1)",
    "touch(m.c)",
    "m.state_dict()['c'].add_(1)",
    "m.load_state_dict({'c': torch.tensor([1, 2, 3])})",
    "for b in m.buffers():\n    b.add_(1)",
    "m.c.detach().add_(1)",
    "torch._foreach_add_([m.c], 1)",
    "m.c.numpy()[0] = 4",
    "w = m.c.numpy()\nw += 4",
    "for e in m.c:\n    e.fill_(4)",
    "a, b, c = m.c.chunk(3)\na.add_(2)",
    "a, b = m.c.split([1, 2])\nb.add_(2)",
    "m.c.unsqueeze(0).add_(1)",
    "m.c.reshape(3, 1).add_(1)",
    "m.c[None].t().add_(1)",
    "m.c.masked_fill_(m.c == 0, 7)",
    "m.c[m.c == 0] = 7",
    "F.relu(m.c.sub_(1), inplace=True)",
    "m.c.sub_(1)\nnn.ReLU(inplace=True)(m.c)",
    "(lambda t: t.add_(1))(m.c)",
    "f = m.c.add_\nf(1)",
    "m.c.as_strided((2,), (1,)).add_(1)",
    "for i in range(3):\n    m.c[i] = i + 1",
    "for i in range(3000):\n    m.c.add_(1)",
    "k = 0\nwhile k < int(torch.randint(1, 9, ())):\n    m.c.add_(1)\n    k += 1",
    "if torch.rand(()) > 0.5:\n    m.c.add_(1)",
    "setattr(m, 'c', m.c + 1)",
    "m.c.narrow(0, 0, 1).fill_(9)",
    "m.c.select(0, 1).fill_(9)",
    "m.c.squeeze().fill_(9)",
    "m.c.view(1, 3).diagonal().fill_(9)",
    "m.c.clamp_(min=2)",
    "torch.clamp(m.c, min=2, out=m.c)",
    "torch.clamp_(m.c, 4)",
    "m.c.random_(5)",
    "m.c.bernoulli_(0.5)",
    "m.c.put_(torch.tensor([0]), torch.tensor([4]))",
    "torch.distributed.broadcast(m.c, 0)",
    "m.c |= 1",
    "z = m.c + 1\nm.c.copy_(z)\nm.c *= 3",
    "def g():\n    m.c.add_(1)\ng()",
    "a, b = (m.c, 1)\na += b",
    "for t, s in zip([m.c], [2]):\n    t.add_(s)",
    "getattr(m, 'c').add_(1)",
    "m.__dict__\nm._buffers['c'].add_(1)",
    "m.get_buffer('c').add_(1)",
    "m.c.set_(torch.tensor([1, 2, 3]))",
    "z = m.c if torch.rand(()) > 0.5 else torch.ones(3, dtype=torch.long)\nz.add_(1)",
    "[t.add_(1) for t in [m.c]]",
    "list(map(lambda t: t.add_(1), [m.c]))",
    "m.apply(lambda q: q.c.add_(1))",
    "@torch.no_grad()\ndef g(t):\n    t.add_(1)\ng(m.c)",
    "m.c.to('cpu').add_(1)",
    "m.c.long().add_(1)",
    "p = int(m.c[0])\nm.c[0] = (p + 4) % 7",
    "w = np.asarray(m.c)\nw[0] = 3",
    "w = np.zeros(3, dtype=np.int64)\nm.c = torch.from_numpy(w)\nw[:] = 5",
    "w = m.c.numpy()\nnp.copyto(w, 4)",
    "w = m.c.numpy()\nnp.add.at(w, [0], 4)",
    "w = m.c.numpy()\nnp.add(w, 1, out=w)",
    "w = m.c.numpy()\nnp.add(w, 1, w)",
    "m.c.numpy().ravel()[0] = 4",
    "m.c.numpy().fill(4)",
    "m.c.view(3, 1).permute(1, 0).add_(1)",
    "m.c.index_fill_(0, torch.tensor([1]), 4)",
    "m.c.contiguous().add_(1)",
    "mm = copy.copy(m)\nmm.c.add_(1)",
    "torch.Tensor.add_(m.c, 1)",
    "nn.init.ones_(m.c)",
]
KEPT = [
    "n = m.c.clone()\nn.add_(1)",
    "n = torch.zeros(3, dtype=torch.long)\nn.add_(1)",
    "n = m.c + 0\nn += 1",
    "n = copy.deepcopy(m)\nm.c.sum()",
    "n = m.c[torch.tensor([0, 1])].clone()\nn.zero_()",
    "w = m.c.numpy().copy()\nw[0] = 4",
]


def errors(folder: Path, text: str) -> list[tuple[int, str]]:
    file = folder / "train.py"
    file.write_text(text)
    report = check_source(Request(file, SCRIPT))
    assert report.exit_code == bool(report.errors), (report.unknown, report.notices)
    return [(error.place.line, error.code) for error in report.errors if error.place]


@pytest.mark.parametrize("way", WAYS)
def test_no_branch_is_decided_by_content_that_was_written_since(way: str, tmp_path: Path) -> None:
    text = HEAD + way + TAIL
    last = len(text.splitlines())
    assert errors(tmp_path, text) == [(last, "shape-mismatch")]


@pytest.mark.parametrize("other", KEPT)
def test_content_stays_known_where_other_memory_is_written(other: str, tmp_path: Path) -> None:
    assert errors(tmp_path, HEAD + other + TAIL) == []


def test_numbers_read_before_and_after_a_write_are_not_taken_for_one(tmp_path: Path) -> None:
    text = """
import torch

x = torch.randint(1, 9, (1,))
n = int(x)
x.add_(1)
if int(x) == n:
    torch.zeros(2)
else:
    torch.zeros(2) @ torch.zeros(3)
"""
    assert errors(tmp_path, text) == [(10, "shape-mismatch")]


def test_a_tensor_that_may_be_one_of_two_is_no_equal_of_the_first(tmp_path: Path) -> None:
    text = """
import torch

a, b = torch.randint(1, 9, (1,)), torch.randint(1, 9, (1,))
x = a if torch.rand(()) > 0.5 else b
if int(x) == int(a):
    torch.zeros(2)
else:
    torch.zeros(2) @ torch.zeros(3)
"""
    assert errors(tmp_path, text) == [(9, "shape-mismatch")]
