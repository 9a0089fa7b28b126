"""Checks of a file that has to be imported: its object is made for real, then interpreted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hagane.frontends.python.enter.check import Request, check_object
from hagane.frontends.python.enter.explore import import_file
from hagane.frontends.python.interpret.tables import Tables
from hagane.frontends.python.load.modules import SourceError, effects_at_import
from hagane.frontends.python.report.findings import CheckError, Note, Report


def check_imported(request: Request, from_source: Report, tables: Tables) -> Report:
    """Check the real object that ``request`` names; keep the source's findings if that fails.

    Effects of importing beyond definitions are told in the notices.
    """
    notices = list(from_source.notices)
    try:
        notices += [
            Note(note.place, f"importing the file runs: {note.message}")
            for note in effects_at_import(request.file)
        ]
        found = _made(request)
    except SourceError:
        return from_source
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        from_source.notices.append(
            Note(
                None,
                f"'{request.file}' cannot be imported ({type(error).__name__}: {error}); "
                "this report is from its source alone",
            )
        )
        return from_source
    report = check_object(found, (), request.inputs, tables, request.sizes)
    if not report.checked:
        return from_source
    report.notices[:0] = notices
    return report


def _made(request: Request) -> Any:
    module = import_file(Path(request.file))
    name, _, method = request.target.partition(".")
    if not name:
        raise CheckError("target", "no class or function is named")
    names: Mapping[str, Any] = vars(module)
    owner = eval(request.make, dict(names)) if request.make else names[name]
    if isinstance(owner, type):
        owner = owner()
    return getattr(owner, method) if method else owner
