"""The language server with a real client, and the magic of notebooks."""

from __future__ import annotations

import asyncio
import linecache
import sys
from pathlib import Path
from typing import Any

import pytest

from hagane.errors import InvalidArgument
from hagane.reviewing.notebook import checked, load_ipython_extension

lsp = pytest.importorskip("lsprotocol.types")
client = pytest.importorskip("pygls.lsp.client")

SOURCE = """import numpy as np
from hagane import Shaped

def scaled(x: Shaped["float32[n, 3]"]):
    y = x + 1
    return y * np.ones(4, np.float32)
"""


async def _talk(path: Path) -> tuple[list[Any], Any, list[Any]]:
    editor = client.LanguageClient("editor", "1")
    arrived: asyncio.Queue[Any] = asyncio.Queue()

    @editor.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def published(parameters: Any) -> None:
        arrived.put_nowait(parameters.diagnostics)

    await editor.start_io(sys.executable, "-m", "hagane", "check", "--lsp")
    root = path.parent.as_uri()
    await editor.initialize_async(
        lsp.InitializeParams(capabilities=lsp.ClientCapabilities(), root_uri=root)
    )
    editor.initialized(lsp.InitializedParams())
    uri = path.as_uri()
    document = lsp.TextDocumentItem(uri, "python", 1, path.read_text())
    editor.text_document_did_open(lsp.DidOpenTextDocumentParams(document))
    first = await asyncio.wait_for(arrived.get(), 60)
    at = lsp.HoverParams(lsp.TextDocumentIdentifier(uri), lsp.Position(4, 4))
    hover = await asyncio.wait_for(editor.text_document_hover_async(at), 60)
    path.write_text(SOURCE.replace("ones(4,", "ones(3,"))
    saved = lsp.DidSaveTextDocumentParams(lsp.TextDocumentIdentifier(uri))
    editor.text_document_did_save(saved)
    second = await asyncio.wait_for(arrived.get(), 60)
    await editor.shutdown_async(None)
    editor.exit(None)
    await editor.stop()
    return first, hover, second


def test_an_editor_is_told_findings_and_types(tmp_path: Path) -> None:
    path = tmp_path / "layers.py"
    path.write_text(SOURCE)
    first, hover, second = asyncio.run(_talk(path))
    (error,) = [one for one in first if one.severity == lsp.DiagnosticSeverity.Error]
    assert (error.range.start.line, error.range.start.character) == (5, 11)
    assert error.code == "shape-mismatch"
    assert error.source == "hagane"
    assert "float32" in error.message
    assert hover.contents.value.startswith("```python\ny: ")
    assert "shape=(n, 3)" in hover.contents.value
    assert [one for one in second if one.severity == lsp.DiagnosticSeverity.Error] == []


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


def test_the_magic_is_registered_and_its_line_is_explained(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Shell:
        def __init__(self) -> None:
            self.user_ns: dict[str, Any] = {}

        def register_magic_function(self, function: Any, kind: str, name: str) -> None:
            self.magic = (function, kind, name)

    shell = Shell()
    load_ipython_extension(shell)
    function, kind, name = shell.magic
    assert (kind, name) == ("line", "hagane_check")
    _cell("def f(x):\n    return x + 1\n", shell.user_ns)
    function("f float32[n]")
    assert "no errors" in capsys.readouterr().out
    with pytest.raises(InvalidArgument, match=r"expected an expression.*%hagane_check Net\(10\)"):
        function("")
