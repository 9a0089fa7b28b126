"""``hagane chainer``: a script written for Chainer, unchanged."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Annotated

import typer

from hagane.errors import NoSuchFile

CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def command(
    context: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The script.")],
) -> None:
    """Run a script written for Chainer: its ``import chainer`` finds hagane.

    Arguments after FILE are the script's own. The working directory and the standard output
    are the script's.
    """
    path = Path(file)
    if not path.is_file():
        raise NoSuchFile(f"there is no file '{file}'")
    from hagane.nn.aliasing import install

    install()
    sys.argv = [file, *context.args]
    sys.path.insert(0, str(path.resolve().parent))
    runpy.run_path(file, run_name="__main__")
