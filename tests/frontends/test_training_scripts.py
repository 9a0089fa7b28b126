"""Habits of training scripts: bases called by name, generators, open places, arguments."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from hagane.checking import SCRIPT, Report, Request, check_source, is_script


def checked(folder: Path, text: str) -> Report:
    """Return the report of a script."""
    file = folder / "script.py"
    file.write_text(dedent(text))
    return check_source(Request(file, SCRIPT))


CLEAN = {
    "bases are initialised by name": """
        import torch
        from torch import nn
        class Own(nn.Linear):
            def __init__(self, n):
                nn.Linear.__init__(self, n, 4)
                nn.Linear.reset_parameters(self)
            def train(self, mode=True):
                nn.Linear.train(self, mode)
                return self
        assert Own(3).eval()(torch.zeros(2, 3)).shape == (2, 4)
        class Plain(nn.Module):
            def __init__(self):
                nn.Module.__init__(self)
                self.inner = Own(3)
        missing, unexpected = Plain().load_state_dict(torch.load("x.pt"), strict=False)
        assert Plain().inner.weight.data.new(2, 3).zero_().shape == (2, 3)
        """,
    "a script has no arguments": """
        import sys
        for one in sys.argv[1:]:
            key, value = one.split("=")
        """,
    "a loop over a generator runs where it yields": """
        import torch
        class Meter:
            def __init__(self):
                self.items = []
            def each(self, loader):
                for x in loader:
                    yield x
                    print(max(self.items), self.items[-1])
        meter = Meter()
        for place, x in enumerate(meter.each([torch.zeros(2, 3), torch.zeros(4, 3)])):
            meter.items.append(place)
        assert x.shape == (4, 3) and place == 1
        """,
    "items are set at places that are drawn": """
        import random, torch
        pool = [torch.zeros(1, 3) for _ in range(4)]
        place = random.randint(0, 3)
        old = pool[place].clone()
        pool[place] = torch.ones(1, 3)
        table = {}
        for _ in range(random.randint(1, 4)):
            key = random.randint(0, 4)
            table[key] = table.get(key, torch.zeros(3)) + torch.ones(3)
        for key, item in table.items():
            item @ torch.zeros(3)
        assert torch.cat(pool + [old]).shape == (5, 3)
        """,
    "a list that shrinks in a loop": """
        import torch
        boxes = sorted(torch.rand(5, 6).tolist(), key=lambda box: box[1])
        kept = []
        while boxes:
            chosen = boxes.pop(0)
            boxes = [box for box in boxes if box[0] != chosen[0]]
            kept.append(chosen)
        tokens = torch.randint(0, 9, (5,)).tolist()
        if 1 in tokens:
            tokens = tokens[: tokens.index(1)]
        """,
    "classes of partials, sets of open items, defaults": """
        import functools, random
        from collections import defaultdict
        from torch import nn
        norm = functools.partial(nn.InstanceNorm2d, affine=False)
        assert type(norm) == functools.partial and isinstance(norm, functools.partial)
        names = set()
        for place in range(random.randint(1, 40)):
            names.add(f"{place}.weight")
        print(len(names & {"1.bias"}), names | {"1.bias"}, names - {"1.bias"})
        assert defaultdict(lambda: 1, {"a": 3})["a"] == 3
        """,
    "masks that the program makes": """
        import torch
        labels = torch.cat([torch.arange(8) for _ in range(2)])
        labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
        mask = torch.eye(16, dtype=torch.bool)
        like = torch.randn(16, 16)[~mask].view(16, -1)
        labels = labels[~mask].view(16, -1)
        positive = like[labels.bool()].view(16, -1)
        """,
    "tensors in functions of NumPy": """
        import numpy as np, torch
        betas = np.clip(torch.linspace(0, 1, 40), 0, 0.9).numpy()
        assert not torch.is_tensor(betas)
        count = int(torch.randint(8, 40, (1,)))
        steps = np.asarray(list(range(0, count, count // 4))) + 1
        """,
}


@pytest.mark.parametrize("text", [pytest.param(v, id=k) for k, v in CLEAN.items()])
def test_a_habit_of_scripts_is_clean(text: str, tmp_path: Path) -> None:
    report = checked(tmp_path, text)
    assert not report.errors, report.errors
    assert report.exit_code == 0, (report.unknown, report.notices)


def test_attributes_that_no_table_knows_are_unknown_and_not_wrong(tmp_path: Path) -> None:
    report = checked(tmp_path, "import torch\ntorch.zeros(2).untyped_storage()\n")
    assert not report.errors
    assert [note.message for note in report.unknown] == [
        "'torch.Tensor.untyped_storage' is not understood"
    ]


def test_a_failing_assertion_ends_its_function(tmp_path: Path) -> None:
    report = checked(
        tmp_path,
        """
        import torch
        def product(a, b):
            assert a.size() == b.size()
            return a * b
        product(torch.zeros(3), torch.zeros(4)) @ torch.zeros(3)
        """,
    )
    assert [e.message for e in report.errors] == ["the assertion fails: a.size() == b.size()"]


def test_a_copied_layer_is_one_mistake(tmp_path: Path) -> None:
    report = checked(
        tmp_path,
        """
        import copy, torch
        layer = torch.nn.Linear(3, 4)
        twin = copy.deepcopy(layer)
        layer(torch.zeros(2, 5))
        twin(torch.zeros(6, 5))
        """,
    )
    assert [e.place.line for e in report.errors] == [5]


def test_a_file_of_assignments_is_a_script_if_other_code_computes_them(tmp_path: Path) -> None:
    file = tmp_path / "values.py"
    file.write_text("import torch\nx = torch.zeros(3)\n")
    assert is_script(file)
    file.write_text("import logging\nlog = logging.getLogger(__name__)\nsize = int('3')\n")
    assert not is_script(file)


def test_a_file_is_read_in_the_encoding_that_it_declares(tmp_path: Path) -> None:
    file = tmp_path / "old.py"
    file.write_bytes(b"# coding: latin-1\nword = '\xe9'\nassert word == '\\u00e9'\n")
    assert check_source(Request(file, SCRIPT)).exit_code == 0
    file.write_bytes(b"# coding: nothing\nx = 1\n")
    report = check_source(Request(file, SCRIPT))
    assert report.exit_code == 2
    assert "unknown encoding" in report.notices[0].message


def test_a_size_beyond_64_bits_is_the_programs_error(tmp_path: Path) -> None:
    report = checked(tmp_path, "import torch\nx = torch.zeros(10**30)\n")
    assert [e.message for e in report.errors] == [
        "torch.zeros: RuntimeError: a size of 1.0e+30 is beyond 64 bits"
    ]
