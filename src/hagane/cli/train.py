"""``hagane train``: a trainer from the command line, watched as it runs."""

from __future__ import annotations

import inspect
import sys
import traceback
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

import hagane
from hagane.errors import HaganeError, InvalidArgument, NoSuchFile
from hagane.frontends.python.enter.explore import import_program, place_of
from hagane.machine.whole_files import NO_ROOM


def command(
    target: Annotated[
        str, typer.Argument(metavar="FILE.py:make", help="A function that returns a Trainer.")
    ],
    epoch: Annotated[int | None, typer.Option(help="Stop after so many epochs.")] = None,
    iteration: Annotated[int | None, typer.Option(help="Stop after so many iterations.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the newest snapshot, if there is one.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="The folder of what is written.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show nothing on the terminal.")] = False,
) -> None:
    """Run a trainer with a live display; write log, snapshots, plots and a page of curves.

    Extensions that the trainer has already stay as they are. The page is index.html in its folder.
    """
    if epoch is not None and iteration is not None:
        raise InvalidArgument("hagane train: expected --epoch or --iteration, got both")
    for option, length in (("--epoch", epoch), ("--iteration", iteration)):
        if length is not None and length < 1:
            raise InvalidArgument(f"hagane train: {option}: expected 1 or more, got {length}")
    from hagane.training import Trainer, triggers

    make = load(target)
    given = inspect.signature(make).parameters.values()
    needed = [p.name for p in given if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    if needed:
        raise InvalidArgument(
            f"hagane train: {target} takes the argument '{needed[0]}': expected a function that "
            "can be called without any; give it a default"
        )
    trainer = call(make, target)
    if not isinstance(trainer, Trainer):
        raise InvalidArgument(
            f"hagane train: expected a hagane.training.Trainer from {target}, got "
            f"{type(trainer).__module__}.{type(trainer).__qualname__}"
        )
    if out is not None:
        trainer.out = str(out)
    whole = (epoch, "epoch") if epoch is not None else (iteration, "iteration")
    if whole[0] is not None:
        trainer.stop_trigger = triggers.get_trigger(whole)
    furnish(trainer, quiet=quiet)
    vars(warnings)["showwarning"] = _show_warning
    try:
        trainer.run(show_loop_exception_msg=False, resume="auto" if resume else None)
    except HaganeError as error:
        notes = "".join(f"\n{note}" for note in getattr(error, "__notes__", ()))
        print(f"hagane: error: {error}{notes}{_going_on(trainer)}", file=sys.stderr)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        told = f"interrupted after {trainer.updater.iteration} iterations"
        print(f"hagane train: {told}{_going_on(trainer)}", file=sys.stderr)
        raise typer.Exit(130) from None
    except Exception as error:  # of the program: its frames begin here
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            notes = "".join(f"\n{note}" for note in getattr(error, "__notes__", ()))
            told = f"{error.strerror} in '{trainer.out}'{notes}"
            print(f"hagane: error: {told}{_going_on(trainer)}", file=sys.stderr)
            raise typer.Exit(2) from None
        traceback.print_exception(error)
        print(f"hagane: error: training has ended{_going_on(trainer)}", file=sys.stderr)
        raise typer.Exit(1) from None
    print(f"{trainer.updater.iteration} iterations; curves: {Path(trainer.out) / 'index.html'}")


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Show a warning without the line of hagane's source that gave it."""
    print(f"hagane train: {message}", file=sys.stderr)


def _going_on(trainer: Any) -> str:
    """Return how a run that has ended goes on, in words behind others; empty if it cannot."""
    from hagane.training.extensions.snapshots import Snapshot, find_snapshots

    if not trainer.updater.iteration:
        return ""  # (A snapshot that does not fit, say: nothing has begun.)
    for extension in trainer.extensions.values():
        own = isinstance(extension, Snapshot) and extension.target is None
        if own and isinstance(extension.filename, str):
            found = find_snapshots(extension.filename, trainer.out)
            if found:
                return f"; --resume goes on from {Path(trainer.out) / found[-1]}"
    return "; there is no snapshot to go on from"


def load(target: str, command: str = "hagane train") -> Any:
    """Return a function of a file, ``FILE.py:make``; errors name the command."""
    path, colon, name = target.rpartition(":")
    if not colon or not path.endswith(".py"):
        raise InvalidArgument(f"{command}: expected FILE.py:make, got '{target}'")
    file = Path(path)
    if not file.is_file():
        raise NoSuchFile(f"there is no file '{path}'")
    module = import_program(file)
    found = getattr(module, name, None)
    if not callable(found):
        known = sorted(n for n, v in vars(module).items() if callable(v) and not n.startswith("_"))
        raise InvalidArgument(
            f"{command}: {path} has no function '{name}'; it has: {', '.join(known) or 'none'}"
        )
    return found


def call(make: Any, target: str, command: str = "hagane train") -> Any:
    """Return what the function of a file returns; what it raises is told by its line of the file.

    Raises:
        HaganeError: hagane has refused something there.
        typer.Exit: It has raised something else, whose traceback from there on is printed.
    """
    path = Path(target.rpartition(":")[0])
    try:
        return make()
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        place = place_of(error, path)
        if frames[-1].filename.startswith(str(Path(hagane.__file__).parent)):
            raise HaganeError(f"{command}: {place}: {error}") from error
        begun = error.__traceback__
        traceback.print_exception(error.with_traceback(begun.tb_next if begun else None))
        print(f"hagane: error: {command}: {place}: nothing was made", file=sys.stderr)
        raise typer.Exit(1) from None


def furnish(trainer: Any, *, quiet: bool) -> None:
    """Give a trainer a log, snapshots, a plot, a page and a display where it lacks them."""
    from hagane.training import extensions
    from hagane.training.extensions.snapshots import Snapshot

    present = list(trainer.extensions.values())

    def lacks(kind: type) -> bool:
        return not any(isinstance(extension, kind) for extension in present)

    if lacks(extensions.LogReport):
        trainer.extend(extensions.LogReport(trigger=(1, "epoch")))
    if lacks(Snapshot):
        trainer.extend(extensions.snapshot(n_retains=2))
    if lacks(extensions.PlotReport) and extensions.PlotReport.available():
        keys = ["main/loss", "validation/main/loss"]
        trainer.extend(extensions.PlotReport(keys, "epoch", filename="loss.png"))
    if lacks(extensions.CurvesPage):
        named = next(
            n for n, e in trainer.extensions.items() if isinstance(e, extensions.LogReport)
        )
        trainer.extend(extensions.CurvesPage(named))
    shown = (extensions.PrintReport, extensions.ProgressBar, extensions.LiveDisplay)
    if not quiet and all(map(lacks, shown)):
        trainer.extend(extensions.LiveDisplay())
