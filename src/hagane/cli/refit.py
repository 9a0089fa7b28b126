"""``hagane refit``: other weights in a build."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from hagane.errors import HaganeError
from hagane.ship import refit


def command(
    folder: Annotated[Path, typer.Argument(help="A folder that hagane build wrote.")],
    model: Annotated[Path, typer.Argument(help="An ONNX model of the same structure.")],
) -> None:
    """Put the weights of a model into a build of one with the same structure.

    hagane refit model.hagane trained.onnx
    """
    try:
        refit(folder, model)
    except (HaganeError, OSError) as error:
        print(f"hagane refit: error: {' '.join(str(error).split())}", file=sys.stderr)
        raise typer.Exit(2) from None
    print(f"{folder}: has the weights of {model}")
