"""Texts of random programs: choices made from tables of lines, and programs loaded."""

from __future__ import annotations

import importlib.util
import random
import re
import sys
from pathlib import Path
from typing import Any


def tables_of(name: str) -> dict[str, list[str]]:
    """Return the lines of each section of a text beside this file."""
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    found = re.findall(r"^\[(\w+)\]\n(.*?)(?=^\[|\Z)", text, re.MULTILINE | re.DOTALL)
    return {title: body.strip().splitlines() for title, body in found}


def chosen(draw: random.Random, text: str, channels: int = 0, **names: Any) -> str:
    """Return a text with its choices made and its names filled in."""
    while "|" in text:
        end = text.index("}", text.index("|"))
        start = text.rindex("{", 0, text.index("|"))
        text = text[:start] + draw.choice(text[start + 1 : end].split("|")) + text[end + 1 :]
    for name, value in names.items():
        text = text.replace("{" + name + "}", str(value))
    text = text.replace("2 * C", str(2 * channels))
    return text.replace("groups=C", f"groups={channels}").replace("(C,", f"({channels},").replace(
        ", C,", f", {channels},")  # fmt: skip


def loaded(text: str, folder: Path) -> Any:
    """Return a program as a module of Python, whose source lies in a folder."""
    path = folder / "program.py"
    path.write_text(text)
    name = f"program_{abs(hash((text, folder)))}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
