"""A language server: findings as diagnostics while a person types, types of expressions on hover.

``hagane check --lsp`` speaks the Language Server Protocol 3.17 over standard input and output.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlparse

from hagane import __version__
from hagane.errors import MissingExtra
from hagane.frontends.python.report.findings import Note, Problem
from hagane.frontends.python.report.sources import lines_of, source_lines
from hagane.frontends.python.values.values import Place
from hagane.reviewing.documents import Documents, Seen

try:
    from lsprotocol import types as lsp
    from pygls.lsp.server import LanguageServer
    from pygls.uris import to_fs_path
except ImportError:
    raise MissingExtra("the language server", "lsp") from None

_QUIET = 0.3  # seconds without a key after which a text is checked
_STACK = 1 << 26  # bytes: the interpreter of programs recurses
_Units = Callable[[str], int]  # the length of a text as the client counts


def file_of(uri: str) -> Path:
    """Return the path of a document; one that was never saved has its name as path."""
    found = urlparse(uri)
    return Path((to_fs_path(uri) if found.scheme == "file" else None) or unquote(found.path))


class Diagnostics:
    """Findings as the protocol has them, their columns in the units of the client.

    Args:
        file: The document's file.
        text: Its text.
        units: The length of a text in the client's units (UTF-16 if it asks for no other).
    """

    def __init__(self, file: Path, text: str, units: _Units):
        self._file = str(file)
        self._lines = {self._file: lines_of(text)}
        self._units = units

    def of(self, seen: Seen) -> Iterator[lsp.Diagnostic]:
        """Yield the findings in the document, and the places of other files that led there."""
        report = seen.report
        severity = lsp.DiagnosticSeverity
        for problem in report.errors:
            place, related = self._own_place(problem)
            yield lsp.Diagnostic(
                range=self.range(place),
                message=_message(problem),
                severity=severity.Error,
                code=problem.code,
                source="hagane",
                related_information=related or None,
            )
        yield from self._noted(report.notices, severity.Warning, "")
        if not seen.settings.allow_unknown:
            yield from self._noted(report.unknown, severity.Information, "unknown: ")
        yield from self._noted(report.assumptions, severity.Hint, "assumed: ")

    def range(self, place: Place) -> lsp.Range:
        """Return a place as a range, not empty on one line."""
        end = max(place.end_column, place.column + 1 if place.line == place.end_line else 1)
        return lsp.Range(
            self._position(place.file, place.line, place.column),
            self._position(place.file, place.end_line, end),
        )

    def column(self, line: int, character: int) -> int:
        """Return the column, from 1, of a client's position in a line that counts from 1."""
        text = self._line(self._file, line)
        return next((c for c in range(len(text) + 1) if self._units(text[:c]) >= character),
                    len(text)) + 1  # fmt: skip

    def _own_place(self, problem: Problem) -> tuple[Place, list[lsp.DiagnosticRelatedInformation]]:
        """Return the place of a finding in the document, and those that belong to it."""
        words = [(call, "called from here") for call in problem.calls]
        if problem.within is not None:
            words.insert(0, (problem.within, "the line of the library"))
        place = problem.place
        if place.file != self._file:
            words.insert(0, (place, "the finding lies here"))
            inside = (call for call in problem.calls if call.file == self._file)
            place = next(inside, self._start())
        return place, [
            lsp.DiagnosticRelatedInformation(
                lsp.Location(Path(one.file).absolute().as_uri(), self.range(one)), text
            )
            for one, text in words
            if one != place
        ]

    def _noted(
        self, notes: Iterable[Note], severity: lsp.DiagnosticSeverity, before: str
    ) -> Iterator[lsp.Diagnostic]:
        for note in notes:
            place = note.place or self._start()
            if place.file == self._file:
                yield lsp.Diagnostic(
                    range=self.range(place),
                    message=before + note.message,
                    severity=severity,
                    source="hagane",
                )

    def _start(self) -> Place:
        return Place(self._file, 1, 1, 1, 2)

    def _position(self, file: str, line: int, column: int) -> lsp.Position:
        before = self._line(file, line)[: column - 1]
        return lsp.Position(line - 1, self._units(before) + column - 1 - len(before))

    def _line(self, file: str, line: int) -> str:
        if file not in self._lines:
            self._lines[file] = source_lines(file)
        lines = self._lines[file]
        return lines[line - 1] if 0 < line <= len(lines) else ""


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


class Checks:
    """Checks of the open documents, one at a time, beside the conversation with the client.

    Args:
        documents: The open documents.
        publish: Takes what was found in a file.
    """

    def __init__(self, documents: Documents, publish: Callable[[Path, Seen], None]):
        self._documents = documents
        self._publish = publish
        self._changes = 0
        self._task: asyncio.Task[None] | None = None

    def ask(self, first: Path) -> None:
        """Check the documents that a change concerns soon, the changed one first."""
        self._changes += 1
        self._first = first
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._serve())

    async def _serve(self) -> None:
        done = -1
        while done != self._changes:
            done = self._changes
            await asyncio.sleep(_QUIET)
            if done == self._changes:
                await self._check_all(done)

    async def _check_all(self, change: int) -> None:
        for file in sorted(self._documents.open(), key=lambda one: one != self._first):
            seen = await _in_thread(partial(self._documents.check, file))
            if seen is not None and self._documents.is_current(file, seen):
                self._publish(file, seen)
            if change != self._changes:
                return


async def _in_thread(work: Callable[[], Seen | None]) -> Seen | None:
    """Return the result of work in a thread that does not outlive the process."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Seen | None] = loop.create_future()

    def run() -> None:
        try:
            found = work()
        except BaseException as error:
            loop.call_soon_threadsafe(done.set_exception, error)
        else:
            loop.call_soon_threadsafe(done.set_result, found)

    before = threading.stack_size(_STACK)
    try:
        threading.Thread(target=run, daemon=True).start()
    finally:
        threading.stack_size(before)
    return await done


def make_server() -> LanguageServer:
    """Return a server that has not been started."""
    server = LanguageServer("hagane", __version__)
    documents = Documents()
    uris: dict[Path, str] = {}

    def diagnostics_of(file: Path, text: str) -> Diagnostics:
        return Diagnostics(file, text, server.workspace.position_codec.client_num_units)

    def send(uri: str, found: Sequence[lsp.Diagnostic], version: int | None = None) -> None:
        told = lsp.PublishDiagnosticsParams(uri, found, version)
        server.text_document_publish_diagnostics(told)

    def publish(file: Path, seen: Seen) -> None:
        uri = uris[file]  # the text is that of the version which is open now
        version = server.workspace.get_text_document(uri).version
        send(uri, list(diagnostics_of(file, seen.text).of(seen)), version)

    checks = Checks(documents, publish)

    def take(uri: str) -> None:
        file = file_of(uri)
        uris[file] = uri
        documents.hold(file, server.workspace.get_text_document(uri).source)
        checks.ask(file)

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def opened(parameters: lsp.DidOpenTextDocumentParams) -> None:
        take(parameters.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(parameters: lsp.DidChangeTextDocumentParams) -> None:
        take(parameters.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    async def saved(parameters: lsp.DidSaveTextDocumentParams) -> None:
        documents.doubt()
        take(parameters.text_document.uri)

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def touched(_: lsp.DidChangeWatchedFilesParams) -> None:
        documents.doubt()
        for file in documents.open()[:1]:
            checks.ask(file)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    async def closed(parameters: lsp.DidCloseTextDocumentParams) -> None:
        uri = parameters.text_document.uri
        documents.forget(file_of(uri))
        send(uri, [])
        for file in documents.open()[:1]:  # others may have been checked with unsaved text of it
            checks.ask(file)

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    async def hover(parameters: lsp.HoverParams) -> lsp.Hover | None:
        uri, at = parameters.text_document.uri, parameters.position
        file = file_of(uri)
        shown = diagnostics_of(file, server.workspace.get_text_document(uri).source)
        line = at.line + 1
        found = documents.type_at(file, line, shown.column(line, at.character))
        if found is None:
            return None
        text = f"```python\n{found.expression}: {found.type}\n```"
        contents = lsp.MarkupContent(lsp.MarkupKind.Markdown, text)
        return lsp.Hover(contents, shown.range(found.place))

    return server


def serve() -> None:
    """Serve one client on standard input and output until it ends."""
    make_server().start_io()
