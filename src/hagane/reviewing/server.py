"""A language server: findings as diagnostics, types of expressions on hover.

``hagane check --lsp`` speaks the Language Server Protocol over standard input and output.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from hagane import __version__
from hagane.checking import Report, Request
from hagane.errors import HaganeError, MissingExtra
from hagane.frontends.python.report.findings import Note, Problem, TypedExpression
from hagane.frontends.python.values.values import Place
from hagane.reviewing.comments import comments_of, without_ignored
from hagane.reviewing.review import check
from hagane.reviewing.settings import Asked, Settings, settings_from

try:
    from lsprotocol import types as lsp
    from pygls.lsp.server import LanguageServer
except ImportError:
    raise MissingExtra("the language server", "lsp") from None


def file_of(uri: str) -> Path:
    """Return the path of a document."""
    return Path(unquote(urlparse(uri).path))


class Documents:
    """The findings in each open document."""

    def __init__(self) -> None:
        self._reports: dict[str, Report] = {}
        self._lock = threading.Lock()

    def check(self, uri: str) -> list[lsp.Diagnostic]:
        """Check the file of a document and return its diagnostics.

        The checker reads files, so a document is checked as it was saved last.
        """
        file = file_of(uri)
        try:
            settings = settings_from(file.parent)
            report = _report_of(file, settings)
        except HaganeError as error:
            return [_diagnostic(_at_start(file), str(error), lsp.DiagnosticSeverity.Warning)]
        with self._lock:
            self._reports[uri] = report
        return list(_diagnostics(report, file, settings))

    def forget(self, uri: str) -> None:
        """Forget a document that was closed."""
        with self._lock:
            self._reports.pop(uri, None)

    def type_at(self, uri: str, line: int, column: int) -> TypedExpression | None:
        """Return the smallest typed expression at a position that counts from 1."""
        with self._lock:
            report = self._reports.get(uri)
        if report is None:
            return None
        file = str(file_of(uri))
        around = [
            one
            for one in report.types
            if one.place.file == file and _covers(one.place, line, column)
        ]
        return min(around, key=lambda one: _size(one.place), default=None)


def _report_of(file: Path, settings: Settings) -> Report:
    """Check a file, and return the findings that no comment accepts."""
    asked = settings.asked_of(file) or (Asked(),)
    whole = Report()
    for one in asked:
        request = Request(file, one.name, one.inputs, one.make, one.sizes)
        report = check(request, no_import=True)
        whole.errors += [p for p in report.errors if p not in whole.errors]
        whole.types += report.types
        whole.unknown += report.unknown
        whole.assumptions += report.assumptions
    problems = [p for p in whole.errors if p.code not in settings.ignore]
    source = file.read_text(encoding="utf-8-sig")
    left, notes, _ = without_ignored(problems, str(file), comments_of(source))
    return replace(whole, errors=left, notices=notes)


def _diagnostics(report: Report, file: Path, settings: Settings) -> Any:
    for problem in report.errors:
        place = problem.place if problem.place.file == str(file) else _call_in(problem, file)
        yield _diagnostic(
            place, _message(problem), lsp.DiagnosticSeverity.Error, problem.code, problem
        )
    hint, note = lsp.DiagnosticSeverity.Hint, lsp.DiagnosticSeverity.Information
    yield from _noted(report.notices, file, lsp.DiagnosticSeverity.Warning, "")
    yield from _noted(() if settings.allow_unknown else report.unknown, file, note, "unknown: ")
    yield from _noted(report.assumptions, file, hint, "assumed: ")


def _noted(notes: Any, file: Path, severity: lsp.DiagnosticSeverity, before: str) -> Any:
    found: list[Note] = [one for one in notes if one.place and one.place.file == str(file)]
    for one in found:
        assert one.place is not None
        yield _diagnostic(one.place, before + one.message, severity)


def _call_in(problem: Problem, file: Path) -> Place:
    """Return the place in a file that led to a finding in another."""
    return next((call for call in problem.calls if call.file == str(file)), _at_start(file))


def _at_start(file: Path) -> Place:
    return Place(str(file), 1, 1, 1, 2)


def _message(problem: Problem) -> str:
    parts = [problem.message]
    if problem.condition:
        parts.append(f"when {problem.condition}")
    if problem.counterexample:
        sizes = ", ".join(f"{name} = {value}" for name, value in problem.counterexample.items())
        parts.append(f"for instance with {sizes}")
    if problem.remedy:
        parts.append(f"help: {problem.remedy}")
    return "\n".join(parts)


def _diagnostic(
    place: Place,
    message: str,
    severity: lsp.DiagnosticSeverity,
    code: str | None = None,
    problem: Problem | None = None,
) -> lsp.Diagnostic:
    related = [
        lsp.DiagnosticRelatedInformation(
            lsp.Location(Path(call.file).resolve().as_uri(), _range(call)), "called from here"
        )
        for call in (problem.calls if problem is not None else ())
    ]
    return lsp.Diagnostic(
        range=_range(place),
        message=message,
        severity=severity,
        code=code,
        source="hagane",
        related_information=related or None,
    )


def _range(place: Place) -> lsp.Range:
    end = max(place.end_column, place.column + 1) if place.line == place.end_line else None
    return lsp.Range(
        lsp.Position(place.line - 1, place.column - 1),
        lsp.Position(place.end_line - 1, (end or place.end_column) - 1),
    )


def _covers(place: Place, line: int, column: int) -> bool:
    start, end = (place.line, place.column), (place.end_line, place.end_column)
    return start <= (line, column) < end


def _size(place: Place) -> tuple[int, int]:
    return place.end_line - place.line, place.end_column - place.column


def make_server() -> LanguageServer:
    """Return a server that has not been started."""
    server = LanguageServer("hagane", __version__)
    documents = Documents()

    def publish(uri: str) -> None:
        found = documents.check(uri)
        server.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri=uri, diagnostics=found)
        )

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(parameters: lsp.DidOpenTextDocumentParams) -> None:
        publish(parameters.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(parameters: lsp.DidSaveTextDocumentParams) -> None:
        publish(parameters.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(parameters: lsp.DidCloseTextDocumentParams) -> None:
        uri = parameters.text_document.uri
        documents.forget(uri)
        server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(parameters: lsp.HoverParams) -> lsp.Hover | None:
        at = parameters.position
        found = documents.type_at(parameters.text_document.uri, at.line + 1, at.character + 1)
        if found is None:
            return None
        text = f"```python\n{found.expression}: {found.type}\n```"
        contents = lsp.MarkupContent(lsp.MarkupKind.Markdown, text)
        return lsp.Hover(contents, _range(found.place))

    return server


def serve() -> None:
    """Serve one client on standard input and output until it ends."""
    make_server().start_io()
