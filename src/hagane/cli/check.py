"""``hagane check``: types and symbolic shapes of programs before they run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from hagane.checking import SCRIPT, Request, explore, is_script
from hagane.cli.terminal.width import fitted, terminal_width
from hagane.errors import InvalidArgument
from hagane.frontends.python.report.findings import Report
from hagane.frontends.python.report.render import (
    render_text,
    render_types,
    report_json,
    report_sarif,
)
from hagane.frontends.python.values.type_text import parse_type
from hagane.frontends.python.values.values import Place
from hagane.machine.whole_files import write_whole
from hagane.reviewing.baseline import read_baseline, write_baseline
from hagane.reviewing.cache import ResultCache, cache_folder
from hagane.reviewing.files import Target, real, sources, targets_of
from hagane.reviewing.review import Review, Reviewed, check
from hagane.reviewing.settings import TABLE, Asked, Settings, settings_from


def command(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE.py[:NAME] | FILE.ipynb | FOLDER | PACKAGE]...",
            help="What to check; without a name, everything whose arguments carry shapes. "
            "Without any, the paths of pyproject.toml.",
        ),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            help="The type of an argument, as x=float32[batch, 3, height=224, width=224]; "
            "numbers behind = are sizes in an example. May be repeated.",
        ),
    ] = None,
    make: Annotated[
        str, typer.Option(help="An expression that makes the object, as 'Model(10)'.")
    ] = "",
    sizes: Annotated[
        list[str] | None,
        typer.Option("--size", help="The size of a name in the example, as batch=2."),
    ] = None,
    show_types: Annotated[
        bool, typer.Option("--show-types", help="Print the source with the type of everything.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    sarif: Annotated[
        Path | None, typer.Option(help="Where to write the findings as SARIF, for editors.")
    ] = None,
    exploring: Annotated[
        bool,
        typer.Option(
            "--explore",
            help="Look for sizes that reach other branches, and replay errors for real.",
        ),
    ] = False,
    no_import: Annotated[
        bool, typer.Option("--no-import", help="Work from the source alone; run nothing of it.")
    ] = False,
    allow_unknown: Annotated[
        bool,
        typer.Option("--allow-unknown", help="Status 0 too if something could not be checked."),
    ] = False,
    baseline: Annotated[
        Path | None, typer.Option(help="A file of findings that are known and not reported.")
    ] = None,
    new_baseline: Annotated[
        Path | None, typer.Option("--write-baseline", help="Write what is found as known.")
    ] = None,
    force_exclude: Annotated[
        bool,
        typer.Option(
            "--force-exclude", help="Leave out what pyproject.toml excludes even if it is named."
        ),
    ] = False,
    watching: Annotated[
        bool, typer.Option("--watch", help="Check the files again that a change concerns.")
    ] = False,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Check unchanged files again too.")
    ] = False,
    serving: Annotated[
        bool, typer.Option("--lsp", help="Serve an editor: diagnostics, types on hover.")
    ] = False,
) -> None:
    """Check types and shapes of programs: exit 0 clean, 1 errors, 2 not checked.

    hagane check src/ tests/helpers.py

    hagane check model.py:Net --make 'Net(10)' --input 'x=float32[batch, 3, height, width]'

    hagane check train.py  # a script without annotations: as it is run without arguments
    """
    if serving:
        from hagane.reviewing.server import serve

        serve()
        return
    settings = settings_from(Path())
    settings = replace(
        settings,
        no_import=no_import or settings.no_import,
        allow_unknown=allow_unknown or settings.allow_unknown,
    )
    words = list(targets or [str(settings.root / path) for path in settings.paths])
    if not words:
        raise InvalidArgument(
            "expected what to check: files, folders or packages, or paths in "
            f"[{TABLE}] of pyproject.toml"
        )
    if watching and (as_json or sarif is not None or new_baseline is not None):
        raise InvalidArgument(
            "--watch goes on and prints for people: expected no --json, --sarif or "
            "--write-baseline beside it"
        )
    asked = _asked(inputs or [], make, sizes or [])
    found = targets_of(words, settings.exclude, force=force_exclude)
    if show_types or exploring:
        _show_one(found, asked, settings, exploring, show_types and not as_json, as_json, sarif)
        return
    known: Counter[str] = Counter()
    if new_baseline is None and (path := baseline or settings.known):
        known = read_baseline(path)
    review = _review(words, found, asked, settings, known, keep=not (no_cache or as_json))
    if watching:
        _watch(review, words, settings)
        return
    results = list(review.run(found))
    if len(found) == 1 and Path(words[0]).suffix and results[0].empty and is_script(found[0].file):
        results = list(review.run([Target(found[0].file, SCRIPT)]))
    if new_baseline is not None:
        problems = [p for one in results for p in one.report.errors]
        count = write_baseline(new_baseline, problems, settings.root)
        print(f"{new_baseline}: {_counted(count, 'finding')} known from now on")
        return
    single = len(found) == 1 and Path(words[0]).suffix != ""
    whole = _merged(results)
    if sarif is not None:
        _write(sarif, json.dumps(report_sarif(whole), indent=2))
    if as_json:
        print(json.dumps(report_json(results[0].report if single else whole)))
    else:
        _print(results, single)
    raise typer.Exit(_status(results, settings))


def _review(
    words: Sequence[str],
    found: Sequence[Target],
    asked: Asked,
    settings: Settings,
    known: Counter[str],
    keep: bool,
) -> Review:
    # Of a file that is named alone its neighbours: below them may lie a whole disk.
    roots = [Path(word) for word in words if Path(word).is_dir()]
    beside = {target.file.parent for target in found}
    known_files = (file for folder in beside for file in sorted(folder.glob("*.py")))
    files = {real(file): file for file in known_files if file.exists()}
    files |= {real(file): file for root in roots for file in sources(root)}
    files |= {real(target.file): target.file for target in found}
    cache = ResultCache(cache_folder() if keep else None)
    return Review(settings, list(files.values()), cache, known, asked)


def _show_one(
    found: Sequence[Target],
    asked: Asked,
    settings: Settings,
    exploring: bool,
    types: bool,
    as_json: bool,
    sarif: Path | None,
) -> None:
    """Show the types of one file, or explore it."""
    if len(found) != 1:
        raise InvalidArgument(f"--show-types and --explore: expected one file, got {len(found)}")
    (target,) = found
    request = Request(target.file, target.name, asked.inputs, asked.make, asked.sizes)
    if exploring:
        report = explore(request, replay=not settings.no_import)
    else:
        report = check(request, no_import=settings.no_import)
    if sarif is not None:
        _write(sarif, json.dumps(report_sarif(report), indent=2))
    if as_json:
        print(json.dumps(report_json(report)))
    else:
        if types and report.types:
            for line in render_types(report, str(target.file)):
                print(line)
        for line in fitted(render_text(report), terminal_width()):
            print(line)
    raise typer.Exit(report.exit_code)


def _watch(review: Review, words: Sequence[str], settings: Settings) -> None:
    from hagane.reviewing.watch import counted, watch

    errors: dict[Path, int] = {}
    try:
        for changed, results in watch(review, lambda: targets_of(words, settings.exclude)):
            for file in changed:
                print(f"changed: {file}")
            _print(results, single=False)
            errors = counted(errors, changed, results)
            shown = {real(one.file) for one in results}
            if rest := sum(count for file, count in errors.items() if file not in shown):
                print(f"{_counted(rest, 'error')} in files that this change does not concern")
            print("waiting for changes; Ctrl-C ends", flush=True)
    except KeyboardInterrupt:
        print()


def _print(results: Sequence[Reviewed], single: bool) -> None:
    width = terminal_width()
    if single:
        (one,) = results
        lines = list(render_text(one.report, one.expressions))
        if one.empty and not one.report.errors:
            lines[-1] = (
                f"nothing to check in {one.file}: no argument carries a shape; name a class or a "
                f"function, as in {one.file.name}:Model, and say the types of its arguments with "
                "--input 'x=float32[batch, 3, 224, 224]'"
            )
        for line in fitted([*lines, *_accepted(results)], width):
            print(line)
        return
    for one in results:
        *lines, _ = render_text(_placed(one))
        for line in fitted(lines, width):
            print(line)
    for line in fitted([*_accepted(results), _total(results), *_scripts(results)], width):
        print(line)


def _placed(one: Reviewed) -> Report:
    """Return a report whose notices name its file where they name no place."""
    start = Place(str(one.file), 1, 1, 1, 1)
    notices = [replace(note, place=note.place or start) for note in one.report.notices]
    return replace(one.report, notices=notices)


def _accepted(results: Sequence[Reviewed]) -> list[str]:
    lines = []
    if accepted := sum(one.accepted for one in results):
        lines.append(f"{_counted(accepted, 'finding')} accepted by comments")
    if known := sum(one.known for one in results):
        lines.append(f"{_counted(known, 'finding')} known to the baseline")
    return lines


def _total(results: Sequence[Reviewed]) -> str:
    errors = sum(len(one.report.errors) for one in results)
    full = [one for one in results if not one.empty]
    open_ = sum(bool(one.report.unknown) or not one.report.checked for one in full)
    kept = sum(one.kept for one in full)
    parts = [
        _counted(errors, "error"),
        f"{_counted(len(full), 'file')} of {len(results)} with something to check",
    ]
    if open_:
        parts.append(f"{open_} not checked, or not wholly")
    if kept:
        parts.append(f"{kept} unchanged since the last check")
    return "; ".join(parts)


def _scripts(results: Sequence[Reviewed]) -> list[str]:
    """Say how scripts are followed, where nothing else was to check."""
    if not all(one.empty for one in results):
        return []
    scripts = [one.file for one in results if is_script(one.file)]
    if not scripts:
        return []
    return [
        f"{_counted(len(scripts), 'file')} can be followed as a script: name it alone, as in "
        f"'hagane check {scripts[0]}', or in pyproject.toml: "
        f'[tool.hagane.check.targets."{scripts[0].as_posix()}"] name = "{SCRIPT}"'
    ]


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _status(results: Sequence[Reviewed], settings: Settings) -> int:
    found = {one.status(settings.allow_unknown) for one in results}
    return 1 if 1 in found else max(found, default=0)


def _merged(results: Sequence[Reviewed]) -> Report:
    whole = Report(checked=all(one.report.checked or one.empty for one in results))
    for one in results:
        whole.errors += one.report.errors
        whole.types += one.report.types
        whole.assumptions += one.report.assumptions
        whole.unknown += one.report.unknown
        whole.notices += one.report.notices
    return whole


def _asked(inputs: list[str], make: str, sizes: list[str]) -> Asked:
    given: dict[str, Any] = {}
    for text in inputs:
        argument, equals, type_text = text.partition("=")
        if not equals or not argument.strip().isidentifier():
            raise InvalidArgument(
                f"--input '{text}': expected NAME=TYPE, as x=float32[batch, 3, 224, 224]"
            )
        parse_type(type_text)
        given[argument.strip()] = type_text
    numbers: dict[str, int] = {}
    for text in sizes:
        size, _, value = text.partition("=")
        if not value.strip().isdigit():
            raise InvalidArgument(f"--size '{text}': expected NAME=NUMBER, as batch=2")
        numbers[size.strip()] = int(value)
    return Asked("", make, given, numbers)


def _write(path: Path, text: str) -> None:
    try:
        write_whole(path, text)
    except OSError as error:
        raise InvalidArgument(f"--sarif: cannot write '{path}' ({error.strerror})") from None
