"""Builds for other processors: several levels in one folder, and another machine."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from platform import machine

import numpy as np
import pytest

import hagane
from hagane.errors import InvalidArgument
from hagane.machine import AVX2, AVX512, cpu_features
from hagane.ship import BuildOptions, build_model
from hagane.ship.manifest import manifest_text, read_manifest
from hagane.ship.refit import refit
from tests.ship.conftest import Maker, compile_c, run_c
from tests.ship.models import CASES, save

HERE = Path(__file__).parent
X86 = pytest.mark.skipif(not cpu_features() >= AVX2.needs, reason="this processor has no AVX2")


@X86
@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64"])
@pytest.mark.parametrize("case", ["images", "attention"])
def test_a_build_for_a_lower_level_agrees(builds: Maker, target: str, case: str) -> None:
    model, feed = CASES[case]()
    (expected,) = hagane.InferenceSession(model).run(None, feed)
    (found,) = hagane.load_built(builds(case, target=target)).run(None, feed)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@X86
def test_the_first_level_that_the_processor_has_is_taken(builds: Maker, tmp_path: Path) -> None:
    best = "x86-64-v4" if cpu_features() >= AVX512.needs else "x86-64-v3"
    folder = tmp_path / "b"
    shutil.copytree(builds("any_batch", target=f"{best},x86-64"), folder)
    assert read_manifest(folder)["levels"] == [best]
    feed = CASES["any_batch"]()[1]
    expected = hagane.load_built(folder).run(None, feed)[0]
    (alone,) = hagane.load_built(builds("any_batch", target=best)).run(None, feed)
    np.testing.assert_array_equal(expected, alone)
    (folder / "any_batch.weights").unlink()  # those of the base are not read
    np.testing.assert_array_equal(hagane.load_built(folder).run(None, feed)[0], expected)


@X86
def test_the_base_serves_processors_without_the_levels(builds: Maker, tmp_path: Path) -> None:
    folder = tmp_path / "b"
    shutil.copytree(builds("any_batch", target="x86-64-v3,x86-64"), folder)
    level = folder / "x86-64-v3"
    manifest = read_manifest(level)
    del manifest["check"], manifest["kind"]
    manifest["needs"] = [*manifest["needs"], "an_instruction_of_tomorrow"]
    (level / "manifest.json").write_text(manifest_text(manifest))
    (level / "any_batch.weights").unlink()
    feed = CASES["any_batch"]()[1]
    (found,) = hagane.load_built(folder).run(None, feed)
    (expected,) = hagane.load_built(builds("any_batch", target="x86-64")).run(None, feed)
    np.testing.assert_array_equal(found, expected)


@X86
def test_levels_are_refitted_together(builds: Maker, tmp_path: Path) -> None:
    folder = tmp_path / "b"
    shutil.copytree(builds("any_batch", target="x86-64-v3,x86-64"), folder)
    model, feed = CASES["any_batch"]()
    for item in model.graph.initializer:
        weights = np.frombuffer(item.raw_data, np.float32) * np.float32(1.5)
        item.raw_data = weights.tobytes()
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    refit(folder, tmp_path / "m.onnx")
    (expected,) = hagane.InferenceSession(model).run(None, feed)
    for opened in (folder, folder / "x86-64-v3"):
        (found,) = hagane.load_built(opened).run(None, feed)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_program_in_c_is_told_which_instructions_the_processor_lacks(
    builds: Maker, tmp_path: Path
) -> None:
    own = builds("any_batch")
    for name, changes in {
        "tomorrow": {"needs": ["an_instruction_of_tomorrow"]},
        "elsewhere": {"machine": "z80", "target": "z80"},
    }.items():
        shutil.copytree(own, tmp_path / name)
        manifest = read_manifest(own)
        target = str(manifest["target"])
        del manifest["check"], manifest["kind"]
        (tmp_path / name / "manifest.json").write_text(manifest_text({**manifest, **changes}))
    compile_c(HERE / "processor.c", own, tmp_path / "program", "-std=c99")
    folders = [tmp_path / "tomorrow", tmp_path / "elsewhere", own]
    done = run_c(tmp_path / "program", own, *map(str, folders))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [
        f"{folders[0]}: built for {target}, and this processor lacks an_instruction_of_tomorrow; "
        "build the model with --target for it",
        f"{folders[1]}: built for z80, and this process is one of {machine()}",
        "open",
    ]


@X86
@pytest.mark.skipif(shutil.which("qemu-x86_64") is None, reason="there is no qemu-x86_64")
def test_an_old_processor_refuses_builds_for_newer_ones(builds: Maker, tmp_path: Path) -> None:
    # Not one instruction of AVX may run: emulated, this processor has none.
    both, old = builds("any_batch", target="x86-64-v3,x86-64"), builds("any_batch", target="x86-64")
    new = builds("any_batch", target="x86-64-v3")
    for beside in (new, old):  # the library that opens the folders
        compile_c(HERE / "processor.c", beside, tmp_path / "program", "-std=c99")
        for last in (old, both):
            done = subprocess.run(
                ["qemu-x86_64", "-cpu", "Nehalem", tmp_path / "program", new, last],
                capture_output=True, text=True, check=False,
                env={"LD_LIBRARY_PATH": str(beside)},
            )  # fmt: skip
            assert done.returncode == 0, done.stdout + done.stderr
            assert "and this processor lacks " in done.stdout
            assert done.stdout.endswith("\nopen\n")


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (
            "x86-64,x86-64-v3",
            "that needs most to the one that needs least, got x86-64",
        ),
        ("x86-64-v3,x86-64-v3", "got x86-64-v3 before x86-64-v3"),
        ("aarch64,x86-64", "expected levels of one machine, got aarch64 and x86_64"),
        ("x86-64-v3,z80", "--target 'z80': expected one of x86-64-v4"),
    ],
)
def test_levels_that_do_not_fit_are_refused(tmp_path: Path, target: str, text: str) -> None:
    save(CASES["any_batch"](), tmp_path / "m.onnx")
    with pytest.raises(InvalidArgument, match=text):
        build_model(tmp_path / "m.onnx", tmp_path / "b", BuildOptions(target=target))
    assert not (tmp_path / "b").exists()


PROGRAM = """
#include "hagane.h"
#include <stdio.h>
int main(int argc, char **argv) {
  hagane_model *model;
  float x[66];
  for (int i = 0; i < 66; i++) x[i] = (float)(i % 7) - 3;
  hagane_tensor in = {"x", 1, 2, {2, 33}, x, sizeof x}, out = {"y"};
  if (hagane_open(argv[1], NULL, &model) != HAGANE_OK) return puts(hagane_message()), 1;
  if (hagane_run(model, &in, 1, &out, 1) != HAGANE_OK) return puts(hagane_message()), 1;
  for (size_t i = 0; i < out.bytes / 4; i++) printf("%.9g ", ((float *)out.data)[i]);
  return 0;
}
"""
CROSS = Path("/usr/aarch64-linux-gnu")


@pytest.mark.long
def test_a_build_for_aarch64_runs_emulated(tmp_path: Path) -> None:
    emulator = shutil.which("qemu-aarch64")
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("the package ziglang is not installed")
    if emulator is None or not CROSS.is_dir():
        pytest.skip("qemu-aarch64 or the C library for aarch64 is not installed")
    model, _ = CASES["any_batch"]()
    save(CASES["any_batch"](), tmp_path / "any.onnx")
    folder = tmp_path / "b"
    build_model(
        tmp_path / "any.onnx", folder, BuildOptions(target="aarch64", shapes=("x=1..4,33",))
    )
    assert json.loads((folder / "manifest.json").read_text())["machine"] == "aarch64"
    (tmp_path / "p.c").write_text(PROGRAM)
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", "aarch64-linux-gnu.2.34"]
    program = str(tmp_path / "p")
    files = [f"{program}.c", f"-I{folder}", f"-L{folder}", "-lany", "-o", program]
    subprocess.run([*zig, *files], check=True)
    done = subprocess.run(
        [emulator, "-L", str(CROSS), "-E", f"LD_LIBRARY_PATH={folder}", program, str(folder)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    x = (np.arange(66) % 7 - 3).astype(np.float32).reshape(2, 33)
    (expected,) = hagane.InferenceSession(model).run(None, {"x": x})
    found = np.array(done.stdout.split(), np.float32).reshape(expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
