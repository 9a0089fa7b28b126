"""The pages about capture and training steps, and the example, say what running them prints."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [(ROOT / "docs" / name).read_text() for name in ("capture.md", "step.md")]


def blocks(page: str) -> list[tuple[str, str]]:
    """Return the programs of a page and what they print; some go on from those before them."""
    found: list[tuple[str, str]] = []
    for source, printed in re.findall(r"```python\n(.*?)```\s*\n?prints `(.*?)`", page, re.DOTALL):
        whole = source if "import hagane" in source else f"{found[-1][0]}\n{source}"
        found.append((whole, printed))
    return found


BLOCKS = [block for page in PAGES for block in blocks(page)]

pytestmark = pytest.mark.filterwarnings("ignore::hagane.CompileNotice")


def loaded(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("source", "printed"), BLOCKS, ids=range(len(BLOCKS)))
def test_a_program_of_the_page_prints_what_the_page_says(
    source: str, printed: str, tmp_path: Path, capsys: Any
) -> None:
    file = tmp_path / "page_program.py"
    file.write_text(source)
    loaded(file)
    out = capsys.readouterr().out.strip()
    assert out.split("\n")[-1] == printed if "\n" not in printed else out == printed


def test_the_pages_have_programs() -> None:
    assert len(BLOCKS) >= 3


def test_the_example_decodes_as_python_does(capsys: Any) -> None:
    loaded(ROOT / "examples" / "capture" / "decode.py").main()
    assert "hagane: " in capsys.readouterr().out
