"""Compilers that are missing, vanish, fail, hang, crash or write nothing."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

import pytest

from hagane.machine import Compiler, NoCompiler, find_compiler

REMEDY = r"let CC name another compiler, or pip install 'hagane\[compiler\]'"


def program(path: Path, text: str) -> Path:
    """Write a shell script that others may start."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return path


def compiler(folder: Path, text: str) -> Compiler:
    """Return a compiler that says its version, and does ``text`` when it is to compile."""
    path = program(folder / "bin" / "cc", f'[ "$1" = --version ] && echo "cc 1" && exit\n{text}')
    return find_compiler({"PATH": str(path.parent)})


def build(made: Compiler, folder: Path, count: int = 1) -> Path:
    sources = [folder / f"source{number}.c" for number in range(count)]
    for source in sources:
        source.write_text("int answer(void) { return 42; }\n")
    made.build(sources, folder / "library.so", ("-fPIC",), jobs=2)
    return folder / "library.so"


@pytest.mark.usefixtures("without_ziglang")
def test_without_a_compiler_the_error_names_the_extra(tmp_path: Path) -> None:
    with pytest.raises(NoCompiler, match=r"looked for cc, gcc, clang.*hagane\[compiler\]"):
        find_compiler({"PATH": str(tmp_path)})
    with pytest.raises(NoCompiler, match="looked for missing, cc, gcc, clang"):
        find_compiler({"PATH": str(tmp_path), "CC": "missing -O2"})


def test_a_compiler_that_the_environment_names_in_vain_is_noticed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = program(tmp_path / "gcc", "echo gcc 1")
    with caplog.at_level(logging.WARNING):
        found = find_compiler({"PATH": str(tmp_path), "CC": "icc -fast"})
    assert found.command == (str(path),)
    assert "the compiler 'icc', which CC names, is not on PATH" in caplog.text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("exit 3", "failed with exit code 3"),
        ("kill -SEGV $$", "failed with signal SIGSEGV"),
        ("exec sleep 60", "had not ended after 0.2 seconds"),
    ],
)
def test_a_compiler_that_cannot_say_its_version_is_passed_over(
    text: str,
    reason: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hagane.machine.compiler._VERSION_LIMIT", 0.2)
    broken = program(tmp_path / "cc", text)
    sound = program(tmp_path / "clang", "echo clang 1")
    with caplog.at_level(logging.WARNING):
        found = find_compiler({"PATH": str(tmp_path)})
    assert found == Compiler((str(sound),), "clang 1")
    assert "a compiler is passed over" in caplog.text
    assert str(broken) in caplog.text
    assert reason in caplog.text


@pytest.mark.usefixtures("without_ziglang")
def test_a_compiler_that_is_no_program_is_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cc").write_bytes(b"\0\1\2")
    (tmp_path / "cc").chmod(0o700)
    with caplog.at_level(logging.WARNING), pytest.raises(NoCompiler, match="was found"):
        find_compiler({"PATH": str(tmp_path)})
    assert "cannot be started: [Errno 8] Exec format error" in caplog.text


def test_a_compiler_that_vanished_is_named(tmp_path: Path) -> None:
    made = compiler(tmp_path, "exit 0")
    Path(made.command[0]).unlink()
    with pytest.raises(NoCompiler, match=rf"cannot be started: .*No such file.*; {REMEDY}"):
        build(made, tmp_path)


def test_a_failing_compiler_is_quoted(tmp_path: Path) -> None:
    made = compiler(tmp_path, "echo printed; printf 'not \\377 utf-8\\n' >&2; exit 1")
    with pytest.raises(
        NoCompiler, match=rf"failed with exit code 1:\nprinted\nnot � utf-8\n\n{REMEDY}"
    ):
        build(made, tmp_path)


def test_a_crashing_compiler_names_the_signal(tmp_path: Path) -> None:
    made = compiler(tmp_path, "kill -ABRT $$")
    with pytest.raises(NoCompiler, match=rf"failed with signal SIGABRT:\n\n{REMEDY}"):
        build(made, tmp_path, count=3)


def test_a_compiler_that_writes_nothing_is_found_out(tmp_path: Path) -> None:
    made = compiler(tmp_path, "exit 0")
    with pytest.raises(
        NoCompiler, match=rf"cc reported no error, yet wrote no 'source0.o'; {REMEDY}"
    ):
        build(made, tmp_path)
    empty = compiler(tmp_path / "other", 'for last; do :; done; : > "$last"')
    with pytest.raises(NoCompiler, match="wrote no 'source0.o'"):
        build(empty, tmp_path)


def test_a_hanging_compiler_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAGANE_COMPILER_SECONDS", "0.3")
    # As cc and cc1: the child holds the pipes open after its parent is gone.
    made = compiler(tmp_path, f"sleep 60 & echo $! > {tmp_path}/child; wait")
    start = time.monotonic()
    with pytest.raises(
        NoCompiler,
        match=rf"had not ended after 0.3 seconds; set HAGANE_COMPILER_SECONDS .*, or {REMEDY}",
    ):
        build(made, tmp_path)
    child = int((tmp_path / "child").read_text())
    # Nobody may have read its end yet, but it runs no program any more.
    while os.path.exists(f"/proc/{child}/exe"):
        assert time.monotonic() - start < 30


@pytest.mark.parametrize("stated", ["soon", "0", "-1", "nan", "inf"])
def test_a_time_limit_that_is_no_number_is_explained(
    stated: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HAGANE_COMPILER_SECONDS", stated)
    with caplog.at_level(logging.WARNING), pytest.raises(NoCompiler):
        build(compiler(tmp_path, "exit 1"), tmp_path)
    text = f"HAGANE_COMPILER_SECONDS: expected a positive number of seconds, got '{stated}'"
    assert text in caplog.text


def test_the_compilers_own_files_go_where_the_library_goes(tmp_path: Path) -> None:
    made = compiler(tmp_path, 'for last; do :; done; echo "$TMPDIR $LC_ALL" > "$last"')
    library = build(made, tmp_path)
    assert library.read_text() == f"{tmp_path} C\n"
