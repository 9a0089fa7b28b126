"""Kernels are compiled once, and linked to the libraries that have them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hagane.errors import NoCompiler
from hagane.machine import CodeCache, find_compiler
from hagane.machine.compiler import Compiler
from hagane.native.kernels.kernel import shared_function
from hagane.native.run.objects import Objects

calls: list[Sequence[str]] = []


class Watched(Compiler):
    """A compiler whose calls are listed."""

    def call(self, arguments: Sequence[str], made: Path) -> None:
        calls.append(arguments)
        super().call(arguments, made)


@pytest.fixture
def objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Objects:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    calls.clear()
    found = find_compiler()
    compiler = Watched(found.command, found.version)
    return Objects(CodeCache("native"), compiler, ("-O1", "-fPIC"), "#include <math.h>\n", 1)


def kernel(number: int, more: str = "") -> dict[str, str]:
    return {f"k{number}": f"int k{number}(void) {{ return {number}; }}\n{more}"}


def compiled() -> int:
    return sum("-c" in arguments and "c-header" not in arguments for arguments in calls)


def values(library: Path, *numbers: int) -> list[int]:
    loaded = ctypes.CDLL(str(library))
    return [getattr(loaded, f"k{number}")() for number in numbers]


def test_a_function_that_kernels_share_is_compiled_once(objects: Objects, tmp_path: Path) -> None:
    objects = replace(objects, header="#define SHARED static\n")
    name, text = shared_function(
        lambda name: f"SHARED int {name}(int a) {{\n  return a + 40;\n}}\n", "KERNEL_more"
    )
    body = f"{text}\nint KERNEL(void) {{ return KERNEL_more(NUMBER); }}\n"
    codes = {f"k{i}": body.replace("KERNEL", f"k{i}").replace("NUMBER", str(i)) for i in (1, 2)}
    for i in (1, 2):
        objects.link({f"k{i}": codes[f"k{i}"]}, tmp_path / f"{i}.so")
        assert values(tmp_path / f"{i}.so", i) == [40 + i]
    objects.link(codes, tmp_path / "both.so")
    assert values(tmp_path / "both.so", 1, 2) == [41, 42]
    assert not hasattr(ctypes.CDLL(str(tmp_path / "both.so")), name)
    kept = [each.read_text() for each in objects.cache.folder.rglob("names")]
    assert sorted(len(each.split()) for each in kept) == [1, 2]
    (tmp_path / "one.c").write_text(f"#define SHARED static\n{codes['k1']}{codes['k2']}")
    objects.compiler.build([tmp_path / "one.c"], tmp_path / "one.so", ("-fPIC",))
    assert values(tmp_path / "one.so", 1, 2) == [41, 42]  # the texts by themselves, side by side


def test_a_library_takes_what_others_have_compiled(objects: Objects, tmp_path: Path) -> None:
    objects.link(kernel(1) | kernel(2), tmp_path / "a.so")
    assert compiled() == 1
    objects.link(kernel(2) | kernel(3), tmp_path / "b.so")
    assert compiled() == 2
    objects.link(kernel(1) | kernel(3), tmp_path / "c.so")
    assert compiled() == 2
    assert values(tmp_path / "b.so", 2, 3) == [2, 3]
    assert values(tmp_path / "c.so", 1, 3) == [1, 3]
    loaded = ctypes.CDLL(str(tmp_path / "c.so"))
    assert not hasattr(loaded, "k2")  # it was compiled beside k1


def test_kernels_of_other_flags_are_others(objects: Objects, tmp_path: Path) -> None:
    objects.link(kernel(1), tmp_path / "a.so")
    replace(objects, flags=("-O2", "-fPIC")).link(kernel(1), tmp_path / "b.so")
    replace(objects, header="#include <stdlib.h>\n").link(kernel(1), tmp_path / "c.so")
    assert compiled() == 3


def test_a_kernel_that_two_processes_compiled_is_linked_once(
    objects: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Objects, "_found", lambda *_: {})
    objects.link(kernel(1) | kernel(2), tmp_path / "a.so")
    objects.link(kernel(2) | kernel(3), tmp_path / "b.so")
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    objects.link(kernel(1) | kernel(2) | kernel(3), tmp_path / "c.so")
    assert compiled() == 2
    assert values(tmp_path / "c.so", 1, 2, 3) == [1, 2, 3]


@pytest.mark.parametrize("damage", ["object", "list", "no list", "removed"])
def test_damaged_files_are_made_anew(objects: Objects, tmp_path: Path, damage: str) -> None:
    objects.link(kernel(1), tmp_path / "a.so")
    (made,) = objects.cache.folder.glob("*/kernels.o")
    if damage == "object":
        made.write_bytes(made.read_bytes()[:-9] + b"#" * 9)
    elif damage == "list":
        objects._list.write_bytes(b"\xff\x00 k1\nk1")
    elif damage == "no list":
        objects._list.unlink()
    else:
        for file in (*made.parent.iterdir(), made.parent):
            file.rmdir() if file.is_dir() else file.unlink()
    objects.link(kernel(1) | kernel(2), tmp_path / "b.so")
    assert compiled() == 2
    assert values(tmp_path / "b.so", 1, 2) == [1, 2]


def test_a_long_list_begins_anew(
    objects: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects.link(kernel(1), tmp_path / "a.so")
    monkeypatch.setattr("hagane.native.run.objects._LIST_LIMIT", 10)
    objects.link(kernel(2), tmp_path / "b.so")
    assert len(objects._list.read_text().splitlines()) == 1


def test_a_linker_that_knows_no_sections_links_all(
    objects: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Compiler.call

    def call(self: Compiler, arguments: Sequence[str], made: Path) -> None:
        if any("version-script" in word for word in arguments):
            raise NoCompiler("unknown option")
        real(self, arguments, made)

    monkeypatch.setattr(Compiler, "call", call)
    objects.link(kernel(1) | kernel(2), tmp_path / "a.so")
    assert values(tmp_path / "a.so", 1, 2) == [1, 2]


def test_an_error_of_the_compiler_is_told(objects: Objects, tmp_path: Path) -> None:
    with pytest.raises(NoCompiler, match="failed with exit code 1"):
        objects.link({"k1": "int k1(void) { return nothing; }\n"}, tmp_path / "a.so")
