"""``hagane check`` as a newcomer uses it, right and wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from hagane.cli import main

NET = """
import torch
import torch.nn as nn
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv = nn.Conv2d(3, 64, 3, stride=2)
        self.fc = nn.Linear(64, classes)

    def forward(self, x: Float[Tensor, "bsize 3 height width"]):
        h = F.max_pool2d(F.relu(self.conv(x)), 2, stride=2, ceil_mode=True)
        return self.fc(h.mean(dim=(2, 3)))
"""


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command in this process, which has imported what it needs."""
    words, printed, errors, code = ["check", *map(str, arguments)], StringIO(), StringIO(), 0
    with redirect_stdout(printed), redirect_stderr(errors):
        try:
            main(words)
        except SystemExit as end:
            code = int(end.code or 0)
    return subprocess.CompletedProcess(words, code, printed.getvalue(), errors.getvalue())


def run_apart(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, where files of users are imported."""
    return subprocess.run(
        [sys.executable, "-m", "hagane", "check", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.py"
    path.write_text(NET)
    return path


def test_a_clean_model_ends_with_0_and_says_what_it_returns(net: Path) -> None:
    done = run(f"{net}:Net", "--make", "Net(10)")
    assert done.returncode == 0, done.stderr
    assert "no errors in" in done.stdout
    assert "returns torch.Tensor(dtype=float32, shape=(bsize, 10))" in done.stdout
    assert "assumed: " in done.stdout


def test_the_formula_of_a_pooled_size_is_that_of_the_document(net: Path) -> None:
    done = run(
        f"{net}:Net", "--make", "Net(10)", "--input", "x=float32[2, 3, 227, 227]", "--show-types"
    )
    assert (
        "h : torch.Tensor(dtype=float32, shape=(2 (bsize), 64, "
        "57 (ceil(((height - 1) // 2 - 2) / 2) + 1), 57 (ceil(((width - 1) // 2 - 2) / 2) + 1)))"
    ) in done.stdout


def test_an_error_is_underlined_explained_and_ends_with_1(net: Path) -> None:
    net.write_text(NET.replace("h.mean(dim=(2, 3))", "h"))
    done = run(f"{net}:Net", "--make", "Net(10)")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0].startswith(
        f"{net}:17:16: error: self.fc: expected 64 features in the last axis"
    )
    assert lines[1:3] == ["  17 |         return self.fc(h)", "     |                ^^^^^^^^^^"]
    assert "  where it came from:" in lines
    assert "  help: move axis 1 to the end with transpose or permute" in lines


def test_json_has_errors_types_assumptions_and_what_stayed_open(net: Path) -> None:
    net.write_text(NET.replace("nn.Linear(64", "nn.Linear(65"))
    done = run(f"{net}:Net", "--make", "Net(10)", "--input", "x=float32[2, 3, 227, 227]", "--json")
    found = json.loads(done.stdout)
    assert {"errors", "types", "assumptions", "unknown"} <= found.keys()
    (error,) = found["errors"]
    assert (error["line"], error["column"], error["code"]) == (17, 16, "shape-mismatch")
    assert error["file"] == str(net)
    (h,) = [t for t in found["types"] if t["expression"] == "h" and t["line"] == 16]
    assert (h["column"], h["end_line"], h["end_column"], h["dtype"]) == (9, 16, 10, "float32")
    assert h["shape"][0] == {"value": 2, "expression": "bsize"}
    assert h["shape"][1] == {"value": 64, "expression": None}
    assert h["shape"][2] == {"value": 57, "expression": "ceil(((height - 1) // 2 - 2) / 2) + 1"}


def test_sarif_is_what_editors_read(net: Path, tmp_path: Path) -> None:
    net.write_text(NET.replace("nn.Linear(64", "nn.Linear(65"))
    log = tmp_path / "log.sarif"
    assert run(f"{net}:Net", "--make", "Net(10)", "--sarif", log).returncode == 1
    found = json.loads(log.read_text())
    assert found["version"] == "2.1.0"
    (result,) = found["runs"][0]["results"]
    assert result["ruleId"] == "shape-mismatch"
    region = result["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 17, "startColumn": 16, "endLine": 17, "endColumn": 43}


def test_without_a_target_all_that_is_annotated_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "parts.py"
    path.write_text(
        NET.replace("def __init__(self, classes)", "def __init__(self, classes=10)")
        + '\n\ndef half(x: Float[Tensor, "n 3"]):\n    return x.view(-1, 2)\n'
    )
    done = run(path)
    assert done.returncode == 1
    assert ":21:12: error: Reshape 'x.view': cannot reshape" in done.stdout


@pytest.mark.parametrize(
    ("content", "arguments", "status", "message"),
    [
        ("x = (", [], 2, "error: SyntaxError: '(' was never closed [syntax]"),
        ("\x00", [], 2, "SyntaxError"),
        ("def f(x):\n    return x\n", [":g"], 2, "has no 'g'; it has: f"),
        (
            "def f(x):\n    return x\n",
            [":f"],
            2,
            "the type of the argument 'x' of 'f' is not known",
        ),
        (
            "def f(x):\n    return x\n",
            [":f", "--input", "y=int64[2]"],
            2,
            "has no argument 'y'; it has: x",
        ),
        ("class A:\n    pass\n", [":A"], 2, "cannot be called"),
        (
            "class A:\n    def __init__(self, n): pass\n",
            [":A"],
            2,
            "A() cannot be made: __init__() is missing the argument 'n'; say how with --make",
        ),
    ],
)
def test_what_cannot_be_checked_says_why_and_is_never_clean(
    tmp_path: Path, content: str, arguments: list[str], status: int, message: str
) -> None:
    path = tmp_path / "bad.py"
    path.write_text(content)
    target = f"{path}{arguments[0]}" if arguments and arguments[0].startswith(":") else str(path)
    done = run(target, *(a for a in arguments if not a.startswith(":")))
    assert done.returncode == status, done.stdout + done.stderr
    assert message in done.stdout + done.stderr


def test_a_missing_file_and_wrong_options_say_what_was_expected(tmp_path: Path) -> None:
    done = run(tmp_path / "none.py")
    assert done.returncode == 2
    assert "there is no file" in done.stdout
    done = run(tmp_path / "none.py", "--input", "x")
    assert done.returncode == 2
    assert "expected NAME=TYPE, as x=float32[batch, 3, 224, 224]" in done.stderr
    done = run(tmp_path / "none.py", "--input", "x=float99[2]")
    assert "'float99' is no element type" in done.stderr
    done = run(tmp_path / "none.py", "--size", "b=x")
    assert "expected NAME=NUMBER" in done.stderr


def test_nothing_is_run_unless_the_source_alone_does_not_do(tmp_path: Path) -> None:
    path = tmp_path / "effects.py"
    path.write_text(
        "import pathlib\n"
        "pathlib.Path(__file__).with_suffix('.ran').touch()\n"
        "def f(x):\n    return x * 2\n"
    )
    done = run(f"{path}:f", "--input", "x=float32[n, 2]")
    assert done.returncode == 0
    assert (
        "not run: 'pathlib.Path(__file__).with_suffix('.ran').touch()' has effects" in done.stdout
    )
    assert not path.with_suffix(".ran").exists()


@pytest.mark.long
def test_an_object_that_only_running_can_make_is_imported_after_it_was_said(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    path = tmp_path / "made.py"
    path.write_text(
        "import colorsys\nimport torch\nimport torch.nn as nn\nprint('side effect')\n"
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        size = 4 + int(colorsys.rgb_to_hsv(0, 0, 0)[0])\n"
        "        self.fc = nn.Linear(size, 2)\n"
        "    def forward(self, x):\n        return self.fc(x)\n"
    )
    refused = run_apart(f"{path}:Net", "--input", "x=float32[b, 5]", "--no-import")
    assert "colorsys.rgb_to_hsv" in refused.stdout
    done = run_apart(f"{path}:Net", "--input", "x=float32[b, 5]")
    assert "importing the file runs: print('side effect')" in done.stdout
    assert done.returncode == 1
    assert "expected 4 features in the last axis, got 5" in done.stdout


def test_explore_finds_sizes_that_reach_other_branches_and_replays_them(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    path = tmp_path / "odd.py"
    path.write_text(
        "import torch\n"
        "def f(x):\n"
        "    if x.shape[2] % 2:\n"
        "        if x.shape[0] > 40:\n"
        "            x = torch.cat([x, x[:, :, :1]], dim=1)\n"
        "    return x\n"
    )
    plain = run_apart(f"{path}:f", "--input", "x=float32[2, 3, 8]")
    assert plain.returncode == 0
    done = run_apart(f"{path}:f", "--input", "x=float32[2, 3, 8]", "--explore", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 1
    (error,) = found["errors"]
    assert error["line"] == 5
    assert error["replayed"] is True
    sizes = [int(n) for n in error["inputs"]["x"].removeprefix("float32[").rstrip("]").split(", ")]
    assert sizes[0] > 40
    assert sizes[1] > 0
    assert sizes[2] % 2 == 1
    assert found["conditions"] == [] or "x.shape[2] % 2" in found["conditions"]
