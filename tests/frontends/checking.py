"""Checks of source text."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

from hagane.checking import Request, check_source
from hagane.frontends.python.report.findings import Report

HEADER = """
import math
from dataclasses import dataclass
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from jaxtyping import Float, Int
from hagane import Shaped
"""


def check_text(
    folder: Path,
    source: str,
    inputs: Mapping[str, str] | None = None,
    *,
    target: str = "f",
    make: str = "",
    sizes: Mapping[str, int] | None = None,
) -> Report:
    """The report on a function ``f``, or on another target, in a file of this source."""
    path = folder / "program.py"
    path.write_text(HEADER + textwrap.dedent(source), encoding="utf-8")
    return check_source(Request(path, target, inputs or {}, make, sizes or {}))


def line_of(source: str, part: str) -> int:
    """The line that a part of the source stands on in the checked file."""
    lines = (HEADER + textwrap.dedent(source)).splitlines()
    found = [number for number, line in enumerate(lines, 1) if part in line]
    assert len(found) == 1, found
    return found[0]
