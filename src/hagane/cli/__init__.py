"""The only command: ``hagane``. Subcommands load what they need when they run."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import typer

import hagane
from hagane.errors import HaganeError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Deep-learning models: run, inspect and measure them.",
)

# Subcommand -> (module, help). Each module has a function ``command``; a typer.Typer named
# ``app`` instead makes a group of subcommands.
_COMMANDS = {
    "cluster": ("hagane.cli.cluster", "Try a Kubernetes scheduler on a simulated GPU cluster."),
    "run": ("hagane.cli.run", "Run a model and show its outputs."),
}


@app.callback(invoke_without_command=True)
def _root(
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    if version:
        print(f"hagane {hagane.__version__}")
        raise typer.Exit


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; a hagane error ends it with its message and status 2."""
    words = sys.argv[1:] if arguments is None else arguments
    _register(next((word for word in words if not word.startswith("-")), ""))
    try:
        app(words)
    except HaganeError as error:
        print(f"hagane: error: {error}", file=sys.stderr)
        raise SystemExit(2) from None


def _register(wanted: str) -> None:
    """Load the wanted subcommand; the others stand in the help only."""
    registered = {command.name for command in app.registered_commands}
    registered |= {group.name for group in app.registered_groups}
    for name, (module, text) in _COMMANDS.items():
        if name in registered:
            continue
        if name != wanted:
            app.command(name, help=text)(_placeholder)
            continue
        loaded: Any = importlib.import_module(module)
        if hasattr(loaded, "app"):
            app.add_typer(loaded.app, name=name, help=text)
        else:
            command: Callable[..., None] = loaded.command
            app.command(name)(command)


def _placeholder() -> None:
    raise AssertionError("a subcommand is loaded before it is called")
