"""Compiling C once, into a private folder, from several threads and without a compiler."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from hagane.lexgen import Lexer, TokenMask
from hagane.lexgen.c_toolchain import compile_library, load_library
from hagane.machine import NoCompiler
from tests.lexgen.test_lexer import needs_compiler

SOURCE = "int answer(void) { return 42; }"


@pytest.mark.usefixtures("without_ziglang")
def test_without_a_compiler_the_c_form_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(NoCompiler, match="no C compiler was found"):
        Lexer.from_rules([("A", "a")]).tokenize_arrays(b"a")


@needs_compiler
def test_threads_that_compile_the_same_source_share_one_library(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with ThreadPoolExecutor(4) as pool:
        paths = set(pool.map(lambda _: compile_library(SOURCE), range(4)))
    (path,) = paths
    kept = sorted(entry.name for entry in path.parent.iterdir())
    assert kept == [path.with_suffix(".sha256").name, path.name]
    assert path.parent.stat().st_mode & 0o077 == 0
    function = load_library(SOURCE).answer
    function.restype = ctypes.c_int
    assert function() == 42


@needs_compiler
def test_a_damaged_library_is_compiled_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compile_library(SOURCE).write_bytes(b"damaged")
    assert load_library(SOURCE).answer() == 42


@needs_compiler
@pytest.mark.wrong_c
def test_code_that_the_compiler_refuses_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(NoCompiler, match=r"failed with exit code 1:\n.*lexer.c"):
        compile_library("no C")


@needs_compiler
def test_many_tokens_and_errors_over_the_seams_of_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    lexer = Lexer.from_rules([("A", "a"), ("B", "b+")])
    data = b"ab??bb?a" * 40
    whole = lexer.tokenize_arrays(data)
    for chunk in (2, 3, 7):
        monkeypatch.setattr("hagane.lexgen.emitting.native_lexer._CHUNK", chunk)
        for array, expected in zip(lexer.tokenize_arrays(data), whole, strict=True):
            assert np.array_equal(array, expected)


def test_numpy_masks_work_alone() -> None:
    index = TokenMask("a+", ["a", "aa", "b"], native=False)
    assert index.mask(index.start).tokens().tolist() == [0, 1]
