"""Entries of the cache: whole or made anew, limited in size, safe between processes."""

from __future__ import annotations

import errno
import logging
import os
import signal
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from hagane.machine import CodeCache, NoCompiler
from hagane.machine.cache import evict, load_module
from tests.machine.disks import small_disk


class Maker:
    """Makes libraries and counts them."""

    def __init__(self, content: bytes = b"content"):
        self.content, self.count = content, 0

    def __call__(self, folder: Path) -> Path:
        self.count += 1
        (folder / "library.so").write_bytes(self.content)
        return folder / "library.so"


@pytest.fixture
def cache(tmp_path: Path) -> CodeCache:
    return CodeCache("test", {"XDG_CACHE_HOME": str(tmp_path)})


def in_children(count: int, work: Callable[[int], None]) -> list[int]:
    """Return the exit codes of processes that work at the same time; an exception gives 1."""
    children = []
    for number in range(count):
        child = os.fork()
        if child == 0:
            try:
                work(number)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def damage() -> Iterator[tuple[str, Callable[[Path], object]]]:
    """Yield what can have happened to the library of an entry."""
    yield "truncated", lambda path: path.write_bytes(path.read_bytes()[:3])
    yield "empty", lambda path: path.write_bytes(b"")
    yield "changed", lambda path: path.write_bytes(b"CONTENT")
    yield "gone", lambda path: path.unlink()
    yield "writable by others", lambda path: path.chmod(0o666)
    yield "in a folder that others may write to", lambda path: path.parent.chmod(0o777)
    yield "a link", lambda path: (path.rename(path.parent.parent / "x"), path.symlink_to("../x"))
    yield "with a stranger beside it", lambda path: (path.parent / "more.so").write_bytes(b"")
    yield "without checksum", lambda path: path.with_suffix(".sha256").unlink()
    yield "with half a checksum", lambda path: path.with_suffix(".sha256").write_text("12")
    yield (
        "with no text for a checksum",
        lambda path: path.with_suffix(".sha256").write_bytes(b"\xff\xfe"),
    )


@pytest.mark.parametrize("change", [pytest.param(c, id=name) for name, c in damage()])
def test_an_entry_that_was_changed_is_made_anew(
    cache: CodeCache, change: Callable[[Path], object]
) -> None:
    make = Maker()
    path = cache.get("key", make)
    assert cache.get("key", make) == path
    assert make.count == 1
    change(path)
    assert cache.find("key") is None
    assert cache.get("key", make).read_bytes() == b"content"
    assert make.count == 2
    assert cache.find("key") == path


def test_an_entry_of_another_user_is_made_anew(
    cache: CodeCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.get("key", Maker())
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert cache.find("key") is None


def test_a_file_where_an_entry_should_be_is_replaced(cache: CodeCache) -> None:
    path = cache.get("key", Maker())
    for child in path.parent.iterdir():
        child.unlink()
    path.parent.rmdir()
    path.parent.write_bytes(b"a file")
    assert cache.get("key", Maker()).read_bytes() == b"content"


def test_a_folder_entry_is_verified_as_a_whole(cache: CodeCache) -> None:
    def fill(folder: Path) -> None:
        (folder / "vector.h").write_text("text")
        (folder / "vector.h.gch").write_text("translated")

    folder = cache.get_folder("key", fill)
    assert (folder / "vector.h.gch").read_text() == "translated"
    (folder / "vector.h.gch").write_text("tampered")
    assert cache.find("key") is None
    assert (cache.get_folder("key", fill) / "vector.h.gch").read_text() == "translated"


def test_a_large_file_is_read_again_only_when_it_changed(
    cache: CodeCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, read = Maker(bytes(3 << 20)), []
    read_bytes = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: (read.append(path), read_bytes(path))[1])
    path = cache.get("key", make)
    assert [cache.get("key", make) for _ in range(5)] == [path] * 5
    assert len(read) == 1
    before = path.stat()
    with path.open("r+b") as file:
        file.write(b"x")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert cache.find("key") is None
    assert cache.get("key", make).read_bytes() == make.content
    assert make.count == 2


def test_keys_do_not_meet_and_may_hold_any_text(cache: CodeCache) -> None:
    keys = ["", "a", "a\0b", "../../x", "\ud800", "é", "a" * 10_000]
    paths = [cache.get(key, Maker(repr(key).encode())) for key in keys]
    assert [path.read_bytes() for path in paths] == [repr(key).encode() for key in keys]
    assert all(path.parent.parent == cache.folder for path in paths)


def test_processes_that_make_the_same_entries_all_find_whole_ones(tmp_path: Path) -> None:
    def work(number: int) -> None:
        cache = CodeCache("test", {"XDG_CACHE_HOME": str(tmp_path)})
        for key in range(25):
            # Compilers need not write the same bytes twice; an entry must be of one piece.
            content = bytes([number]) * 200_000
            path = cache.get(str(key), Maker(content))
            found = path.read_bytes()
            assert len(found) == 200_000
            assert len(set(found)) == 1
            assert cache.find(str(key)) == path

    assert in_children(4, work) == [0, 0, 0, 0]
    folder = tmp_path / "hagane" / "test"
    assert len(list(folder.iterdir())) == 25


def test_a_process_that_ends_while_it_writes_leaves_no_half_entry(tmp_path: Path) -> None:
    def work(number: int) -> None:
        def die(folder: Path) -> Path:
            (folder / "library.so").write_bytes(b"half")
            os.kill(os.getpid(), signal.SIGKILL)
            return folder / "library.so"

        CodeCache("test", {"XDG_CACHE_HOME": str(tmp_path)}).get("key", die)

    assert in_children(1, work) == [-signal.SIGKILL]
    cache = CodeCache("test", {"XDG_CACHE_HOME": str(tmp_path)})
    (left,) = cache.folder.iterdir()
    assert left.name.startswith("build-")
    assert cache.find("key") is None
    assert cache.get("key", Maker()).read_bytes() == b"content"
    evict(cache.folder, 1 << 30, left.stat().st_mtime + 90_000)
    assert not left.exists()


def test_processes_that_load_evict_and_damage_go_on_together(tmp_path: Path) -> None:
    def work(number: int) -> None:
        environment = {"XDG_CACHE_HOME": str(tmp_path), "HAGANE_CACHE_BYTES": "3000"}
        cache = CodeCache("test", environment)
        for turn in range(60):
            key = str((turn * 7 + number) % 5)
            if number == 0:
                evict(cache.folder, 1500, 2e10)
            elif number == 1 and turn % 3 == 0:
                for path in cache.folder.glob("[0-9a-f]*/library.so"):
                    path.with_name("library.so").unlink(missing_ok=True)
            else:
                content = key.encode() * 500
                assert cache.load(key, Maker(content), Path.read_bytes) == content

    assert in_children(4, work) == [0, 0, 0, 0]


def test_the_entries_used_least_recently_go_first(tmp_path: Path) -> None:
    now = 1e9
    environment = {"XDG_CACHE_HOME": str(tmp_path), "HAGANE_CACHE_BYTES": "3500"}
    cache = CodeCache("test", environment, lambda: now)
    paths = {}
    for key in "abcd":
        paths[key] = cache.get(key, Maker(bytes(900)))
        os.utime(paths[key].parent, (now, now))
        now += 10_000
    # The fourth entry is counted when it is written, and is too much.
    assert [key for key in "abcd" if paths[key].exists()] == ["b", "c", "d"]
    assert cache.find("b")  # used again
    now += 10_000
    paths["e"] = cache.get("e", Maker(bytes(900)))
    assert [key for key in "abcde" if paths[key].exists()] == ["b", "d", "e"]


def test_entries_that_another_process_counted_lately_are_not_counted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1e9
    cache = CodeCache("test", {"XDG_CACHE_HOME": str(tmp_path)}, lambda: now)
    counts: list[float] = []
    monkeypatch.setattr("hagane.machine.cache.evict", lambda *arguments: counts.append(now))
    for seconds in (0, 500, 599, 601, 700):
        now = 1e9 + seconds
        monkeypatch.setattr("hagane.machine.cache._written", {})  # as another process begins
        cache.get(f"{seconds}", Maker())
        cache.get(f"{seconds} again", Maker())
    assert counts == [1e9, 1e9 + 601]


def test_entries_in_use_are_not_evicted(tmp_path: Path) -> None:
    cache = CodeCache("test", {"XDG_CACHE_HOME": str(tmp_path), "HAGANE_CACHE_BYTES": "1"})
    for key in "abc":
        cache.get(key, Maker(bytes(900)))
    assert all(cache.find(key) for key in "abc")


def test_a_limit_that_is_no_number_is_explained(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        CodeCache("test", {"XDG_CACHE_HOME": str(tmp_path), "HAGANE_CACHE_BYTES": "1 GB"})
    assert "HAGANE_CACHE_BYTES: expected a whole number of bytes, got '1 GB'" in caplog.text


@pytest.mark.parametrize(
    ("disk", "limit"), [(4 << 30, 1 << 30), (20 << 30, 2 << 30), (1 << 50, 4 << 30)]
)
def test_a_large_limit_takes_no_more_than_a_tenth_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disk: int, limit: int
) -> None:
    def state_of(place: Path) -> SimpleNamespace:
        if not place.exists():
            raise FileNotFoundError(place)
        return SimpleNamespace(f_blocks=disk // 4096, f_frsize=4096)

    monkeypatch.setattr(os, "statvfs", state_of)
    environment = {"XDG_CACHE_HOME": str(tmp_path / "later")}
    assert CodeCache("test", environment, limit=4 << 30).limit == limit
    assert CodeCache("test", environment).limit == 1 << 30
    assert CodeCache("test", {**environment, "HAGANE_CACHE_BYTES": "7"}, limit=4 << 30).limit == 7


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS])
def test_without_room_the_code_goes_to_a_temporary_folder(
    cache: CodeCache, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    def make(folder: Path) -> Path:
        if folder.is_relative_to(kept):
            raise OSError(number, os.strerror(number))
        return Maker()(folder)

    kept = cache.folder
    with caplog.at_level(logging.WARNING):
        path = cache.get("key", make)
    assert path.read_bytes() == b"content"
    assert not path.is_relative_to(kept)
    assert cache.find("key") == path
    assert list(kept.iterdir()) == []
    assert f"compiled code cannot be kept in '{kept}': [Errno {number}]" in caplog.text
    assert "make room, lower HAGANE_CACHE_BYTES, or let XDG_CACHE_HOME name" in caplog.text


def test_a_disk_that_is_full_is_not_the_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with small_disk(tmp_path / "disk"), caplog.at_level(logging.WARNING):
        cache = CodeCache("test", {"XDG_CACHE_HOME": str(tmp_path / "disk")})
        kept = cache.folder
        small = cache.get("small", Maker())
        large = cache.get("large", Maker(bytes(1 << 20)))
        assert large.stat().st_size == 1 << 20
        assert not large.is_relative_to(kept)
        assert cache.find("small") == small
        assert [path.name for path in kept.iterdir()] == [small.parent.name]
    assert "No space left on device" in caplog.text


def test_without_room_anywhere_the_error_names_the_remedy(cache: CodeCache) -> None:
    def make(folder: Path) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(
        NoCompiler,
        match=r"no room for compiled code in '.*': \[Errno 28\] No space left on device; make "
        r"room, or let XDG_CACHE_HOME and TMPDIR name folders",
    ):
        cache.get("key", make)


def test_what_cannot_be_loaded_is_made_anew_elsewhere(
    cache: CodeCache, caplog: pytest.LogCaptureFixture
) -> None:
    kept, make = cache.folder, Maker()

    def load(path: Path) -> Path:
        if path.is_relative_to(kept):
            raise OSError("failed to map segment from shared object: Operation not permitted")
        return path

    with caplog.at_level(logging.WARNING):
        path = cache.load("key", make, load)
    assert not path.is_relative_to(kept)
    assert f"compiled code cannot be loaded from '{kept}': failed to map segment" in caplog.text

    def never(path: Path) -> Path:
        raise ImportError("invalid ELF header")

    with pytest.raises(NoCompiler, match="cannot be loaded: invalid ELF header; let CC name"):
        cache.load("other", make, never)


def test_headers_that_a_module_names_come_before_those_among_pythons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python, newer = tmp_path / "python", tmp_path / "newer"
    for folder, text in ((python, "#error older"), (newer, "#define MODULE PyModuleDef")):
        folder.mkdir()
        (folder / "module.h").write_text(text)
    (python / "Python.h").write_text(f'#include "{sysconfig.get_paths()["include"]}/Python.h"')
    paths = {**sysconfig.get_paths(), "include": str(python)}
    monkeypatch.setattr(sysconfig, "get_paths", lambda: paths)
    text = """
    #include <Python.h>
    #include <module.h>
    static struct MODULE made = {PyModuleDef_HEAD_INIT, "hagane_headers", NULL, 0, NULL};
    PyMODINIT_FUNC PyInit_hagane_headers(void) { return PyModule_Create(&made); }
    """
    module = load_module("headers", lambda: text, (str(newer), paths["platinclude"]))
    assert module is not None
    assert module.__name__ == "hagane_headers"
