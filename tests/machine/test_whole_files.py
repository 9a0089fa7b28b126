"""Files are written whole, or those before them stay."""

from __future__ import annotations

import os
import re
import resource
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

import hagane.cli
from hagane.cli import main
from hagane.errors import InvalidArgument
from hagane.graph import save
from hagane.machine.whole_files import write_whole, written_whole
from tests.machine.disks import read_only

TEXT = "a longer text " * 500


@contextmanager
def full(room: int = 100) -> Iterator[None]:
    """Let no file grow past some bytes, as on a full disk."""
    before, writes = resource.getrlimit(resource.RLIMIT_FSIZE), sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # of modules that are loaded meanwhile, which would be cut off
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = writes


def content(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.iterdir()) if path.is_file()}


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    place = tmp_path / "out.txt"
    for before in (None, "good"):
        if before is not None:
            place.write_text(before)
        with full(), pytest.raises(OSError, match="File too large: '.*out.txt'"):
            write_whole(place, TEXT)
        assert content(tmp_path) == ({} if before is None else {"out.txt": before})
        assert len(list(tmp_path.iterdir())) == (before is not None)
    write_whole(place, TEXT)
    assert content(tmp_path) == {"out.txt": TEXT}


def test_modes_and_links_stay(tmp_path: Path) -> None:
    place, link = tmp_path / "out.txt", tmp_path / "link"
    place.write_text("before")
    place.chmod(0o640)
    link.symlink_to("out.txt")
    write_whole(link, "after")
    assert link.is_symlink()
    assert (place.read_text(), stat.S_IMODE(place.stat().st_mode)) == ("after", 0o640)
    write_whole(tmp_path / ("n" * 250), "a long name")
    assert (tmp_path / ("n" * 250)).read_text() == "a long name"


def test_pipes_and_files_of_closed_folders_are_written_where_they_are(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[str]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_whole(pipe, "through")
    reader.join()
    assert read == ["through"]
    write_whole("/dev/null", "nowhere")
    closed = tmp_path / "closed"
    closed.mkdir()
    with read_only(closed), pytest.raises(OSError, match="'.*closed/new.txt'"):
        write_whole(closed / "new.txt", "x")


def test_places_that_cannot_be_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=f"'{tmp_path}' is a folder, and a file is to have"):
        write_whole(tmp_path, "x")
    with pytest.raises(FileNotFoundError, match=r"directory: '.*none/x.txt'"):
        write_whole(tmp_path / "none" / "x.txt", "x")
    with (
        pytest.raises(FileNotFoundError, match=r"directory: '.*x.txt'"),
        written_whole(tmp_path / "x.txt"),
    ):
        pass


def test_models_and_their_weights_are_replaced_together(tmp_path: Path) -> None:
    place = tmp_path / "m.onnx"

    def model(value: float) -> ir.Model:
        weights = ir.tensor(np.full((100, 3), value, np.float32), name="w")
        x = ir.val("x", ir.DataType.FLOAT, [3])
        w = ir.val("w", const_value=weights)
        node = ir.node("Add", [x, w])
        graph = ir.Graph([x], node.outputs, nodes=[node], initializers=[w], opset_imports={"": 21})
        return ir.Model(graph, ir_version=10)

    def value() -> float:
        weights = ir.load(place).graph.initializers["w"].const_value
        assert weights is not None
        return float(weights.numpy().max())

    save(model(1), place, external_data=True)
    with full(), pytest.raises(OSError, match="m.onnx"):
        save(model(2), place, external_data=True)
    assert value() == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "m.onnx.data"]
    save(model(3), place, external_data=True)
    assert value() == 3
    save(model(4), place)
    with full(), pytest.raises(OSError, match="m.onnx"):
        save(model(5), place)
    assert value() == 4


def test_no_command_writes_a_file_in_its_place() -> None:
    folder = Path(hagane.cli.__file__).parent
    found = {
        path.name
        for path in folder.rglob("*.py")
        if re.search(r"\.write_(text|bytes)\(|onnx\.save\(|open\([^)]*[\"']w", path.read_text())
    }
    assert found == set()


@pytest.mark.parametrize(
    ("words", "out"),
    [
        (["lex", "p.l", "-o", "lexer.py"], "lexer.py"),
        (["prob", "export", "p.pml", "-o", "p.pm"], "p.pm"),
        (["inspect", "m.onnx", "--graph", "m.html"], "m.html"),
    ],
    ids=lambda found: found[0] if isinstance(found, list) else "",
)
def test_commands_keep_a_good_result_on_a_full_disk(
    words: list[str],
    out: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.l").write_text("%%\n[a-z]+  return WORD;\n")
    Path("p.pml").write_text("flip(1/2)")
    text = '<ir_version: 10, opset_import: ["": 21]> g (float[3] x) => (float[3] y) { y = Relu(x) }'
    save(ir.from_onnx_text(text), "m.onnx")
    Path(out).write_text("good")
    with full(20), pytest.raises(SystemExit) as ended:
        main(words)
    message = capsys.readouterr().err
    assert ended.value.code == 2, message
    assert re.search(rf"cannot write '{out}'.*File too large", message)
    assert Path(out).read_text() == "good"
    with pytest.raises(SystemExit):
        main(words)
    assert len(Path(out).read_text(errors="replace")) > 20
    assert not list(tmp_path.glob("tmp*"))
