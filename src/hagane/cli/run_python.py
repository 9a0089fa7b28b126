"""``hagane run-python``: a Python program, unchanged, with hagane in another package's place."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from hagane.cli.script import run_module, run_script
from hagane.errors import InvalidArgument, NoSuchFile

CONTEXT = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "allow_interspersed_args": False,
}


def command(
    context: typer.Context,
    target: Annotated[
        str, typer.Argument(metavar="SCRIPT|MODULE", help="The script, or a module with -m.")
    ],
    as_onnxruntime: Annotated[
        bool, typer.Option("--as-onnxruntime", help="Let its `import onnxruntime` find hagane.")
    ] = False,
    module: Annotated[bool, typer.Option("-m", help="Run a module, as python -m does.")] = False,
) -> None:
    """Run a Python program, unchanged, with hagane in another package's place.

    Arguments after SCRIPT are the program's own.

    hagane run-python --as-onnxruntime predict.py model.onnx --threads 2
    """
    if not as_onnxruntime:
        raise InvalidArgument(
            "run-python: expected the package in whose place hagane stands: --as-onnxruntime"
        )
    path = Path(target)
    if not module and not path.is_file():
        raise NoSuchFile(f"there is no file '{target}'; a module needs -m before its name")
    from hagane.onnxruntime.aliasing import install_as_onnxruntime

    install_as_onnxruntime()
    sys.argv = [target, *context.args]
    if module:
        sys.path.insert(0, str(Path.cwd()))
        run_module(target)
        return
    sys.path.insert(0, str(path.resolve().parent))
    run_script(target)
