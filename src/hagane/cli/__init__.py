"""The only command: ``hagane``. Subcommands load their modules when they run."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Sequence
from inspect import cleandoc
from typing import Any

import typer

import hagane
from hagane.errors import HaganeError
from hagane.machine.whole_files import NO_ROOM

# Subcommand -> (module, help). Each module has a function ``command``; a typer.Typer named
# ``app`` instead makes a group of subcommands.
_COMMANDS = {
    "run": ("hagane.cli.run", "Run a model and show its outputs."),
    "inspect": ("hagane.cli.inspect", "Show a model's inputs, outputs, parameters and costs."),
    "bench": ("hagane.cli.bench", "Time a model beside other engines, in one run."),
    "build": ("hagane.cli.build", "Compile a model into a library for C programs."),
    "refit": ("hagane.cli.refit", "Put other weights into a build."),
    "quantize": ("hagane.cli.quantize", "Make a model compute with bytes, calibrated on data."),
    "demo": ("hagane.cli.demo", "Classify real pictures with a real model."),
    "capture": ("hagane.cli.capture", "Write a Python model or function as an ONNX model."),
    "check": ("hagane.cli.check", "Check types and shapes of a model before it runs."),
    "train": ("hagane.cli.train", "Run a trainer, watched as it runs."),
    "chainer": ("hagane.cli.chainer", "Run a script written for Chainer, unchanged."),
    "run-python": (
        "hagane.cli.run_python",
        "Run a Python program with hagane in ONNX Runtime's place.",
    ),
    "data": ("hagane.cli.data", "Measure how fast a dataset loads."),
    "lex": ("hagane.cli.lex", "Make a lexer from a specification."),
    "prob": ("hagane.cli.prob", "Bound probabilities by types."),
    "rtl": ("hagane.cli.rtl", "Find test patterns for SystemVerilog circuits."),
    "rl": ("hagane.cli.rl", "Watch an agent act, in the browser."),
    "cluster": ("hagane.cli.cluster", "Try a Kubernetes scheduler on a simulated GPU cluster."),
}


def _root(
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
    plugin: list[str] = typer.Option(  # noqa: B008
        [], help="FILE.py that registers operators, before the subcommand; may come again."
    ),
) -> None:
    if version:
        print(f"hagane {hagane.__version__}")
        raise typer.Exit
    for path in plugin:
        from hagane.plugins import load_plugin

        load_plugin(path)


def build_app(wanted: str) -> typer.Typer:
    """Return the command with the subcommand ``wanted`` loaded; the others are names only."""
    app = typer.Typer(
        name="hagane",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        help="Deep-learning models from source to checked, compiled, trained and shipped.",
    )
    app.callback(invoke_without_command=True)(_root)
    for name, (module, text) in _COMMANDS.items():
        if name != wanted:
            app.command(name, help=text)(_placeholder)
            continue
        loaded: Any = importlib.import_module(module)
        if hasattr(loaded, "app"):
            app.add_typer(loaded.app, name=name, help=text)
        else:
            settings = getattr(loaded, "CONTEXT", None)
            app.command(name, context_settings=settings)(loaded.command)
    return app


def _as_written(command: Any) -> Any:
    """Let a command and its subcommands show their help as it is written.

    Rich takes brackets for markup, and only the first paragraph is wrapped as one.
    """
    from rich.markup import escape

    for each in (command, *command.params):
        text = getattr(each, "help", None) or ""
        paragraphs = cleandoc(text).replace("``", "'").split("\n\n")
        each.help = escape("\n\n".join(" ".join(one.split("\n")) for one in paragraphs))
    for each in getattr(command, "commands", {}).values():
        _as_written(each)
    return command


_LONGEST_NAME = 200  # characters of a path that an error shows


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; a hagane error ends it with its message and status 2."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    app = build_app(_subcommand(words))
    try:
        try:
            _as_written(typer.main.get_command(app))(words, prog_name="hagane")
        finally:
            _flush()
    except HaganeError as error:
        from hagane.cli.terminal.width import show

        show(f"hagane: error: {error}", sys.stderr)
        raise SystemExit(2) from None
    except BrokenPipeError:
        raise SystemExit(1) from None  # as Click ends where the reader of the output is gone
    except OSError as error:
        # A path that cannot be used, where the subcommand did not say so itself, or a full disk.
        if error.filename is None and error.errno not in NO_ROOM:
            raise
        from hagane.cli.terminal.width import show

        name = str(error.filename or "")
        name = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"
        verb = "write" if error.errno in NO_ROOM else "use"
        what = f"cannot {verb} '{name}'" if name else f"cannot {verb}"
        show(f"hagane: error: {what}: {error.strerror}", sys.stderr)
        raise SystemExit(2) from None


def _flush() -> None:
    """Write what the standard output holds; what fails is not tried again as Python ends."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def _subcommand(words: Sequence[str]) -> str:
    """Return the first word that is no option of ``hagane`` itself, nor the value of one."""
    before = ["", *words]
    return next(
        (
            word
            for last, word in zip(before, words, strict=False)
            if not word.startswith("-") and last != "--plugin"
        ),
        "",
    )


def _placeholder() -> None:
    raise AssertionError("a subcommand is loaded before it is called")
