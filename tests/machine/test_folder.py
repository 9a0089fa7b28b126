"""Which folder compiled code is kept in, and which are refused."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hagane.machine import CodeCache
from hagane.machine.folder import find_place
from tests.machine.disks import read_only


def make(folder: Path) -> Path:
    (folder / "library.so").write_bytes(b"content")
    return folder / "library.so"


def is_temporary(folder: Path) -> bool:
    return folder.name.startswith("hagane-test-") and folder.stat().st_mode & 0o777 == 0o700


def refused(caplog: pytest.LogCaptureFixture, environment: dict[str, str]) -> str:
    """Return the notice about a folder that is not used; the cache must work all the same."""
    with caplog.at_level(logging.WARNING, logger="hagane.machine"):
        cache = CodeCache("test", environment)
        assert is_temporary(cache.folder)
        path = cache.get("key", make)
    assert path.read_bytes() == b"content"
    assert path.is_relative_to(cache.folder)
    return caplog.text


def test_a_new_folder_is_the_users_alone_whatever_the_mask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        cache = CodeCache("test", {"XDG_CACHE_HOME": str(tmp_path)})
        path = cache.get("key", make)
    finally:
        os.umask(before)
    assert cache.folder == tmp_path / "hagane" / "test"
    for made in (cache.folder, path.parent):
        assert made.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_folder_that_others_may_read_is_closed_to_them(tmp_path: Path) -> None:
    folder = tmp_path / "hagane" / "test"
    folder.mkdir(parents=True, mode=0o755)
    folder.chmod(0o755)
    assert CodeCache("test", {"XDG_CACHE_HOME": str(tmp_path)}).folder == folder
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
def test_a_folder_that_others_may_write_to_is_refused(
    mode: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "hagane" / "test"
    folder.mkdir(parents=True)
    folder.chmod(mode)
    text = refused(caplog, {"XDG_CACHE_HOME": str(tmp_path)})
    assert f"others may write to the folder '{folder}' (mode {mode:o}, expected 700)" in text
    assert "remove it, or let XDG_CACHE_HOME name a folder of your own" in text
    assert list(folder.iterdir()) == []


def test_a_folder_of_another_user_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "hagane" / "test"
    folder.mkdir(parents=True, mode=0o700)
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    cache = CodeCache("test", {"XDG_CACHE_HOME": str(tmp_path)})
    with caplog.at_level(logging.WARNING):
        assert is_temporary(cache.folder)
    assert find_place("test", {"XDG_CACHE_HOME": str(tmp_path)}).kept is None
    assert f"belongs to user {owner}, expected {owner + 1}" in caplog.text


def test_a_file_in_the_place_of_the_folder_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "hagane").write_text("a file")
    text = refused(caplog, {"XDG_CACHE_HOME": str(tmp_path)})
    assert f"the folder '{tmp_path / 'hagane' / 'test'}' cannot be used: " in text


def test_a_read_only_folder_is_read_and_nothing_is_written_to_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    kept = CodeCache("test", environment).get("old", make)
    with read_only(kept.parent.parent), caplog.at_level(logging.WARNING):
        cache = CodeCache("test", environment)
        assert cache.find("old") == kept
        assert is_temporary(cache.folder)
        new = cache.get("new", make)
        assert new.is_relative_to(cache.folder)
        assert CodeCache("test", environment).find("new") == new
    assert f"the folder '{kept.parent.parent}' cannot be written to" in caplog.text
    assert "let XDG_CACHE_HOME name another folder" in caplog.text


def test_without_a_home_the_code_goes_to_a_temporary_folder(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # the user is not in passwd
    assert "no home folder is known, or let XDG_CACHE_HOME name" in refused(caplog, {})
    assert list(tmp_path.iterdir()) == []


def test_a_relative_cache_home_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cache = CodeCache("test", {"XDG_CACHE_HOME": "here", "HOME": str(tmp_path / "home")})
    assert cache.folder == tmp_path / "home" / ".cache" / "hagane" / "test"
    assert not (tmp_path / "here").exists()


def test_a_notice_is_given_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "hagane").write_text("a file")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            CodeCache("test", {"XDG_CACHE_HOME": str(tmp_path)})
    assert len(caplog.records) == 1


def test_a_temporary_folder_goes_with_the_process_that_made_it(tmp_path: Path) -> None:
    program = """if True:
        import os, pathlib, sys
        from hagane.machine import CodeCache
        cache = CodeCache("test", {"XDG_CACHE_HOME": sys.argv[1]})
        folder = cache.folder
        child = os.fork()
        if child == 0:
            sys.exit(0)  # runs what is registered for the end of the process
        os.waitpid(child, 0)
        print(folder, folder.is_dir())
    """
    (tmp_path / "hagane").write_text("a file")
    (tmp_path / "temporary").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
    )
    folder, present = done.stdout.split()
    assert present == "True"
    assert Path(folder).parent == tmp_path / "temporary"
    assert list((tmp_path / "temporary").iterdir()) == []
