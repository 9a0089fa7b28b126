"""The C interface, as programs in C and C++ use it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.ship.conftest import Maker, compile_c, run_c, sanitize

HERE = Path(__file__).parent


def test_a_program_in_c_uses_all_of_the_interface(builds: Maker, tmp_path: Path) -> None:
    folder = builds("any_batch", shapes=("x=1..8,33",))
    compile_c(HERE / "interface.c", folder, tmp_path / "program", "-std=c99", "-pedantic")
    done = run_c(tmp_path / "program", folder, str(folder))
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr


def test_the_program_of_a_readme_compiles_and_runs(builds: Maker, tmp_path: Path) -> None:
    folder = builds("images", static=True)
    text = (folder / "README.md").read_text()
    (tmp_path / "program.c").write_text(text.split("```c\n")[1].split("```")[0])
    compile_c(tmp_path / "program.c", folder, tmp_path / "program", "-std=c99")
    done = run_c(tmp_path / "program", folder, str(folder))
    assert (done.returncode, done.stdout) == (0, "y: 56 bytes\n"), done.stderr


def test_every_name_has_its_type_and_place(builds: Maker, tmp_path: Path) -> None:
    folder = builds("any_batch", shapes=("x=1..8,33",))
    compile_c(HERE / "names.c", folder, tmp_path / "names", "-std=c11")
    assert run_c(tmp_path / "names", folder).returncode == 0


def test_the_header_is_c_and_cpp(builds: Maker, tmp_path: Path) -> None:
    folder = builds("any_batch", shapes=("x=1..8,33",))
    source = tmp_path / "program.cpp"
    source.write_text("#include <hagane.h>\nint main() { return hagane_version()[0] != '1'; }\n")
    compile_c(source, folder, tmp_path / "cpp", "-std=c++17", "-pedantic", compiler="c++")
    assert run_c(tmp_path / "cpp", folder).returncode == 0


def test_all_of_the_header_is_documented_in_pages(tmp_path: Path) -> None:
    doxygen = shutil.which("doxygen")
    if doxygen is None:
        pytest.skip("doxygen is not on this machine")
    root = HERE.parents[1]
    settings = (root / "docs" / "Doxyfile").read_text() + f"OUTPUT_DIRECTORY = {tmp_path}\n"
    done = subprocess.run(
        [doxygen, "-"], input=settings, cwd=root, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    page = (tmp_path / "c" / "hagane_8h.html").read_text()
    assert "hagane_open_memory" in page


def test_any_builds_library_opens_any_build(builds: Maker, tmp_path: Path) -> None:
    folder, other = builds("images", static=True), builds("any_batch", shapes=("x=1..8,33",))
    text = (folder / "README.md").read_text()
    (tmp_path / "program.c").write_text(text.split("```c\n")[1].split("```")[0])
    compile_c(tmp_path / "program.c", folder, tmp_path / "program")
    assert run_c(tmp_path / "program", folder, str(other)).stdout == "y: 136 bytes\n"
    moved = tmp_path / "moved"
    shutil.copytree(other, moved)
    (moved / "libany_batch.so").write_bytes(b"\x7fELF and nothing else")
    done = run_c(tmp_path / "program", folder, str(moved))
    assert done.returncode == 1
    assert "libany_batch.so is damaged, or of another build" in done.stderr
    (moved / "libany_batch.so").unlink()
    done = run_c(tmp_path / "program", folder, str(moved))
    assert "libany_batch.so' cannot be read" in done.stderr
    static = builds("any_batch", static=True)
    done = run_c(tmp_path / "program", folder, str(static))
    assert "is a static build of another model" in done.stderr


@pytest.mark.parametrize("last", [0, 1])
def test_a_program_of_two_archives_runs_both_models(
    builds: Maker, tmp_path: Path, last: int
) -> None:
    folders = [builds("images", static=True), builds("any_batch", static=True)]
    text = (folders[0] / "README.md").read_text()
    assert "between `-Wl,--whole-archive`" in text
    (tmp_path / "program.c").write_text(text.split("```c\n")[1].split("```")[0])
    archives = [str(next(folder.glob("*.a"))) for folder in (folders[1 - last], folders[last])]
    between = [f"-Wl,--{word}" for word in ("whole-archive", "no-whole-archive")]
    command = ["cc", "program.c", "-I", str(folders[0]), between[0], *archives, between[1]]
    done = subprocess.run(
        [*command, "-lm", "-lpthread", "-o", "both"], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for folder in folders:
        shared = builds(next(folder.glob("*.a")).stem.removeprefix("lib"))
        alone = tmp_path / "alone"
        compile_c(tmp_path / "program.c", shared, alone)
        expected = run_c(alone, shared, str(shared)).stdout
        assert run_c(tmp_path / "both", folder, str(folder)).stdout == expected != ""


def test_no_manifest_no_weights_and_no_inputs_crash_a_program(
    builds: Maker, tmp_path: Path
) -> None:
    folder = builds("any_batch", shapes=("x=1..8,33",))
    compile_c(HERE / "fuzz.c", folder, tmp_path / "fuzz", "-std=c11")
    done = run_c(tmp_path / "fuzz", folder, str(folder), "any_batch.weights")
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


@pytest.mark.parametrize("threads", ["1", "4"])
@pytest.mark.parametrize("case", ["any_batch", "images", "loop"])
def test_all_memory_is_the_callers_and_none_is_an_error(
    builds: Maker, tmp_path: Path, case: str, threads: str
) -> None:
    shapes = ("x=1..8,33",) if case == "any_batch" else ()
    folder = builds(case, shapes=shapes) if shapes else builds(case)
    compile_c(HERE / "memory.c", folder, tmp_path / "memory", "-std=c99")
    done = run_c(tmp_path / "memory", folder, str(folder), threads)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 15


@pytest.mark.parametrize("runs", [20_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_memory_stays_flat_over_many_runs(builds: Maker, tmp_path: Path, runs: int) -> None:
    folder = builds("any_batch", shapes=("x=1..8,33",))
    compile_c(HERE / "flat.c", folder, tmp_path / "flat", "-std=c99")
    done = run_c(tmp_path / "flat", folder, str(folder), str(runs))
    assert done.returncode == 0, done.stdout + done.stderr


def test_memory_of_large_outputs_is_used_again(builds: Maker, tmp_path: Path) -> None:
    folder = builds("any_batch", shapes=("x=1..2048,33",))
    compile_c(HERE / "outputs.c", folder, tmp_path / "outputs", "-std=c99")
    done = run_c(tmp_path / "outputs", folder, str(folder), "2001")
    assert (done.returncode, done.stdout) == (0, "1\n")
    done = run_c(tmp_path / "outputs", folder, str(folder), "2")
    assert done.returncode == 0


@pytest.mark.long
@pytest.mark.parametrize("sanitizers", ["address,undefined", "thread"])
def test_the_interface_is_clean_under_sanitizers(
    builds: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sanitizers: str
) -> None:
    sanitize(monkeypatch, sanitizers)
    folder = builds("any_batch", shapes=("x=1..8,33",), static=True, name=f"s{len(sanitizers)}")
    flags = [f"-fsanitize={sanitizers}", "-g"]
    compile_c(HERE / "interface.c", folder, tmp_path / "program", "-std=c99", *flags)
    done = run_c(tmp_path / "program", folder, str(folder))
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr
    compile_c(HERE / "outputs.c", folder, tmp_path / "outputs", "-std=c99", *flags)
    done = run_c(tmp_path / "outputs", folder, str(folder), "8")
    assert done.returncode == 0, done.stderr
    compile_c(HERE / "fuzz.c", folder, tmp_path / "fuzz", "-std=c11", *flags)
    (weights,) = folder.glob("*.weights")
    done = run_c(tmp_path / "fuzz", folder, str(folder), weights.name)
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
