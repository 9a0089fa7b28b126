"""Folders stay small enough to be read at a glance, and Chainer's modules come from one table."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import hagane
from hagane.chainer_modules import MODULES

SOURCE = Path(hagane.__file__).parent


@pytest.mark.parametrize(("folder", "most"), [("", 25), ("passes", 15), ("native", 15)])
def test_a_folder_has_no_more_modules_than_a_reader_takes_in(folder: str, most: int) -> None:
    inside = SOURCE.glob("*.py") if folder == "" else (SOURCE / folder).rglob("*.py")
    found = Counter(path.parent for path in inside if path.name != "__init__.py")
    assert found
    assert {path.name: n for path, n in found.items() if n > most} == {}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_of_the_table_has_its_names(name: str) -> None:
    module = importlib.import_module(f"hagane.{name}")
    assert module.__doc__ == MODULES[name][0]
    assert module.__all__
    assert all(hasattr(module, each) for each in module.__all__)
    assert getattr(hagane, name) is module
    assert not (SOURCE / f"{name}.py").exists()


def test_modules_of_the_table_are_imported_like_files() -> None:
    program = (
        "import hagane.link as link\n"
        "from hagane.variable import Variable\n"
        "from hagane import function_node\n"
        "import hagane\n"
        "assert hagane.Link is link.Link and hagane.Variable is Variable\n"
        "assert function_node.grad is hagane.grad\n"
        "try:\n    import hagane.nothing\n"
        "except ModuleNotFoundError as error:\n    print(error)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "No module named 'hagane.nothing'\n"
