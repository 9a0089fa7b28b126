"""What a program reads from files and runs from texts, and how an annotation tells its type."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from hagane.checking import SCRIPT, Report, Request, check_source
from hagane.reviewing.review import check


def checked(folder: Path, text: str) -> Report:
    """Return the report of a script."""
    file = folder / "script.py"
    file.write_text("import torch\nimport numpy as np\nfrom torch import nn\n" + dedent(text))
    return check_source(Request(file, SCRIPT))


CLEAN = {
    "a text is evaluated": """
        width = 5
        act = eval("nn.ReLU")()
        assert act(torch.zeros(eval("width * 2"), 3)).shape == (10, 3)
        """,
    "a text is run": """
        exec("q = torch.ones(3)")
        assert q.shape == (3,)
        """,
    "a device that a rank chooses": """
        import os
        device = f"cuda:{os.environ['RANK']}"
        torch.cuda.set_device(device)
        nn.Linear(3, 2).to(device)
        """,
    "an annotation says what a file holds": """
        x: "float32[n, 4]" = torch.load("x.pt")
        y: "int64[n]" = torch.load("y.pt")
        nn.functional.cross_entropy(nn.Linear(4, 3)(x), y)
        """,
    "annotated fields take numbers from a file": """
        from dataclasses import dataclass
        @dataclass
        class Config:
            words: int = 10
            width: int = 4
        config = Config(**{"words": torch.load("a")["words"]})
        nn.Embedding(config.words, config.width)(torch.zeros(3, dtype=torch.long)).view(3, 4)
        """,
    "tables of numbers": """
        xy = np.loadtxt("data.csv", delimiter=",", dtype=np.float32)
        x, y = torch.from_numpy(xy[:, :-1]), torch.from_numpy(xy[:, [-1]])
        assert y.shape[1] == 1 and x.dtype == torch.float32
        m = np.memmap("train.bin", dtype=np.uint16, mode="r")
        part = torch.stack([torch.from_numpy(m[i : i + 8].astype(np.int64)) for i in range(4)])
        nn.Embedding(9, 5)(part).view(4, 8, 5)
        """,
    "dictionaries by names of files": """
        import glob, random
        names = {}
        for file in glob.glob("*.txt"):
            names[file.split("/")[-1]] = open(file).read()
        torch.zeros(len(names[random.choice(list(names))]), 3).view(-1, 1, 3)
        """,
    "a loss that begins as a number": """
        chars = open("a.txt").read()
        loss, cell, h = 0, nn.RNNCell(5, 8), torch.zeros(1, 8)
        for i in range(len(chars)):
            h = cell(torch.zeros(1, 5), h)
            loss += h.sum()
        loss.backward()
        """,
    "the best of what the data bring": """
        best = None
        for i in range(int(open("n").read())):
            y = nn.Linear(4, 4)(torch.randn(2, 4)).sum()
            if best is None or y > best:
                best = y
        best.backward()
        """,
    "places in a list": """
        words = open("a.txt").read().split()
        one_hot = torch.zeros(1, len(words))
        one_hot[0][words.index("a")] = 1
        nn.Embedding(len(words), 3)(torch.tensor([words.index("b")])).view(1, 3)
        ages = [int(word) for word in words]
        torch.zeros(len(ages), 2)[ages.index(3)].view(2)
        """,
    "powers of one exponent": """
        for k in range(int(open("n").read())):
            nn.Linear(2**k, 3)(torch.ones(3, 2**k))
        """,
    "weak dictionaries": """
        import weakref
        held, key = weakref.WeakValueDictionary(), nn.Linear(3, 2)
        held["a"] = key
        assert held["a"](torch.ones(4, 3)).shape == (4, 2)
        """,
    "a word of the command line": """
        import sys
        x = np.loadtxt(sys.argv[1])
        """,
}


def test_a_place_in_a_file_is_a_number(tmp_path: Path) -> None:
    report = checked(
        tmp_path,
        """
        words = open("a.txt").read().split()
        torch.tensor([words.index("b")]).view(1, 1)
        torch.zeros(3)[words.count("b")].view(1)
        """,
    )
    assert (report.errors, report.unknown) == ([], [])


@pytest.mark.parametrize("text", CLEAN.values(), ids=list(CLEAN))
def test_values_from_outside_are_followed(text: str, tmp_path: Path) -> None:
    report = checked(tmp_path, text)
    assert (report.errors, [note.message for note in report.unknown]) == ([], [])


def test_paths_on_which_the_data_bring_nothing_are_told_as_assumed(tmp_path: Path) -> None:
    report = checked(tmp_path, CLEAN["a loss that begins as a number"])
    assert report.assumptions[-1].message == "length_0 > 0, else int(0) has no attribute 'backward'"


def test_batches_cut_at_drawn_places_are_cheap(tmp_path: Path) -> None:
    report = checked(
        tmp_path,
        """
        data = torch.tensor([ord(c) for c in open("a.txt").read()])
        def batch():
            places = torch.randint(len(data) - 8, (12,))
            x = torch.stack([data[i : i + 8] for i in places])
            return x, torch.stack([data[i + 1 : i + 9] for i in places])
        model = nn.Embedding(300, 300)
        for turn in range(5000):
            x, y = batch()
            nn.functional.cross_entropy(model(x).view(96, 300), y.view(96)).backward()
        """,
    )
    assert (report.errors, report.exit_code) == ([], 0)


def test_what_a_loop_adds_of_unknown_values_is_unknown(tmp_path: Path) -> None:
    text = "x = torch.load('x.pt')\nloss = 0\nfor i in range(x.size()[0]):\n"
    report = checked(tmp_path, text + "    loss += nn.MSELoss()(x[i], x[i])\nloss.backward()\n")
    assert (report.errors, report.exit_code) == ([], 2)


def test_a_file_that_exec_runs_is_followed_and_has_the_findings_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("settings.py").write_text("width = 5\nx = torch.ones(2, 3) @ torch.ones(4, 5)\n")
    report = checked(tmp_path, "exec(open('settings.py').read())\ntorch.zeros(2, width).view(11)\n")
    found = [(Path(e.place.file).name, e.place.line) for e in report.errors]
    assert found == [("script.py", 5), ("settings.py", 2)]


def test_names_that_an_unknown_text_may_set_are_no_errors(tmp_path: Path) -> None:
    for text in ("exec(input())\nprint(width)\n", "from nowhere.at_all import *\nprint(width)\n"):
        report = checked(tmp_path, text)
        assert (report.errors, report.exit_code) == ([], 2)


def test_folders_added_to_the_path_are_looked_into(tmp_path: Path) -> None:
    inner = tmp_path / "far" / "lib"
    inner.mkdir(parents=True)
    (inner / "sizes.py").write_text("WIDTH = 7\n")
    text = f"import sys\nsys.path.append({str(inner)!r})\nfrom sizes import WIDTH\n"
    report = checked(tmp_path, text + "torch.zeros(2, WIDTH).view(15)\n")
    assert [e.code for e in report.errors] == ["shape-mismatch"]


def test_names_that_an_installed_library_lacks_are_errors_with_the_nearest(tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text("import numpy as np\nnp.linalg.normm(np.ones(3))\n")
    report = check(Request(file, SCRIPT), no_import=False)
    (error,) = report.errors
    assert error.message == "'numpy.linalg' has no attribute 'normm'"
    assert error.remedy == "did you mean numpy.linalg.norm?"
    assert check(Request(file, SCRIPT), no_import=True).exit_code == 2


def test_an_argument_that_no_function_has_is_an_error_with_the_nearest(tmp_path: Path) -> None:
    (error,) = checked(tmp_path, "torch.zeros(3, dtyp=torch.int)\n").errors
    assert error.message == "torch.zeros() got an unexpected keyword argument 'dtyp'"
    assert error.remedy == "did you mean dtype?"
