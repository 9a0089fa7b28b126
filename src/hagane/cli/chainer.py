"""``hagane chainer``: a script written for Chainer, unchanged."""

from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path
from typing import Annotated

import typer

from hagane.cli.script import run_script
from hagane.errors import NoSuchFile

CONTEXT = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "allow_interspersed_args": False,
}

# Packages around Chainer that scripts import, and why they are not there.
_ABSENT = {
    "chainermn": "hagane trains in one process and has no communicators; leave out the "
    "communicator, the multi-node optimizer and the scattered dataset",
    "cupy": "hagane computes on the CPU; take arrays of NumPy",
}


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
    from hagane.iterators import MultiprocessIterator
    from hagane.nn import stand_in
    from hagane.nn.aliasing import install

    install()
    MultiprocessIterator.default_start_method = staticmethod(_start_method)
    sys.argv = [file, *context.args]
    # Processes that the script starts, which import it anew, find hagane too.
    sys.path.insert(0, str(Path(stand_in.__file__).parent))
    sys.path.insert(0, str(path.resolve().parent))
    run_script(file, _absent)


def _absent(error: Exception) -> None:
    """Note why a package around Chainer is not there."""
    if isinstance(error, ModuleNotFoundError):
        absent = _ABSENT.get((error.name or "").partition(".")[0])
        if absent is not None:
            error.add_note(f"hagane chainer: {absent}")


def _start_method() -> str:
    """Return how workers start: as Chainer's, so that scripts need no guard of their main part."""
    return multiprocessing.get_start_method(allow_none=True) or "fork"
