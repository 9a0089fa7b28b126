"""Habits of published scripts: what they ask of the world, of packages, of functions."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

from hagane.checking import SCRIPT, Report, Request, check_source
from hagane.reviewing.review import check

CLEAN = {
    "exceptions of the program": """
        import torch
        class Missing(RuntimeError):
            "Nothing was computed."
        class Coded(Missing):
            def __init__(self, code, text):
                super().__init__(text)
                self.code = code
        def fail(): raise Missing("no")
        try:
            fail()
        except Missing as error:
            assert error.args[0] == "no" and str(error) == "no"
        try:
            raise Coded(3, "x").with_traceback(None)
        except (ValueError, Missing) as error:
            assert torch.ones(error.code).shape == (3,) and str(error) == "x"
        """,
    "signatures bind arguments": """
        import inspect, torch
        def f(a, b=2, *rest, k=3, **more): pass
        class H:
            def go(self, n): pass
            def __call__(self, engine): pass
        def fits(g, *a, **k):
            try:
                inspect.signature(g).bind(*a, **k)
            except TypeError:
                return 0
            return 1
        assert (fits(f, torch.ones(2)), fits(f), fits(H().go, 3), fits(H().go, 3, 4)) == (1, 0, 1, 0)
        assert fits(H(), 1) == 1 and fits(H(), 1, 2) == 0
        bound = inspect.signature(f).bind(torch.ones(3), k=5, z=torch.ones(4))
        assert bound.args[0].shape == (3,) and bound.kwargs["z"].shape == (4,)
        bound.apply_defaults()
        assert bound.arguments["b"] == 2 and bound.arguments["rest"] == ()
        """,
    "weak references give their objects": """
        import weakref, torch
        class H:
            def go(self, n): return torch.ones(n)
        h = H()
        r = weakref.ref(h)
        assert r().go(4).shape == (4,) and isinstance(r, weakref.ref) and weakref.proxy(h).go(2).dim()
        """,
    "the environment and the disk are open": """
        import os, torch
        from pathlib import Path
        assert "DATASET_THAT_NOBODY_SET" in os.environ
        assert torch.cuda.is_available(), "needs a GPU"
        if Path("x").is_dir() and Path("x").stat().st_size > 3:
            torch.ones(3)
        """,
    "packages that are not there": """
        import torch
        try:
            import no_such_package
            HAS = True
        except ImportError:
            HAS = False
        if HAS:
            torch.ones(2) @ torch.ones(3)
        """,
    "classes that ask for methods": """
        import collections.abc as abc
        import torch
        from torch.utils.data import DataLoader, TensorDataset
        class Words:
            def __iter__(self): return iter([1])
            def __len__(self): return 1
        loader = DataLoader(TensorDataset(torch.ones(8, 2)), batch_size=4)
        assert isinstance(loader, abc.Iterable) and isinstance(Words(), abc.Sized)
        assert not isinstance(Words(), abc.Iterator) and hasattr(torch.ones(2), "__iter__")
        """,
    "commands of fire": """
        import fire, torch
        from torch import nn
        from tqdm import tqdm
        def train(path, width=4):
            tqdm.write(path)
            return nn.Linear(width, 2)(torch.ones(3, width))
        fire.Fire({"train": train})
        """,
    "small functions of Python": """
        import torch
        assert ord("a") == 97 and chr(98) == "b" and hash(3) == 3
        if torch.ones(3).sum() > 4:
            quit()
        assert torch.get_default_device().type == "cpu"
        """,
}


def checked(folder: Path, text: str) -> Report:
    """Return the report of a script."""
    file = folder / "script.py"
    file.write_text(dedent(text))
    return check_source(Request(file, SCRIPT))


@pytest.mark.parametrize("text", CLEAN.values(), ids=CLEAN.keys())
def test_what_scripts_do_is_understood(text: str, tmp_path: Path) -> None:
    report = checked(tmp_path, text)
    assert [error.message for error in report.errors] == []
    assert [note.message for note in report.unknown] == []
    assert report.exit_code == 0


def test_the_path_without_a_package_is_told(tmp_path: Path) -> None:
    notices = checked(tmp_path, CLEAN["packages that are not there"]).notices
    told = "'no_such_package' is not installed: the path without it is checked"
    assert told in [note.message for note in notices]


def test_a_package_that_a_program_cannot_do_without_stays_unknown(tmp_path: Path) -> None:
    text = """
        import torch
        try:
            import no_such_package
        except ImportError:
            raise ImportError("pip install no_such_package")
        torch.ones(no_such_package.SIZE)
        """
    report = checked(tmp_path, text)
    assert report.errors == []
    assert report.exit_code == 2


def test_notebooks_have_the_names_of_ipython(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "source": ["import torch\n", "display(torch.ones(2))"]}
    file = tmp_path / "book.ipynb"
    file.write_text(json.dumps({"cells": [cell], "nbformat": 4, "metadata": {}}))
    assert check_source(Request(file, SCRIPT)).exit_code == 0


def test_installed_packages_are_read_where_imports_are_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site-packages"
    (site / "folded_arrays").mkdir(parents=True)
    (site / "folded_arrays" / "__init__.py").write_text(
        "def fold(x, rows):\n    return x.reshape(rows, -1)\n"
    )
    monkeypatch.syspath_prepend(str(site))
    file = tmp_path / "program" / "script.py"
    file.parent.mkdir()
    file.write_text(
        "import folded_arrays\nimport numpy as np\n"
        "y = folded_arrays.fold(np.zeros((4, 6)), 3)\nz = y @ np.zeros((8, 2))\n"
    )
    request = Request(file, SCRIPT)
    report = check(request, no_import=False)
    assert report.exit_code == 0
    assert [t.type for t in report.types if t.expression == "z"]
    assert check(request, no_import=True).exit_code == 2
    file.write_text(file.read_text().replace("(8, 2)", "(7, 2)"))
    (error,) = check(request, no_import=False).errors
    assert error.place.line == 4
    assert "8" in error.message


def test_operations_on_alternatives_look_at_the_clock(tmp_path: Path) -> None:
    text = """
        import torch
        x = torch.randn(3)
        y = "a" if x.sum() > 2 else (1, 2)
        z = y == "a"
        """
    file = tmp_path / "script.py"
    file.write_text(dedent(text))
    (notice,) = check_source(Request(file, SCRIPT, seconds=0)).notices
    assert notice.message.startswith("the analysis took more than 0 s of computing and ended here")


def test_packages_lie_where_the_settings_of_setuptools_say(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.setuptools]\npackage-dir = {"" = "pkg"}\n')
    (tmp_path / "pkg" / "inner").mkdir(parents=True)
    (tmp_path / "pkg" / "inner" / "__init__.py").write_text("SIZE = 3\n")
    text = "import torch\nfrom inner import SIZE\nassert torch.ones(SIZE).shape == (3,)\n"
    (tmp_path / "runs").mkdir()
    file = tmp_path / "runs" / "script.py"
    file.write_text(text)
    assert check_source(Request(file, SCRIPT)).exit_code == 0


def test_devices_may_have_numbers_that_only_the_run_knows(tmp_path: Path) -> None:
    text = """
        import os, torch
        rank = int(os.environ.get("RANK", 0)) + int(torch.randn(1))
        device = torch.device(f"cuda:{rank}")
        print(device.index, device.type)
        """
    assert checked(tmp_path, text).checked
