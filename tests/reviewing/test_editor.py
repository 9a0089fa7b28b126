"""The language server with a real client, and the magic of notebooks."""

from __future__ import annotations

import asyncio
import linecache
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import hagane
from hagane.frontends.python.report.findings import Problem, Report
from hagane.frontends.python.values.values import Place
from hagane.reviewing.cache import ResultCache
from hagane.reviewing.documents import Seen
from hagane.reviewing.notebook import checked, load_ipython_extension
from hagane.reviewing.settings import Settings

lsp = pytest.importorskip("lsprotocol.types")
client = pytest.importorskip("pygls.lsp.client")
Diagnostics = pytest.importorskip("hagane.reviewing.server").Diagnostics

SOURCE = """import numpy as np
from hagane import Shaped

def scaled(x: Shaped["float32[n, 3]"]):
    y = x + 1
    return y * np.ones(4, np.float32)
"""


class Editor:
    """A client of the language server, in whose folder documents lie that it changes unsaved."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._client = client.LanguageClient("editor", "1")
        self._arrived: asyncio.Queue[Any] = asyncio.Queue()
        self._versions: dict[str, int] = {}

        @self._client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(parameters: Any) -> None:
            self._arrived.put_nowait(parameters)

    async def __aenter__(self) -> Editor:
        await self._client.start_io(sys.executable, "-m", "hagane", "check", "--lsp")
        await self._client.initialize_async(
            lsp.InitializeParams(
                capabilities=lsp.ClientCapabilities(), root_uri=self.folder.as_uri()
            )
        )
        self._client.initialized(lsp.InitializedParams())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.shutdown_async(None)
        self._client.exit(None)
        await self._client.stop()

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def open(self, name: str, text: str | None = None) -> None:
        found = (self.folder / name).read_text() if text is None else text
        item = lsp.TextDocumentItem(self.uri(name), "python", 1, found)
        self._client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))

    def type(self, name: str, text: str) -> None:
        self._versions[name] = self._versions.get(name, 1) + 1
        document = lsp.VersionedTextDocumentIdentifier(self._versions[name], self.uri(name))
        whole = lsp.TextDocumentContentChangeWholeDocument(text)
        self._client.text_document_did_change(lsp.DidChangeTextDocumentParams(document, [whole]))

    def close(self, name: str) -> None:
        document = lsp.TextDocumentIdentifier(self.uri(name))
        self._client.text_document_did_close(lsp.DidCloseTextDocumentParams(document))

    def save(self, name: str) -> None:
        document = lsp.TextDocumentIdentifier(self.uri(name))
        self._client.text_document_did_save(lsp.DidSaveTextDocumentParams(document))

    async def next(self, name: str) -> list[Any]:
        """Return the diagnostics of the next message about a document."""
        while True:
            found = await asyncio.wait_for(self._arrived.get(), 60)
            if found.uri == self.uri(name):
                self.version = found.version
                return list(found.diagnostics)

    async def hover(self, name: str, line: int, character: int) -> Any:
        at = lsp.Position(line, character)
        document = lsp.TextDocumentIdentifier(self.uri(name))
        return await asyncio.wait_for(
            self._client.text_document_hover_async(lsp.HoverParams(document, at)), 60
        )


def _errors(found: list[Any]) -> list[Any]:
    return [one for one in found if one.severity == lsp.DiagnosticSeverity.Error]


def test_an_editor_is_told_findings_and_types_while_a_person_types(tmp_path: Path) -> None:
    (tmp_path / "layers.py").write_text(SOURCE)

    async def talk() -> None:
        async with Editor(tmp_path) as editor:
            editor.open("layers.py")
            (error,) = _errors(await editor.next("layers.py"))
            assert (error.range.start.line, error.range.start.character) == (5, 11)
            assert (error.code, error.source) == ("shape-mismatch", "hagane")
            assert "float32" in error.message
            hover = await editor.hover("layers.py", 4, 4)
            assert hover.contents.value.startswith("```python\ny: ")
            assert "shape=(n, 3)" in hover.contents.value
            editor.type("layers.py", SOURCE.replace("ones(4,", "ones(("))
            (syntax,) = _errors(await editor.next("layers.py"))
            assert syntax.code == "syntax"
            assert "never closed" in syntax.message
            assert syntax.range.start.line == 5
            assert "shape=(n, 3)" in (await editor.hover("layers.py", 4, 4)).contents.value
            editor.type("layers.py", SOURCE.replace("ones(4,", "ones(3,"))
            assert _errors(await editor.next("layers.py")) == []

    asyncio.run(talk())


HEAD = """import torch.nn as nn

def head(x):
    return nn.Linear(8, 3)(x)
"""
USER = """from hagane import Shaped
from parts import head

def f(x: Shaped["float32[n, 8]"]) -> Shaped["float32[n, 3]"]:
    return head(x)
"""


def test_a_finding_in_a_library_shows_its_line_beside_the_call(tmp_path: Path) -> None:
    inner = Place(str(tmp_path / "blocks.py"), 2, 5, 2, 10)
    call = Place(str(tmp_path / "use.py"), 1, 1, 1, 4)
    (tmp_path / "blocks.py").write_text("def f(x):\n    x + 1\n")
    report = Report(errors=[Problem(call, "rank", "too few axes", "f(1)", within=inner)])
    cache = ResultCache(tmp_path / "kept")
    cache.put("one", report)
    kept = cache.get("one")
    assert kept is not None
    assert kept[0].errors == report.errors
    shown = Diagnostics(tmp_path / "use.py", "f(1)\n", len)
    (error,) = shown.of(Seen(report, Settings(tmp_path), "f(1)\n"))
    (related,) = error.related_information or ()
    assert related.message == "the line of the library"
    assert related.location.uri == (tmp_path / "blocks.py").as_uri()
    assert (related.location.range.start.line, related.location.range.start.character) == (1, 4)


@pytest.mark.long
def test_a_document_that_is_closed_counts_as_it_lies_on_the_disk(tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text(HEAD)

    async def talk() -> None:
        async with Editor(tmp_path) as editor:
            editor.open("user.py", USER)
            assert _errors(await editor.next("user.py")) == []
            assert editor.version == 1
            editor.open("parts.py")
            editor.type("parts.py", HEAD.replace("8, 3", "8, 4"))
            (error,) = _errors(await editor.next("user.py"))
            assert "expected 3 where 4 came" in error.message
            editor.close("parts.py")
            assert _errors(await editor.next("user.py")) == []
            editor.type("user.py", USER.replace("n, 3", "n, 5"))
            assert len(_errors(await editor.next("user.py"))) == 1
            assert editor.version == 2

    asyncio.run(talk())


@pytest.mark.long
def test_columns_are_counted_as_the_editor_counts_them(tmp_path: Path) -> None:
    source = SOURCE.replace("y * np", "('𝛼𝛽', y)[1] * np")

    async def talk() -> None:
        async with Editor(tmp_path) as editor:
            editor.open("new.py", source)  # which was never saved
            (error,) = _errors(await editor.next("new.py"))
            line = source.splitlines()[5]
            assert (error.range.start.character, error.range.end.character) == (11, len(line) + 2)
            hover = await editor.hover("new.py", 5, line.index("y)") + 2)
            assert hover.contents.value.startswith("```python\ny: ")

    asyncio.run(talk())


def test_an_unsaved_change_is_seen_by_the_documents_that_import_it(tmp_path: Path) -> None:
    (tmp_path / "layers.py").write_text(SOURCE.replace("ones(4,", "ones(3,"))
    use = SOURCE.partition("def")[0] + (
        "from layers import scaled\n\n\n"
        'def used(x: Shaped["float32[k, 3]"]):\n    return scaled(x)\n'
    )
    (tmp_path / "use.py").write_text(use)

    async def talk() -> None:
        async with Editor(tmp_path) as editor:
            editor.open("layers.py")
            editor.open("use.py")
            assert _errors(await editor.next("use.py")) == []
            editor.type("layers.py", SOURCE)
            (error,) = _errors(await editor.next("use.py"))
            assert error.range.start.line == use.splitlines().index("    return scaled(x)")
            places = [(one.location.uri, one.message) for one in error.related_information]
            assert (editor.uri("layers.py"), "the finding lies here") in places

    asyncio.run(talk())


def test_settings_and_scripts_are_those_of_the_command(tmp_path: Path) -> None:
    script = "import torch\n\nx = torch.zeros(2, 3)\nfor _ in range(2):\n    print(x @ x)\n"

    async def talk() -> None:
        async with Editor(tmp_path) as editor:
            editor.open("train.py", script)
            (error,) = _errors(await editor.next("train.py"))
            assert error.range.start.line == 4
            (tmp_path / "pyproject.toml").write_text("[tool.hagane.check]\nignored = []\n")
            editor.save("train.py")
            (warning,) = await editor.next("train.py")
            assert warning.severity == lsp.DiagnosticSeverity.Warning
            assert "ignored: unknown; the table has: paths" in warning.message

    asyncio.run(talk())


def _cell(source: str, names: dict[str, Any]) -> None:
    """Run a cell as IPython does: compiled under a name whose lines are at hand."""
    name = "<ipython-input-1-0a1b2c>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), names)


def test_a_function_of_a_notebook_is_checked() -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    _cell("import numpy as np\ndef f(x):\n    return x * np.ones(4, np.float32)\n", names)
    assert "[shape-mismatch]" in "\n".join(checked("f float32[n, 3]", names))
    assert "no errors" in "\n".join(checked("f float32[n, 4]", names))


def test_a_class_of_a_notebook_is_checked() -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    _cell(
        "import numpy as np\nclass Net:\n    def __init__(self, n):\n"
        "        self.w = np.ones(n, np.float32)\n"
        "    def __call__(self, x):\n        return x * self.w\n",
        names,
    )
    assert "no errors" in "\n".join(checked("Net(3) float32[n, 3]", names))
    assert "[shape-mismatch]" in "\n".join(checked("Net(4) float32[n, 3]", names))


def test_types_of_a_notebook_may_have_names() -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    _cell("def f(x, y):\n    return x + y\n", names)
    assert "shape=(n, 3)" in "\n".join(checked("f float32[n, 3]; y=float32[3]", names))


class Shell:
    """As much of IPython's shell as an extension meets."""

    def __init__(self) -> None:
        self.user_ns: dict[str, Any] = {"__name__": "__main__"}
        self.compile = self

    def register_magic_function(self, function: Any, kind: str, name: str) -> None:
        self.magic = (function, kind, name)

    @staticmethod
    def format_code_name(name: str) -> tuple[str, str] | None:
        return ("Cell", "In[1]") if name.startswith("<ipython") else None


def test_the_magic_names_cells_and_explains_its_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("UsageError", (Exception,), {})
    module = types.ModuleType("IPython.core.error")
    module.UsageError = usage  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython.core.error", module)
    shell = Shell()
    load_ipython_extension(shell)
    function, kind, name = shell.magic
    assert (kind, name) == ("line", "hagane_check")
    _cell("import numpy as np\ndef f(x):\n    return x + np.ones(4)\n", shell.user_ns)
    function("f float32[n, 4]")
    assert "no errors" in capsys.readouterr().out
    function("f float32[n, 3]")
    shown = capsys.readouterr().out
    assert shown.startswith("In[1]:3:12: error: ")
    assert "  3 |     return x + np.ones(4)\n    |            ^^^^^^^^^^^^^^\n" in shown
    assert "ipython-input" not in shown
    with pytest.raises(usage, match=r"expected an expression.*%hagane_check Net\(10\)"):
        function("")
    with pytest.raises(usage, match=r"name 'missing' is not defined; run its cell first"):
        function("missing float32[n]")
    function("f")
    assert "give one, as x=float32[batch, 3, 224, 224]" in capsys.readouterr().out


def test_a_report_prints_as_the_command_prints_it() -> None:
    def f(x: Any) -> Any:
        return x + 1

    report = hagane.check(f, "float32[n]")
    assert str(report).endswith("returns numpy.ndarray(dtype=float32, shape=(n,))")
    assert str(report).startswith("no errors in ")
