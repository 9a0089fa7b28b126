"""Headers without the functions that nothing calls."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hagane.machine import CodeCache, find_compiler
from hagane.machine.headers import Header, Lean, without_unused

TEXT = """\
#define SIZE 4
#define _UNUSED 5
#define _USED 6
typedef float _vector __attribute__((vector_size(16)));
extern __inline int __attribute__((always_inline))
_lower(int a)
{
  return a + 1;
}
static __inline__ _vector __attribute__((__always_inline__, __target__("sse2"))) _called(_vector a)
{
  return a + _lower(_USED);
}
extern __inline int _unused(int a) { return _lower(a); }
extern double floor(double);
static inline _vector own(_vector x) { return _called(x); }
"""


def test_system_functions_stay_where_something_calls_them() -> None:
    lean = without_unused(TEXT)
    assert lean.left_out == {"_unused"}
    for kept in (
        "_UNUSED 5",
        "_lower(int a)",
        "_called(_vector a)",
        "#define _USED 6",
        "SIZE",
        "floor",
        "own",
    ):
        assert kept in lean.text


def test_a_text_of_one_line_without_end_is_kept() -> None:
    assert without_unused("static int open(int a) { return").text.strip().endswith("return")


def test_sources_may_include_what_the_header_did(header: Header, tmp_path: Path) -> None:
    flags, (text,) = header.begin(["#include <stddef.h>\nmax_align_t most; int three = 3;"])
    (tmp_path / "source.c").write_text(text)
    find_compiler().call([*flags, "-O1", "-w", "-c", str(tmp_path / "source.c")], tmp_path / "o")


@pytest.fixture
def header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Header:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    text = (
        "#include <stddef.h>\n#include <stdint.h>\n"
        "static inline int _two(void) { return 2; }\nstatic inline int one(void) { return 1; }\n"
    )
    return Header(CodeCache("headers"), find_compiler(), text, ("-O1", "-w"))


def test_a_source_gets_the_whole_header_where_the_lean_one_lacks_a_name(header: Header) -> None:
    flags, texts = header.begin(["int two(void) { return 2 * one(); }"])
    assert texts[0].startswith('#include "lean.h"\n')
    assert len(flags) == 1
    flags, texts = header.begin(["int x;", "int y(void) { return _two(); }"])
    assert [text.split("\n")[0] for text in texts] == ['#include "lean.h"', '#include "whole.h"']
    assert len(flags) == 2


def test_a_compiler_that_cannot_preprocess_gets_the_whole_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "cc"
    script.write_text('#!/bin/sh\ncase "$*" in *-dD*) exit 1;; esac\nexec gcc "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CC", str(script))
    text = "#define _OWN 7\nstatic int a = 1;\n"
    flags, texts = Header(CodeCache("headers"), find_compiler(), text, ("-w",)).begin(["int b;"])
    assert texts == ['#include "lean.h"\nint b;']
    assert (Path(flags[0][2:]) / "lean.h").read_text() == text


@pytest.mark.parametrize("version", ["gcc", "another compiler"])
def test_a_header_that_lacks_too_much_is_taken_whole(
    header: Header, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_little(text: str) -> Lean:
        return Lean(text.replace("static inline int _two(void) { return 2; }", ""), frozenset("a"))

    used = "static inline int three(void) { return _two() + 1; }\n"
    monkeypatch.setattr("hagane.machine.headers.without_unused", too_little)
    monkeypatch.setattr(header, "_text", header._text + used)
    monkeypatch.setattr(header, "_compiler", replace(find_compiler(), version=version))
    flags, _ = header.begin(["int x;"])
    assert "int _two(void)" in (Path(flags[0][2:]) / "lean.h").read_text()
