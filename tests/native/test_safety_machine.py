"""What a session does on a machine whose compiler, disk or CPU is not what it should be."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

import hagane
from hagane.machine import LEVELS, best_level, find_compiler, level_named
from hagane.machine.cpu import AVX2
from hagane.native.run.engine import compile_kernels
from tests.machine.disks import read_only, small_disk
from tests.native.models import RUNNABLE, compiled, draw, model, session


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Start as a process does, with an empty cache."""
    monkeypatch.setattr("hagane.machine.notices._given", set())
    monkeypatch.setattr("hagane.machine.folder._temporary", {})
    monkeypatch.setattr("hagane.machine.cache._written", {})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def network() -> tuple[onnx.ModelProto, dict[str, np.ndarray], np.ndarray]:
    """Return a model of few kernels, a feed and its result by definition."""
    feed, w = {"x": draw((3, 16))}, draw((16, 24), 1)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], "product"),
        helper.make_node("Relu", ["a"], ["y"]),
    ]
    return model(nodes, feed, constants={"w": w}), feed, np.maximum(feed["x"] @ w, 0)


def program(folder: Path, text: str) -> str:
    """Write a compiler; ``text`` is what it does after its version, and otherwise.

    $REAL is a true one.
    """
    real = " ".join(find_compiler().command)
    path = folder / "compiler"
    path.write_text(f'#!/bin/sh\nREAL="{real}"\n[ "$1" = --version ] && {{ echo "gcc 1"; {text}\n')
    path.chmod(0o700)
    return str(path)


def is_native(made: hagane.InferenceSession) -> bool:
    return any(True for _ in made._programs.general.parts("native"))


def check(caplog: pytest.LogCaptureFixture, *, native: bool) -> str:
    """Run the model; its result must be right. Return the notices of hagane's loggers."""
    proto, feed, want = network()
    with caplog.at_level(logging.WARNING, logger="hagane"):
        made = session(proto, instructions="portable")
        for _ in range(2):
            np.testing.assert_allclose(made.run(None, feed)[0], want, rtol=1e-4, atol=1e-5)
    assert is_native(made) == native
    return "\n".join(record.getMessage() for record in caplog.records)


REMEDY = "let CC name another compiler, or pip install 'hagane[compiler]'"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("exit; }; echo broken >&2; exit 1", "failed with exit code 1:\nbroken"),
        ("exit; }; kill -ABRT $$", "failed with signal SIGABRT"),
        ("exit; }; sleep 60", "had not ended after 0.5 seconds"),
        ("exit; }; exit 0", "reported no error, yet wrote no '"),
        ('rm "$0"; exit; }', "cannot be started: [Errno 2] No such file or directory"),
        ('exit; }; for x; do :; done; echo junk > "$x"', "what the compiler made cannot be loaded"),
        (
            'exit; }; case "$*" in *kernels*) echo later >&2; exit 2;; esac; exec $REAL "$@"',
            "failed with exit code 2:\nlater",
        ),
        (
            'exit; }; case "$*" in *c-header*) echo header >&2; exit 3;; esac; exec $REAL "$@"',
            "failed with exit code 3:\nheader",
        ),
    ],
    ids=["fails", "crashes", "hangs", "writes nothing", "vanishes", "writes junk",
         "fails at kernels", "fails at the header"],
)  # fmt: skip
def test_with_a_broken_compiler_the_reference_engine_runs(
    text: str,
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = program(tmp_path, text)
    monkeypatch.setenv("CC", path)
    monkeypatch.setenv("HAGANE_COMPILER_SECONDS", "0.5" if "sleep" in text else "300")
    notices = check(caplog, native=False)
    assert "the model runs on the slow reference kernels: " in notices
    assert reason in notices
    assert "let CC name another compiler" in notices
    assert path in notices or "junk" in text


@pytest.mark.usefixtures("without_ziglang")
def test_without_a_compiler_the_notice_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    notices = check(caplog, native=False)
    assert "the model runs on the slow reference kernels: no C compiler was found" in notices
    assert "pip install hagane[compiler]" in notices


def test_a_cache_on_a_full_disk_is_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with small_disk(tmp_path / "cache"):
        notices = check(caplog, native=True)
    assert f"compiled code cannot be kept in '{tmp_path / 'cache'}" in notices
    assert "No space left on device" in notices
    assert "slow" not in notices


def test_with_all_disks_full_the_reference_engine_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with small_disk(tmp_path / "cache"), small_disk(tmp_path / "temporary"):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
        notices = check(caplog, native=False)
    assert "runs on the slow reference kernels: there is no room for compiled code in" in notices
    assert "XDG_CACHE_HOME and TMPDIR name folders that have it" in notices


def test_a_read_only_cache_serves_what_it_holds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    check(caplog, native=True)
    folder = tmp_path / "cache" / "hagane" / "native"
    held = sorted(folder.iterdir())
    with read_only(folder):
        notices = check(caplog, native=True)
        other, feed = model([helper.make_node("Neg", ["x"], ["y"])], {"x": draw((2,))}), draw((2,))
        np.testing.assert_array_equal(session(other).run(None, {"x": feed})[0], -feed)
    assert f"the folder '{folder}' cannot be written to" in notices
    assert sorted(folder.iterdir()) == held


def test_a_cache_whose_place_is_a_file_is_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cache").write_text("a file")
    notices = check(caplog, native=True)
    assert "compiled code is kept in a temporary folder" in notices
    assert "Not a directory" in notices


RUN = """if True:
    import sys, logging
    logging.basicConfig(format="%(message)s", stream=sys.stdout)
    import numpy as np
    from tests.native.test_safety_machine import is_native, network
    from tests.native.models import session
    proto, feed, want = network()
    made = session(proto, instructions="portable")
    np.testing.assert_allclose(made.run(None, feed)[0], want, rtol=1e-4, atol=1e-5)
    parts = list(made._programs.general.parts("native"))
    print(is_native(made), *(part.segment.library.cached for part in parts))
"""


def run_python(program: str = RUN, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        env={**os.environ, **environment},
    )
    return done.stdout


def test_damaged_libraries_are_compiled_anew_and_never_loaded(tmp_path: Path) -> None:
    assert run_python() == "True False\n"
    assert run_python() == "True True\n"
    folder = tmp_path / "cache" / "hagane" / "native"
    libraries = sorted(folder.glob("*/*.so"))
    assert {path.name for path in libraries} == {"engine.so", "call.so", "kernels.so"}
    for path in libraries:
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2])
    assert run_python() == "True False\n"
    for path in libraries:
        changed = bytearray(path.read_bytes())
        changed[len(changed) // 2] ^= 1
        path.write_bytes(changed)
    assert run_python() == "True False\n"


def test_a_file_size_limit_is_no_obstacle(tmp_path: Path) -> None:
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
    # Python would leave bytecode of 4 KiB, which no process can read.
    printed = run_python(limited + RUN, PYTHONDONTWRITEBYTECODE="1")
    assert printed.endswith("False\n")
    assert "the model runs on the slow reference kernels: " in printed


def test_a_home_that_is_no_folder_is_passed_over(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("a file")
    (tmp_path / "temporary").mkdir()
    printed = run_python(HOME=str(home), XDG_CACHE_HOME="", TMPDIR=str(tmp_path / "temporary"))
    assert f"the folder '{home}/.cache/hagane/native' cannot be used: " in printed
    assert printed.endswith("True False\n")
    assert list((tmp_path / "temporary").iterdir()) == []


def test_libraries_of_different_levels_never_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    proto, _, _ = network()
    paths = []
    # Floats are multiplied in vectors where there are matrix tiles too: that is one library.
    names = [name for name in RUNNABLE if name != "amx"]
    for name in names:
        made = session(proto, instructions=name)
        (part,) = made._programs.general.parts("native")
        paths.append(part.segment.library.path)
    # The same text for different instructions is a different library too.
    kernels = compiled(monkeypatch, lambda: session(proto, instructions=name))
    portable = [level for level in LEVELS if level.name in names]
    paths += [compile_kernels(kernels, level).path for level in portable if level.name != name]
    assert len(set(paths)) == len(paths)


@pytest.mark.parametrize("stated", ["entry", "environment"])
def test_unknown_instructions_are_noticed(
    stated: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    proto, feed, want = network()
    if stated == "environment":
        monkeypatch.setenv("HAGANE_INSTRUCTIONS", "sse9")
    with caplog.at_level(logging.WARNING, logger="hagane"):
        made = session(proto, **({"instructions": "sse9"} if stated == "entry" else {}))
    np.testing.assert_allclose(made.run(None, feed)[0], want, rtol=1e-4, atol=1e-5)
    assert "there are no instructions 'sse9' (expected amx, avx512, avx2, portable)" in caplog.text
    assert f"kernels are generated for '{best_level().name}'" in caplog.text


@pytest.mark.skipif("avx2" not in RUNNABLE, reason="this CPU has no level below the one asked for")
def test_instructions_that_the_cpu_lacks_are_not_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    proto, feed, want = network()
    monkeypatch.setattr("hagane.machine.cpu.cpu_features", lambda: AVX2.needs)
    with caplog.at_level(logging.WARNING, logger="hagane"):
        made = session(proto, instructions="avx512")
        kernels = compiled(monkeypatch, lambda: session(proto, instructions="avx512"))
    np.testing.assert_allclose(made.run(None, feed)[0], want, rtol=1e-4, atol=1e-5)
    assert "the instructions 'avx512' need avx512bw" in caplog.text
    (part,) = made._programs.general.parts("native")
    assert part.segment.library.path == compile_kernels(kernels, AVX2).path
    assert level_named(None) is AVX2
